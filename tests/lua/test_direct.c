/*
 * The scripts of the kinds without leases: list_pop, expired_push, look, count.  They run
 * normally, with each command denied in turn, with keys of wrong types, and at maxmemory.
 */
#include "rig.h"

#include "redis/script.h"

static struct rig	rig;

static int
setup(void **state UNUSED)
{
	rig_open(&rig, "q");
	return 0;
}

static int
teardown(void **state UNUSED)
{
	rig_close(&rig);
	return 0;
}

static const char *
text(const char *script)
{
	return script_find(script)->text;
}

/* -- list_pop ----------------------------------------------------------------- */

static redisReply *
pop(const char *side, int n, int bytes, int max, const char *deadline)
{
	return rig_command(&rig, "EVAL %s 3 q qPAUSED qSTATS %s %d %d %d %s", text("list_pop"),
	    side, n, bytes, max, deadline);
}

/* Checks the head of a pop's reply, and its messages, joined, against `want`. */
static void
check_pop(redisReply *r, const char *status, int waiting, const char *want)
{
	char got[256] = "";
	size_t i;

	assert_int_equal(r->type, REDIS_REPLY_ARRAY);
	assert_string_equal(r->element[0]->str, status);
	assert_int_equal(r->element[2]->integer, waiting);
	for (i = 4; i < r->elements; i++) {
		size_t len = strlen(got);

		if (r->element[i]->type == REDIS_REPLY_INTEGER)
			snprintf(got + len, sizeof(got) - len, "(%lld)", r->element[i]->integer);
		else
			snprintf(got + len, sizeof(got) - len, "%s.", r->element[i]->str);
	}
	assert_string_equal(got, want);
	freeReplyObject(r);
}

TEST(test_pop)
{
	check_pop(pop("right", 10, 1000, 1000, "0"), "ok", 0, "");
	rig_do(&rig, "LPUSH q a bb ccc dddd eeeee");
	check_pop(pop("right", 2, 1000, 1000, "0"), "ok", 3, "a.bb.");
	check_pop(pop("left", 1, 1000, 1000, "0"), "ok", 2, "eeeee.");
	/* One message may exceed the bound of bytes, so that a pop always takes one. */
	check_pop(pop("right", 9, 1, 1000, "0"), "ok", 1, "ccc.");
	check_pop(pop("right", 9, 1000, 2, "0"), "ok", 0, "(4)");
	/*
	 * Messages that are too large to send count as well, because Redis reads them all
	 * the same.
	 */
	rig_do(&rig, "LPUSH q aaa bbb");
	check_pop(pop("right", 9, 3, 2, "0"), "ok", 1, "(3)");
	rig_do(&rig, "DEL q");
	rig_do(&rig, "LPUSH q a b");
	check_pop(pop("right", 9, 1000, 1000, "1"), "late", 2, "");
	rig_do(&rig, "SET qPAUSED why PX 60000");
	redisReply *r = pop("right", 9, 1000, 1000, "0");
	assert_string_equal(r->element[0]->str, "paused");
	assert_string_equal(r->element[4]->str, "why");
	assert_in_range(r->element[5]->integer, 1, 60000);
	freeReplyObject(r);
	rig_do(&rig, "DEL qPAUSED");
	rig_do(&rig, "CONFIG SET maxmemory 1");
	check_pop(pop("right", 9, 1000, 1000, "0"), "ok", 0, "a.b.");
	rig_do(&rig, "CONFIG SET maxmemory 0");
}

/* A pop that fails takes nothing. */
TEST(test_pop_denied)
{
	static const char *const commands[] = { "llen", "exists", "rpop", "time" };
	redisReply *r;
	size_t i;

	for (i = 0; i < ARRAY_LEN(commands); i++) {
		rig_do(&rig, "FLUSHALL");
		rig_do(&rig, "LPUSH q a b");
		rig_do(&rig, "ACL SETUSER few reset on >x ~* &* +@all -%s", commands[i]);
		rig_connect(&rig, "few");
		r = pop("right", 9, 1000, 1000, "0");
		assert_int_equal(r->type, REDIS_REPLY_ERROR);
		freeReplyObject(r);
		rig_connect(&rig, "");
		assert_int_equal(rig_int(&rig, "LLEN q"), 2);
	}
	rig_do(&rig, "SET q x");
	r = pop("right", 9, 1000, 1000, "0");
	assert_non_null(strstr(r->str, "WRONGTYPE"));
	freeReplyObject(r);
	/* QPAUSED pauses, whatever its type. */
	rig_do(&rig, "FLUSHALL");
	rig_do(&rig, "LPUSH q a");
	rig_do(&rig, "LPUSH qPAUSED a");
	r = pop("right", 9, 1000, 1000, "0");
	assert_string_equal(r->element[0]->str, "paused");
	freeReplyObject(r);
}

/* -- expired_push --------------------------------------------------------------- */

/* Pushes two names in one call.  Returns the script's answer, or -1. */
static long long
push(const char *a, const char *b)
{
	char locks[2][64];

	snprintf(locks[0], sizeof(locks[0]), "Lock:q:%s", a);
	snprintf(locks[1], sizeof(locks[1]), "Lock:q:%s", b);
	return rig_int(&rig, "EVAL %s 4 q qBACKUP %s %s 60000 me %s %s", text("expired_push"),
	    locks[0], locks[1], a, b);
}

TEST(test_push)
{
	rig_do(&rig, "FLUSHALL");
	assert_int_equal(push("a", "b"), 2);
	assert_int_equal(push("b", "c"), 1);
	assert_int_equal(push("d", "d"), 1);
	assert_int_equal(push("a", "b"), 0);
	assert_int_equal(rig_int(&rig, "LLEN q"), 4);
	assert_in_range(rig_int(&rig, "PTTL Lock:q:a"), 1, 60000);
	rig_do(&rig, "DEL Lock:q:a");
	rig_do(&rig, "CONFIG SET maxmemory 1");
	assert_int_equal(push("a", "b"), 1);
	rig_do(&rig, "CONFIG SET maxmemory 0");
	/* A lock counts, whatever its type. */
	rig_do(&rig, "LPUSH Lock:q:x 1");
	assert_int_equal(push("x", "x"), 0);
}

/*
 * If Redis refuses the call, it pushes no name and leaves no lock, so that the names can
 * be pushed later.
 */
TEST(test_push_faults)
{
	static const char *const commands[] = {
		"llen", "zcard", "exists", "zremrangebyrank", "lpush", "set"
	};
	static const char *const makes[] = { "SET q x", "HSET q a b", "SET qBACKUP x" };
	long long in_list, locks;
	size_t i;

	for (i = 0; i < ARRAY_LEN(commands) + ARRAY_LEN(makes); i++) {
		bool denied = i < ARRAY_LEN(commands);

		rig_do(&rig, "FLUSHALL");
		if (denied) {
			rig_do(&rig, "ACL SETUSER few reset on >x ~* &* +@all -%s", commands[i]);
			rig_connect(&rig, "few");
		} else {
			rig_do(&rig, makes[i - ARRAY_LEN(commands)]);
		}
		assert_int_equal(push("a", "b"), -1);
		rig_connect(&rig, "");
		in_list = denied ? rig_int(&rig, "LLEN q") : 0;
		locks = rig_int(&rig, "EXISTS Lock:q:a Lock:q:b");
		/* Neither name was pushed, and neither is locked. */
		assert_int_equal(in_list, 0);
		assert_int_equal(locks, 0);
		rig_do(&rig, "DEL q qBACKUP");
		assert_int_equal(push("a", "b"), 2);
	}
}

/* -- look, count ------------------------------------------------------------------ */

TEST(test_look)
{
	redisReply *r;

	rig_do(&rig, "FLUSHALL");
	rig_do(&rig, "LPUSH q a b");
	r = rig_command(&rig, "EVAL %s 2 qPAUSED q", text("look"));
	assert_int_equal(r->elements, 4);
	assert_int_equal(r->element[0]->integer, 2);
	assert_int_equal(r->element[1]->integer, 0);
	freeReplyObject(r);
	rig_do(&rig, "SET qPAUSED why");
	r = rig_command(&rig, "EVAL %s 1 qPAUSED", text("look"));
	assert_int_equal(r->element[0]->integer, 0);
	assert_int_equal(r->element[1]->integer, 1);
	assert_string_equal(r->element[2]->str, "why");
	assert_int_equal(r->element[3]->integer, -1);
	freeReplyObject(r);
	rig_do(&rig, "SET q x");
	assert_int_equal(rig_int(&rig, "EVAL %s 2 qPAUSED q", text("look")), -1);
}

/* Faulty counters cause no error, because nothing depends on them. */
TEST(test_count)
{
	rig_do(&rig, "FLUSHALL");
	rig_do(&rig, "HSET qSTATS acked 5 failed x");
	rig_do(&rig, "EVAL %s 1 qSTATS acked 3 failed 2 dropped 1", text("count"));
	assert_int_equal(rig_int(&rig, "HINCRBY qSTATS acked 0"), 8);
	assert_int_equal(rig_int(&rig, "HINCRBY qSTATS dropped 0"), 1);
	rig_do(&rig, "SET qSTATS x");
	rig_do(&rig, "EVAL %s 1 qSTATS acked 3", text("count"));
}

int
main(void)
{
	return unit_run(setup, teardown);
}
