/*
 * Fetches: pops, and the messages in their replies.  A message that cannot be handed out yet
 * waits as FETCHED for a renewal, or for the next fetch.
 *
 * A pop's outcome is unknown if its reply was lost, or was an error that may have come after
 * the first write.  Then the script reclaim makes due what it has taken.  That is sent as soon
 * as Redis is back, and before the next pop.  A server may read the old connection's pop after
 * the new one's reclaim.  So it is sent once more when the pop's deadline has passed, after
 * which the pop does nothing, unless the first one has seen that the pop has run.
 *
 * After two lost replies in a row a pop asks for one message, and a reply that is lost then
 * counts as a crash of it; later pops ask for twice as many each.  So a message that ends
 * the connection whenever it is sent (a client-output-buffer-limit, a firewall) becomes a
 * dead letter.
 */
#include "queue/leased.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "policy/rate.h"

#define REPLY_BYTES	(1024 * 1024)	/* of payload in a pop's reply; one message may be larger */
#define PAGE		500		/* deliveries that one call of reclaim looks at */
#define SLACK		1.0		/* seconds: clocks drift */
#define AFTER_DEADLINE	(100 * MSEC)
#define POP_MOST	200		/* messages; renew.lua renews as many of a late pop */
#define RATE_PAUSE	(10 * MSEC)	/* within RATE_SLACK: the rate stays the same */
#define RATE_LONGEST	MINUTE		/* then pop again: the rate may have changed */
#define ROOM_PAUSE	(100 * MSEC)	/* nothing may be taken, or held, until a message is done */
#define LOSSES_MAX	2		/* more lost replies in a row are the fault of a message */

static void	leased_reclaim(void *);

/* A pop on its way, or one of unknown outcome. */
struct pop_call {
	TAILQ_ENTRY(pop_call)	 entry;		/* if its outcome is unknown */
	uint64_t		 number;
	usec_t			 sent;		/* mono */
	double			 since;		/* Redis seconds: it ran later; 0: unknown */
	usec_t			 deadline;	/* mono: it does nothing later; 0: it has ended */
	bool			 crash;		/* its loss is its message's fault */
	bool			 asked;		/* reclaim is on its way */
	bool			 once;		/* reclaim has gone through all pages */
	bool			 refused;	/* the last reclaim, and not for a moment */
	bool			 ran;		/* messages that it took were seen */
	char			 from[40];	/* next page; "": the first */
	int64_t			 offset;
};

static void
leased_add_pop_name(const struct leased *a, const struct pop_call *pop, struct words *w)
{
	words_fmt(w, "%s.%" PRIu64, a->env->instance, pop->number);
}

/* Redis' time at which it cannot have run yet. */
static double
pop_from(const struct pop_call *pop)
{
	return pop->since > SLACK ? pop->since - SLACK : 0;
}

bool
leased_pop_is_late(const struct leased *a)
{
	return a->pop != NULL && clock_mono() - a->pop->sent >= leased_renew_interval(a) / 2;
}

void
leased_add_late_pop(const struct leased *a, struct words *w)
{
	leased_add_pop_name(a, a->pop, w);
	words_fmt(w, "%.6f", pop_from(a->pop));
}

/* Replies were lost in a row: pops ask for few messages. */
static bool
leased_is_careful(const struct leased *a)
{
	return a->pop_most < POP_MOST;
}

/* Returned by pop.lua.  The messages follow, or of a paused queue the reason. */
enum {
	POP_STATUS, POP_NOW, POP_WAITING, POP_DUE, POP_DROPPED, POP_LIMITED, POP_TAKEN,
	POP_FIELDS
};
static const char leased_pop_form[] = {
	[POP_STATUS] = FIELD_STR, [POP_NOW] = FIELD_NUMBER, [POP_WAITING] = FIELD_INT,
	[POP_DUE] = FIELD_TIME, [POP_DROPPED] = FIELD_INT, [POP_LIMITED] = FIELD_STR,
	[POP_TAKEN] = FIELD_INT, [POP_FIELDS] = 0
};

/* Returned by pop.lua for each message. */
enum {
	MESSAGE_TAG, MESSAGE_IDLEN, MESSAGE_TOKEN, MESSAGE_ATTEMPTS, MESSAGE_CRASHES,
	MESSAGE_PAYLOAD, MESSAGE_FIELDS
};

/* -- messages in replies ---------------------------------------------------- */

/*
 * The token in a reply, without the mark of a cancelled message; NULL: none.  *mark:
 * the text after "!drop:" or "!dead:", which is "WHO:TOKEN" or "TOKEN".
 */
static const char *
leased_token(const struct redisReply *reply, enum cancel *cancel, const char **mark)
{
	static const char *const marks[] = {
		[CANCEL_DROP] = "!drop:", [CANCEL_DEAD] = "!dead:"
	};
	const char *token = reply_str(reply, NULL), *colon;

	*mark = NULL;
	for (*cancel = CANCEL_DEAD; token != NULL && *cancel != CANCEL_NONE; (*cancel)--) {
		if (strncmp(token, marks[*cancel], strlen(marks[*cancel])) != 0)
			continue;
		*mark = token + strlen(marks[*cancel]);
		return (colon = strrchr(*mark, ':')) != NULL ? colon + 1 : *mark;
	}
	return token;
}

/* Makes a delivery of the message that begins at element i. */
static void
leased_take(struct leased *a, const struct call *call, const struct redisReply *reply, size_t i)
{
	size_t taglen, savedlen, idlen = (size_t)reply_int_at(reply, i + MESSAGE_IDLEN);
	const char *tag = reply_str(reply_at(reply, i + MESSAGE_TAG), &taglen);
	const struct redisReply *whole = reply_at(reply, i + MESSAGE_PAYLOAD);
	const struct redisReply *body = reply_len(whole) == 2 ? reply_at(whole, 0) : whole;
	const char *saved = reply_str(reply_at(whole, 1), &savedlen);
	enum cancel cancel;
	const char *mark, *token = leased_token(reply_at(reply, i + MESSAGE_TOKEN), &cancel, &mark);
	struct message *m;
	struct delivery *d;

	/* The token was not written by our scripts: ignore the entry. */
	if (tag == NULL || token == NULL || !message_id_ok(token, strlen(token)))
		return;
	m = message_new(a->config, a->cfg);
	m->tag = xmalloc(taglen + 1);
	memcpy(m->tag, tag, taglen);
	m->tag[taglen] = '\0';
	m->token = xstrdup(token);
	m->cancel = cancel;
	if (mark != NULL && token > mark)
		m->cancelled_by = xstrndup(mark, (size_t)(token - mark) - 1);
	if (idlen <= taglen && message_id_ok(tag, idlen))
		m->id = xstrndup(tag, idlen);
	else
		m->id = xasprintf("~%.*s", MESSAGE_ID_MAX - 1, token);
	m->attempts = (unsigned)reply_int_at(reply, i + MESSAGE_ATTEMPTS);
	m->crashes = (unsigned)reply_int_at(reply, i + MESSAGE_CRASHES);
	m->delivered = clock_mono();
	if (saved != NULL && savedlen <= MESSAGE_SAVED_MAX && strcspn(saved, "\n") == savedlen)
		m->saved = xstrdup(saved);
	if (reply_str(body, NULL) != NULL) {
		m->payload = reply_take(body, &m->len);
	} else {
		m->len = (size_t)reply_int(body, 0);
		m->too_large = m->len > m->cfg->message_max;
	}
	d = delivery_add(a, m, taglen, call->request.sent_at);
	d->unproven = clock_boot() - m->ours_at >= m->cfg->lease / 3;
	/* Since the pop was sent, a reload has raised the limit that kept the payload back. */
	if (m->payload == NULL && !m->too_large && m->crashes <= (unsigned)m->cfg->max_crashes)
		delivery_done_unrun(a, d, VERDICT_RETURN);
}

/* -- the fetch -------------------------------------------------------------- */

static void
leased_finish_fetch(struct leased *a, enum fetch_status status, const char *cause)
{
	struct fetched f = {
		.got = a->got, .status = status, .cause = cause,
		.more = a->wanted && a->work,
	};

	a->asked = a->got = 0;
	leased_wake(a);
	a->queue.events->fetched(&f, a->queue.arg);
}

/* The share of a fetch's room that the message takes. */
static unsigned
leased_weight(const struct leased *a, const struct message *m)
{
	return config_has_batches(a->cfg) && message_has_failed(m) ? (unsigned)a->cfg->batch : 1;
}

struct delivery *
leased_fetched(const struct leased *a)
{
	struct delivery *d;

	TAILQ_FOREACH(d, &a->list[DELIVERY_FETCHED], entry) {
		if (!d->unproven && message_is_sure(d->msg))
			return d;
	}
	return NULL;
}

/* Hands out at least one message: one that is too large for the room would wait for ever. */
static void
leased_hand_out(struct leased *a)
{
	unsigned used = 0;
	struct delivery *d;

	while (!a->deferred && a->got < a->asked && (d = leased_fetched(a)) != NULL) {
		used += leased_weight(a, d->msg);
		if (used > a->asked && a->got > 0)
			break;
		delivery_move(a, d, DELIVERY_RUNNING);
		a->got++;
		a->queue.events->deliver(d->msg, a->queue.arg);
	}

	/* The first one waits for a renewal that was not sent yet. */
	d = TAILQ_FIRST(&a->list[DELIVERY_FETCHED]);
	if (d != NULL && d != leased_fetched(a) && d->calls == 0)
		leased_renew_all(a);
}

/*
 * What the reply says about further messages.  Returns the limit that cut the pop short, or
 * NULL.
 */
static const char *
leased_popped_state(struct leased *a, const struct redisReply *reply, const char *status)
{
	double now = leased_saw_now(a, reply_at(reply, POP_NOW));
	bool late = strcmp(status, "late") == 0, paused = strcmp(status, "paused") == 0;
	bool waiting = reply_int_at(reply, POP_WAITING) > 0, full = false;
	bool due = leased_saw_retry(a, leased_until(reply_at(reply, POP_DUE), now), true);
	bool any = !paused && reply_len(reply) >= POP_FIELDS + MESSAGE_FIELDS;
	const char *limited = reply_str_at(reply, POP_LIMITED);
	struct tick_report report = { .dropped = (unsigned)reply_int_at(reply, POP_DROPPED) };
	usec_t wait;

	leased_saw_list(a, reply_at(reply, POP_TAKEN), reply_at(reply, POP_WAITING));
	/* A limit of the fleet counts only if it has held messages back. */
	a->crowded = false;
	if (limited[0] == '\0' || (!waiting && !due)) {
		limited = NULL;
	} else if (strcmp(limited, "fleet") == 0) {
		full = true;
	} else if (strcmp(limited, "memory") == 0 || strcmp(limited, "held") == 0) {
		/* Results of other daemons end that, too, and nothing reports them. */
		a->crowded = true;
		timer_set(&a->rate, ROOM_PAUSE);
	} else {
		wait = leased_usec(reply_double_at(reply, POP_LIMITED)) + MSEC;
		if (wait < RATE_PAUSE)
			wait = RATE_PAUSE;
		timer_set(&a->rate, wait < RATE_LONGEST ? wait : RATE_LONGEST);
		limited = "rate";
	}
	a->empty = !any && !waiting && !due;
	a->work = late || ((waiting || due) && limited == NULL && !paused);
	/* The changes that did not count meanwhile have disarmed their keys. */
	if (a->full != full)
		leased_disarm(a);
	a->full = full;
	if (any) {
		a->misses = 0;
		a->overdue = 0;
	}
	leased_count_miss(a, !any && (!waiting || limited != NULL));
	if (report.dropped > 0)
		a->queue.events->ticked(&report, a->queue.arg);
	if (!late)
		leased_set_paused(a, paused, paused ? reply_str_at(reply, POP_FIELDS) : NULL);
	return limited;
}

/* The pop has ended.  doubted: it may have taken messages. */
static void
leased_end_pop(struct leased *a, bool doubted)
{
	if (doubted)
		TAILQ_INSERT_TAIL(&a->doubted, a->pop, entry);
	else
		free(a->pop);
	a->pop = NULL;
}

static void
leased_pop_lost(struct leased *a, bool sent)
{
	if (sent) {
		a->pop->crash = a->pop_losses >= LOSSES_MAX;
		if (++a->pop_losses >= LOSSES_MAX)
			a->pop_most = 1;
	}
	leased_end_pop(a, sent);
	if (leased_is_careful(a))
		leased_complain(a, LEASED_POP, "replies are lost again and again, so it "
		    "takes one message at a time; is the server's client-output-buffer-"
		    "limit for class normal below the size of a message?");
	leased_saw_work(a);
	leased_finish_fetch(a, FETCH_DOWN, NULL);
}

/* Redis has answered, so the pop cannot run later; but it may have taken messages. */
static void
leased_pop_refused(struct leased *a, const struct redisReply *reply)
{
	enum reply_error e = reply_error(reply);
	char text[REPLY_CAUSE];

	a->pop->deadline = 0;
	/* These errors come before the script's first write. */
	leased_end_pop(a, e != REPLY_NOSCRIPT && e != REPLY_TRANSIENT && e != REPLY_ELSEWHERE &&
	    e != REPLY_REFUSED);
	if (e == REPLY_ELSEWHERE) {
		(void)leased_failed(a, LEASED_POP, reply);
		leased_finish_fetch(a, FETCH_DOWN, NULL);
		return;
	}
	xreplace(&a->pop_error, reply_cause(reply, text, sizeof(text)));
	leased_watch_pop_refused(a);
	leased_reclaim(a);
	leased_finish_fetch(a, FETCH_ERROR, a->pop_error);
}

static void
leased_popped(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	const char *status, *limited;
	size_t i;

	if (answer != CONN_REPLY) {
		leased_pop_lost(a, answer == CONN_LOST);
		return;
	}
	if (!reply_has(reply, leased_pop_form)) {
		leased_pop_refused(a, reply);
		return;
	}
	leased_end_pop(a, false);
	a->pop_losses = 0;
	a->pop_most = 2 * a->pop_most < POP_MOST ? 2 * a->pop_most : POP_MOST;
	xreplace(&a->pop_error, NULL);
	status = reply_str_at(reply, POP_STATUS);
	if (strcmp(status, "paused") == 0) {
		(void)leased_popped_state(a, reply, status);
		leased_finish_fetch(a, FETCH_PAUSED, NULL);
		return;
	}
	for (i = POP_FIELDS; i + MESSAGE_FIELDS <= reply_len(reply); i += MESSAGE_FIELDS)
		leased_take(a, call, reply, i);
	if (!leased_is_careful(a))
		leased_complain(a, LEASED_POP, NULL);
	limited = leased_popped_state(a, reply, status);
	if (!a->closing)
		leased_hand_out(a);
	leased_finish_fetch(a, limited != NULL ? FETCH_LIMITED : FETCH_OK, limited);
}

/* -- the fetch: may it, and what does the pop say ------------------------------ */

/* The slots that a fetch may fill.  No limit unless Redis has refused a result. */
static unsigned
leased_free_slots(const struct leased *a)
{
	unsigned most = config_most(a->cfg), used = a->count[DELIVERY_RUNNING] + a->refused;

	if (a->refused == 0)
		return UINT_MAX;
	return used < most ? most - used : 0;
}

/*
 * Messages and results have reached their limit of bytes: only FETCHED messages are
 * handed out.
 */
static bool
leased_is_heavy(const struct leased *a)
{
	return a->bytes >= config_bytes_max(a->config, a->cfg);
}

bool
leased_may_fetch(const struct leased *a, bool found)
{
	return a->asked == 0 && !a->closing && leased_is_up(a) && !leased_is_unsure(a) &&
	    leased_free_slots(a) > 0 && (found || !leased_is_heavy(a));
}

/* The room that messages take which are popped, but cannot be handed out yet. */
static unsigned
leased_unready(const struct leased *a)
{
	unsigned weight = 0;
	const struct delivery *d;

	TAILQ_FOREACH(d, &a->list[DELIVERY_FETCHED], entry)
		weight += leased_weight(a, d->msg);
	return weight;
}

/*
 * The script's word for the turn of a pop with this room.  Pops alternate between retries
 * and new messages.  A pop without room for a message that has failed before does not
 * count; otherwise retries could always come second.
 */
static const char *
leased_pop_turn(struct leased *a, unsigned room, unsigned batch)
{
	static const char *const words[] = {
		[TURN_OLDEST] = "new", [TURN_NEWEST] = "newest", [TURN_FEWEST] = "fewest",
		[TURN_LONGEST] = "retry",
	};

	if (a->fetch_turn != TURN_SHARE)
		return words[a->fetch_turn];
	/* What was reclaimed comes first, to find the message that ends the connection. */
	if (a->due_first > 0 || leased_is_careful(a)) {
		a->due_first -= room < a->due_first ? room : a->due_first;
		return "due";
	}
	if (batch == 0 || room >= batch)
		a->new_first = !a->new_first;
	return a->new_first ? "retry" : "new";
}

/* room: messages that the free runs can take. */
static void
leased_pop(struct leased *a, unsigned room)
{
	/* One counter for the process: no token may repeat, even if a queue is opened again. */
	static uint64_t number;
	/* A probe is one message, and runs alone, so it needs no room for a batch. */
	bool batches = config_has_batches(a->cfg) && a->fetch_turn == TURN_SHARE;
	/* The room that a message takes which has failed before; 0: no batches. */
	unsigned batch = batches ? (unsigned)a->cfg->batch : 0;
	usec_t timeout = a->env->redis->timeout, now = clock_mono();
	struct call *call = leased_call_new(a, LEASED_POP, leased_popped);
	struct words *w = &call->words;
	struct pop_call *pop = a->pop = NEW(struct pop_call, .number = ++number, .sent = now,
	    .since = conn_redis_time(a->env->conn), .deadline = now + timeout);
	const char *turn = leased_pop_turn(a, room, batch);

	words_fmt(w, "%u", room < a->pop_most ? room : a->pop_most);
	words_fmt(w, "%d", REPLY_BYTES);
	words_fmt(w, "%" PRIu64, a->cfg->message_max);
	words_fmt(w, "%d", a->cfg->max_crashes);
	leased_add_pop_name(a, pop, w);
	words_fmt(w, "%.6f", pop->since > 0 ? pop->since + (double)timeout / (double)SEC : 0);
	words_fmt(w, "%d", a->cfg->fleet_concurrency);
	words_fmt(w, "%.9f", a->gap);
	words_fmt(w, "%.9f", RATE_SLACK);
	if (batch > 0)
		words_fmt(w, "%s %u %u", turn, room, batch);
	else
		words_add(w, turn);
	leased_words(call);
	leased_expect_renewal(a);
	leased_send(call);
}

void
leased_fetch_step(struct leased *a)
{
	unsigned unready = 0, slots = leased_free_slots(a);
	bool no_room = false;

	if (a->asked == 0 || a->pop != NULL)
		return;
	if (!a->closing)
		leased_hand_out(a);
	if (a->got == 0 && !a->closing) {
		/* Messages that are not ready yet count against the limit of a fetch. */
		unready = leased_unready(a);
		a->no_room = no_room = a->asked <= unready;
		/* No event tells that a fetch would be granted more slots: the timer does. */
		if (no_room)
			a->work = true;
		if (no_room && !timer_is_set(&a->poll))
			leased_poll(a);
	}
	if (a->got > 0 || a->closing || no_room || leased_is_heavy(a)) {
		leased_finish_fetch(a, FETCH_OK, NULL);
	} else if (!leased_is_up(a) || (leased_is_unsure(a) && a->pop_error == NULL)) {
		leased_saw_work(a);
		leased_finish_fetch(a, FETCH_DOWN, NULL);
	} else if (leased_is_unsure(a)) {
		leased_poll(a);
		leased_finish_fetch(a, FETCH_ERROR, a->pop_error);
	} else if (slots == 0) {
		leased_finish_fetch(a, FETCH_LIMITED, "results");
	} else {
		leased_pop(a, a->asked - unready < slots ? a->asked - unready : slots);
	}
}

/* -- unknown outcomes ------------------------------------------------------- */

bool
leased_is_unsure(const struct leased *a)
{
	const struct pop_call *pop;

	TAILQ_FOREACH(pop, &a->doubted, entry) {
		if (!pop->once)
			return true;
	}
	return false;
}

bool
leased_reclaims(const struct leased *a)
{
	const struct pop_call *pop;

	TAILQ_FOREACH(pop, &a->doubted, entry) {
		if (!pop->once && !pop->refused)
			return true;
	}
	return false;
}

/* Returned by reclaim.lua. */
enum { RECLAIM_NOW, RECLAIM_N, RECLAIM_FROM, RECLAIM_OFFSET, RECLAIM_FIELDS };
static const char leased_reclaim_form[] = {
	[RECLAIM_NOW] = FIELD_NUMBER, [RECLAIM_N] = FIELD_INT, [RECLAIM_FROM] = FIELD_STR,
	[RECLAIM_OFFSET] = FIELD_INT, [RECLAIM_FIELDS] = 0
};

static void
leased_reclaimed(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct pop_call *pop = call->pop;

	pop->asked = pop->refused = false;
	if (answer != CONN_REPLY || !reply_has(reply, leased_reclaim_form)) {
		pop->from[0] = '\0';
		if (answer != CONN_REPLY)
			return;
		/* After an error of the pop that is the reason of the suspension: no second one. */
		if (a->pop_error == NULL || reply_error(reply) == REPLY_ELSEWHERE)
			(void)leased_failed(a, LEASED_RECLAIM, reply);
		timer_set(&a->reclaim, backoff_delay(100 * MSEC, leased_patience(a),
		    ++a->reclaim_failures, random_unit()));
		pop->refused = reply_error(reply) != REPLY_TRANSIENT;
		leased_wake(a);
		return;
	}
	leased_complain(a, LEASED_RECLAIM, NULL);
	leased_saw_now(a, reply_at(reply, RECLAIM_NOW));
	a->reclaim_failures = 0;
	if (reply_int_at(reply, RECLAIM_N) > 0) {
		leased_saw_work(a);
		pop->ran = true;
		/* Other daemons go first: their connections may carry this message. */
		if (pop->crash)
			timer_set(&a->rate, SEC);
	}
	snprintf(pop->from, sizeof(pop->from), "%s", reply_str_at(reply, RECLAIM_FROM));
	pop->offset = reply_int_at(reply, RECLAIM_OFFSET);
	if (pop->from[0] == '\0') {
		/* The last page: done, unless the pop could still run. */
		xreplace(&a->pop_error, NULL);
		pop->once = true;
		if (pop->ran || clock_mono() >= pop->deadline) {
			TAILQ_REMOVE(&a->doubted, pop, entry);
			free(pop);
		}
	}
	leased_reclaim(a);
	leased_wake(a);
}

static void
leased_reclaim_one(struct leased *a, struct pop_call *pop)
{
	struct call *call = leased_call_new(a, LEASED_RECLAIM, leased_reclaimed);
	bool first = pop->from[0] == '\0';

	call->pop = pop;
	pop->asked = true;
	leased_add_pop_name(a, pop, &call->words);
	if (first)
		words_fmt(&call->words, "%.6f", pop_from(pop));
	else
		words_add(&call->words, pop->from);
	words_fmt(&call->words, "%" PRId64, first ? 0 : pop->offset);
	words_add(&call->words, pop->crash ? "1" : "0");
	words_fmt(&call->words, "%d", PAGE);
	leased_send(call);
}

/* Makes due what pops of unknown outcome took. */
static void
leased_reclaim(void *arg)
{
	struct leased *a = arg;
	usec_t now = clock_mono(), left;
	struct pop_call *pop;

	if (!leased_is_up(a))
		return;
	TAILQ_FOREACH(pop, &a->doubted, entry) {
		left = pop->once ? pop->deadline + AFTER_DEADLINE - now : 0;
		if (pop->asked)
			continue;
		if (left <= 0)
			leased_reclaim_one(a, pop);
		else if (!timer_is_set(&a->reclaim) || timer_left(&a->reclaim) > left)
			timer_set(&a->reclaim, left);
	}
}

void
leased_fetch_close(struct leased *a)
{
	struct pop_call *pop;

	TAILQ_FOREACH(pop, &a->doubted, entry)
		pop->refused = false;
	leased_reclaim(a);
}

/* Each reclaim begins anew with its first page. */
void
leased_reclaim_anew(struct leased *a)
{
	struct pop_call *pop;

	a->reclaim_failures = 0;
	TAILQ_FOREACH(pop, &a->doubted, entry)
		pop->from[0] = '\0';
	leased_reclaim(a);
}

void
leased_fetch_init(struct leased *a)
{
	TAILQ_INIT(&a->doubted);
	timer_init(&a->reclaim, a->env->loop, leased_reclaim, a);
	a->due_first = (unsigned)config_most(a->cfg);
	a->pop_most = POP_MOST;
}

void
leased_fetch_free(struct leased *a)
{
	struct pop_call *pop;

	while ((pop = TAILQ_TAKE(&a->doubted, entry)) != NULL)
		free(pop);
	free(a->pop);
	free(a->pop_error);
	timer_stop(&a->reclaim);
}
