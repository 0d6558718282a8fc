/*
 * The life of one queue's messages; see consumer.h.
 *
 * Whatever changes what the consumer may do next calls consumer_touch().  At the end
 * of the turn consumer_update() then decides, and nothing else does: whether the queue
 * watches for work, whether the consumer competes for slots, and whether a drain is over.
 *
 * After a reload, deliveries stay with the handler that began them.  That handler is
 * closed, and is freed (struct consumer_handler) when its last delivery is done.
 */
#include "engine/consumer.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "base/util.h"
#include "engine/event_log.h"
#include "engine/suspension.h"

/* The handler for new messages, or one of an older configuration. */
struct consumer_handler {
	TAILQ_ENTRY(consumer_handler)	 entry;
	struct consumer	*consumer;
	struct handler	*handler;
	bool	 closing;	/* handler_close() was called */
};
TAILQ_HEAD(handler_list, consumer_handler);

/* One message in flight. */
struct inflight {
	TAILQ_ENTRY(inflight)	 entry;
	struct message	*msg;
	struct run	*run;
	bool	 slot;	/* holds a slot of the dispatcher */
	bool	 probe;	/* begun while the queue was suspended */
};
TAILQ_HEAD(inflight_list, inflight);

struct consumer {
	const struct consumer_env	*env;
	struct config	*config;	/* reference: keeps cfg alive */
	const struct queue_config	*cfg;
	enum consumer_state	 state;

	struct queue	*queue;
	struct consumer_handler	*current;	/* for new messages; also on handlers */
	struct handler_list	 handlers;
	struct inflight_list	 inflight;
	unsigned	 ninflight;	/* length of inflight */

	struct dispatcher_member	 member;
	unsigned	 reserved;	/* slots granted, message not there yet */
	bool	 fetching;	/* between queue_fetch() and fetched() */
	bool	 ready;	/* the queue has said so, not fetched since */
	bool	 wanted;	/* what queue_want() was told last */
	bool	 paused;
	bool	 up;	/* Redis is there */
	bool	 unsubscribed;	/* Redis does not let the queue subscribe */
	enum fetch_status	 last;

	struct suspension	 suspension;
	struct stats	 stats;
	struct defer	 update;
	bool	 confirmed;	/* the queue is closed: Redis has all results */
};

static void	consumer_update(void *);

static void
consumer_touch(void *arg)
{
	struct consumer *c = arg;

	loop_defer(c->env->loop, &c->update, consumer_update, c);
}

static void
consumer_tell_blocked(void *arg)
{
	const struct consumer *c = arg;

	if (c->env->blocked != NULL)
		c->env->blocked(c->env->arg);
}

/* -- state ------------------------------------------------------------------ */

static const char *const state_names[] = {
	[CONSUMER_RUNNING] = "running",
	[CONSUMER_QUIET] = "quiet",
	[CONSUMER_DRAINING] = "draining",
	[CONSUMER_CLOSING] = "draining",
	[CONSUMER_CLOSED] = "closed",
};

/* The only place that changes the state. */
static void
consumer_set_state(struct consumer *c, enum consumer_state state)
{
	if (c->state == state)
		return;
	c->state = state;
	consumer_touch(c);
}

/* How many messages could be begun now, beyond those in flight. */
static unsigned
consumer_room(void *arg)
{
	const struct consumer *c = arg;
	unsigned most = config_most(c->cfg);
	bool single;

	if (c->state != CONSUMER_RUNNING || c->fetching || c->ninflight >= most)
		return 0;
	if (!suspension_allows(&c->suspension, &single))
		return 0;
	return single ? 1 : most - c->ninflight;
}

/* The last step.  Processes and Redis may each take their time.  c may be gone after it. */
static void
consumer_finish_close(struct consumer *c)
{
	if (!c->confirmed || !TAILQ_EMPTY(&c->handlers))
		return;
	consumer_set_state(c, CONSUMER_CLOSED);
	loop_defer_cancel(c->env->loop, &c->update);
	c->env->closed(c, c->env->arg);
}

static void
consumer_handler_closed(void *arg)
{
	struct consumer_handler *h = arg;
	struct consumer *c = h->consumer;

	TAILQ_REMOVE(&c->handlers, h, entry);
	handler_free(h->handler);
	free(h);
	consumer_touch(c);
}

static void
close_handler(struct consumer_handler *h)
{
	if (h->closing)
		return;
	h->closing = true;
	handler_close(h->handler, consumer_handler_closed, h);
}

/* A drain is over when no message is in flight or on its way. */
static void
consumer_finish_drain(struct consumer *c)
{
	struct consumer_handler *h, *next;

	if (c->ninflight > 0 || c->fetching)
		return;
	consumer_set_state(c, CONSUMER_CLOSING);
	TAILQ_FOREACH_SAFE(h, &c->handlers, entry, next)
		close_handler(h);
	queue_close(c->queue);
}

static void
consumer_fetch(struct consumer *c, unsigned n)
{
	c->fetching = true;
	c->ready = false;
	queue_fetch(c->queue, n, suspension_turn(&c->suspension));
}

/*
 * The processes of a persistent handler are there anyway, `concurrency` of them:
 * their messages need no slot.  Those of a process per message do.
 */
static void
consumer_compete(struct consumer *c, bool able)
{
	bool needs_slot = c->cfg->mode == MODE_EXEC;

	if (able && needs_slot) {
		dispatcher_enter(c->env->dispatcher, &c->member);
		return;
	}
	dispatcher_leave(c->env->dispatcher, &c->member);
	if (able)
		consumer_fetch(c, consumer_room(c));
}

/* Derives all that follows from the fields; see the head of this file. */
static void
consumer_update(void *arg)
{
	struct consumer *c = arg;
	bool room = consumer_room(c) > 0;

	if (c->state == CONSUMER_CLOSING) {
		consumer_finish_close(c);
		return;
	}
	if (c->wanted != room && !c->fetching) {
		c->wanted = room;
		if (!room)
			c->ready = false;
		queue_want(c->queue, room);
	}
	consumer_compete(c, c->ready && room);
	if (c->state == CONSUMER_DRAINING)
		consumer_finish_drain(c);
	else if (consumer_is_idle(c) && c->env->idle != NULL)
		c->env->idle(c->env->arg);
}

/* -- from the dispatcher ---------------------------------------------------- */

static void
consumer_grant(unsigned n, void *arg)
{
	struct consumer *c = arg;

	c->reserved = n;
	consumer_fetch(c, n);
}

/* -- from the queue --------------------------------------------------------- */

static void
consumer_ready(void *arg)
{
	struct consumer *c = arg;

	c->ready = true;
	consumer_touch(c);
}

/* Gives a message that never ran back to the queue with its verdict. */
static void
consumer_settle_unrun(struct consumer *c, struct message *msg, const struct verdict *v)
{
	struct result r = { .end = END_NOT_RUN };

	suspension_idle(&c->suspension);
	queue_settle(c->queue, msg, v, &r);
}

static void
consumer_start(struct consumer *c, struct message *msg, bool slot)
{
	struct inflight *w = xcalloc(1, sizeof(*w));

	w->msg = msg;
	w->slot = slot;
	w->probe = suspension_is_on(&c->suspension);
	msg->engine_data = w;
	TAILQ_INSERT_TAIL(&c->inflight, w, entry);
	c->ninflight++;
	c->stats.n[STAT_DELIVERED]++;
	event_log_delivered(msg);
	w->run = handler_start(c->current->handler, msg);
}

static void
consumer_deliver(struct message *msg, void *arg)
{
	static const struct verdict give_back = {
		.op = VERDICT_RETURN, .reason = REASON_DRAIN
	};
	struct consumer *c = arg;
	struct verdict v;
	bool slot = c->reserved > 0;

	if (slot)
		c->reserved--;
	if (c->state == CONSUMER_RUNNING && !outcome_refuse(msg, &v)) {
		consumer_start(c, msg, slot);
		return;
	}
	consumer_settle_unrun(c, msg, c->state == CONSUMER_RUNNING ? &v : &give_back);
	if (slot)
		dispatcher_release(c->env->dispatcher, 1);
}

static void
consumer_fetched(const struct fetched *f, void *arg)
{
	struct consumer *c = arg;
	unsigned unused = c->reserved;

	c->fetching = false;
	c->reserved = 0;
	if (f->status == FETCH_LIMITED && c->last != FETCH_LIMITED)
		event_log_limited(c->cfg, f->cause);
	c->last = f->status;
	if (unused > 0)
		dispatcher_release(c->env->dispatcher, unused);
	if (f->status == FETCH_ERROR) {
		suspension_refused(&c->suspension, f->cause);
		return;
	}
	if (f->status == FETCH_OK || f->status == FETCH_LIMITED)
		suspension_accepted(&c->suspension);
	if (f->got == 0)
		suspension_idle(&c->suspension);
	consumer_touch(c);
}

static void
consumer_lost(struct message *msg, void *arg)
{
	struct inflight *w = msg->engine_data;

	(void)arg;
	if (w != NULL)
		handler_stop(w->run, STOP_LOST);
}

/* The messages that a delivery hands over are in their queues. */
static void
consumer_pushed(struct consumer *c, const struct message *msg, const struct result *r)
{
	c->stats.n[STAT_PUSHED] += pushes_count(r->pushes);
	event_log_pushed(msg, r);
}

static void
consumer_cancelled(struct message *msg, void *arg)
{
	struct inflight *w = msg->engine_data;

	(void)arg;
	if (w != NULL)
		handler_stop(w->run, STOP_CANCEL);
}

/* Redis has confirmed: now it is true, so now it is logged and counted. */
static void
consumer_settled(struct message *msg, const struct verdict *v, const struct result *r,
    enum settled how, void *arg)
{
	static const enum stat of_verdict[] = {
		[VERDICT_ACK] = STAT_ACKED,
		[VERDICT_DROP] = STAT_CANCELLED,
		[VERDICT_RETRY] = STAT_RETRIED,
		[VERDICT_DEFER] = STAT_DEFERRED,
		[VERDICT_DEAD] = STAT_DEAD,
		[VERDICT_RETURN] = STAT_RETURNED,
		[VERDICT_STALE] = STAT_STALE,
	};
	struct consumer *c = arg;

	switch (how) {
	case SETTLED_OK:
		c->stats.n[of_verdict[v->op]]++;
		if (v->failed)
			c->stats.n[STAT_FAILED]++;
		if (v->op == VERDICT_ACK && r->pushes != NULL)
			consumer_pushed(c, msg, r);
		if (v->op == VERDICT_DEAD && v->reason == REASON_CANCELLED)
			c->stats.n[STAT_CANCELLED]++;
		break;
	case SETTLED_STALE:
		c->stats.n[STAT_STALE]++;
		break;
	case SETTLED_RESCUED:
		c->stats.n[STAT_RESCUED]++;
		if (v->op == VERDICT_ACK && r->pushes != NULL)
			consumer_pushed(c, msg, r);
		break;
	case SETTLED_DROPPED:
		c->stats.n[v->failed ? STAT_FAILED : STAT_DROPPED]++;
		break;
	case SETTLED_GAVE_UP:
		c->stats.n[STAT_DROPPED] += !kind_has(msg->cfg->kind, TRAIT_LEASES);
		break;
	case SETTLED_DEFERRED:
		break;
	}
	event_log_settled(msg, v, r, how);
	consumer_touch(c);
}

static void
consumer_ticked(const struct tick_report *t, void *arg)
{
	struct consumer *c = arg;

	c->stats.n[STAT_REQUEUED] += t->requeued;
	c->stats.n[STAT_PROMOTED] += t->promoted;
	c->stats.n[STAT_DROPPED] += t->dropped;
	event_log_ticked(c->cfg, t);
	consumer_touch(c);
}

static void
consumer_paused(bool paused, const char *why, void *arg)
{
	struct consumer *c = arg;

	if (c->paused == paused)
		return;
	c->paused = paused;
	event_log_paused(c->cfg, paused, why);
	consumer_tell_blocked(c);
}

static void
consumer_listening(bool on, const char *why, void *arg)
{
	struct consumer *c = arg;

	c->unsubscribed = !on;
	event_log_listening(c->cfg, on, why);
}

static void
consumer_queue_closed(void *arg)
{
	struct consumer *c = arg;

	c->confirmed = true;
	consumer_touch(c);
}

static const struct queue_events consumer_queue_events = {
	.ready = consumer_ready,
	.deliver = consumer_deliver,
	.fetched = consumer_fetched,
	.lost = consumer_lost,
	.cancelled = consumer_cancelled,
	.settled = consumer_settled,
	.ticked = consumer_ticked,
	.paused = consumer_paused,
	.listening = consumer_listening,
	.closed = consumer_queue_closed,
};

/* -- from the handler ------------------------------------------------------- */

static void
consumer_done(struct message *msg, struct result *r, void *arg)
{
	struct consumer *c = arg;
	struct inflight *w = msg->engine_data;
	bool suspended = w->probe || suspension_is_on(&c->suspension);
	struct verdict v = outcome_decide(msg, r, suspended, random_unit());

	TAILQ_REMOVE(&c->inflight, w, entry);
	c->ninflight--;
	msg->engine_data = NULL;
	if (r->duration > 0)
		stats_observe(&c->stats.duration, r->duration);
	if (r->output_cut)
		c->stats.n[STAT_OUTPUT_CUT]++;
	if (r->leftovers)
		c->stats.n[STAT_LEFTOVERS]++;
	if (r->stop == STOP_TIME_LIMIT)
		c->stats.n[STAT_TIMEOUTS]++;
	suspension_judge(&c->suspension, &v, r);
	queue_settle(c->queue, msg, &v, r);
	if (w->slot)
		dispatcher_release(c->env->dispatcher, 1);
	free(w);
	consumer_touch(c);
}

static const struct handler_events consumer_handler_events = {
	.done = consumer_done,
};

/* -- life ------------------------------------------------------------------- */

static struct consumer_handler *
open_handler(struct consumer *c)
{
	struct consumer_handler *h = xcalloc(1, sizeof(*h));

	h->consumer = c;
	h->handler = handler_open(c->env->handler, c->config, c->cfg,
	    &consumer_handler_events, c);
	TAILQ_INSERT_TAIL(&c->handlers, h, entry);
	return h;
}

struct consumer *
consumer_new(const struct consumer_env *env, struct config *config,
    const struct queue_config *cfg, const struct queue_ops *ops)
{
	struct consumer *c = xcalloc(1, sizeof(*c));

	c->env = env;
	c->config = config_ref(config);
	c->cfg = cfg;
	c->member.priority = cfg->priority;
	c->member.room = consumer_room;
	c->member.grant = consumer_grant;
	c->member.arg = c;
	TAILQ_INIT(&c->handlers);
	TAILQ_INIT(&c->inflight);
	suspension_init(&c->suspension, env->loop, cfg, &c->stats, consumer_touch,
	    consumer_tell_blocked, c);
	c->current = open_handler(c);
	c->queue = ops->open(env->queue, config, cfg, &c->stats,
	    &consumer_queue_events, c);
	consumer_touch(c);
	return c;
}

void
consumer_free(struct consumer *c)
{
	struct consumer_handler *h;
	struct inflight *w;

	if (c == NULL)
		return;
	dispatcher_leave(c->env->dispatcher, &c->member);
	/* Handlers first: their runs point at messages that the queue owns. */
	while ((h = TAILQ_FIRST(&c->handlers)) != NULL) {
		TAILQ_REMOVE(&c->handlers, h, entry);
		handler_free(h->handler);
		free(h);
	}
	queue_free(c->queue);
	while ((w = TAILQ_FIRST(&c->inflight)) != NULL) {
		TAILQ_REMOVE(&c->inflight, w, entry);
		free(w);
	}
	suspension_done(&c->suspension);
	loop_defer_cancel(c->env->loop, &c->update);
	config_unref(c->config);
	free(c);
}

void
consumer_reconfigure(struct consumer *c, struct config *config,
    const struct queue_config *cfg)
{
	struct consumer_handler *old = c->current;
	struct config *previous = c->config;

	dispatcher_leave(c->env->dispatcher, &c->member);
	c->config = config_ref(config);
	c->cfg = cfg;
	c->member.priority = cfg->priority;
	suspension_reconfigure(&c->suspension, cfg);
	c->current = open_handler(c);
	queue_reconfigure(c->queue, config, cfg);
	close_handler(old);
	config_unref(previous);
	consumer_touch(c);
}

void
consumer_probe_now(struct consumer *c)
{
	suspension_probe_now(&c->suspension);
}

void
consumer_set_quiet(struct consumer *c, bool quiet)
{
	if (c->state == CONSUMER_RUNNING || c->state == CONSUMER_QUIET)
		consumer_set_state(c, quiet ? CONSUMER_QUIET : CONSUMER_RUNNING);
}

void
consumer_drain(struct consumer *c)
{
	if (c->state == CONSUMER_RUNNING || c->state == CONSUMER_QUIET)
		consumer_set_state(c, CONSUMER_DRAINING);
}

void
consumer_stop_handlers(struct consumer *c, bool hasten)
{
	struct inflight *w, *next;

	TAILQ_FOREACH_SAFE(w, &c->inflight, entry, next) {
		handler_stop(w->run, STOP_DRAIN);
		if (hasten)
			handler_kill(w->run);
	}
}

void
consumer_conn_up(struct consumer *c, const struct conn_server *server)
{
	c->up = true;
	queue_conn_up(c->queue, server);
	consumer_touch(c);
}

void
consumer_conn_down(struct consumer *c)
{
	c->up = false;
	queue_conn_down(c->queue);
}

void
consumer_tick(struct consumer *c)
{
	queue_tick(c->queue);
}

void
consumer_renew(struct consumer *c)
{
	queue_renew(c->queue);
}

/* -- what others see -------------------------------------------------------- */

const struct queue_config *
consumer_config(const struct consumer *c)
{
	return c->cfg;
}

const char *
consumer_state_name(const struct consumer *c)
{
	return state_names[c->state];
}

enum consumer_block
consumer_block(const struct consumer *c)
{
	if (!c->up || c->unsubscribed)
		return BLOCK_REDIS;
	if (suspension_is_on(&c->suspension))
		return BLOCK_SUSPENDED;
	if (c->paused)
		return BLOCK_PAUSED;
	if (c->last == FETCH_LIMITED)
		return BLOCK_LIMITED;
	if (c->ninflight >= config_most(c->cfg))
		return BLOCK_FULL;
	return BLOCK_NONE;
}

const char *
consumer_block_name(enum consumer_block b)
{
	static const char *const names[] = {
		[BLOCK_NONE] = "",
		[BLOCK_FULL] = "full",
		[BLOCK_SUSPENDED] = "suspended",
		[BLOCK_PAUSED] = "paused",
		[BLOCK_LIMITED] = "limited",
		[BLOCK_REDIS] = "redis",
	};

	return names[b];
}

const struct breaker *
consumer_breaker(const struct consumer *c)
{
	return &c->suspension.breaker;
}

const struct stats *
consumer_stats(const struct consumer *c)
{
	return &c->stats;
}

unsigned
consumer_in_flight(const struct consumer *c)
{
	return c->ninflight;
}

bool
consumer_is_confirmed(const struct consumer *c)
{
	return c->confirmed;
}

bool
consumer_is_idle(const struct consumer *c)
{
	return c->ninflight == 0 && !c->fetching && !c->ready && c->up &&
	    c->state == CONSUMER_RUNNING && queue_is_empty(c->queue);
}

void
consumer_each(const struct consumer *c,
    void (*fn)(const struct message *, pid_t, const char *, usec_t, void *), void *arg)
{
	usec_t now = clock_mono();
	const struct inflight *w;

	TAILQ_FOREACH(w, &c->inflight, entry)
		fn(w->msg, w->run->pid, w->run->progress, now - w->msg->delivered, arg);
}
