/*
 * Kind "stream" against a real Redis: its deliveries and their times, and the entries,
 * whatever happens to connections, the group, and other consumers.
 */
#include "box.h"

static int
stream_setup(void **state)
{
	(void)fixture_setup(state);
	box.cfg->kind = KIND_STREAM;
	return 0;
}

#define QUEUE_TEST(name)	TEST_WITH(name, stream_setup, fixture_teardown)

static void
add(unsigned n)
{
	server_do(&server, "XADD orders * message %u", n);
}

/* How many entries are pending; -1: there is no group. */
static long long
pending(void)
{
	return server_int(&server, "EVAL %s 1 orders",
	    "local r = redis.pcall('XPENDING', KEYS[1], 'rqd')\n"
	    "return r.err and -1 or r[1]");
}

/* The payload as a number; all messages of these tests are numbers. */
static int
number(const struct message *m)
{
	char text[16];

	snprintf(text, sizeof(text), "%.*s", (int)m->len, m->payload);
	return atoi(text);
}

/* -- deliveries and outcomes ---------------------------------------------- */

QUEUE_TEST(test_outcomes)
{
	server_do(&server, "XADD orders 7-1 message hello");
	server_do(&server, "XADD orders 7-2 message again");
	box_start(&box, 5);
	WAIT(&box, box.n == 2);
	assert_string_equal(box.msgs[0]->id, "7-1");
	assert_int_equal(pending(), 2);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	finish(&box, 0, VERDICT_RETRY, true, 100 * MSEC, SETTLED_OK);
	assert_int_equal(pending(), 1);
	WAIT(&box, box.n == 1);
	assert_string_equal(box.msgs[0]->id, "7-2");
	assert_int_equal(box.msgs[0]->attempts, 1);
	finish(&box, 0, VERDICT_DEAD, true, 0, SETTLED_OK);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 1);
	assert_int_equal(pending(), 0);
	assert_int_equal(left_over(), 0);
	WAIT(&box, queue_is_empty(box.queue));
}

QUEUE_TEST(test_wake_up)
{
	usec_t late = 0, pushed;
	unsigned i;

	box_start(&box, 1);
	for (i = 0; i < 20; i++) {
		box_turn(&box, 30 * MSEC);
		pushed = clock_mono();
		add(i);
		WAIT(&box, box.n == 1);
		late += box.last_delivery - pushed;
		finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	}
	print_message("# XADD to delivery: %lld us on average\n", (long long)late / 20);
	assert_true(late / 20 < 500 * MSEC);
}

/*
 * At the end of the stream the queue sends nothing to Redis, also if the newest entry was
 * deleted.
 */
QUEUE_TEST(test_idle)
{
	long long after;

	box_start(&box, 1);
	server_do(&server, "SET ordersPAUSED x");
	WAIT(&box, box.paused);
	server_do(&server, "XADD orders 9-1 message x");
	server_do(&server, "XDEL orders 9-1");
	server_do(&server, "DEL ordersPAUSED");
	WAIT(&box, !box.paused);
	box_turn(&box, 200 * MSEC);
	server_do(&server, "CONFIG RESETSTAT");
	box_turn(&box, SEC);
	after = atoll(strstr(server_do(&server, "INFO stats"), "total_commands_processed:") + 25);
	assert_in_range(after, 0, 2);
	assert_int_equal(box.delivered, 0);
}

/* Another consumer claims an entry in flight: it stays ours, and is done with our result. */
QUEUE_TEST(test_claimed)
{
	box.cfg->lease = 1500 * MSEC;
	box_start(&box, 1);
	server_do(&server, "XADD orders 7-1 message x");
	WAIT(&box, box.n == 1);
	server_do(&server, "XCLAIM orders rqd other 0 7-1");
	box_turn(&box, 2 * SEC);
	assert_int_equal(box.losts, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(left_over(), 0);
	assert_int_equal(pending(), 0);
}

/* The queue renews entries in flight, so that ticks do not requeue them. */
QUEUE_TEST(test_renewal)
{
	int i;

	box.cfg->lease = 1500 * MSEC;
	box_start(&box, 1);
	add(1);
	WAIT(&box, box.n == 1);
	for (i = 0; i < 10; i++) {
		box_turn(&box, 250 * MSEC);
		queue_tick(box.queue);
	}
	assert_int_equal(box.requeued, 0);
	assert_int_equal(pending(), 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(pending(), 0);
}

QUEUE_TEST(test_limits)
{
	struct box *other = xcalloc(1, sizeof(*other));

	box.cfg->fleet_concurrency = 2;
	box_init(other, &server, "b");
	other->cfg->kind = KIND_STREAM;
	other->cfg->fleet_concurrency = 2;
	add(1);
	add(2);
	add(3);
	box_take(&box, 1);
	box_start(other, 0);
	box_set_slots(other, 5);
	WAIT(other, other->n == 1);
	box_turn(other, 50 * MSEC);
	assert_int_equal(other->n, 1);
	assert_int_equal(pending(), 2);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(other, other->n == 2);
	box_done(other);
	free(other);
}

/* -- the group is gone ------------------------------------------------------ */

QUEUE_TEST(test_no_group)
{
	static const char *const ways[] = {
		"FLUSHALL", "DEL orders", "XGROUP DESTROY orders rqd",
	};
	size_t i;

	box_start(&box, 1);
	for (i = 0; i < ARRAY_LEN(ways); i++) {
		server_do(&server, ways[i]);
		box_turn(&box, 20 * MSEC);
		if (i < 2)
			assert_int_equal(pending(), 0);
		server_do(&server, "DEL orders");
		server_do(&server, "XADD orders 7-%u message x", (unsigned)i + 1);
		WAIT(&box, box.n == 1);
		finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	}
	assert_int_equal(box.fetched[FETCH_ERROR], 0);
}

/* Whether message n is in hand, as one that has failed once. */
static bool
has_failed(int n)
{
	for (unsigned i = 0; i < box.n; i++) {
		if (number(box.msgs[i]) == n && box.msgs[i]->attempts == 1)
			return true;
	}
	return false;
}

/*
 * The group disappears while entries are in flight: a failed entry is delivered again.  So
 * may be old entries, since the new group begins at the start of the stream.
 */
QUEUE_TEST(test_no_group_in_hand)
{
	static const char *const ways[] = {
		"DEL orders", "XGROUP DESTROY orders rqd", "XTRIM orders MAXLEN 0",
	};
	unsigned i;

	box_start(&box, 2);
	for (i = 0; i < ARRAY_LEN(ways); i++) {
		server_do(&server, "DEL orders");
		add(2 * i);
		add(2 * i + 1);
		WAIT(&box, box.n == 2);
		server_do(&server, ways[i]);
		box_settle(&box, 0, VERDICT_ACK, false, 0);
		box_settle(&box, 0, VERDICT_RETRY, true, 0);
		WAIT(&box, has_failed((int)(2 * i + 1)));
		box_set_slots(&box, 8);
		while (box.n > 0 || left_over() > 0) {
			if (box.n > 0)
				box_settle(&box, 0, VERDICT_ACK, false, 0);
			else
				loop_turn(box.loop, 20 * MSEC);
		}
		box_set_slots(&box, 2);
	}
	assert_int_equal(pending(), 0);
	assert_int_equal(box.fetched[FETCH_ERROR], 0);
}

/* -- replies that never come ------------------------------------------------ */

QUEUE_TEST(test_lost_pop)
{
	unsigned i;

	box_start(&box, 5);
	box_deafen(&box);
	for (i = 0; i < 7; i++)
		add(i);
	while (pending() < 5)
		loop_turn(box.loop, 10 * MSEC);
	assert_int_equal(box.n, 0);
	box_cut(&box, &server);
	WAIT(&box, box.n == 5);
	for (i = 0; i < 5; i++)
		assert_int_equal(box.msgs[i]->attempts + box.msgs[i]->crashes, 0);
	box_ack_until(&box, 7);
	WAIT(&box, box.settled[SETTLED_OK] == 7);
	assert_int_equal(left_over(), 0);
	assert_int_equal(pending(), 0);
}

QUEUE_TEST(test_lost_settles)
{
	static const enum verdict_op ops[] = {
		VERDICT_ACK, VERDICT_RETRY, VERDICT_DEAD, VERDICT_RETURN,
	};
	unsigned i;

	for (i = 0; i < 4; i++)
		add(i);
	box_take(&box, 4);
	box_set_slots(&box, 0);
	box_turn(&box, 20 * MSEC);
	box_deafen(&box);
	for (i = 0; i < 4; i++)
		box_settle(&box, 0, ops[i], true, HOUR);
	while (server_int(&server, "ZCARD ordersBACKUP") > 0)
		loop_turn(box.loop, 10 * MSEC);
	box_cut(&box, &server);
	WAIT(&box, box.settled[SETTLED_OK] == 4);
	assert_int_equal(server_int(&server, "XLEN ordersDEAD"), 1);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 2);
	assert_int_equal(pending(), 2);
}

/* -- a fleet ------------------------------------------------------------------ */

enum { FLEET = 3, MESSAGES = 400 };

static struct box	*fleet[FLEET];
static bool		 done[MESSAGES];

static void
fleet_open(struct box *b, unsigned i)
{
	char name[8];

	snprintf(name, sizeof(name), "d%u", i);
	box_init(b, &server, name);
	b->cfg->kind = KIND_STREAM;
	b->cfg->lease = b->cfg->foreign_timeout = SEC;
	box_start(b, 5);
}

/* Another consumer takes an entry, and acknowledges or abandons it. */
static void
foreign(void)
{
	static const char script[] =
	    "local e = redis.pcall('XREADGROUP', 'GROUP', 'rqd', 'other', 'COUNT', 1, "
	    "'STREAMS', KEYS[1], '>')\n"
	    "if not e or e.err then return -1 end\n"
	    "if ARGV[1] == '0' then return -1 end\n"
	    "redis.call('XACK', KEYS[1], 'rqd', e[1][2][1][1])\n"
	    "return tonumber(e[1][2][1][2][2])";
	long long n = server_int(&server, "EVAL %s 1 orders %d", script, (int)unit_below(2));

	if (n >= 0 && n < MESSAGES)
		done[n] = true;
}

static void
fleet_step(struct box *b)
{
	unsigned i;

	for (i = 0; i < b->n; i++) {
		if (unit_below(4) != 0)
			continue;
		if (unit_below(3) == 0) {
			box_settle(b, i, VERDICT_RETRY, true, unit_below(50) * MSEC);
		} else {
			done[number(b->msgs[i])] = true;
			box_settle(b, i, VERDICT_ACK, false, 0);
		}
		break;
	}
	box_turn(b, (usec_t)unit_below(5) * MSEC);
}

static bool
all_done(void)
{
	unsigned i;

	for (i = 0; i < MESSAGES; i++) {
		if (!done[i])
			return false;
	}
	return pending() == 0 && left_over() == 0;
}

/*
 * Daemons with the same consumer name die with entries in flight, and lose their
 * connections.  Another consumer abandons entries, and the group is destroyed.  Every entry
 * is handled, and none is left pending.
 */
QUEUE_TEST(test_fleet)
{
	unsigned i, chance, deaths = 0;
	usec_t next = 0, end = clock_mono() + 4 * BOX_WAIT;

	memset(done, 0, sizeof(done));
	for (i = 0; i < FLEET; i++) {
		fleet[i] = xcalloc(1, sizeof(struct box));
		fleet_open(fleet[i], i);
	}
	for (i = 0; i < MESSAGES; i++)
		add(i);
	while (!all_done() && clock_mono() < end) {
		struct box *b = fleet[unit_below(FLEET)];

		fleet_step(b);
		chance = (unsigned)unit_below(100);
		if (chance == 0 && deaths < 20) {
			deaths++;
			box_done(b);
			fleet_open(b, FLEET + deaths);
		} else if (chance < 4 && conn_is_ready(b->conn)) {
			server_do(&server, "CLIENT KILL ID %lld", (long long)conn_id(b->conn));
		} else if (chance < 8) {
			foreign();
		} else if (chance == 8 && unit_below(60) == 0) {
			server_do(&server, "XGROUP DESTROY orders rqd");
		}
		if (clock_mono() > next) {
			for (i = 0; i < FLEET; i++)
				queue_tick(fleet[i]->queue);
			next = clock_mono() + 300 * MSEC;
		}
	}
	print_message("# %u deaths\n", deaths);
	assert_true(all_done());
	for (i = 0; i < FLEET; i++) {
		box_done(fleet[i]);
		free(fleet[i]);
	}
}
