/*
 * Kind "expired" against a real Redis: events, locks, flags, and lost connections.
 */
#include "box.h"

#include "base/glob.h"

static char **
one(const char *s)
{
	char **list = xcalloc(3, sizeof(char *));

	list[0] = xstrdup(s);
	return list;
}

static int
setup(void **state)
{
	fixture_setup(state);
	box.cfg->kind = KIND_EXPIRED;
	box.cfg->match = one("send:*");
	box.cfg->notifications = NOTIFICATIONS_SET;
	box.cfg->skew = 2 * SEC;
	box.cfg->max_attempts = 3;
	return 0;
}

#define QUEUE_TEST(name)	TEST_WITH(name, setup, fixture_teardown)

static void
start(struct box *b, unsigned slots)
{
	box_start(b, 0);
	WAIT(b, b->hears == 1);
	box_set_slots(b, slots);
}

static void
expire(const char *key)
{
	server_do(&server, "SET %s x PX 1", key);
}

static bool
has_lock(const char *key)
{
	return server_int(&server, "EXISTS Lock:orders:%s", key) == 1;
}

QUEUE_TEST(test_delivers)
{
	start(&box, 5);
	expire("send:7:mail");
	expire("other");
	WAIT(&box, box.n == 1);
	assert_string_equal(box.msgs[0]->id, "send:7:mail");
	assert_string_equal(box.msgs[0]->tag, "send:7:mail");
	assert_int_equal(box.msgs[0]->len, 11);
	assert_memory_equal(box.msgs[0]->payload, "send:7:mail", 11);
	assert_true(has_lock("send:7:mail"));
	assert_in_range(server_int(&server, "PTTL Lock:orders:send:7:mail"), 1, 2000);
	/* From now on it is a message like any other. */
	finish(&box, 0, VERDICT_RETRY, true, 100 * MSEC, SETTLED_OK);
	WAIT(&box, box.n == 1);
	assert_int_equal(box.msgs[0]->attempts, 1);
	finish(&box, 0, VERDICT_DEAD, true, 0, SETTLED_OK);
	assert_string_equal(server_do(&server, "EVAL %s 1 ordersDEAD",
	    "return redis.call('XRANGE', KEYS[1], '-', '+')[1][2][2]"), "send:7:mail");
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.delivered, 2);
}

/* A key of any name is a message; if its name cannot be an id, rqd makes one. */
QUEUE_TEST(test_names)
{
	char name[302];

	start(&box, 5);
	server_do(&server, "SET %b x PX 1", "send:\0\n", (size_t)7);
	WAIT(&box, box.n == 1);
	assert_int_equal(box.msgs[0]->len, 7);
	assert_memory_equal(box.msgs[0]->payload, "send:\0\n", 7);
	assert_int_equal(box.msgs[0]->id[0], '~');
	memset(name, 'x', 300);
	memcpy(name, "send:", 5);
	name[300] = '\0';
	expire(name);
	WAIT(&box, box.n == 2);
	assert_int_equal(box.msgs[1]->len, 300);
	assert_int_equal(box.msgs[1]->id[0], '~');
	expire("send:{\"id\":5}");
	WAIT(&box, box.n == 3);
	assert_string_equal(box.msgs[2]->id, "send:{\"id\":5}");
}

/* Adds another queue to the configuration. */
static void
add_queue(struct config *c, const char *name)
{
	struct queue_config *cfg = xcalloc(1, sizeof(*cfg));

	cfg->name = xstrdup(name);
	cfg->key = xstrdup(name);
	c->queues = xreallocarray(c->queues, c->nqueues + 2, sizeof(*c->queues));
	c->queues[c->nqueues++] = cfg;
	c->queues[c->nqueues] = NULL;
}

/* The queue ignores locks, heartbeats, and the keys of queues when they expire. */
QUEUE_TEST(test_ours)
{
	add_queue(box.config, "mail");
	free(box.cfg->match[0]);
	box.cfg->match[0] = xstrdup("*");
	box.cfg->skew = 200 * MSEC;
	start(&box, 5);
	expire("a");
	expire("Lock:x");
	expire("rqd:daemon:x");
	expire("ordersPAUSED");
	expire("mailPAUSED");
	expire("mailRATE");
	expire("mail");
	expire("mailed");
	WAIT(&box, box.n == 2);
	WAIT(&box, !has_lock("a"));
	box_turn(&box, 200 * MSEC);
	assert_int_equal(box.delivered, 2);
	assert_int_equal(server_int(&server, "LLEN orders"), 0);
}

QUEUE_TEST(test_several_patterns)
{
	box.cfg->match[1] = xstrdup("[ab]?");
	start(&box, 5);
	expire("b1");
	expire("c1");
	expire("send:");
	WAIT(&box, box.n == 2);
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.n, 2);
}

/*
 * A key that expires again while its lock exists is no second message; after that it is.
 */
QUEUE_TEST(test_skew)
{
	box.cfg->skew = 2 * SEC;
	start(&box, 9);
	expire("send:1");
	WAIT(&box, box.n == 1);
	expire("send:1");
	WAIT(&box, server_int(&server, "EXISTS send:1") == 0);
	WAIT(&box, !has_lock("send:1"));
	assert_int_equal(box.delivered, 1);
	expire("send:1");
	WAIT(&box, box.n == 2);
	/* Two messages of one name have the same id, and different tags. */
	assert_string_equal(box.msgs[1]->id, "send:1");
	assert_string_not_equal(box.msgs[1]->tag, "send:1");
}

/* All daemons receive each event; together they push it once. */
QUEUE_TEST(test_fleet)
{
	enum { BOXES = 5, KEYS = 300 };
	static struct box more[BOXES - 1];
	unsigned total = 0, i;

	box.cfg->skew = 60 * SEC;
	start(&box, BOX_MAX);
	for (i = 0; i < BOXES - 1; i++) {
		box_init(&more[i], &server, "b");
		more[i].cfg->kind = KIND_EXPIRED;
		more[i].cfg->match = one("send:*");
		more[i].cfg->skew = 60 * SEC;
		start(&more[i], BOX_MAX);
	}
	for (i = 0; i < KEYS; i++)
		server_do(&server, "SET send:%u x PX %u", i, 50 + i % 7);
	WAIT(&box, (box_turn(&box, 5 * MSEC), server_int(&server, "EXISTS send:0")) == 0);
	do {
		box_turn(&box, 5 * MSEC);
		total = box.delivered;
		for (i = 0; i < BOXES - 1; i++) {
			box_turn(&more[i], 5 * MSEC);
			total += more[i].delivered;
		}
	} while (total < KEYS);
	for (i = 0; i < BOXES - 1; i++)
		box_turn(&more[i], 50 * MSEC);
	box_turn(&box, 50 * MSEC);
	for (i = 0, total = box.delivered; i < BOXES - 1; i++) {
		total += more[i].delivered;
		box_done(&more[i]);
	}
	assert_int_equal(total, KEYS);
}

/* -- flags -------------------------------------------------------------------- */

static const char *
flags(void)
{
	return server_do(&server, "CONFIG GET notify-keyspace-events");
}

QUEUE_TEST(test_flags_merged)
{
	server_do(&server, "CONFIG SET notify-keyspace-events %s", "Kg$");
	start(&box, 5);
	WAIT(&box, strpbrk(flags(), "E") != NULL);
	assert_non_null(strchr(flags(), 'K'));
	assert_non_null(strchr(flags(), '$'));
	assert_non_null(strchr(flags(), 'x'));
	WAIT(&box, box.warnings == 1);
	assert_non_null(strstr(box.warning, "was set to"));
	expire("send:1");
	WAIT(&box, box.n == 1);
	/* An operator replaces the flags: the next tick adds the missing ones again. */
	server_do(&server, "CONFIG SET notify-keyspace-events Kg");
	queue_tick(box.queue);
	WAIT(&box, box.warnings == 2);
	assert_non_null(strchr(flags(), 'E'));
}

QUEUE_TEST(test_flags_demanded)
{
	box.cfg->notifications = NOTIFICATIONS_CHECK;
	server_do(&server, "CONFIG SET notify-keyspace-events %s", "Eg$");
	box_start(&box, 0);
	WAIT(&box, box.deafs == 1);
	assert_non_null(strstr(box.why, "redis-cli CONFIG SET notify-keyspace-events '"));
	assert_non_null(strstr(box.why, "x'"));
	assert_null(strchr(flags(), 'x'));
	server_do(&server, "CONFIG SET notify-keyspace-events AKE");
	queue_tick(box.queue);
	WAIT(&box, box.hears == 1);
	box_set_slots(&box, 1);
	expire("send:1");
	WAIT(&box, box.n == 1);
}

QUEUE_TEST(test_flags_denied)
{
	server_do(&server, "ACL SETUSER default -config");
	box_start(&box, 0);
	WAIT(&box, box.hears == 1 && box.warnings == 1);
	assert_non_null(strstr(box.warning, "cannot check whether"));
	queue_tick(box.queue);
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.warnings, 1);
}

QUEUE_TEST(test_set_denied)
{
	server_do(&server, "ACL SETUSER default -config|set");
	box_start(&box, 0);
	WAIT(&box, box.deafs == 1);
	assert_non_null(strstr(box.why, "refused"));
	assert_non_null(strstr(box.why, "notify-keyspace-events 'Ex'"));
}

/* -- faults ------------------------------------------------------------------- */

/*
 * The reply to a push is lost: the queue sends it again, and the lock prevents a second
 * message.
 */
QUEUE_TEST(test_lost_answer)
{
	box.cfg->skew = 60 * SEC;
	start(&box, 0);
	box_deafen(&box);
	expire("send:1");
	WAIT(&box, server_int(&server, "LLEN orders") == 1);
	box_cut(&box, &server);
	box_turn(&box, 100 * MSEC);
	assert_int_equal(server_int(&server, "LLEN orders"), 1);
	assert_int_equal(box.stats.n[STAT_DROPPED], 0);
}

/*
 * Redis refuses a push: the queue repeats it, and the message is there as soon as Redis
 * permits it.
 */
QUEUE_TEST(test_refused)
{
	box.cfg->skew = 10 * SEC;
	start(&box, 0);
	server_do(&server, "ACL SETUSER default -lpush");
	expire("send:1");
	box_turn(&box, 300 * MSEC);
	assert_int_equal(server_int(&server, "EXISTS send:1"), 0);
	assert_false(has_lock("send:1"));
	server_do(&server, "ACL SETUSER default +lpush");
	WAIT(&box, server_int(&server, "LLEN orders") == 1);
	assert_int_equal(box.stats.n[STAT_DROPPED], 0);
}

/*
 * While pushes are refused, `published` keys of `len` bytes expire: between `least` and
 * `most` of them are dropped, and all others are pushed later.
 */
static void
overflow(unsigned published, unsigned len, unsigned least, unsigned most)
{
	const uint64_t *dropped = &box.stats.n[STAT_DROPPED];

	box.cfg->skew = 2 * MINUTE;
	start(&box, 0);
	/* A slow reader must not be cut off: then it would drop fewer. */
	server_do(&server, "CONFIG SET client-output-buffer-limit %s", "pubsub 0 0 0");
	server_do(&server, "CONFIG SET min-replicas-to-write 1");
	server_do(&server, "EVAL %s 0 %d %d", "for i = 1, ARGV[1] do local name = 'send:' .. i "
	    "redis.call('PUBLISH', '__keyevent@0__:expired', "
	    "name .. string.rep('x', ARGV[2] - #name)) end", published, len);
	WAIT(&box, *dropped >= least);
	server_do(&server, "CONFIG SET min-replicas-to-write 0");
	WAIT(&box, server_int(&server, "LLEN orders") == (long long)(published - *dropped));
	WAIT(&box, strstr(box.warning, "were dropped") != NULL);
	assert_in_range(*dropped, least, most);
}

/*
 * 100,000 events may wait, besides those of up to eight pushes in flight with 250 each.
 */
QUEUE_TEST(test_too_many)
{
	overflow(104000, 20, 2000, 4000);
}

/*
 * 16 MiB of names may wait, besides those of up to eight pushes in flight with one each.
 */
QUEUE_TEST(test_too_large)
{
	overflow(30, 1000000, 6, 14);
}

QUEUE_TEST(test_wrong_type)
{
	box.cfg->skew = 200 * MSEC;
	start(&box, 0);
	server_do(&server, "SET orders x");
	expire("send:1");
	expire("send:2");
	WAIT(&box, box.stats.n[STAT_DROPPED] == 2);
	assert_non_null(strstr(box.warning, "WRONGTYPE"));
	server_do(&server, "DEL orders");
	expire("send:3");
	WAIT(&box, server_int(&server, "LLEN orders") == 1);
	WAIT(&box, strstr(box.warning, "2 were dropped") != NULL);
}

/* A full Redis accepts the push, because it reports an expired key only once. */
QUEUE_TEST(test_full)
{
	start(&box, 0);
	server_do(&server, "SET send:1 x PX 300");
	server_do(&server, "CONFIG SET maxmemory 1");
	WAIT(&box, server_int(&server, "LLEN orders") == 1);
	server_do(&server, "CONFIG SET maxmemory 0");
}

QUEUE_TEST(test_cut)
{
	start(&box, 9);
	assert_int_equal(server_int(&server, "CLIENT KILL TYPE pubsub"), 2);
	WAIT(&box, box.deafs == 1 && box.hears == 2);
	expire("send:1");
	WAIT(&box, box.n == 1);
	server_do(&server, "FLUSHALL");
	server_do(&server, "SCRIPT FLUSH");
	expire("send:2");
	WAIT(&box, box.n == 2);
}

QUEUE_TEST(test_denied_channel)
{
	server_do(&server, "ACL SETUSER default resetchannels &__redis__:invalidate");
	box_start(&box, 0);
	WAIT(&box, box.deafs == 1);
	assert_non_null(strstr(box.why, "NOPERM"));
	server_do(&server, "ACL SETUSER default allchannels");
	WAIT(&box, box.hears == 1);
}

QUEUE_TEST(test_close)
{
	start(&box, 1);
	expire("send:1");
	WAIT(&box, box.n == 1);
	queue_close(box.queue);
	box_turn(&box, 20 * MSEC);
	assert_int_equal(box.closes, 0);
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	WAIT(&box, box.closes == 1);
	/* After it is closed, the queue leaves events to other daemons. */
	expire("send:2");
	box_turn(&box, 200 * MSEC);
	assert_int_equal(server_int(&server, "LLEN orders"), 0);
}

/* Events that could not be pushed yet are pushed before the queue is closed. */
QUEUE_TEST(test_close_refused)
{
	box.cfg->skew = 10 * SEC;
	start(&box, 0);
	server_do(&server, "CONFIG SET min-replicas-to-write 1");
	server_int(&server, "PUBLISH __keyevent@0__:expired send:1");
	box_turn(&box, 150 * MSEC);
	queue_close(box.queue);
	box_turn(&box, 150 * MSEC);
	assert_int_equal(box.closes, 0);
	server_do(&server, "CONFIG SET min-replicas-to-write 0");
	WAIT(&box, box.closes == 1);
	assert_int_equal(server_int(&server, "LLEN orders"), 1);
}

/*
 * If Redis does not come back within the skew, the queue drops these events, and closes.
 */
QUEUE_TEST(test_close_away)
{
	box.cfg->skew = 600 * MSEC;
	start(&box, 0);
	server_do(&server, "CONFIG SET min-replicas-to-write 1");
	server_int(&server, "PUBLISH __keyevent@0__:expired send:1");
	box_turn(&box, 50 * MSEC);
	server_kill(&server);
	queue_close(box.queue);
	WAIT(&box, box.closes == 1);
	assert_int_equal(box.stats.n[STAT_DROPPED], 1);
}

/* -- patterns ------------------------------------------------------------------- */

static void
random_text(char *s, const char *letters, uint64_t max)
{
	uint64_t i, n = 1 + unit_below(max);

	for (i = 0; i < n; i++)
		s[i] = letters[unit_below(strlen(letters))];
	s[n] = '\0';
}

/* rqd's matcher of patterns and that of Redis agree. */
QUEUE_TEST(test_globs)
{
	char pattern[16], key[16];
	unsigned i, matched = 0;

	for (i = 0; i < 3000; i++) {
		bool theirs, ours;

		random_text(pattern, "ab**??[]^-\\c", 6);
		random_text(key, "abc-]\\^", 5);
		server_do(&server, "SET %s x", key);
		theirs = server_int(&server, "EVAL %s 1 %s %s",
		    "for _, k in ipairs(redis.call('KEYS', ARGV[1])) do "
		    "if k == KEYS[1] then return 1 end end return 0", key, pattern) == 1;
		ours = glob_match(pattern, key, strlen(key));
		if (ours != theirs)
			fail_msg("\"%s\" and \"%s\": %d, Redis says %d", pattern, key, ours,
			    theirs);
		matched += theirs;
		server_do(&server, "DEL %s", key);
	}
	print_message("# %u of 3000 matched\n", matched);
}
