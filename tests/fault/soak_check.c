/*
 * The proof.  It compares the runs that handlers recorded with the messages that were
 * pushed and the dead letters, and every second delivery with the faults.
 *
 * Finished messages.  After Redis has confirmed an ack or a dead letter, no daemon
 * begins a run of the message or writes a letter.  The only exception: Redis has lost
 * data since the message's first run (by FLUSHALL, or because a promoted replica was
 * behind).  A record in
 * the daemon's log counts as a confirmation, unless one of its connections ended
 * between the run's beginning and that record.  In that case the result may have been
 * sent twice, and the answer that another delivery has the message counts as success,
 * because the first call may have acted.
 *
 * Other messages.  Without a fault a message may run again only after a run that failed
 * and has ended.  Any other second run needs a fault that struck the daemon of the
 * first run, between the beginnings of both runs.  The explanations, strongest first:
 *
 *	- the daemon was killed, or ended by SIGTERM, before it was confirmed;
 *	- it was stopped for so long that leases could expire;
 *	- a replica was promoted that did not know of the first run;
 *	- faults of any kind, one after the other, that kept it from Redis for
 *	  longer than a lease less a renewal; the longest of them is the cause.
 *
 * A shorter loss of the connection, or a restart of Redis, explains nothing: the daemon
 * keeps results, and asks about pops whose reply was lost.  Nor do these explain
 * anything: refused commands, connections that end often, a slow link, limits of Redis,
 * clocks, a full disk, or processes that cannot be started.
 *
 * Messages that a dead daemon had in flight run again within a lease and five seconds,
 * counting only time in which some daemon could talk to Redis without a break.  The
 * message behind a burst of failures runs within thirty seconds.
 *
 * The totals in QSTATS may be too small: those since the last tick are lost with the
 * daemon, or with a lost reply.  They are never too large.
 *
 * Messages that hand over (with PIPE): a message that Redis has acknowledged has handed
 * over each child, and its number, once.  A dead one has handed over nothing.  Both
 * hold however often the message ran, and for each child too.  No fault explains an
 * exception: a soak with PIPE has no fault in which Redis forgets.
 *
 * A dead letter "crashed" of a message that has never run must be larger than 64 KiB, and the
 * daemon must have lost connections right before: it gives such a message up if the replies to
 * its pops are lost again and again, since that may be its fault (doc/guarantees.md).
 *
 * Messages that Redis itself forgot are counted apart: those that waited, those in flight,
 * and dead letters.  All others must come to their end.
 */
#include "soak_explain.h"
#include "soak_runs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/util.h"

#define TAKEN_UP	(LEASE + 5)	/* and how long a machine that is busy may take: */
#define BUSY		2
#define BEHIND_BURST	28	/* and BUSY, too */
#define LARGE_LATER	6	/* than a megabyte a second would have it, and a half more */
#define LARGE_ABOUT	10
#define BLAMED		65536	/* as in reclaim.lua */
#define BLAMED_WITHIN	(5 + soak_patience)	/* seconds after the last lost reply */

static const char *const cause_names[CAUSES] = {
	[CAUSE_NONE] = "nothing",
	[CAUSE_KILLED] = "daemon killed",
	[CAUSE_ENDED] = "daemon ended",
	[CAUSE_STOPPED] = "daemon stopped",
	[CAUSE_REFUSED] = "commands refused",
	[CAUSE_CUT_OFF] = "cut off from Redis",
	[CAUSE_REDIS_STOPPED] = "Redis stopped",
	[CAUSE_REDIS_KILLED] = "Redis restarted",
	[CAUSE_PROMOTED] = "Redis lost memory",
};

static const struct run *runs;	/* see runs_read() */
static size_t nruns;
static const struct fault *faults;
static size_t nfaults;
static double longest_taken, longest_behind, longest_large;

struct fate {
	unsigned	successes, letters, runs;
	unsigned	confirmed;	/* acks that Redis has confirmed */
	double		born;		/* the first run; 0: none */
	double		end;		/* when it last ended, by a run or a letter */
	bool		doubtful;	/* it may never have been pushed */
	unsigned	deferred;	/* runs */
	bool		status65;
	bool		forgotten;	/* by Redis, and by nobody else to be kept */
	unsigned	arrived;	/* its number, in "end" */
};
static unsigned handed;		/* numbers and children, as they must be */
static unsigned cancelled_letters, blamed;
static unsigned texts;		/* that runs got */
static unsigned by_redis[PLACE_DEAD + 1];

static struct count {
	unsigned	again, beside, unfinished;
} by_cause[CAUSES];

/* -- runs in doubt ----------------------------------------------------------- */

/*
 * A run gets a text that an earlier run of its message has saved.  If the run before it has ended,
 * and no fault may have undone that, it is the last text of that run.
 */
static void
judge_text(const struct run *first, const struct run *r, double born)
{
	const struct run *p = r - 1, *of;

	if (r->saved == -1)
		return;
	for (of = first; of < r; of++) {
		if (r->saved == 10 * (int)of->pid + 1 || r->saved == 10 * (int)of->pid + 2)
			break;
	}
	texts += r->saved > 0;
	if (r->saved > 0 && of == r) {
		problem("message %ld got a text that no run of it had saved: %d", r->n, r->saved);
		run_tell(r);
	}
	if (r == first || p->saved == -1 || p->to == 0 || p->to > r->from || run_is_final(p) ||
	    r->saved == 10 * (int)p->pid + 2 || work_cancelled(r->n) != NULL ||
	    explain(p, born, r->from) != CAUSE_NONE || explain_forgot(p->from, r->from))
		return;
	problem("message %ld has lost the text of its run before, and got %d", r->n, r->saved);
	run_tell(p);
	run_tell(r);
}

/* Judges two successive runs of a message; the second may be missing. */
static void
judge_pair(const struct run *r, double born, const struct run *next)
{
	bool final = run_is_final(r);
	bool beside = next != NULL && r->to > 0 && next->from < r->to;
	double until = next != NULL ? next->from : 1e12;
	enum cause cause;

	if (next != NULL ? !final && !beside && r->to > 0 : r->to > 0)
		return;
	if (r->confirmed && !beside)
		return;		/* judge_finished() has it */
	if (r->to == 0 && work_cancelled(r->n) != NULL)
		return;		/* its handler was ended */
	cause = explain(r, born, until);
	by_cause[cause].again += final && next != NULL;
	by_cause[cause].beside += beside;
	by_cause[cause].unfinished += r->to == 0;
	if (cause != CAUSE_NONE)
		return;
	problem("message %ld: %s, and no fault explains it", r->n,
	    r->to == 0 ? "a run did not end" :
	    beside ? "ran beside itself" :
	    final && r->status == 0 ? "ran again after it had succeeded" :
	    "ran again after it was dead");
	run_tell(r);
	if (next != NULL)
		run_tell(next);
	explain_tell(r->from, next != NULL ? next->from : r->from + LEASE);
}

/*
 * Judges a run that begins although the message was cancelled.  A delivery that was on
 * its way then may begin within a lease.
 */
static void
judge_cancelled(const struct run *r, double born)
{
	const struct cancelled *c = work_cancelled(r->n);

	if (c == NULL || !c->certain || r->from <= c->at + LEASE + soak_patience ||
	    explain_forgot(born, r->from))
		return;
	problem("message %ld ran %.1f s after it was cancelled", r->n, r->from - c->at);
	explain_tell(born, r->from);
}

/* Judges a run that begins after one whose result Redis has confirmed. */
static void
judge_finished(const struct run *finished, double born, const struct run *r)
{
	static long told;

	if (r->from <= finished->to || r->n == told)
		return;
	if (explain_forgot(born, r->from)) {
		by_cause[CAUSE_PROMOTED].again++;
		return;
	}
	told = r->n;
	problem("message %ld ran again after Redis had confirmed that it %s", r->n,
	    finished->status == 0 ? "succeeded" : "is dead");
	run_tell(finished);
	run_tell(r);
	explain_tell(born, r->from);
}

/* -- how long it takes ------------------------------------------------------ */

/* The daemon of the run was killed: judges when the next run begins. */
static void
judge_wait(const struct run *r, const struct run *next)
{
	double killed = 0, waited;

	for (size_t i = 0; i < nfaults; i++) {
		const struct fault *f = &faults[i];

		if (f->kind->cause == CAUSE_KILLED && f->pid == r->daemon)
			killed = f->from;
	}
	if (next == NULL || killed < r->from || next->from < killed ||
	    (r->to > 0 && r->to < killed))
		return;
	waited = explain_unhindered(killed, next->from, true);
	if (waited > longest_taken)
		longest_taken = waited;
	if (waited <= TAKEN_UP + BUSY * soak_patience)
		return;
	problem("message %ld: its daemon %d was killed, and it ran again only after %.1f s, %.1f s "
	    "of them without any fault", r->n, (int)r->daemon, next->from - killed, waited);
	explain_tell(killed, next->from);
}

/* The bytes of the large messages that were in the queue within these times. */
static double
large_bytes(double from, double to)
{
	size_t n;
	const struct special *s = work_special(&n);
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		if (s[i].at >= from - LARGE_ABOUT && s[i].at <= to)
			sum += (double)s[i].bytes;
	}
	return sum;
}

/* Checks that a large message was not late for its size, and for that of others before it. */
static void
check_large(const struct special *s, const struct fate *fate)
{
	double most, waited;

	if (fate->born == 0)
		return;
	most = 1.5 * large_bytes(s->at, fate->born) / 1e6 + LARGE_LATER * soak_patience;
	waited = explain_unhindered(s->at, fate->born, true);
	if (fate->born - s->at > longest_large)
		longest_large = fate->born - s->at;
	if (waited <= most || explain_limited(s->at, fate->born))
		return;
	problem("message %ld, of %zu bytes, ran after %.1f s, %.1f s of them without any fault "
	    "but a slow link", s->first, s->bytes, fate->born - s->at, waited);
	explain_tell(s->at, fate->born);
}

/* Checks the message behind a burst, and large ones. */
static void
check_specials(struct fate *fates)
{
	size_t n;
	const struct special *s = work_special(&n);
	double waited;

	for (size_t i = 0; i < n; i++) {
		struct fate *last = &fates[s[i].last];

		for (long k = s[i].first; k <= s[i].last; k++)
			fates[k].doubtful = !s[i].certain;
		if (s[i].bytes > 0)
			check_large(&s[i], last);
		if (!s[i].burst || last->born == 0)
			continue;
		waited = last->born - s[i].at;
		if (waited > longest_behind)
			longest_behind = waited;
		if (explain_unhindered(s[i].at, last->born, false) >
		    BEHIND_BURST + BUSY * soak_patience)
			problem("message %ld, behind a burst of failures, waited for %.1f s",
			    s[i].last, waited);
	}
	printf("# longest: behind a burst %.1f s, a large message %.1f s, after a daemon's death "
	    "%.1f s without a fault\n", longest_behind, longest_large, longest_taken);
}

/* -- dead letters ----------------------------------------------------------- */

static const redisReply *
letter_field(const redisReply *fields, const char *name)
{
	for (size_t i = 0; i + 1 < fields->elements; i += 2) {
		if (strcmp(fields->element[i]->str, name) == 0)
			return fields->element[i + 1];
	}
	return NULL;
}

/* Of a message, or of a child; NULL: there is no such one. */
static struct fate *
fate_of(struct fate *fates, long n, long messages)
{
	long parent = (n - CHILDREN) / CHILDREN_EACH, i = (n - CHILDREN) % CHILDREN_EACH;

	if (n >= 1 && n <= messages)
		return &fates[n];
	if (!soak_pipe || n <= CHILDREN || parent < 1 || parent > soak_messages || i < 1 ||
	    i > CHILDREN_MOST)
		return NULL;
	return &fates[n];
}

/*
 * Whether a message of this length may be dead without having run: rqd blames one that is
 * larger than 64 KiB for the losses when replies to pops with it are lost again and again, and
 * then makes a dead letter of it.  at: when it did, to a second or so.
 */
static bool
is_blamed(size_t len, double at)
{
	return len >= BLAMED && (log_was_cut(0, at - BLAMED_WITHIN, at + 1) ||
	    log_was_cut(1, at - BLAMED_WITHIN, at + 1));
}

static void
judge_letter(const redisReply *fields, double at, struct fate *fates, long messages)
{
	const redisReply *body = letter_field(fields, "message");
	const redisReply *reason = letter_field(fields, "reason");
	long n = body != NULL ? work_number(body->str, body->len) : 0;
	struct fate *fate = fate_of(fates, n, messages);

	if (fate == NULL || reason == NULL) {
		problem("a dead letter that nobody pushed");
		return;
	}
	fate->letters++;
	fate->end = at > fate->end ? at : fate->end;
	if (strcmp(reason->str, "cancelled") == 0) {
		cancelled_letters++;
		if (work_cancelled(n) == NULL)
			problem("message %ld is a dead letter, cancelled by nobody", n);
		return;
	}
	if (fate->runs == 0 && strcmp(reason->str, "crashed") == 0 && is_blamed(body->len, at))
		blamed++;
	else if (fate->runs == 0)
		problem("message %ld is dead (%s) without having run", n, reason->str);
	else if (strcmp(reason->str, n > CHILDREN ? "answer" : "status") == 0 ? !fate->status65 :
	    strcmp(reason->str, "attempts") == 0 ? fate->runs - fate->deferred < MAX_ATTEMPTS :
	    strcmp(reason->str, "crashed") != 0)
		problem("message %ld is dead: %s, after %u runs", n, reason->str, fate->runs);
}

static void
letters_read(const char *key, struct fate *fates, long messages)
{
	char from[64] = "-";
	double offset = (double)time(NULL) - now();	/* of Redis' clock, to a second */
	redisReply *r;

	while ((r = ask("XRANGE %s %s + COUNT 500", key, from)) != NULL &&
	    r->type == REDIS_REPLY_ARRAY && r->elements > 0) {
		for (size_t i = 0; i < r->elements; i++)
			judge_letter(r->element[i]->element[1],
			    atof(r->element[i]->element[0]->str) / 1e3 - offset, fates, messages);
		snprintf(from, sizeof(from), "(%s",
		    r->element[r->elements - 1]->element[0]->str);
	}
}

/* -- what Redis forgot ------------------------------------------------------- */

static void
judge_forgotten(struct fate *fates, long messages)
{
	size_t n;
	const struct forgotten *x = redis_forgotten(&n);

	for (size_t i = 0; i < n; i++) {
		if (x[i].n < 1 || x[i].n > messages)
			continue;
		by_redis[x[i].place]++;
		if (x[i].place == PLACE_DEAD)
			fates[x[i].n].letters += fates[x[i].n].letters == 0;
		else
			fates[x[i].n].forgotten = true;
	}
}

/* -- what was handed over ------------------------------------------------------ */

/* Counts what arrived in "end". */
static void
end_read(struct fate *fates, long messages)
{
	redisReply *r = soak_pipe ? ask("LRANGE end 0 -1") : NULL;
	struct fate *fate;

	for (size_t i = 0; r != NULL && i < r->elements; i++) {
		fate = fate_of(fates, atol(r->element[i]->str), messages);
		if (fate == NULL)
			problem("\"%s\" was handed over by nobody", r->element[i]->str);
		else
			fate->arrived++;
	}
}

/* Checks that its number arrived once if it was acknowledged, else never. */
static void
judge_number(const struct fate *fate, long n)
{
	unsigned wanted = fate->letters == 0 && fate->successes > 0 && work_hands_number(n);

	handed += wanted;
	if (fate->arrived == wanted)
		return;
	problem("message %ld handed over its number %u times instead of %u (letters %u)", n,
	    fate->arrived, wanted, fate->letters);
	runs_tell(n);
	explain_tell(fate->born, fate->end + LEASE);
}

/* Checks that a child has one end if its parent has handed it over, else none. */
static void
judge_child(struct fate *fates, long n, int i)
{
	const struct fate *parent = &fates[n], *child = &fates[work_child(n, i)];
	unsigned wanted = parent->letters == 0 && parent->successes > 0 &&
	    work_hands_child(n, i);

	handed += wanted;
	if (child->letters + child->arrived == wanted && (child->runs == 0 || wanted > 0)) {
		judge_number(child, work_child(n, i));
		return;
	}
	problem("child %d of message %ld: %u ends instead of %u (parent's letters %u; letters %u, "
	    "handed on %u, runs %u)", i, n, child->letters + child->arrived, wanted,
	    parent->letters, child->letters, child->arrived, child->runs);
	runs_tell(n);
	runs_tell(work_child(n, i));
	explain_tell(parent->born, child->end + LEASE);
}

static void
judge_handed_over(struct fate *fates)
{
	if (!soak_pipe)
		return;
	for (long n = 1; n <= soak_messages; n++) {
		judge_number(&fates[n], n);
		for (int i = 1; i <= CHILDREN_MOST; i++)
			judge_child(fates, n, i);
	}
	printf("# handed over: %u, each once\n", handed);
}

/* -- all of it -------------------------------------------------------------- */

bool
check_caught_up(void)
{
	redisReply *r = soak_stream ? ask("EVAL %s 0", UNREAD "return #unread(1)") :
	    ask("LLEN q");

	return r != NULL && r->type == REDIS_REPLY_INTEGER && r->integer == 0;
}

bool
check_drained(void)
{
	redisReply *r = soak_stream ? ask("EVAL %s 0", UNREAD
	    "if redis.call('EXISTS', 'q') == 0 then return 1 end "
	    "return #unread(1) + redis.call('XPENDING', 'q', 'rqd')[1] + "
	    "redis.call('EXISTS', 'qBACKUP', 'qRETRY', 'qCONTEXT', 'qDELIVERY', 'qDELAYED')") :
	    ask("EXISTS q qBACKUP qRETRY qCONTEXT qDELIVERY qDELAYED "
	    "b bBACKUP bRETRY bCONTEXT bDELIVERY");

	return r != NULL && r->type == REDIS_REPLY_INTEGER && r->integer == 0;
}

static void
check_keys(void)
{
	static const char *const known[] = {
		"qSTATS", "qDEAD", "pushed", "specials", "rqd:daemons",
		"rqd:daemons:queues",
		"bSTATS", "bDEAD", "end"
	};
	redisReply *r = ask("KEYS *");
	size_t i, k;

	for (i = 0; r != NULL && i < r->elements; i++) {
		const char *key = r->element[i]->str;

		for (k = 0; k < ARRAY_LEN(known) && strcmp(key, known[k]) != 0; k++)
			;
		if (k == ARRAY_LEN(known) && !(soak_stream && strcmp(key, "q") == 0) &&
		    strncmp(key, "rqd:daemon:", 11) != 0)
			problem("key %s is left over", key);
	}
}

static long
total(const char *counter)
{
	redisReply *r = ask("HGET qSTATS %s", counter);

	return r != NULL && r->type == REDIS_REPLY_STRING ? atol(r->str) : 0;
}

/* Checks the totals: each run is acknowledged, deferred, fails, or none of these. */
static void
check_totals(void)
{
	long acked = total("acked"), failed = total("failed"), put_off = total("deferred");
	size_t ok = 0, deferred = 0, bad, all = 0;

	for (size_t i = 0; i < nruns && runs[i].n < CHILDREN; i++, all++) {
		ok += runs[i].to > 0 && runs[i].status == 0;
		deferred += runs[i].to > 0 && runs[i].status == SOAK_DEFERRED;
	}
	bad = all - ok - deferred;
	printf("# totals: acked %ld of %zu, deferred %ld of %zu, failed %ld of %zu\n", acked, ok,
	    put_off, deferred, failed, bad);
	if (acked > (long)ok || put_off > (long)deferred ||
	    acked + put_off + failed > (long)all)
		problem("more was counted than has happened");
	if (nfaults == 0 && (acked < (long)ok || put_off < (long)deferred || failed < (long)bad))
		problem("less was counted than has happened, without any fault");
}

static void
print_tables(void)
{
	printf("#\n# %-18s %6s\n", "fault", "times");
	for (const struct fault_kind *k = fault_kinds; k->name != NULL; k++) {
		unsigned n = 0;

		for (size_t i = 0; i < nfaults; i++)
			n += faults[i].kind == k;
		if (n > 0)
			printf("# %-18s %6u\n", k->name, n);
	}
	printf("# %-18s %6zu\n#\n", "all", nfaults);
	printf("# %-20s %10s %10s %10s\n", "explained by", "duplicates", "beside",
	    "cut short");
	for (size_t c = 0; c < CAUSES; c++) {
		struct count *n = &by_cause[c];

		if (n->again + n->beside + n->unfinished > 0)
			printf("# %-20s %10u %10u %10u\n", cause_names[c], n->again,
			    n->beside, n->unfinished);
	}
}

static void
print_sums(const struct fate *fates, long messages)
{
	unsigned ok = 0, dead = 0, both = 0, lost = 0, duplicates = 0, forgotten = 0;

	for (long n = 1; n <= messages; n++) {
		const struct fate *f = &fates[n];

		ok += f->successes > 0;
		dead += f->letters > 0;
		both += f->successes > 0 && f->letters > 0;
		duplicates += f->successes > 1 ? f->successes - 1 : 0;
		if (f->successes + f->letters == 0 && f->doubtful)
			continue;
		if (f->successes + f->letters == 0 && f->forgotten) {
			forgotten++;
		} else if (f->successes + f->letters == 0) {
			lost++;
			problem("message %ld is lost (%u runs)", n, f->runs);
		}
		if (f->letters + f->confirmed > 1 && !explain_forgot(f->born, f->end + 1)) {
			problem("message %ld has ended more than once: dead letters %u, "
			    "acks confirmed %u", n, f->letters, f->confirmed);
			runs_tell(n);
		}
	}
	printf("#\n# messages %ld, runs %zu, succeeded %u, dead %u, both %u, "
	    "second successes %u, lost %u\n", messages, nruns, ok, dead, both, duplicates,
	    lost);
	printf("# cancelled: %u letters; blamed for lost replies: %u\n", cancelled_letters, blamed);
	printf("# runs that got a text of an earlier run: %u\n", texts);
	printf("# Redis forgot: waiting %u, in hand %u, letters %u; messages gone with it %u\n",
	    by_redis[PLACE_WAITING], by_redis[PLACE_IN_HAND], by_redis[PLACE_DEAD], forgotten);
}

int
check_all(long messages, const struct fault *f, size_t n)
{
	long last = soak_pipe ? work_child(soak_messages, CHILDREN_MOST) : messages;
	struct fate *fates = xcalloc((size_t)last + 1, sizeof(*fates)), *fate;
	const struct run *finished = NULL, *first = NULL;
	double born = 0;

	faults = f;
	nfaults = n;
	explain_by(f, n);
	runs = runs_read(&nruns);
	for (size_t i = 0; i < nruns; i++) {
		const struct run *r = &runs[i];
		bool more = i + 1 < nruns && runs[i + 1].n == r->n;

		if (i == 0 || runs[i - 1].n != r->n) {
			born = r->from;
			first = r;
			finished = NULL;
		}
		if ((fate = fate_of(fates, r->n, messages)) == NULL) {
			problem("a run of message %ld, which nobody pushed", r->n);
			continue;
		}
		fate->runs++;
		fate->successes += r->to > 0 && r->status == 0;
		/* Of a cancelled one the log confirms the letter, whatever its status was. */
		fate->confirmed += r->confirmed && r->status == 0 &&
		    work_cancelled(r->n) == NULL;
		fate->born = born;
		fate->end = r->to > fate->end ? r->to : fate->end;
		fate->deferred += r->to > 0 && r->status == SOAK_DEFERRED;
		fate->status65 |= r->to > 0 && r->status == 65;
		if (finished != NULL)
			judge_finished(finished, born, r);
		if (r->confirmed && finished == NULL)
			finished = r;
		judge_cancelled(r, born);
		judge_text(first, r, born);
		judge_pair(r, born, more ? &runs[i + 1] : NULL);
		judge_wait(r, more ? &runs[i + 1] : NULL);
	}
	check_specials(fates);
	letters_read("qDEAD", fates, messages);
	letters_read("bDEAD", fates, messages);
	end_read(fates, messages);
	judge_forgotten(fates, messages);
	check_keys();
	check_totals();
	print_sums(fates, messages);
	judge_handed_over(fates);
	print_tables();
	free(fates);
	return (int)problem_count();
}

static bool
is_large(long n)
{
	size_t count;
	const struct special *s = work_special(&count);

	for (size_t i = 0; i < count; i++) {
		if (s[i].bytes > 0 && n >= s[i].first && n <= s[i].last)
			return true;
	}
	return false;
}

/*
 * The longest time that a message waited for its first run from this moment on, when
 * the daemons have caught up: on a slow machine the messages before it take their time.
 * It does not count slow handlers, the backoff after a failure, and large messages: rqd
 * asks for a message that exceeds Redis' output limit again a minute later, as for a
 * dead letter that Redis refused.  Nor does it count children, whose parents may have
 * run late.
 */
double
check_taken_up(double since)
{
	double longest = 0;

	for (size_t i = 0; i < nruns; i++) {
		const struct run *r = &runs[i], *before = i > 0 ? &runs[i - 1] : NULL;
		double from = since;

		if (r->from <= since || is_large(r->n) || r->n > CHILDREN)
			continue;
		if (before != NULL && before->n == r->n && before->from > since)
			continue;
		if (before != NULL && before->n == r->n && before->to > since)
			from = before->to;
		if (before != NULL && before->n == r->n &&
		    (before->status == 65 || work_cancelled(r->n) != NULL))
			continue;
		if (r->from - from > longest)
			longest = r->from - from;
	}
	return longest;
}

void
check_done(void)
{
	runs_done();
	nruns = 0;
}
