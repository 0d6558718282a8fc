/*
 * Kind "unique", and the limits of the fleet, against a real Redis: deliveries, their
 * times and their daemons.
 */
#include "box.h"

#define IDS	12
#define FLEET	4
#define PLACES	3
#define LEASE	(3 * SEC)

static void
enqueue(const char *id, double in)
{
	server_do(&server, "EVAL %s 1 orders %s %f",
	    "local t = redis.call('TIME') "
	    "return redis.call('ZADD', KEYS[1], string.format('%.6f', t[1] + t[2] / 1e6 + "
	    "ARGV[2]), "
	    "ARGV[1])", id, in);
}

static int
setup(void **state)
{
	int rc = fixture_setup(state);

	box.cfg->kind = KIND_UNIQUE;
	return rc;
}

#define QUEUE_TEST(name)	TEST_WITH(name, setup, fixture_teardown)

static long long
scripts(void)
{
	const char *at = strstr(server_do(&server, "INFO commandstats"), "cmdstat_evalsha:calls=");

	return at != NULL ? atoll(at + 22) : 0;
}

/* Turns the loop until no script was called for a while, and returns how many were by then. */
static long long
scripts_when_idle(struct box *b)
{
	long long before = -1;

	for (int i = 0; i < 100 && scripts() != before; i++) {
		before = scripts();
		box_turn(b, 300 * MSEC);
	}
	return before;
}

/* -- kind "unique" ------------------------------------------------------------- */

QUEUE_TEST(test_when)
{
	usec_t began;

	box_start(&box, 2);
	enqueue("7", -1);
	WAIT(&box, box.n == 1);
	assert_string_equal(box.msgs[0]->id, "7");
	assert_int_equal(box.msgs[0]->len, 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	began = clock_mono();
	enqueue("later", 0.5);
	enqueue("never", 1e6);
	WAIT(&box, box.n == 1);
	assert_string_equal(box.msgs[0]->id, "later");
	assert_true(box.last_delivery - began >= 490 * MSEC);
	assert_true(box.last_delivery - began < 8 * SEC);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&box, queue_is_empty(box.queue));
	server_do(&server, "DEL orders");
	assert_int_equal(keys(), 0);
}

/*
 * An id that is enqueued for later costs a look, and no pop; the queue wakes up for the
 * earliest id.
 */
QUEUE_TEST(test_later)
{
	long long before;
	unsigned fetches;
	int i;

	box_start(&box, 1);
	box_turn(&box, 50 * MSEC);
	fetches = box.fetches;
	before = scripts();
	for (i = 0; i < 20; i++) {
		enqueue("x", 1000 + i);
		box_turn(&box, 10 * MSEC);
	}
	assert_int_equal(box.fetches, fetches);
	assert_in_range(scripts() - before, 1, 45);
	enqueue("y", 0.2);
	WAIT(&box, box.n == 1);
	assert_string_equal(box.msgs[0]->id, "y");
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
}

QUEUE_TEST(test_again)
{
	int i;

	box_start(&box, 3);
	enqueue("a", -5);
	WAIT(&box, box.n == 1);
	for (i = 0; i < 100; i++) {
		enqueue("a", -1);
		box_turn(&box, MSEC);
	}
	box_turn(&box, 200 * MSEC);
	assert_int_equal(box.delivered, 1);
	enqueue("b", 0);
	WAIT(&box, box.n == 2);
	assert_string_equal(box.msgs[1]->id, "b");
	finish(&box, 1, VERDICT_ACK, false, 0, SETTLED_OK);
	finish(&box, 0, VERDICT_RETRY, true, 100 * SEC, SETTLED_OK);
	/* It runs now, not in 100 s, because it was enqueued while it ran. */
	WAIT(&box, box.n == 1);
	assert_int_equal(box.msgs[0]->attempts, 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	box_turn(&box, 50 * MSEC);
	assert_int_equal(box.n, 0);
	assert_int_equal(keys(), 0);
}

/* An idle queue calls no scripts. */
QUEUE_TEST(test_idle)
{
	long long before;

	enqueue("never", 1e6);
	box_start(&box, 3);
	before = scripts_when_idle(&box);
	box_turn(&box, 2 * SEC);
	assert_int_equal(scripts(), before);
	server_do(&server, "DEL orders");
}

QUEUE_TEST(test_lost_pop)
{
	box_start(&box, 5);
	box_deafen(&box);
	enqueue("1", -1);
	while (server_int(&server, "ZCARD orders") > 0)
		loop_turn(box.loop, 10 * MSEC);
	enqueue("1", 0);
	box_cut(&box, &server);
	WAIT(&box, box.n == 1);
	assert_int_equal(box.msgs[0]->attempts + box.msgs[0]->crashes, 0);
	box_turn(&box, 200 * MSEC);
	assert_int_equal(box.n, 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(keys(), 0);
}

/* -- limits --------------------------------------------------------------------- */

/* A daemon that waits for a place sends nothing, and fetches as soon as a place is free. */
QUEUE_TEST(test_place)
{
	struct box *other = xcalloc(1, sizeof(*other));
	long long before;
	usec_t began;

	box.cfg->fleet_concurrency = 1;
	box_start(&box, 4);
	enqueue("1", -2);
	enqueue("2", -1);
	WAIT(&box, box.n == 1);
	assert_string_equal(box.msgs[0]->id, "1");
	box_set_slots(&box, 0);
	box_init(other, &server, "b");
	other->cfg->kind = KIND_UNIQUE;
	other->cfg->fleet_concurrency = 1;
	box_start(other, 0);
	box_set_slots(other, 4);
	WAIT(other, other->fetched[FETCH_LIMITED] == 1);
	assert_false(queue_is_empty(other->queue));
	before = scripts_when_idle(other);
	enqueue("3", -3);
	box_turn(other, SEC);
	assert_int_equal(scripts(), before);
	box_settle(&box, 0, VERDICT_ACK, false, 0);
	WAIT(&box, box.settled[SETTLED_OK] == 1);
	began = clock_mono();
	WAIT(other, other->n == 1);
	assert_true(clock_mono() - began < 4 * SEC);
	assert_string_equal(other->msgs[0]->id, "3");
	finish(other, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(other, other->n == 1);
	finish(other, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(keys(), 0);
	box_done(other);
	free(other);
}

/*
 * While it waits for the rate, the queue calls no scripts; a new rate takes effect at
 * once.
 */
QUEUE_TEST(test_rate)
{
	struct queue_config faster;
	long long before;
	char id[16];
	int i;

	box.cfg->kind = KIND_ACK;
	free(box.cfg->rate);
	box.cfg->rate = xstrdup("1/h");
	for (i = 0; i < 5; i++) {
		snprintf(id, sizeof(id), "%d", i);
		push(id);
	}
	box_start(&box, 5);
	WAIT(&box, box.n == 1);
	before = scripts_when_idle(&box);
	push("x");
	box_turn(&box, SEC);
	assert_int_equal(scripts(), before);
	assert_int_equal(box.n, 1);
	assert_true(box.fetched[FETCH_LIMITED] > 0);
	faster = *box.cfg;
	faster.rate = (char *)(uintptr_t)"50/s";
	queue_reconfigure(box.queue, box.config, &faster);
	WAIT(&box, box.n == 5);
	box_set_slots(&box, 6);
	WAIT(&box, box.n == 6);
	while (box.n > 0)
		box_settle(&box, 0, VERDICT_ACK, false, 0);
	WAIT(&box, box.settled[SETTLED_OK] == 6);
	box_free_queue(&box);
}

/* -- many, in any order ----------------------------------------------------------- */

static struct box	*fleet[FLEET];

static void
fleet_open(struct box *b, unsigned i)
{
	char name[16];

	snprintf(name, sizeof(name), "f%u", i);
	box_init(b, &server, name);
	b->cfg->kind = KIND_UNIQUE;
	b->cfg->fleet_concurrency = PLACES;
	b->cfg->lease = b->cfg->foreign_timeout = LEASE;
	box_start(b, 2);
}

/*
 * No id is in flight twice, and no more ids than there are places; unless this process
 * stood still for so long that leases may have ended.
 */
static void
check_hands(void)
{
	static usec_t last;
	static bool late;
	unsigned i, k, total = 0, hands[IDS] = { 0 };
	usec_t now = clock_mono();
	int id;

	late = late || (last > 0 && now - last > LEASE / 3);
	last = now;
	for (i = 0; i < FLEET && !late; i++) {
		for (k = 0; k < fleet[i]->n; k++) {
			id = atoi(fleet[i]->msgs[k]->id);
			assert_in_range(id, 0, IDS - 1);
			if (hands[id]++ > 0)
				fail_msg("%d is in hand twice", id);
			total++;
		}
		assert_int_equal(fleet[i]->losts, 0);
	}
	assert_true(total <= PLACES);
}

/*
 * Daemons die, connections break, Redis forgets its scripts, and ids are enqueued at any
 * time.  No id runs twice at the same time, and in the end none is left.
 */
QUEUE_TEST(test_fleet)
{
	unsigned i, turns, deaths = 0, acked = 0;
	usec_t next = 0;
	char id[16];

	for (i = 0; i < FLEET; i++) {
		fleet[i] = xcalloc(1, sizeof(struct box));
		fleet_open(fleet[i], i);
	}
	for (turns = 0; turns < 1500; turns++) {
		struct box *b = fleet[unit_below(FLEET)];
		unsigned chance = (unsigned)unit_below(200);

		if (unit_below(2) == 0) {
			i = (unsigned)unit_below(IDS);
			snprintf(id, sizeof(id), "%u", i);
			enqueue(id, (double)unit_below(3) / 50 - 0.02);
		}
		if (unit_below(3) == 0 && b->n > 0) {
			bool ack = unit_below(3) != 0;
			acked += ack;
			box_settle(b, 0, ack ? VERDICT_ACK : VERDICT_RETRY, !ack,
			    (usec_t)unit_below(50) * MSEC);
		}
		for (i = 0; i < FLEET; i++)
			box_turn(fleet[i], (usec_t)unit_below(3) * MSEC);
		check_hands();
		if (chance == 0 && deaths < 5) {
			box_done(b);
			fleet_open(b, FLEET + ++deaths);
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
	/* All ids are enqueued once more, and must be handled. */
	for (i = 0; i < IDS; i++) {
		snprintf(id, sizeof(id), "%u", i);
		enqueue(id, 0);
	}
	box_drain(fleet, FLEET, check_hands);
	print_message("# %u deaths, %u acked before the end\n", deaths, acked);
	for (i = 0; i < FLEET; i++) {
		box_done(fleet[i]);
		free(fleet[i]);
	}
}
