/*
 * The runs that handlers recorded; see soak_runs.h.
 */
#include "soak_runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "soak_explain.h"

static struct run *runs;
static size_t nruns;

bool
run_is_final(const struct run *r)
{
	return r->to > 0 && (r->status == 0 || r->status == 65);
}

static void
run_ended(long n, int attempt, pid_t pid, int status, double at)
{
	for (size_t i = nruns; i-- > 0;) {
		struct run *r = &runs[i];

		if (r->pid == pid && r->n == n && r->attempt == attempt && r->to == 0) {
			r->to = at;
			r->status = status;
			return;
		}
	}
	problem("message %ld ended but never began", n);
}

static void
run_saved(long n, pid_t pid, int saved)
{
	for (size_t i = nruns; i-- > 0;) {
		if (runs[i].pid == pid && runs[i].n == n && runs[i].to == 0) {
			runs[i].saved = saved;
			return;
		}
	}
}

static int
settled_compare(const void *a, const void *b)
{
	const struct settled *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Whether its daemon's log has confirmed its end for certain. */
static bool
run_is_confirmed(const struct run *r, const struct settled *all, size_t n)
{
	const struct life *life = world_life(r->daemon);
	size_t from = 0, to = n;

	if (r->to == 0 || life == NULL)
		return false;
	while (from < to) {
		size_t middle = (from + to) / 2;

		if (all[middle].pid < r->pid)
			from = middle + 1;
		else
			to = middle;
	}
	for (; from < n && all[from].pid == r->pid; from++) {
		const struct settled *s = &all[from];

		if (s->slot == life->slot && s->attempt == r->attempt && s->at >= r->to &&
		    s->n == (r->n > CHILDREN ? r->n : 0))
			return !log_was_cut(life->slot, r->from, s->at);
	}
	return false;
}

static void
runs_confirm(void)
{
	size_t n, confirmed = 0, final = 0;
	const struct settled *said = log_settled(&n);
	struct settled *all = xcalloc(n + 1, sizeof(*all));

	memcpy(all, said, n * sizeof(*all));
	qsort(all, n, sizeof(*all), settled_compare);
	for (size_t i = 0; i < nruns; i++) {
		struct run *r = &runs[i];

		r->confirmed = run_is_final(r) && run_is_confirmed(r, all, n);
		final += run_is_final(r);
		confirmed += r->confirmed;
	}
	free(all);
	printf("# runs that were final: %zu, confirmed without doubt: %zu\n", final, confirmed);
}

static void
runs_scan(FILE *f)
{
	int attempt, pid, value;
	char what;
	double at;
	long n;

	while (fscanf(f, " %c %ld %d %d %d %lf", &what, &n, &attempt, &pid, &value, &at) == 6) {
		if (what == 'E') {
			run_ended(n, attempt, pid, value, at);
			continue;
		}
		if (what == 'X') {
			problem("message %ld was not delivered as it was pushed", n);
			continue;
		}
		if (what == 'S') {
			run_saved(n, pid, value);
			continue;
		}
		*APPEND(runs, nruns) = (struct run){
			.n = n, .attempt = attempt, .pid = pid, .daemon = value, .from = at,
			.saved = -1
		};
	}
}

static int
run_compare(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

const struct run *
runs_read(size_t *n)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/out/runs", soak_dir);
	if ((f = fopen(path, "r")) != NULL) {
		runs_scan(f);
		fclose(f);
	}
	qsort(runs, nruns, sizeof(*runs), run_compare);
	log_poll();
	runs_confirm();
	*n = nruns;
	return runs;
}

void
run_tell(const struct run *r)
{
	printf("#     attempt %d, daemon %d, process %d, %.3f to %.3f, status %d%s\n", r->attempt,
	    (int)r->daemon, (int)r->pid, r->from, r->to, r->status,
	    r->confirmed ? ", confirmed" : "");
}

void
runs_tell(long n)
{
	for (size_t i = 0; i < nruns; i++) {
		if (runs[i].n == n)
			run_tell(&runs[i]);
	}
}

void
runs_done(void)
{
	free(runs);
	runs = NULL;
	nruns = 0;
}
