/*
 * Kinds "channel" and "pattern" against a real Redis.
 */
#include "box.h"

static void
hear(enum kind kind, const char *a, const char *b)
{
	box.cfg->kind = kind;
	box.cfg->max_attempts = 1;
	box.cfg->backlog = 10;
	box.cfg->backlog_bytes = 1000;
	box.cfg->keys = xcalloc(3, sizeof(char *));
	box.cfg->keys[0] = xstrdup(a);
	box.cfg->keys[1] = b != NULL ? xstrdup(b) : NULL;
}

static int
setup(void **state)
{
	fixture_setup(state);
	hear(KIND_CHANNEL, "news", "more news");
	return 0;
}

#define QUEUE_TEST(name)	TEST_WITH(name, setup, fixture_teardown)

static int
setup_pattern(void **state)
{
	fixture_setup(state);
	hear(KIND_PATTERN, "n?ws.[a-c]*", "x\\*y");
	return 0;
}

/* Starts the box, and waits until it has subscribed. */
static void
start(unsigned slots)
{
	box_start(&box, 0);
	WAIT(&box, box.hears == 1);
	box_set_slots(&box, slots);
}

static long long
publish(const char *channel, const char *text)
{
	return server_int(&server, "PUBLISH %s %s", channel, text);
}

QUEUE_TEST(test_channels)
{
	start(5);
	assert_int_equal(publish("news", "{\"id\":1}"), 1);
	assert_int_equal(publish("more news", "plain"), 1);
	assert_int_equal(publish("other", "x"), 0);
	assert_int_equal(server_int(&server, "PUBLISH news %b", "a\0b", (size_t)3), 1);
	WAIT(&box, box.n == 3);
	assert_string_equal(box.msgs[0]->id, "1");
	assert_string_equal(box.msgs[0]->channel, "news");
	assert_memory_equal(box.msgs[0]->payload, "{\"id\":1}", 8);
	assert_int_equal(box.msgs[1]->id[0], '~');
	assert_string_equal(box.msgs[1]->channel, "more news");
	assert_int_equal(box.msgs[2]->len, 3);
	assert_memory_equal(box.msgs[2]->payload, "a\0b", 3);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	finish(&box, 0, VERDICT_RETRY, true, 0, SETTLED_DROPPED);
	finish(&box, 0, VERDICT_DEAD, false, 0, SETTLED_DROPPED);
	assert_int_equal(keys(), 0);
	assert_true(queue_is_empty(box.queue));
}

TEST_WITH(test_patterns, setup_pattern, fixture_teardown)
{
	start(5);
	assert_int_equal(publish("news.all", "1"), 1);
	assert_int_equal(publish("nows.c", "2"), 1);
	assert_int_equal(publish("news.d", "3"), 0);
	assert_int_equal(publish("x*y", "4"), 1);
	assert_int_equal(publish("xzy", "5"), 0);
	WAIT(&box, box.n == 3);
	assert_string_equal(box.msgs[0]->channel, "news.all");
	assert_string_equal(box.msgs[1]->channel, "nows.c");
	assert_string_equal(box.msgs[2]->channel, "x*y");
	/*
	 * The environment of a handler cannot hold a name with a NUL: the message is
	 * dropped.
	 */
	assert_int_equal(server_int(&server, "PUBLISH %b x", "news.a\0b", (size_t)8), 1);
	WAIT(&box, box.stats.n[STAT_DROPPED] == 1);
}

/*
 * The queue drops messages that do not fit into the backlog.  It warns once at the
 * beginning and once at the end.
 */
QUEUE_TEST(test_backlog)
{
	char text[16];
	int i;

	start(0);
	for (i = 0; i < 25; i++) {
		snprintf(text, sizeof(text), "%d", i);
		publish("news", text);
	}
	WAIT(&box, box.stats.n[STAT_DROPPED] == 15);
	assert_int_equal(box.warnings, 1);
	assert_non_null(strstr(box.warning, "backlog is full (10 messages"));
	assert_false(queue_is_empty(box.queue));
	box_set_slots(&box, 10);
	WAIT(&box, box.n == 10);
	for (i = 0; i < 10; i++)
		assert_int_equal(atoi(box.msgs[i]->payload), i);
	assert_int_equal(box.warnings, 2);
	assert_non_null(strstr(box.warning, "15 messages were dropped"));
}

QUEUE_TEST(test_backlog_bytes)
{
	char text[601];

	memset(text, 'x', 600);
	text[600] = '\0';
	start(0);
	publish("news", text);
	publish("news", text);
	publish("news", "small");
	WAIT(&box, box.stats.n[STAT_DROPPED] == 1);
	box_set_slots(&box, 5);
	WAIT(&box, box.n == 2);
	assert_int_equal(box.msgs[1]->len, 5);
	/*
	 * An empty backlog takes a message of any size; the payload of one over
	 * message_max does not count.
	 */
	box.cfg->backlog_bytes = 10;
	publish("news", text);
	WAIT(&box, box.n == 3);
	box.cfg->message_max = 100;
	box_set_slots(&box, 3);
	publish("news", text);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&box, box.n == 3);
	assert_true(box.msgs[2]->too_large);
	assert_int_equal(box.msgs[2]->len, 600);
	finish(&box, 2, VERDICT_DEAD, false, 0, SETTLED_DROPPED);
}

/* Publishers choose the names of channels: names count in the backlog, as payloads do. */
TEST_WITH(test_names, setup_pattern, fixture_teardown)
{
	size_t len = 100 * 1024;
	char *name = xmalloc(len + 1);

	memset(name, 'n', len);
	memcpy(name, "nows.c", 6);
	name[len] = name[600] = '\0';
	start(0);
	publish(name, "1");
	publish(name, "2");
	WAIT(&box, box.stats.n[STAT_DROPPED] == 1);
	assert_non_null(strstr(box.warning, "backlog is full (1 messages, 601 bytes"));
	name[600] = 'n';
	publish(name, "3");
	WAIT(&box, box.stats.n[STAT_DROPPED] == 2);
	assert_non_null(strstr(box.warning, "name has 102400 bytes"));
	publish(name, "4");
	WAIT(&box, box.stats.n[STAT_DROPPED] == 3);
	assert_int_equal(box.warnings, 2);
	box_set_slots(&box, 5);
	WAIT(&box, box.n == 1);
	assert_int_equal(strlen(box.msgs[0]->channel), 600);
	free(name);
}

/*
 * A returned message whose handler never began is delivered again, in its place.  One
 * whose handler began is dropped.
 */
QUEUE_TEST(test_return)
{
	struct verdict v = { .op = VERDICT_RETURN, .reason = REASON_DRAIN };
	struct result r = { .end = END_SIGNAL, .signo = 15, .stop = STOP_DRAIN, .pid = 4711 };
	int i;

	start(3);
	for (i = 0; i < 5; i++)
		server_int(&server, "PUBLISH news %d", i);
	WAIT(&box, box.n == 3);
	box_set_slots(&box, 0);
	box_settle(&box, 1, VERDICT_RETURN, false, 0);
	box_settle(&box, 0, VERDICT_RETURN, false, 0);
	WAIT(&box, box.settled[SETTLED_OK] == 2);
	box.n = 0;
	queue_settle(box.queue, box.msgs[0], &v, &r);
	WAIT(&box, box.settled[SETTLED_DROPPED] == 1);
	box_set_slots(&box, 9);
	WAIT(&box, box.n == 4);
	assert_string_equal(box.msgs[0]->payload, "0");
	assert_string_equal(box.msgs[1]->payload, "1");
	assert_string_equal(box.msgs[2]->payload, "3");
	assert_string_equal(box.msgs[1]->channel, "news");
}

QUEUE_TEST(test_pause)
{
	server_do(&server, "SET ordersPAUSED why");
	start(5);
	publish("news", "1");
	WAIT(&box, box.paused);
	assert_string_equal(box.why, "why");
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.n, 0);
	server_int(&server, "DEL ordersPAUSED");
	WAIT(&box, box.n == 1);
	server_do(&server, "SET ordersPAUSED again");
	WAIT(&box, box.paused);
	publish("news", "2");
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.n, 1);
	server_do(&server, "FLUSHALL");
	WAIT(&box, box.n == 2);
}

/*
 * The subscription's connection is cut: the queue reports that, subscribes again, and
 * reports that, too.
 */
QUEUE_TEST(test_cut)
{
	start(5);
	assert_int_equal(server_int(&server, "CLIENT KILL TYPE pubsub"), 2);
	WAIT(&box, box.deafs == 1 && box.hears == 2);
	publish("news", "1");
	WAIT(&box, box.n == 1);
	/* If only the other connection is cut, no message is missed. */
	box_cut(&box, &server);
	publish("news", "2");
	WAIT(&box, box.n == 2);
	assert_int_equal(box.deafs, 1);
}

QUEUE_TEST(test_restart)
{
	start(5);
	server_kill(&server);
	box_turn(&box, 50 * MSEC);
	server_again(&server);
	WAIT(&box, box.hears == 2);
	publish("news", "1");
	WAIT(&box, box.n == 1);
}

QUEUE_TEST(test_denied)
{
	server_do(&server, "ACL SETUSER default resetchannels &__redis__:invalidate");
	box_start(&box, 0);
	box_set_slots(&box, 5);
	WAIT(&box, box.deafs == 1);
	assert_non_null(strstr(box.why, "NOPERM"));
	server_do(&server, "ACL SETUSER default allchannels");
	WAIT(&box, box.hears == 1);
	publish("news", "1");
	WAIT(&box, box.n == 1);
	/*
	 * The permission is withdrawn while the queue is subscribed: Redis closes the
	 * connection.
	 */
	server_do(&server, "ACL SETUSER default resetchannels &__redis__:invalidate");
	WAIT(&box, box.deafs >= 2);
}

/*
 * The daemon does not read, and Redis closes its connection: the queue subscribes again.
 */
QUEUE_TEST(test_thrown_out)
{
	char *big = xcalloc(1, 100001);
	int i;

	memset(big, 'x', 100000);
	server_do(&server, "CONFIG SET client-output-buffer-limit %s", "pubsub 1mb 0 0");
	start(0);
	for (i = 0; i < 200 && publish("news", big) == 1; i++)
		continue;
	assert_true(i > 10 && i < 200);
	free(big);
	WAIT(&box, box.deafs == 1 && box.hears == 2);
	assert_int_equal(publish("news", "after"), 1);
	box_set_slots(&box, 1);
	WAIT(&box, box.n == 1);
}

QUEUE_TEST(test_close)
{
	int i;

	start(2);
	for (i = 0; i < 5; i++)
		server_int(&server, "PUBLISH news %d", i);
	WAIT(&box, box.n == 2);
	box_turn(&box, 50 * MSEC);
	box_set_slots(&box, 0);
	queue_close(box.queue);
	box_settle(&box, 0, VERDICT_RETURN, false, 0);
	box_turn(&box, 20 * MSEC);
	assert_int_equal(box.closes, 0);
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	WAIT(&box, box.closes == 1);
	assert_int_equal(box.dropped, 3);
	assert_int_equal(box.settled[SETTLED_DROPPED], 1);
	assert_string_equal(server_do(&server, "HGET ordersSTATS acked"), "1");
	assert_int_equal(keys(), 0);
}

/* The queue is closed during a fetch: it reports what it has dropped before closed(). */
QUEUE_TEST(test_close_fetching)
{
	int i;

	start(0);
	for (i = 0; i < 3; i++)
		server_int(&server, "PUBLISH news %d", i);
	WAIT(&box, !queue_is_empty(box.queue));
	box_turn(&box, 50 * MSEC);
	box.fetching = true;
	box.asked = 1;
	queue_fetch(box.queue, 1, TURN_OLDEST);
	queue_close(box.queue);
	WAIT(&box, box.closes == 1);
	box_turn(&box, 20 * MSEC);
	assert_int_equal(box.dropped, 3);
	assert_int_equal(box.delivered, 0);
}

QUEUE_TEST(test_freed)
{
	start(1);
	publish("news", "1");
	publish("news", "2");
	WAIT(&box, box.n == 1);
	box_free_queue(&box);
	box_turn(&box, 20 * MSEC);
}
