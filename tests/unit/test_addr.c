/*
 * Addresses: their syntax.
 */
#include "unit.h"

#include <unistd.h>

#include "redis/addr.h"

TEST(test_good)
{
	static const struct {
		const char *text, *host, *path;
		int port;
	} good[] = {
		{ "localhost", "localhost", NULL, 6379 },
		{ "127.0.0.1:6380", "127.0.0.1", NULL, 6380 },
		{ "my-redis_1.example.org:1", "my-redis_1.example.org", NULL, 1 },
		{ "h:65535", "h", NULL, 65535 },
		{ "[::1]:7000", "::1", NULL, 7000 },
		{ "[fe80::1:2]", "fe80::1:2", NULL, 6379 },
		{ "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:1",
		    "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", NULL, 1 },
		{ "unix:/run/redis.sock", NULL, "/run/redis.sock", 6379 },
		{ "unix:/a b:c", NULL, "/a b:c", 6379 },
	};

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct addr a;
		char *cause = NULL;

		assert_int_equal(addr_parse(good[i].text, &a, &cause), 0);
		assert_null(cause);
		assert_int_equal(a.host == NULL, good[i].host == NULL);
		if (a.host != NULL)
			assert_string_equal(a.host, good[i].host);
		assert_int_equal(a.path == NULL, good[i].path == NULL);
		if (a.path != NULL)
			assert_string_equal(a.path, good[i].path);
		assert_int_equal(a.port, good[i].port);
		addr_done(&a);
	}
}

TEST(test_bad)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "empty" },
		{ ":6379", "write host:port" },
		{ "a:", "port" },
		{ "a:0", "port" },
		{ "a:65536", "port" },
		{ "a:99999999999999999999", "port" },
		{ "a:6379x", "port" },
		{ "a:-1", "port" },
		{ "a: 1", "port" },
		{ "a b", "host name" },
		{ "a\n", "host name" },
		{ "-h\001", "host name" },
		{ "a,b:1", "host name" },
		{ "::1", "[::1]:6379" },
		{ "::1:6379", "[::1:6379]" },
		{ "[::1", "[v6]:port" },
		{ "[::1]x", "[v6]:port" },
		{ "[::1]:", "port" },
		{ "[localhost]:1", "IPv6" },
		{ "[]:1", "IPv6" },
		{ "/run/redis.sock", "unix:/run/redis.sock" },
		{ "unix:redis.sock", "absolute" },
		{ "unix:", "absolute" },
		{ "redis://localhost:6379", "URL" },
		{ "unix:/0123456789012345678901234567890123456789012345678901234567890123456789"
		    "0123456789012345678901234567890123456789", "107" },
	};
	char *cause;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct addr a = { NULL, NULL, -7 };

		cause = NULL;
		assert_int_equal(addr_parse(bad[i].text, &a, &cause), -1);
		assert_non_null(cause);
		if (strstr(cause, bad[i].says) == NULL)
			fail_msg("%s: %s", bad[i].text, cause);
		assert_null(a.host);
		assert_null(a.path);
		assert_int_equal(a.port, -7);
		free(cause);
		assert_int_equal(addr_parse(bad[i].text, &a, NULL), -1);
	}
}

TEST(test_numeric)
{
	static const char *const yes[] = { "127.0.0.1", "[::1]:2" };
	static const char *const no[] = { "localhost", "unix:/a", "127.1", "1" };
	struct addr a;

	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		assert_int_equal(addr_parse(yes[i], &a, NULL), 0);
		assert_true(addr_is_numeric(&a));
		addr_done(&a);
	}
	for (size_t i = 0; i < ARRAY_LEN(no); i++) {
		assert_int_equal(addr_parse(no[i], &a, NULL), 0);
		assert_false(addr_is_numeric(&a));
		addr_done(&a);
	}
}
