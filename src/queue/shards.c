/*
 * Shards of one queue; see shards.h.
 *
 *	engine			shards				each shard
 *
 *	want			shards not wanted yet	want
 *	fetch n			some ready ones, in turn	fetch, of n in total
 *	settle			the one that delivered it	settle
 *	tick, renew, conn	all				the same
 *
 *	ready()			engine wants, and no fetch	ready()
 *	fetched()		all that were asked		fetched()
 *	paused()		all of them			paused()
 *	closed()		all of them			closed()
 *
 * Fetches go round the shards that are ready; each daemon begins with another shard.
 * They stay with one shard for 20 ms, so that the results of quick handlers go to Redis
 * in few calls.  The `share` of a shard is the number of messages to ask it for.  The
 * share doubles when the shard had all of them; otherwise it falls to the number that
 * it had.  So a long queue is fetched in large pops from few shards.  A short queue is
 * fetched from all shards that are ready, at once.
 *
 * When results of quick handlers come, ready() waits for more of them as settler.c does, for
 * 1 ms at most.  Otherwise, while fetches go over to the next shard, each result of the last
 * shard would be followed by a pop of one message.
 *
 * A master that hangs does not delay the others.  After 100 ms a fetch no longer waits
 * for its shards.  The messages that they bring are held, and a later fetch delivers
 * them.  Until these shards have answered, no shard of that master is asked.  So a
 * hanging master makes the queue pop at most one fetch too much.
 *
 * The engine often calls want() with true and false in turn, while most shards are
 * empty.  So a shard stays wanted, armed or ready, until a tick finds that the engine
 * does not want.  Only the shard that fetches stay with learns at once what the engine
 * wants: then its ready() comes with its results, as queue.h says.
 *
 * The engine counts into one struct stats.  Its counters go to Redis with the ticks of
 * one shard, {KEY.0}.  While the queue closes, they go with those of the shard that has
 * settled the last message, because that shard is not closed yet.
 */
#include "queue/shards.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "policy/shard_keys.h"
#include "queue/shards_private.h"

#define WARN_AGAIN	MINUTE		/* until another shard may repeat a warning */

/* -- from a shard ------------------------------------------------------------ */

static void
shard_ready(void *arg)
{
	struct shard *d = arg;

	d->ready = true;
	d->all->no_room = false;
	shards_touch(d->all);
}

static void
shard_deliver(struct message *msg, void *arg)
{
	struct shard *d = arg;
	struct shards *s = d->all;

	msg->shard = d;
	s->outstanding++;
	s->in_hand++;
	s->queue.events->deliver(msg, s->queue.arg);
}

/* False if another shard has just given the same warning. */
static bool
shards_is_news(struct shards *s, const char *text)
{
	usec_t now = clock_mono();

	if (s->warning != NULL && strcmp(s->warning, text) == 0 && now - s->warned_at < WARN_AGAIN)
		return false;
	xreplace(&s->warning, text);
	s->warned_at = now;
	return true;
}

static void
shard_warn(struct shard *d, const char *text)
{
	if (shards_is_news(d->all, text))
		queue_warn(&d->all->queue, "%s: %s", d->key, text);
}

static void
shard_lost(struct message *msg, void *arg)
{
	struct shard *d = arg;

	d->all->queue.events->lost(msg, d->all->queue.arg);
}

static void
shard_cancelled(struct message *msg, void *arg)
{
	struct shard *d = arg;

	d->all->queue.events->cancelled(msg, d->all->queue.arg);
}

/* Gives the engine's counters to the shard, whose next tick sends them. */
static void
shard_take_counters(struct shard *d)
{
	struct stats *from = d->all->stats;

	for (int i = 0; i < STAT_MAX; i++) {
		d->stats.n[i] += from->n[i] - from->sent[i];
		from->sent[i] = from->n[i];
	}
}

static void
shard_settled(struct message *msg, const struct verdict *v, const struct result *r,
    enum settled how, void *arg)
{
	struct shard *d = arg;
	struct shards *s = d->all;

	s->outstanding--;
	s->no_room = false;
	s->queue.events->settled(msg, v, r, how, s->queue.arg);
	if (s->state == SHARDS_CLOSING)
		shard_take_counters(d);
	else if (s->state == SHARDS_WANTED)
		shards_touch(s);
}

/*
 * Reports when Redis begins to refuse results of the first shard, and when it accepts
 * those of the last.
 */
static void
shard_refuses(struct shard *d, struct tick_report *t)
{
	struct shards *s = d->all;
	bool refusing = t->refused[0] != '\0', was_refusing = s->nrefusing > 0;

	s->nrefusing -= d->refusing;
	d->refusing = refusing;
	s->nrefusing += d->refusing;
	if (was_refusing == (s->nrefusing > 0))
		t->refused = t->warning = NULL;
	shards_touch(s);
}

static bool	shards_is_empty(const struct queue *);

static bool
report_is_empty(const struct tick_report *t)
{
	return t->requeued + t->promoted + t->dropped == 0 && t->warning == NULL &&
	    t->refused == NULL;
}

static void
shard_ticked(const struct tick_report *report, void *arg)
{
	struct shard *d = arg;
	struct shards *s = d->all;
	struct tick_report t = *report;

	if (report_is_empty(&t)) {
		if (shards_is_empty(&s->queue))
			s->queue.events->ticked(&t, s->queue.arg);
		return;
	}
	if (t.refused != NULL) {
		shard_refuses(d, &t);
	} else if (t.warning != NULL) {
		shard_warn(d, t.warning);
		t.warning = NULL;
	}
	if (!report_is_empty(&t))
		s->queue.events->ticked(&t, s->queue.arg);
}

/* The queue counts as paused only if all shards are. */
static void
shard_paused(bool paused, const char *why, void *arg)
{
	struct shard *d = arg;
	struct shards *s = d->all;
	bool was_paused = s->npaused == s->n;

	s->npaused -= d->paused;
	d->paused = paused;
	s->npaused += d->paused;
	if (was_paused != (s->npaused == s->n))
		s->queue.events->paused(paused, why, s->queue.arg);
}

/* Only kinds that subscribe listen; "ack" does not. */
static void
shard_listening(bool on, const char *why, void *arg)
{
	struct shard *d = arg;

	d->all->queue.events->listening(on, why, d->all->queue.arg);
}

static void
shard_closed(void *arg)
{
	struct shard *d = arg;
	struct shards *s = d->all;

	d->closed = true;
	if (++s->nclosed == s->n)
		s->queue.events->closed(s->queue.arg);
}

/* A shard whose pop Redis refused calls ready() after a second. */
static void
shard_failed(struct shard *d, const char *cause)
{
	struct shards *s = d->all;
	bool news = !d->failed;

	d->failed = true;
	xreplace(&s->cause, cause);
	if (news && !shards_all_failed(s))
		shard_warn(d, cause);
}

static void
shard_over(const struct fetched *f, void *arg)
{
	struct shard *d = arg;

	if (f->status == FETCH_ERROR)
		shard_failed(d, f->cause);
	else if (f->status != FETCH_DOWN)
		d->failed = false;
	shard_fetched(d, f);
}

static const struct queue_events shard_events = {
	.ready = shard_ready,
	.deliver = shard_deliver,
	.fetched = shard_over,
	.lost = shard_lost,
	.cancelled = shard_cancelled,
	.settled = shard_settled,
	.ticked = shard_ticked,
	.paused = shard_paused,
	.listening = shard_listening,
	.closed = shard_closed,
};

/* -- from the engine --------------------------------------------------------- */

static void
shard_want(struct shard *d, bool wanted)
{
	if (d->wanted == wanted || d->late)
		return;
	d->wanted = wanted;
	d->ready = false;
	queue_want(d->queue, wanted);
}

static void
shards_want(struct queue *q, bool wanted)
{
	struct shards *s = shards_of(q);

	if (!wanted) {
		shards_set_state(s, SHARDS_UNWANTED);
		if (shards_staying(s) != NULL)
			shard_want(s->staying, false);
		return;
	}
	s->no_room = false;
	shards_set_state(s, SHARDS_WANTED);
	EACH_SHARD(d, s)
		shard_want(d, true);
}

static void
shards_settle(struct queue *q, struct message *msg, const struct verdict *verdict,
    struct result *result)
{
	struct shard *d = msg->shard;

	shards_saw_result(shards_of(q));
	queue_settle(d->queue, msg, verdict, result);
}

/*
 * Warns of shards that are partly paused for two ticks: rqctl writes the pauses of all
 * shards, but not in one step.
 */
static void
shards_look_at_pauses(struct shards *s)
{
	bool partly = s->npaused > 0 && s->npaused < s->n;

	if (partly && s->was_partly && !s->warned_partly)
		queue_warn(&s->queue, "%zu of its %zu keys are paused, and the others go on: "
		    "rqctl pause or rqctl resume makes them equal", s->npaused, s->n);
	s->warned_partly = partly && s->was_partly;
	s->was_partly = partly;
}

static void
shards_tick(struct queue *q)
{
	struct shards *s = shards_of(q);

	EACH_SHARD(d, s) {
		if (s->state == SHARDS_UNWANTED)
			shard_want(d, false);
	}
	s->no_room = false;
	shards_look_at_pauses(s);
	shard_take_counters(s->counting);
	EACH_SHARD(d, s)
		queue_tick(d->queue);
	shards_touch(s);
}

static void
shards_renew(struct queue *q)
{
	EACH_SHARD(d, shards_of(q))
		queue_renew(d->queue);
}

static void
shards_reconfigure(struct queue *q, struct config *config, const struct queue_config *cfg)
{
	struct shards *s = shards_of(q);

	config_hold(&s->config, config);
	s->cfg = cfg;
	s->no_room = false;
	for (size_t i = 0; i < s->n; i++) {
		s->shard[i].key = config_key_at(cfg, i);
		queue_reconfigure(s->shard[i].queue, config, cfg);
	}
}

/* With one server.  In a cluster the shards hear it from their routes. */
static void
shards_conn_up(struct queue *q, const struct conn_server *server)
{
	if (shards_of(q)->env->routes != NULL)
		return;
	EACH_SHARD(d, shards_of(q))
		queue_conn_up(d->queue, server);
}

static void
shards_conn_down(struct queue *q)
{
	if (shards_of(q)->env->routes != NULL)
		return;
	EACH_SHARD(d, shards_of(q))
		queue_conn_down(d->queue);
}

static void
shard_conn_up(const struct conn_server *server, void *arg)
{
	struct shard *d = arg;

	queue_conn_up(d->queue, server);
	/* Its slot may have moved away from a late master, behind which no fetch asked it. */
	shards_touch(d->all);
}

static void
shard_conn_down(void *arg)
{
	queue_conn_down(((struct shard *)arg)->queue);
}

/* The arrivals of the shard whose oldest message has waited for the longest time. */
static const struct arrivals *
shards_arrivals(const struct queue *q)
{
	const struct shards *s = (const struct shards *)q;
	usec_t now = clock_mono();
	const struct arrivals *a, *worst = NULL;
	struct latency l, most = { LATENCY_KNOWN, -1 };
	int64_t taken = 0;

	EACH_SHARD(d, s) {
		if ((a = queue_arrivals(d->queue)) == NULL)
			continue;
		l = arrivals_latency(a, now);
		taken += a->taken;
		if (l.seconds < most.seconds || (l.seconds == most.seconds && l.how >= most.how))
			continue;
		most = l;
		worst = a;
	}
	if (worst == NULL)
		return NULL;
	*s->worst = *worst;
	s->worst->taken = taken;	/* of all shards, since rqctl status adds them up */
	return s->worst;
}

/* Whether a master is up; false with one server. */
static bool
shards_is_up(const struct queue *q)
{
	EACH_SHARD(d, (const struct shards *)q) {
		if (d->user.route != NULL && route_is_up(&d->user))
			return true;
	}
	return false;
}

static bool
shards_is_empty(const struct queue *q)
{
	const struct shards *s = (const struct shards *)q;

	if (s->state == SHARDS_FETCHING)
		return false;
	EACH_SHARD(d, s) {
		if (d->ready || !queue_is_empty(d->queue))
			return false;
	}
	return true;
}

static void
shards_close(struct queue *q)
{
	struct shards *s = shards_of(q);

	shards_set_state(s, SHARDS_CLOSING);
	shard_take_counters(s->counting);
	EACH_SHARD(d, s)
		queue_close(d->queue);
}

static void
shards_free(struct queue *q)
{
	struct shards *s = shards_of(q);

	EACH_SHARD(d, s) {
		queue_free(d->queue);
		if (d->user.route != NULL)
			route_leave(&d->user);
	}
	loop_defer_cancel(s->env->loop, &s->turn);
	timer_stop(&s->patience);
	timer_stop(&s->late);
	timer_stop(&s->batch_timer);
	config_unref(s->config);
	free(s->shard);
	free(s->cause);
	free(s->warning);
	free(s->worst);
	free(s);
}

/* The environment of a shard: with one server that of the queue. */
static const struct queue_env *
shard_route(struct shard *d, const struct queue_env *env)
{
	if (env->routes == NULL)
		return env;
	d->user = (struct route_user){ .up = shard_conn_up, .down = shard_conn_down, .arg = d };
	return route_join(env->routes, d->key, &d->user);
}

struct queue *
shards_new(shard_open_fn *open, const struct queue_env *env, struct config *config,
    const struct queue_config *cfg, struct stats *stats, const struct queue_events *events,
    void *arg)
{
	struct shards *s = NEW(struct shards, .queue = { .ops = &queue_shards, .events = events,
	    .arg = arg }, .env = env, .cfg = cfg, .stats = stats, .n = config_key_count(cfg));

	config_hold(&s->config, config);
	s->shard = xcalloc(s->n, sizeof(*s->shard));
	s->worst = xcalloc(1, sizeof(*s->worst));
	s->next = random_u64() % s->n;
	timer_init(&s->patience, env->loop, shards_out_of_patience, s);
	timer_init(&s->late, env->loop, shards_are_late, s);
	timer_init(&s->batch_timer, env->loop, shards_batch_due, s);
	for (size_t i = 0; i < s->n; i++) {
		struct shard *d = &s->shard[i];

		*d = (struct shard){ .all = s, .key = config_key_at(cfg, i), .share = 1 };
		d->env = shard_route(d, env);
		d->queue = open(d->env, d->key, config, cfg, &d->stats, &shard_events, d);
		if (d->user.route != NULL)
			route_begin(&d->user);
		if (strcmp(d->key, shard_keys_schedule(cfg)) == 0)
			s->counting = d;
	}
	return &s->queue;
}

static struct queue *
shards_open(const struct queue_env *env, struct config *config, const struct queue_config *cfg,
    struct stats *stats, const struct queue_events *events, void *arg)
{
	return shards_new(ack_open_shard, env, config, cfg, stats, events, arg);
}

const struct queue_ops queue_shards = {
	.open = shards_open,
	.reconfigure = shards_reconfigure,
	.conn_up = shards_conn_up,
	.conn_down = shards_conn_down,
	.want = shards_want,
	.fetch = shards_fetch,
	.settle = shards_settle,
	.tick = shards_tick,
	.renew = shards_renew,
	.arrivals = shards_arrivals,
	.is_empty = shards_is_empty,
	.is_up = shards_is_up,
	.close = shards_close,
	.free = shards_free,
};
