/*
 * The scripts of rqctl that empty or fill whole keys: with each command denied in turn,
 * with keys of a wrong type, and at maxmemory.  Each writes once, at its end, so that a
 * refused call changes nothing.
 */
#include "script_test.h"

static void
add_list(void)
{
	rig_do(&rig, "LPUSH orders a b c d");
}

static void
add_delayed(void)
{
	rig_do(&rig, "ZADD ordersDELAYED 1 a 2 b 3 c 4 d");
}

static void
add_letters(void)
{
	int i;

	for (i = 1; i <= 4; i++)
		rig_do(&rig, "XADD ordersDEAD %d-1 id %d message m", i, i);
}

static void
add_group(void)
{
	int i;

	for (i = 1; i <= 4; i++)
		rig_do(&rig, "XADD orders %d-1 message m", i);
	rig_do(&rig, "XGROUP CREATE orders rqd 0");
}

static void
add_queue(void)
{
	add_list();
	add_delayed();
	add_letters();
	rig_do(&rig, "HSET ordersSTATS acked 1");
}

static long long
left_in_list(void)
{
	return rig_int(&rig, "LLEN orders");
}

static long long
left_delayed(void)
{
	return rig_int(&rig, "ZCARD ordersDELAYED");
}

static long long
left_letters(void)
{
	return rig_int(&rig, "XLEN ordersDEAD");
}

/* How many entries the group has not been given. */
static long long
left_to_group(void)
{
	redisReply *r = rig_command(&rig, "XREADGROUP GROUP rqd c COUNT 10 STREAMS orders >");
	long long n = r->type == REDIS_REPLY_ARRAY ?
	    (long long)r->element[0]->element[1]->elements : 0;

	freeReplyObject(r);
	return n;
}

static long long
left_keys(void)
{
	return rig_int(&rig, "DBSIZE");
}

static const struct path {
	const char	*script, *keys;
	const char	*words[6];
	void		(*set_up)(void);
	long long	(*left)(void);		/* counts what is left; must be: */
	long long	 expected;
	const char	*commands[5];		/* commands that it needs */
	const char	*wrong;			/* a key that may have a wrong type */
	bool		 grows;			/* is refused at maxmemory */
} paths[] = {
	{ "purge", "Q", { "3", "right" }, add_list, left_in_list, 1,
	    { "type", "lindex", "ltrim" }, NULL, false },
	{ "purge", "Q", { "3", "left" }, add_list, left_in_list, 1,
	    { "type", "lindex", "ltrim" }, NULL, false },
	{ "purge", "L", { "3" }, add_delayed, left_delayed, 1,
	    { "type", "zrange", "zremrangebyrank" }, NULL, false },
	{ "purge", "X", { "3" }, add_letters, left_letters, 1,
	    { "type", "xlen", "xrange", "xtrim" }, NULL, false },
	{ "purge", "X", { "10" }, add_letters, left_letters, 0,
	    { "type", "xlen", "xrange", "unlink" }, NULL, false },
	{ "stream_pass", "Q", { "rqd", "3-1", "" }, add_group, left_to_group, 1,
	    { "xinfo", "xgroup" }, "orders", false },
	{ "dead_import", "X", { "9-1", "id", "9", "message", "m" }, add_letters, left_letters, 5,
	    { "xrange", "xadd" }, "ordersDEAD", true },
	{ "dead_import", "X", { "2-7", "id", "9", "message", "m" }, add_letters, left_letters, 5,
	    { "xrange", "xadd" }, "ordersDEAD", true },
	{ "dead_import", "X", { "", "id", "9", "message", "m" }, add_letters, left_letters, 5,
	    { "xadd" }, "ordersDEAD", true },
	{ "forget_queue", "QBRLXCDPSTK", { "force" }, add_queue, left_keys, 0,
	    { "type", "llen", "zcard", "xlen", "unlink" }, NULL, false },
};

/* Returns 0, or -1 if Redis refuses it; the error is in rig.error. */
static int
run(const struct path *p)
{
	struct words w = { 0 };
	redisReply *r;
	size_t i;

	for (i = 0; i < ARRAY_LEN(p->words) && p->words[i] != NULL; i++)
		words_add(&w, p->words[i]);
	if ((r = rig_script(&rig, p->script, p->keys, &w)) == NULL)
		return -1;
	freeReplyObject(r);
	return 0;
}

static void
begin(const struct path *p, char digest[48])
{
	server_do(&rig.server, "FLUSHALL");
	p->set_up();
	rig_digest(&rig, digest);
}

static void
check_unchanged(const struct path *p, const char *before, const char *what)
{
	char after[48];

	rig_digest(&rig, after);
	if (strcmp(before, after) != 0)
		fail_msg("%s, %s: something has changed", p->script, what);
}

TEST(test_denied)
{
	char before[48];
	size_t i, k;

	rig_do(&rig, "ACL SETUSER weak on >x ~* +@all");
	for (i = 0; i < ARRAY_LEN(paths); i++) {
		const struct path *p = &paths[i];

		for (k = 0; k < ARRAY_LEN(p->commands) && p->commands[k] != NULL; k++) {
			begin(p, before);
			server_do(&rig.server, "ACL SETUSER weak +@all -%s", p->commands[k]);
			rig_connect(&rig, "weak");
			if (run(p) == 0)
				fail_msg("%s without %s: not refused", p->script, p->commands[k]);
			rig_connect(&rig, "");
			check_unchanged(p, before, p->commands[k]);
			assert_int_equal(run(p), 0);
			assert_int_equal(p->left(), p->expected);
		}
	}
}

TEST(test_wrong_types)
{
	char before[48];
	size_t i;

	for (i = 0; i < ARRAY_LEN(paths); i++) {
		if (paths[i].wrong == NULL)
			continue;
		server_do(&rig.server, "FLUSHALL");
		rig_do(&rig, "SET %s x", paths[i].wrong);
		rig_digest(&rig, before);
		assert_int_equal(run(&paths[i]), -1);
		assert_memory_equal(rig.error, "WRONGTYPE", 9);
		check_unchanged(&paths[i], before, "wrong type");
	}
	/*
	 * purge and forget_queue ask for the type: purge leaves a key of another type,
	 * forget_queue deletes it.
	 */
	server_do(&rig.server, "FLUSHALL");
	rig_do(&rig, "SET orders x");
	assert_int_equal(run(&paths[0]), 0);
	assert_int_equal(left_keys(), 1);
	assert_int_equal(run(&paths[ARRAY_LEN(paths) - 1]), 0);
	assert_int_equal(left_keys(), 0);
}

/* At maxmemory rqctl can still empty keys; a call that Redis refuses changes nothing. */
TEST(test_maxmemory)
{
	char before[48];
	size_t i;

	for (i = 0; i < ARRAY_LEN(paths); i++) {
		begin(&paths[i], before);
		rig_do(&rig, "CONFIG SET maxmemory 100000");
		assert_int_equal(run(&paths[i]), paths[i].grows ? -1 : 0);
		rig_do(&rig, "CONFIG SET maxmemory 0");
		if (paths[i].grows) {
			assert_memory_equal(rig.error, "OOM", 3);
			check_unchanged(&paths[i], before, "maxmemory");
			assert_int_equal(run(&paths[i]), 0);
		}
		assert_int_equal(paths[i].left(), paths[i].expected);
	}
}

/* Without "force" forget_queue counts the messages of a queue, and keeps it. */
TEST(test_forget_refuses)
{
	static const char *const words[] = { "count", "" };
	char before[48], after[48];
	struct words w;
	redisReply *r;
	size_t i;

	for (i = 0; i < ARRAY_LEN(words); i++) {
		server_do(&rig.server, "FLUSHALL");
		add_queue();
		rig_digest(&rig, before);
		w = (struct words){ 0 };
		words_add(&w, words[i]);
		r = rig_script(&rig, "forget_queue", "QBRLXCDPSTK", &w);
		assert_non_null(r);
		assert_int_equal(r->element[0]->integer, 4);
		assert_int_equal(r->element[1]->integer, 12);
		freeReplyObject(r);
		rig_digest(&rig, after);
		assert_string_equal(before, after);
	}
}
