/* Base64: the examples of RFC 4648, random bytes, and texts that are not base64. */
#include "unit.h"

#include "base/base64.h"

static void
both_ways(const char *data, size_t len, const char *want)
{
	char *text = base64_encode(data, len), *back;
	size_t n;

	if (want != NULL)
		assert_string_equal(text, want);
	back = base64_decode(text, &n);
	assert_non_null(back);
	assert_int_equal(n, len);
	assert_memory_equal(back, data, len);
	assert_int_equal(back[n], '\0');
	free(back);
	free(text);
}

TEST(test_examples)
{
	both_ways("", 0, "");
	both_ways("f", 1, "Zg==");
	both_ways("fo", 2, "Zm8=");
	both_ways("foo", 3, "Zm9v");
	both_ways("foob", 4, "Zm9vYg==");
	both_ways("fooba", 5, "Zm9vYmE=");
	both_ways("foobar", 6, "Zm9vYmFy");
	both_ways("\0\377\376\373", 4, "AP/++w==");
}

TEST(test_random_bytes)
{
	char data[300];
	size_t i, len;

	for (len = 0; len < sizeof(data); len++) {
		for (i = 0; i < len; i++)
			data[i] = (char)unit_random();
		both_ways(data, len, NULL);
	}
}

TEST(test_refused)
{
	static const char *const bad[] = {
		"Z", "Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zg=a", "Zg==Zg==", "Zm8=Zm9v",
		"Zm9v\n", "Zm9v ", " Zm9v", "Zm9\nv", "Zm-v", "Zm_v", "Zh==", "Zm9=", "\377m9v",
	};
	size_t i, n;

	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_null(base64_decode(bad[i], &n));
}
