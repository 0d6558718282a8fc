/*
 * Kind "ack": what becomes of messages whatever happens to the connection, the
 * server, and other daemons.
 */
#include "box.h"

#include <signal.h>

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

/* Others may soon take what looks expired: its own leases come first. */
static void
test_renewed_at_once(void **state)
{
	double before;
	usec_t began;

	(void)state;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	before = atof(server_do(&server, "ZSCORE ordersBACKUP 1"));
	box_turn(&box, 20 * MSEC);
	began = clock_mono();
	box_cut(&box, &server);
	WAIT(&box, atof(server_do(&server, "ZSCORE ordersBACKUP 1")) > before);
	assert_true(clock_mono() - began < 7 * SEC);	/* by itself after 10 s */
}

/* What has a result that Redis refuses is not left to its lease. */
static void
test_renewed_while_refused(void **state)
{
	double before;

	(void)state;
	box.cfg->lease = 900 * MSEC;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	box_set_slots(&box, 0);
	server_do(&server, "ACL SETUSER default -zrem");
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	WAIT(&box, box.warnings > 0);
	before = atof(server_do(&server, "ZSCORE ordersBACKUP 1"));
	WAIT(&box, atof(server_do(&server, "ZSCORE ordersBACKUP 1")) > before + 1);
	assert_int_equal(total_settled(&box), 0);
	server_do(&server, "ACL SETUSER default +zrem");
	WAIT(&box, box.settled[SETTLED_OK] == 1);
	assert_int_equal(keys(), 0);
}

/* A tick whose answer was lost may have counted: it is not counted again. */
static void
test_lost_tick(void **state)
{
	int i;

	(void)state;
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

/* -- other daemons ---------------------------------------------------------- */

static void
two_boxes(struct box *other, unsigned slots, usec_t lease)
{
	box.cfg->lease = box.cfg->foreign_timeout = lease;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
	box_init(other, &server, "b");
	other->cfg->lease = other->cfg->foreign_timeout = lease;
	box_start(other, slots);
}

/* box hangs; its lease ends, and the other one takes the message. */
static void
test_expiry(void **state)
{
	struct box *other = xcalloc(1, sizeof(*other));

	(void)state;
	two_boxes(other, 1, 600 * MSEC);
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
	two_boxes(other, 0, 600 * MSEC);
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
	two_boxes(other, 1, 1500 * MSEC);
	for (end = clock_mono() + 5 * SEC; clock_mono() < end;) {
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

/* Refused results keep their slots: no more is popped than slots are left. */
static void
test_refused_keep_slots(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 20; i++)
		server_int(&server, "LPUSH orders {\"id\":%u}", i);
	box.cfg->concurrency = 4;
	box_start(&box, 4);
	WAIT(&box, box.n == 4);
	server_do(&server, "ACL SETUSER default -hdel");
	/* One pop may leave with the first result. */
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	WAIT(&box, box.warnings == 1);
	while (box.n > 0) {
		box_settle(&box, 0, VERDICT_ACK, false, 0);
		box_turn(&box, 100 * MSEC);
	}
	while (box.n > 0)
		box_settle(&box, 0, VERDICT_ACK, false, 0);
	box_turn(&box, 500 * MSEC);
	assert_in_range(box.delivered, 4, 5);
	assert_int_equal(box.warnings, 1);
	assert_non_null(strstr(box.warning, "settle: "));
	server_do(&server, "ACL SETUSER default +hdel");
	WAIT(&box, box.settled[SETTLED_OK] == box.delivered - 4 && box.n == 4);
	WAIT(&box, box.warnings == 2);
	assert_non_null(strstr(box.warning, "accepts"));
}

/* A whole call that is refused: likewise. */
static void
test_refused_calls_keep_slots(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 20; i++)
		server_int(&server, "LPUSH orders {\"id\":%u}", i);
	box.cfg->concurrency = 4;
	box_start(&box, 4);
	WAIT(&box, box.n == 4);
	server_do(&server, "ACL SETUSER default -zcard");
	while (box.n > 0)
		box_settle(&box, 0, VERDICT_ACK, false, 0);
	box_turn(&box, 500 * MSEC);
	server_do(&server, "ACL SETUSER default +zcard");
	box_turn(&box, 10 * MSEC);
	assert_in_range(box.delivered, 4, 8);
	WAIT(&box, box.settled[SETTLED_OK] >= 4 && box.n == 4);
}

/* One result that Redis does not take holds up no other one, nor the queue. */
static void
test_refused_one(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 20; i++)
		server_int(&server, "LPUSH orders {\"id\":%u}", i);
	box.cfg->concurrency = 4;
	box_start(&box, 4);
	WAIT(&box, box.n == 4);
	/* A retry needs it, neither an ack nor the pop of a new message does. */
	server_do(&server, "ACL SETUSER default -hstrlen");
	box_settle(&box, 0, VERDICT_RETRY, true, 0);
	for (i = 0; i < 12; i++) {
		WAIT(&box, box.n >= 1);
		box_settle(&box, 0, VERDICT_ACK, false, 0);
		WAIT(&box, box.settled[SETTLED_OK] == i + 1);
	}
	assert_int_equal(box.warnings, 1);
	server_do(&server, "ACL SETUSER default +hstrlen");
	WAIT(&box, box.settled[SETTLED_OK] == 13);
	WAIT(&box, box.warnings == 2);
}

/* A pop that fails after it has taken something: that is asked for, and run. */
static void
test_pop_fails_in_the_middle(void **state)
{
	(void)state;
	box_start(&box, 1);
	server_do(&server, "ACL SETUSER default -ltrim");
	push("{\"id\":1}");
	WAIT(&box, box.fetched[FETCH_ERROR] > 0);
	box_turn(&box, 50 * MSEC);
	server_do(&server, "ACL SETUSER default +ltrim");
	WAIT(&box, box.n == 1);
	assert_int_equal(box.msgs[0]->crashes, 0);
	while (box.n > 0) {
		finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
		box_turn(&box, 100 * MSEC);
		assert_true(box.n == 0 || box.msgs[0]->crashes == 0);
	}
	assert_false(left_over());
}

/* What a pop was refused for once does not hide what is wrong later. */
static void
test_pop_error_over(void **state)
{
	(void)state;
	box_start(&box, 0);
	push("{\"id\":1}");
	server_do(&server, "CONFIG SET min-replicas-to-write 1");
	box_set_slots(&box, 1);
	WAIT(&box, box.fetched[FETCH_ERROR] > 0);
	assert_memory_equal(box.cause, "NOREPLICAS", 10);
	server_do(&server, "CONFIG SET min-replicas-to-write 0");
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	box_turn(&box, 50 * MSEC);
	box_deafen(&box);
	push("{\"id\":2}");
	while (server_int(&server, "LLEN orders") > 0)
		loop_turn(box.loop, 10 * MSEC);
	server_do(&server, "ACL SETUSER default -hstrlen");
	box_cut(&box, &server);
	WAIT(&box, strncmp(box.warning, "mine: ", 6) == 0);
	server_do(&server, "ACL SETUSER default +hstrlen");
	WAIT(&box, box.n == 1);
}

/* The dead letter could not be written, and that answer was lost: there is none to count. */
static void
test_lost_deferred(void **state)
{
	(void)state;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
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
static void
test_lost_letter(void **state)
{
	(void)state;
	push("{\"id\":1}");
	box_start(&box, 1);
	WAIT(&box, box.n == 1);
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

/* Its lease ended, another daemon has finished it: no second run, no letter. */
static void
test_gone(void **state)
{
	static const enum verdict_op ops[] = { VERDICT_RETRY, VERDICT_DEAD, VERDICT_RETURN, VERDICT_ACK };
	unsigned i;

	(void)state;
	box.cfg->lease = 900 * MSEC;
	box.cfg->concurrency = ARRAY_LEN(ops) + 1;
	for (i = 0; i <= ARRAY_LEN(ops); i++)
		server_int(&server, "LPUSH orders {\"id\":%u}", i);
	box_start(&box, ARRAY_LEN(ops) + 1);
	WAIT(&box, box.n == ARRAY_LEN(ops) + 1);
	box_set_slots(&box, 0);
	server_do(&server, "DEL ordersBACKUP ordersCONTEXT");
	for (i = 0; i <= ARRAY_LEN(ops); i++)
		server_do(&server, "HDEL ordersDELIVERY %u", i);
	for (i = 0; i < ARRAY_LEN(ops); i++)
		finish(&box, 0, ops[i], false, 0, SETTLED_STALE);
	WAIT(&box, box.losts == 1);
	finish(&box, 0, VERDICT_STALE, false, 0, SETTLED_STALE);
	assert_false(left_over());
	assert_int_equal(server_int(&server, "EXISTS orders ordersDEAD"), 0);
	/* And Redis need not remember us any more. */
	WAIT(&box, server_int(&server, "EXISTS ordersDELIVERY") == 0);
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
	WAIT(&box, keys() == 0);
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
	WAIT(&box, server_int(&server,
	    "EXISTS orders ordersBACKUP ordersRETRY ordersCONTEXT ordersDELIVERY") == 0);
}

/* -- a fleet ----------------------------------------------------------------- */

enum { FLEET = 3, FLEET_MESSAGES = 1000 };

static void
fleet_open(struct box *b, unsigned i)
{
	char name[8];

	snprintf(name, sizeof(name), "d%u", i);
	box_init(b, &server, name);
	b->cfg->lease = b->cfg->foreign_timeout = SEC;
	box_start(b, 5);
}

/*
 * Daemons that die with messages in hand, hang, and lose their connections; and
 * Redis' scripts are flushed.  Every message is acked, and nothing is left over.
 */
static void
test_fleet(void **state)
{
	static bool acked[FLEET_MESSAGES];
	struct box *fleet[FLEET];
	unsigned i, left = FLEET_MESSAGES, deaths = 0, again = 0;
	usec_t next = 0;

	(void)state;
	memset(acked, 0, sizeof(acked));
	for (i = 0; i < FLEET_MESSAGES; i++)
		server_int(&server, "LPUSH orders {\"id\":%u}", i);
	for (i = 0; i < FLEET; i++) {
		fleet[i] = xcalloc(1, sizeof(struct box));
		fleet_open(fleet[i], i);
	}
	while (left > 0) {
		struct box *b = fleet[unit_below(FLEET)];
		unsigned k, chance = (unsigned)unit_below(100);
		for (k = 0; k < b->n; k++) {
			int id = atoi(b->msgs[k]->id);
			if (unit_below(4) != 0)
				continue;
			if (unit_below(3) == 0) {
				box_settle(b, k, VERDICT_RETRY, true, unit_below(50) * MSEC);
				break;
			}
			again += acked[id];
			left -= !acked[id];
			acked[id] = true;
			box_settle(b, k, VERDICT_ACK, false, 0);
			break;
		}
		box_turn(b, (usec_t)unit_below(5) * MSEC);
		if (chance == 0 && deaths < 20) {
			deaths++;
			box_done(b);
			fleet_open(b, FLEET + deaths);
		} else if (chance < 4 && conn_is_ready(b->conn)) {
			server_do(&server, "CLIENT KILL ID %lld", (long long)conn_id(b->conn));
		} else if (chance == 4) {
			server_do(&server, "SCRIPT FLUSH");
		}
		if (clock_mono() > next) {
			for (i = 0; i < FLEET; i++)
				queue_tick(fleet[i]->queue);
			next = clock_mono() + 300 * MSEC;
		}
	}
	print_message("# %u deaths, %u acked again\n", deaths, again);
	/* What was delivered twice is done with, too. */
	for (next = clock_mono() + BOX_WAIT; (left_over() ||
	    server_int(&server, "EXISTS orders") > 0) && clock_mono() < next;) {
		for (i = 0; i < FLEET; i++) {
			while (fleet[i]->n > 0)
				box_settle(fleet[i], 0, VERDICT_ACK, false, 0);
			queue_tick(fleet[i]->queue);
			box_turn(fleet[i], 10 * MSEC);
		}
	}
	assert_true(clock_mono() < next);
	for (i = 0; i < FLEET; i++) {
		box_done(fleet[i]);
		free(fleet[i]);
	}
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_lost_pop), TEST(test_lost_pop_fewer_slots),
		TEST(test_lost_pop_unwanted), TEST(test_lost_pop_late),
		TEST(test_lost_settles), TEST(test_down), TEST(test_renewed_at_once),
		TEST(test_renewed_while_refused), TEST(test_lost_tick),
		TEST(test_expiry), TEST(test_taken_back), TEST(test_renewal),
		TEST(test_taken), TEST(test_foreign_expired), TEST(test_script_flush),
		TEST(test_wrong_type), TEST(test_wrong_type_delayed),
		TEST(test_wrong_type_backup), TEST(test_deferred), TEST(test_refused_keep_slots),
		TEST(test_refused_calls_keep_slots), TEST(test_refused_one),
		TEST(test_pop_fails_in_the_middle),
		TEST(test_lost_deferred), TEST(test_lost_letter), TEST(test_gone), TEST(test_readonly),
		TEST(test_maxmemory), TEST(test_noreplicas), TEST(test_storm), TEST(test_fleet),
		TEST(test_pop_error_over),
	};

	unit_seed();
	return cmocka_run_group_tests_name("ack_faults", tests, NULL, NULL);
}
