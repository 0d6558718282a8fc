/*
 * The life of one queue's messages; see consumer.h.
 *
 * Every event that may allow a next step calls consumer_touch().  At the end of the
 * turn consumer_update() decides whether the queue watches for work, whether the consumer
 * competes for slots, and whether a drain is over.  Besides it, only a grant begins a fetch.
 *
 * After a reload, deliveries stay with the handler that began them: new messages go to the last
 * handler, and the others close when they have finished.
 *
 * A fetch asks for as many messages as there are slots.  So only messages of batches wait for
 * a run, and those for which a reload has come between fetch and delivery.  They are in two
 * piles: a message that has failed before (an attempt, or a crash) gets a run of its own, so that
 * it cannot make others fail twice.  While the queue is suspended, every message does.
 *
 * A batch that is not full keeps one slot while it waits.  Its messages may come by several
 * fetches.  When batch_wait is over, it begins at the end of a turn without a fetch, because only
 * then the queue has said that it has no more.
 *
 * A queue has one source, or with shards one for each key.  A fetch asks one of them.  The
 * next one asks the next source that is ready; but for 20 ms, while there is more, the same
 * one, so that the results of quick handlers go to Redis in few calls.  Its ready() comes
 * with its results (see queue_settle()), so the others wait for it for 2 ms.  For that it
 * must learn at once whether the consumer wants messages.  The other sources stay wanted,
 * armed or ready, until a tick finds that it does not: else each of them, though most are
 * empty, would be asked again and again.
 *
 * A server that hangs does not delay the others.  After 100 ms a fetch ends without it: its
 * slots are free for other fetches, none of which asks that server until it has answered.
 * The messages that it brings then wait for the next fetch.  So a server that hangs makes the
 * daemon take at most one fetch too much.
 */
#include "engine/consumer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/util.h"
#include "engine/event_log.h"
#include "engine/last_errors.h"
#include "engine/suspension.h"
#include "loop/timer.h"

#define LINGERS_AFTER	(10 * SEC)	/* then a run without messages is reported */
#define SLOT_WAIT	SEC		/* a message waits no longer for a slot */
#define FETCH_WAIT	(100 * MSEC)	/* time that a due batch waits for a fetch */
#define STAY		(20 * MSEC)	/* with one source */
#define PATIENCE	(2 * MSEC)	/* for its results, which wait for 1 ms */
#define LATE		(100 * MSEC)	/* a fetch waits no longer for a source */
#define WARN_AGAIN	MINUTE		/* until another source may repeat a warning */

TAILQ_HEAD(messages, message);

/* Messages that wait for a run, oldest first. */
struct pile {
	struct messages	 list;
	unsigned	 n;
	size_t		 bytes;	/* of their payloads */
};

/*
 * A run of a handler.  A batch may finish single messages before its process ends.  It is kept
 * until Redis has confirmed all results, because one log record then counts the acks.
 */
struct flight {
	TAILQ_ENTRY(flight)	 entry;	/* of its consumer, until it is over */
	struct run	*run;	/* NULL: over */
	bool	 slot;	/* holds a slot of the dispatcher */
	bool	 probe;	/* begun while the queue was suspended */
	bool	 batch;	/* its messages are framed; also if it has only one */
	struct messages	 messages;	/* without a result */
	unsigned	 size;	/* messages that it began with */
	unsigned	 live;	/* messages without a result that Redis still expects from us */
	unsigned	 times;	/* the least of what suspension_note() said of its failures */
	/* A batch: */
	unsigned	 unconfirmed;	/* messages with a result */
	unsigned	 acked;	/* confirmed by Redis */
	usec_t		 done_at;	/* mono: all have a result; 0: not all */
	bool		 reported;	/* that its process goes on */
	/* that of its messages' verdicts that tells most about the command */
	struct verdict	 verdict;
	struct result	 result;	/* of the run; it owns nothing; valid if it is over */
};

struct consumer_handler {
	TAILQ_ENTRY(consumer_handler)	 entry;
	struct consumer	*consumer;
	struct handler	*handler;
};

/* A key of the queue.  A flag is counted in the consumer's member with an n before its name. */
struct consumer_source {
	struct consumer	*consumer;
	const struct queue_env	*env;
	struct queue	*queue;
	struct route_user	 route;	/* of consumer_env.routes */
	bool	 up;	/* its Redis is connected */
	bool	 ready;	/* ready() came, and no fetch since */
	bool	 more;	/* by its last fetch */
	bool	 late;	/* has not answered a fetch that the consumer does not wait for */
	bool	 holds;	/* has answered it since, perhaps with messages: goes first */
	bool	 paused;
	bool	 failed;	/* Redis refused its last pop */
	bool	 refusing;	/* Redis refuses its results */
};

struct consumer {
	const struct consumer_env	*env;
	struct config	*config;	/* reference: keeps cfg alive */
	const struct queue_config	*cfg;
	enum consumer_state	 state;

	struct consumer_source	*source;	/* as many as config_key_at() has keys */
	size_t	 nsources;
	struct consumer_source	*at;	/* the last one that was asked */
	usec_t	 stay_until;	/* mono: others wait for it */
	struct consumer_source	*next;	/* the next fetch asks it; NULL: none is ready */
	struct timer	 patience;	/* set: others are ready, and wait for results of `at` */
	struct timer	 late;	/* set: a fetch waits for `at` until then */
	unsigned	 nup, nlate, npaused, nfailed, nrefusing, nclosed;
	unsigned	 partly;	/* ticks in a row that found some sources paused */
	char	*warning;	/* the last one of any source; owned */
	usec_t	 warned_at;	/* mono */
	unsigned	 outstanding;	/* delivered, and not settled */
	TAILQ_HEAD(, consumer_handler)	 handlers;
	struct consumer_handler	*current;	/* for new messages; NULL: all are closing */
	TAILQ_HEAD(, flight)	 flights;	/* runs that are not over */
	unsigned	 nruns;	/* length of flights */
	unsigned	 nmessages;	/* theirs, without a result */

	struct pile	 together, alone;	/* never failed; have failed before */
	bool	 alone_last;	/* the last run came from `alone`: take turns */
	struct timer	 wait;	/* set: look at them again then */
	struct defer	 launch;

	struct dispatcher_member	 member;
	unsigned	 slots;	/* granted, and not taken by a run */
	bool	 fetching;	/* a fetch is under way: no slot is released */
	bool	 wanted;	/* the last queue_want() */
	bool	 paused;	/* all sources are */
	bool	 unsubscribed;	/* Redis refuses the queue's subscription */
	enum fetch_status	 last;

	struct suspension	 suspension;
	struct last_errors	 last_errors;
	struct stats	 stats;
	struct stall	 stall;
	struct defer	 update;
};

/* All sources; `s` is each of them. */
#define EACH_SOURCE(s, c) \
	for (struct consumer_source *s = (c)->source; s < (c)->source + (c)->nsources; s++)

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

static void
consumer_make_due(const struct failure *f)
{
	queue_due(f->source->queue, f->tag);
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

/* -- slots, and messages that wait for a run ---------------------------------- */

static unsigned
batch_max(const struct consumer *c)
{
	return c->suspension.state != NOT_SUSPENDED ? 1 : (unsigned)c->cfg->batch;
}

static unsigned
waiting(const struct consumer *c)
{
	return c->together.n + c->alone.n;
}

/* About how many runs the waiting messages need. */
static unsigned
waiting_runs(const struct consumer *c)
{
	return c->alone.n + (c->together.n + batch_max(c) - 1) / batch_max(c);
}

/*
 * The number of further messages that the slots have room for; one that must run alone
 * takes a slot.
 */
static unsigned
consumer_wants(const struct consumer *c)
{
	unsigned most = c->slots * batch_max(c);
	unsigned have = c->together.n + c->alone.n * batch_max(c);
	size_t bytes = c->together.bytes + c->alone.n * CONFIG_RUN_BYTES;

	return most > have && bytes < c->slots * CONFIG_RUN_BYTES ? most - have : 0;
}

/* The number of runs that could begin now, beyond those in flight and the slots granted. */
static unsigned
consumer_room(const struct consumer *c)
{
	unsigned used = c->nruns + c->slots, most = config_most_runs(c->cfg);
	bool single;

	if (c->state != CONSUMER_RUNNING || c->fetching || used >= most)
		return 0;
	/* Messages whose results Redis refuses may have all slots. */
	if (c->nrefusing > 0 && c->outstanding >= config_most(c->cfg))
		return 0;
	if (!suspension_allows(&c->suspension, &single))
		return 0;
	return single ? 1 : most - used;
}

/* Releases the slots that the waiting messages do not need. */
static void
consumer_release(struct consumer *c)
{
	unsigned runs = waiting_runs(c);

	if (c->fetching || c->slots <= runs)
		return;
	dispatcher_release(c->env->dispatcher, c->slots - runs);
	c->slots = runs;
	consumer_touch(c);
}

static struct pile *
pile_of(struct consumer *c, const struct message *msg)
{
	return message_has_failed(msg) ? &c->alone : &c->together;
}

static void
pile_remove(struct pile *p, struct message *msg)
{
	TAILQ_REMOVE(&p->list, msg, entry);
	p->n--;
	p->bytes -= msg->len;
	msg->stage = STAGE_NONE;
}

/* Whether no more message could join the next batch. */
static bool
batch_is_full(const struct consumer *c)
{
	return c->together.n >= batch_max(c) || c->together.bytes >= CONFIG_RUN_BYTES;
}

/* Gives a message that never ran back to the queue with its verdict. */
static void
consumer_settle_unrun(struct consumer *c, struct message *msg, const struct verdict *v)
{
	struct result r = { .end = END_NOT_RUN };

	suspension_idle(&c->suspension, false);
	queue_settle(msg->source->queue, msg, v, &r);
	consumer_touch(c);
}

static void
consumer_give_back(struct consumer *c, struct message *msg)
{
	const struct verdict v = {
		.op = VERDICT_RETURN,
		.reason = c->state == CONSUMER_RUNNING ? REASON_NONE : REASON_DRAIN
	};

	consumer_settle_unrun(c, msg, &v);
}

/* Gives back all messages that wait, and releases the slots. */
static void
consumer_give_back_waiting(struct consumer *c)
{
	struct message *msg;

	while ((msg = TAILQ_FIRST(&c->together.list)) != NULL ||
	    (msg = TAILQ_FIRST(&c->alone.list)) != NULL) {
		pile_remove(pile_of(c, msg), msg);
		consumer_give_back(c, msg);
	}
	consumer_release(c);
}

/* Begins a run of these n messages, whose slot is taken.  Empties the list. */
static void
consumer_start(struct consumer *c, struct messages *list, unsigned n)
{
	bool slot = c->cfg->mode == MODE_EXEC;
	struct flight *f = NEW(struct flight, .size = n, .live = n, .slot = slot,
	    .probe = suspension_doubts(&c->suspension),
	    .batch = slot && config_has_batches(c->cfg), .verdict.op = VERDICT_RETURN);
	struct message **msgs, *msg;
	unsigned i = 0;

	TAILQ_INIT(&f->messages);
	TAILQ_CONCAT(&f->messages, list, entry);
	TAILQ_INSERT_TAIL(&c->flights, f, entry);
	c->nruns++;
	c->nmessages += n;
	c->stats.n[STAT_DELIVERED] += n;
	TAILQ_FOREACH(msg, &f->messages, entry) {
		msg->stage = STAGE_RUNNING;
		msg->flight = f;
		if (config_members(c->cfg) > 0)
			message_read(msg, c->cfg);
		event_log_delivered(msg);
	}
	if (f->batch) {
		msgs = xcalloc(n, sizeof(struct message *));
		TAILQ_FOREACH(msg, &f->messages, entry)
			msgs[i++] = msg;
		f->run = handler_start_batch(c->current->handler, msgs, n);
		free(msgs);
	} else
		f->run = handler_start(c->current->handler, TAILQ_FIRST(&f->messages));
	f->run->owner = f;
}

/*
 * Moves the messages of the next run to a list, and returns their number.  Gives back those
 * whose leases may have ended.
 */
static unsigned
take_run(struct consumer *c, struct pile *p, struct messages *to)
{
	unsigned most = p == &c->alone ? 1 : batch_max(c), n = 0;
	struct message *msg;
	size_t bytes = 0;

	while (n < most && (msg = TAILQ_FIRST(&p->list)) != NULL) {
		if (message_is_sure(msg)) {
			bytes += msg->len;
			if (n > 0 && bytes > CONFIG_RUN_BYTES)
				break;
			pile_remove(p, msg);
			TAILQ_INSERT_TAIL(to, msg, entry);
			n++;
		} else {
			pile_remove(p, msg);
			consumer_give_back(c, msg);
		}
	}
	return n;
}

/* Begins runs that have a slot and are full; due: also a batch that is not full. */
static void
consumer_begin(struct consumer *c, bool due)
{
	struct messages list = TAILQ_HEAD_INITIALIZER(list);
	unsigned n;

	while (c->slots > 0) {
		n = c->alone_last ? 0 : take_run(c, &c->alone, &list);
		c->alone_last = n > 0;
		if (n == 0 && (due || batch_is_full(c)))
			n = take_run(c, &c->together, &list);
		if (n == 0)
			c->alone_last = (n = take_run(c, &c->alone, &list)) > 0;
		if (n == 0)
			return;
		c->slots--;
		consumer_start(c, &list, n);
	}
}

/* The time at which the oldest waiting message has waited for long enough (mono). */
static usec_t
waiting_until(const struct consumer *c)
{
	const struct message *a = TAILQ_FIRST(&c->together.list), *b = TAILQ_FIRST(&c->alone.list);
	usec_t at;

	if (a == NULL || (b != NULL && b->delivered < a->delivered))
		a = b;
	at = a->delivered;
	if (c->suspension.state != NOT_SUSPENDED)
		return at;
	at += c->cfg->batch_wait;
	if (c->slots == 0)
		return at + SLOT_WAIT;
	return c->fetching ? at + FETCH_WAIT : at;
}

/* Comes last in a turn, when the queue has said whether it has more. */
static void
consumer_launch(void *arg)
{
	struct consumer *c = arg;
	bool due = waiting(c) > 0 && clock_mono() >= waiting_until(c);

	timer_stop(&c->wait);
	if (due && c->slots == 0)
		consumer_give_back_waiting(c);
	else
		consumer_begin(c, due);
	consumer_release(c);
	if (waiting(c) > 0)
		timer_set_at(&c->wait, waiting_until(c));
	if (due)
		consumer_touch(c);
}

/* -- handlers and fetches ------------------------------------------------------ */

static void
consumer_free_handler(struct consumer_handler *h)
{
	TAILQ_REMOVE(&h->consumer->handlers, h, entry);
	handler_free(h->handler);
	free(h);
}

static void
consumer_handler_closed(void *arg)
{
	struct consumer_handler *h = arg;
	struct consumer *c = h->consumer;

	consumer_free_handler(h);
	consumer_touch(c);
}

/* Nothing more is started. */
static void
consumer_close_handler(struct consumer *c)
{
	struct consumer_handler *h = c->current;

	c->current = NULL;
	if (h != NULL)
		handler_close(h->handler, consumer_handler_closed, h);
}

static bool
source_stays(const struct consumer_source *s)
{
	return s->more && clock_mono() < s->consumer->stay_until;
}

/* No messages are expected from a server that has not answered a late fetch. */
static bool
source_is_behind_late(const struct consumer_source *s)
{
	if (s->consumer->nlate == 0)
		return false;
	EACH_SOURCE(o, s->consumer) {
		if (o->late && (o == s ||
		    (o->env->conn != NULL && o->env->conn == s->env->conn)))
			return true;
	}
	return false;
}

/* The source that the next fetch asks; NULL: none has messages, or they must wait. */
static struct consumer_source *
consumer_next(struct consumer *c)
{
	bool stays = source_stays(c->at);
	size_t first = (size_t)(c->at - c->source) + !stays;
	struct consumer_source *s, *found = NULL;

	if (!c->wanted || c->fetching)
		return NULL;
	for (size_t i = 0; i < c->nsources; i++) {
		s = &c->source[(first + i) % c->nsources];
		if (!s->ready || source_is_behind_late(s))
			continue;
		if (s->holds)
			return s;
		if (found == NULL)
			found = s;
	}
	if (found == NULL || found == c->at || !stays)
		return found;
	if (!timer_is_set(&c->patience))
		timer_set(&c->patience, PATIENCE);
	return NULL;
}

static void
consumer_out_of_patience(void *arg)
{
	struct consumer *c = arg;

	c->at->more = false;
	consumer_touch(c);
}

/* See the head of this file for the sources that hear it at once. */
static void
consumer_tell_wanted(struct consumer *c)
{
	timer_stop(&c->patience);
	EACH_SOURCE(s, c) {
		if (s->late || (s != c->at && !c->wanted))
			continue;
		s->ready = s->ready && c->wanted;
		queue_want(s->queue, c->wanted);
	}
}

static void
consumer_fetch(struct consumer *c, unsigned n)
{
	struct consumer_source *s = c->next;

	if (s != c->at || !source_stays(s))
		c->stay_until = clock_mono() + STAY;
	c->at = s;
	c->next = NULL;
	c->fetching = true;
	s->ready = s->holds = false;
	timer_stop(&c->patience);
	if (c->nsources > 1)
		timer_set(&c->late, LATE);
	queue_fetch(s->queue, n, suspension_turn(&c->suspension));
}

/*
 * A persistent handler has up to `concurrency` processes anyway, so its messages need
 * no slot.  A process per run needs one.  A batch that is not full has its slot
 * already.
 */
static void
consumer_compete(struct consumer *c, unsigned room, bool fill)
{
	bool waits = c->slots == 0 && waiting(c) > 0, ready = c->next != NULL;

	if (c->cfg->mode == MODE_EXEC && !(fill && ready) && (ready || waits)) {
		/* If there are only waiting messages, no more than those need. */
		if (!ready && waiting_runs(c) < room)
			room = waiting_runs(c);
		dispatcher_want(c->env->dispatcher, &c->member, room);
		return;
	}
	dispatcher_want(c->env->dispatcher, &c->member, 0);
	if (ready && fill)
		consumer_fetch(c, consumer_wants(c));
	else if (ready && room > 0)
		consumer_fetch(c, room);
}

/* Decides the next steps from the fields; see the head of this file. */
static void
consumer_update(void *arg)
{
	struct consumer *c = arg;
	unsigned room;
	bool fill;

	if (c->state == CONSUMER_CLOSING) {
		/* Processes have ended, and Redis has confirmed the results, in any order. */
		if (consumer_is_confirmed(c) && TAILQ_EMPTY(&c->handlers)) {
			consumer_set_state(c, CONSUMER_CLOSED);
			loop_defer_cancel(c->env->loop, &c->update);
			c->env->closed(c, c->env->arg);		/* may free c */
		}
		return;
	}
	/* Gives waiting messages back if the queue must run nothing. */
	if (c->state != CONSUMER_RUNNING || c->paused || c->suspension.state == SUSPENDED)
		consumer_give_back_waiting(c);
	else if (waiting(c) > 0 || (c->slots > 0 && !c->fetching))
		loop_defer(c->env->loop, &c->launch, consumer_launch, c);
	room = consumer_room(c);
	/* A batch that is not full has a slot. */
	fill = c->state == CONSUMER_RUNNING && !c->fetching && c->slots > 0 &&
	    c->together.n > 0 && c->suspension.state == NOT_SUSPENDED && consumer_wants(c) > 0;
	if (c->wanted != (room > 0 || fill) && !c->fetching) {
		c->wanted = !c->wanted;
		consumer_tell_wanted(c);
	}
	c->next = consumer_next(c);
	consumer_compete(c, room, fill);
	/* A drain is over when no message is in flight or on its way. */
	if (c->state == CONSUMER_DRAINING && c->nruns == 0 && !c->fetching) {
		consumer_set_state(c, CONSUMER_CLOSING);
		consumer_close_handler(c);
		EACH_SOURCE(s, c)
			queue_close(s->queue);
	} else if (c->state != CONSUMER_DRAINING && consumer_is_idle(c) && c->env->idle != NULL)
		c->env->idle(c->env->arg);
}

/* -- from the dispatcher ---------------------------------------------------- */

static void
consumer_grant(unsigned n, void *arg)
{
	struct consumer *c = arg;

	c->slots += n;
	consumer_begin(c, false);
	if (c->next != NULL && consumer_wants(c) > 0)
		consumer_fetch(c, consumer_wants(c));
	else
		consumer_touch(c);
}

/* -- from a source ---------------------------------------------------------- */

/* Sets a flag of a source, which is counted. */
static void
source_set(bool *flag, bool value, unsigned *count)
{
	*count -= *flag;
	*flag = value;
	*count += value;
}

/* Unless another source has just given the same warning. */
static void
source_warn(struct consumer_source *s, const char *text)
{
	struct consumer *c = s->consumer;
	usec_t now = clock_mono();
	char *named = NULL;

	if (c->nsources > 1) {
		if (c->warning != NULL && strcmp(c->warning, text) == 0 &&
		    now - c->warned_at < WARN_AGAIN)
			return;
		xreplace(&c->warning, text);
		c->warned_at = now;
		named = xasprintf("%s: %s", config_key_at(c->cfg, (size_t)(s - c->source)), text);
	}
	queue_event(c->cfg, LOG_LV_WARN, "warning",
	    LF_STR("warning", named != NULL ? named : text));
	free(named);
}

static void
consumer_ready(void *arg)
{
	struct consumer_source *s = arg;

	s->ready = true;
	consumer_touch(s->consumer);
}

static void
consumer_deliver(struct message *msg, void *arg)
{
	struct messages one = TAILQ_HEAD_INITIALIZER(one);
	struct consumer_source *s = arg;
	struct consumer *c = s->consumer;
	bool needs_slot = c->cfg->mode == MODE_EXEC;
	struct pile *p = pile_of(c, msg);
	struct verdict v;

	msg->source = s;
	c->outstanding++;
	if (c->state != CONSUMER_RUNNING) {
		consumer_give_back(c, msg);
	} else if (outcome_refuse(msg, &v)) {
		consumer_settle_unrun(c, msg, &v);
	} else if (needs_slot && (config_has_batches(c->cfg) || c->slots == 0)) {
		/* Without batches: a reload has come between the fetch and its messages. */
		TAILQ_INSERT_TAIL(&p->list, msg, entry);
		p->n++;
		p->bytes += msg->len;
		msg->stage = STAGE_WAITING;
		if (p == &c->together && batch_is_full(c))
			consumer_begin(c, false);
	} else {
		c->slots -= needs_slot;
		TAILQ_INSERT_TAIL(&one, msg, entry);
		consumer_start(c, &one, 1);
	}
}

static void
consumer_end_fetch(struct consumer *c, const struct fetched *f)
{
	c->fetching = false;
	timer_stop(&c->late);
	if (f->status == FETCH_LIMITED && c->last != FETCH_LIMITED)
		queue_event(c->cfg, LOG_LV_DEBUG, "limited", LF_STR("reason", f->cause));
	c->last = f->status;
	consumer_release(c);
	if (f->status == FETCH_ERROR)
		suspension_refused(&c->suspension, f->cause);
	if (f->status == FETCH_OK || f->status == FETCH_LIMITED)
		suspension_accepted(&c->suspension);
	if (f->status != FETCH_ERROR && f->got == 0)
		suspension_idle(&c->suspension, f->status == FETCH_OK && c->nsources == 1);
	consumer_touch(c);
}

static void
consumer_fetched(const struct fetched *f, void *arg)
{
	struct consumer_source *s = arg;
	struct consumer *c = s->consumer;
	bool late = s->late, known = s->failed;
	struct fetched seen = *f;

	s->more = f->more && f->status == FETCH_OK;
	source_set(&s->late, false, &c->nlate);
	if (f->status != FETCH_DOWN)
		source_set(&s->failed, f->status == FETCH_ERROR, &c->nfailed);
	/* The queue is suspended only if Redis refuses the pops of all. */
	if (f->status == FETCH_ERROR && c->nfailed < c->nsources) {
		seen.status = FETCH_OK;
		if (!known)
			source_warn(s, f->cause);
	}
	if (!late) {
		consumer_end_fetch(c, &seen);
		return;
	}
	s->holds = true;
	consumer_touch(c);
}

/* A fetch is waited for no longer, if there is another server to ask. */
static void
consumer_is_late(void *arg)
{
	static const struct fetched nothing = { .status = FETCH_DOWN };
	struct consumer *c = arg;

	source_set(&c->at->late, true, &c->nlate);
	EACH_SOURCE(s, c) {
		if (source_is_behind_late(s))
			continue;
		queue_defer_fetch(c->at->queue);
		consumer_end_fetch(c, &nothing);
		return;
	}
	source_set(&c->at->late, false, &c->nlate);
	timer_set(&c->late, LATE);
}

/*
 * The message is no longer ours, or was cancelled: it must not run, or not go on.  A run that
 * has other messages goes on, and this one's result is dropped.
 */
static void
consumer_end_message(struct consumer *c, struct message *msg, enum stop reason)
{
	const struct result r = { .end = END_NOT_RUN, .stop = reason };
	struct verdict v;

	switch (msg->stage) {
	case STAGE_NONE:
	case STAGE_DONE:
		break;
	case STAGE_WAITING:
		pile_remove(pile_of(c, msg), msg);
		v = outcome_decide(msg, &r, false, 0);
		consumer_settle_unrun(c, msg, &v);
		break;
	case STAGE_RUNNING:
		if (msg->stop != STOP_NONE)
			break;
		msg->stop = reason;
		if (--msg->flight->live == 0)
			handler_stop(msg->flight->run, reason);
		break;
	}
}

static void
consumer_lost(struct message *msg, void *arg)
{
	consumer_end_message(((struct consumer_source *)arg)->consumer, msg, STOP_LOST);
}

static void
consumer_cancelled(struct message *msg, void *arg)
{
	consumer_end_message(((struct consumer_source *)arg)->consumer, msg, STOP_CANCEL);
}

/* A batch is complete when its run is over, and Redis has confirmed all results. */
static void
consumer_finish_batch(struct consumer *c, struct flight *f)
{
	if (f->run != NULL || f->unconfirmed > 0)
		return;
	if (f->acked > 0)
		event_log_batch(c->cfg, &f->result, f->acked);
	free(f);
}

/* The queue has settled the message, or has given up: logs and counts it now, not before. */
static void
consumer_settled(struct message *msg, const struct verdict *v, const struct result *r,
    enum settled how, void *arg)
{
	struct consumer *c = ((struct consumer_source *)arg)->consumer;
	struct flight *f = msg->flight;

	c->outstanding--;
	event_log_settled(&c->stats, msg, v, r, how);
	if (f != NULL) {	/* a batch */
		f->acked += how == SETTLED_OK && v->op == VERDICT_ACK;
		f->unconfirmed--;
		consumer_finish_batch(c, f);
	}
	consumer_touch(c);
}

static void
consumer_ticked(const struct tick_report *t, void *arg)
{
	struct consumer_source *s = arg;
	struct consumer *c = s->consumer;

	if (t->refused != NULL) {
		source_set(&s->refusing, t->refused[0] != '\0', &c->nrefusing);
		if (s->refusing || c->nrefusing == 0)
			suspension_results(&c->suspension, t->refused);
	}
	c->stats.n[STAT_REQUEUED] += t->requeued;
	c->stats.n[STAT_PROMOTED] += t->promoted;
	c->stats.n[STAT_DROPPED] += t->dropped;
	if (t->requeued > 0)
		queue_event(c->cfg, LOG_LV_WARN, "requeued", LF_INT("count", t->requeued),
		    LF_STR("ids", t->ids));
	if (t->promoted > 0)
		queue_event(c->cfg, LOG_LV_DEBUG, "promoted", LF_INT("count", t->promoted));
	if (t->dropped > 0)
		queue_event(c->cfg, LOG_LV_WARN, "dropped", LF_INT("count", t->dropped));
	if (t->warning != NULL)
		source_warn(s, t->warning);
	consumer_touch(c);
}

static void
consumer_paused(bool paused, const char *why, void *arg)
{
	struct consumer_source *s = arg;
	struct consumer *c = s->consumer;

	source_set(&s->paused, paused, &c->npaused);
	if (c->paused == (c->npaused == c->nsources))
		return;
	c->paused = paused;
	queue_event(c->cfg, LOG_LV_INFO, paused ? "paused" : "unpaused",
	    LF_STR("why", paused ? why : NULL));
	consumer_tell_blocked(c);
	consumer_touch(c);
}

static void
consumer_listening(bool on, const char *why, void *arg)
{
	struct consumer *c = ((struct consumer_source *)arg)->consumer;

	c->unsubscribed = !on;
	if (on)
		queue_event(c->cfg, LOG_LV_INFO, "subscribed");
	else
		queue_event(c->cfg, LOG_LV_ERROR, "unsubscribed", LF_STR("error", why));
}

static void
consumer_queue_closed(void *arg)
{
	struct consumer *c = ((struct consumer_source *)arg)->consumer;

	c->nclosed++;
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
tally_run(struct stats *s, const struct result *r)
{
	if (r->duration > 0)
		stats_observe(&s->duration, r->duration);
	if (r->stop == STOP_NONE)
		s->usual = r->duration > s->usual ? r->duration : s->usual - s->usual / 100;
	if (r->usage.maxrss > 0)
		stats_use(s, r->usage.cpu, r->usage.maxrss);
	if (r->output_cut)
		s->n[STAT_OUTPUT_CUT]++;
	if (r->leftovers)
		s->n[STAT_LEFTOVERS]++;
	if (r->stop == STOP_TIME_LIMIT)
		s->n[STAT_TIMEOUTS]++;
}

/*
 * How much a verdict tells about the command.  One that cannot be executed tells most.
 * An ack proves that the command works, whatever the results of the other messages are.
 */
static int
weight(const struct verdict *v)
{
	if (v->suspend != REASON_NONE)
		return 4;
	if (v->op == VERDICT_ACK)
		return 3;
	if (verdict_is_of_message(v))
		return 1;
	return v->failed || v->op == VERDICT_RETRY ? 2 : 0;
}

static void
consumer_ended(struct consumer *c, struct flight *f)
{
	TAILQ_REMOVE(&c->flights, f, entry);
	c->nruns--;
	if (f->slot)
		dispatcher_release(c->env->dispatcher, 1);
	consumer_touch(c);
}

static void
consumer_note_error(struct consumer *c, const struct message *msg, const struct verdict *v,
    const struct result *r)
{
	char *failure = event_log_failure(c->cfg, v, r);

	last_errors_add(&c->last_errors, msg, msg->attempts + v->failed, failure);
	free(failure);
}

/* One message has its result; a batch may go on. */
static void
consumer_done(struct message *msg, struct result *r, void *arg)
{
	struct consumer *c = arg;
	struct flight *f = msg->flight;
	const struct message *rest;
	struct verdict v;
	unsigned times;
	bool doubted;

	if (f->batch && msg->stop != STOP_NONE)
		r->stop = msg->stop;
	doubted = (f->probe || suspension_doubts(&c->suspension)) &&
	    !suspension_blames(&c->suspension, msg);
	v = outcome_decide(msg, r, doubted, random_unit());
	times = suspension_note(&c->suspension, msg, &v);
	if (v.op == VERDICT_RETRY && v.reason != REASON_CANCELLED)
		consumer_note_error(c, msg, &v, r);
	if (times > 0 && (f->times == 0 || times < f->times))
		f->times = times;
	TAILQ_REMOVE(&f->messages, msg, entry);
	msg->stage = STAGE_DONE;
	f->live -= msg->stop == STOP_NONE;
	c->nmessages--;
	if (f->batch) {
		f->unconfirmed++;
		if ((rest = TAILQ_FIRST(&f->messages)) == NULL)
			f->done_at = clock_mono();
		else if (f->live == 0)	/* drops the results of the rest */
			handler_stop(f->run, rest->stop);
		if (weight(&v) > weight(&f->verdict))
			f->verdict = v;
		queue_settle(msg->source->queue, msg, &v, r);
		return;
	}
	msg->flight = NULL;
	tally_run(&c->stats, r);
	event_log_leftovers(msg->cfg, msg, r);
	suspension_judge(&c->suspension, &v, r, times);
	queue_settle(msg->source->queue, msg, &v, r);
	consumer_ended(c, f);
	free(f);
}

/* A batch has ended. */
static void
consumer_over(struct run *run, const struct result *r, void *arg)
{
	struct consumer *c = arg;
	struct flight *f = run->owner;

	f->run = NULL;
	f->result = (struct result){ .end = r->end, .status = r->status, .signo = r->signo,
	    .error = r->error, .step = r->step, .pid = r->pid, .duration = r->duration,
	    .usage = r->usage, .batch = r->batch };
	tally_run(&c->stats, r);
	event_log_leftovers(c->cfg, NULL, r);
	if (r->said == SAID_WRONG)
		log_event(LOG_LV_WARN, "warning",
		    (&(struct log_ctx){ .queue = c->cfg->name, .pid = r->pid }),
		    LF_INT("batch", r->batch), LF_STR("cause", r->answer), LF_STR("warning",
		    "the batch breaks the protocol: its messages without a result line of their "
		    "own have failed"));
	suspension_judge(&c->suspension, &f->verdict, r, f->times);
	consumer_ended(c, f);
	consumer_finish_batch(c, f);
}

/* A handler has saved a text for the message's next delivery. */
static void
consumer_saved(struct message *msg, const char *text, size_t len, void *arg UNUSED)
{
	queue_save(msg->source->queue, msg, text, len);
}

static const struct handler_events consumer_handler_events = {
	.done = consumer_done,
	.saved = consumer_saved,
	.over = consumer_over,
};

/* -- life ------------------------------------------------------------------- */

static void
source_conn_up(const struct conn_server *server, void *arg)
{
	struct consumer_source *s = arg;

	source_set(&s->up, true, &s->consumer->nup);
	queue_conn_up(s->queue, server);
	consumer_touch(s->consumer);
}

static void
source_conn_down(void *arg)
{
	struct consumer_source *s = arg;

	source_set(&s->up, false, &s->consumer->nup);
	queue_conn_down(s->queue);
}

static void
source_open(struct consumer_source *s, struct consumer *c, const struct queue_ops *ops)
{
	const char *key = config_key_at(c->cfg, (size_t)(s - c->source));

	*s = (struct consumer_source){ .consumer = c, .env = c->env->queue,
		.route = { .up = source_conn_up, .down = source_conn_down, .arg = s } };
	if (c->env->routes != NULL)
		s->env = route_join(c->env->routes, key, &s->route);
	s->queue = ops->open(s->env, key, c->config, c->cfg, &c->stats, &consumer_queue_events, s);
	if (c->env->routes != NULL)
		route_begin(&s->route);
	else
		source_set(&s->up, true, &c->nup);
}

/* Opens a handler for new messages, and closes the one before. */
static void
consumer_open_handler(struct consumer *c, struct config *config, const struct queue_config *cfg)
{
	struct consumer_handler *h = NEW(struct consumer_handler, .consumer = c,
	    .handler = handler_open(c->env->handler, config, cfg, &consumer_handler_events, c));

	TAILQ_INSERT_TAIL(&c->handlers, h, entry);
	consumer_close_handler(c);
	c->current = h;
}

struct consumer *
consumer_new(const struct consumer_env *env, struct config *config,
    const struct queue_config *cfg, const struct queue_ops *ops)
{
	struct consumer *c = xcalloc(1, sizeof(*c));

	*c = (struct consumer){ .env = env, .config = config_ref(config), .cfg = cfg,
		.launch.stage = LOOP_SEND,
		.member = { .priority = cfg->priority, .grant = consumer_grant, .arg = c },
		.nsources = config_key_count(cfg),
		.suspension = { .cfg = cfg, .stats = &c->stats, .changed = consumer_touch,
		    .blocked = consumer_tell_blocked, .due = consumer_make_due, .arg = c } };
	TAILQ_INIT(&c->flights);
	TAILQ_INIT(&c->handlers);
	TAILQ_INIT(&c->together.list);
	TAILQ_INIT(&c->alone.list);
	timer_init(&c->wait, env->loop, consumer_touch, c);
	timer_init(&c->patience, env->loop, consumer_out_of_patience, c);
	timer_init(&c->late, env->loop, consumer_is_late, c);
	suspension_init(&c->suspension, env->loop);
	consumer_open_handler(c, config, cfg);
	c->source = xcalloc(c->nsources, sizeof(*c->source));
	/* Each daemon begins with another one. */
	c->at = &c->source[random_u64() % c->nsources];
	EACH_SOURCE(s, c)
		source_open(s, c, ops);
	consumer_touch(c);
	return c;
}

void
consumer_free(struct consumer *c)
{
	struct consumer_handler *h;
	struct flight *f;

	if (c == NULL)
		return;
	dispatcher_want(c->env->dispatcher, &c->member, 0);
	/* Handlers first: their runs point at messages that the queue owns. */
	while ((h = TAILQ_FIRST(&c->handlers)) != NULL)
		consumer_free_handler(h);
	/* Frees the messages, and ends those batches whose runs are over. */
	EACH_SOURCE(s, c) {
		queue_free(s->queue);
		if (s->route.route != NULL)
			route_leave(&s->route);
	}
	while ((f = TAILQ_TAKE(&c->flights, entry)) != NULL)
		free(f);
	timer_stop(&c->wait);
	timer_stop(&c->patience);
	timer_stop(&c->late);
	free(c->source);
	free(c->warning);
	loop_defer_cancel(c->env->loop, &c->launch);
	suspension_done(&c->suspension);
	last_errors_done(&c->last_errors);
	loop_defer_cancel(c->env->loop, &c->update);
	config_unref(c->config);
	free(c);
}

void
consumer_reconfigure(struct consumer *c, struct config *config,
    const struct queue_config *cfg, bool same)
{
	struct config *previous = c->config;

	dispatcher_want(c->env->dispatcher, &c->member, 0);
	if (!same)
		consumer_give_back_waiting(c);
	c->config = config_ref(config);
	c->cfg = cfg;
	c->member.priority = cfg->priority;
	c->suspension.cfg = cfg;
	EACH_SOURCE(s, c)
		queue_reconfigure(s->queue, config, cfg);
	consumer_open_handler(c, config, cfg);
	config_unref(previous);
	consumer_touch(c);
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
	struct flight *f, *next;

	TAILQ_FOREACH_SAFE(f, &c->flights, entry, next) {
		handler_stop(f->run, STOP_DRAIN);
		if (hasten)
			handler_kill(f->run);
	}
}

void
consumer_tick(struct consumer *c)
{
	struct flight *f;
	char text[160];

	/* A process that holds a slot, and no message shows that: it is reported once. */
	TAILQ_FOREACH(f, &c->flights, entry) {
		if (f->reported || f->done_at == 0 || clock_mono() - f->done_at < LINGERS_AFTER)
			continue;
		f->reported = true;
		log_event(LOG_LV_WARN, "warning",
		    (&(struct log_ctx){ .queue = c->cfg->name, .pid = f->run->pid }),
		    LF_INT("batch", f->size), LF_STR("warning", "all messages of the batch are "
		    "settled, and its process runs on: it keeps its slot until it exits"));
	}
	/* Not at the first one: rqctl pause pauses one key after the other. */
	c->partly = c->npaused > 0 && c->npaused < c->nsources ? c->partly + 1 : 0;
	if (c->partly == 2) {
		snprintf(text, sizeof(text), "%u of its %zu keys are paused, and the others go on: "
		    "rqctl pause or rqctl resume makes them equal", c->npaused, c->nsources);
		queue_event(c->cfg, LOG_LV_WARN, "warning", LF_STR("warning", text));
	}
	EACH_SOURCE(s, c) {
		if (!c->wanted && !s->late) {
			s->ready = false;
			queue_want(s->queue, false);
		}
		if (s->up)
			queue_tick(s->queue);
	}
}

void
consumer_renew(struct consumer *c)
{
	EACH_SOURCE(s, c)
		queue_renew(s->queue);
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
	if (c->nup == 0 || c->unsubscribed)
		return BLOCK_REDIS;
	if (c->suspension.state != NOT_SUSPENDED)
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

const struct last_errors *
consumer_last_errors(const struct consumer *c)
{
	return &c->last_errors;
}

const struct stats *
consumer_stats(const struct consumer *c)
{
	return &c->stats;
}

struct stall *
consumer_stall(struct consumer *c)
{
	return &c->stall;
}

double
consumer_waited(const struct consumer *c, int64_t *taken)
{
	double longest = 0;
	int64_t n;

	*taken = 0;
	EACH_SOURCE(s, c) {
		longest = waited_longer(longest, queue_waited(s->queue, &n));
		*taken += n;
	}
	return longest;
}

unsigned
consumer_in_flight(const struct consumer *c)
{
	return c->nmessages + waiting(c);
}

unsigned
consumer_runs(const struct consumer *c)
{
	return c->nruns;
}

bool
consumer_is_confirmed(const struct consumer *c)
{
	return c->nclosed == c->nsources;
}

bool
consumer_is_idle(const struct consumer *c)
{
	EACH_SOURCE(s, c) {
		if (s->ready || !s->up || !queue_is_empty(s->queue))
			return false;
	}
	return c->nruns == 0 && c->slots == 0 && !c->fetching && c->state == CONSUMER_RUNNING;
}

void
consumer_each(const struct consumer *c,
    void (*fn)(const struct message *, pid_t, const char *, usec_t, void *), void *arg)
{
	usec_t now = clock_mono();
	const struct flight *f;
	const struct message *msg;

	TAILQ_FOREACH(f, &c->flights, entry) {
		if (f->batch && f->done_at != 0)
			fn(NULL, f->run->pid, NULL, now - f->done_at, arg);
		TAILQ_FOREACH(msg, &f->messages, entry)
			fn(msg, f->run->pid, f->run->progress, now - msg->delivered, arg);
	}
	TAILQ_FOREACH(msg, &c->together.list, entry)
		fn(msg, 0, NULL, now - msg->delivered, arg);
	TAILQ_FOREACH(msg, &c->alone.list, entry)
		fn(msg, 0, NULL, now - msg->delivered, arg);
}
