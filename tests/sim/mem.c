/*
 * A queue in memory; see mem.h.  No callback comes from inside a call: every change
 * wakes the queues of the store, and mem_turn() does the work.
 */
#include "mem.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "loop/timer.h"

/* A message in flight, or with a result that waits to be confirmed. */
struct mem_delivery {
	TAILQ_ENTRY(mem_delivery) entry;
	struct message		*msg;
	struct mem_entry	*of;
	bool			 stolen;	/* lost() must be called */
	struct verdict		 verdict;	/* on results only */
	struct result		 result;
};
TAILQ_HEAD(mem_deliveries, mem_delivery);

struct mem {
	struct queue		  queue;	/* first */
	TAILQ_ENTRY(mem)	  entry;
	struct mem_store	 *store;
	struct loop		 *loop;
	struct config		 *config;	/* reference */
	const struct queue_config *cfg;
	struct mem_deliveries	  in_hand;
	struct mem_deliveries	  results;
	struct defer		  turn;
	struct timer		  due;		/* of the first retry */
	unsigned		  asked;
	bool			  deferred;	/* see queue_defer_fetch(): it delivers nothing */
	enum turn		  fetch_turn;
	bool			  new_first;	/* TURN_SHARE: prefer a new message next */
	usec_t			  not_before;	/* mono: no ready() for messages that had failed */
	usec_t			  retry_at;	/* mono: no ready() before, while pops fail */
	bool			  wanted;
	bool			  told;
	bool			  paused;	/* the last state that the engine heard */
	bool			  closing;
	bool			  closed;
};

struct mem_store {
	TAILQ_ENTRY(mem_store)	 entry;
	char			*key;
	struct mem_entries	 entries;
	TAILQ_HEAD(, mem)	 queues;
	uint64_t		 sequence;
	bool			 down;
	bool			 paused;
	bool			 hangs;
	bool			 refuses;
	char			*error;		/* NULL: none */
};

static TAILQ_HEAD(, mem_store)	mem_stores = TAILQ_HEAD_INITIALIZER(mem_stores);

static void	mem_turn(void *);

static void
mem_wake(struct mem *q)
{
	loop_defer(q->loop, &q->turn, mem_turn, q);
}

static void
mem_wake_all(struct mem_store *s)
{
	struct mem *q;

	TAILQ_FOREACH(q, &s->queues, entry)
		mem_wake(q);
}

/* -- the store -------------------------------------------------------------- */

struct mem_store *
mem_store_new(const char *key)
{
	struct mem_store *s = xcalloc(1, sizeof(*s));

	s->key = xstrdup(key);
	TAILQ_INIT(&s->entries);
	TAILQ_INIT(&s->queues);
	TAILQ_INSERT_TAIL(&mem_stores, s, entry);
	return s;
}

void
mem_store_free(struct mem_store *s)
{
	struct mem_entry *e;

	if (s == NULL)
		return;
	while ((e = TAILQ_FIRST(&s->entries)) != NULL) {
		TAILQ_REMOVE(&s->entries, e, entry);
		free(e->payload);
		free(e->id);
		free(e->tag);
		free(e);
	}
	TAILQ_REMOVE(&mem_stores, s, entry);
	free(s->key);
	free(s->error);
	free(s);
}

static struct mem_store *
mem_store_find(const char *key)
{
	struct mem_store *s;

	TAILQ_FOREACH(s, &mem_stores, entry) {
		if (strcmp(s->key, key) == 0)
			return s;
	}
	fatalx("no store in memory has the key %s", key);
}

struct mem_entry *
mem_push(struct mem_store *s, const char *payload, size_t len, usec_t delay)
{
	struct mem_entry *e = xcalloc(1, sizeof(*e));
	char id[MESSAGE_ID_MAX + 1];

	e->payload = xmalloc(len + 1);
	memcpy(e->payload, payload, len);
	e->payload[len] = '\0';
	e->len = len;
	s->sequence++;
	if (message_id("id", payload, len, id) == 0)
		e->id = xstrdup(id);
	else
		e->id = xasprintf("~%llu", (unsigned long long)s->sequence);
	e->tag = xasprintf("%s#%llu", e->id, (unsigned long long)s->sequence);
	e->state = delay > 0 ? MEM_RETRY : MEM_WAITING;
	e->due = clock_mono() + delay;
	TAILQ_INSERT_TAIL(&s->entries, e, entry);
	mem_wake_all(s);
	return e;
}

unsigned
mem_count(const struct mem_store *s, enum mem_state state)
{
	const struct mem_entry *e;
	unsigned n = 0;

	TAILQ_FOREACH(e, &s->entries, entry)
		n += e->state == state;
	return n;
}

const struct mem_entries *
mem_entries(const struct mem_store *s)
{
	return &s->entries;
}

void
mem_set_up(struct mem_store *s, bool up)
{
	s->down = !up;
	mem_wake_all(s);
}

void
mem_set_paused(struct mem_store *s, bool paused)
{
	s->paused = paused;
	mem_wake_all(s);
}

void
mem_set_error(struct mem_store *s, const char *cause)
{
	free(s->error);
	s->error = cause != NULL ? xstrdup(cause) : NULL;
	mem_wake_all(s);
}

void
mem_steal(struct mem_store *s, struct mem_entry *e)
{
	if (e->state != MEM_LEASED || e->holder == NULL)
		return;
	e->holder->stolen = true;
	e->holder = NULL;
	mem_wake_all(s);
}

void
mem_set_hangs(struct mem_store *s, bool hangs)
{
	s->hangs = hangs;
	mem_wake_all(s);
}

void
mem_set_refuses(struct mem_store *s, bool refuses)
{
	const struct tick_report report = { .refused = refuses ? "OOM" : "" };
	struct mem *q;

	s->refuses = refuses;
	TAILQ_FOREACH(q, &s->queues, entry)
		q->queue.events->ticked(&report, q->queue.arg);
	mem_wake_all(s);
}

/* Whether e, which may be handed out, comes before best in this turn. */
static bool
mem_is_before(const struct mem_entry *e, const struct mem_entry *best, enum turn turn)
{
	bool new = e->state == MEM_WAITING;

	if (best == NULL)
		return true;
	if (new != (best->state == MEM_WAITING))
		return new == (turn == TURN_OLDEST || turn == TURN_NEWEST);
	if (new)
		return turn == TURN_NEWEST;
	return turn == TURN_FEWEST && e->attempts != best->attempts ?
	    e->attempts < best->attempts : e->due < best->due;
}

static bool
mem_has_failed(const struct mem_entry *e)
{
	return e->attempts + e->crashes + e->expired > 0;
}

/* The first message that may be handed out now; failed: also one that has failed before. */
static struct mem_entry *
mem_next(struct mem_store *s, enum turn turn, bool failed)
{
	struct mem_entry *e, *best = NULL;
	usec_t now = clock_mono();

	TAILQ_FOREACH(e, &s->entries, entry) {
		if ((e->state == MEM_WAITING || (e->state == MEM_RETRY && e->due <= now)) &&
		    (failed || !mem_has_failed(e)) && mem_is_before(e, best, turn))
			best = e;
	}
	return best;
}

/* The turn for the next message.  TURN_SHARE changes sides only if `failed` may be taken. */
static enum turn
mem_turn_of(struct mem *q, bool failed)
{
	if (q->fetch_turn != TURN_SHARE)
		return q->fetch_turn;
	if (failed)
		q->new_first = !q->new_first;
	return q->new_first ? TURN_LONGEST : TURN_OLDEST;
}

/* -- the queue -------------------------------------------------------------- */

static void
mem_deliver(struct mem *q, struct mem_entry *e)
{
	struct message *m = message_new(q->config, q->cfg);
	struct mem_delivery *d = xcalloc(1, sizeof(*d));

	d->msg = m;
	d->of = e;
	e->crashes += e->expired;
	e->expired = false;
	e->state = MEM_LEASED;
	e->deliveries++;
	e->holder = d;
	m->tag = xstrdup(e->tag);
	m->id = xstrdup(e->id);
	m->token = xasprintf("mem.%u", e->deliveries);
	m->len = e->len;
	m->too_large = e->len > q->cfg->message_max;
	if (!m->too_large)
		m->payload = xmemdup(e->payload, e->len + 1);
	m->attempts = e->attempts;
	m->crashes = e->crashes;
	m->delivered = clock_mono();
	m->queue_data = d;
	TAILQ_INSERT_TAIL(&q->in_hand, d, entry);
	q->queue.events->deliver(m, q->queue.arg);
}

static void
mem_fetch_now(struct mem *q)
{
	struct fetched f = { .status = FETCH_OK };
	struct mem_store *s = q->store;
	bool batches = q->fetch_turn == TURN_SHARE && config_has_batches(q->cfg);
	unsigned left = q->asked, each = batches ? (unsigned)q->cfg->batch : 1;
	struct mem_entry *e;

	if (s->down)
		f.status = FETCH_DOWN;
	else if (s->error != NULL)
		f.status = FETCH_ERROR;
	else if (s->paused)
		f.status = FETCH_PAUSED;
	f.cause = s->error;
	while (f.status == FETCH_OK && left > 0 && !q->deferred &&
	    (e = mem_next(s, mem_turn_of(q, left >= each), left >= each)) != NULL) {
		f.got++;
		left -= mem_has_failed(e) ? each : 1;
		mem_deliver(q, e);
	}
	if (f.status == FETCH_ERROR)
		q->retry_at = clock_mono() + SEC;
	if (f.status == FETCH_OK && f.got == 0 && !q->deferred)
		q->not_before = clock_mono() + 100 * MSEC;
	q->asked = 0;
	f.more = f.status == FETCH_OK && mem_next(s, TURN_SHARE, true) != NULL;
	q->queue.events->fetched(&f, q->queue.arg);
	mem_wake(q);
}

static void
mem_apply(struct mem_entry *e, const struct verdict *v)
{
	e->holder = NULL;
	e->reason = v->reason;
	e->due = clock_mono();
	e->attempts += v->failed;
	switch (v->op) {
	case VERDICT_ACK:
	case VERDICT_DROP:
		e->state = MEM_ACKED;
		break;
	case VERDICT_RETRY:
	case VERDICT_DEFER:
	case VERDICT_HOLD:
	case VERDICT_HOLD_GROUP:
		e->state = MEM_RETRY;
		e->due += v->delay;
		break;
	case VERDICT_DEAD:
		e->state = MEM_DEAD;
		break;
	case VERDICT_RETURN:
	case VERDICT_STALE:
		e->state = MEM_RETRY;
		break;
	}
}

static void
mem_confirm(struct mem *q)
{
	struct mem_delivery *d;
	bool ours;

	while (!q->store->down && !q->store->refuses && (d = TAILQ_FIRST(&q->results)) != NULL) {
		TAILQ_REMOVE(&q->results, d, entry);
		ours = d->of->holder == d;
		if (ours)
			mem_apply(d->of, &d->verdict);
		q->queue.events->settled(d->msg, &d->verdict, &d->result,
		    ours && d->verdict.op != VERDICT_STALE ? SETTLED_OK : SETTLED_STALE,
		    q->queue.arg);
		message_free(d->msg);
		result_done(&d->result);
		free(d);
		mem_wake_all(q->store);
	}
}

/* Calls lost() for stolen messages; the engine may settle a message inside lost(). */
static void
mem_tell_stolen(struct mem *q)
{
	struct mem_delivery *d, *next;

	TAILQ_FOREACH_SAFE(d, &q->in_hand, entry, next) {
		if (!d->stolen)
			continue;
		d->stolen = false;
		q->queue.events->lost(d->msg, q->queue.arg);
	}
}

static void
mem_watch_pause(struct mem *q)
{
	bool paused = q->store->paused && !q->store->down;

	if (paused == q->paused)
		return;
	q->paused = paused;
	q->queue.events->paused(paused, paused ? "in a test" : NULL, q->queue.arg);
}

/* Says that there is work, or sets the timer for the first retry. */
static void
mem_look(struct mem *q)
{
	const struct mem_entry *e;
	usec_t first = USEC_MAX;

	timer_stop(&q->due);
	if (!q->wanted || q->told || q->asked > 0 || q->store->down || q->store->paused)
		return;
	if (q->store->error != NULL && clock_mono() < q->retry_at) {
		timer_set_at(&q->due, q->retry_at);
		return;
	}
	if (mem_next(q->store, TURN_SHARE, true) != NULL &&
	    (clock_mono() >= q->not_before || mem_next(q->store, TURN_SHARE, false) != NULL)) {
		q->told = true;
		q->queue.events->ready(q->queue.arg);
		return;
	}
	TAILQ_FOREACH(e, &q->store->entries, entry) {
		if (e->state == MEM_RETRY && e->due < first)
			first = e->due;
	}
	if (first < q->not_before)
		first = q->not_before;
	if (first < USEC_MAX)
		timer_set_at(&q->due, first);
}

static bool
mem_is_idle(const struct mem *q)
{
	return TAILQ_EMPTY(&q->in_hand) && TAILQ_EMPTY(&q->results);
}

static void
mem_turn(void *arg)
{
	struct mem *q = arg;

	mem_tell_stolen(q);
	mem_confirm(q);
	mem_watch_pause(q);
	if (q->asked > 0 && !q->store->hangs)
		mem_fetch_now(q);
	mem_look(q);
	if (q->closing && !q->closed && mem_is_idle(q)) {
		q->closed = true;
		q->queue.events->closed(q->queue.arg);
	}
}

static void
mem_is_due(void *arg)
{
	mem_wake(arg);
}

/* -- the table's functions -------------------------------------------------- */

static struct queue *
mem_open(const struct queue_env *env, const char *key, struct config *config,
    const struct queue_config *cfg, struct stats *stats, const struct queue_events *events,
    void *arg)
{
	struct mem *q = xcalloc(1, sizeof(*q));

	(void)stats;
	q->queue.ops = &queue_mem;
	q->queue.events = events;
	q->queue.arg = arg;
	q->store = mem_store_find(key);
	q->loop = env->loop;
	q->config = config_ref(config);
	q->cfg = cfg;
	TAILQ_INIT(&q->in_hand);
	TAILQ_INIT(&q->results);
	timer_init(&q->due, env->loop, mem_is_due, q);
	TAILQ_INSERT_TAIL(&q->store->queues, q, entry);
	return &q->queue;
}

static void
mem_reconfigure(struct queue *queue, struct config *config, const struct queue_config *cfg)
{
	struct mem *q = (struct mem *)queue;

	config_hold(&q->config, config);
	q->cfg = cfg;
}

static void
mem_conn_up(struct queue *queue, const struct conn_server *server)
{
	(void)server;
	mem_wake((struct mem *)queue);
}

static void
mem_conn_down(struct queue *queue)
{
	mem_wake((struct mem *)queue);
}

static void
mem_want(struct queue *queue, bool wanted)
{
	struct mem *q = (struct mem *)queue;

	q->wanted = wanted;
	q->told = false;
	mem_wake(q);
}

static void
mem_fetch(struct queue *queue, unsigned n, enum turn turn)
{
	struct mem *q = (struct mem *)queue;

	q->asked = n;
	q->deferred = false;
	q->fetch_turn = turn;
	q->told = false;
	mem_wake(q);
}

static void
mem_defer_fetch(struct queue *queue)
{
	((struct mem *)queue)->deferred = true;
}

static void
mem_settle(struct queue *queue, struct message *m, const struct verdict *v, struct result *result)
{
	struct mem *q = (struct mem *)queue;
	struct mem_delivery *d = m->queue_data;

	d->verdict = *v;
	result_move(&d->result, result);
	TAILQ_REMOVE(&q->in_hand, d, entry);
	TAILQ_INSERT_TAIL(&q->results, d, entry);
	mem_wake(q);
}

static void
mem_tick(struct queue *queue)
{
	mem_wake((struct mem *)queue);
}

static bool
mem_is_empty(const struct queue *queue)
{
	const struct mem *q = (const struct mem *)queue;

	return mem_next(q->store, TURN_SHARE, true) == NULL && mem_is_idle(q);
}

static void
mem_make_due(struct queue *queue, const char *tag)
{
	struct mem *q = (struct mem *)queue;
	struct mem_delivery *d;
	struct mem_entry *e;

	TAILQ_FOREACH(e, &q->store->entries, entry) {
		if (e->state == MEM_RETRY && strcmp(e->tag, tag) == 0)
			e->due = clock_mono();
	}
	TAILQ_FOREACH(d, &q->results, entry) {
		if (strcmp(d->of->tag, tag) == 0)
			d->verdict.delay = 0;
	}
	mem_wake_all(q->store);
}

static void
mem_close(struct queue *queue)
{
	struct mem *q = (struct mem *)queue;

	q->closing = true;
	q->wanted = false;
	mem_wake(q);
}

/* Forgets deliveries of a queue that is freed; their leases expire later. */
static void
mem_abandon(struct mem *q, struct mem_deliveries *list)
{
	struct mem_delivery *d;

	while ((d = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, d, entry);
		if (d->of->holder == d) {
			d->of->state = MEM_RETRY;
			d->of->due = clock_mono() + q->cfg->lease;
			d->of->expired = true;
			d->of->holder = NULL;
		}
		if (list == &q->results)
			q->queue.events->settled(d->msg, &d->verdict, &d->result,
			    SETTLED_GAVE_UP, q->queue.arg);
		message_free(d->msg);
		result_done(&d->result);
		free(d);
	}
}

static void
mem_free(struct queue *queue)
{
	struct mem *q = (struct mem *)queue;

	mem_abandon(q, &q->in_hand);
	mem_abandon(q, &q->results);
	TAILQ_REMOVE(&q->store->queues, q, entry);
	mem_wake_all(q->store);
	timer_stop(&q->due);
	loop_defer_cancel(q->loop, &q->turn);
	config_unref(q->config);
	free(q);
}

const struct queue_ops queue_mem = {
	.open = mem_open,
	.reconfigure = mem_reconfigure,
	.conn_up = mem_conn_up,
	.conn_down = mem_conn_down,
	.want = mem_want,
	.fetch = mem_fetch,
	.defer_fetch = mem_defer_fetch,
	.settle = mem_settle,
	.tick = mem_tick,
	.due = mem_make_due,
	.is_empty = mem_is_empty,
	.close = mem_close,
	.free = mem_free,
};
