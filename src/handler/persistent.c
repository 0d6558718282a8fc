/*
 * The pool: the processes of a persistent handler, and the messages that wait for
 * one.
 *
 * A process is started when no idle one can take a message.  At most `concurrency` of
 * them have messages at any time.  A process that is ending counts until its last
 * message is settled, not until its exit.  If a process is recycled while it works, the
 * next one is started at once.
 *
 * The list has idle processes before busy ones, the last used first.  So a small load
 * uses few processes, and the kernel may swap out the others.
 *
 * A process that ends by itself is started again a tenth of a second after its own
 * start at the earliest.  If it has answered nothing, the pause grows.  A suspension of
 * the queue adds its own pauses.
 *
 * Finished messages go to the list `over`.  One deferred call each turn calls done() for
 * them, because done() may start messages, or free the handler.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/backoff.h"
#include "handler/handler.h"
#include "handler/worker.h"

#define PAUSE_MIN	(100 * MSEC)
#define PAUSE_MAX	(10 * SEC)
#define LIVE_FACTOR	2	/* limits processes that end slowly */

TAILQ_HEAD(worker_list, worker);

struct persistent {
	struct handler		   base;
	struct command		  *command;
	struct worker_list	   workers;	/* idle ones first */
	unsigned		   live;	/* of them: have a process */
	unsigned		   working;	/* of them: are WORKING */
	unsigned		   busy;	/* of them: have messages */
	struct feed_list	   waiting;	/* for room, in order */
	struct feed_list	   over;	/* done() will come */
	unsigned		   deaths;	/* in a row, without an answer */
	usec_t			   not_before;	/* mono: of the next start */
	struct timer		   pause;
	struct defer		   update;
	bool			  *freed;	/* set when freed; NULL: not in done() */
	bool			   closing;
};

static struct persistent *
pool_of(struct handler *h)
{
	return (struct persistent *)(void *)h;
}

static void	update(void *);

static void
touch(void *arg)
{
	struct persistent *h = arg;

	loop_defer(h->base.env->loop, &h->update, update, h);
}

static void
feed_free(struct feed *f)
{
	result_done(&f->result);
	free(f->base.progress);
	free(f);
}

/* -- from the workers ---------------------------------------------------------------- */

static void
feed_finished(struct persistent *h, struct feed *f)
{
	f->over = true;
	TAILQ_INSERT_TAIL(&h->over, f, entry);
	touch(h);
}

static void
worker_finished(struct worker *w, struct feed *f)
{
	struct persistent *h = pool_of(w->handler);

	if (w->outstanding == 0) {
		h->busy--;
		TAILQ_REMOVE(&h->workers, w, entry);
		TAILQ_INSERT_HEAD(&h->workers, w, entry);
	}
	feed_finished(h, f);
}

static void
worker_changed(struct worker *w)
{
	touch(pool_of(w->handler));
}

/* -- processes ------------------------------------------------------------------------ */

/* A process has exited: computes when the next one may be started. */
static void
note_exit(struct persistent *h, struct worker *w)
{
	w->exit_seen = true;
	if (w->answers > 0)
		h->deaths = 0;
	else if (w->why == NULL || w->messages > 0)
		h->deaths++;
	if (h->deaths > 1)
		h->not_before = w->started + backoff_delay(PAUSE_MIN, PAUSE_MAX,
		    h->deaths - 1, random_unit());
	else if (w->why == NULL)
		h->not_before = w->started + PAUSE_MIN;
}

/* Counts the processes, and frees those that are gone. */
static void
count_workers(struct persistent *h)
{
	struct worker *w, *next;

	h->live = h->working = 0;
	TAILQ_FOREACH_SAFE(w, &h->workers, entry, next) {
		if (!worker_is_live(w) && !w->exit_seen)
			note_exit(h, w);
		if (w->state == WORKER_GONE) {
			TAILQ_REMOVE(&h->workers, w, entry);
			worker_free(w);
			continue;
		}
		h->live += worker_is_live(w);
		h->working += w->state == WORKER_WORKING;
	}
}

/* Starts a process; NULL with errno and *step. */
static struct worker *
new_worker(struct persistent *h, const char **step)
{
	struct worker *w = NEW(struct worker, .env = h->base.env, .cfg = h->base.cfg,
	    .handler = &h->base, .finished = worker_finished, .changed = worker_changed);
	int error;

	if (worker_start(w, h->command, step) == 0) {
		TAILQ_INSERT_HEAD(&h->workers, w, entry);
		h->live++;
		h->working++;
		return w;
	}
	error = errno;
	worker_free(w);
	errno = error;
	return NULL;
}

/* Whether one more process may be started now; if that is only too early, sets the timer. */
static bool
may_start(struct persistent *h)
{
	unsigned most = (unsigned)h->base.cfg->concurrency;

	if (h->closing || h->working >= most || h->live >= LIVE_FACTOR * most)
		return false;
	if (h->not_before <= clock_mono())
		return true;
	timer_set_at(&h->pause, h->not_before);
	return false;
}

/* Starts the successor of a process that is recycled before that has finished its messages. */
static void
warm_up(struct persistent *h)
{
	const struct worker *w;
	unsigned wanted = 0;
	const char *step;

	TAILQ_FOREACH(w, &h->workers, entry)
		wanted += w->state == WORKER_RETIRING && w->outstanding > 0;
	for (; wanted > 0 && h->deaths == 0 && may_start(h); wanted--) {
		if (new_worker(h, &step) == NULL)
			return;
	}
}

/* -- giving out ----------------------------------------------------------------------- */

/*
 * Finds a worker: an idle one if idle, else the one with the fewest messages; NULL:
 * none has room.
 */
static struct worker *
find_worker(struct persistent *h, bool idle)
{
	struct worker *w, *best = NULL;

	TAILQ_FOREACH(w, &h->workers, entry) {
		if (!worker_has_room(w) || (w->outstanding == 0 && !idle))
			continue;
		if (w->outstanding == 0)
			return w;
		if (best == NULL || w->outstanding < best->outstanding)
			best = w;
	}
	return best;
}

/* Ends a message that waits for a process, without running it. */
static void
not_run(struct persistent *h, struct feed *f, enum end end)
{
	TAILQ_REMOVE(&h->waiting, f, entry);
	f->result.end = end;
	feed_finished(h, f);
}

static void
give_to(struct persistent *h, struct worker *w, struct feed *f)
{
	if (w->outstanding == 0) {
		h->busy++;
		TAILQ_REMOVE(&h->workers, w, entry);
		TAILQ_INSERT_TAIL(&h->workers, w, entry);
	}
	TAILQ_REMOVE(&h->waiting, f, entry);
	worker_give(w, f);
}

/* Gives the message to a worker; false: it must wait. */
static bool
give(struct persistent *h, struct feed *f)
{
	bool may_grow = h->busy < (unsigned)h->base.cfg->concurrency;
	struct worker *w = find_worker(h, may_grow);
	const char *step;

	if (may_grow && (w == NULL || w->outstanding > 0) && may_start(h)) {
		w = new_worker(h, &step);
		if (w == NULL) {
			f->result.error = errno;
			f->result.step = step;
			not_run(h, f, END_NOT_STARTED);
			return true;
		}
	}
	if (w == NULL)
		return false;
	give_to(h, w, f);
	return true;
}

static void
give_waiting(struct persistent *h)
{
	struct feed *f;

	while ((f = TAILQ_FIRST(&h->waiting)) != NULL && give(h, f))
		continue;
}

/* Calls done() for finished messages; false: that has freed the handler. */
static bool
tell_over(struct persistent *h)
{
	bool freed = false;
	struct result result;
	struct message *msg;
	struct feed *f;

	while ((f = TAILQ_TAKE(&h->over, entry)) != NULL) {
		result = f->result;
		msg = f->msg;
		f->result = (struct result){ 0 };
		feed_free(f);
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

	count_workers(h);
	give_waiting(h);
	warm_up(h);
	if (!tell_over(h))
		return;
	if (TAILQ_EMPTY(&h->workers))
		handler_closed(&h->base);
}

/* -- the handler ------------------------------------------------------------------------ */

static struct run *
persistent_start(struct handler *handler, struct message *msg)
{
	struct persistent *h = pool_of(handler);
	struct feed *f = NEW(struct feed, .base.handler = handler, .msg = msg);

	if (h->base.cfg->framing == FRAMING_LINE && !message_is_line(msg)) {
		f->result.end = END_UNFRAMEABLE;
		feed_finished(h, f);
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
	if (!f->answered)
		f->result.stop = reason;
	if (f->worker != NULL) {
		worker_stop(f->worker, "stopped");
		return;
	}
	not_run(h, f, END_NOT_RUN);
}

static void
persistent_kill(struct run *run)
{
	struct feed *f = (struct feed *)(void *)run;

	if (f->worker != NULL)
		worker_kill(f->worker);
}

static void
persistent_open(struct handler *handler)
{
	struct persistent *h = pool_of(handler);

	(void)signal(SIGPIPE, SIG_IGN);
	h->command = command_new(handler->env, handler->config, handler->cfg);
	timer_init(&h->pause, handler->env->loop, touch, h);
	TAILQ_INIT(&h->workers);
	TAILQ_INIT(&h->waiting);
	TAILQ_INIT(&h->over);
}

static void
persistent_close(struct handler *handler)
{
	struct persistent *h = pool_of(handler);
	struct worker *w;
	struct feed *f;

	h->closing = true;
	while ((f = TAILQ_FIRST(&h->waiting)) != NULL)
		not_run(h, f, END_NOT_RUN);
	TAILQ_FOREACH(w, &h->workers, entry)
		worker_retire(w, "closed");
	touch(h);
}

static void
free_feeds(struct feed_list *list)
{
	struct feed *f;

	while ((f = TAILQ_TAKE(list, entry)) != NULL)
		feed_free(f);
}

static void
persistent_free(struct handler *handler)
{
	struct persistent *h = pool_of(handler);
	struct worker *w;

	if (h->freed != NULL)
		*h->freed = true;
	while ((w = TAILQ_TAKE(&h->workers, entry)) != NULL) {
		free_feeds(&w->feeds);
		worker_free(w);
	}
	free_feeds(&h->waiting);
	free_feeds(&h->over);
	timer_stop(&h->pause);
	loop_defer_cancel(h->base.env->loop, &h->update);
	command_free(h->command);
}

const struct handler_ops handler_persistent = {
	.size = sizeof(struct persistent),
	.open = persistent_open,
	.start = persistent_start,
	.stop = persistent_stop,
	.kill = persistent_kill,
	.close = persistent_close,
	.free = persistent_free
};
