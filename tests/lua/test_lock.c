/*
 * The scripts of locks: lock, lock_renew, unlock.
 */
#define RIG_KEY "Lock:x"
#include "script_test.h"

/*
 * Returns 1: the lock is ours; 0: another's, with its value in holder and its TTL in
 * left; -1: an error.
 */
static char holder[1024];
static long long left;

static int
answer(redisReply *r)
{
	int n;

	holder[0] = '\0';
	left = -9;
	if (r == NULL)
		return -1;
	assert_int_equal(r->type, REDIS_REPLY_ARRAY);
	n = (int)r->element[0]->integer;
	assert_int_equal(r->elements, n == 1 ? 1 : 3);
	if (n == 0) {
		assert_true(r->element[1]->len < sizeof(holder));
		memcpy(holder, r->element[1]->str, r->element[1]->len + 1);
		left = r->element[2]->integer;
	}
	freeReplyObject(r);
	return n;
}

static int
lock(const char *token, const char *ttl)
{
	struct words w = { 0 };

	rig_words(&w, token, "host 12", ttl, NULL);
	return answer(rig_script(&rig, "lock", "Q", &w));
}

static int
renew(const char *token, const char *ttl)
{
	struct words w = { 0 };

	rig_words(&w, token, ttl, NULL);
	return answer(rig_script(&rig, "lock_renew", "Q", &w));
}

static int
unlock(const char *who)
{
	struct words w = { 0 };
	redisReply *r;
	int n;

	words_add(&w, who);
	if ((r = rig_script(&rig, "unlock", "Q", &w)) == NULL)
		return -1;
	n = (int)r->integer;
	freeReplyObject(r);
	return n;
}

static long long
ttl(void)
{
	return rig_int(&rig, "PTTL %s", rig_key(&rig, KEY_QUEUE));
}

SCRIPT_TEST(test_lock)
{
	struct words w = { 0 };
	redisReply *r;

	assert_int_equal(lock("abc", "60000"), 1);
	r = rig_command(&rig, "GET %s", rig_key(&rig, KEY_QUEUE));
	assert_memory_equal(r->str, "abc host 12 1", 13);
	assert_true(ttl() > 50000 && ttl() <= 60000);
	assert_int_equal(lock("abd", "9000000"), 0);
	assert_string_equal(holder, r->str);
	assert_true(left > 50000 && left <= 60000);
	assert_true(ttl() <= 60000);
	/* A call that is repeated, because its reply was lost, renews the TTL. */
	assert_int_equal(lock("abc", "90000"), 1);
	assert_true(ttl() > 60000);
	assert_int_equal(renew("abc", "120000"), 1);
	assert_true(ttl() > 90000);
	assert_int_equal(renew("ab", "500000"), 0);
	assert_int_equal(renew("abcd", "500000"), 0);
	assert_true(ttl() <= 120000);
	assert_int_equal(unlock("ab"), 0);
	assert_int_equal(unlock("host"), 0);
	assert_int_equal(unlock("abc"), 1);
	assert_int_equal(unlock("abc"), 0);
	assert_int_equal(renew("abc", "60000"), 0);
	assert_int_equal(left, -2);
	assert_string_equal(holder, "");
	assert_int_equal(lock("abd", "60000"), 1);
	words_done(&w);
	freeReplyObject(r);
}

/* A lock that another program set by SETNX without EXPIRE gets a TTL, once. */
SCRIPT_TEST(test_without_ttl)
{
	rig_do(&rig, "SET %s peer", rig_key(&rig, KEY_QUEUE));
	assert_int_equal(renew("abc", "60000"), 0);
	assert_int_equal(ttl(), -1);
	assert_int_equal(lock("abc", "60000"), 0);
	assert_int_equal(left, -1);
	assert_string_equal(holder, "peer");
	assert_true(ttl() > 50000);
	assert_int_equal(lock("abd", "1000"), 0);
	assert_true(ttl() > 50000);
	/* If the other program calls EXPIRE later, its TTL counts. */
	rig_do(&rig, "EXPIRE %s 600", rig_key(&rig, KEY_QUEUE));
	assert_int_equal(lock("abc", "60000"), 0);
	assert_true(left > 500000);
	assert_int_equal(unlock("peer"), 1);
}

/* Values of other programs: empty, blank, odd, long. */
SCRIPT_TEST(test_values)
{
	static const char *const values[] = { "", " ", "  abc", "1795243962", "-", "%s" };
	char *big = xcalloc(1, 100000);
	size_t i;

	for (i = 0; i < ARRAY_LEN(values); i++) {
		rig_do(&rig, "SET %s %s PX 60000", rig_key(&rig, KEY_QUEUE), "");
		rig_do(&rig, "SETRANGE %s 0 %s", rig_key(&rig, KEY_QUEUE), values[i]);
		if (rig_int(&rig, "EXISTS %s", rig_key(&rig, KEY_QUEUE)) == 0)
			continue;
		assert_int_equal(lock("nil", "60000"), 0);
		assert_int_equal(renew("nil", "60000"), 0);
		assert_int_equal(unlock("nil"), 0);
		assert_string_equal(holder, values[i]);
		assert_int_equal(unlock(values[i]), 1);
	}
	memset(big, 'x', 99999);
	rig_do(&rig, "SET %s %b PX 60000", rig_key(&rig, KEY_QUEUE), big, (size_t)99999);
	assert_int_equal(lock("abc", "60000"), 0);
	assert_int_equal(strlen(holder), 512);
	assert_int_equal(unlock("x"), 0);
	assert_int_equal(unlock(holder), 1);
	free(big);
}

SCRIPT_TEST(test_wrong_type)
{
	char before[48], after[48];

	rig_do(&rig, "LPUSH %s x", rig_key(&rig, KEY_QUEUE));
	rig_digest(&rig, before);
	assert_int_equal(lock("abc", "60000"), -1);
	assert_memory_equal(rig.error, "WRONGTYPE", 9);
	assert_int_equal(renew("abc", "60000"), -1);
	assert_int_equal(unlock("abc"), -1);
	rig_digest(&rig, after);
	assert_string_equal(before, after);
}

/* Whichever command is denied, at most one holds the lock, and it always has a TTL. */
SCRIPT_TEST(test_denied)
{
	static const char *const commands[] = {
		"pttl", "getrange", "time", "set", "pexpire", "exists", "del"
	};
	size_t i;
	int got;

	rig_do(&rig, "ACL SETUSER weak on >x ~* +@all");
	for (i = 0; i < ARRAY_LEN(commands); i++) {
		server_do(&rig.server, "FLUSHALL");
		server_do(&rig.server, "ACL SETUSER weak +@all -%s", commands[i]);
		rig_connect(&rig, "weak");
		got = lock("abc", "60000");
		(void)renew("abc", "60000");
		rig_connect(&rig, "");
		assert_true(got == 1 || got == -1);
		assert_true(ttl() != -1);
		assert_int_equal(lock("abd", "60000"), got == 1 ? 0 : 1);
		rig_connect(&rig, "weak");
		assert_int_not_equal(unlock("abe"), 1);
		rig_connect(&rig, "");
		assert_int_equal(rig_int(&rig, "EXISTS %s", rig_key(&rig, KEY_QUEUE)), 1);
	}
}

SCRIPT_TEST(test_maxmemory)
{
	assert_int_equal(lock("abc", "60000"), 1);
	rig_do(&rig, "CONFIG SET maxmemory 100000");
	assert_int_equal(renew("abc", "60000"), 1);
	assert_int_equal(unlock("abc"), 1);
	assert_int_equal(lock("abc", "60000"), -1);
	assert_memory_equal(rig.error, "OOM", 3);
	rig_do(&rig, "CONFIG SET maxmemory 0");
}
