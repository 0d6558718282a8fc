/*
 * The life of one queue's messages; see consumer.h.
 *
 * Every event that may allow a next step calls consumer_touch().  At the end of the
 * turn consumer_update() decides whether the queue watches for work, whether the consumer
 * competes for slots, and whether a drain is over.  Besides it, only a grant begins a fetch.
 *
 * After a reload, deliveries stay with the handler that began them (handler_set.h).
 *
 * The collector (collector.h) has the slots that no run has taken, and the messages
 * that wait for a batch or a slot.  A fetch asks for as many messages as there are slots, so
 * without batches a message enters it only if a reload came between fetch and delivery.
 */
#include "engine/consumer.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/util.h"
#include "engine/collector.h"
#include "engine/event_log.h"
#include "engine/handler_set.h"
#include "engine/inflight.h"
#include "engine/suspension.h"
#include "engine/tally.h"

#define LINGERS_AFTER	(10 * SEC)	/* then a run without messages is reported */

struct consumer {
	const struct consumer_env	*env;
	struct config	*config;	/* reference: keeps cfg alive */
	const struct queue_config	*cfg;
	enum consumer_state	 state;

	struct queue	*queue;
	struct handler_set	*handlers;
	struct inflight_list	 inflight;	/* runs */
	unsigned	 nruns;	/* length of inflight */
	unsigned	 ninflight;	/* their messages without a result */
	struct inflight_list	 over;	/* batches with results that Redis has not confirmed */
	struct collector	 collector;	/* also knows whether a fetch is on its way */

	struct dispatcher_member	 member;
	bool	 ready;	/* ready() came, and no fetch since */
	bool	 wanted;	/* the last queue_want() */
	bool	 paused;
	bool	 up;	/* Redis is connected */
	bool	 unsubscribed;	/* Redis refuses the queue's subscription */
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

/*
 * The number of runs that could begin now, beyond those in flight and the slots
 * granted.  If there are only collected messages, no more than those need.
 */
static unsigned
consumer_room(void *arg)
{
	const struct consumer *c = arg;
	unsigned used = c->nruns + c->collector.slots, most = config_most_runs(c->cfg), runs;
	bool single;

	if (c->state != CONSUMER_RUNNING || c->collector.fetching || used >= most)
		return 0;
	if (!breaker_allows(&c->suspension.breaker, clock_mono(), &single))
		return 0;
	most = single ? 1 : most - used;
	if (c->ready || collector_count(&c->collector) == 0)
		return most;
	runs = collector_runs(&c->collector);
	return runs < most ? runs : most;
}

/*
 * The last step, when processes have ended and Redis has confirmed the results, in any
 * order.  It may free c.
 */
static void
consumer_finish_close(struct consumer *c)
{
	if (!c->confirmed || !handler_set_is_empty(c->handlers))
		return;
	consumer_set_state(c, CONSUMER_CLOSED);
	loop_defer_cancel(c->env->loop, &c->update);
	c->env->closed(c, c->env->arg);
}

/* A drain is over when no message is in flight or on its way. */
static void
consumer_finish_drain(struct consumer *c)
{
	if (c->nruns > 0 || c->collector.fetching)
		return;
	consumer_set_state(c, CONSUMER_CLOSING);
	handler_set_close(c->handlers);
	queue_close(c->queue);
}

static void
consumer_fetch(struct consumer *c, unsigned n)
{
	c->collector.fetching = true;
	c->ready = false;
	queue_fetch(c->queue, n, breaker_turn(&c->suspension.breaker));
}

/*
 * A persistent handler has up to `concurrency` processes anyway, so its messages need
 * no slot.  A process per run needs one.  A batch that is not full has its slot
 * already.
 */
static void
consumer_compete(struct consumer *c, bool room, bool fill)
{
	bool needs_slot = c->cfg->mode == MODE_EXEC;
	bool collected = c->collector.slots == 0 && collector_count(&c->collector) > 0;

	if (room && needs_slot && !(fill && c->ready) && (c->ready || collected)) {
		dispatcher_enter(c->env->dispatcher, &c->member);
		return;
	}
	dispatcher_leave(c->env->dispatcher, &c->member);
	if (!c->ready)
		return;
	if (fill)
		consumer_fetch(c, collector_wants(&c->collector));
	else if (room)
		consumer_fetch(c, consumer_room(c));
}

/* Gives collected messages back if the queue must run nothing. */
static void
consumer_look_at_collected(struct consumer *c)
{
	if (c->state != CONSUMER_RUNNING || c->paused ||
	    c->suspension.breaker.state == BREAKER_OPEN)
		collector_give_back(&c->collector);
	else
		collector_look(&c->collector);
}

/* Decides the next steps from the fields; see the head of this file. */
static void
consumer_update(void *arg)
{
	struct consumer *c = arg;
	bool room, fill;

	if (c->state == CONSUMER_CLOSING) {
		consumer_finish_close(c);
		return;
	}
	consumer_look_at_collected(c);
	room = consumer_room(c) > 0;
	fill = c->state == CONSUMER_RUNNING && !c->collector.fetching &&
	    collector_is_filling(&c->collector) && collector_wants(&c->collector) > 0;
	if (c->wanted != (room || fill) && !c->collector.fetching) {
		c->wanted = room || fill;
		if (!c->wanted)
			c->ready = false;
		queue_want(c->queue, c->wanted);
	}
	consumer_compete(c, room, fill);
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

	collector_grant(&c->collector, n);
	if (c->ready && collector_wants(&c->collector) > 0)
		consumer_fetch(c, collector_wants(&c->collector));
	else
		collector_look(&c->collector);
}

/* -- runs ------------------------------------------------------------------- */

/* Gives a message that never ran back to the queue with its verdict. */
static void
consumer_settle_unrun(struct consumer *c, struct message *msg, const struct verdict *v)
{
	struct result r = { .end = END_NOT_RUN };

	suspension_idle(&c->suspension);
	queue_settle(c->queue, msg, v, &r);
}

static void
consumer_give_back(struct message *msg, void *arg)
{
	struct consumer *c = arg;
	const struct verdict v = {
		.op = VERDICT_RETURN,
		.reason = c->state == CONSUMER_RUNNING ? REASON_NONE : REASON_DRAIN
	};

	consumer_settle_unrun(c, msg, &v);
}

static void
consumer_delivered(struct consumer *c, const struct message *msg)
{
	c->stats.n[STAT_DELIVERED]++;
	event_log_delivered(msg);
}

static void
consumer_began(struct consumer *c, struct inflight *f)
{
	f->slot = c->cfg->mode == MODE_EXEC;
	f->probe = suspension_is_on(&c->suspension);
	TAILQ_INSERT_TAIL(&c->inflight, f, entry);
	c->nruns++;
	c->ninflight += f->size;
}

static void
consumer_start(struct consumer *c, struct message *msg)
{
	consumer_delivered(c, msg);
	consumer_began(c, inflight_start(handler_set_current(c->handlers), msg));
}

static void
consumer_start_collected(struct held_list *list, unsigned n, void *arg)
{
	struct consumer *c = arg;
	struct held *h = TAILQ_FIRST(list);
	struct message *msg = h->msg;

	if (!config_has_batches(c->cfg)) {
		TAILQ_REMOVE(list, h, entry);
		held_free(h);
		consumer_start(c, msg);
		return;
	}
	TAILQ_FOREACH(h, list, entry)
		consumer_delivered(c, h->msg);
	consumer_began(c, inflight_start_batch(handler_set_current(c->handlers), list, n));
}

static const struct collector_events consumer_collector_events = {
	.start = consumer_start_collected,
	.give_back = consumer_give_back,
	.changed = consumer_touch,
};

/* -- from the queue --------------------------------------------------------- */

static void
consumer_ready(void *arg)
{
	struct consumer *c = arg;

	c->ready = true;
	consumer_touch(c);
}

/*
 * Runs a message that needs a slot.  A reload may have come between the fetch and its
 * messages.
 */
static void
consumer_run(struct consumer *c, struct message *msg)
{
	bool needs_slot = c->cfg->mode == MODE_EXEC;

	if (needs_slot && (config_has_batches(c->cfg) || c->collector.slots == 0)) {
		collector_add(&c->collector, msg);
		return;
	}
	if (needs_slot)
		c->collector.slots--;
	consumer_start(c, msg);
}

static void
consumer_deliver(struct message *msg, void *arg)
{
	struct consumer *c = arg;
	struct verdict v;

	if (c->state != CONSUMER_RUNNING)
		consumer_give_back(msg, c);
	else if (outcome_refuse(msg, &v))
		consumer_settle_unrun(c, msg, &v);
	else
		consumer_run(c, msg);
}

static void
consumer_fetched(const struct fetched *f, void *arg)
{
	struct consumer *c = arg;

	c->collector.fetching = false;
	if (f->status == FETCH_LIMITED && c->last != FETCH_LIMITED)
		event_log_limited(c->cfg, f->cause);
	c->last = f->status;
	collector_release(&c->collector);
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

/* The message is no longer ours, or was cancelled: it must not run, or not go on. */
static void
consumer_end_message(struct consumer *c, struct message *msg, enum stop reason)
{
	const struct result r = { .end = END_NOT_RUN, .stop = reason };
	struct held *h = msg->engine_data;
	struct verdict v;

	if (h == NULL)
		return;
	if (h->flight != NULL) {
		inflight_stop_message(h, reason);
		return;
	}
	collector_remove(&c->collector, h);
	v = outcome_decide(msg, &r, false, 0);
	consumer_settle_unrun(c, msg, &v);
	consumer_touch(c);
}

static void
consumer_lost(struct message *msg, void *arg)
{
	consumer_end_message(arg, msg, STOP_LOST);
}

static void
consumer_cancelled(struct message *msg, void *arg)
{
	consumer_end_message(arg, msg, STOP_CANCEL);
}

/* A batch whose run is over stays until Redis has confirmed all results. */
static void
consumer_finish_batch(struct consumer *c, struct inflight *f)
{
	if (!inflight_is_complete(f))
		return;
	TAILQ_REMOVE(&c->over, f, entry);
	if (f->acked > 0)
		event_log_batch(c->cfg, &f->result, f->acked);
	inflight_free(f);
}

/* Redis has confirmed one message of a batch. */
static void
consumer_confirmed(struct consumer *c, struct held *h, bool acked)
{
	struct inflight *f = h->flight;

	f->acked += acked;
	f->unconfirmed--;
	held_free(h);
	consumer_finish_batch(c, f);
}

/* The queue has settled the message, or has given up: logs and counts it now, not before. */
static void
consumer_settled(struct message *msg, const struct verdict *v, const struct result *r,
    enum settled how, void *arg)
{
	struct consumer *c = arg;

	tally_settled(&c->stats, msg, v, r, how);
	if (tally_was_pushed(v, r, how))
		event_log_pushed(msg, r);
	event_log_settled(msg, v, r, how);
	if (msg->engine_data != NULL)
		consumer_confirmed(c, msg->engine_data, how == SETTLED_OK && v->op == VERDICT_ACK);
	consumer_touch(c);
}

static void
consumer_ticked(const struct tick_report *t, void *arg)
{
	struct consumer *c = arg;

	if (t->refused != NULL)
		suspension_results(&c->suspension, t->refused);
	tally_ticked(&c->stats, t);
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
	consumer_touch(c);
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
consumer_ended(struct consumer *c, struct inflight *f)
{
	TAILQ_REMOVE(&c->inflight, f, entry);
	c->nruns--;
	if (f->slot)
		dispatcher_release(c->env->dispatcher, 1);
	consumer_touch(c);
}

/* One message has its result; a batch may go on. */
static void
consumer_done(struct message *msg, struct result *r, void *arg)
{
	struct consumer *c = arg;
	struct held *h = msg->engine_data;
	struct inflight *f = h->flight;
	bool suspended = f->probe || suspension_is_on(&c->suspension);
	struct verdict v;

	if (f->batch && h->stop != STOP_NONE)
		r->stop = h->stop;
	v = outcome_decide(msg, r, suspended, random_unit());
	inflight_done(h);
	c->ninflight--;
	if (f->batch) {
		inflight_judge(f, &v);
		queue_settle(c->queue, msg, &v, r);
		return;
	}
	msg->engine_data = NULL;
	tally_run(&c->stats, r);
	suspension_judge(&c->suspension, &v, r);
	queue_settle(c->queue, msg, &v, r);
	consumer_ended(c, f);
	inflight_free(f);
}

/* A batch has ended. */
static void
consumer_over(struct run *run, const struct result *r, void *arg)
{
	struct consumer *c = arg;
	struct inflight *f = run->owner;

	f->run = NULL;
	f->result = (struct result){ .end = r->end, .status = r->status, .signo = r->signo,
	    .error = r->error, .step = r->step, .pid = r->pid, .duration = r->duration,
	    .batch = r->batch };
	tally_run(&c->stats, r);
	if (r->said == SAID_WRONG)
		event_log_wrong(c->cfg, r);
	suspension_judge(&c->suspension, &f->verdict, r);
	consumer_ended(c, f);
	TAILQ_INSERT_TAIL(&c->over, f, entry);
	consumer_finish_batch(c, f);
}

static const struct handler_events consumer_handler_events = {
	.done = consumer_done,
	.over = consumer_over,
};

/* -- life ------------------------------------------------------------------- */

struct consumer *
consumer_new(const struct consumer_env *env, struct config *config,
    const struct queue_config *cfg, const struct queue_ops *ops)
{
	struct consumer *c = xcalloc(1, sizeof(*c));

	*c = (struct consumer){ .env = env, .config = config_ref(config), .cfg = cfg,
		.member = { .priority = cfg->priority, .room = consumer_room,
		    .grant = consumer_grant, .arg = c } };
	TAILQ_INIT(&c->inflight);
	TAILQ_INIT(&c->over);
	collector_init(&c->collector, env->loop, env->dispatcher, &c->suspension,
	    &consumer_collector_events, c);
	c->collector.cfg = cfg;
	suspension_init(&c->suspension, env->loop, cfg, &c->stats, consumer_touch,
	    consumer_tell_blocked, c);
	c->handlers = handler_set_new(env->handler, &consumer_handler_events,
	    consumer_touch, c);
	handler_set_open(c->handlers, config, cfg);
	c->queue = ops->open(env->queue, config, cfg, &c->stats,
	    &consumer_queue_events, c);
	consumer_touch(c);
	return c;
}

static void
free_inflight(struct inflight_list *list)
{
	struct inflight *f;

	while ((f = TAILQ_TAKE(list, entry)) != NULL)
		inflight_free(f);
}

void
consumer_free(struct consumer *c)
{
	if (c == NULL)
		return;
	dispatcher_leave(c->env->dispatcher, &c->member);
	/* Handlers first: their runs point at messages that the queue owns. */
	handler_set_free(c->handlers);
	queue_free(c->queue);
	free_inflight(&c->inflight);
	free_inflight(&c->over);
	collector_done(&c->collector);
	suspension_done(&c->suspension);
	loop_defer_cancel(c->env->loop, &c->update);
	config_unref(c->config);
	free(c);
}

void
consumer_reconfigure(struct consumer *c, struct config *config,
    const struct queue_config *cfg, bool same)
{
	struct config *previous = c->config;

	dispatcher_leave(c->env->dispatcher, &c->member);
	if (!same)
		collector_give_back(&c->collector);
	c->config = config_ref(config);
	c->cfg = c->collector.cfg = cfg;
	c->member.priority = cfg->priority;
	suspension_reconfigure(&c->suspension, cfg);
	queue_reconfigure(c->queue, config, cfg);
	handler_set_open(c->handlers, config, cfg);
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
	struct inflight *f, *next;

	TAILQ_FOREACH_SAFE(f, &c->inflight, entry, next) {
		handler_stop(f->run, STOP_DRAIN);
		if (hasten)
			handler_kill(f->run);
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
	struct inflight *f;

	TAILQ_FOREACH(f, &c->inflight, entry) {
		if (inflight_lingers(f, LINGERS_AFTER))
			event_log_lingers(c->cfg, f->run->pid, f->size);
	}
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
	if ((!c->up && !queue_is_up_in_part(c->queue)) || c->unsubscribed)
		return BLOCK_REDIS;
	if (suspension_is_on(&c->suspension))
		return BLOCK_SUSPENDED;
	if (c->paused)
		return BLOCK_PAUSED;
	if (c->suspension.refused != NULL)
		return BLOCK_REFUSED;
	if (c->last == FETCH_LIMITED)
		return BLOCK_LIMITED;
	if (c->nruns >= config_most_runs(c->cfg))
		return BLOCK_FULL;
	return BLOCK_NONE;
}

const char *
consumer_block_name(enum consumer_block b)
{
	static const char *const names[] = {
		[BLOCK_NONE] = "", [BLOCK_FULL] = "full", [BLOCK_SUSPENDED] = "suspended",
		[BLOCK_PAUSED] = "paused", [BLOCK_LIMITED] = "limited",
		[BLOCK_REFUSED] = "refused", [BLOCK_REDIS] = "redis",
	};

	return names[b];
}

const struct suspension *
consumer_suspension(const struct consumer *c)
{
	return &c->suspension;
}

const struct stats *
consumer_stats(const struct consumer *c)
{
	return &c->stats;
}

const struct arrivals *
consumer_arrivals(const struct consumer *c)
{
	return queue_arrivals(c->queue);
}

unsigned
consumer_in_flight(const struct consumer *c)
{
	return c->ninflight + collector_count(&c->collector);
}

bool
consumer_is_confirmed(const struct consumer *c)
{
	return c->confirmed;
}

bool
consumer_is_idle(const struct consumer *c)
{
	return c->nruns == 0 && c->collector.slots == 0 && !c->collector.fetching &&
	    !c->ready && c->up && c->state == CONSUMER_RUNNING && queue_is_empty(c->queue);
}

void
consumer_each(const struct consumer *c,
    void (*fn)(const struct message *, pid_t, const char *, usec_t, void *), void *arg)
{
	usec_t now = clock_mono();
	const struct inflight *f;
	const struct held *h;

	TAILQ_FOREACH(f, &c->inflight, entry) {
		if (f->batch && f->done_at != 0)
			fn(NULL, f->run->pid, NULL, now - f->done_at, arg);
		TAILQ_FOREACH(h, &f->messages, entry)
			fn(h->msg, f->run->pid, f->run->progress,
			    now - h->msg->delivered, arg);
	}
	collector_each(&c->collector, fn, arg);
}
