/*
 * What needs more words, more bytes or more time than a step of *.steps: calls with many results
 * or pushes, a rate, a slot of a cluster that migrates.
 */
#include "script_test.h"

static struct popped	had[250];

/* Produces n messages m0, m1 ..., and takes them. */
static void
take(int n)
{
	static unsigned calls;
	char call[24];

	for (int i = 0; i < n; i++) {
		if (rig.consumer != NULL)
			rig_do(&rig, "XADD %s * message m%d", rig_key(&rig, KEY_QUEUE), i);
		else if (rig.unique)
			rig_do(&rig, "ZADD %s %d m%d", rig_key(&rig, KEY_QUEUE), i, i);
		else
			rig_do(&rig, "LPUSH %s m%d", rig_key(&rig, KEY_QUEUE), i);
	}
	for (int got = 0; got < n; got += 50) {
		snprintf(call, sizeof(call), "f.%u", ++calls);
		assert_int_equal(pop(50, call, had + got), n - got < 50 ? n - got : 50);
	}
}

static void
each_kind(void (*fn)(void))
{
	for (int kind = 0; kind < 3; kind++) {
		rig.unique = kind == 1;
		rig.consumer = kind == 2 ? "me" : NULL;
		rig_do(&rig, "FLUSHALL");
		fn();
	}
	rig.consumer = NULL;
}

SCRIPT_TEST(test_renew_many)
{
	struct words w = { 0 };
	redisReply *r;
	int i;

	take(250);
	rig_words(&w, "0", "", "", NULL);
	for (i = 0; i < 250; i++)
		rig_words(&w, had[i].tag, i % 10 == 3 ? "not.ours.1" : had[i].token, NULL);
	r = rig_script(&rig, "renew", "BRD", &w);
	assert_int_equal(r->elements, 251);
	for (i = 0; i < 250; i++)
		assert_int_equal(r->element[i + 1]->integer, i % 10 == 3 ? 0 : 1);
	freeReplyObject(r);
	rig_popped_done(had, 250);
}

/* Settles 120 deliveries by `op`; one was done before. */
static void
settle_many(const char *op)
{
	static const char *const list[] = { "items" };
	struct words w = { 0 };
	redisReply *r;

	take(120);
	assert_string_equal(rig_settle(&rig, "ack", &had[33], NULL), "ok");
	rig_settle_begin(&rig, &w);
	for (int i = 0; i < 120; i++) {
		rig_words(&w, op, had[i].tag, had[i].token, NULL);
		if (op[0] == 'p')
			rig_words(&w, "1", "1", "2", had[i].tag, "second", NULL);
	}
	rig.more = list;
	rig.nmore = op[0] == 'p';
	assert_non_null(r = rig_settle_script(&rig, &w));
	rig.nmore = 0;
	assert_int_equal(r->elements, 122);
	for (int i = 0; i < 120; i++)
		assert_string_equal(r->element[i + 2]->str, i == 33 ? "gone" : "ok");
	freeReplyObject(r);
	rig_check_clean(&rig);
	if (op[0] == 'p') {
		assert_int_equal(rig_int(&rig, "LLEN items"), 2 * 119);
		r = rig_command(&rig, "LRANGE items -3 -1");
		assert_string_equal(r->element[2]->str, had[0].tag);
		assert_string_equal(r->element[1]->str, "second");
		assert_string_equal(r->element[0]->str, had[1].tag);
		freeReplyObject(r);
	}
	rig_popped_done(had, 120);
}

static void
acks(void)
{
	settle_many("ack");
}

static void
pushes(void)
{
	settle_many("push");
}

SCRIPT_TEST(test_settle_many)
{
	each_kind(acks);
	each_kind(pushes);
}

/* 10,000 messages, more than unpack() can return at once, take less than 20 ms. */
static void
ten_thousand(void)
{
	static const char *const list[] = { "items" };
	long long best = 1000000, since, took;
	redisReply *r;

	for (int run = 0; run < 5 || (best >= 20000 && run < 50); run++) {
		struct words w = { 0 };

		rig_do(&rig, "FLUSHALL");
		take(1);
		rig_settle_begin(&rig, &w);
		rig_words(&w, "push", had[0].tag, had[0].token, "1", "1", "10000", NULL);
		for (int i = 0; i < 10000; i++)
			words_fmt(&w, "{\"number\":%d}%90d", i, i);
		rig.more = list;
		rig.nmore = 1;
		since = rig_time(&rig);
		assert_non_null(r = rig_settle_script(&rig, &w));
		took = rig_took(&rig, since);
		rig.nmore = 0;
		assert_string_equal(r->element[2]->str, "ok");
		freeReplyObject(r);
		best = took < best ? took : best;
		assert_int_equal(rig_int(&rig, "LLEN items"), 10000);
		rig_popped_done(had, 1);
	}
	print_message("# 10,000 messages: %.1f ms\n", (double)best / 1e3);
	assert_true(best < 20000);
}

SCRIPT_TEST(test_ten_thousand)
{
	each_kind(ten_thousand);
}

/* The script quotes a long value of an entry in pieces. */
SCRIPT_TEST(test_large_json)
{
	static char big[6000000], json[2 * sizeof(big) + 16];
	struct popped p;
	size_t i;

	memset(big, '"', sizeof(big) - 1);
	rig_do(&rig, "XADD %s * k %s", rig_key(&rig, KEY_QUEUE), big);
	strcpy(json, "{\"k\":\"");
	for (i = 6; i < 6 + 2 * (sizeof(big) - 1); i += 2)
		memcpy(json + i, "\\\"", 2);
	memcpy(json + i, "\"}", 2);
	rig.consumer = "me";
	p = pop_one("i.1");
	rig.consumer = NULL;
	assert_int_equal(p.len, i + 2);
	assert_memory_equal(p.payload, json, i + 2);
	rig_popped_done(&p, 1);
}

/* For a second pops take what they can: never more than the rate allows. */
SCRIPT_TEST(test_rate)
{
	double began = rig_now(&rig), now;
	int got = 0, n;
	char call[24];

	for (n = 0; n < 400; n++)
		push("x");
	rig.gap = 0.01;
	rig.slack = 0.1;
	do {
		snprintf(call, sizeof(call), "l.%d", got);
		assert_true((n = pop((int)unit_below(20) + 1, call, had)) >= 0);
		rig_popped_done(had, n);
		got += n;
		now = rig_now(&rig);
		if (got > (now - began) / 0.01 + 11)
			fail_msg("%d messages in %f s", got, now - began);
		if (rig.limited[0] != '\0') {
			assert_true(atof(rig.limited) <= 0.1 && atof(rig.limited) >= 0);
			usleep((useconds_t)(atof(rig.limited) * 1e6));
		}
	} while (now - began < 1);
	assert_true(got >= 50);
	assert_int_equal(rig_int(&rig, "LLEN %s", rig_key(&rig, KEY_QUEUE)), 400 - got);
	rig.gap = 0;
}

/* -- a slot that migrates ---------------------------------------------------------- */

/* A cluster of one node, which knows of another one. */
static void
open_cluster(char other[41])
{
	char port[16], bus[16];
	const char *nodes;

	snprintf(port, sizeof(port), "%d", server_free_port());
	snprintf(bus, sizeof(bus), "%d", server_free_port());
	server_start(&rig.server, "--cluster-enabled", "yes", "--port", port, "--cluster-port", bus,
	    "--cluster-node-timeout", "60000", NULL);
	server_do(&rig.server, "CLUSTER ADDSLOTSRANGE 0 16383");
	server_do(&rig.server, "CLUSTER MEET 127.0.0.1 %d", server_free_port());
	while (strstr(server_do(&rig.server, "CLUSTER INFO"), "cluster_state:ok") == NULL)
		usleep(10000);
	nodes = server_do(&rig.server, "CLUSTER NODES");
	if (strstr(nodes, "myself") < strchr(nodes, '\n'))
		nodes = strchr(nodes, '\n') + 1;
	snprintf(other, 41, "%.40s", nodes);
	keys_init(&rig.keys, "{orders}");
	rig_connect(&rig, "");
}

/* Its lease has ended, and it alone is in QRETRY when the slot begins to move to the node. */
static void
migrate_retry(int i, const char *other)
{
	long long slot = server_int(&rig.server, "CLUSTER KEYSLOT {orders}");

	server_do(&rig.server, "CLUSTER SETSLOT %lld STABLE", slot);
	rig_do(&rig, "ZADD %s 1 %s", rig_key(&rig, KEY_RETRY), had[i].tag);
	rig_do(&rig, "ZREM %s %s", rig_key(&rig, KEY_BACKUP), had[i].tag);
	server_do(&rig.server, "CLUSTER SETSLOT %lld MIGRATING %s", slot, other);
}

/*
 * The result removes the last entry of QRETRY; Redis then sends whoever reads that key to the
 * other node.  The script has acted, and says so.
 */
SCRIPT_TEST(test_slot_migrates)
{
	struct rig whole = rig;
	struct words w = { 0 };
	const char *answer;
	char other[41];
	redisReply *r;

	rig = (struct rig){ .more = (const char *const []){ "{orders}items" } };
	open_cluster(other);
	rig.max_crashes = 3;
	take(3);
	rig_do(&rig, "XADD {orders}DEAD * message m");
	rig_do(&rig, "LPUSH {orders}items theirs");
	migrate_retry(0, other);
	assert_non_null(answer = rig_settle(&rig, "ack", &had[0], NULL));
	assert_string_equal(answer, "ok");
	migrate_retry(1, other);
	rig_settle_begin(&rig, &w);
	rig_words(&w, "push", had[1].tag, had[1].token, "1", "1", "1", "mine", NULL);
	rig.nmore = 1;
	if ((r = rig_script(&rig, "settle", "BCRDX", &w)) == NULL)
		fail_msg("settle: %s", rig.error);
	assert_string_equal(r->element[2]->str, "ok");
	freeReplyObject(r);
	assert_int_equal(rig_int(&rig, "LLEN {orders}items"), 2);
	rig_popped_done(had, 3);
	rig_close(&rig);
	rig = whole;
}
