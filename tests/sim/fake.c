/*
 * A handler without processes; see fake.h.
 *
 * A run has one timer for its next event: its own end, or its time limit if that is
 * earlier.  After a stop, the next event is the script's reaction to SIGTERM, or SIGKILL.
 * The members of result are set as soon as they are certain.
 *
 * A batch asks the script for each message.  The batch takes as long as the longest
 * one, and ends like the first that does not succeed.  A message with an answer has
 * that as its own result.  A message with ok_after is done at that time, by a second
 * timer.
 */
#include "fake.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "loop/timer.h"

struct handler {
	struct fake			*fake;
	const struct handler_events	*events;
	void				*arg;
	struct config			*config;	/* reference held */
	const struct queue_config	*cfg;
	TAILQ_HEAD(, fake_run)		 runs;
	void				(*closed)(void *);	/* NULL: not closing */
	void				*closed_arg;
	struct defer			 closing;
};

struct fake_run {
	struct run		 base;
	TAILQ_ENTRY(fake_run)	 entry;
	struct message		*msg;		/* the first of a batch */
	struct fake_end		 script;
	struct message		**batch;	/* NULL: no batch */
	struct fake_end		 *scripts;	/* of the messages of a batch */
	unsigned		 n;		/* messages in the batch */
	struct result		 result;
	usec_t			 started;	/* mono */
	bool			 over;		/* result is certain; done() is under way */
	struct timer		 timer;
	struct timer		 ok;		/* set: a message of the batch is done then */
	struct defer		 defer;
};

static struct fake_run *
run_of(struct run *r)
{
	return (struct fake_run *)(void *)r;
}

/* -- the end ------------------------------------------------------------------------ */

static void
tell_closed(void *arg)
{
	struct handler *h = arg;
	void (*fn)(void *) = h->closed;

	h->closed = NULL;
	fn(h->closed_arg);
}

static void
tell_closed_later(struct handler *h)
{
	if (h->closed != NULL && TAILQ_EMPTY(&h->runs))
		loop_defer(h->fake->env.loop, &h->closing, tell_closed, h);
}

static void
run_free(struct fake_run *r)
{
	struct handler *h = r->base.handler;

	TAILQ_REMOVE(&h->runs, r, entry);
	h->fake->running--;
	timer_stop(&r->timer);
	timer_stop(&r->ok);
	loop_defer_cancel(h->fake->env.loop, &r->defer);
	result_done(&r->result);
	free(r->batch);
	free(r->scripts);
	free(r);
	tell_closed_later(h);
}

static void
print(struct fake_run *r)
{
	struct handler *h = r->base.handler;
	const char *p = r->script.error_tail;
	struct log_ctx ctx = { .queue = h->cfg->name, .id = r->msg->id,
	    .attempt = r->msg->attempts + 1, .pid = r->result.pid };

	if (p != NULL && h->events->output != NULL)
		h->events->output(&ctx, 2, p, strlen(p), false, h->arg);
}

static bool
has_answer(const struct fake_end *e)
{
	return e->said != SAID_NOTHING;
}

/* Calls done() for messages whose ok_after has passed; sets the timer for the next. */
static void
tell_ok(void *arg)
{
	struct fake_run *r = arg;
	struct handler *h = r->base.handler;
	struct result ok = { .end = END_ANSWER, .said = SAID_OK, .batch = r->n };
	usec_t at, next = USEC_MAX;
	struct message *msg;
	unsigned i;

	for (i = 0; i < r->n; i++) {
		at = r->started + r->scripts[i].ok_after;
		if (r->batch[i] == NULL || r->scripts[i].ok_after == 0)
			continue;
		if (at > clock_mono()) {
			next = at < next ? at : next;
			continue;
		}
		msg = r->batch[i];
		r->batch[i] = NULL;
		h->events->done(msg, &ok, h->arg);
	}
	if (next != USEC_MAX)
		timer_set_at(&r->ok, next);
}

static void
tell_batch(struct fake_run *r)
{
	struct handler *h = r->base.handler;
	struct result result;
	unsigned i;

	for (i = 0; i < r->n; i++) {
		if (r->batch[i] == NULL)
			continue;
		result = r->result;
		if (result.stop == STOP_NONE && has_answer(&r->scripts[i])) {
			result.end = END_ANSWER;
			result.said = r->scripts[i].said;
			result.delay = r->scripts[i].delay;
		}
		h->events->done(r->batch[i], &result, h->arg);
	}
	h->events->over(&r->base, &r->result, h->arg);
	run_free(r);
}

static void
tell_done(void *arg)
{
	struct fake_run *r = arg;
	struct handler *h = r->base.handler;
	struct message *msg = r->msg;
	struct result result;

	if (r->batch == NULL)
		print(r);
	if (r->result.end != END_NOT_STARTED)
		r->result.duration = clock_mono() - r->started;
	if (r->batch != NULL) {
		tell_batch(r);
		return;
	}
	result = r->result;
	r->result = (struct result){ .end = END_EXIT };
	run_free(r);
	h->events->done(msg, &result, h->arg);
}

static void
finish(struct fake_run *r)
{
	r->over = true;
	timer_stop(&r->timer);
	loop_defer(r->base.handler->fake->env.loop, &r->defer, tell_done, r);
}

/* Ends the run as its script says. */
static void
end_by_itself(struct fake_run *r)
{
	const struct fake_end *e = &r->script;
	struct result *x = &r->result;

	x->end = e->end;
	x->status = e->status;
	x->signo = e->signo;
	x->said = e->said;
	x->delay = e->delay;
	x->leftovers = e->leftovers;
	x->answer = e->answer != NULL ? xstrdup(e->answer) : NULL;
	x->error_tail = e->error_tail != NULL ? xstrdup(e->error_tail) : NULL;
	x->error_len = e->error_tail != NULL ? strlen(e->error_tail) : 0;
	finish(r);
}

static void
end_by_signal(struct fake_run *r, int signo)
{
	r->result.end = END_SIGNAL;
	r->result.signo = signo;
	finish(r);
}

static void
begin_stop(struct fake_run *r, enum stop reason)
{
	usec_t grace = r->base.handler->cfg->kill_grace;

	r->result.stop = reason;
	if (!r->over)
		timer_set(&r->timer, r->script.term_after < grace ?
		    r->script.term_after : grace);
}

static void
time_is_up(void *arg)
{
	struct fake_run *r = arg;
	struct handler *h = r->base.handler;

	if (r->result.stop == STOP_NONE) {
		if (clock_mono() - r->started >= r->script.after)
			end_by_itself(r);
		else
			begin_stop(r, STOP_TIME_LIMIT);
	} else if (r->script.term_after >= h->cfg->kill_grace) {
		end_by_signal(r, SIGKILL);
	} else if (r->script.traps_term) {
		r->result.end = END_EXIT;
		r->result.status = r->script.term_status;
		finish(r);
	} else {
		end_by_signal(r, SIGTERM);
	}
}

/* -- the handler -------------------------------------------------------------------- */

static void
begin(struct fake_run *r)
{
	struct handler *h = r->base.handler;
	usec_t limit = h->cfg->time_limit;

	if (r->script.end == END_NOT_STARTED) {
		r->result.end = END_NOT_STARTED;
		r->result.error = r->script.error;
		r->result.step = "fake";
		finish(r);
		return;
	}
	r->result.pid = (pid_t)h->fake->started;
	if (limit > 0 && limit < r->script.after)
		timer_set(&r->timer, limit);
	else if (r->script.after != USEC_MAX)
		timer_set(&r->timer, r->script.after);
}

static struct fake_end
ask_script(const struct fake *f, struct message *msg)
{
	return f->script != NULL ? f->script(msg, f->arg) : (struct fake_end){ .after = 0 };
}

static struct fake_run *
run_new(struct handler *h, struct message *msg)
{
	struct fake_run *r = xcalloc(1, sizeof(*r));

	r->base.handler = h;
	r->msg = msg;
	r->started = clock_mono();
	timer_init(&r->timer, h->fake->env.loop, time_is_up, r);
	timer_init(&r->ok, h->fake->env.loop, tell_ok, r);
	TAILQ_INSERT_TAIL(&h->runs, r, entry);
	return r;
}

static struct run *
run_start(struct fake_run *r)
{
	struct fake *f = r->base.handler->fake;

	f->started++;
	f->running++;
	if (f->running > f->peak)
		f->peak = f->running;
	begin(r);
	return &r->base;
}

struct run *
handler_start(struct handler *handler, struct message *msg)
{
	struct fake_run *r = run_new(handler, msg);

	r->script = ask_script(r->base.handler->fake, msg);
	return run_start(r);
}

struct run *
handler_start_batch(struct handler *handler, struct message *const *msgs, unsigned n)
{
	struct fake_run *r = run_new(handler, msgs[0]);
	struct fake *f = r->base.handler->fake;
	usec_t longest = 0;
	unsigned i;

	r->batch = xmemdup(msgs, n * sizeof(struct message *));
	r->scripts = xcalloc(n, sizeof(*r->scripts));
	r->n = r->result.batch = n;
	for (i = 0; i < n; i++) {
		r->scripts[i] = ask_script(f, msgs[i]);
		if (r->scripts[i].after > longest)
			longest = r->scripts[i].after;
		if (!has_answer(&r->scripts[i]) && r->script.end == END_EXIT &&
		    r->script.status == 0)
			r->script = r->scripts[i];
	}
	r->script.after = longest;
	if (n > f->largest)
		f->largest = n;
	tell_ok(r);
	return run_start(r);
}

void
handler_stop(struct run *run, enum stop reason)
{
	struct fake_run *r = run_of(run);

	if (r->result.stop == STOP_NONE)
		begin_stop(r, reason);
}

void
handler_kill(struct run *run)
{
	struct fake_run *r = run_of(run);

	if (!r->over)
		end_by_signal(r, SIGKILL);
}

struct handler *
handler_open(const struct handler_env *env, struct config *config,
    const struct queue_config *cfg, const struct handler_events *events, void *arg)
{
	struct handler *h = NEW(struct handler, .events = events, .arg = arg, .cfg = cfg,
	    .config = config_ref(config));

	h->fake = CONTAINER_OF((uintptr_t)env, struct fake, env);
	TAILQ_INIT(&h->runs);
	return h;
}

void
handler_close(struct handler *h, void (*done)(void *), void *arg)
{
	h->closed = done;
	h->closed_arg = arg;
	tell_closed_later(h);
}

void
handler_free(struct handler *h)
{
	struct fake_run *r, *next;

	if (h == NULL)
		return;
	h->closed = NULL;
	TAILQ_FOREACH_SAFE(r, &h->runs, entry, next)
		run_free(r);
	loop_defer_cancel(h->fake->env.loop, &h->closing);
	config_unref(h->config);
	free(h);
}
