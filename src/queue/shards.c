/*
 * Shards of one queue; see shards.h.
 *
 *	engine			shards				each shard
 *
 *	want			those that are not wanted yet	want
 *	fetch n			some that are ready, in turn	fetch, of n in total
 *	settle			the one that delivered it	settle
 *	tick, renew, conn	all				the same
 *
 *	ready()			engine wants, and no fetch	ready()
 *	fetched()		all that were asked		fetched()
 *	paused()		all of them			paused()
 *	closed()		all of them			closed()
 *
 * Fetches go round the shards that are ready; each daemon begins with another shard.  They
 * stay with one shard for 20 ms, so that the results of quick handlers go to Redis in few
 * calls.  The `share` of a shard says how many messages it is asked for.  It doubles while
 * the shard has all that it was asked for, and falls to what it had.  So a long queue is
 * fetched in large pops from few shards, and a short one from all shards that are ready at
 * once.
 *
 * The engine wants and does not want, often, and most shards have nothing then.  A shard
 * that is wanted once stays so until a tick finds that the engine does not want: it is
 * armed, or it has said ready() and waits.  Only the shard that fetches stay with learns
 * what the engine wants at once: its ready() then comes with its results, as queue.h says.
 *
 * The engine counts into one struct stats.  Its counters go to Redis with the ticks of
 * one shard, {KEY.0}; while the queue closes, with those of the shard that has settled
 * the last message, because that one is not closed yet.
 */
#include "queue/shards.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "loop/timer.h"
#include "policy/shard_keys.h"
#include "queue/route.h"

#define SHARE_MAX	64
#define STAY		(20 * MSEC)
#define PATIENCE	(2 * MSEC)	/* results wait for 1 ms */
#define WARN_AGAIN	MINUTE		/* the same warning, of another shard */

struct shards;

struct shard {
	struct shards	*all;
	const char	*key;		/* borrowed from the configuration */
	struct queue	*queue;
	struct route_user user;		/* in a cluster: each shard has a slot of its own */
	struct stats	 stats;		/* what its ticks add to QSTATS */
	bool		 wanted;	/* as it was told */
	bool		 ready;		/* it has said so, and was not asked since */
	bool		 has_more;	/* the last fetch said so */
	bool		 paused;
	bool		 failed;	/* Redis refused its last pop */
	bool		 refusing;	/* Redis refuses its results */
	bool		 closed;
	unsigned	 share;		/* messages that it is asked for */
	unsigned	 asked;		/* a fetch is on its way; 0: none */
};

/* Whether it is the engine's turn, or ours. */
enum shards_state {
	SHARDS_UNWANTED,	/* the engine wants nothing */
	SHARDS_WANTED,		/* ready() is due when a shard is ready */
	SHARDS_READY,		/* the engine was told */
	SHARDS_FETCHING,	/* shards were asked: npending have not answered */
	SHARDS_CLOSING
};

struct shards {
	struct queue	 queue;		/* first */
	const struct queue_env *env;
	struct config	*config;	/* reference */
	const struct queue_config *cfg;
	struct stats	*stats;		/* the engine's */
	struct shard	*shard;
	size_t		 n;
	struct shard	*counting;	/* its ticks have the engine's counters */
	size_t		 next;		/* the next fetch begins there */
	struct shard	*staying;	/* the last one that was asked; or NULL */
	usec_t		 stay_until;	/* mono */
	enum shards_state state;
	/* A fetch found that held messages take its room: ready() waits for a change. */
	bool		 no_room;
	struct defer	 turn;
	struct timer	 patience;	/* set: ready() waits for the shard `staying` */

	/* The fetch under way. */
	unsigned	 npending;
	struct fetched	 sum;		/* cause: see there */
	char		*cause;		/* owned */

	unsigned	 outstanding;	/* delivered, and not settled */
	size_t		 npaused, nrefusing, nclosed;
	bool		 warned_partly;	/* some were paused at the last tick: it was said */
	bool		 was_partly;
	char		*warning;	/* the last one; owned */
	usec_t		 warned_at;	/* mono */
	struct arrivals	*worst;		/* a copy, for shards_arrivals() */
};

/* All shards; `d` is each of them. */
#define EACH_SHARD(d, s) \
	for (struct shard *d = (s)->shard; d < (s)->shard + (s)->n; d++)

static struct shards *
shards_of(struct queue *q)
{
	return (struct shards *)q;
}

static void	shards_turn(void *);

static void
shards_touch(struct shards *s)
{
	loop_defer_last(s->env->loop, &s->turn, shards_turn, s);
}

/* The only place that changes the state. */
static void
shards_set_state(struct shards *s, enum shards_state state)
{
	if (s->state == SHARDS_CLOSING)
		return;
	s->state = state;
	if (state == SHARDS_WANTED)
		shards_touch(s);
}

/* -- fetching --------------------------------------------------------------- */

/* Redis refuses results, and those that were delivered have all slots. */
static bool
shards_is_full(const struct shards *s)
{
	return s->nrefusing > 0 && s->outstanding >= config_most(s->cfg);
}

static bool
shards_have_ready(const struct shards *s)
{
	EACH_SHARD(d, s) {
		if (d->ready)
			return true;
	}
	return false;
}

static void	shards_fetched_all(struct shards *);

/* The shard that fetches stay with, unless it has no more, or its time is over. */
static struct shard *
shards_staying(const struct shards *s)
{
	struct shard *d = s->staying;

	return d != NULL && d->has_more && clock_mono() < s->stay_until ? d : NULL;
}

/* Whether the shard that fetches stay with has more, and its ready() waits for results. */
static bool
shards_wait(struct shards *s)
{
	const struct shard *d = shards_staying(s);

	if (d == NULL || d->ready)
		return false;
	if (!timer_is_set(&s->patience))
		timer_set(&s->patience, PATIENCE);
	return true;
}

static void
shards_out_of_patience(void *arg)
{
	struct shards *s = arg;

	s->staying = NULL;
	shards_touch(s);
}

/* At the end of a turn: all shards that have become ready in it are asked together. */
static void
shards_turn(void *arg)
{
	struct shards *s = arg;

	if (s->state == SHARDS_FETCHING && s->npending == 0)
		shards_fetched_all(s);	/* nobody could be asked */
	if (s->state != SHARDS_WANTED || s->no_room || shards_is_full(s) ||
	    !shards_have_ready(s) || shards_wait(s))
		return;
	timer_stop(&s->patience);
	shards_set_state(s, SHARDS_READY);
	s->queue.events->ready(s->queue.arg);
}

/* Not all shards fail: those that do are left out. */
static bool
shards_all_failed(const struct shards *s)
{
	EACH_SHARD(d, s) {
		if (!d->failed)
			return false;
	}
	return true;
}

/*
 * What one answer makes of the status of all: an answer beats none.  One error is a
 * warning, and an error of all shards is one of the queue.
 */
static enum fetch_status
shards_status(const struct shards *s, enum fetch_status a, enum fetch_status b)
{
	static const int rank[] = {
		[FETCH_OK] = 4, [FETCH_LIMITED] = 3, [FETCH_PAUSED] = 2, [FETCH_DOWN] = 1,
		[FETCH_ERROR] = 0,
	};

	if (s->sum.got > 0)
		return FETCH_OK;
	return rank[a] > rank[b] ? a : b;
}

/* All have answered. */
static void
shards_fetched_all(struct shards *s)
{
	struct fetched f = s->sum;

	if (f.status == FETCH_ERROR && !shards_all_failed(s))
		f.status = FETCH_OK;
	if (f.status == FETCH_PAUSED && s->npaused < s->n)
		f.status = FETCH_OK;
	f.cause = f.status == FETCH_ERROR ? s->cause :
	    f.status == FETCH_LIMITED ? "results" : NULL;
	shards_set_state(s, SHARDS_WANTED);
	s->queue.events->fetched(&f, s->queue.arg);
}

/* What a shard is asked for.  A message that has failed before takes a whole batch. */
static unsigned
shards_portion(const struct shards *s, const struct shard *d, unsigned left)
{
	unsigned n = d->share;

	if (config_has_batches(s->cfg) && n < (unsigned)s->cfg->batch)
		n = (unsigned)s->cfg->batch;
	return n < left ? n : left;
}

/*
 * Asks for the messages that shards hold, and that are ready; returns the room that all
 * held ones leave of n.
 */
static unsigned
shards_ask_for_held(struct shards *s, unsigned n)
{
	unsigned left = n, sum = 0, held;

	EACH_SHARD(d, s) {
		held = queue_held(d->queue);
		sum += held;
		if (!d->ready)
			continue;
		d->asked = held < left ? held : left;
		left -= d->asked;
	}
	return n > sum ? n - sum : 0;
}

/* After a fetch: the next one goes on behind the last shard that was asked, or stays there. */
static void
shards_go_on(struct shards *s, struct shard *last)
{
	s->next = (size_t)(last - s->shard + 1) % s->n;
	if (last == shards_staying(s))
		return;
	s->staying = last;
	s->stay_until = clock_mono() + STAY;
}

/* Spreads `left` new messages over shards that are ready; returns what is left over. */
static unsigned
shards_spread(struct shards *s, unsigned left)
{
	struct shard *d = shards_staying(s), *last = NULL;
	size_t first = d != NULL ? (size_t)(d - s->shard) : s->next;
	unsigned portion;

	for (size_t i = 0; i < s->n && left > 0; i++) {
		d = &s->shard[(first + i) % s->n];
		if (!d->ready)
			continue;
		portion = shards_portion(s, d, left);
		d->asked += portion;
		left -= portion;
		last = d;
	}
	if (last != NULL)
		shards_go_on(s, last);
	return left;
}

/* Where all that are ready were asked, the rest is shared out among them. */
static void
shards_spread_rest(struct shards *s, unsigned left)
{
	unsigned asked = 0, more;

	EACH_SHARD(d, s)
		asked += d->asked > 0;
	EACH_SHARD(d, s) {
		if (d->asked == 0)
			continue;
		more = left / asked--;
		d->asked += more;
		left -= more;
	}
}

/* The room of a fetch of n, when results that Redis refuses keep their slots. */
static unsigned
shards_room(const struct shards *s, unsigned n)
{
	unsigned most = config_most(s->cfg);
	unsigned left = most > s->outstanding ? most - s->outstanding : 0;

	return s->nrefusing > 0 && left < n ? left : n;
}

static void
shards_ask(struct shards *s, enum turn turn)
{
	EACH_SHARD(d, s) {
		if (d->asked == 0)
			continue;
		d->ready = false;
		s->npending++;
		queue_fetch(d->queue, d->asked, turn);
	}
}

static void
shards_fetch(struct queue *q, unsigned n, enum turn turn)
{
	struct shards *s = shards_of(q);
	unsigned room = shards_ask_for_held(s, shards_room(s, n));

	shards_set_state(s, SHARDS_FETCHING);
	s->npending = 0;
	s->sum = (struct fetched){ .status = FETCH_ERROR };
	shards_spread_rest(s, shards_spread(s, room));
	shards_ask(s, turn);
	if (s->npending > 0)
		return;
	s->no_room = room == 0;
	s->sum.status = shards_is_full(s) ? FETCH_LIMITED : FETCH_OK;
	shards_touch(s);
}

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
	s->queue.events->deliver(msg, s->queue.arg);
}

/* A warning that another shard has just given says nothing new. */
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

/* A shard that Redis refuses waits a second, and says ready() then. */
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
shard_set_share(struct shard *d, unsigned got)
{
	if (got < d->asked)
		d->share = got > 0 ? got : 1;
	else if (d->asked >= SHARE_MAX / 2)
		d->share = SHARE_MAX;
	else if (d->share < 2 * d->asked)
		d->share = 2 * d->asked;
}

static void
shard_fetched(const struct fetched *f, void *arg)
{
	struct shard *d = arg;
	struct shards *s = d->all;

	d->has_more = f->more && f->status == FETCH_OK;
	shard_set_share(d, f->got);
	d->asked = 0;
	s->npending--;
	s->sum.got += f->got;
	if (f->status == FETCH_ERROR)
		shard_failed(d, f->cause);
	else if (f->status != FETCH_DOWN)
		d->failed = false;
	s->sum.status = shards_status(s, s->sum.status, f->status);
	if (s->npending == 0)
		shards_fetched_all(s);
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

/* Gives the shard what was counted, to be sent with its next tick. */
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

/* Of several shards whose results Redis refuses, the first and the last are reported. */
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

/* The engine goes on while one shard does. */
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

static const struct queue_events shard_events = {
	.ready = shard_ready,
	.deliver = shard_deliver,
	.fetched = shard_fetched,
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
	if (d->wanted == wanted)
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
shards_settle(struct queue *q UNUSED, struct message *msg, const struct verdict *verdict,
    struct result *result)
{
	struct shard *d = msg->shard;

	queue_settle(d->queue, msg, verdict, result);
}

/* rqctl writes the pauses of all shards, but not in one step. */
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

/* In a cluster the shards hear it from their routes. */
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
	queue_conn_up(((struct shard *)arg)->queue, server);
}

static void
shard_conn_down(void *arg)
{
	queue_conn_down(((struct shard *)arg)->queue);
}

/* That of the shard whose oldest message has waited for the longest time. */
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
	s->worst->taken = taken;	/* of all: so rqctl status adds it up */
	return s->worst;
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
	config_unref(s->config);
	free(s->shard);
	free(s->cause);
	free(s->warning);
	free(s->worst);
	free(s);
}

/* The environment of a shard. */
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
	struct shards *s = xcalloc(1, sizeof(*s));

	*s = (struct shards){
		.queue = { .ops = &queue_shards, .events = events, .arg = arg }, .env = env,
		.cfg = cfg, .stats = stats, .n = config_key_count(cfg),
	};
	config_hold(&s->config, config);
	s->shard = xcalloc(s->n, sizeof(*s->shard));
	s->worst = xcalloc(1, sizeof(*s->worst));
	s->next = random_u64() % s->n;
	timer_init(&s->patience, env->loop, shards_out_of_patience, s);
	for (size_t i = 0; i < s->n; i++) {
		struct shard *d = &s->shard[i];

		*d = (struct shard){ .all = s, .key = config_key_at(cfg, i), .share = 1 };
		d->queue = open(shard_route(d, env), d->key, config, cfg, &d->stats,
		    &shard_events, d);
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
	.close = shards_close,
	.free = shards_free,
};
