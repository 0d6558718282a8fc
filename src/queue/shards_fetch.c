/*
 * Fetches from the shards of a queue: which shards to ask, and for how many messages.
 * The head of shards.c has the rule.
 */
#include "queue/shards_private.h"



#define SHARE_MAX	64
#define STAY		(20 * MSEC)
#define PATIENCE	(2 * MSEC)	/* results wait for 1 ms */
#define LATE		(100 * MSEC)
#define BATCH_TIME	MSEC		/* as in settler.c */
#define BATCH_ENOUGH	16
#define PACE_MAX	(10 * MSEC)

static void	shards_turn(void *);

void
shards_touch(struct shards *s)
{
	loop_defer_last(s->env->loop, &s->turn, shards_turn, s);
}

/* The only place that changes the state. */
void
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

static bool
shards_have_ready(const struct shards *s)
{
	EACH_SHARD(d, s) {
		if (shard_may_be_asked(d))
			return true;
	}
	return false;
}

static void	shards_fetched_all(struct shards *);

struct shard *
shards_staying(const struct shards *s)
{
	struct shard *d = s->staying;

	return d != NULL && d->has_more && clock_mono() < s->stay_until ? d : NULL;
}

/*
 * Whether to wait for the ready() of the shard that fetches stay with, which waits for
 * results.
 */
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

void
shards_out_of_patience(void *arg)
{
	struct shards *s = arg;

	s->staying = NULL;
	shards_touch(s);
}

/* -- results of quick handlers ----------------------------------------------------------- */

void
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

void
shards_batch_due(void *arg)
{
	shards_touch(arg);
}

/* Whether more results are expected soon, so that one pop fills the slots of all. */
static bool
shards_await_results(struct shards *s)
{
	usec_t until = s->first_result + BATCH_TIME;

	if (s->results == 0 || s->results >= BATCH_ENOUGH || 2 * s->results >= s->in_hand ||
	    s->pace > BATCH_TIME / 2 || clock_mono() >= until)
		return false;
	timer_set_at(&s->batch_timer, until);
	return true;
}

/* At the end of a turn: all shards that have become ready in it are asked together. */
static void
shards_turn(void *arg)
{
	struct shards *s = arg;

	if (s->unasked)
		shards_fetched_all(s);
	if (s->state != SHARDS_WANTED || s->no_room || shards_is_full(s) ||
	    !shards_have_ready(s) || shards_wait(s) || shards_await_results(s))
		return;
	timer_stop(&s->patience);
	timer_stop(&s->batch_timer);
	shards_set_state(s, SHARDS_READY);
	s->queue.events->ready(s->queue.arg);
}

/* Whether Redis refuses the pops of all shards; single ones are left out of the status. */
bool
shards_all_failed(const struct shards *s)
{
	EACH_SHARD(d, s) {
		if (!d->failed)
			return false;
	}
	return true;
}

/*
 * Combines the statuses of two shards: the higher rank wins.  So the queue reports an
 * error only if all shards have one.
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
	s->unasked = false;
	timer_stop(&s->late);
	shards_set_state(s, SHARDS_WANTED);
	s->queue.events->fetched(&f, s->queue.arg);
}

/*
 * The number of messages to ask a shard for: at least one batch, because a message that
 * has failed before takes the room of a whole batch.
 */
static unsigned
shards_portion(const struct shards *s, const struct shard *d, unsigned left)
{
	unsigned n = d->share;

	if (config_has_batches(s->cfg) && n < (unsigned)s->cfg->batch)
		n = (unsigned)s->cfg->batch;
	return n < left ? n : left;
}

/*
 * Plans to ask ready shards for the messages that they hold; returns the room that all
 * held messages leave of n.
 */
static unsigned
shards_ask_for_held(struct shards *s, unsigned n)
{
	unsigned left = n, sum = 0, held;

	EACH_SHARD(d, s) {
		held = shard_is_behind_late(d) ? 0 : queue_held(d->queue);
		sum += held;
		if (!shard_may_be_asked(d))
			continue;
		d->asked = held < left ? held : left;
		left -= d->asked;
	}
	return n > sum ? n - sum : 0;
}

/*
 * Sets where the next fetch begins: after the last shard that was asked, or at that
 * shard again.
 */
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
		if (!shard_may_be_asked(d))
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

/* If all ready shards are asked, shares the rest of the room out among them. */
static void
shards_spread_rest(struct shards *s, unsigned left)
{
	unsigned asked = 0, more;

	EACH_SHARD(d, s)
		asked += shard_is_asked(d);
	EACH_SHARD(d, s) {
		if (!shard_is_asked(d))
			continue;
		more = left / asked--;
		d->asked += more;
		left -= more;
	}
}

/* The room of a fetch of n: results that Redis refuses keep their slots. */
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
		if (!shard_is_asked(d))
			continue;
		d->ready = false;
		s->npending++;
		queue_fetch(d->queue, d->asked, turn);
	}
	timer_set(&s->late, LATE);
}

void
shards_fetch(struct queue *q, unsigned n, enum turn turn)
{
	struct shards *s = shards_of(q);
	unsigned room = shards_ask_for_held(s, shards_room(s, n));

	shards_set_state(s, SHARDS_FETCHING);
	s->npending = 0;
	s->results = 0;
	s->sum = (struct fetched){ .status = FETCH_ERROR };
	shards_spread_rest(s, shards_spread(s, room));
	shards_ask(s, turn);
	if (s->npending > 0)
		return;
	s->unasked = true;
	s->no_room = room == 0;
	s->sum.status = shards_is_full(s) ? FETCH_LIMITED : FETCH_OK;
	shards_touch(s);
}

/* -- answers ------------------------------------------------------------------------ */

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

/* Ends the fetch after the last answer that it waits for. */
static void
shards_answered(struct shards *s, unsigned got, enum fetch_status status)
{
	s->npending--;
	s->sum.got += got;
	s->sum.status = shards_status(s, s->sum.status, status);
	if (s->npending == 0)
		shards_fetched_all(s);
}

/*
 * A late fetch has delivered nothing; ready() comes for the messages that the shard
 * holds now.
 */
static void
shard_late_fetched(struct shard *d)
{
	d->late = false;
	d->asked = 0;
	d->all->nlate--;
	d->all->no_room = false;
	shards_touch(d->all);
}

void
shard_fetched(struct shard *d, const struct fetched *f)
{
	if (d->late) {
		shard_late_fetched(d);
		return;
	}
	d->has_more = f->more && f->status == FETCH_OK;
	shard_set_share(d, f->got);
	d->asked = 0;
	shards_answered(d->all, f->got, f->status);
}

/* -- masters that hang ------------------------------------------------------------------ */

/* Whether some master has answered all fetches from it. */
static bool
shards_have_another_master(const struct shards *s)
{
	bool behind;

	EACH_SHARD(d, s) {
		behind = false;
		EACH_SHARD(other, s)
			behind |= other->asked > 0 && shard_is_beside(d, other);
		if (!behind)
			return true;
	}
	return false;
}

void
shards_are_late(void *arg)
{
	struct shards *s = arg;

	if (!shards_have_another_master(s)) {
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
