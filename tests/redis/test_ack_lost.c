/*
 * Kind "ack": messages while the connection is cut and replies are lost.
 */
#include "box.h"

#include <signal.h>

/* Waits in Redis, without turning the loop. */
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
	for (i = 0; i < 5; i++) {
		assert_int_equal(atoi(box.msgs[i]->id), i);
		assert_int_equal(box.msgs[i]->attempts, 0);
		assert_int_equal(box.msgs[i]->crashes, 0);
	}
	/* With fewer slots than messages found, the rest waits. */
	box_ack_until(&box, 7);
	WAIT(&box, box.settled[SETTLED_OK] == 7);
	assert_int_equal(keys(), 0);
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
	/* A message that was not handed out goes back when the queue is closed. */
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

/* Found and not wanted: after a while others may have it. */
FIXTURE_TEST(test_lost_pop_unwanted)
{
	box.cfg->lease = 900 * MSEC;
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
 * A server that hung finds the old connection's pop and the new one's question
 * in any order.  Either way the message is run soon, and no lease is waited for.
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

/* Results are kept while Redis is away. */
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

/* Others may soon take what looks expired: its own leases come first. */
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
	assert_true(clock_mono() - began < 9 * SEC);	/* by itself after 10 s */
}

/* A tick whose answer was lost may have counted: it is not counted again. */
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
	WAIT(&box, memcmp(box.stats.n, box.stats.sent, sizeof(box.stats.n)) == 0);
	assert_string_equal(server_do(&server, "HGET ordersSTATS timeouts"), "6");
}

/* The dead letter could not be written, and that answer was lost: there is none to count. */
FIXTURE_TEST(test_lost_deferred)
{
	push("{\"id\":1}");
	box_take(&box, 1);
	box_set_slots(&box, 0);
	server_do(&server, "SET ordersDEAD x");
	box_deafen(&box);
	box_settle(&box, 0, VERDICT_DEAD, true, 0);
	box_turn(&box, 50 * MSEC);
	box_cut(&box, &server);
	WAIT(&box, total_settled(&box) == 1);
	assert_int_equal(box.last_settled, SETTLED_DEFERRED);
}

/* A dead letter whose answer was lost, and a message with the same id since. */
FIXTURE_TEST(test_lost_letter)
{
	push("{\"id\":1}");
	box_take(&box, 1);
	box_set_slots(&box, 0);
	box_deafen(&box);
	box_settle(&box, 0, VERDICT_DEAD, true, 0);
	box_turn(&box, 50 * MSEC);
	server_do(&server, "HSET ordersCONTEXT 1 {\"id\":1,\"x\":1}");
	server_do(&server, "HSET ordersDELIVERY 1 %s", "0 0 b.1.1 1.5 1");
	server_do(&server, "ZADD ordersBACKUP 1999999999 1");
	box_cut(&box, &server);
	WAIT(&box, total_settled(&box) == 1);
	assert_int_equal(box.last_settled, SETTLED_OK);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 1);
}

/*
 * Connections cut at random: every message is acked, none is delivered twice
 * without a failure or a return, because what was in doubt is asked for.
 */
FIXTURE_TEST(test_storm)
{
	enum { N = 1500 };
	static unsigned char begun[N];
	unsigned i, acked = 0, expected = 0;

	memset(begun, 0, sizeof(begun));
	for (i = 0; i < N; i++)
		server_int(&server, "LPUSH orders {\"id\":%u}", i);
	box_start(&box, 40);
	while (acked < N) {
		for (i = (unsigned)unit_below(8); i > 0 && box.n > 0; i--) {
			unsigned at = (unsigned)unit_below(box.n),
			    id = (unsigned)atoi(box.msgs[at]->id);
			bool ack = unit_below(4) != 0, failed = unit_below(2) == 0;
			assert_in_range(begun[id], 0, 200);
			if (ack) {
				acked++;
				assert_int_not_equal(begun[id], 255);
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
	assert_int_equal(acked, N);
	print_message("# %u deliveries, %u connections\n", expected, box.ups);
	WAIT(&box, server_int(&server,
	    "EXISTS orders ordersBACKUP ordersRETRY ordersCONTEXT ordersDELIVERY") == 0);
}
