/*
 * Kind "ack": the connection is cut, replies are lost, Redis forgets messages.
 */
#include "box.h"

#include <signal.h>

/* Waits until Redis answers the command with this value; does not turn the loop. */
static void
wait_redis(const char *command, long long value)
{
	int i;

	for (i = 0; i < 1000 && server_int(&server, command) != value; i++)
		usleep(5000);
	assert_int_equal(server_int(&server, command), value);
}

FIXTURE_TEST(test_lost_pop)
{
	int i;

	box_start(&box, 5);
	box_deafen(&box);
	push_numbers(7);
	while (server_int(&server, "LLEN orders") == 7)
		loop_turn(box.loop, 10 * MSEC);
	wait_redis("ZCARD ordersBACKUP", 5);
	assert_int_equal(box.n, 0);
	box_cut(&box, &server);
	WAIT(&box, box.n == 5);
	/* They and those that are still in the list take turns. */
	for (i = 0; i < 5; i++) {
		assert_int_equal(box.msgs[i]->attempts, 0);
		assert_int_equal(box.msgs[i]->crashes, 0);
	}
	box_ack_until(&box, 7);
	WAIT(&box, box.settled[SETTLED_OK] == 7);
	assert_int_equal(keys(), 0);
}

/*
 * After the third loss of a large message the daemon lets others go first: it used to take the
 * message again before any other, until that was a dead letter.
 */
FIXTURE_TEST(test_lost_pop_others_first)
{
	static char large[70000];
	usec_t before = 0;

	memset(large, 'x', sizeof(large) - 1);
	box_start(&box, 0);
	push(large);
	for (int i = 0; i < 3; i++) {
		box_deafen(&box);
		box_set_slots(&box, 1);
		while (server_int(&server, "ZCARD ordersBACKUP") == 0)
			loop_turn(box.loop, 10 * MSEC);
		box_set_slots(&box, 0);
		before = clock_mono();
		box_cut(&box, &server);
		WAIT(&box, server_int(&server, "ZCARD ordersRETRY") == 1);
	}
	box_set_slots(&box, 1);
	WAIT(&box, box.n == 1);
	assert_true(clock_mono() - before >= SEC);
	assert_int_equal(box.msgs[0]->crashes, 1);
	box_ack_until(&box, 1);
}

FIXTURE_TEST(test_lost_pop_fewer_slots)
{
	int i;

	box_start(&box, 5);
	box_deafen(&box);
	push_numbers(5);
	while (server_int(&server, "LLEN orders") > 0)
		loop_turn(box.loop, 10 * MSEC);
	box_set_slots(&box, 2);
	i = (int)server_int(&server, "ZCARD ordersBACKUP");
	box_cut(&box, &server);
	WAIT(&box, box.n == 2);
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.n, 2);
	assert_true(i >= 2);
	/*
	 * When the queue is closed, it returns the messages that it has not handed out.
	 */
	box_set_slots(&box, 0);
	queue_close(box.queue);
	box_turn(&box, 100 * MSEC);
	assert_int_equal(box.closes, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&box, box.closes == 1);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY") +
	    server_int(&server, "LLEN orders"), 3);
	assert_int_equal(server_int(&server, "ZCARD ordersBACKUP"), 0);
}

/*
 * The reply of a pop is lost, and the engine wants nothing any more.  After a while the
 * queue returns the message, so that other daemons can take it.
 */
FIXTURE_TEST(test_lost_pop_unwanted)
{
	box.cfg->lease = 3 * SEC;
	box_start(&box, 1);
	box_deafen(&box);
	push("{\"id\":1}");
	while (server_int(&server, "LLEN orders") > 0)
		loop_turn(box.loop, 10 * MSEC);
	box_set_slots(&box, 0);
	box_cut(&box, &server);
	WAIT(&box, server_int(&server, "ZCARD ordersRETRY") == 1);
	assert_memory_equal(server_do(&server, "HGET ordersDELIVERY 1"), "0 0 - ", 6);
	assert_int_equal(total_settled(&box), 0);
	box_set_slots(&box, 1);
	WAIT(&box, box.n == 1);
	assert_int_equal(box.msgs[0]->crashes, 0);
}

/*
 * After a hang, Redis may run the old connection's pop after the new connection has asked
 * what the pop took.  In either order the message is delivered before its lease ends.
 */
FIXTURE_TEST(test_lost_pop_late)
{
	int i;

	box.config->redis.timeout = 400 * MSEC;
	box_start(&box, 0);
	for (i = 0; i < 10; i++) {
		push("{\"id\":1}");
		box_turn(&box, 20 * MSEC);
		server_signal(&server, SIGSTOP);
		box_set_slots(&box, 1);
		box_turn(&box, 10 * MSEC);
		conn_reset(box.conn, "test");
		box_turn(&box, 50 * MSEC);
		server_signal(&server, SIGCONT);
		WAIT(&box, box.n == 1);
		assert_int_equal(box.msgs[0]->crashes, 0);
		assert_int_equal(box.msgs[0]->attempts, 0);
		box_set_slots(&box, 0);
		finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	}
	WAIT(&box, server_int(&server,
	    "EXISTS orders ordersBACKUP ordersRETRY ordersDELIVERY") == 0);
}

FIXTURE_TEST(test_lost_settles)
{
	push_numbers(5);
	box_take(&box, 5);
	box_set_slots(&box, 0);
	box_turn(&box, 20 * MSEC);
	box_deafen(&box);
	box_settle_each_way(&box);
	while (server_int(&server, "ZCARD ordersBACKUP") > 0)
		loop_turn(box.loop, 10 * MSEC);
	assert_int_equal(total_settled(&box), 0);
	box_cut(&box, &server);
	WAIT(&box, total_settled(&box) == 5);
	assert_int_equal(box.settled[SETTLED_OK], 5);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 1);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 3);
	assert_int_equal(server_int(&server, "HLEN ordersCONTEXT"), 3);
	assert_memory_equal(server_do(&server, "HGET ordersDELIVERY 4"), "0 0 - ", 6);
}

/* Redis has forgotten the deliveries: their results are stale, and nothing is written. */
FIXTURE_TEST(test_forgotten)
{
	push_numbers(5);
	box_take(&box, 5);
	server_do(&server, "FLUSHALL");
	box_set_slots(&box, 0);
	box_settle_each_way(&box);
	WAIT(&box, total_settled(&box) == 5);
	assert_int_equal(box.settled[SETTLED_STALE], 5);
	assert_int_equal(keys(), 0);
	push("{\"id\":9}");
	box_set_slots(&box, 1);
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(keys(), 0);
}

/* The same, and the replies of results that had acted are lost: they count as done. */
FIXTURE_TEST(test_forgotten_in_doubt)
{
	push_numbers(5);
	box_take(&box, 5);
	box_set_slots(&box, 0);
	box_turn(&box, 20 * MSEC);
	box_deafen(&box);
	box_settle_each_way(&box);
	while (server_int(&server, "ZCARD ordersBACKUP") > 0)
		loop_turn(box.loop, 10 * MSEC);
	server_do(&server, "FLUSHALL");
	box_cut(&box, &server);
	WAIT(&box, total_settled(&box) == 5);
	assert_int_equal(box.settled[SETTLED_OK], 5);
	assert_int_equal(keys(), 0);
}

/*
 * Redis comes back empty, and another message has the tag of one that runs: the queue
 * reports its messages as lost, and leaves the other message alone.
 */
FIXTURE_TEST(test_forgotten_while_running)
{
	push_numbers(2);
	box_take(&box, 2);
	server_kill(&server);
	server_again(&server);
	server_do(&server, "ZADD ordersBACKUP 1e10 1");
	server_do(&server, "HSET ordersCONTEXT 1 other");
	server_do(&server, "HSET ordersDELIVERY 1 %s", "0 0 b.1.1 1.5 1");
	WAIT(&box, box.losts == 2);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_STALE, false, 0, SETTLED_STALE);
	finish(&box, 0, VERDICT_STALE, false, 0, SETTLED_STALE);
	assert_string_equal(server_do(&server, "HGET ordersCONTEXT 1"), "other");
	assert_int_equal(keys(), 3);
}

/* The queue keeps results while Redis does not answer. */
FIXTURE_TEST(test_down)
{
	push("{\"id\":1}");
	push("{\"id\":2}");
	box_take(&box, 2);
	server_signal(&server, SIGSTOP);
	conn_reset(box.conn, "test");
	box_turn(&box, 20 * MSEC);
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	box_settle(&box, 0, VERDICT_RETRY, true, 0);
	box_turn(&box, 100 * MSEC);
	assert_int_equal(total_settled(&box), 0);
	server_signal(&server, SIGCONT);
	WAIT(&box, box.settled[SETTLED_OK] == 2 && box.n == 1);
	assert_int_equal(box.msgs[0]->attempts, 1);
}

/* -- texts that handlers save --------------------------------------------------------------- */

static void
save(const char *text)
{
	queue_save(box.queue, box.msgs[0], text, strlen(text));
}

static long long
hset_calls(void)
{
	const char *at = strstr(server_do(&server, "INFO commandstats"), "cmdstat_hset:calls=");

	assert_non_null(at);
	return atoll(strchr(at, '=') + 1);
}

/* Saves texts while Redis is stopped, each after the time in which one is written. */
static void
save_three(void)
{
	push("{\"id\":1}");
	box.config->redis.timeout = MINUTE;
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	box_set_slots(&box, 0);
	box_turn(&box, 20 * MSEC);
	server_signal(&server, SIGSTOP);
	save("one");
	box_turn(&box, 120 * MSEC);
	save("two");
	box_turn(&box, 120 * MSEC);
	save("three");
	box_turn(&box, 120 * MSEC);
}

static void
expect_three(void)
{
	box_set_slots(&box, 1);
	WAIT(&box, box.n == 1);
	assert_string_equal(box.msgs[0]->saved, "three");
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(keys(), 0);
}

/* While a text is on its way, others wait for its answer; then the last of them is sent. */
FIXTURE_TEST(test_save_one_at_a_time)
{
	save_three();
	server_signal(&server, SIGCONT);
	WAIT(&box, strcmp(server_do(&server, "HGET ordersCONTEXT %b", "1\0saved", (size_t)7),
	    "three") == 0);
	/* Two for the pop, and two for each of two texts; a slow machine may send only one. */
	assert_in_range(hset_calls(), 4, 6);
	finish(&box, 0, VERDICT_RETURN, false, 0, SETTLED_OK);
	expect_three();
}

/* A result takes the last text with it, even if no answer to the first one has come. */
FIXTURE_TEST(test_save_and_settle)
{
	save_three();
	box_settle(&box, 0, VERDICT_RETURN, false, 0);
	box_turn(&box, 20 * MSEC);
	server_signal(&server, SIGCONT);
	WAIT(&box, box.settled[SETTLED_OK] == 1);
	expect_three();
}

/*
 * The answer to a text is lost: the last text is written by the next connection, and by the
 * result, since the lost one may still arrive.
 */
FIXTURE_TEST(test_save_lost)
{
	save_three();
	conn_reset(box.conn, "test");
	box_turn(&box, 20 * MSEC);
	server_signal(&server, SIGCONT);
	WAIT(&box, strcmp(server_do(&server, "HGET ordersCONTEXT %b", "1\0saved", (size_t)7),
	    "three") == 0);
	/* Now the first one comes. */
	box_turn(&box, 20 * MSEC);
	(void)server_do(&server, "HSET ordersCONTEXT %b one", "1\0saved", (size_t)7);
	finish(&box, 0, VERDICT_RETURN, false, 0, SETTLED_OK);
	expect_three();
}

/*
 * After a reconnect the queue renews its leases at once: other daemons may soon requeue
 * messages whose leases have ended.
 */
FIXTURE_TEST(test_renewed_at_once)
{
	double before;
	usec_t began;

	push("{\"id\":1}");
	box_take(&box, 1);
	before = atof(server_do(&server, "ZSCORE ordersBACKUP 1"));
	box_turn(&box, 20 * MSEC);
	began = clock_mono();
	box_cut(&box, &server);
	WAIT(&box, atof(server_do(&server, "ZSCORE ordersBACKUP 1")) > before);
	assert_true(clock_mono() - began < 9 * SEC);	/* otherwise it renews after 10 s */
}

/*
 * If the reply of a tick is lost, Redis may have added its counters: the queue does not
 * send them again.
 */
FIXTURE_TEST(test_lost_tick)
{
	int i;

	box_start(&box, 1);
	box.stats.n[STAT_TIMEOUTS] = 5;
	box_turn(&box, 120 * MSEC);
	box_deafen(&box);
	queue_tick(box.queue);
	box_turn(&box, 20 * MSEC);
	for (i = 0; i < 1000 && atoi(server_do(&server, "HGET ordersSTATS timeouts")) != 5; i++)
		usleep(5000);
	box_cut(&box, &server);
	box.stats.n[STAT_TIMEOUTS] = 6;
	box_turn(&box, 120 * MSEC);
	queue_tick(box.queue);
	WAIT(&box, atoi(server_do(&server, "HGET ordersSTATS timeouts")) > 5);
	assert_string_equal(server_do(&server, "HGET ordersSTATS timeouts"), "6");
}

/*
 * The reply of a dead letter is lost, and another message with the same id is delivered
 * meanwhile.  The queue reports the dead letter as written, and writes it once.
 */
FIXTURE_TEST(test_lost_letter)
{
	push("{\"id\":1}");
	box_take(&box, 1);
	box_set_slots(&box, 0);
	box_deafen(&box);
	box_settle(&box, 0, VERDICT_DEAD, true, 0);
	WAIT(&box, server_int(&server, "XLEN ordersDEAD") == 1);
	server_do(&server, "HSET ordersCONTEXT 1 {\"id\":1,\"x\":1}");
	server_do(&server, "HSET ordersDELIVERY 1 %s", "0 0 b.1.1 1.5 1");
	server_do(&server, "ZADD ordersBACKUP 1999999999 1");
	box_cut(&box, &server);
	WAIT(&box, total_settled(&box) == 1);
	assert_int_equal(box.last_settled, SETTLED_OK);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 1);
}

enum { STORM = 1500 };

static enum { STORM_WAITS, STORM_RUNS, STORM_ACKED } storm[STORM];

static void
storm_deliver(struct box *b UNUSED, const struct message *m)
{
	unsigned id = (unsigned)atoi(m->id);

	assert_in_range(id, 0, STORM - 1);
	if (storm[id] != STORM_WAITS)
		fail_msg("message %u comes again: it %s", id,
		    storm[id] == STORM_RUNS ? "is in flight" : "was acked");
	storm[id] = STORM_RUNS;
}

/*
 * Connections are cut at random: all messages are acked, and none is delivered again unless
 * it failed or was returned, because the queue asks Redis for what is unknown.
 */
FIXTURE_TEST(test_storm)
{
	unsigned i, acked = 0, expected = 0;

	memset(storm, 0, sizeof(storm));
	box.on_deliver = storm_deliver;
	for (i = 0; i < STORM; i++)
		server_int(&server, "LPUSH orders {\"id\":%u}", i);
	box_start(&box, 40);
	while (acked < STORM) {
		for (i = (unsigned)unit_below(8); i > 0 && box.n > 0; i--) {
			unsigned at = (unsigned)unit_below(box.n),
			    id = (unsigned)atoi(box.msgs[at]->id);
			bool ack = unit_below(4) != 0, failed = unit_below(2) == 0;
			storm[id] = ack ? STORM_ACKED : STORM_WAITS;
			if (ack) {
				acked++;
				box_settle(&box, at, VERDICT_ACK, false, 0);
			} else {
				box_settle(&box, at, failed ? VERDICT_RETRY : VERDICT_RETURN,
				    failed, 0);
			}
			expected++;
		}
		if (unit_below(60) == 0 && conn_is_ready(box.conn))
			server_do(&server, "CLIENT KILL ID %lld", (long long)conn_id(box.conn));
		loop_turn(box.loop, unit_below(3) * MSEC);
		assert_int_equal(box.losts, 0);
	}
	WAIT(&box, total_settled(&box) == expected);
	assert_int_equal(box.settled[SETTLED_OK], expected);
	assert_int_equal(box.n, 0);
	print_message("# %u deliveries, %u connections\n", expected, box.ups);
	WAIT(&box, server_int(&server,
	    "EXISTS orders ordersBACKUP ordersRETRY ordersCONTEXT ordersDELIVERY") == 0);
}
