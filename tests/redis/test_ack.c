/*
 * Kind "ack" against a real Redis: what it delivers, and what becomes of
 * messages whatever happens to the connection, the server, and other daemons.
 */
#include "box.h"

#include <signal.h>

static struct server	server;
static struct box	box;

static int
setup(void **state)
{
	(void)state;
	server_start(&server, NULL);
	box_init(&box, &server, "a");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	box_done(&box);
	server_stop(&server);
	return 0;
}

static void
push(const char *payload)
{
	server_int(&server, "LPUSH orders %s", payload);
}

static long long
keys(void)
{
	return server_int(&server, "DBSIZE");
}

static unsigned
total_settled(const struct box *b)
{
	unsigned n = 0, i;

	for (i = 0; i <= SETTLED_GAVE_UP; i++)
		n += b->settled[i];
	return n;
}

/* The delivery with index i is over, and confirmed so. */
static void
finish(struct box *b, unsigned i, enum verdict_op op, bool failed, usec_t delay, enum settled how)
{
	unsigned before = total_settled(b);

	box_settle(b, i, op, failed, delay);
	WAIT(b, total_settled(b) == before + 1);
	assert_int_equal(b->last_settled, how);
}

/* -- the ordinary ----------------------------------------------------------- */

static void
test_ack(void **state)
{
	(void)state;
	push("{\"id\":7}");
	push("x\"y");
	box_start(&box, 5);
	WAIT(&box, box.n == 2);
	assert_string_equal(box.msgs[0]->id, "7");
	assert_string_equal(box.msgs[0]->tag, "7");
	assert_int_equal(box.msgs[0]->len, 8);
	assert_memory_equal(box.msgs[0]->payload, "{\"id\":7}", 8);
	assert_int_equal(box.msgs[1]->id[0], '~');
	assert_false(queue_is_empty(box.queue));
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(keys(), 0);
	WAIT(&box, queue_is_empty(box.queue));
}

static void
test_outcomes(void **state)
{
	usec_t began;

	(void)state;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	began = clock_mono();
	finish(&box, 0, VERDICT_RETRY, true, 200 * MSEC, SETTLED_OK);
	WAIT(&box, box.n == 1);
	assert_true(clock_mono() - began >= 200 * MSEC && clock_mono() - began < 2 * SEC);
	assert_int_equal(box.msgs[0]->attempts, 1);
	assert_int_equal(box.msgs[0]->crashes, 0);
	finish(&box, 0, VERDICT_RETURN, false, 0, SETTLED_OK);
	WAIT(&box, box.n == 1);
	assert_int_equal(box.msgs[0]->attempts, 1);
	finish(&box, 0, VERDICT_DEAD, true, 0, SETTLED_OK);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 1);
	assert_string_equal(server_do(&server, "EVAL %s 1 ordersDEAD",
	    "return table.concat(redis.call('XRANGE', KEYS[1], '-', '+')[1][2], ' ')"),
	    "id 1 message {\"id\":1} reason exit attempts 2 status 1 error oops host testhost");
	assert_int_equal(keys(), 1);
}

/* A message larger than message_max is not fetched, but can be buried. */
static void
test_too_large(void **state)
{
	(void)state;
	box.cfg->message_max = 10;
	push("0123456789012");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	assert_true(box.msgs[0]->too_large);
	assert_null(box.msgs[0]->payload);
	assert_int_equal(box.msgs[0]->len, 13);
	finish(&box, 0, VERDICT_DEAD, false, 0, SETTLED_OK);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 1);
}

/* Never more than asked for; in order. */
static void
test_slots(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 200; i++)
		server_int(&server, "LPUSH orders {\"id\":%d}", i);
	box_start(&box, 150);
	WAIT(&box, box.n == 150);
	box_turn(&box, 30 * MSEC);
	assert_int_equal(box.n, 150);
	for (i = 0; i < 150; i++)
		assert_int_equal(atoi(box.msgs[i]->id), i);
	assert_int_equal(server_int(&server, "LLEN orders"), 50);
	while (box.delivered < 200 || box.n > 0) {
		if (box.n > 0)
			box_settle(&box, 0, VERDICT_ACK, false, 0);
		else
			loop_turn(box.loop, SEC);
	}
	WAIT(&box, box.settled[SETTLED_OK] == 200);
	assert_int_equal(keys(), 0);
}

/* -- waking up -------------------------------------------------------------- */

static usec_t
lateness(void)
{
	unsigned before = box.delivered;
	usec_t pushed;

	box_turn(&box, 30 * MSEC);
	pushed = clock_mono();
	push("x");
	WAIT(&box, box.delivered == before + 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	return box.last_delivery - pushed;
}

static int
compare_usec(const void *a, const void *b)
{
	usec_t x = *(const usec_t *)a, y = *(const usec_t *)b;

	return x < y ? -1 : x > y;
}

static void
test_wake_up(void **state)
{
	usec_t late[31];
	size_t i;

	(void)state;
	box_start(&box, 1);
	for (i = 0; i < ARRAY_LEN(late); i++)
		late[i] = lateness();
	qsort(late, ARRAY_LEN(late), sizeof(late[0]), compare_usec);
	print_message("# push to delivery: median %lld us, worst %lld us\n",
	    (long long)late[15], (long long)late[30]);
	assert_true(late[15] < 50 * MSEC);
}

static void
test_wake_up_delayed(void **state)
{
	usec_t late[7];
	size_t i, k;

	(void)state;
	box_start(&box, 1);
	for (k = 0; k < 2; k++) {
		for (i = 0; i < ARRAY_LEN(late); i++) {
			unsigned before = box.delivered;
			usec_t pushed;
			box_turn(&box, 30 * MSEC);
			pushed = clock_mono();
			if (k == 0)
				server_do(&server, "EVAL %s 0",
				    "local t = redis.call('TIME')"
				    "redis.call('HSET', 'ordersCONTEXT', 'r', 'x')"
				    "redis.call('ZADD', 'ordersRETRY', t[1] + t[2] / 1e6 + 0.1, 'r')");
			else
				server_do(&server, "EVAL %s 0",
				    "local t = redis.call('TIME')"
				    "redis.call('ZADD', 'ordersDELAYED', t[1] + t[2] / 1e6 + 0.1, 'x')");
			WAIT(&box, box.delivered == before + 1);
			late[i] = box.last_delivery - pushed - 100 * MSEC;
			finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
		}
		qsort(late, ARRAY_LEN(late), sizeof(late[0]), compare_usec);
		print_message("# due in %s to delivery: median %lld us, worst %lld us\n",
		    k == 0 ? "QRETRY" : "QDELAYED", (long long)late[3], (long long)late[6]);
		assert_true(late[0] >= -MSEC);
		assert_true(late[3] < 50 * MSEC);
	}
}

/* An idle queue says nothing to Redis. */
static void
test_idle(void **state)
{
	long long before, after;

	(void)state;
	box_start(&box, 1);
	box_turn(&box, 200 * MSEC);
	server_do(&server, "CONFIG RESETSTAT");
	before = server_int(&server, "EVAL %s 0", "return 1");
	box_turn(&box, SEC);
	after = atoll(strstr(server_do(&server, "INFO stats"), "total_commands_processed:") + 25);
	assert_int_equal(before, 1);
	assert_in_range(after, 0, 3);
}

/* Not wanted: nothing is popped, nothing armed. */
static void
test_unwanted(void **state)
{
	(void)state;
	box_start(&box, 0);
	push("x");
	box_turn(&box, 100 * MSEC);
	assert_int_equal(box.readies, 0);
	box_set_slots(&box, 1);
	WAIT(&box, box.n == 1);
}

static void
test_polling(void **state)
{
	(void)state;
	server_do(&server, "ACL SETUSER default -client|tracking");
	box_start(&box, 1);
	assert_false(watch_is_on(box.watch));
	box_turn(&box, 100 * MSEC);
	push("x");
	WAIT(&box, box.n == 1);
}

static void
test_pause(void **state)
{
	(void)state;
	server_do(&server, "SET ordersPAUSED because");
	push("x");
	box_start(&box, 1);
	WAIT(&box, box.paused);
	assert_string_equal(box.why, "because");
	push("y");
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.n, 0);
	server_do(&server, "DEL ordersPAUSED");
	WAIT(&box, box.n == 1 && !box.paused);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	box_turn(&box, 50 * MSEC);
	server_do(&server, "SET ordersPAUSED x PX 200");
	WAIT(&box, box.paused);
	push("z");
	WAIT(&box, box.n == 1 && !box.paused);
}

/* -- replies that never come ------------------------------------------------ */

/* Waits in Redis, without turning the loop. */
static void
wait_redis(const char *command, long long value)
{
	int i;

	for (i = 0; i < 1000 && server_int(&server, command) != value; i++)
		usleep(5000);
	assert_int_equal(server_int(&server, command), value);
}

static void
test_lost_pop(void **state)
{
	int i;

	(void)state;
	box_start(&box, 5);
	box_deafen(&box);
	for (i = 0; i < 7; i++)
		server_int(&server, "LPUSH orders {\"id\":%d}", i);
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
	while (box.n > 0 || box.delivered < 7) {
		if (box.n > 0)
			box_settle(&box, 0, VERDICT_ACK, false, 0);
		else
			loop_turn(box.loop, SEC);
	}
	WAIT(&box, box.settled[SETTLED_OK] == 7);
	assert_int_equal(keys(), 0);
}

static void
test_lost_pop_fewer_slots(void **state)
{
	int i;

	(void)state;
	box_start(&box, 5);
	box_deafen(&box);
	for (i = 0; i < 5; i++)
		server_int(&server, "LPUSH orders {\"id\":%d}", i);
	while (server_int(&server, "LLEN orders") > 0)
		loop_turn(box.loop, 10 * MSEC);
	box_set_slots(&box, 2);
	i = (int)server_int(&server, "ZCARD ordersBACKUP");
	box_cut(&box, &server);
	WAIT(&box, box.n == 2);
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.n, 2);
	assert_true(i >= 2);
	/* What was not handed out goes back when the queue is closed. */
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
static void
test_lost_pop_unwanted(void **state)
{
	(void)state;
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
static void
test_lost_pop_late(void **state)
{
	int i;

	(void)state;
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
	assert_int_equal(server_int(&server, "EXISTS orders ordersBACKUP ordersRETRY ordersDELIVERY"), 0);
}

static void
test_lost_settles(void **state)
{
	static const enum verdict_op ops[] = {
		VERDICT_ACK, VERDICT_RETRY, VERDICT_RETURN, VERDICT_DEAD
	};
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		server_int(&server, "LPUSH orders {\"id\":%d}", (int)i);
	box_start(&box, 4);
	WAIT(&box, box.n == 4);
	box_set_slots(&box, 0);
	box_turn(&box, 20 * MSEC);
	box_deafen(&box);
	for (i = 0; i < 4; i++)
		box_settle(&box, 0, ops[i], ops[i] == VERDICT_RETRY || ops[i] == VERDICT_DEAD, HOUR);
	while (server_int(&server, "ZCARD ordersBACKUP") > 0)
		loop_turn(box.loop, 10 * MSEC);
	assert_int_equal(total_settled(&box), 0);
	box_cut(&box, &server);
	WAIT(&box, total_settled(&box) == 4);
	assert_int_equal(box.settled[SETTLED_OK], 4);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 1);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 2);
	assert_int_equal(server_int(&server, "HLEN ordersCONTEXT"), 2);
}

/* Results are kept while Redis is away. */
static void
test_down(void **state)
{
	(void)state;
	push("{\"id\":1}");
	push("{\"id\":2}");
	box_start(&box, 2);
	WAIT(&box, box.n == 2);
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

/* -- a Redis that has lost its memory --------------------------------------- */

static void
test_rescue(void **state)
{
	static const enum verdict_op ops[] = {
		VERDICT_ACK, VERDICT_RETRY, VERDICT_RETURN, VERDICT_DEAD
	};
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		server_int(&server, "LPUSH orders {\"id\":%d}", (int)i);
	box_start(&box, 4);
	WAIT(&box, box.n == 4);
	server_kill(&server);
	box_turn(&box, 50 * MSEC);
	server_again(&server);
	WAIT(&box, box.ups == 2);
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.losts, 0);
	box_set_slots(&box, 0);
	for (i = 0; i < 4; i++)
		box_settle(&box, 0, ops[i], ops[i] == VERDICT_RETRY || ops[i] == VERDICT_DEAD, HOUR);
	WAIT(&box, total_settled(&box) == 4);
	assert_int_equal(box.settled[SETTLED_OK], 1);
	assert_int_equal(box.settled[SETTLED_RESCUED], 3);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 1);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 2);
	assert_string_equal(server_do(&server, "HGET ordersCONTEXT 1"), "{\"id\":1}");
	assert_memory_equal(server_do(&server, "HGET ordersDELIVERY 1"), "1 0 - ", 6);
	assert_memory_equal(server_do(&server, "HGET ordersDELIVERY 2"), "0 0 - ", 6);
}

/* Without a reconnect: nobody but an operator can have done it; the message is put back all the same. */
static void
test_flushall(void **state)
{
	(void)state;
	push("{\"id\":1}");
	push("{\"id\":2}");
	box_start(&box, 2);
	WAIT(&box, box.n == 2);
	server_do(&server, "FLUSHALL");
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_STALE);
	finish(&box, 0, VERDICT_RETRY, true, 0, SETTLED_RESCUED);
	WAIT(&box, box.n == 1);
	assert_string_equal(box.msgs[0]->id, "2");
	assert_int_equal(box.msgs[0]->attempts, 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(keys(), 0);
}

/* Another message has got the tag of one that Redis has lost. */
static void
test_usurped(void **state)
{
	(void)state;
	box.cfg->lease = 300 * MSEC;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	server_kill(&server);
	server_again(&server);
	server_do(&server, "ZADD ordersBACKUP 1e10 1");
	server_do(&server, "HSET ordersCONTEXT 1 other");
	server_do(&server, "HSET ordersDELIVERY 1 %s", "0 0 b.1.1 1.5 1");
	WAIT(&box, box.ups == 2);
	box_turn(&box, 500 * MSEC);
	assert_int_equal(box.losts, 0);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_RETRY, true, HOUR, SETTLED_RESCUED);
	assert_int_equal(server_int(&server, "HLEN ordersCONTEXT"), 2);
	assert_string_equal(server_do(&server, "HGET ordersCONTEXT 1"), "other");
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 1);
}

/* The same message runs elsewhere. */
static void
test_usurped_by_itself(void **state)
{
	(void)state;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	server_kill(&server);
	server_again(&server);
	server_do(&server, "ZADD ordersBACKUP 1e10 1");
	server_do(&server, "HSET ordersCONTEXT 1 {\"id\":1}");
	server_do(&server, "HSET ordersDELIVERY 1 %s", "0 0 b.1.1 1.5 1");
	WAIT(&box, box.losts == 1);
	assert_ptr_equal(box.lost, box.msgs[0]);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_STALE, false, 0, SETTLED_STALE);
	assert_int_equal(server_int(&server, "HLEN ordersCONTEXT"), 1);
}

/* -- other daemons ---------------------------------------------------------- */

static void
two_boxes(struct box *other, unsigned slots)
{
	box.cfg->lease = box.cfg->foreign_timeout = 600 * MSEC;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	box_init(other, &server, "b");
	other->cfg->lease = other->cfg->foreign_timeout = 600 * MSEC;
	box_start(other, slots);
}

/* box hangs; its lease ends, and the other one takes the message. */
static void
test_expiry(void **state)
{
	struct box *other = xcalloc(1, sizeof(*other));

	(void)state;
	two_boxes(other, 1);
	queue_tick(other->queue);
	WAIT(other, other->n == 1);
	assert_int_equal(other->requeued, 1);
	assert_int_equal(other->msgs[0]->crashes, 1);
	assert_int_equal(other->msgs[0]->attempts, 0);
	WAIT(&box, box.losts == 1);
	finish(&box, 0, VERDICT_STALE, false, 0, SETTLED_STALE);
	finish(other, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(server_int(&server, "EXISTS orders ordersBACKUP ordersRETRY ordersDELIVERY"), 0);
	box_done(other);
	free(other);
}

/* As long as nobody has taken it, it is still the first one's. */
static void
test_taken_back(void **state)
{
	struct box *other = xcalloc(1, sizeof(*other));

	(void)state;
	two_boxes(other, 0);
	queue_tick(other->queue);
	WAIT(other, other->requeued == 1);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 1);
	WAIT(&box, server_int(&server, "ZCARD ordersBACKUP") == 1);
	assert_int_equal(box.losts, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(server_int(&server, "EXISTS ordersBACKUP ordersRETRY ordersDELIVERY"), 0);
	box_done(other);
	free(other);
}

/* Renewed for as long as it is in hand. */
static void
test_renewal(void **state)
{
	struct box *other = xcalloc(1, sizeof(*other));
	usec_t end;

	(void)state;
	two_boxes(other, 1);
	for (end = clock_mono() + 3 * SEC; clock_mono() < end;) {
		box_turn(&box, 20 * MSEC);
		box_turn(other, 20 * MSEC);
		queue_tick(other->queue);
	}
	assert_int_equal(other->n + other->requeued, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	box_done(other);
	free(other);
}

/* A foreign consumer of the published convention has taken it. */
static void
test_taken(void **state)
{
	(void)state;
	box.cfg->lease = 300 * MSEC;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	server_do(&server, "ZREM ordersBACKUP 1");
	push("{\"id\":1}");
	WAIT(&box, box.losts == 1);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_STALE, false, 0, SETTLED_STALE);
	assert_int_equal(keys(), 1);
}

static void
test_foreign_expired(void **state)
{
	(void)state;
	box.cfg->lease = box.cfg->foreign_timeout = 300 * MSEC;
	server_do(&server, "ZADD ordersBACKUP 1000 9");
	server_do(&server, "HSET ordersCONTEXT 9 {\"id\":9}");
	server_do(&server, "ZADD ordersBACKUP 1000 nobody");
	box_start(&box, 1);
	box_turn(&box, 300 * MSEC);
	queue_tick(box.queue);
	WAIT(&box, box.n == 1);
	assert_string_equal(box.msgs[0]->id, "9");
	assert_int_equal(box.dropped, 1);
	assert_int_equal(box.requeued, 1);
}

/* -- refusals ---------------------------------------------------------------- */

static void
test_script_flush(void **state)
{
	int i;

	(void)state;
	box_start(&box, 3);
	for (i = 0; i < 30; i++) {
		server_do(&server, "SCRIPT FLUSH");
		push("x");
		WAIT(&box, box.n == 1);
		server_do(&server, "SCRIPT FLUSH");
		finish(&box, 0, i % 2 ? VERDICT_ACK : VERDICT_DEAD, false, 0, SETTLED_OK);
	}
	assert_int_equal(box.ups, 1);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 15);
}

static void
test_wrong_type(void **state)
{
	unsigned readies;

	(void)state;
	box_start(&box, 1);
	server_do(&server, "SET orders x");
	WAIT(&box, box.fetched[FETCH_ERROR] > 0);
	assert_memory_equal(box.cause, "WRONGTYPE", 9);
	readies = box.readies;
	box_turn(&box, 300 * MSEC);
	assert_in_range(box.readies - readies, 0, 2);
	server_do(&server, "DEL orders");
	push("x");
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
}

/* A key that only the arm script and the tick read: said once, and no spinning. */
static void
test_wrong_type_delayed(void **state)
{
	long long calls;

	(void)state;
	server_do(&server, "SET ordersDELAYED x");
	box_start(&box, 1);
	WAIT(&box, box.warnings > 0);
	server_do(&server, "CONFIG RESETSTAT");
	box_turn(&box, 500 * MSEC);
	calls = atoll(strstr(server_do(&server, "INFO stats"), "total_commands_processed:") + 25);
	assert_in_range(calls, 0, 30);
	assert_in_range(box.warnings, 1, 2);
	push("x");
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	server_do(&server, "DEL ordersDELAYED");
}

static void
test_wrong_type_backup(void **state)
{
	(void)state;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	server_do(&server, "RENAME ordersBACKUP saved");
	server_do(&server, "SET ordersBACKUP x");
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	WAIT(&box, box.warnings > 0);
	box_turn(&box, 100 * MSEC);
	assert_int_equal(total_settled(&box), 0);
	assert_int_equal(box.warnings, 1);
	server_do(&server, "RENAME saved ordersBACKUP");
	WAIT(&box, box.settled[SETTLED_OK] == 1);
	assert_int_equal(keys(), 0);
}

static void
test_deferred(void **state)
{
	(void)state;
	server_do(&server, "SET ordersDEAD x");
	push("{\"id\":1}");
	push("{\"id\":2}");
	box_start(&box, 2);
	WAIT(&box, box.n == 2);
	finish(&box, 0, VERDICT_DEAD, true, 0, SETTLED_DEFERRED);
	finish(&box, 0, VERDICT_DEAD, true, 0, SETTLED_DEFERRED);
	assert_int_equal(box.warnings, 1);
	assert_non_null(strstr(box.warning, "WRONGTYPE"));
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 2);
}

/* Demoted to a replica: another connection is sought; the result waits. */
static void
test_readonly(void **state)
{
	(void)state;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	server_do(&server, "REPLICAOF 127.0.0.1 1");
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	WAIT(&box, !conn_is_ready(box.conn));
	box_turn(&box, 100 * MSEC);
	assert_int_equal(total_settled(&box), 0);
	server_do(&server, "REPLICAOF NO ONE");
	WAIT(&box, box.settled[SETTLED_OK] == 1);
	assert_int_equal(keys(), 0);
}

static void
test_maxmemory(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 20; i++)
		server_int(&server, "LPUSH orders {\"id\":%d}", i);
	server_do(&server, "CONFIG SET maxmemory 100000");
	box_start(&box, 3);
	while (total_settled(&box) < 20) {
		if (box.n > 0)
			box_settle(&box, 0, box.n == 2 ? VERDICT_DEAD : VERDICT_ACK, false, 0);
		else
			loop_turn(box.loop, SEC);
	}
	assert_int_equal(box.settled[SETTLED_OK], 20);
	server_do(&server, "CONFIG SET maxmemory 0");
}

static void
test_noreplicas(void **state)
{
	(void)state;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	server_do(&server, "CONFIG SET min-replicas-to-write 1");
	box_settle(&box, 0, VERDICT_RETRY, true, 0);
	WAIT(&box, box.warnings > 0);
	box_turn(&box, 300 * MSEC);
	assert_int_equal(total_settled(&box), 0);
	assert_int_equal(box.warnings, 1);
	server_do(&server, "CONFIG SET min-replicas-to-write 0");
	WAIT(&box, box.settled[SETTLED_OK] == 1 && box.n == 1);
	assert_int_equal(box.msgs[0]->attempts, 1);
}

/* -- life --------------------------------------------------------------------- */

static void
test_close(void **state)
{
	(void)state;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	queue_close(box.queue);
	push("{\"id\":2}");
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.closes, 0);
	box_set_slots(&box, 0);
	box_settle(&box, 0, VERDICT_RETURN, false, 0);
	WAIT(&box, box.closes == 1);
	assert_int_equal(box.settled[SETTLED_OK], 1);
	/* The last counters are there. */
	assert_int_equal(server_int(&server, "EVAL %s 0", "return tonumber(redis.call('HGET', 'ordersSTATS', 'returned'))"), 1);
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.closes, 1);
}

static void
test_close_down(void **state)
{
	(void)state;
	push("{\"id\":1}");
	push("{\"id\":2}");
	box_start(&box, 2);
	WAIT(&box, box.n == 2);
	server_kill(&server);
	WAIT(&box, !conn_is_ready(box.conn));
	queue_close(box.queue);
	box_set_slots(&box, 0);
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	box_turn(&box, 100 * MSEC);
	assert_int_equal(box.closes, 0);
	box_free_queue(&box);
	assert_int_equal(box.settled[SETTLED_GAVE_UP], 1);
	assert_int_equal(total_settled(&box), 1);
}

/* Freed with everything on its way. */
static void
test_freed(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 30; i++)
		push("x");
	box.cfg->lease = 100 * MSEC;
	box_start(&box, 10);
	WAIT(&box, box.n == 10);
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	box_settle(&box, 0, VERDICT_DEAD, false, 0);
	loop_turn(box.loop, 0);
	queue_tick(box.queue);
	box_free_queue(&box);
	assert_int_equal(box.settled[SETTLED_GAVE_UP], 2);
	box_turn(&box, 50 * MSEC);
}

static void
test_stats(void **state)
{
	(void)state;
	push("x");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	box.stats.n[STAT_TIMEOUTS] = 5;
	box_turn(&box, 120 * MSEC);
	queue_tick(box.queue);
	WAIT(&box, memcmp(box.stats.n, box.stats.sent, sizeof(box.stats.n)) == 0);
	assert_string_equal(server_do(&server, "HGET ordersSTATS timeouts"), "5");
	assert_string_equal(server_do(&server, "HGET ordersSTATS acked"), "1");
	box_turn(&box, 120 * MSEC);
	queue_tick(box.queue);
	box_turn(&box, 50 * MSEC);
	assert_string_equal(server_do(&server, "HGET ordersSTATS timeouts"), "5");
}

static void
test_reconfigure(void **state)
{
	struct config *c = config_new();

	(void)state;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	c->redis.timeout = SEC;
	queue_reconfigure(box.queue, c, box.cfg);
	config_unref(c);
	assert_ptr_equal(box.msgs[0]->config, box.config);
	push("{\"id\":2}");
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&box, box.n == 1);
	assert_ptr_equal(box.msgs[0]->config, c);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	queue_reconfigure(box.queue, box.config, box.cfg);
}

/*
 * Connections cut at random: every message is acked, none is delivered twice
 * without a failure or a return, because what was in doubt is asked for.
 */
static void
test_storm(void **state)
{
	enum { N = 1500 };
	static unsigned char begun[N];
	unsigned i, acked = 0, expected = 0;

	(void)state;
	memset(begun, 0, sizeof(begun));
	for (i = 0; i < N; i++)
		server_int(&server, "LPUSH orders {\"id\":%u}", i);
	box_start(&box, 40);
	while (acked < N) {
		for (i = (unsigned)unit_below(8); i > 0 && box.n > 0; i--) {
			unsigned at = (unsigned)unit_below(box.n), id = (unsigned)atoi(box.msgs[at]->id);
			bool ack = unit_below(4) != 0, failed = unit_below(2) == 0;
			assert_in_range(begun[id], 0, 200);
			if (ack) {
				acked++;
				assert_int_not_equal(begun[id], 255);
				box_settle(&box, at, VERDICT_ACK, false, 0);
			} else {
				box_settle(&box, at, failed ? VERDICT_RETRY : VERDICT_RETURN, failed, 0);
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
	assert_int_equal(server_int(&server, "EXISTS orders ordersBACKUP ordersRETRY ordersCONTEXT ordersDELIVERY"), 0);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_ack), TEST(test_outcomes), TEST(test_too_large), TEST(test_slots),
		TEST(test_wake_up), TEST(test_wake_up_delayed), TEST(test_idle),
		TEST(test_unwanted), TEST(test_polling), TEST(test_pause),
		TEST(test_lost_pop), TEST(test_lost_pop_fewer_slots),
		TEST(test_lost_pop_unwanted), TEST(test_lost_pop_late), TEST(test_lost_settles),
		TEST(test_down), TEST(test_rescue), TEST(test_flushall), TEST(test_usurped),
		TEST(test_usurped_by_itself), TEST(test_expiry), TEST(test_taken_back),
		TEST(test_renewal), TEST(test_taken), TEST(test_foreign_expired),
		TEST(test_script_flush), TEST(test_wrong_type), TEST(test_wrong_type_delayed),
		TEST(test_wrong_type_backup), TEST(test_deferred), TEST(test_readonly),
		TEST(test_maxmemory), TEST(test_noreplicas), TEST(test_close),
		TEST(test_close_down), TEST(test_freed), TEST(test_stats),
		TEST(test_reconfigure), TEST(test_storm),
	};

	unit_seed();
	return cmocka_run_group_tests_name("ack", tests, NULL, NULL);
}
