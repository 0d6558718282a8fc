/*
 * The settler: which results go into which call and when, and what becomes of a result
 * after each answer.  The test plays the owner, and Redis.
 */
#include "unit.h"

#include "ledger_fixture.h"
#include "queue/settler.h"

static struct settler *settler;
static unsigned ended[SETTLED_GAVE_UP + 1], checks, warnings, wakes, flushes;

static void
settled(struct delivery *d, enum settled how, void *arg UNUSED)
{
	assert_non_null(d->msg);
	ended[how]++;
}

static void
check(struct delivery *d, void *arg UNUSED)
{
	assert_int_equal(d->state, DELIVERY_SENT);
	checks++;
}

static void
warn(const char *text, void *arg UNUSED)
{
	assert_non_null(text);
	warnings++;
}

static void
wake(void *arg UNUSED)
{
	wakes++;
}

static void
batch_due(void *arg UNUSED)
{
	flushes++;
}

static const struct settler_events events = {
	.settled = settled, .check = check, .warn = warn, .wake = wake, .batch_due = batch_due,
};

static void
renew(void *arg UNUSED)
{
}

static int
setup(void **state UNUSED)
{
	ledger_setup(renew);
	settler = settler_new(loop, ledger, &events, NULL);
	memset(ended, 0, sizeof(ended));
	checks = warnings = wakes = flushes = 0;
	return 0;
}

static int
teardown(void **state UNUSED)
{
	settler_free(settler);
	ledger_free(ledger);
	ledger_teardown();
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, teardown)

static struct delivery *
in_hand(void)
{
	struct delivery *d = add("c.1");

	ledger_move(ledger, d, DELIVERY_IN_HAND);
	return d;
}

static struct delivery *
keep(enum verdict_op op)
{
	struct verdict verdict = { .op = op };
	struct result result = { .end = END_EXIT };
	struct delivery *d = in_hand();

	settler_keep(settler, d, &verdict, &result);
	return d;
}

static enum settler_call
next(struct delivery_batch *b)
{
	return settler_next(settler, true, false, b);
}

/* Sends the one call that there must be. */
static struct delivery_batch
settle(size_t n)
{
	struct delivery_batch b, none;

	assert_int_equal(next(&b), SETTLER_SETTLE);
	assert_int_equal(b.n, n);
	assert_int_equal(next(&none), SETTLER_NOTHING);
	return b;
}

/* A new result, sent twice where doubt: the first call was lost.  Answers the last. */
static enum delivery_state
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

/* -- hand-over ---------------------------------------------------------------- */

static struct delivery *
keep_pushes_to(const char *to, enum verdict_op op, unsigned count, size_t len)
{
	static char *no_strings[] = { NULL };
	static char *pushed[] = { (char *)"items", (char *)"mails", NULL };
	static struct queue_config items = { .name = (char *)"items", .key = (char *)"items",
	    .message_max = 1 << 30, .pushes = no_strings };
	static struct queue_config mails = { .name = (char *)"mails", .key = (char *)"mails",
	    .message_max = 1 << 30, .pushes = no_strings };
	static struct queue_config *queues[] = { &items, &mails, NULL };
	struct config with = { .queues = queues, .nqueues = 2 };
	struct queue_config from = { .pushes = pushed, .push_max = 10000 };
	struct verdict verdict = { .op = op };
	struct result result = { .end = END_EXIT };
	struct delivery *d = in_hand();
	char *message = xcalloc(len + 1, 1);

	while (count-- > 0) {
		if (strchr(to, 'm') != NULL)
			pushes_add(&result.pushes, &with, &from, "mails", 5, message, len);
		if (strchr(to, 'i') != NULL)
			pushes_add(&result.pushes, &with, &from, "items", 5, message, len);
	}
	assert_null(pushes_fault(result.pushes));
	free(message);
	settler_keep(settler, d, &verdict, &result);
	return d;
}

static struct delivery *
keep_pushes(enum verdict_op op, unsigned count, size_t len)
{
	return keep_pushes_to("i", op, count, len);
}

/* The one call that there must be hands over. */
static struct delivery_batch
hand_over(size_t n)
{
	struct delivery_batch b;

	assert_int_equal(next(&b), SETTLER_HAND_OVER);
	assert_int_equal(b.n, n);
	assert_false(b.over);
	return b;
}

static void
over(struct delivery_batch *b)
{
	size_t i;

	for (i = 0; i < b->n; i++)
		assert_true(settler_answer(settler, b, i, "ok"));
	batch_done(b);
}

/* Acks that hand over have calls of their own; what is not acked hands nothing over. */
FIXTURE_TEST(test_hand_over_apart)
{
	struct delivery_batch b;

	(void)keep_pushes(VERDICT_ACK, 1, 10);
	(void)keep(VERDICT_ACK);
	(void)keep_pushes(VERDICT_RETRY, 1, 10);
	(void)keep_pushes(VERDICT_ACK, 2, 10);
	assert_int_equal(settler_next(settler, true, true, &b), SETTLER_SETTLE);
	assert_int_equal(b.n, 2);
	assert_false(b.over);
	over(&b);
	/* Its reply may be lost: it never ends the note of the daemon's pops. */
	assert_int_equal(settler_next(settler, true, true, &b), SETTLER_HAND_OVER);
	assert_int_equal(b.n, 2);
	assert_false(b.over);
	over(&b);
	assert_int_equal(ended[SETTLED_OK], 4);
	assert_true(ledger_is_empty(ledger));
}

/* A call holds 1000 messages and 1 MiB, or one result. */
FIXTURE_TEST(test_hand_over_bounds)
{
	static const struct {
		unsigned	count;
		size_t		len;
		size_t		together;
	} rows[] = { { 1, 10, 64 }, { 400, 10, 2 }, { 3000, 10, 1 }, { 1, 400000, 2 },
	    { 1, 1000000, 1 } };
	struct delivery_batch b;
	size_t i, k;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		for (k = 0; k < 2 * rows[i].together; k++)
			(void)keep_pushes(VERDICT_ACK, rows[i].count, rows[i].len);
		for (k = 0; k < 2; k++) {
			b = hand_over(rows[i].together);
			over(&b);
		}
		assert_int_equal(next(&b), SETTLER_NOTHING);
	}
}

FIXTURE_TEST(test_hand_over_ends)
{
	static const struct {
		bool		doubt;	/* the reply to a first call was lost */
		bool		refused;	/* a first call was refused */
		const char	*text;
		enum settled	how;
	} rows[] = {
		{ false, false, "ok", SETTLED_OK },
		{ false, false, "gone", SETTLED_STALE },
		{ true, false, "gone", SETTLED_OK },
		{ true, true, "gone", SETTLED_OK },
		{ false, true, "gone", SETTLED_STALE },	/* an error says that nothing happened */
		{ false, false, "held", SETTLED_STALE },
		{ true, false, "held", SETTLED_OK },
		{ false, false, "taken", SETTLED_STALE },
	};
	struct delivery_batch b;
	unsigned before;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		(void)keep_pushes(VERDICT_ACK, 1, 1);
		if (rows[i].doubt) {
			b = hand_over(1);
			settler_returned(settler, &b, true);
			batch_done(&b);
		}
		if (rows[i].refused) {
			b = hand_over(1);
			assert_false(settler_answer(settler, &b, 0,
			    "error cannot push to items: x"));
			assert_int_equal(ledger_refused(ledger), 1);
			batch_done(&b);
			settler_up(settler);
		}
		before = ended[rows[i].how];
		b = hand_over(1);
		assert_true(settler_answer(settler, &b, 0, rows[i].text));
		batch_done(&b);
		assert_int_equal(ended[rows[i].how], before + 1);
	}
}

/* Redis has forgotten the delivery: nobody else has the messages. */
FIXTURE_TEST(test_hand_over_lost)
{
	static const char *const answers[] = { "lost", "held lost" };
	struct delivery_batch b;
	size_t i;

	for (i = 0; i < ARRAY_LEN(answers); i++) {
		(void)keep_pushes(VERDICT_ACK, 1, 1);
		b = hand_over(1);
		assert_true(settler_answer(settler, &b, 0, answers[i]));
		batch_done(&b);
		assert_int_equal(next(&b), SETTLER_RESCUE);
		assert_true(delivery_hands_over(b.v[0]));
		assert_true(settler_rescued(settler, b.v[0], "ok"));
		batch_done(&b);
		assert_int_equal(ended[SETTLED_RESCUED], i + 1);
		/* The message waits for another delivery, whose handler will hand over. */
		(void)keep_pushes(VERDICT_ACK, 1, 1);
		b = hand_over(1);
		settler_returned(settler, &b, true);
		batch_done(&b);
		b = hand_over(1);
		assert_true(settler_answer(settler, &b, 0, answers[i]));
		batch_done(&b);
		assert_int_equal(next(&b), SETTLER_RESCUE);
		assert_true(settler_rescued(settler, b.v[0], "there"));
		batch_done(&b);
		assert_int_equal(ended[SETTLED_STALE], i + 1);
	}
}

/* A whole call is refused (maxmemory): the results keep their slots, plain acks go on. */
FIXTURE_TEST(test_hand_over_refused)
{
	struct delivery_batch b;

	(void)keep_pushes(VERDICT_ACK, 1, 1);
	b = hand_over(1);
	settler_refused(settler, &b, REPLY_REFUSED);
	batch_done(&b);
	assert_int_equal(ledger_refused(ledger), 1);
	(void)keep(VERDICT_ACK);
	b = settle(1);
	over(&b);
	settler_up(settler);
	b = hand_over(1);
	over(&b);
	assert_int_equal(ledger_refused(ledger), 0);
	assert_int_equal(ended[SETTLED_OK], 2);
}

/* One call pushes to one set of queues, in whatever order they were named. */
FIXTURE_TEST(test_hand_over_targets)
{
	static const char *const to[] = { "i", "m", "im", "i", "m", "im" };
	struct delivery_batch b[3], none;
	size_t i;

	for (i = 0; i < ARRAY_LEN(to); i++)
		(void)keep_pushes_to(to[i], VERDICT_ACK, 1, 1);
	for (i = 0; i < 3; i++) {
		assert_int_equal(next(&b[i]), SETTLER_HAND_OVER);
		assert_int_equal(b[i].n, 2);
	}
	assert_int_equal(next(&none), SETTLER_NOTHING);
	for (i = 0; i < 3; i++)
		over(&b[i]);
	assert_int_equal(ended[SETTLED_OK], 6);
}

/*
 * An ACL denies one queue: what is for another one goes on at once, also what was refused
 * before for another reason; each that is held is tried alone, ever more rarely.
 */
FIXTURE_TEST(test_hand_over_denied)
{
	struct delivery_batch b;
	unsigned calls = 0;
	usec_t end;
	size_t i;

	for (i = 0; i < 3; i++)
		(void)keep_pushes_to("m", VERDICT_ACK, 1, 1);
	b = hand_over(3);
	settler_refused(settler, &b, REPLY_DENIED);
	batch_done(&b);
	assert_int_equal(ledger_refused(ledger), 3);
	assert_int_equal(next(&b), SETTLER_NOTHING);
	(void)keep_pushes_to("i", VERDICT_ACK, 1, 1);
	b = hand_over(1);
	settler_refused(settler, &b, REPLY_REFUSED);
	batch_done(&b);
	for (end = clock_mono() + 5 * MINUTE; clock_mono() < end; loop_run_for(loop, 50 * MSEC)) {
		while (next(&b) == SETTLER_HAND_OVER) {
			assert_int_equal(b.n, 1);
			if (strcmp(pushes_target(b.v[0]->result.pushes, 0)->queue->name,
			    "items") == 0) {
				assert_true(end - clock_mono() > 5 * MINUTE - SEC);
				over(&b);
				continue;
			}
			calls++;
			settler_refused(settler, &b, REPLY_DENIED);
			batch_done(&b);
		}
	}
	assert_int_equal(ended[SETTLED_OK], 1);
	/* Three in five minutes, at least every 10 s, soon not more often than every 5 s. */
	assert_in_range(calls, 3 * 5 * 6, 3 * 5 * 12 + 30);
	settler_up(settler);
	for (i = 0; i < 3; i++) {
		b = hand_over(1);
		over(&b);
	}
	assert_int_equal(ended[SETTLED_OK], 4);
}

/* rqctl cancel: what Redis refuses ends, and hands nothing over. */
FIXTURE_TEST(test_hand_over_cancelled)
{
	static const enum cancel cancels[] = { CANCEL_DROP, CANCEL_DEAD };
	static const enum verdict_op ops[] = { VERDICT_DROP, VERDICT_DEAD };
	struct delivery_batch b;
	struct delivery *d;
	size_t i;

	for (i = 0; i < ARRAY_LEN(ops); i++) {
		d = keep_pushes(VERDICT_ACK, 1, 1);
		b = hand_over(1);
		settler_refused(settler, &b, REPLY_DENIED);
		batch_done(&b);
		d->msg->cancel = cancels[i];
		settler_cancel(settler, d);
		b = settle(1);
		assert_int_equal(b.v[0]->verdict.op, ops[i]);
		assert_int_equal(b.v[0]->verdict.reason, REASON_CANCELLED);
		assert_null(b.v[0]->result.pushes);
		over(&b);
	}
	assert_int_equal(ended[SETTLED_OK], 2);
	assert_int_equal(ledger_refused(ledger), 0);
}

/* The queue closes: what is refused then, or was before, is returned. */
FIXTURE_TEST(test_hand_over_closing)
{
	static const enum reply_error errors[] = { REPLY_REFUSED, REPLY_DENIED, REPLY_OTHER };
	struct delivery_batch b;
	size_t i;

	(void)keep_pushes(VERDICT_ACK, 1, 1);
	b = hand_over(1);
	settler_refused(settler, &b, REPLY_REFUSED);
	batch_done(&b);
	settler_close(settler);
	for (i = 0; i < ARRAY_LEN(errors); i++) {
		b = settle(1);
		assert_int_equal(b.v[0]->verdict.op, VERDICT_RETURN);
		assert_null(b.v[0]->result.pushes);
		over(&b);
		(void)keep_pushes(VERDICT_ACK, 1, 1);
		b = hand_over(1);
		if (i == 2)
			assert_false(settler_answer(settler, &b, 0, "error cannot push"));
		else
			settler_refused(settler, &b, errors[i]);
		batch_done(&b);
	}
	b = settle(1);
	over(&b);
	/* Redis is loading: it has said nothing about the result. */
	(void)keep_pushes(VERDICT_ACK, 1, 1);
	b = hand_over(1);
	settler_refused(settler, &b, REPLY_TRANSIENT);
	batch_done(&b);
	settler_up(settler);
	b = hand_over(1);
	over(&b);
	assert_int_equal(ended[SETTLED_OK], 5);
}

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
	/* A letter that may have been written was not if the message still lives. */
	assert_int_equal(answer(VERDICT_DEAD, true, "held", true), DELIVERY_SENT);
	assert_int_equal(checks, 1);
}

/* Redis lost the delivery, and a renewal has found another message under its tag. */
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

/* The engine hears nothing of what it never had. */
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
	assert_int_equal(ledger_count(ledger, DELIVERY_KEPT), 1);
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

/* Large tags: a call ends with the one that makes it too large. */
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

/* "over" only where the call has all that the daemon has, and all of it is acked. */
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

/* Results one after the other without a pause: the settler knows that handlers are quick. */
static void
settle_quickly(void)
{
	int i;

	for (i = 0; i < 40; i++)
		ledger_move(ledger, keep(VERDICT_ACK), DELIVERY_DONE);
}

/* Quick handlers: results wait for others as long as many are still in hand. */
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

/* Only one came in the time: the next does not wait. */
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

/* Each of a refused call goes into one of half the size, until one is to blame. */
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
	assert_int_equal(ledger_refused(ledger), 1);
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
		assert_int_equal(ledger_refused(ledger), 1);
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
	/* One call with such results at a time; the end of this one lets the next go. */
	d->due = 0;
	settler_returned(settler, &b, false);
	batch_done(&b);
	b = settle(1);
	batch_done(&b);
}

/* While nothing is accepted, one call at a time is tried; a new connection tries at once. */
FIXTURE_TEST(test_hold)
{
	struct delivery_batch b;

	(void)keep(VERDICT_ACK);
	(void)keep(VERDICT_ACK);
	b = settle(2);
	settler_refused(settler, &b, REPLY_REFUSED);
	assert_int_equal(b.v[0]->most, 0);	/* memory is full: nobody is to blame */
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
	/* One that is accepted says that Redis takes results again. */
	(void)keep(VERDICT_ACK);
	b = settle(1);
	assert_true(settler_answer(settler, &b, 0, "ok"));
	batch_done(&b);
	b = settle(2);
	batch_done(&b);
}

/* -- rescue ----------------------------------------------------------------- */

/* Two results that Redis has lost: one at a time, and the one in doubt goes first. */
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
	assert_int_equal(first->rescue_call, 7);	/* the second sending has the same */
	assert_true(settler_rescued(settler, first, "ok"));
	assert_int_equal(ended[SETTLED_RESCUED], 1);
	batch_done(&b);
	assert_false(settler_is_rescuing(settler));
	assert_int_equal(next(&b), SETTLER_RESCUE);
	assert_ptr_equal(b.v[0], second);
	/* Redis forgot what the first settle did: another daemon has put it back. */
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
	assert_int_equal(d->rescue_call, 0);	/* the next has a new number */
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
