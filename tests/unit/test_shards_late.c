/* A queue with shards, one of whose masters does not answer in time. */
#include "shards_fixture.h"

/* Begins a fetch; unlike fetch(), does not require that it is answered. */
static void
begin_fetch(unsigned n)
{
	f.asked = n;
	f.got = 0;
	f.readies = 0;
	CALL(queue_fetch(f.queue, n, TURN_SHARE));
	turn();
}

/* The hanging master answers.  If its fetch was deferred, the shard holds the messages. */
static void
answer(size_t i)
{
	const struct fetched nothing = { .status = FETCH_OK };
	unsigned n = f.unanswered[i];

	f.hangs[i] = false;
	f.unanswered[i] = 0;
	if (!f.deferred[i]) {
		queue_mem.fetch(f.part[i], n, TURN_SHARE);
	} else {
		f.held[i] = n;
		f.part[i]->events->fetched(&nothing, f.part[i]->arg);
		queue_mem.want(f.part[i], true);	/* ready() */
	}
	turn();
}

FIXTURE_TEST(a_shard_that_does_not_answer_holds_up_no_other_one)
{
	for (size_t i = 0; i < KEYS; i++)
		push(i, 4);
	f.hangs[1] = true;
	want(true);
	begin_fetch(8);
	assert_int_equal(f.unanswered[1], f.asked_of[1]);
	assert_true(f.asked_of[1] > 0);
	/* The handlers have what the others brought. */
	assert_int_equal(f.got, 8 - f.asked_of[1]);
	assert_int_equal(f.fetched, 0);
	loop_run_for(f.loop, 99 * MSEC);
	assert_int_equal(f.fetched, 0);
	loop_run_for(f.loop, 2 * MSEC);
	assert_int_equal(f.fetched, 1);
	assert_int_equal(f.status, FETCH_OK);
	assert_true(f.deferred[1]);
	assert_int_equal(f.readies, 1);
	while (f.n < 4 * (KEYS - 1))
		assert_in_range(fetch(8), 1, 8);
	assert_int_equal(f.fetches[1], 1);
	f.readies = 0;
	turn();
	assert_int_equal(f.readies, 0);
}

FIXTURE_TEST(what_came_too_late_is_delivered_by_a_later_fetch_and_once)
{
	for (size_t i = 0; i < KEYS; i++)
		push(i, 4);
	f.hangs[1] = true;
	want(true);
	begin_fetch(8);
	loop_run_for(f.loop, 101 * MSEC);
	while (f.n < 4 * (KEYS - 1))
		fetch(8);
	/* It answers while the engine wants nothing: the messages wait. */
	want(false);
	f.readies = 0;
	answer(1);
	assert_int_equal(f.readies, 0);
	assert_int_equal(f.n, 4 * (KEYS - 1));
	want(true);
	assert_int_equal(f.readies, 1);
	while (f.n < 4 * KEYS)
		assert_in_range(fetch(8), 1, 8);
	assert_int_equal(fetch(8), 0);
	ack_all();
	assert_int_equal(acked(), 4 * KEYS);
	assert_true(queue_is_empty(f.queue));
}

FIXTURE_TEST(an_answer_in_time_is_one_of_its_fetch)
{
	push(1, 4);
	f.hangs[1] = true;
	want(true);
	begin_fetch(8);
	loop_run_for(f.loop, 50 * MSEC);
	assert_int_equal(f.fetched, 0);
	answer(1);
	assert_int_equal(f.fetched, 1);
	assert_int_equal(f.got, 4);
	assert_false(f.deferred[1]);
	loop_run_for(f.loop, SEC);
	assert_int_equal(f.fetched, 1);
}

/* All shards are on one server: no other could be asked meanwhile. */
FIXTURE_TEST(a_fetch_from_the_only_server_is_waited_for)
{
	push(1, 4);
	f.hangs[1] = true;
	f.env.conn = (struct conn *)(void *)&f;
	want(true);
	begin_fetch(8);
	loop_run_for(f.loop, SEC);
	assert_int_equal(f.fetched, 0);
	answer(1);
	assert_int_equal(f.fetched, 1);
	assert_int_equal(f.got, 4);
}
