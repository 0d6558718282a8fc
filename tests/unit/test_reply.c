/*
 * Replies that hiredis' parser makes of bytes that arrive in any pieces; and the table of
 * scripts.
 */
#include "unit.h"

#include <locale.h>
#include <math.h>

#include <hiredis/hiredis.h>

#include "base/util.h"
#include "redis/reply.h"
#include "redis/script.h"

const struct script script_table[] = {
	{ "one", "return 1", 8, "" },
	{ "empty", "", 0, "" },
	{ NULL, NULL, 0, NULL }
};

/* Feeds the bytes in two pieces. */
static redisReply *
parse_split(const char *bytes, size_t len, size_t at)
{
	redisReader *reader = redisReaderCreate();
	void *r = NULL;

	assert_int_equal(redisReaderFeed(reader, bytes, at), REDIS_OK);
	assert_int_equal(redisReaderGetReply(reader, &r), REDIS_OK);
	if (r == NULL) {
		assert_int_equal(redisReaderFeed(reader, bytes + at, len - at), REDIS_OK);
		assert_int_equal(redisReaderGetReply(reader, &r), REDIS_OK);
	}
	redisReaderFree(reader);
	assert_non_null(r);
	return r;
}

static redisReply *
parse(const char *bytes)
{
	return parse_split(bytes, strlen(bytes), strlen(bytes));
}

static enum reply_error
error_of(const char *text)
{
	char *bytes = xasprintf("-%s\r\n", text);
	redisReply *r = parse(bytes);
	enum reply_error e = reply_error(r);

	free(bytes);
	freeReplyObject(r);
	return e;
}

TEST(test_errors)
{
	static const struct {
		const char *text;
		enum reply_error error;
	} errors[] = {
		{ "NOSCRIPT No matching script. Please use EVAL.", REPLY_NOSCRIPT },
		{ "LOADING Redis is loading the dataset in memory", REPLY_TRANSIENT },
		{ "BUSY Redis is busy running a script.", REPLY_TRANSIENT },
		{ "BUSYGROUP Consumer Group name already exists", REPLY_OTHER },
		{ "BUSYKEY Target key name already exists.", REPLY_OTHER },
		{ "TRYAGAIN Multiple keys request during rehashing of slot", REPLY_TRANSIENT },
		{ "READONLY You can't write against a read only replica.", REPLY_ELSEWHERE },
		{ "MASTERDOWN Link with MASTER is down", REPLY_ELSEWHERE },
		{ "MOVED 866 127.0.0.1:7002", REPLY_ELSEWHERE },
		{ "CLUSTERDOWN The cluster is down", REPLY_ELSEWHERE },
		{ "UNBLOCKED force unblock", REPLY_ELSEWHERE },
		{ "OOM command not allowed when used memory > 'maxmemory'.", REPLY_REFUSED },
		{ "MISCONF Redis is configured to save RDB snapshots", REPLY_REFUSED },
		{ "NOREPLICAS Not enough good replicas to write.", REPLY_REFUSED },
		{ "NOAUTH Authentication required.", REPLY_DENIED },
		{ "WRONGPASS invalid username-password pair", REPLY_DENIED },
		{ "NOPERM this user has no permissions", REPLY_DENIED },
		{ "DENIED Redis is running in protected mode", REPLY_DENIED },
		{ "ERR max number of clients reached", REPLY_DENIED },
		{ "ERR invalid password", REPLY_DENIED },
		{ "ERR AUTH <password> called without any password configured", REPLY_DENIED },
		{ "WRONGTYPE Operation against a key", REPLY_WRONGTYPE },
		{ "WRONGTYPE", REPLY_WRONGTYPE },
		{ "WRONGTYPES", REPLY_OTHER },
		{ "ERR unknown command", REPLY_OTHER },
		{ "ERR", REPLY_OTHER },
		{ "", REPLY_OTHER },
		/* An error in a script: Redis 7 begins with its word, older ones wrap it. */
		{ "WRONGTYPE Operation against a key script: 0123, on @user_script:1.",
		    REPLY_WRONGTYPE },
		{ "ERR Error running script (call to f_0123): @user_script:1: "
		    "WRONGTYPE Operation against a key", REPLY_WRONGTYPE },
		{ "ERR Error running script (call to f_0123): @user_script: 12: "
		    "-READONLY You can't write", REPLY_ELSEWHERE },
		/* Redis 6.2, as it is printed there */
		{ "ERR Error running script (call to f_0123): @user_script:1: @user_script: 1: "
		    "-READONLY You can't write against a read only replica.", REPLY_ELSEWHERE },
		{ "ERR Error running script (call to f_0123): @user_script:1: @user_script: 1: "
		    "-OOM command not allowed when used memory > 'maxmemory'.", REPLY_REFUSED },
		{ "ERR Error running script (call to f_0123): @user_script:1: @user_script: 1: "
		    "The user executing the script can't run this command or subcommand",
		    REPLY_DENIED },
		{ "@user_script: 1: The user executing the script can't access at least one of "
		    "the keys mentioned in the command arguments", REPLY_DENIED },
		{ "ERR Error running script (call to f_0123): @user_script:1: nothing",
		    REPLY_OTHER },
		{ "ERR a message about @user_script:", REPLY_OTHER },
		{ "ERR user_script:1: OOM script: 0123, on @user_script:1.", REPLY_OTHER },
	};

	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		if (error_of(errors[i].text) != errors[i].error)
			fail_msg("%s: %d", errors[i].text, error_of(errors[i].text));
	}
	assert_int_equal(reply_error(NULL), REPLY_OK);
}

TEST(test_cause)
{
	static const struct { const char *text, *cause; } t[] = {
		{ "-WRONGTYPE Operation against a key script: 0123, on @user_script:1.\r\n",
		    "WRONGTYPE Operation against a key" },
		{ "-ERR Error running script (call to f_0123): @user_script:1: WRONGTYPE no\r\n",
		    "WRONGTYPE no" },
		{ "-ERR Error running script (call to f_0123): @user_script:1: @user_script: 1: "
		    "-OOM no memory\r\n", "OOM no memory" },
		{ "-ERR ACL failure in script: User u has no permissions to run the 'ltrim' "
		    "command "
		    "script: 0123ab, on @user_script:1.\r\n",
		    "ERR ACL failure in script: User u has no permissions to run the 'ltrim' "
		    "command; repeat rqctl acl, and give its output to redis-cli" },
		{ "-NOPERM No permissions to access a key\r\n", "NOPERM No permissions to access "
		    "a key; repeat rqctl acl, and give its output to redis-cli" },
		{ "-NOAUTH Authentication required.\r\n", "NOAUTH Authentication required." },
		{ "-OOM command not allowed\r\n", "OOM command not allowed" },
		{ "*1\r\n:1\r\n", "an unexpected reply" },
	};
	char buf[REPLY_CAUSE], small[8];

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		redisReply *r = parse_split(t[i].text, strlen(t[i].text), 1);
		assert_string_equal(reply_cause(r, buf, sizeof(buf)), t[i].cause);
		assert_memory_equal(reply_cause(r, small, sizeof(small)), t[i].cause, 7);
		freeReplyObject(r);
	}
}

/* The reply is the same wherever its bytes are split. */
TEST(test_every_split)
{
	static const char bytes[] = "*7\r\n$5\r\na\0b\r\n\r\n:-42\r\n$-1\r\n*2\r\n+OK\r\n"
	    "-WRONGTYPE no\r\n$0\r\n\r\n*-1\r\n$3\r\n1.5\r\n";

	for (size_t at = 0; at < sizeof(bytes); at++) {
		redisReply *r = parse_split(bytes, sizeof(bytes) - 1, at);
		const struct redisReply *inner;
		size_t len = 99;

		assert_true(reply_is_array(r));
		assert_int_equal(reply_len(r), 7);
		assert_memory_equal(reply_str(reply_at(r, 0), &len), "a\0b\r\n", 5);
		assert_int_equal(len, 5);
		assert_int_equal(reply_int(reply_at(r, 1), 0), -42);
		assert_true(reply_double(reply_at(r, 1), 0) == -42.0);
		assert_true(reply_is_nil(reply_at(r, 2)));
		inner = reply_at(r, 3);
		assert_int_equal(reply_len(inner), 2);
		assert_string_equal(reply_text(reply_at(inner, 0)), "OK");
		assert_int_equal(reply_error(inner), REPLY_WRONGTYPE);
		assert_int_equal(reply_error(r), REPLY_OK);
		assert_string_equal(reply_str(reply_at(r, 4), &len), "");
		assert_int_equal(len, 0);
		assert_true(reply_is_nil(reply_at(r, 5)));
		assert_true(reply_double(reply_at(r, 6), 0) == 1.5);
		assert_null(reply_at(r, 7));
		assert_null(reply_at(r, SIZE_MAX));
		freeReplyObject(r);
	}
}

/* Reading a reply as the wrong type gives the default. */
TEST(test_wrong_types)
{
	static const char *const all[] = { "+OK\r\n", "-ERR x\r\n", ":7\r\n", "$1\r\n7\r\n",
	    "$-1\r\n", "*0\r\n", "*1\r\n:7\r\n" };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		redisReply *r = parse(all[i]);

		assert_int_equal(reply_str(r, NULL) != NULL, i == 3);
		assert_int_equal(reply_int(r, -1) == 7, i == 2 || i == 3);
		assert_int_equal(reply_double(r, -1) == 7, i == 2 || i == 3);
		assert_int_equal(reply_is_nil(r), i == 4);
		assert_int_equal(reply_is_array(r), i >= 5);
		assert_int_equal(reply_len(r), i == 6);
		assert_int_equal(reply_text(r)[0] != '\0', i <= 1);
		assert_null(reply_at(r, 1));
		freeReplyObject(r);
	}
	assert_null(reply_str(NULL, NULL));
	assert_int_equal(reply_int(NULL, 5), 5);
	assert_true(reply_double(NULL, 5) == 5);
	assert_true(reply_is_nil(NULL));
	assert_false(reply_is_array(NULL));
	assert_int_equal(reply_len(NULL), 0);
	assert_null(reply_at(NULL, 0));
	assert_string_equal(reply_text(NULL), "");
	assert_null(reply_take(NULL, NULL));
}

static int64_t
int_of(const char *text, size_t len)
{
	redisReply r = { .type = REDIS_REPLY_STRING, .str = (char *)(uintptr_t)text, .len = len };

	return reply_int(&r, -77);
}

static double
double_of(const char *text, size_t len)
{
	redisReply r = { .type = REDIS_REPLY_STRING, .str = (char *)(uintptr_t)text, .len = len };

	return reply_double(&r, -77);
}

TEST(test_numbers)
{
	static const char *const bad[] = { "", " 1", "1 ", "+1", "0x10", "1.0", "-", "--1", "1a",
	    "99999999999999999999", "9223372036854775807", "nan" };
	static const char *const not_real[] = { "", " 1", "1 ", "0x10", "nan", "-nan", "infinity",
	    "1,5", "1.5x", "e", "." };

	assert_int_equal(int_of("12", 2), 12);
	assert_int_equal(int_of("-281474976710656", 16), -REPLY_INT_MAX);
	assert_int_equal(int_of("1\0002", 3), -77);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(int_of(bad[i], strlen(bad[i])), -77);
	assert_true(double_of("1732150000.123456", 17) == 1732150000.123456);
	assert_true(double_of("-1e3", 4) == -1000);
	assert_true(isinf(double_of("inf", 3)));
	assert_true(isinf(double_of("-inf", 4)));
	for (size_t i = 0; i < ARRAY_LEN(not_real); i++)
		assert_true(double_of(not_real[i], strlen(not_real[i])) == -77);
	assert_true(double_of("1\0002", 3) == -77);
}

TEST(test_take)
{
	redisReply *r = parse("*2\r\n$3\r\nabc\r\n:1\r\n");
	size_t len = 0;
	char *s = reply_take(reply_at(r, 0), &len);

	assert_string_equal(s, "abc");
	assert_int_equal(len, 3);
	assert_null(reply_str(reply_at(r, 0), &len));
	assert_int_equal(len, 0);
	assert_null(reply_take(reply_at(r, 0), &len));
	assert_null(reply_take(reply_at(r, 1), &len));
	assert_int_equal(reply_int(reply_at(r, 0), -1), -1);
	freeReplyObject(r);
	free(s);
}

TEST(test_script_names)
{
	assert_string_equal(script_find("one")->text, "return 1");
	assert_string_equal(script_find("empty")->text, "");
	assert_null(script_find("two"));
}

static bool
has(const char *bytes, const char *form)
{
	redisReply *r = parse(bytes);
	bool yes = reply_has(r, form);

	freeReplyObject(r);
	return yes;
}

TEST(test_fields)
{
	enum { WHY, COUNT, NOW, DUE, FIELDS };
	static const char form[] = {
		[WHY] = FIELD_STR, [COUNT] = FIELD_INT, [NOW] = FIELD_NUMBER,
		[DUE] = FIELD_TIME, [FIELDS] = 0
	};
	redisReply *r = parse("*5\r\n$1\r\nx\r\n:2\r\n$3\r\n1.5\r\n$0\r\n\r\n:9\r\n");

	assert_true(reply_has(r, form));
	assert_true(reply_has(r, ""));
	assert_false(reply_has(r, "in"));
	assert_string_equal(reply_str_at(r, WHY), "x");
	assert_int_equal(reply_int_at(r, COUNT), 2);
	assert_true(reply_double_at(r, NOW) > 1.4 && reply_double_at(r, NOW) < 1.6);
	freeReplyObject(r);
	assert_false(reply_has(NULL, form));
	/* Each of these is too short, or has a field of another type. */
	assert_false(has("*3\r\n$1\r\nx\r\n:2\r\n$3\r\n1.5\r\n", form));
	assert_false(has("*1\r\n:1\r\n", "s"));
	assert_false(has("*1\r\n$-1\r\n", "s"));
	assert_false(has("*1\r\n+OK\r\n", "s"));
	assert_false(has("*1\r\n-ERR x\r\n", "s"));
	assert_false(has("*1\r\n$2\r\n1x\r\n", "i"));
	assert_false(has("*1\r\n$0\r\n\r\n", "i"));
	assert_true(has("*1\r\n$2\r\n-7\r\n", "i"));
	assert_true(has("*1\r\n:0\r\n", "i"));
	assert_true(has("*1\r\n:1\r\n", "n"));
	assert_false(has("*1\r\n$3\r\n1.x\r\n", "n"));
	assert_false(has("*1\r\n$0\r\n\r\n", "n"));
	assert_true(has("*1\r\n$3\r\ninf\r\n", "t"));
	assert_false(has("*1\r\n$1\r\nx\r\n", "t"));
	assert_false(has("-ERR no\r\n", "s"));
	assert_true(has("*2\r\n$1\r\nx\r\n*0\r\n", "s"));
}
