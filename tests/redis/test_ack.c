/*
 * Kind "ack" against a real Redis: its deliveries, and their times.
 */
#include "box.h"

#include <signal.h>

#include "queue/leased.h"

/* -- deliveries and outcomes ---------------------------------------------- */

FIXTURE_TEST(test_ack)
{
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

FIXTURE_TEST(test_outcomes)
{
	usec_t began;

	push("{\"id\":1}");
	box_take(&box, 1);
	began = clock_mono();
	finish(&box, 0, VERDICT_RETRY, true, 200 * MSEC, SETTLED_OK);
	WAIT(&box, box.n == 1);
	assert_true(clock_mono() - began >= 200 * MSEC && clock_mono() - began < 15 * SEC);
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

static void
count(void *arg)
{
	++*(unsigned *)arg;
}

/* The letter of the last message that was taken, which ends with this result. */
static const char *
letter_of(struct result *r, enum reason reason)
{
	struct verdict v = { .op = VERDICT_DEAD, .failed = true, .reason = reason };

	server_do(&server, "DEL ordersDEAD");
	queue_settle(box.queue, box.msgs[--box.n], &v, r);
	WAIT(&box, server_int(&server, "XLEN ordersDEAD") == 1);
	return server_do(&server, "EVAL %s 1 ordersDEAD",
	    "local f = redis.call('XRANGE', KEYS[1], '-', '+')[1][2] "
	    "return table.concat({ f[6], f[10], f[12] }, '|')");
}

/* What has killed a run for memory is not in what it has printed, if that is nothing. */
FIXTURE_TEST(test_killed_for_memory)
{
	push_numbers(3);
	box_take(&box, 3);
	assert_string_equal(letter_of(&(struct result){ .end = END_SIGNAL, .signo = SIGKILL,
	    .oom = true }, REASON_OOM),
	    "oom|oom|killed for memory: the run needs more than memory_max");
	assert_string_equal(letter_of(&(struct result){ .end = END_SIGNAL, .signo = SIGKILL,
	    .oom = true, .error_tail = xstrdup("loading\n"), .error_len = 8 }, REASON_OOM),
	    "oom|oom|loading\n");
	assert_string_equal(letter_of(&(struct result){ .end = END_SIGNAL, .signo = SIGKILL },
	    REASON_SIGNAL), "signal|SIGKILL|");
}

/* Of all results only a dead letter wakes the queue that on_dead names. */
FIXTURE_TEST(test_on_dead)
{
	unsigned changes = 0;
	struct watch_key key = { .key = "alerts", .len = 6, .changed = count, .arg = &changes };

	box.cfg->dead_key = xstrdup("alerts");
	box.cfg->dead_tell = xstrdup("LPUSH:0:orders");
	push_numbers(4);
	box_take(&box, 4);
	watch_add(box.watch, &key);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	finish(&box, 0, VERDICT_RETRY, true, HOUR, SETTLED_OK);
	finish(&box, 0, VERDICT_DEFER, false, HOUR, SETTLED_OK);
	box_turn(&box, 50 * MSEC);
	assert_int_equal(changes, 0);
	finish(&box, 0, VERDICT_DEAD, true, 0, SETTLED_OK);
	WAIT(&box, changes == 1);
	watch_remove(box.watch, &key);
}

/* A message larger than message_max is not fetched, but can be buried. */
FIXTURE_TEST(test_too_large)
{
	bury_too_large(SETTLED_OK);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 1);
}

/* The queue delivers messages in order, and not more than the engine asked for. */
FIXTURE_TEST(test_slots)
{
	int i;

	push_numbers(200);
	box_take(&box, 150);
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

/*
 * Settles n deliveries, and turns the loop only as often as sending takes: no timer
 * fires.
 */
static void
settle_and_turn(unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		box_settle(&box, 0, VERDICT_ACK, false, 0);
	for (i = 0; i < 3; i++)
		loop_turn(box.loop, 0);
}

/*
 * Whether QBACKUP falls to n in this time.  The loop does not turn meanwhile: results that
 * were sent arrive in Redis, results that wait for a batch do not.
 */
static bool
backup_falls_to(long long n, usec_t patience)
{
	usec_t end = clock_mono() + patience;

	while (server_int(&server, "ZCARD ordersBACKUP") > n) {
		if (clock_mono() > end)
			return false;
	}
	return true;
}

/* Takes 100 messages, settles 60 of them at once, and then one more. */
static void
settle_quickly(void)
{
	box_set_slots(&box, 100);
	WAIT(&box, box.n == 100 && total_settled(&box) + 100 == box.delivered);
	box_set_slots(&box, 0);
	settle_and_turn(60);
	settle_and_turn(1);
}

/*
 * A result of a quick handler waits for others, and is then sent.  Not each round shows
 * it: on a busy machine the batch timer may be over before the test looks.
 */
FIXTURE_TEST(test_batching)
{
	bool waited = false;
	int i;

	server_do(&server, "EVAL %s 1 orders",
	    "for i = 1, 4000 do redis.call('LPUSH', KEYS[1], i) end");
	box_take(&box, 100);
	box_set_slots(&box, 0);
	settle_and_turn(1);		/* the queue does not know yet how quick the handlers are */
	assert_true(backup_falls_to(99, BOX_WAIT));
	for (i = 0; i < 50 && !waited; i++) {
		settle_quickly();
		assert_true(backup_falls_to(40, BOX_WAIT));
		waited = !backup_falls_to(39, 20 * MSEC);
		WAIT(&box, total_settled(&box) + 39 == box.delivered);
	}
	print_message("# waited for others in round %d\n", i);
	assert_true(waited);
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

FIXTURE_TEST(test_wake_up)
{
	usec_t late[31];
	size_t i;

	box_start(&box, 1);
	for (i = 0; i < ARRAY_LEN(late); i++)
		late[i] = lateness();
	qsort(late, ARRAY_LEN(late), sizeof(late[0]), compare_usec);
	print_message("# push to delivery: median %lld us, worst %lld us\n",
	    (long long)late[15], (long long)late[30]);
	assert_true(late[15] < 500 * MSEC);
}

FIXTURE_TEST(test_wake_up_delayed)
{
	usec_t late[7];
	size_t i, k;

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
				    "redis.call('ZADD', 'ordersRETRY', "
				    "t[1] + t[2] / 1e6 + 0.1, 'r')");
			else
				server_do(&server, "EVAL %s 0",
				    "local t = redis.call('TIME')"
				    "redis.call('ZADD', 'ordersDELAYED', "
				    "t[1] + t[2] / 1e6 + 0.1, 'x')");
			WAIT(&box, box.delivered == before + 1);
			late[i] = box.last_delivery - pushed - 100 * MSEC;
			finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
		}
		qsort(late, ARRAY_LEN(late), sizeof(late[0]), compare_usec);
		print_message("# due in %s to delivery: median %lld us, worst %lld us\n",
		    k == 0 ? "QRETRY" : "QDELAYED", (long long)late[3], (long long)late[6]);
		assert_true(late[0] >= -MSEC);
		assert_true(late[3] < 500 * MSEC);
	}
}

/*
 * A daemon of a large fleet waits for the others at most once: before it looks, or before it
 * takes what is due.
 */
FIXTURE_TEST(test_large_fleet)
{
	static const unsigned fleet = 1000;
	struct leased *a;
	usec_t before;

	box_start(&box, 1);
	a = (struct leased *)box.queue;
	WAIT(&box, a->watch == WATCH_ARMED);
	box.env.fleet = &fleet;
	before = a->delayed_at;
	server_do(&server, "ZADD ordersDELAYED 1 x");
	WAIT(&box, a->delayed_at != before);
	assert_true(!timer_is_set(&a->delayed) || a->delayed.at == a->delayed_at);
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);

	/* As if one had been due for a moment. */
	WAIT(&box, a->watch == WATCH_ARMED && !timer_is_set(&a->retry_look));
	a->retry_at = clock_mono();
	timer_set(&a->retry, SEC);
	server_do(&server, "ZADD ordersRETRY 9999999999 x");
	WAIT(&box, !timer_is_set(&a->retry));
	assert_true(timer_left(&a->retry_look) <= SEC);
}

/*
 * Of a fleet of four the others have no free handler: what falls due waits less and less for
 * them.  Once another daemon has taken a message, it waits for all of them again.
 */
FIXTURE_TEST(test_rivals_that_are_full)
{
	static const unsigned fleet = 4;
	struct leased *a;
	unsigned i, soon;

	box_start(&box, 1);
	a = (struct leased *)box.queue;
	box.env.fleet = &fleet;
	/* One that is late proves nothing by chance: nine in a row that wait shortly do. */
	for (i = soon = 0; i < 200 && soon < 9; i++) {
		WAIT(&box, a->watch == WATCH_ARMED && !timer_is_set(&a->retry_look));
		server_do(&server, "EVAL %s 0", "local t = redis.call('TIME')"
		    "redis.call('ZADD', 'ordersDELAYED', t[1] + t[2] / 1e6 + 0.6, 'x')");
		WAIT(&box, timer_is_set(&a->delayed) || box.n == 1);
		if (timer_is_set(&a->delayed))
			soon = a->delayed.at - a->delayed_at <= 50 * MSEC ? soon + 1 : 0;
		WAIT(&box, box.n == 1);
		finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	}
	assert_int_equal(soon, 9);
	assert_int_equal(a->stagger.rivals, 1);

	/* As if one had been due for a moment. */
	WAIT(&box, a->watch == WATCH_ARMED && !timer_is_set(&a->retry_look));
	a->retry_at = clock_mono();
	timer_set(&a->retry, SEC);
	server_do(&server, "ZADD ordersRETRY 9999999999 x");
	WAIT(&box, a->stagger.rivals == 0);
}

/*
 * Redis reports QPAUSED so often that the queue begins to poll: the report that is one too
 * many still counts.
 */
FIXTURE_TEST(test_evicted)
{
	box_start(&box, 1);
	for (int i = 0; i < 10; i++) {
		server_do(&server, "SET ordersPAUSED x");
		WAIT(&box, box.paused);
		server_do(&server, "DEL ordersPAUSED");
		WAIT(&box, !box.paused);
	}
	assert_string_equal(strstr(box.warning, "tracking-table"), "tracking-table-max-keys of "
	    "Redis to 0, or to more than 5 for each queue");
}

/* An idle queue sends nothing to Redis; the count includes commands of the test. */
FIXTURE_TEST(test_idle)
{
	long long after;

	box_start(&box, 1);
	box_turn(&box, 200 * MSEC);
	server_do(&server, "CONFIG RESETSTAT");
	box_turn(&box, SEC);
	after = atoll(strstr(server_do(&server, "INFO stats"), "total_commands_processed:") + 25);
	assert_in_range(after, 0, 2);
}

/*
 * While the engine wants nothing, the queue pops nothing and does not say that it is
 * ready.
 */
FIXTURE_TEST(test_unwanted)
{
	box_start(&box, 0);
	push("x");
	box_turn(&box, 100 * MSEC);
	assert_int_equal(box.readies, 0);
	box_set_slots(&box, 1);
	WAIT(&box, box.n == 1);
}

FIXTURE_TEST(test_polling)
{
	server_do(&server, "ACL SETUSER default -client|tracking");
	box_start(&box, 1);
	assert_false(watch_is_on(box.watch));
	box_turn(&box, 100 * MSEC);
	push("x");
	WAIT(&box, box.n == 1);
}

/*
 * A daemon that polls learns from the poll after its last result that the queue is empty.
 * The queue then reports a tick: the engine needs it for --until-empty.
 */
FIXTURE_TEST(test_empty)
{
	unsigned ticks;

	server_do(&server, "ACL SETUSER default -client|tracking");
	box_start(&box, 2);
	WAIT(&box, queue_is_empty(box.queue));
	push("x");
	WAIT(&box, box.n == 1);
	assert_false(queue_is_empty(box.queue));
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	ticks = box.ticks;
	if (queue_is_empty(box.queue))
		fail_msg("it is empty before the poll");
	WAIT(&box, queue_is_empty(box.queue));
	assert_true(box.ticks > ticks);
}

FIXTURE_TEST(test_pause)
{
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
	/* Again and again: a busy machine may be late for one. */
	WAIT(&box, (server_do(&server, "SET ordersPAUSED x PX 200"), box.paused));
	push("z");
	WAIT(&box, box.n == 1 && !box.paused);
}

/*
 * The fleet is full, and the report of a push never arrives.  The pop learns that the
 * fleet is full: the queue must then wait for a free place, not for another push.
 */
FIXTURE_TEST(test_full_again)
{
	usec_t began;

	box.cfg->fleet_concurrency = 1;
	box_start(&box, 1);
	server_do(&server, "ZADD ordersBACKUP 9999999999 other");
	box_turn(&box, 50 * MSEC);
	conn_words(box.conn, NULL, NULL, "CLIENT", "TRACKING", "OFF", NULL);
	box_turn(&box, 50 * MSEC);
	push("x");
	box_set_slots(&box, 0);
	box_turn(&box, 20 * MSEC);
	box_set_slots(&box, 1);
	WAIT(&box, box.fetched[FETCH_LIMITED] > 0);
	box_turn(&box, 50 * MSEC);
	began = clock_mono();
	server_do(&server, "ZREM ordersBACKUP other");
	WAIT(&box, box.n == 1);
	assert_true(clock_mono() - began < 8 * SEC);
}

/*
 * A higher fleet_concurrency takes effect at once, also while an arm script with the old
 * value is under way.
 */
FIXTURE_TEST(test_full_no_longer)
{
	usec_t began;

	box.cfg->fleet_concurrency = 1;
	box_start(&box, 1);
	server_do(&server, "ZADD ordersBACKUP 9999999999 other");
	box_turn(&box, 50 * MSEC);
	push("x");
	WAIT(&box, box.fetched[FETCH_LIMITED] > 0);
	box.cfg->fleet_concurrency = 2;
	queue_reconfigure(box.queue, box.config, box.cfg);
	began = clock_mono();
	WAIT(&box, box.n == 1);
	assert_true(clock_mono() - began < 8 * SEC);
}

/* -- life --------------------------------------------------------------------- */

FIXTURE_TEST(test_close)
{
	push("{\"id\":1}");
	box_take(&box, 1);
	queue_close(box.queue);
	push("{\"id\":2}");
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.closes, 0);
	box_set_slots(&box, 0);
	box_settle(&box, 0, VERDICT_RETURN, false, 0);
	WAIT(&box, box.closes == 1);
	assert_int_equal(box.settled[SETTLED_OK], 1);
	/* The queue wrote its last counters before it closed. */
	assert_string_equal(server_do(&server, "HGET ordersSTATS returned"), "1");
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.closes, 1);
}

FIXTURE_TEST(test_close_down)
{
	push("{\"id\":1}");
	push("{\"id\":2}");
	box_take(&box, 2);
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

/*
 * A queue can be freed while calls are under way; it then gives up unconfirmed results.
 */
FIXTURE_TEST(test_freed)
{
	int i;

	for (i = 0; i < 30; i++)
		push("x");
	box.cfg->lease = 100 * MSEC;
	box_take(&box, 10);
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	box_settle(&box, 0, VERDICT_DEAD, false, 0);
	loop_turn(box.loop, 0);
	queue_tick(box.queue);
	box_free_queue(&box);
	assert_int_equal(box.settled[SETTLED_GAVE_UP], 2);
	box_turn(&box, 50 * MSEC);
}

FIXTURE_TEST(test_stats)
{
	push("x");
	box_take(&box, 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	box.stats.n[STAT_TIMEOUTS] = 5;
	box_turn(&box, 120 * MSEC);
	queue_tick(box.queue);
	WAIT(&box, server_int(&server, "HLEN ordersSTATS") > 1);
	assert_string_equal(server_do(&server, "HGET ordersSTATS timeouts"), "5");
	assert_string_equal(server_do(&server, "HGET ordersSTATS acked"), "1");
	box_turn(&box, 120 * MSEC);
	queue_tick(box.queue);
	box_turn(&box, 50 * MSEC);
	assert_string_equal(server_do(&server, "HGET ordersSTATS timeouts"), "5");

	/* A tick that Redis refuses adds nothing: the next one does. */
	server_do(&server, "SET ordersDELIVERY x");
	box.stats.n[STAT_TIMEOUTS]++;
	box_turn(&box, 120 * MSEC);
	queue_tick(box.queue);
	WAIT(&box, box.warnings > 0);
	assert_string_equal(server_do(&server, "HGET ordersSTATS timeouts"), "5");
	server_do(&server, "DEL ordersDELIVERY");
	WAIT(&box, atoi(server_do(&server, "HGET ordersSTATS timeouts")) == 6);
}

FIXTURE_TEST(test_reconfigure)
{
	struct config *c = config_new();

	push("{\"id\":1}");
	box_take(&box, 1);
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

/* After a reload with a shorter lease, the queue renews messages in flight more often. */
FIXTURE_TEST(test_reconfigure_lease)
{
	usec_t end;

	push("{\"id\":1}");
	box_start(&box, 2);
	WAIT(&box, box.n == 1);
	box.cfg->lease = unit_time(3 * SEC);
	queue_reconfigure(box.queue, box.config, box.cfg);
	for (end = clock_mono() + unit_time(5 * SEC); clock_mono() < end;) {
		box_turn(&box, 100 * MSEC);
		queue_tick(box.queue);
	}
	assert_int_equal(box.requeued, 0);
	assert_int_equal(box.n, 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
}
