/*
 * Kind "ack": daemons that are stopped, or that wait for a reply for longer than the
 * lease holds.
 */
#include "box.h"

/* Starts the fixture's daemon and another one, which takes nothing yet. */
static struct box *
start_two(void)
{
	struct box *other = xcalloc(1, sizeof(*other));

	box.cfg->lease = unit_time(900 * MSEC);
	box_start(&box, 1);
	box_init(other, &server, "b");
	other->cfg->lease = other->cfg->foreign_timeout = unit_time(900 * MSEC);
	box_start(other, 0);
	return other;
}

/*
 * While a pop's reply is on its way, the queue renews the messages that it has taken by
 * the number of the pop.
 */
FIXTURE_TEST(test_renewed_while_popping)
{
	struct box *other = start_two();
	unsigned i;

	box_turn(&box, unit_time(300 * MSEC));
	box_deafen(&box);
	push("{\"id\":1}");
	for (i = 0; i < 60; i++) {
		box_turn(&box, unit_time(20 * MSEC));
		box_turn(other, unit_time(20 * MSEC));
		if (i % 5 == 0)
			queue_tick(other->queue);
	}
	assert_int_equal(server_int(&server, "ZCARD ordersBACKUP"), 1);
	assert_int_equal(other->requeued, 0);
	box_cut(&box, &server);
	WAIT(&box, box.n == 1);
	assert_int_equal(box.msgs[0]->crashes, 0);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	box_done(other);
	free(other);
}

/*
 * A daemon is stopped before it reads the reply of its pop.  Its lease ends, and another
 * daemon finishes the message: the first daemon must not run it again.
 */
FIXTURE_TEST(test_stopped_before_the_reply)
{
	struct box *other = start_two();
	unsigned i;

	push("{\"id\":1}");
	for (i = 0; i < 2000 && server_int(&server, "ZCARD ordersBACKUP") == 0; i++) {
		loop_turn(box.loop, 0);
		usleep(2000);
	}
	assert_int_equal(box.delivered, 0);
	box_set_slots(other, 1);
	for (i = 0; i < 2000 && other->n == 0; i++) {
		box_turn(other, 20 * MSEC);
		if (i % 5 == 0)
			queue_tick(other->queue);
	}
	assert_int_equal(other->n, 1);
	box_set_slots(other, 0);
	finish(other, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	box_turn(&box, 500 * MSEC);
	assert_int_equal(box.delivered, 0);
	assert_false(left_over());
	/* The first daemon takes the next message. */
	push("{\"id\":2}");
	WAIT(&box, box.n == 1);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	box_done(other);
	free(other);
}

/* Sends a pop that takes a message, and does not read the reply. */
static void
pop_without_the_reply(void)
{
	for (unsigned i = 0; i < 2000 && server_int(&server, "ZCARD ordersBACKUP") == 0; i++) {
		loop_turn(box.loop, 0);
		usleep(2000);
	}
	assert_int_equal(server_int(&server, "ZCARD ordersBACKUP"), 1);
	assert_int_equal(box.delivered, 0);
}

/* Sends such a pop, and stops for more than a third of the lease. */
static void
stop_before_the_reply(void)
{
	pop_without_the_reply();
	usleep((useconds_t)unit_time(400 * MSEC));
}

/*
 * The queue renews a message before it hands it out: this message occupies its slot, and
 * the queue pops no other one for it.
 */
FIXTURE_TEST(test_stopped_pops_no_more)
{
	box.cfg->lease = unit_time(900 * MSEC);
	box_start(&box, 1);
	push("{\"id\":1}");
	push("{\"id\":2}");
	stop_before_the_reply();
	WAIT(&box, box.n == 1);
	box_turn(&box, 50 * MSEC);
	assert_string_equal(box.msgs[0]->id, "1");
	assert_int_equal(server_int(&server, "LLEN orders"), 1);
	assert_int_equal(server_int(&server, "ZCARD ordersBACKUP"), 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&box, box.n == 1);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
}

/* Redis forgets the message while the daemon is stopped: the daemon does not run it. */
FIXTURE_TEST(test_stopped_and_forgotten)
{
	box.cfg->lease = unit_time(900 * MSEC);
	box_start(&box, 1);
	push("{\"id\":1}");
	stop_before_the_reply();
	server_do(&server, "FLUSHALL");
	push("{\"id\":2}");
	WAIT(&box, box.n == 1);
	assert_string_equal(box.msgs[0]->id, "2");
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(box.delivered, 1);
	assert_int_equal(keys(), 0);
}

/* A queue is not empty while it does not know what its last pop has taken. */
FIXTURE_TEST(test_lost_pop_is_not_empty)
{
	box_start(&box, 1);
	WAIT(&box, queue_is_empty(box.queue));
	box_deafen(&box);
	push("{\"id\":1}");
	WAIT(&box, server_int(&server, "ZCARD ordersBACKUP") == 1);
	box_cut(&box, &server);
	while (box.n == 0) {
		assert_false(queue_is_empty(box.queue));
		loop_turn(box.loop, MSEC);
	}
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	WAIT(&box, queue_is_empty(box.queue));
}

/* -- fetches that the engine no longer waits for -------------------------- */

static void
defer_a_fetch(void)
{
	box_start(&box, 1);
	push("{\"id\":1}");
	pop_without_the_reply();
	assert_true(box.fetching);
	queue_defer_fetch(box.queue);
}

FIXTURE_TEST(test_deferred_comes_with_the_next_fetch)
{
	unsigned fetches;

	defer_a_fetch();
	fetches = box.fetches;
	box_set_slots(&box, 0);
	WAIT(&box, !box.fetching);
	box_turn(&box, 20 * MSEC);
	assert_int_equal(box.delivered, 0);
	assert_false(queue_is_empty(box.queue));
	box_set_slots(&box, 1);
	WAIT(&box, box.n == 1);
	assert_int_equal(box.fetches, fetches + 1);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(box.delivered, 1);
	assert_false(left_over());
}

FIXTURE_TEST(test_deferred_and_the_reply_lost)
{
	box_start(&box, 1);
	box_deafen(&box);
	push("{\"id\":1}");
	WAIT(&box, server_int(&server, "ZCARD ordersBACKUP") == 1);
	queue_defer_fetch(box.queue);
	box_turn(&box, 20 * MSEC);
	assert_true(box.fetching);
	box_cut(&box, &server);
	WAIT(&box, box.n == 1);
	box_set_slots(&box, 0);
	finish(&box, 0, VERDICT_ACK, false, 0, SETTLED_OK);
	assert_int_equal(box.delivered, 1);
	assert_false(left_over());
}

/*
 * The engine wants nothing for longer than the time between two renewals: the queue
 * returns the message, so that other daemons can take it.
 */
FIXTURE_TEST(test_deferred_and_not_wanted)
{
	box.cfg->lease = unit_time(900 * MSEC);
	defer_a_fetch();
	box_set_slots(&box, 0);
	WAIT(&box, server_int(&server, "ZCARD ordersRETRY") == 1);
	assert_int_equal(server_int(&server, "ZCARD ordersBACKUP"), 0);
	assert_int_equal(box.delivered, 0);
}

FIXTURE_TEST(test_deferred_and_closed)
{
	defer_a_fetch();
	box_set_slots(&box, 0);
	queue_close(box.queue);
	WAIT(&box, box.closes == 1);
	assert_int_equal(box.delivered, 0);
	assert_int_equal(server_int(&server, "ZCARD ordersRETRY"), 1);
	assert_int_equal(server_int(&server, "ZCARD ordersBACKUP"), 0);
}
