/*
 * The rate is kept by the time at which the whole should be where it is, not by
 * sleeping between steps: slow steps are caught up with.
 */
#include "rqctl/progress.h"

#include <stdlib.h>

#include "base/units.h"
#include "rqctl/out.h"
#include "rqctl/when.h"

int
progress_init(struct ctl *c, struct progress *p, const char *verb)
{
	char *cause = NULL;

	*p = (struct progress){ .verb = verb, .began = clock_mono() };
	if (ctl_given(c, OPT_RATE) &&
	    when_parse_rate(ctl_value(c, OPT_RATE), &p->rate, &cause) == -1) {
		ctl_error(c, EX_USAGE, "--rate: %s", cause);
		free(cause);
		return -1;
	}
	ctl_catch_signals();
	return 0;
}

int
progress_step(const struct progress *p, int most)
{
	if (p->rate <= 0 || p->rate / 10 >= most)
		return most;
	return p->rate / 10 < 1 ? 1 : (int)(p->rate / 10);
}

static void
show(const struct progress *p, int64_t looked, int64_t total)
{
	double passed = (double)(clock_mono() - p->began) / (double)SEC, left;
	char done[OUT_NUMBER_MAX], of[OUT_NUMBER_MAX], age[UNITS_TEXT_MAX];

	if (p->silent || !out_progress_is_on())
		return;
	left = looked > 0 && total > looked ?
	    passed / (double)looked * (double)(total - looked) : 0;
	out_progress("%s %s; %d%% of %s letters looked at, %.0f/s, %s left", p->verb,
	    out_number(p->done, done), total > 0 ? (int)(100 * looked / total) : 100,
	    out_number(total, of), passed > 0 ? (double)p->done / passed : 0,
	    out_age(left, age));
}

bool
progress_add(struct progress *p, int64_t n, int64_t looked, int64_t total)
{
	usec_t due;

	p->done += n;
	show(p, looked, total);
	if (p->rate <= 0)
		return !ctl_interrupted();
	due = p->began + (usec_t)((double)p->done / p->rate * (double)SEC);
	return ctl_sleep(due > clock_mono() ? due - clock_mono() : 0);
}
