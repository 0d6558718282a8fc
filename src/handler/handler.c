/*
 * Handlers: which process gets a message, and the end of messages.
 *
 * In mode exec each run has a process of its own.
 *
 * In mode persistent, a process is started when no idle one can take a message.  At most
 * `concurrency` of them have messages at any time.  A process that is ending counts until
 * its last message is settled, not until its exit.  If a process is recycled while it works,
 * the next one is started at once.
 *
 * The list has idle processes before busy ones, the last used first.  So a small load uses
 * few processes, and the kernel may swap out the others.
 *
 * A process that ends by itself is started again a tenth of a second after its own start at
 * the earliest.  If it has answered nothing, the pause grows.  A suspension of the queue
 * adds its own pauses.
 *
 * One deferred call each turn calls done() for messages that are over, because done() may
 * start messages, or free the handler.
 */
#include "handler/handler.h"

#include <signal.h>
#include <stdlib.h>

#include "handler/process.h"

#define LIVE_FACTOR	2	/* limits processes that end slowly */

static void	update(void *);

void
handler_touch(struct handler *h)
{
	loop_defer(h->env->loop, &h->update, update, h);
}

/* -- messages ---------------------------------------------------------------------------- */

void
feed_free(struct feed *f)
{
	result_done(&f->result);
	free(f->base.progress);
	if (!f->in_batch)
		free(f);
}

static void
free_feeds(struct feed_list *list)
{
	struct feed *f;

	while ((f = TAILQ_TAKE(list, entry)) != NULL)
		feed_free(f);
}

/* Ends a message that waits for a process. */
static void
not_run(struct feed *f)
{
	TAILQ_REMOVE(&f->base.handler->waiting, f, entry);
	f->result.end = END_NOT_RUN;
	feed_over(f);
}

/* -- persistent processes ------------------------------------------------------------------ */

/* Whether one more process may be started now; if that is only too early, sets the timer. */
static bool
may_start(struct handler *h)
{
	unsigned most = (unsigned)h->cfg->concurrency;

	if (h->closed != NULL || h->working >= most || h->live >= LIVE_FACTOR * most)
		return false;
	if (h->not_before <= clock_mono())
		return true;
	timer_set_at(&h->pause, h->not_before);
	return false;
}

/*
 * Gives the message to a process: to an idle or new one if one more may be busy, else to the
 * one with the fewest; false: it must wait.
 */
static bool
give(struct handler *h, struct feed *f)
{
	bool may_grow = h->busy < (unsigned)h->cfg->concurrency, start = false;
	struct process *p, *best = NULL;

	TAILQ_FOREACH(p, &h->processes, entry) {
		if (p->state != PROCESS_WORKING || (p->outstanding == 0 && !may_grow) ||
		    p->outstanding >= (unsigned)h->cfg->pipeline)
			continue;
		if (best == NULL || p->outstanding < best->outstanding)
			best = p;
		if (p->outstanding == 0)
			break;
	}
	if (may_grow && (best == NULL || best->outstanding > 0))
		start = may_start(h);
	if (start)
		best = process_new(h, NULL, 0);
	if (best == NULL)
		return false;
	TAILQ_REMOVE(&h->waiting, f, entry);
	process_give(best, f);
	if (start)
		process_start(best);
	return true;
}

static void
give_waiting(struct handler *h)
{
	struct feed *f;

	while ((f = TAILQ_FIRST(&h->waiting)) != NULL && give(h, f))
		continue;
}

/* Starts the successor of a process that is recycled before that has finished its messages. */
static void
warm_up(struct handler *h)
{
	const struct process *p;
	unsigned wanted = 0;

	TAILQ_FOREACH(p, &h->processes, entry)
		wanted += p->state == PROCESS_RETIRING && p->outstanding > 0;
	for (; wanted > 0 && h->deaths == 0 && may_start(h); wanted--)
		process_start(process_new(h, NULL, 0));
}

/* -- the end of the turn ------------------------------------------------------------------ */

/* Gives waiting messages out, calls done() for those that are over, and frees processes. */
static void
update(void *arg)
{
	struct handler *h = arg;
	void (*closed)(void *);
	bool freed = false;
	struct result result;
	struct process *p;
	struct feed *f;

	if (h->cfg->mode == MODE_PERSISTENT) {
		give_waiting(h);
		warm_up(h);
	}
	while ((f = TAILQ_FIRST(&h->over)) != NULL) {
		h->freed = &freed;
		if (f->msg != NULL) {
			result_move(&result, &f->result);
			h->events->done(f->msg, &result, h->arg);
		} else {
			h->events->over(&f->base, &f->result, h->arg);
		}
		if (freed)
			return;
		h->freed = NULL;
		TAILQ_REMOVE(&h->over, f, entry);
		feed_free(f);
	}
	while ((p = TAILQ_TAKE(&h->gone, entry)) != NULL)
		process_free(p);
	if ((closed = h->closed) != NULL && TAILQ_EMPTY(&h->processes)) {
		h->closed = NULL;
		closed(h->closed_arg);		/* may free h */
	}
}

/* -- the interface ------------------------------------------------------------------------ */

struct handler *
handler_open(const struct handler_env *env, struct config *config,
    const struct queue_config *cfg, const struct handler_events *events, void *arg)
{
	struct handler *h = NEW(struct handler, .events = events, .arg = arg, .env = env,
	    .config = config_ref(config), .cfg = cfg);

	/*
	 * If a payload exceeds an RLIMIT_FSIZE of the daemon, or a process closes its stdin,
	 * the write must fail, not raise a signal.
	 */
	(void)signal(cfg->mode == MODE_EXEC ? SIGXFSZ : SIGPIPE, SIG_IGN);
	spawner_hold(env->spawner, config);
	TAILQ_INIT(&h->processes);
	TAILQ_INIT(&h->gone);
	TAILQ_INIT(&h->waiting);
	TAILQ_INIT(&h->over);
	timer_init(&h->pause, env->loop, update, h);
	return h;
}

struct run *
handler_start(struct handler *h, struct message *msg)
{
	struct feed *f = NEW(struct feed, .base.handler = h, .msg = msg);
	struct process *p;

	if (h->cfg->mode == MODE_EXEC) {
		p = process_new(h, f, 0);
		process_give(p, f);
		process_start(p);
	} else if (h->cfg->framing == FRAMING_LINE && !message_is_line(msg)) {
		f->result.end = END_UNFRAMEABLE;
		feed_over(f);
	} else {
		TAILQ_INSERT_TAIL(&h->waiting, f, entry);
		give_waiting(h);
	}
	return &f->base;
}

struct run *
handler_start_batch(struct handler *h, struct message *const *msgs, unsigned n)
{
	struct feed *run = NEW(struct feed, .base.handler = h, .result.batch = n);
	struct process *p = process_new(h, run, n);

	for (unsigned i = 0; i < n; i++) {
		p->batch[i] = (struct feed){ .base.handler = h, .msg = msgs[i],
		    .result.batch = n, .in_batch = true };
		process_give(p, &p->batch[i]);
	}
	process_start(p);
	return &run->base;
}

void
handler_stop(struct run *run, enum stop reason)
{
	struct feed *f = CONTAINER_OF(run, struct feed, base);

	if (f->over || f->result.stop != STOP_NONE)
		return;
	if (!f->answered)
		f->result.stop = reason;
	if (f->process != NULL)
		process_stop(f->process, "stopped");
	else
		not_run(f);
}

void
handler_kill(struct run *run)
{
	struct feed *f = CONTAINER_OF(run, struct feed, base);

	if (f->process != NULL)
		subprocess_kill(&f->process->child);
}

void
handler_close(struct handler *h, void (*done)(void *), void *arg)
{
	struct process *p;
	struct feed *f;

	h->closed = done;
	h->closed_arg = arg;
	while ((f = TAILQ_FIRST(&h->waiting)) != NULL)
		not_run(f);
	if (h->cfg->mode == MODE_PERSISTENT) {
		TAILQ_FOREACH(p, &h->processes, entry)
			process_retire(p, "closed");
	}
	handler_touch(h);
}

void
handler_free(struct handler *h)
{
	struct process *p;

	if (h == NULL)
		return;
	if (h->freed != NULL)
		*h->freed = true;
	free_feeds(&h->waiting);
	free_feeds(&h->over);
	TAILQ_CONCAT(&h->processes, &h->gone, entry);
	while ((p = TAILQ_TAKE(&h->processes, entry)) != NULL)
		process_free(p);
	timer_stop(&h->pause);
	loop_defer_cancel(h->env->loop, &h->update);
	spawner_drop(h->env->spawner, h->config);
	config_unref(h->config);
	free(h);
}
