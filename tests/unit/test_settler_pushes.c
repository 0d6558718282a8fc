/*
 * The settler: acks that push messages to other queues ("hand over").
 */
#include "unit.h"

#include "settler_fixture.h"

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

/* Takes the next call, which must hand over n results. */
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

/* Acks that hand over go in calls of their own; a result that is no ack pushes nothing. */
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
	/* Its reply may be lost, so the call is never "over". */
	assert_int_equal(settler_next(settler, true, true, &b), SETTLER_HAND_OVER);
	assert_int_equal(b.n, 2);
	assert_false(b.over);
	over(&b);
	assert_int_equal(ended[SETTLED_OK], 4);
	assert_true(ledger_is_empty(ledger));
}

/* A call pushes at most 1000 messages and 1 MiB, but always takes one result. */
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
			assert_int_equal(ledger_tally(ledger)->refused, 1);
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

/* Redis has lost the delivery: the rescue pushes the messages instead. */
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

/* Redis refuses a hand-over (maxmemory): its result keeps its slot, and plain acks go on. */
FIXTURE_TEST(test_hand_over_refused)
{
	struct delivery_batch b;

	(void)keep_pushes(VERDICT_ACK, 1, 1);
	b = hand_over(1);
	settler_refused(settler, &b, REPLY_REFUSED);
	batch_done(&b);
	assert_int_equal(ledger_tally(ledger)->refused, 1);
	(void)keep(VERDICT_ACK);
	b = settle(1);
	over(&b);
	settler_up(settler);
	b = hand_over(1);
	over(&b);
	assert_int_equal(ledger_tally(ledger)->refused, 0);
	assert_int_equal(ended[SETTLED_OK], 2);
}

/* Results go into one call if they push to the same set of queues, in any order. */
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
 * An ACL denies pushes to one queue.  Pushes to another queue go on at once, also one that
 * was refused for another reason.  Each denied result is tried alone, and backs off.
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
	assert_int_equal(ledger_tally(ledger)->refused, 3);
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
	/* Each of the three backs off to 5 to 10 s: so many calls in five minutes. */
	assert_in_range(calls, 3 * 5 * 6, 3 * 5 * 12 + 30);
	settler_up(settler);
	for (i = 0; i < 3; i++) {
		b = hand_over(1);
		over(&b);
	}
	assert_int_equal(ended[SETTLED_OK], 4);
}

/* rqctl cancel ends a result that Redis refuses: it is not acked, and pushes nothing. */
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
	assert_int_equal(ledger_tally(ledger)->refused, 0);
}

/* When the queue closes, a refused result is returned, whether refused before or then. */
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
	/* Redis is loading: that refuses nothing, so the result is kept. */
	(void)keep_pushes(VERDICT_ACK, 1, 1);
	b = hand_over(1);
	settler_refused(settler, &b, REPLY_TRANSIENT);
	batch_done(&b);
	settler_up(settler);
	b = hand_over(1);
	over(&b);
	assert_int_equal(ended[SETTLED_OK], 5);
}
