/*
 * Kind "list" against a real Redis: messages that it delivers, pushes back, and loses.
 */
#include "box.h"

#include <signal.h>

static int
setup(void **state)
{
	fixture_setup(state);
	box.cfg->kind = KIND_LIST;
	box.cfg->max_attempts = 1;
	return 0;
}

#define QUEUE_TEST(name)	TEST_WITH(name, setup, fixture_teardown)

QUEUE_TEST(test_batch)
{
	int i;

	push_numbers(200);
	box_take(&box, 150);
	box_turn(&box, 30 * MSEC);
	assert_int_equal(box.n, 150);
	assert_true(box.fetches <= 3);
	for (i = 0; i < 150; i++)
		assert_int_equal(atoi(box.msgs[i]->id), i);
	assert_string_equal(box.msgs[7]->tag, "7");
	assert_memory_equal(box.msgs[7]->payload, "{\"id\":7}", 8);
	assert_int_equal(server_int(&server, "LLEN orders"), 50);
	while (box.delivered < 200 || box.n > 0) {
		if (box.n > 0)
			box_settle(&box, 0, VERDICT_ACK, false, 0);
		else
			loop_turn(box.loop, SEC);
	}
	WAIT(&box, box.settled[SETTLED_OK] == 200);
	assert_int_equal(keys(), 0);
	WAIT(&box, queue_is_empty(box.queue));
}

QUEUE_TEST(test_left)
{
	box.cfg->pop = POP_LEFT;
	push_numbers(3);
	box_take(&box, 2);
	assert_string_equal(box.msgs[0]->id, "2");
	assert_string_equal(box.msgs[1]->id, "1");
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_RETURN, false, 0, SETTLED_OK);
	assert_string_equal(server_do(&server, "LINDEX orders 0"), "{\"id\":2}");
}

/*
 * The last message is settled before the reply of the look: the engine still learns that
 * the queue is empty.
 */
QUEUE_TEST(test_empty)
{
	push_numbers(1);
	box_start(&box, 2);
	WAIT(&box, box.n == 1);
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	WAIT(&box, queue_is_empty(box.queue));
	assert_int_equal(box.ticks, 1);
}

/* A look on an earlier connection does not count: Redis may have messages since then. */
QUEUE_TEST(test_empty_before)
{
	box_start(&box, 1);
	WAIT(&box, queue_is_empty(box.queue));
	box_set_slots(&box, 0);
	assert_true(queue_is_empty(box.queue));
	box_cut(&box, &server);
	assert_false(queue_is_empty(box.queue));
	box_set_slots(&box, 1);
	WAIT(&box, queue_is_empty(box.queue));
}

/* A message that is not JSON, or has no id, gets an id; any bytes are allowed. */
QUEUE_TEST(test_ids)
{
	server_int(&server, "LPUSH orders %b %s", "a\0b", (size_t)3, "");
	box_take(&box, 2);
	assert_int_equal(box.msgs[0]->id[0], '~');
	assert_int_equal(box.msgs[0]->len, 3);
	assert_memory_equal(box.msgs[0]->payload, "a\0b", 3);
	assert_int_equal(box.msgs[1]->len, 0);
	assert_string_not_equal(box.msgs[0]->id, box.msgs[1]->id);
}

/* After a success or a failure nothing of the message is left. */
QUEUE_TEST(test_failures)
{
	push_numbers(3);
	box_take(&box, 3);
	finish(&box, 0, VERDICT_DEAD, true, 0, SETTLED_DROPPED);
	finish(&box, 0, VERDICT_RETRY, true, 0, SETTLED_DROPPED);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(keys(), 0);
}

QUEUE_TEST(test_too_large)
{
	bury_too_large(SETTLED_DROPPED);
	assert_int_equal(keys(), 0);
}

/* Messages that are returned in one turn, in any order, keep their order in the list. */
QUEUE_TEST(test_return)
{
	int i;

	push_numbers(6);
	box_take(&box, 4);
	box_set_slots(&box, 0);
	box_settle(&box, 2, VERDICT_RETURN, false, 0);
	box_settle(&box, 0, VERDICT_RETURN, false, 0);
	box_settle(&box, 1, VERDICT_RETURN, false, 0);
	box_settle(&box, 0, VERDICT_RETURN, false, 0);
	WAIT(&box, box.settled[SETTLED_OK] == 4);
	assert_int_equal(server_int(&server, "LLEN orders"), 6);
	box_set_slots(&box, 6);
	WAIT(&box, box.n == 6);
	for (i = 0; i < 6; i++)
		assert_int_equal(atoi(box.msgs[i]->id), i);
}

/* A returned message whose handler has begun is dropped, not run again. */
QUEUE_TEST(test_begun)
{
	struct verdict v = { .op = VERDICT_RETURN, .reason = REASON_DRAIN };
	struct result r = { .end = END_SIGNAL, .signo = 15, .stop = STOP_DRAIN, .pid = 4711 };

	push_numbers(1);
	box_take(&box, 1);
	box.n = 0;
	queue_settle(box.queue, box.msgs[0], &v, &r);
	WAIT(&box, box.settled[SETTLED_DROPPED] == 1);
	assert_int_equal(keys(), 0);
}

QUEUE_TEST(test_pause)
{
	server_do(&server, "SET ordersPAUSED why");
	push_numbers(2);
	box_start(&box, 1);
	WAIT(&box, box.paused);
	assert_string_equal(box.why, "why");
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.delivered, 0);
	server_int(&server, "DEL ordersPAUSED");
	WAIT(&box, box.n == 1);
	assert_false(box.paused);
	server_do(&server, "SET ordersPAUSED why PX 1000");
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&box, box.n == 1);
	assert_int_equal(box.fetched[FETCH_PAUSED], 2);
}

/* An idle queue sends nothing, and wakes up after a push. */
QUEUE_TEST(test_wake_up)
{
	static const char calls[] = "return tonumber(string.match("
	    "redis.call('INFO', 'commandstats'), 'cmdstat_evalsha:calls=(%d+)'))";
	long long before = -1;
	usec_t pushed;
	int i;

	box_start(&box, 1);
	for (i = 0; i < 20 && server_int(&server, "EVAL %s 0", calls) != before; i++) {
		before = server_int(&server, "EVAL %s 0", calls);
		box_turn(&box, 300 * MSEC);
	}
	assert_int_equal(server_int(&server, "EVAL %s 0", calls), before);
	pushed = clock_mono();
	push("x");
	WAIT(&box, box.n == 1);
	print_message("# push to delivery: %lld us\n", (long long)(box.last_delivery - pushed));
}

QUEUE_TEST(test_polls)
{
	server_do(&server, "ACL SETUSER default -client|tracking");
	box_start(&box, 1);
	push("x");
	WAIT(&box, box.n == 1);
}

/*
 * The reply to a pop is lost, and the message with it: the queue warns, and takes the
 * next one.
 */
QUEUE_TEST(test_lost_reply)
{
	box_start(&box, 1);
	box_deafen(&box);
	box_turn(&box, 50 * MSEC);
	push("lost");
	queue_tick(box.queue);
	/* The invalidation arrives on the other connection; the look is not answered. */
	box_turn(&box, 100 * MSEC);
	box_cut(&box, &server);
	WAIT(&box, box.n == 1);
	assert_memory_equal(box.msgs[0]->payload, "lost", 4);
	push("gone");
	box_deafen(&box);
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	WAIT(&box, server_int(&server, "LLEN orders") == 0);
	assert_int_equal(box.warnings, 0);
	box_cut(&box, &server);
	assert_int_equal(box.warnings, 1);
	assert_non_null(strstr(box.warning, "lost"));
	push("next");
	WAIT(&box, box.n == 1);
	assert_memory_equal(box.msgs[0]->payload, "next", 4);
}

/*
 * After a hang, Redis must not run a pop whose connection has ended.  A new timeout in the
 * configuration does not change that: it needs a restart.
 */
QUEUE_TEST(test_late)
{
	struct config *c = config_new();

	box.config->redis.timeout = 400 * MSEC;
	box_start(&box, 0);
	c->redis.timeout = HOUR;
	queue_reconfigure(box.queue, c, box.cfg);
	config_unref(c);
	push("x");
	box_turn(&box, 20 * MSEC);
	server_signal(&server, SIGSTOP);
	box_set_slots(&box, 1);
	WAIT(&box, box.fetched[FETCH_DOWN] > 0);
	box_turn(&box, 100 * MSEC);
	server_signal(&server, SIGCONT);
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	queue_reconfigure(box.queue, box.config, box.cfg);
}

QUEUE_TEST(test_cut)
{
	box_start(&box, 1);
	box_cut(&box, &server);
	server_do(&server, "FLUSHALL");
	server_do(&server, "SCRIPT FLUSH");
	push("x");
	WAIT(&box, box.n == 1);
	server_do(&server, "FLUSHALL");
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	push("y");
	WAIT(&box, box.n == 1);
}

QUEUE_TEST(test_wrong_type)
{
	server_do(&server, "SET orders x");
	box.slots = 1;
	box_start(&box, 0);
	box_set_slots(&box, 1);
	WAIT(&box, box.fetched[FETCH_ERROR] == 1);
	assert_non_null(strstr(box.cause, "WRONGTYPE"));
	server_int(&server, "DEL orders");
	push("x");
	WAIT(&box, box.n == 1);
}

/*
 * Redis refuses to take a message back: the queue warns once, keeps the message, and
 * pushes it back when that is permitted.
 */
QUEUE_TEST(test_denied)
{
	push("x");
	box_take(&box, 1);
	server_do(&server, "ACL SETUSER default -rpush");
	box_set_slots(&box, 0);
	box_settle(&box, 0, VERDICT_RETURN, false, 0);
	WAIT(&box, box.warnings == 1);
	assert_non_null(strstr(box.warning, "NOPERM"));
	server_do(&server, "ACL SETUSER default +rpush");
	WAIT(&box, box.settled[SETTLED_OK] == 1);
	assert_int_equal(server_int(&server, "LLEN orders"), 1);
	assert_int_equal(box.warnings, 1);
}

QUEUE_TEST(test_full)
{
	push_numbers(2);
	box_start(&box, 0);
	server_do(&server, "CONFIG SET maxmemory 1");
	box_set_slots(&box, 2);
	WAIT(&box, box.n == 2);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	server_do(&server, "CONFIG SET maxmemory 0");
}

/* The queue closes after all returned messages are back and the counters are written. */
QUEUE_TEST(test_close)
{
	push_numbers(3);
	box_take(&box, 3);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	queue_close(box.queue);
	box_settle(&box, 0, VERDICT_RETURN, false, 0);
	box_turn(&box, 20 * MSEC);
	assert_int_equal(box.closes, 0);
	box_settle(&box, 0, VERDICT_RETURN, false, 0);
	WAIT(&box, box.closes == 1);
	assert_int_equal(server_int(&server, "LLEN orders"), 2);
	assert_string_equal(server_do(&server, "HGET ordersSTATS acked"), "1");
	assert_string_equal(server_do(&server, "HGET ordersSTATS returned"), "2");
}

/*
 * Redis does not come back: the queue reports the message that it could not return as
 * given up.
 */
QUEUE_TEST(test_give_up)
{
	push_numbers(2);
	box_take(&box, 2);
	server_kill(&server);
	box_settle(&box, 0, VERDICT_RETURN, false, 0);
	queue_close(box.queue);
	box_turn(&box, 50 * MSEC);
	box_free_queue(&box);
	assert_int_equal(box.settled[SETTLED_GAVE_UP], 1);
}
