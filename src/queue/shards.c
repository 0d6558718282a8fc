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
 * When results of quick handlers come, ready() waits for more of them as leased_settle.c does, for
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
#include "loop/timer.h"
#include "policy/shard_keys.h"
#include "queue/slot_route.h"

#define WARN_AGAIN	MINUTE		/* until another shard may repeat a warning */

#define SHARE_MAX	64
#define STAY		(20 * MSEC)
#define PATIENCE	(2 * MSEC)	/* results wait for 1 ms */
#define LATE		(100 * MSEC)
#define BATCH_TIME	MSEC		/* as in leased_settle.c */
#define BATCH_ENOUGH	16
#define PACE_MAX	(10 * MSEC)

struct shards;

struct shard {
	struct shards	*all;
	const char	*key;		/* borrowed from the configuration */
	struct queue	*queue;
	const struct queue_env *env;
	struct route_user user;		/* in a cluster: each shard has a slot of its own */
	struct stats	 stats;		/* its ticks add these to QSTATS */
	bool		 wanted;	/* the last want() to it */
	bool		 ready;		/* ready() came, and no fetch since */
	bool		 has_more;	/* by its last fetch */
	bool		 paused;
	bool		 failed;	/* Redis refused its last pop */
	bool		 refusing;	/* Redis refuses its results */
	bool		 closed;
	unsigned	 share;		/* messages to ask it for */
	unsigned	 asked;		/* by the fetch on its way; 0: none */
	bool		 late;		/* no fetch of the queue waits for it */
};

/* The state of the queue's fetches. */
enum shards_state {
	SHARDS_UNWANTED,	/* the engine wants nothing */
	SHARDS_WANTED,		/* ready() is due when a shard is ready */
	SHARDS_READY,		/* ready() was called */
	SHARDS_FETCHING,	/* shards were asked: npending are waited for */
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
	struct shard	*counting;	/* its ticks send the engine's counters */
	size_t		 next;		/* the next fetch begins there */
	struct shard	*staying;	/* the last one that was asked; or NULL */
	usec_t		 stay_until;	/* mono */
	enum shards_state state;
	/* Held messages took all the room of a fetch: ready() waits for a change. */
	bool		 no_room;
	struct defer	 turn;
	struct timer	 patience;	/* set: ready() waits for the shard `staying` */
	struct timer	 late;		/* set: a fetch waits for shards until then */
	unsigned	 nlate;

	/* The fetch under way. */
	unsigned	 npending;
	bool		 unasked;	/* no shard could be asked: fetched() is due */
	struct fetched	 sum;		/* cause: see the next member */
	char		*cause;		/* owned */

	/* Results since the last fetch, and how fast they come: see shards_saw_result(). */
	unsigned	 in_hand;	/* delivered, without a result */
	unsigned	 results;
	usec_t		 first_result, last_result;	/* mono */
	usec_t		 pace;		/* between two of them, smoothed; at most PACE_MAX */
	struct timer	 batch_timer;	/* set: ready() waits for more of them */

	unsigned	 outstanding;	/* delivered, and not settled */
	size_t		 npaused, nrefusing, nclosed;
	bool		 warned_partly;	/* that some shards are paused */
	bool		 was_partly;
	char		*warning;	/* the last one; owned */
	usec_t		 warned_at;	/* mono */
};

/* All shards; `d` is each of them. */
#define EACH_SHARD(d, s) \
	for (struct shard *d = (s)->shard; d < (s)->shard + (s)->n; d++)

static void	shards_turn(void *);

static void
shards_touch(void *arg)
{
	struct shards *s = arg;

	loop_defer(s->env->loop, &s->turn, shards_turn, s);
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

/* Messages whose results Redis refuses may have all slots. */
static bool
shards_is_full(const struct shards *s)
{
	return s->nrefusing > 0 && s->outstanding >= config_most(s->cfg);
}

static bool
shard_is_beside(const struct shard *d, const struct shard *other)
{
	return d == other || (d->env->conn != NULL && d->env->conn == other->env->conn);
}

/* Whether the shard's master has yet to answer a late fetch of any shard. */
static bool
shard_is_behind_late(const struct shard *d)
{
	if (d->all->nlate == 0)
		return false;
	EACH_SHARD(other, d->all) {
		if (other->late && shard_is_beside(d, other))
			return true;
	}
	return false;
}

/* Whether the fetch that begins, or is under way, asks this shard. */
static bool
shard_is_asked(const struct shard *d)
{
	return d->asked > 0 && !d->late;
}

static bool
shard_may_be_asked(const struct shard *d)
{
	return d->ready && !shard_is_behind_late(d);
}

/* The shard that fetches stay with; NULL: none, it has no more, or its time is over. */
static struct shard *
shards_staying(const struct shards *s)
{
	struct shard *d = s->staying;

	return d != NULL && d->has_more && clock_mono() < s->stay_until ? d : NULL;
}

static void
shards_out_of_patience(void *arg)
{
	struct shards *s = arg;

	s->staying = NULL;
	shards_touch(s);
}

/* -- results of quick handlers ----------------------------------------------------------- */

static void
shards_saw_result(struct shards *s)
{
	usec_t now = clock_mono(), since = now - s->last_result;

	if (since > PACE_MAX)
		since = PACE_MAX;
	s->pace += (since - s->pace) / 8;
	s->last_result = now;
	if (s->results++ == 0)
		s->first_result = now;
	s->in_hand--;
	if (s->state == SHARDS_WANTED)
		shards_touch(s);
}

/* Whether Redis refuses the pops of all shards; single ones are left out of the status. */
static bool
shards_all_failed(const struct shards *s)
{
	EACH_SHARD(d, s) {
		if (!d->failed)
			return false;
	}
	return true;
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
	s->unasked = false;
	timer_stop(&s->late);
	shards_set_state(s, SHARDS_WANTED);
	s->queue.events->fetched(&f, s->queue.arg);
}

/* At the end of a turn: all shards that have become ready in it are asked together. */
static void
shards_turn(void *arg)
{
	struct shards *s = arg;
	const struct shard *staying;
	bool ready = false;

	if (s->unasked)
		shards_fetched_all(s);
	if (s->state != SHARDS_WANTED || s->no_room || shards_is_full(s))
		return;
	EACH_SHARD(d, s)
		ready |= shard_may_be_asked(d);
	if (!ready)
		return;

	/* The ready() of the shard that fetches stay with waits for results: so does this. */
	staying = shards_staying(s);
	if (staying != NULL && !staying->ready) {
		if (!timer_is_set(&s->patience))
			timer_set(&s->patience, PATIENCE);
		return;
	}

	/* More results are expected soon, so that one pop fills the slots of all. */
	if (s->results > 0 && s->results < BATCH_ENOUGH && 2 * s->results < s->in_hand &&
	    s->pace <= BATCH_TIME / 2 && clock_mono() < s->first_result + BATCH_TIME) {
		timer_set_at(&s->batch_timer, s->first_result + BATCH_TIME);
		return;
	}
	timer_stop(&s->patience);
	timer_stop(&s->batch_timer);
	shards_set_state(s, SHARDS_READY);
	s->queue.events->ready(s->queue.arg);
}

/*
 * Spreads `left` new messages over shards that are ready, and sets where the next fetch
 * begins: after the last shard that was asked, or at that shard again.
 */
static void
shards_spread(struct shards *s, unsigned left)
{
	unsigned batch = config_has_batches(s->cfg) ? (unsigned)s->cfg->batch : 0;
	struct shard *d = shards_staying(s), *last = NULL;
	size_t first = d != NULL ? (size_t)(d - s->shard) : s->next;
	unsigned portion, asked = 0;

	for (size_t i = 0; i < s->n && left > 0; i++) {
		d = &s->shard[(first + i) % s->n];
		if (!shard_may_be_asked(d))
			continue;
		/* A message that has failed before takes the room of a whole batch. */
		portion = d->share > batch ? d->share : batch;
		if (portion > left)
			portion = left;
		d->asked += portion;
		left -= portion;
		last = d;
	}
	if (last != NULL) {
		s->next = (size_t)(last - s->shard + 1) % s->n;
		if (last != shards_staying(s)) {
			s->staying = last;
			s->stay_until = clock_mono() + STAY;
		}
	}

	/* If anything is left, all ready shards are asked: it is shared out among them. */
	EACH_SHARD(each, s)
		asked += shard_is_asked(each);
	EACH_SHARD(each, s) {
		if (!shard_is_asked(each))
			continue;
		portion = left / asked--;
		each->asked += portion;
		left -= portion;
	}
}

static void
shards_fetch(struct queue *q, unsigned n, enum turn turn)
{
	struct shards *s = (struct shards *)q;
	unsigned most = config_most(s->cfg), room, left, sum = 0, held;

	/* Results that Redis refuses keep their slots. */
	room = most > s->outstanding ? most - s->outstanding : 0;
	if (s->nrefusing == 0 || room > n)
		room = n;

	/* First the messages that the shards hold; all of them take room. */
	left = room;
	EACH_SHARD(d, s) {
		held = shard_is_behind_late(d) ? 0 : queue_held(d->queue);
		sum += held;
		if (!shard_may_be_asked(d))
			continue;
		d->asked = held < left ? held : left;
		left -= d->asked;
	}
	room = room > sum ? room - sum : 0;

	shards_set_state(s, SHARDS_FETCHING);
	s->npending = 0;
	s->results = 0;
	s->sum = (struct fetched){ .status = FETCH_ERROR };
	shards_spread(s, room);
	EACH_SHARD(d, s) {
		if (!shard_is_asked(d))
			continue;
		d->ready = false;
		s->npending++;
		queue_fetch(d->queue, d->asked, turn);
	}
	timer_set(&s->late, LATE);
	if (s->npending > 0)
		return;
	s->unasked = true;
	s->no_room = room == 0;
	s->sum.status = shards_is_full(s) ? FETCH_LIMITED : FETCH_OK;
	shards_touch(s);
}

/* -- answers ------------------------------------------------------------------------ */

/* Ends the fetch after the last answer that it waits for. */
static void
shards_answered(struct shards *s, unsigned got, enum fetch_status status)
{
	/* The highest rank wins: an error is reported only if all shards have one. */
	static const int rank[] = {
		[FETCH_OK] = 4, [FETCH_LIMITED] = 3, [FETCH_PAUSED] = 2, [FETCH_DOWN] = 1,
		[FETCH_ERROR] = 0,
	};

	s->npending--;
	s->sum.got += got;
	if (s->sum.got > 0)
		s->sum.status = FETCH_OK;
	else if (rank[status] >= rank[s->sum.status])
		s->sum.status = status;
	if (s->npending == 0)
		shards_fetched_all(s);
}

static void
shard_fetched(struct shard *d, const struct fetched *f)
{
	if (d->late) {
		/* It has delivered nothing; ready() comes for the messages that it holds now. */
		d->late = false;
		d->asked = 0;
		d->all->nlate--;
		d->all->no_room = false;
		shards_touch(d->all);
		return;
	}
	d->has_more = f->more && f->status == FETCH_OK;
	if (f->got < d->asked)
		d->share = f->got > 0 ? f->got : 1;
	else if (d->asked >= SHARE_MAX / 2)
		d->share = SHARE_MAX;
	else if (d->share < 2 * d->asked)
		d->share = 2 * d->asked;
	d->asked = 0;
	shards_answered(d->all, f->got, f->status);
}

/* -- masters that hang ------------------------------------------------------------------ */

static void
shards_are_late(void *arg)
{
	struct shards *s = arg;
	bool behind, another = false;

	/* It helps only if some master has answered all fetches from it. */
	EACH_SHARD(d, s) {
		behind = false;
		EACH_SHARD(other, s)
			behind |= other->asked > 0 && shard_is_beside(d, other);
		another |= !behind;
	}
	if (!another) {
		timer_set(&s->late, LATE);
		return;
	}
	EACH_SHARD(d, s) {
		if (!shard_is_asked(d))
			continue;
		d->late = true;
		s->nlate++;
		d->has_more = false;
		queue_defer_fetch(d->queue);
		shards_answered(s, 0, FETCH_DOWN);
	}
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
	s->in_hand++;
	s->queue.events->deliver(msg, s->queue.arg);
}

/* Unless another shard has just given the same warning. */
static void
shard_warn(struct shard *d, const char *text)
{
	struct shards *s = d->all;
	usec_t now = clock_mono();

	if (s->warning != NULL && strcmp(s->warning, text) == 0 && now - s->warned_at < WARN_AGAIN)
		return;
	xreplace(&s->warning, text);
	s->warned_at = now;
	queue_warn(&s->queue, "%s: %s", d->key, text);
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
	bool was_refusing = s->nrefusing > 0;

	if (report_is_empty(&t)) {
		if (shards_is_empty(&s->queue))
			s->queue.events->ticked(&t, s->queue.arg);
		return;
	}
	if (t.refused != NULL) {
		/* Counts when the first shard begins to refuse, and when the last one accepts. */
		s->nrefusing -= d->refusing;
		d->refusing = t.refused[0] != '\0';
		s->nrefusing += d->refusing;
		if (was_refusing == (s->nrefusing > 0))
			t.refused = t.warning = NULL;
		shards_touch(s);
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

static void
shard_closed(void *arg)
{
	struct shard *d = arg;
	struct shards *s = d->all;

	d->closed = true;
	if (++s->nclosed == s->n)
		s->queue.events->closed(s->queue.arg);
}

static void
shard_over(const struct fetched *f, void *arg)
{
	struct shard *d = arg;
	bool news = !d->failed;

	if (f->status == FETCH_ERROR) {
		/* The shard calls ready() after a second. */
		d->failed = true;
		xreplace(&d->all->cause, f->cause);
		if (news && !shards_all_failed(d->all))
			shard_warn(d, f->cause);
	} else if (f->status != FETCH_DOWN) {
		d->failed = false;
	}
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
	struct shards *s = (struct shards *)q;

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

	shards_saw_result(((struct shards *)q));
	queue_settle(d->queue, msg, verdict, result);
}

static void
shards_tick(struct queue *q)
{
	struct shards *s = (struct shards *)q;
	bool partly = s->npaused > 0 && s->npaused < s->n;

	EACH_SHARD(d, s) {
		if (s->state == SHARDS_UNWANTED)
			shard_want(d, false);
	}
	s->no_room = false;
	/* For two ticks: rqctl writes the pauses of all shards, but not in one step. */
	if (partly && s->was_partly && !s->warned_partly)
		queue_warn(&s->queue, "%zu of its %zu keys are paused, and the others go on: "
		    "rqctl pause or rqctl resume makes them equal", s->npaused, s->n);
	s->warned_partly = partly && s->was_partly;
	s->was_partly = partly;
	shard_take_counters(s->counting);
	EACH_SHARD(d, s)
		queue_tick(d->queue);
	shards_touch(s);
}

static void
shards_renew(struct queue *q)
{
	EACH_SHARD(d, ((struct shards *)q))
		queue_renew(d->queue);
}

static void
shards_due(struct queue *q, const struct retry *list, size_t n)
{
	struct retry *own = xcalloc(n, sizeof(*own));
	size_t k;

	EACH_SHARD(d, ((struct shards *)q)) {
		k = 0;
		for (size_t i = 0; i < n; i++) {
			if (list[i].shard == d)
				own[k++] = list[i];
		}
		if (k > 0)
			queue_due(d->queue, own, k);
	}
	free(own);
}

static void
shards_reconfigure(struct queue *q, struct config *config, const struct queue_config *cfg)
{
	struct shards *s = (struct shards *)q;

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
	if (((struct shards *)q)->env->routes != NULL)
		return;
	EACH_SHARD(d, ((struct shards *)q))
		queue_conn_up(d->queue, server);
}

static void
shards_conn_down(struct queue *q)
{
	if (((struct shards *)q)->env->routes != NULL)
		return;
	EACH_SHARD(d, ((struct shards *)q))
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

/* Of the shard whose oldest message has waited for the longest time. */
static double
shards_waited(const struct queue *q, int64_t *taken)
{
	const struct shards *s = (const struct shards *)q;
	double longest = 0;
	int64_t n;

	*taken = 0;
	EACH_SHARD(d, s) {
		longest = waited_longer(longest, queue_waited(d->queue, &n));
		*taken += n;	/* of all shards, since rqctl status adds them up */
	}
	return longest;
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
	struct shards *s = (struct shards *)q;

	shards_set_state(s, SHARDS_CLOSING);
	shard_take_counters(s->counting);
	EACH_SHARD(d, s)
		queue_close(d->queue);
}

static void
shards_free(struct queue *q)
{
	struct shards *s = (struct shards *)q;

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
	free(s);
}

struct queue *
shards_new(shard_open_fn *open, const struct queue_env *env, struct config *config,
    const struct queue_config *cfg, struct stats *stats, const struct queue_events *events,
    void *arg)
{
	struct shards *s = NEW(struct shards, .queue = { .ops = &queue_shards, .events = events,
	    .arg = arg }, .env = env, .cfg = cfg, .stats = stats, .n = config_key_count(cfg),
	    .turn.stage = LOOP_SEND);

	config_hold(&s->config, config);
	s->shard = xcalloc(s->n, sizeof(*s->shard));
	s->next = random_u64() % s->n;
	timer_init(&s->patience, env->loop, shards_out_of_patience, s);
	timer_init(&s->late, env->loop, shards_are_late, s);
	timer_init(&s->batch_timer, env->loop, shards_touch, s);
	for (size_t i = 0; i < s->n; i++) {
		struct shard *d = &s->shard[i];

		*d = (struct shard){ .all = s, .key = config_key_at(cfg, i), .share = 1 };
		d->env = env;
		if (env->routes != NULL) {
			d->user = (struct route_user){ .up = shard_conn_up,
			    .down = shard_conn_down, .arg = d };
			d->env = route_join(env->routes, d->key, &d->user);
		}
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
	.due = shards_due,
	.waited = shards_waited,
	.is_empty = shards_is_empty,
	.is_up = shards_is_up,
	.close = shards_close,
	.free = shards_free,
};
