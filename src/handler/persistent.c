/*
 * The pool: up to `concurrency` processes, started when there is a message for
 * them, and the messages that wait for one.
 *
 * A process that is ending counts until it has exited, so that there are never
 * more than `concurrency`.  Everything that becomes certain goes to the list
 * `over`, and one deferred call a turn hands it out: done() may start messages,
 * or free the handler.
 */
#include "handler/persistent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "handler/worker.h"

struct persistent {
	struct handler		   base;
	const struct handler_env  *env;
	struct config		  *config;	/* reference held */
	const struct queue_config *cfg;
	struct command		  *command;
	TAILQ_HEAD(, worker)	   workers;
	unsigned		   live;	/* of them: have a process */
	struct feed_list	   waiting;	/* for room, in order */
	struct feed_list	   over;	/* done() is to come */
	struct defer		   update;
	bool			  *freed;	/* set when freed; NULL: not in done() */
	void			 (*closed)(void *);	/* NULL: not closing */
	void			  *closed_arg;
};

static struct persistent *
pool_of(struct handler *h)
{
	return (struct persistent *)(void *)h;
}

static void	update(void *);

static void
touch(struct persistent *h)
{
	loop_defer(h->env->loop, &h->update, update, h);
}

static void
feed_free(struct feed *f)
{
	result_done(&f->result);
	free(f);
}

/* -- from the workers ---------------------------------------------------------------- */

static void
feed_finished(struct feed *f)
{
	struct persistent *h = pool_of(f->base.handler);

	f->over = true;
	TAILQ_INSERT_TAIL(&h->over, f, entry);
	touch(h);
}

static void
worker_changed(struct worker *w)
{
	touch(pool_of(w->handler));
}

/* -- giving out ----------------------------------------------------------------------- */

static unsigned
bury_workers(struct persistent *h)
{
	struct worker *w, *next;
	unsigned live = 0;

	TAILQ_FOREACH_SAFE(w, &h->workers, entry, next) {
		if (worker_is_live(w)) {
			live++;
		} else if (w->state == WORKER_GONE) {
			TAILQ_REMOVE(&h->workers, w, entry);
			worker_free(w);
		}
	}
	return live;
}

/* The one with least to do; NULL: none has room. */
static struct worker *
find_worker(struct persistent *h)
{
	struct worker *w, *best = NULL;

	TAILQ_FOREACH(w, &h->workers, entry) {
		if (!worker_has_room(w))
			continue;
		if (w->outstanding == 0)
			return w;
		if (best == NULL || w->outstanding < best->outstanding)
			best = w;
	}
	return best;
}

/* NULL with errno and *step. */
static struct worker *
new_worker(struct persistent *h, const char **step)
{
	struct worker *w = xcalloc(1, sizeof(*w));
	int error;

	w->env = h->env;
	w->cfg = h->cfg;
	w->handler = &h->base;
	w->finished = feed_finished;
	w->changed = worker_changed;
	if (worker_start(w, h->command, step) == 0) {
		TAILQ_INSERT_TAIL(&h->workers, w, entry);
		h->live++;
		return w;
	}
	error = errno;
	worker_free(w);
	errno = error;
	return NULL;
}

static void
not_started(struct feed *f, int error, const char *step)
{
	f->result.end = END_NOT_STARTED;
	f->result.error = error;
	f->result.step = step;
	feed_finished(f);
}

/* False: f must wait. */
static bool
give(struct persistent *h, struct feed *f)
{
	struct worker *w = find_worker(h);
	const char *step = "";

	if ((w == NULL || w->outstanding > 0) && h->live < (unsigned)h->cfg->concurrency) {
		w = new_worker(h, &step);
		if (w == NULL) {
			TAILQ_REMOVE(&h->waiting, f, entry);
			not_started(f, errno, step);
			return true;
		}
	}
	if (w == NULL)
		return false;
	TAILQ_REMOVE(&h->waiting, f, entry);
	worker_give(w, f);
	return true;
}

static void
give_waiting(struct persistent *h)
{
	struct feed *f;

	while ((f = TAILQ_FIRST(&h->waiting)) != NULL && give(h, f))
		continue;
}

/* False: the handler is gone. */
static bool
tell_over(struct persistent *h)
{
	bool freed = false;
	struct result result;
	struct message *msg;
	struct feed *f;

	while ((f = TAILQ_FIRST(&h->over)) != NULL) {
		TAILQ_REMOVE(&h->over, f, entry);
		result = f->result;
		msg = f->msg;
		free(f);
		h->freed = &freed;
		h->base.events->done(msg, &result, h->base.arg);
		if (freed)
			return false;
		h->freed = NULL;
	}
	return true;
}

static void
update(void *arg)
{
	struct persistent *h = arg;
	void (*closed)(void *);

	h->live = bury_workers(h);
	give_waiting(h);
	if (!tell_over(h))
		return;
	if (h->closed == NULL || !TAILQ_EMPTY(&h->workers))
		return;
	closed = h->closed;
	h->closed = NULL;
	closed(h->closed_arg);
}

/* -- the handler ------------------------------------------------------------------------ */

static bool
is_unframeable(const struct queue_config *cfg, const struct message *msg)
{
	if (cfg->framing != FRAMING_LINE || msg->payload == NULL)
		return false;
	return memchr(msg->payload, '\n', msg->len) != NULL ||
	    memchr(msg->payload, '\0', msg->len) != NULL;
}

static struct run *
persistent_start(struct handler *handler, struct message *msg)
{
	struct persistent *h = pool_of(handler);
	struct feed *f = xcalloc(1, sizeof(*f));

	f->base.handler = handler;
	f->msg = msg;
	if (is_unframeable(h->cfg, msg)) {
		f->result.end = END_UNFRAMEABLE;
		feed_finished(f);
		return &f->base;
	}
	TAILQ_INSERT_TAIL(&h->waiting, f, entry);
	give_waiting(h);
	return &f->base;
}

static void
persistent_stop(struct run *run, enum stop reason)
{
	struct feed *f = (struct feed *)(void *)run;
	struct persistent *h = pool_of(run->handler);

	if (f->over || f->result.stop != STOP_NONE)
		return;
	f->result.stop = reason;
	if (f->worker != NULL) {
		worker_stop(f->worker, "stopped");
		return;
	}
	TAILQ_REMOVE(&h->waiting, f, entry);
	f->result.end = END_NOT_RUN;
	feed_finished(f);
}

static void
persistent_kill(struct run *run)
{
	struct feed *f = (struct feed *)(void *)run;

	if (f->worker != NULL)
		worker_kill(f->worker);
}

static struct handler *
persistent_open(const struct handler_env *env, struct config *config,
    const struct queue_config *cfg, const struct handler_events *events, void *arg)
{
	struct persistent *h = xcalloc(1, sizeof(*h));

	(void)signal(SIGPIPE, SIG_IGN);
	h->base = (struct handler){ &handler_persistent, events, arg };
	h->env = env;
	h->config = config_ref(config);
	h->cfg = cfg;
	h->command = command_new(env, cfg);
	TAILQ_INIT(&h->workers);
	TAILQ_INIT(&h->waiting);
	TAILQ_INIT(&h->over);
	return &h->base;
}

static void
persistent_close(struct handler *handler, void (*done)(void *), void *arg)
{
	struct persistent *h = pool_of(handler);
	struct worker *w;

	h->closed = done;
	h->closed_arg = arg;
	TAILQ_FOREACH(w, &h->workers, entry)
		worker_retire(w, "closed");
	touch(h);
}

static void
free_feeds(struct feed_list *list)
{
	struct feed *f;

	while ((f = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, f, entry);
		feed_free(f);
	}
}

static void
persistent_free(struct handler *handler)
{
	struct persistent *h = pool_of(handler);
	struct worker *w;

	if (h->freed != NULL)
		*h->freed = true;
	while ((w = TAILQ_FIRST(&h->workers)) != NULL) {
		TAILQ_REMOVE(&h->workers, w, entry);
		free_feeds(&w->feeds);
		worker_free(w);
	}
	free_feeds(&h->waiting);
	free_feeds(&h->over);
	loop_defer_cancel(h->env->loop, &h->update);
	command_free(h->command);
	config_unref(h->config);
	free(h);
}

const struct handler_ops handler_persistent = {
	.name = "persistent",
	.open = persistent_open,
	.start = persistent_start,
	.stop = persistent_stop,
	.kill = persistent_kill,
	.close = persistent_close,
	.free = persistent_free
};
