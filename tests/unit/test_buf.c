/* The byte buffer, against a model. */
#include "unit.h"

#include <errno.h>

#include "base/buf.h"

TEST(test_empty)
{
	struct buf b = BUF_INIT;
	char *s;

	buf_add(&b, NULL, 0);
	buf_drain(&b, 0);
	buf_clear(&b);
	assert_null(b.data);
	assert_string_equal(buf_str(&b), "");
	assert_int_equal(b.len, 0);
	s = buf_steal(&b);
	assert_string_equal(s, "");
	assert_null(b.data);
	free(s);
	buf_done(&b);
	buf_done(NULL);
}

TEST(test_printf)
{
	struct buf b = BUF_INIT;
	char *big = xmalloc(5001);

	memset(big, 'x', 5000);
	big[5000] = '\0';
	buf_printf(&b, "%d", 7);
	buf_printf(&b, "%s", "");
	buf_printf(&b, "<%s>", big);
	buf_puts(&b, "end");
	assert_int_equal(b.len, 5006);
	assert_memory_equal(b.data, "7<xxx", 5);
	assert_memory_equal(b.data + 5001, "x>end", 5);
	buf_drain(&b, 5003);
	assert_string_equal(buf_str(&b), "end");
	buf_done(&b);
	free(big);
}

#define MODEL_MAX	(64 * 1024)

TEST(test_model)
{
	static char model[MODEL_MAX], piece[3000];
	struct buf b = BUF_INIT;
	size_t len = 0, n, i;
	int step;

	for (step = 0; step < 20000; step++) {
		n = unit_below(sizeof(piece));
		switch (unit_below(4)) {
		case 0:
		case 1:
			if (len + n > MODEL_MAX)
				break;
			for (i = 0; i < n; i++)
				piece[i] = (char)unit_random();
			buf_add(&b, piece, n);
			memcpy(model + len, piece, n);
			len += n;
			break;
		case 2:
			n = unit_below(len + 1);
			buf_drain(&b, n);
			memmove(model, model + n, len - n);
			len -= n;
			break;
		case 3:
			if (len == MODEL_MAX)
				break;
			buf_addc(&b, 'c');
			model[len++] = 'c';
			break;
		}
		assert_int_equal(b.len, len);
		assert_true(b.cap >= b.len);
		if (len > 0)
			assert_memory_equal(b.data, model, len);
		assert_int_equal(buf_str(&b)[len], 0);
	}
	buf_done(&b);
	assert_null(b.data);
}

/* buf_read() appends a whole file; EFBIG: the file is larger than the bound. */
TEST(test_read)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 100000 };
	struct buf b = BUF_INIT;
	char *bytes = xcalloc(1, 100000);
	FILE *f = tmpfile();
	size_t i;

	for (i = 0; i < 100000; i++)
		bytes[i] = (char)unit_random();
	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		rewind(f);
		assert_int_equal(ftruncate(fileno(f), 0), 0);
		assert_int_equal(write(fileno(f), bytes, sizes[i]), sizes[i]);
		buf_clear(&b);
		buf_puts(&b, "ab");
		assert_int_equal(lseek(fileno(f), 0, SEEK_SET), 0);
		assert_int_equal(buf_read(&b, fileno(f), sizes[i] + 2), 0);
		assert_int_equal(b.len, sizes[i] + 2);
		assert_memory_equal(b.data, "ab", 2);
		assert_memory_equal(b.data + 2, bytes, sizes[i]);
		assert_int_equal(lseek(fileno(f), 0, SEEK_SET), 0);
		buf_clear(&b);
		if (sizes[i] > 0) {
			assert_int_equal(buf_read(&b, fileno(f), sizes[i] - 1), -1);
			assert_int_equal(errno, EFBIG);
		}
	}
	assert_int_equal(buf_read(&b, -1, SIZE_MAX), -1);
	assert_int_equal(errno, EBADF);
	fclose(f);
	free(bytes);
	buf_done(&b);
}
