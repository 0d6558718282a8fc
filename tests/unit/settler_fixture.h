/*
 * Fixture for tests of the settler: a settler over a ledger.  The test does what the
 * settler's owner would do, and gives the answers that Redis would give.
 */
#pragma once

#include "ledger_fixture.h"
#include "queue/settler.h"

static struct settler *settler;
static unsigned ended[SETTLED_GAVE_UP + 1], checks, warnings, wakes, flushes;

static inline void
settled(struct delivery *d, enum settled how, void *arg UNUSED)
{
	assert_non_null(d->msg);
	ended[how]++;
}

static inline void
check(struct delivery *d, void *arg UNUSED)
{
	assert_int_equal(d->state, DELIVERY_SENT);
	checks++;
}

static inline void
warn(const char *text, void *arg UNUSED)
{
	assert_non_null(text);
	warnings++;
}

static inline void
wake(void *arg UNUSED)
{
	wakes++;
}

static inline void
batch_due(void *arg UNUSED)
{
	flushes++;
}

static const struct settler_events events = {
	.settled = settled, .check = check, .warn = warn, .wake = wake, .batch_due = batch_due,
};

static inline void
renew(void *arg UNUSED)
{
}

static inline int
setup(void **state UNUSED)
{
	ledger_setup(renew);
	settler = settler_new(loop, ledger, &events, NULL);
	memset(ended, 0, sizeof(ended));
	checks = warnings = wakes = flushes = 0;
	return 0;
}

static inline int
teardown(void **state UNUSED)
{
	settler_free(settler);
	ledger_free(ledger);
	ledger_teardown();
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, teardown)

static inline struct delivery *
in_hand(void)
{
	struct delivery *d = add("c.1");

	ledger_move(ledger, d, DELIVERY_IN_HAND);
	return d;
}

static inline struct delivery *
keep(enum verdict_op op)
{
	struct verdict verdict = { .op = op };
	struct result result = { .end = END_EXIT };
	struct delivery *d = in_hand();

	settler_keep(settler, d, &verdict, &result);
	return d;
}

static inline enum settler_call
next(struct delivery_batch *b)
{
	return settler_next(settler, true, false, b);
}

/* Takes the next call: it must settle n results, and no other call may follow. */
static inline struct delivery_batch
settle(size_t n)
{
	struct delivery_batch b, none;

	assert_int_equal(next(&b), SETTLER_SETTLE);
	assert_int_equal(b.n, n);
	assert_int_equal(next(&none), SETTLER_NOTHING);
	return b;
}

/*
 * Keeps a result and sends it; doubt: the reply is lost, so it is sent once more.  Gives
 * `text` as the answer, for which settler_answer() must return `want`.  Returns the
 * delivery's state after that.
 */
static inline enum delivery_state
answer(enum verdict_op op, bool doubt, const char *text, bool want)
{
	enum delivery_state state;
	struct delivery_batch b;

	(void)keep(op);
	if (doubt) {
		b = settle(1);
		settler_returned(settler, &b, true);
		batch_done(&b);
	}
	b = settle(1);
	assert_int_equal(settler_answer(settler, &b, 0, text), want);
	state = b.v[0]->state;
	if (state != DELIVERY_DONE)
		ledger_move(ledger, b.v[0], DELIVERY_DONE);
	batch_done(&b);
	return state;
}
