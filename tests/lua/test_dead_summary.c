/*
 * dead_summary: the number of dead letters by reason, and the newest one; also for
 * letters that other programs have written.
 */
#include "script_test.h"

static redisReply *
summary(const char *look, const char *bytes, const char *cut, const char *reasons)
{
	struct words w = { 0 };
	redisReply *r;

	rig_words(&w, look, bytes, cut, reasons, NULL);
	r = rig_script(&rig, "dead_summary", "X", &w);
	if (r == NULL)
		fail_msg("%s", rig.error);
	return r;
}

/* The n-th reason, and its count and last letter. */
static void
assert_reason(const redisReply *r, size_t n, const char *reason, long long count, const char *last)
{
	assert_true(r->elements >= 3 + 3 * (n + 1));
	assert_string_equal(r->element[3 + 3 * n]->str, reason);
	assert_int_equal(r->element[4 + 3 * n]->integer, count);
	assert_string_equal(r->element[5 + 3 * n]->str, last);
}

SCRIPT_TEST(test_nothing)
{
	redisReply *r = summary("200", "262144", "2000", "8");

	assert_int_equal(r->elements, 3);
	assert_int_equal(r->element[0]->integer, 0);
	assert_int_equal(r->element[1]->integer, 0);
	assert_int_equal(r->element[2]->elements, 0);
	freeReplyObject(r);
}

SCRIPT_TEST(test_reasons)
{
	static const char *const newest[] = {
		"5-1", "e", "exit", "1", "web1", "25", "no such customer", "Traceback"
	};
	redisReply *r;

	rig_do(&rig, "XADD ordersDEAD 1-1 id a message m reason timeout");
	rig_do(&rig, "XADD ordersDEAD 2-1 id b message m reason exit status 1");
	rig_do(&rig, "XADD ordersDEAD 3-1 id c message m reason exit status 1");
	rig_do(&rig, "XADD ordersDEAD 4-1 other field");
	rig_do(&rig, "XADD ordersDEAD 5-1 id e message m reason exit status 1 host web1 "
	    "attempts 25 answer %s error Traceback", "no such customer");
	r = summary("200", "262144", "2000", "8");
	assert_int_equal(r->element[0]->integer, 5);
	assert_int_equal(r->element[1]->integer, 5);
	assert_int_equal(r->element[2]->elements, ARRAY_LEN(newest));
	for (size_t i = 0; i < ARRAY_LEN(newest); i++)
		assert_string_equal(r->element[2]->element[i]->str, newest[i]);
	assert_reason(r, 0, "exit", 3, "5-1");
	assert_reason(r, 1, "", 1, "4-1");
	assert_reason(r, 2, "timeout", 1, "1-1");
	assert_int_equal(r->elements, 3 + 9);
	freeReplyObject(r);
}

/* The script looks at no more letters, bytes and reasons than it was told to. */
SCRIPT_TEST(test_limits)
{
	redisReply *r;

	for (int i = 1; i <= 20; i++)
		rig_do(&rig, "XADD ordersDEAD %d-1 reason r%d error 0123456789", i, i);
	r = summary("10", "262144", "4", "3");
	assert_int_equal(r->element[0]->integer, 20);
	assert_int_equal(r->element[1]->integer, 10);
	assert_string_equal(r->element[2]->element[7]->str, "6789");
	assert_reason(r, 0, "r20", 1, "20-1");
	assert_reason(r, 2, "r18", 1, "18-1");
	assert_reason(r, 3, "others", 7, "17-1");
	freeReplyObject(r);
	/*
	 * The script always looks at one letter, and stops at the first that exceeds the
	 * bytes.
	 */
	r = summary("10", "1", "2000", "3");
	assert_int_equal(r->element[1]->integer, 1);
	freeReplyObject(r);
}

SCRIPT_TEST(test_wrong_type)
{
	struct words w = { 0 };

	rig_do(&rig, "SET ordersDEAD text");
	rig_words(&w, "1", "1", "1", "1", NULL);
	assert_null(rig_script(&rig, "dead_summary", "X", &w));
}
