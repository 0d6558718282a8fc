/* The table of outcomes, row by row. */
#include "unit.h"

#include <errno.h>
#include <signal.h>

#include "policy/outcome.h"

/* Rows below rely on these limits. */
static struct queue_config queue = {
	.max_attempts = 3, .max_crashes = 2, .backoff = 10 * SEC,
	.backoff_max = MINUTE, .dead_status = { [65] = true, [66] = true },
};

struct row {
	struct result	result;
	unsigned	attempts;	/* before */
	struct verdict	want;
};

#define EXIT(n)		{ .end = END_EXIT, .status = (n) }
#define SIGNALED(n)	{ .end = END_SIGNAL, .signo = (n) }
#define OOM(e, n)	{ .end = (e), .status = (n), .signo = (n), .oom = true }
#define NOT_STARTED(n)	{ .end = END_NOT_STARTED, .error = (n) }
#define TOO_LARGE(s)	{ .end = END_NOT_STARTED, .error = E2BIG, .step = (s) }
#define STOPPED(s, n)	{ .end = END_EXIT, .status = (n), .stop = (s) }
#define KILLED(s)	{ .end = END_SIGNAL, .signo = SIGTERM, .stop = (s) }
#define ASKED(d)	{ .end = END_ANSWER, .said = SAID_RETRY, .delay = (d) }
#define SAID(n, s)	{ .end = END_EXIT, .status = (n), .said = (s), .delay = HOUR }

#define ACK		{ VERDICT_ACK, REASON_NONE, 0, false, REASON_NONE }
#define STALE		{ VERDICT_STALE, REASON_NONE, 0, false, REASON_NONE }
#define RETURN(r, s)	{ VERDICT_RETURN, (r), 0, false, (s) }
#define RETRIED(r, d, s)	{ VERDICT_RETRY, (r), (d), true, (s) }
#define DEFER(s)	{ VERDICT_DEFER, REASON_ANSWER, HOUR, false, (s) }
#define DEAD(r, s)	{ VERDICT_DEAD, (r), 0, true, (s) }
#define REFUSED(r)	{ VERDICT_DEAD, (r), 0, false, REASON_NONE }

#define NO		REASON_NONE
#define CANNOT		REASON_CANNOT_EXECUTE

/* Decided with unit = 1, so each delay is the whole backoff. */
static const struct row rows[] = {
	{ EXIT(0), 0, ACK },
	{ EXIT(0), 2, ACK },
	{ EXIT(65), 0, DEAD(REASON_STATUS, NO) },
	{ EXIT(66), 2, DEAD(REASON_STATUS, NO) },
	{ EXIT(1), 0, RETRIED(REASON_EXIT, 10 * SEC, NO) },
	{ EXIT(1), 1, RETRIED(REASON_EXIT, 20 * SEC, NO) },
	{ EXIT(1), 2, DEAD(REASON_ATTEMPTS, NO) },
	{ EXIT(1), 99, DEAD(REASON_ATTEMPTS, NO) },
	{ EXIT(75), 0, RETRIED(REASON_EXIT, 10 * SEC, NO) },
	{ EXIT(255), 0, RETRIED(REASON_EXIT, 10 * SEC, NO) },
	{ EXIT(126), 0, RETRIED(REASON_EXIT, 10 * SEC, CANNOT) },
	{ EXIT(127), 1, RETRIED(REASON_EXIT, 20 * SEC, CANNOT) },
	{ EXIT(127), 2, DEAD(REASON_ATTEMPTS, CANNOT) },
	{ SIGNALED(SIGSEGV), 0, RETRIED(REASON_SIGNAL, 10 * SEC, NO) },
	{ SIGNALED(SIGKILL), 1, RETRIED(REASON_SIGNAL, 20 * SEC, NO) },
	{ SIGNALED(SIGTERM), 2, DEAD(REASON_ATTEMPTS, NO) },
	{ OOM(END_SIGNAL, SIGKILL), 0, RETRIED(REASON_OOM, 10 * SEC, NO) },
	{ OOM(END_SIGNAL, SIGKILL), 2, DEAD(REASON_ATTEMPTS, NO) },
	{ OOM(END_EXIT, 137), 1, RETRIED(REASON_OOM, 20 * SEC, NO) },
	{ OOM(END_EXIT, 65), 0, DEAD(REASON_STATUS, NO) },

	/* Signalled by rqd: the status no longer counts, whatever it is. */
	{ STOPPED(STOP_TIME_LIMIT, 0), 0, RETRIED(REASON_TIMEOUT, 10 * SEC, NO) },
	{ STOPPED(STOP_TIME_LIMIT, 65), 0, RETRIED(REASON_TIMEOUT, 10 * SEC, NO) },
	{ STOPPED(STOP_TIME_LIMIT, 127), 0, RETRIED(REASON_TIMEOUT, 10 * SEC, NO) },
	{ KILLED(STOP_TIME_LIMIT), 1, RETRIED(REASON_TIMEOUT, 20 * SEC, NO) },
	{ KILLED(STOP_TIME_LIMIT), 2, DEAD(REASON_ATTEMPTS, NO) },
	{ STOPPED(STOP_DRAIN, 0), 0, RETURN(REASON_DRAIN, NO) },
	{ STOPPED(STOP_DRAIN, 65), 2, RETURN(REASON_DRAIN, NO) },
	{ KILLED(STOP_DRAIN), 2, RETURN(REASON_DRAIN, NO) },
	{ STOPPED(STOP_DRAIN, 127), 2, RETURN(REASON_DRAIN, NO) },
	{ STOPPED(STOP_PEER, 0), 0, RETURN(NO, NO) },
	{ KILLED(STOP_PEER), 2, RETURN(NO, NO) },
	{ STOPPED(STOP_LOST, 0), 0, STALE },
	{ STOPPED(STOP_LOST, 65), 0, STALE },
	{ KILLED(STOP_LOST), 2, STALE },

	/* The handler could not be started. */
	{ NOT_STARTED(ENOENT), 0, RETURN(CANNOT, CANNOT) },
	{ NOT_STARTED(EAGAIN), 2, RETURN(CANNOT, CANNOT) },
	{ NOT_STARTED(E2BIG), 0, RETURN(CANNOT, CANNOT) },
	{ TOO_LARGE("exec"), 0, RETURN(CANNOT, CANNOT) },
	{ TOO_LARGE("environment"), 2, RETURN(CANNOT, CANNOT) },
	{ TOO_LARGE("spawner"), 0, RETRIED(CANNOT, 10 * SEC, NO) },
	{ NOT_STARTED(ETIMEDOUT), 1, RETURN(CANNOT, CANNOT) },
	{ NOT_STARTED(EINVAL), 1, RETURN(CANNOT, CANNOT) },
	{ NOT_STARTED(ENOSPC), 0, RETURN(CANNOT, CANNOT) },
	{ { .end = END_NOT_STARTED, .error = EFBIG, .step = "memfd" }, 1,
	    RETRIED(CANNOT, 20 * SEC, NO) },
	{ { .end = END_NOT_STARTED, .error = EFBIG, .step = "env_file" }, 1,
	    RETURN(CANNOT, CANNOT) },
	{ TOO_LARGE("spawner"), 2, DEAD(REASON_ATTEMPTS, NO) },
	{ { .end = END_NOT_STARTED, .error = ENOENT, .stop = STOP_DRAIN }, 0,
	    RETURN(REASON_DRAIN, NO) },

	/* Persistent handlers' answers. */
	{ { .end = END_ANSWER, .said = SAID_OK }, 2, ACK },
	{ ASKED(-1), 1, RETRIED(REASON_ANSWER, 20 * SEC, NO) },
	{ ASKED(0), 1, RETRIED(REASON_ANSWER, 0, NO) },
	{ ASKED(3 * HOUR), 1, RETRIED(REASON_ANSWER, 3 * HOUR, NO) },
	{ ASKED(0), 2, DEAD(REASON_ATTEMPTS, NO) },
	{ { .end = END_ANSWER, .said = SAID_DEAD }, 0, DEAD(REASON_ANSWER, NO) },
	{ { .end = END_UNFRAMEABLE }, 0, REFUSED(REASON_UNFRAMEABLE) },
	{ { .end = END_NOT_RUN }, 0, RETURN(NO, NO) },
	{ { .end = END_ANSWER, .said = SAID_WRONG, .delay = -1 }, 0,
	    RETRIED(REASON_PROTOCOL, 10 * SEC, NO) },
	{ { .end = END_ANSWER, .said = SAID_DEFER, .delay = HOUR }, 2, DEFER(NO) },

	/* An exec handler's statement decides, not its status; 126 and 127 still suspend. */
	{ SAID(0, SAID_RETRY), 0, RETRIED(REASON_ANSWER, HOUR, NO) },
	{ SAID(65, SAID_RETRY), 1, RETRIED(REASON_ANSWER, HOUR, NO) },
	{ SAID(1, SAID_RETRY), 2, DEAD(REASON_ATTEMPTS, NO) },
	{ SAID(127, SAID_RETRY), 0, RETRIED(REASON_ANSWER, HOUR, CANNOT) },
	{ SAID(0, SAID_DEFER), 2, DEFER(NO) },
	{ SAID(65, SAID_DEFER), 99, DEFER(NO) },
	{ SAID(0, SAID_HOLD), 99, { VERDICT_HOLD, REASON_ANSWER, HOUR, false, NO } },
	{ { .end = END_EXIT, .said = SAID_HOLD, .delay = 3 * HOUR }, 2,
	    { VERDICT_HOLD, REASON_ANSWER, HOUR, false, NO } },
	{ { .end = END_EXIT, .said = SAID_HOLD_GROUP, .delay = 3 * HOUR }, 2,
	    { VERDICT_HOLD_GROUP, REASON_ANSWER, HOUR, false, NO } },
	{ SAID(126, SAID_DEFER), 0, DEFER(CANNOT) },
	{ SAID(0, SAID_DEAD), 0, DEAD(REASON_ANSWER, NO) },
	{ SAID(127, SAID_DEAD), 0, DEAD(REASON_ANSWER, CANNOT) },
	{ SAID(0, SAID_WRONG), 0, RETRIED(REASON_PROTOCOL, 10 * SEC, NO) },
	{ SAID(65, SAID_WRONG), 2, DEAD(REASON_ATTEMPTS, NO) },
	{ SAID(127, SAID_WRONG), 0, RETRIED(REASON_PROTOCOL, 10 * SEC, CANNOT) },
	{ SAID(0, SAID_PUSHES), 0, RETRIED(REASON_PUSHES, 10 * SEC, NO) },
	{ SAID(0, SAID_OK), 0, ACK },
	{ { .end = END_EXIT, .said = SAID_DEAD, .stop = STOP_TIME_LIMIT }, 0,
	    RETRIED(REASON_TIMEOUT, 10 * SEC, NO) },
	{ { .end = END_EXIT, .said = SAID_DEAD, .stop = STOP_DRAIN }, 0,
	    RETURN(REASON_DRAIN, NO) },
};

static void
assert_verdict(const struct verdict *got, const struct verdict *want)
{
	assert_int_equal(got->op, want->op);
	assert_int_equal(got->reason, want->reason);
	assert_int_equal(got->delay, want->delay);
	assert_int_equal(got->failed, want->failed);
	assert_int_equal(got->suspend, want->suspend);
}

TEST(test_backoff_max)
{
	static const unsigned attempts[] = { 2, 3, 30, 998 };
	struct queue_config q = queue;
	size_t i;

	q.max_attempts = 1000;
	for (i = 0; i < ARRAY_LEN(attempts); i++) {
		struct message m = { .cfg = &q, .attempts = attempts[i] };
		struct result r = EXIT(1);
		struct verdict v = outcome_decide(&m, &r, false, 1);

		assert_int_equal(v.op, VERDICT_RETRY);
		assert_int_equal(v.delay, i == 0 ? 40 * SEC : MINUTE);
		assert_int_equal(outcome_decide(&m, &r, false, 0).delay, v.delay / 2);
	}
}

TEST(test_table)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct message m = { .cfg = &queue, .attempts = rows[i].attempts };
		struct verdict v = outcome_decide(&m, &rows[i].result, false, 1);

		if (memcmp(&v.op, &rows[i].want.op, sizeof(v.op)) != 0)
			print_message("# row %zu\n", i);
		assert_verdict(&v, &rows[i].want);
	}
}

#define LATER(r, d, s)	{ VERDICT_RETRY, (r), (d), false, (s) }

/*
 * While the queue is suspended no failure counts as an attempt or makes a dead letter, but a
 * verdict on the message does.
 */
static const struct row suspended_rows[] = {
	{ EXIT(0), 0, ACK },
	{ EXIT(65), 2, DEAD(REASON_STATUS, NO) },
	{ EXIT(1), 0, LATER(REASON_EXIT, 10 * SEC, NO) },
	{ EXIT(1), 1, LATER(REASON_EXIT, 20 * SEC, NO) },
	{ EXIT(1), 2, LATER(REASON_EXIT, 40 * SEC, NO) },
	{ EXIT(126), 0, LATER(REASON_EXIT, 10 * SEC, CANNOT) },
	{ EXIT(127), 2, LATER(REASON_EXIT, 40 * SEC, CANNOT) },
	{ SIGNALED(SIGSEGV), 1, LATER(REASON_SIGNAL, 20 * SEC, NO) },
	{ SIGNALED(SIGSEGV), 2, LATER(REASON_SIGNAL, 40 * SEC, NO) },
	{ KILLED(STOP_TIME_LIMIT), 2, LATER(REASON_TIMEOUT, 40 * SEC, NO) },
	{ KILLED(STOP_DRAIN), 2, RETURN(REASON_DRAIN, NO) },
	{ KILLED(STOP_LOST), 2, STALE },
	{ NOT_STARTED(ENOENT), 2, RETURN(CANNOT, CANNOT) },
	{ TOO_LARGE("spawner"), 2, LATER(CANNOT, 40 * SEC, NO) },
	{ ASKED(0), 1, LATER(REASON_ANSWER, 0, NO) },
	{ ASKED(0), 2, LATER(REASON_ANSWER, 0, NO) },
	{ { .end = END_ANSWER, .said = SAID_DEAD }, 0, DEAD(REASON_ANSWER, NO) },
	{ { .end = END_UNFRAMEABLE }, 0, REFUSED(REASON_UNFRAMEABLE) },
	{ SAID(0, SAID_DEFER), 2, DEFER(NO) },
	{ SAID(127, SAID_DEFER), 2, DEFER(CANNOT) },
	{ SAID(127, SAID_RETRY), 0, LATER(REASON_ANSWER, HOUR, CANNOT) },
	{ SAID(0, SAID_WRONG), 2, LATER(REASON_PROTOCOL, 40 * SEC, NO) },
};

/* A cancelled message is dropped or dead, however its handler ended, and before it runs. */
TEST(test_cancelled)
{
	static const struct result results[] = {
		STOPPED(STOP_CANCEL, 0), STOPPED(STOP_CANCEL, 65), KILLED(STOP_CANCEL),
		{ .end = END_NOT_STARTED, .error = ENOENT, .stop = STOP_CANCEL },
	};
	static const struct verdict drop = { .op = VERDICT_DROP, .reason = REASON_CANCELLED };
	static const struct verdict dead = { .op = VERDICT_DEAD, .reason = REASON_CANCELLED };
	struct message m = { .cfg = &queue, .attempts = 99, .crashes = 99 };
	struct verdict v;
	size_t i;

	for (i = 0; i < 2 * ARRAY_LEN(results); i++) {
		m.cancel = i % 2 == 0 ? CANCEL_DROP : CANCEL_DEAD;
		v = outcome_decide(&m, &results[i / 2], i % 3 == 0, 1);
		assert_verdict(&v, i % 2 == 0 ? &drop : &dead);
		assert_true(outcome_refuse(&m, &v));
		assert_verdict(&v, i % 2 == 0 ? &drop : &dead);
	}
	/* To be retried: an attempt has failed, which tells nothing about the command. */
	m.cancel = CANCEL_RETRY;
	for (i = 0; i < ARRAY_LEN(results); i++) {
		m.attempts = 0;
		v = outcome_decide(&m, &results[i], false, 1);
		assert_true(v.op == VERDICT_RETRY && v.reason == REASON_CANCELLED && v.failed);
		assert_true(v.delay > 0 && verdict_is_of_message(&v));
		v = outcome_decide(&m, &results[i], true, 1);
		assert_true(v.op == VERDICT_RETRY && !v.failed);
		m.attempts = (unsigned)queue.max_attempts - 1;
		v = outcome_decide(&m, &results[i], false, 1);
		assert_true(v.op == VERDICT_DEAD && v.reason == REASON_ATTEMPTS && v.failed);
	}
	/* A handler that ended before the signal: its result counts. */
	v = outcome_decide(&m, &(struct result){ .end = END_EXIT }, false, 1);
	assert_int_equal(v.op, VERDICT_ACK);
}

/* The environment of the queue alone has room, so the message's variables are too large. */
TEST(test_too_large)
{
	static const struct verdict failed = RETRIED(CANNOT, 10 * SEC, NO);
	static const struct verdict returned = RETURN(CANNOT, CANNOT);
	struct message m = { .cfg = &queue };
	struct result r = TOO_LARGE("exec");
	char channel[] = "c";
	struct verdict v;

	buf_addc(&m.members, '\0');
	v = outcome_decide(&m, &r, false, 1);
	assert_verdict(&v, &failed);
	r.step = "environment";
	v = outcome_decide(&m, &r, false, 1);
	assert_verdict(&v, &returned);
	buf_done(&m.members);

	r.step = "exec";
	m.channel = channel;
	v = outcome_decide(&m, &r, false, 1);
	assert_verdict(&v, &failed);
}

TEST(test_suspended)
{
	struct queue_config list = { .kind = KIND_LIST, .max_attempts = 3 };
	struct result r = EXIT(127);
	struct verdict v;
	size_t i;

	for (i = 0; i < ARRAY_LEN(suspended_rows); i++) {
		struct message m = { .cfg = &queue, .attempts = suspended_rows[i].attempts };
		v = outcome_decide(&m, &suspended_rows[i].result, true, 1);
		assert_verdict(&v, &suspended_rows[i].want);
	}
	/* A kind that keeps no messages cannot defer one: that breaks the protocol. */
	r = (struct result)SAID(0, SAID_DEFER);
	v = outcome_decide(&(struct message){ .cfg = &list }, &r, false, 1);
	assert_int_equal(v.op, VERDICT_DEAD);
	assert_int_equal(v.reason, REASON_PROTOCOL);
	r = (struct result)EXIT(127);
	v = outcome_decide(&(struct message){ .cfg = &list }, &r, true, 1);
	assert_int_equal(v.op, VERDICT_DEAD);
	assert_true(v.failed);
}

/* Every exit status of a handler that rqd did not signal. */
TEST(test_every_status)
{
	int status;

	for (status = 0; status < 256; status++) {
		struct message m = { .cfg = &queue };
		struct result r = EXIT(status);
		struct verdict v = outcome_decide(&m, &r, false, 0);

		assert_int_equal(v.op, status == 0 ? VERDICT_ACK :
		    status == 65 || status == 66 ? VERDICT_DEAD : VERDICT_RETRY);
		assert_int_equal(v.failed, status != 0);
		assert_int_equal(v.suspend, status == 126 || status == 127 ?
		    CANNOT : NO);
		if (v.op == VERDICT_RETRY)
			assert_int_equal(v.delay, 5 * SEC);
	}
}

TEST(test_refuse)
{
	static const struct {
		unsigned	attempts, crashes;
		bool		too_large;
		enum reason	reason;		/* REASON_NONE: run it */
	} cases[] = {
		{ 0, 0, false, REASON_NONE },
		{ 2, 2, false, REASON_NONE },
		{ 2, 3, false, REASON_CRASHED },
		{ 3, 0, false, REASON_ATTEMPTS },
		{ 999999999, 0, false, REASON_ATTEMPTS },
		{ 3, 3, false, REASON_CRASHED },
		{ 0, 0, true, REASON_TOO_LARGE },
		{ 9, 9, true, REASON_TOO_LARGE },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct message m = {
			.cfg = &queue, .attempts = cases[i].attempts,
			.crashes = cases[i].crashes, .too_large = cases[i].too_large,
		};
		struct verdict want = REFUSED(cases[i].reason), v = { .delay = 7 };

		if (cases[i].reason == REASON_NONE) {
			assert_false(outcome_refuse(&m, &v));
			assert_int_equal(v.delay, 7);
		} else {
			assert_true(outcome_refuse(&m, &v));
			assert_verdict(&v, &want);
		}
	}
}

/* max_attempts = 1: no retry.  max_crashes = 0: the first crash makes a dead letter. */
TEST(test_smallest)
{
	struct queue_config q = { .max_attempts = 1, .max_crashes = 0 };
	struct message m = { .cfg = &q };
	struct result r = EXIT(1);
	struct verdict v;

	assert_false(outcome_refuse(&m, &v));
	assert_int_equal(outcome_decide(&m, &r, false, 0.5).op, VERDICT_DEAD);
	m.crashes = 1;
	assert_true(outcome_refuse(&m, &v));
	assert_int_equal(v.reason, REASON_CRASHED);
}

TEST(test_names)
{
	enum reason r;

	assert_string_equal(reason_name(REASON_NONE), "");
	for (r = REASON_EXIT; r <= REASON_ANSWER; r++)
		assert_true(strlen(reason_name(r)) > 3);
}
