/*
 * Decides whether faults explain an event; see soak_explain.h, and soak_check.c for the
 * rules.
 */
#include "soak_explain.h"

#include <string.h>

#define SPAWNED_LATER	2	/* seconds from the pop to the start, on a busy machine */
/* Seconds until a daemon is back after a fault. */
#define RECOVERY	(0.65 + 0.05 * soak_patience)
#define TOO_LONG	(LEASE - RENEWAL)
#define FAULTS_TOLD	8	/* around a problem */
#define SUSPENDED_LATER	6	/* than the fault that suspended a queue: the next probe */

static const struct fault *faults;
static size_t nfaults;

void
explain_by(const struct fault *f, size_t n)
{
	faults = f;
	nfaults = n;
}

static double
fault_until(const struct fault *f)
{
	return f->to > 0 ? f->to : 1e12;
}

static bool
overlaps(const struct fault *f, double from, double to)
{
	return f->from <= to && fault_until(f) >= from;
}

static bool
concerns(const struct fault *f, unsigned slot)
{
	return f->kind->cause != CAUSE_NONE && (!f->kind->of_daemon || f->slot == slot);
}

/*
 * The cause of the longest fault, if a chain of faults kept the daemon from Redis for
 * too long within [from, to].
 */
static enum cause
explain_chain(unsigned slot, double from, double to)
{
	double begun = 0, until = -1, longest = 0;
	enum cause cause = CAUSE_NONE;

	for (size_t i = 0; i <= nfaults; i++) {
		const struct fault *f = &faults[i];

		if (i < nfaults && !concerns(f, slot))
			continue;
		if (i == nfaults || f->from > until) {
			if (until - begun >= TOO_LONG && begun <= to && until >= from)
				return cause;
			if (i == nfaults)
				break;
			begun = f->from;
			longest = 0;
		}
		if (fault_until(f) - f->from >= longest) {
			longest = fault_until(f) - f->from;
			cause = f->kind->cause;
		}
		if (fault_until(f) + RECOVERY > until)
			until = fault_until(f) + RECOVERY;
	}
	return CAUSE_NONE;
}

bool
explain_forgot(double from, double to)
{
	for (size_t i = 0; i < nfaults; i++) {
		const struct fault *f = &faults[i];

		if (f->kind->effect == EFFECT_FORGETS && overlaps(f, from - SPAWNED_LATER, to))
			return true;
	}
	return false;
}

enum cause
explain(const struct run *r, double born, double until)
{
	const struct life *life = world_life(r->daemon);
	double popped = r->from - SPAWNED_LATER;	/* or later */
	enum cause found = CAUSE_NONE;

	/* An orphan: its daemon was killed before the handler could ask for its pid. */
	if (life == NULL)
		return CAUSE_KILLED;
	for (size_t i = 0; i < nfaults; i++) {
		const struct fault *f = &faults[i];
		enum cause c = f->kind->cause;

		if (!overlaps(f, c == CAUSE_PROMOTED ? born - SPAWNED_LATER : popped, until))
			continue;
		if ((c == CAUSE_KILLED || c == CAUSE_ENDED) && f->pid != r->daemon)
			continue;
		if (c == CAUSE_STOPPED && (f->slot != life->slot ||
		    fault_until(f) - f->from < TOO_LONG))
			continue;
		if (c == CAUSE_KILLED || c == CAUSE_STOPPED || c == CAUSE_PROMOTED)
			return c;
		if (c == CAUSE_ENDED)
			found = c;
	}
	return found != CAUSE_NONE ? found : explain_chain(life->slot, popped, until);
}

void
explain_tell(double from, double to)
{
	unsigned told = 0;

	for (size_t i = 0; i < nfaults && told < FAULTS_TOLD; i++) {
		const struct fault *f = &faults[i];

		told += overlaps(f, from - 2, to);
		if (overlaps(f, from - 2, to))
			printf("#     %.3f to %.3f: %s %s (daemon %u)\n", f->from, f->to,
			    f->kind->name, f->detail, f->slot);
	}
}

/* When handlers of this daemon can run again after the fault; 0: it never hindered them. */
static double
hinders_until(const struct fault *f, unsigned slot)
{
	if (f->kind->of_daemon && f->slot != slot)
		return 0;
	if (f->kind->effect == EFFECT_HINDERS || f->kind->cause == CAUSE_REFUSED)
		return fault_until(f) + SUSPENDED_LATER;
	return f->kind->cause != CAUSE_NONE ? fault_until(f) + RECOVERY : 0;
}

/*
 * The longest time within these in which no fault hindered the daemon.  bursts: bursts
 * of failures count as faults.  Faults are in order.
 */
static double
longest_unhindered(unsigned slot, double from, double to, bool bursts)
{
	double longest = 0;

	for (size_t i = 0; i < nfaults && faults[i].from < to; i++) {
		double until = hinders_until(&faults[i], slot);

		if (until <= from || (!bursts && strcmp(faults[i].kind->name, "poison") == 0))
			continue;
		if (faults[i].from - from > longest)
			longest = faults[i].from - from;
		from = until;
	}
	return to - from > longest ? to - from : longest;
}

double
explain_unhindered(double from, double to, bool bursts)
{
	double longest = 0;

	for (unsigned slot = 0; slot < DAEMONS; slot++) {
		double one = longest_unhindered(slot, from, to, bursts);

		longest = one > longest ? one : longest;
	}
	return longest;
}

bool
explain_limited(double from, double to)
{
	for (size_t i = 0; i < nfaults; i++) {
		if (strcmp(faults[i].kind->name, "output limit") == 0 &&
		    overlaps(&faults[i], from, to))
			return true;
	}
	return false;
}

static unsigned problems;

void
problem(const char *fmt, ...)
{
	va_list ap;

	if (++problems > 30)
		return;
	printf("# PROBLEM: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

unsigned
problem_count(void)
{
	return problems;
}
