/*
 * The settler: the results of each call, the times of calls, and the state of a result
 * after each answer.
 */
#include "unit.h"

#include "settler_fixture.h"

/* -- answers ---------------------------------------------------------------- */

FIXTURE_TEST(test_ends)
{
	static const struct {
		enum verdict_op	op;
		bool		doubt;
		const char	*text;
		enum settled	how;
	} rows[] = {
		{ VERDICT_ACK, false, "ok", SETTLED_OK },
		{ VERDICT_ACK, false, "held", SETTLED_STALE },
		{ VERDICT_ACK, true, "held", SETTLED_OK },
		{ VERDICT_RETRY, true, "held", SETTLED_OK },
		{ VERDICT_DEAD, false, "held", SETTLED_STALE },
		{ VERDICT_ACK, false, "gone", SETTLED_STALE },
		{ VERDICT_ACK, true, "gone", SETTLED_OK },
		{ VERDICT_ACK, false, "taken", SETTLED_STALE },
		{ VERDICT_ACK, true, "taken", SETTLED_OK },
		{ VERDICT_ACK, false, "lost", SETTLED_OK },
		{ VERDICT_ACK, false, "held lost", SETTLED_STALE },
		{ VERDICT_ACK, true, "held lost", SETTLED_OK },
		{ VERDICT_STALE, false, "taken", SETTLED_STALE },
		{ VERDICT_STALE, true, "error: of any kind", SETTLED_STALE },
		{ VERDICT_DEAD, false, "deferred wrong type", SETTLED_DEFERRED },
	};
	unsigned before;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		before = ended[rows[i].how];
		assert_int_equal(answer(rows[i].op, rows[i].doubt, rows[i].text, true),
		    DELIVERY_DONE);
		assert_int_equal(ended[rows[i].how], before + 1);
	}
	assert_int_equal(warnings, 1);
}

FIXTURE_TEST(test_goes_on)
{
	assert_int_equal(answer(VERDICT_RETRY, false, "lost", true), DELIVERY_KEPT);
	assert_int_equal(answer(VERDICT_RETRY, false, "held lost", true), DELIVERY_KEPT);
	assert_int_equal(answer(VERDICT_ACK, false, "again", true), DELIVERY_KEPT);
	assert_int_equal(warnings, 0);
	assert_int_equal(answer(VERDICT_ACK, false, "error wrong type", false), DELIVERY_REFUSED);
	assert_int_equal(warnings, 1);
	assert_int_equal(checks, 0);
	/* The dead letter may have been written: "held" must be checked. */
	assert_int_equal(answer(VERDICT_DEAD, true, "held", true), DELIVERY_SENT);
	assert_int_equal(checks, 1);
}

/* Redis lost the delivery, and a renewal found another message with its tag: no rescue. */
FIXTURE_TEST(test_usurped)
{
	struct delivery_batch b;

	keep(VERDICT_ACK)->usurped = true;
	b = settle(1);
	assert_true(settler_answer(settler, &b, 0, "held lost"));
	assert_int_equal(ended[SETTLED_OK], 1);
	batch_done(&b);
}

FIXTURE_TEST(test_checked)
{
	struct delivery *other = keep(VERDICT_DEAD), *there = keep(VERDICT_DEAD);
	struct delivery_batch b = settle(2);

	settler_checked(settler, other, "other");
	assert_int_equal(ended[SETTLED_OK], 1);
	settler_checked(settler, there, "there");
	assert_int_equal(ended[SETTLED_DEFERRED], 1);
	batch_done(&b);
}

/* The result of a message that the engine never had is not reported to it. */
FIXTURE_TEST(test_unrun)
{
	struct delivery_batch b;

	(void)add("c.1");
	assert_true(ledger_give_back(ledger, false));
	b = settle(1);
	assert_true(settler_answer(settler, &b, 0, "ok"));
	assert_int_equal(ended[SETTLED_OK], 0);
	assert_true(ledger_is_empty(ledger));
	batch_done(&b);
}

FIXTURE_TEST(test_put_away)
{
	struct delivery *d = keep(VERDICT_STALE);

	(void)keep(VERDICT_ACK);
	d->taken = true;
	settler_put_away(settler, true);
	assert_int_equal(ended[SETTLED_STALE], 0);
	settler_put_away(settler, false);
	assert_int_equal(ended[SETTLED_STALE], 1);
	(void)keep(VERDICT_STALE);
	settler_put_away(settler, true);
	assert_int_equal(ended[SETTLED_STALE], 2);
	assert_int_equal(ledger_tally(ledger)->count[DELIVERY_KEPT], 1);
}

FIXTURE_TEST(test_give_up)
{
	(void)keep(VERDICT_ACK);
	(void)keep(VERDICT_RETRY);
	(void)in_hand();
	settler_free(settler);
	assert_int_equal(ended[SETTLED_GAVE_UP], 2);
	settler = settler_new(loop, ledger, &events, NULL);
}

/* -- batches ---------------------------------------------------------------- */

FIXTURE_TEST(test_sizes)
{
	struct delivery_batch b[3];
	size_t i;

	for (i = 0; i < 130; i++)
		(void)keep(VERDICT_ACK);
	for (i = 0; i < ARRAY_LEN(b); i++) {
		assert_int_equal(next(&b[i]), SETTLER_SETTLE);
		assert_int_equal(b[i].n, i < 2 ? 64 : 2);
		batch_done(&b[i]);
	}
	assert_int_equal(next(&b[0]), SETTLER_NOTHING);
}

/* A call is closed after the result whose tag makes it too large. */
FIXTURE_TEST(test_bytes)
{
	struct delivery_batch b;
	int i;

	for (i = 0; i < 5; i++)
		keep(VERDICT_ACK)->taglen = 400 * 1024;
	assert_int_equal(next(&b), SETTLER_SETTLE);
	assert_int_equal(b.n, 3);
	batch_done(&b);
	b = settle(2);
	batch_done(&b);
}

/* A call is "over" only if it acks all deliveries that the daemon still has. */
FIXTURE_TEST(test_over)
{
	static const struct {
		enum verdict_op	op;
		bool		may_end, more, over;
	} rows[] = {
		{ VERDICT_ACK, true, false, true }, { VERDICT_ACK, false, false, false },
		{ VERDICT_ACK, true, true, false }, { VERDICT_RETRY, true, false, false },
	};
	struct delivery *more;
	struct delivery_batch b;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		(void)keep(rows[i].op);
		more = rows[i].more ? in_hand() : NULL;
		assert_int_equal(settler_next(settler, true, rows[i].may_end, &b), SETTLER_SETTLE);
		assert_int_equal(b.over, rows[i].over);
		assert_true(settler_answer(settler, &b, 0, "ok"));
		batch_done(&b);
		if (more != NULL)
			ledger_move(ledger, more, DELIVERY_DONE);
	}
}

/* Keeps many results without a pause, so that the settler counts handlers as quick. */
static void
settle_quickly(void)
{
	int i;

	for (i = 0; i < 40; i++)
		ledger_move(ledger, keep(VERDICT_ACK), DELIVERY_DONE);
}

/* With quick handlers, results wait for others while many messages are in flight. */
FIXTURE_TEST(test_waits)
{
	int i;

	(void)keep(VERDICT_ACK);
	for (i = 0; i < 3; i++)
		(void)in_hand();
	assert_false(settler_waits(settler, true));	/* the pace is not known yet */
	settle_quickly();
	assert_false(settler_waits(settler, false));
	assert_true(settler_waits(settler, true));
	(void)keep(VERDICT_ACK);
	assert_false(settler_waits(settler, true));	/* 3 in hand are too few for 2 kept */
	for (i = 0; i < 40; i++)
		(void)in_hand();
	for (i = 3; i < 16; i++) {
		assert_true(settler_waits(settler, true));
		(void)keep(VERDICT_ACK);
	}
	assert_true(settler_waits(settler, true));
	(void)keep(VERDICT_ACK);
	assert_false(settler_waits(settler, true));	/* 16 are enough */
}

FIXTURE_TEST(test_batch_due)
{
	int i;

	settle_quickly();
	for (i = 0; i < 2; i++)
		(void)keep(VERDICT_ACK);
	for (i = 0; i < 20; i++)
		(void)in_hand();
	assert_true(settler_waits(settler, true));
	loop_run_for(loop, MSEC - 1);
	assert_int_equal(flushes, 0);
	loop_run_for(loop, 1);
	assert_int_equal(flushes, 1);
	assert_true(settler_waits(settler, true));
	assert_false(settler_waits(settler, false));
	loop_run_for(loop, SEC);
	assert_int_equal(flushes, 1);
}

/* No other result came in the time: the next call does not wait. */
FIXTURE_TEST(test_waited_in_vain)
{
	int i;

	settle_quickly();
	(void)keep(VERDICT_ACK);
	for (i = 0; i < 3; i++)
		(void)in_hand();
	assert_true(settler_waits(settler, true));
	loop_run_for(loop, MSEC);
	assert_int_equal(flushes, 1);
	assert_false(settler_waits(settler, true));
}

/* -- refusals --------------------------------------------------------------- */

/* The results of a refused call go into calls of half the size, until the bad one is alone. */
FIXTURE_TEST(test_halves)
{
	struct delivery *bad;
	struct delivery_batch b;
	unsigned calls = 0;
	size_t i, n;

	for (i = 0; i < 15; i++)
		(void)keep(VERDICT_ACK);
	bad = keep(VERDICT_ACK);
	while (ended[SETTLED_OK] < 15) {
		assert_true(++calls < 100);
		loop_run_for(loop, LEASE);
		if (next(&b) == SETTLER_NOTHING)
			continue;
		for (n = i = 0; i < b.n; i++)
			n += b.v[i] == bad;
		if (n > 0)
			settler_refused(settler, &b, REPLY_WRONGTYPE);
		for (i = 0; n == 0 && i < b.n; i++)
			assert_true(settler_answer(settler, &b, i, "ok"));
		batch_done(&b);
	}
	assert_int_equal(ledger_tally(ledger)->refused, 1);
	assert_int_equal(bad->most, 1);
	assert_true(bad->may_have_acted);
}

/* A refused result backs off and keeps its slot; a new one is sent at once. */
FIXTURE_TEST(test_backs_off)
{
	struct delivery *d = keep(VERDICT_ACK);
	struct delivery_batch b = settle(1);
	usec_t waited, last = 0;
	int i;

	for (i = 0; i < 6; i++) {
		assert_false(settler_answer(settler, &b, 0, "error"));
		batch_done(&b);
		assert_int_equal(d->state, DELIVERY_REFUSED);
		assert_int_equal(ledger_tally(ledger)->refused, 1);
		(void)keep(VERDICT_ACK);
		b = settle(1);
		assert_ptr_not_equal(b.v[0], d);
		assert_true(settler_answer(settler, &b, 0, "ok"));
		batch_done(&b);
		for (waited = 0; next(&b) == SETTLER_NOTHING; waited += 50 * MSEC) {
			loop_run_for(loop, 50 * MSEC);
			assert_true(waited < 11 * SEC);
		}
		assert_true(b.retry && b.n == 1);
		last = waited;
	}
	assert_true(last >= 5 * SEC);	/* half of the patience, at least */
	assert_true(wakes > 0);
	/* Only one call with refused results is sent at a time; the next follows its end. */
	d->due = 0;
	settler_returned(settler, &b, false);
	batch_done(&b);
	b = settle(1);
	batch_done(&b);
}

/* While Redis refuses all calls, one is tried at a time; a new connection tries at once. */
FIXTURE_TEST(test_hold)
{
	struct delivery_batch b;

	(void)keep(VERDICT_ACK);
	(void)keep(VERDICT_ACK);
	b = settle(2);
	settler_refused(settler, &b, REPLY_REFUSED);
	assert_int_equal(b.v[0]->most, 0);	/* maxmemory: no single result causes it */
	batch_done(&b);
	assert_int_equal(next(&b), SETTLER_NOTHING);
	wakes = 0;
	loop_run_for(loop, SEC);
	assert_int_equal(wakes, 1);
	b = settle(2);
	settler_refused(settler, &b, REPLY_REFUSED);
	batch_done(&b);
	assert_int_equal(next(&b), SETTLER_NOTHING);
	settler_up(settler);
	b = settle(2);
	settler_refused(settler, &b, REPLY_REFUSED);
	batch_done(&b);
	/* After one accepted call, all results are sent again. */
	(void)keep(VERDICT_ACK);
	b = settle(1);
	assert_true(settler_answer(settler, &b, 0, "ok"));
	batch_done(&b);
	b = settle(2);
	batch_done(&b);
}

/* -- rescue ----------------------------------------------------------------- */

/* Redis has lost two messages: they are rescued one at a time, the lost call's again first. */
FIXTURE_TEST(test_rescue)
{
	struct delivery *first = keep(VERDICT_RETRY), *second = keep(VERDICT_DEAD);
	struct delivery_batch b = settle(2), none;

	settler_returned(settler, &b, true);
	batch_done(&b);
	b = settle(2);
	assert_true(settler_answer(settler, &b, 0, "held lost"));
	assert_true(settler_answer(settler, &b, 1, "lost"));
	batch_done(&b);
	assert_int_equal(settler_next(settler, false, false, &none), SETTLER_NOTHING);
	assert_int_equal(next(&b), SETTLER_RESCUE);
	assert_ptr_equal(b.v[0], first);
	assert_true(settler_is_rescuing(settler));
	assert_int_equal(next(&none), SETTLER_NOTHING);
	first->rescue_call = 7;
	settler_returned(settler, &b, true);
	batch_done(&b);
	assert_true(settler_is_rescuing(settler));
	assert_int_equal(next(&b), SETTLER_RESCUE);
	assert_ptr_equal(b.v[0], first);
	assert_int_equal(first->rescue_call, 7);	/* sent again with the same number */
	assert_true(settler_rescued(settler, first, "ok"));
	assert_int_equal(ended[SETTLED_RESCUED], 1);
	batch_done(&b);
	assert_false(settler_is_rescuing(settler));
	assert_int_equal(next(&b), SETTLER_RESCUE);
	assert_ptr_equal(b.v[0], second);
	/* Redis forgot what the first settle did, and another daemon has pushed it again. */
	assert_true(settler_rescued(settler, second, "there"));
	assert_int_equal(ended[SETTLED_STALE], 1);
	batch_done(&b);
}

FIXTURE_TEST(test_rescue_refused)
{
	struct delivery *d = keep(VERDICT_RETURN);
	struct delivery_batch b = settle(1);

	assert_true(settler_answer(settler, &b, 0, "lost"));
	batch_done(&b);
	assert_int_equal(next(&b), SETTLER_RESCUE);
	d->rescue_call = 7;
	assert_false(settler_rescued(settler, d, "strange"));
	assert_int_equal(d->rescue_call, 0);	/* the next call gets a new number */
	assert_false(settler_is_rescuing(settler));
	settler_refuse(settler, d, REPLY_OTHER);
	batch_done(&b);
	assert_int_equal(next(&b), SETTLER_NOTHING);
	loop_run_for(loop, 10 * SEC);
	assert_int_equal(next(&b), SETTLER_RESCUE);
	assert_false(settler_rescued(settler, d, NULL));
	settler_refuse(settler, d, REPLY_OTHER);
	batch_done(&b);
	loop_run_for(loop, 10 * SEC);
	assert_int_equal(next(&b), SETTLER_RESCUE);
	assert_true(settler_rescued(settler, d, "deferred wrong type"));
	assert_int_equal(ended[SETTLED_DEFERRED], 1);
	batch_done(&b);
}
