/*
 * Fetches: sends the scripts pop, mine and body, and makes deliveries of the messages
 * in their replies.  pop.c decides when to send mine, loader.c when to send body.
 * Deliveries that mine.lua finds, and those whose payload body.lua has loaded, wait as
 * FOUND for the next fetch.  Their leases are renewed meanwhile.
 */
#include "queue/leased_private.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Of a pop.  renew_all.lua renews as many for a pop whose reply has not come. */
#define MESSAGES_MAX	200

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

/* Returned by mine.lua; then messages. */
enum { MINE_NOW, MINE_FROM, MINE_OFFSET, MINE_TOOK, MINE_FIELDS };
static const char leased_mine_form[] = {
	[MINE_NOW] = FIELD_NUMBER, [MINE_FROM] = FIELD_STR, [MINE_OFFSET] = FIELD_INT,
	[MINE_TOOK] = FIELD_INT, [MINE_FIELDS] = 0
};

/* Returned by pop.lua and mine.lua for each message. */
enum {
	MESSAGE_TAG, MESSAGE_IDLEN, MESSAGE_TOKEN, MESSAGE_ATTEMPTS, MESSAGE_CRASHES,
	MESSAGE_PAYLOAD, MESSAGE_FIELDS
};

/* -- large payloads --------------------------------------------------------- */

/* The longest payload that a pop's reply may have. */
static uint64_t
leased_inline(const struct leased *a)
{
	uint64_t most = a->cfg->message_max;

	return a->env->bulk != NULL && most > LOADER_INLINE ? LOADER_INLINE : most;
}

/* No payload came: there was no connection, it ended, or Redis gave another answer. */
static void
leased_not_loaded(struct leased *a, struct delivery *d, enum conn_answer answer)
{
	struct aside aside = loader_failed(a->loader, d, answer != CONN_NOT_SENT && leased_is_up(a),
	    bulk_cause(a->env->bulk), ledger_patience(a->ledger));

	if (aside.text == NULL)
		return;
	if (aside.news)
		leased_complain(a, LEASED_BODY, NULL);
	leased_complain(a, LEASED_BODY, aside.text);
	free(aside.text);
	leased_wake(a);
}

static void
leased_loaded(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct delivery *d = call->batch.v[0];
	char *payload;
	size_t len;

	if (d->state != DELIVERY_LOADING)
		return;
	if (answer == CONN_REPLY && reply_error(reply) != REPLY_OK)
		(void)leased_failed(a, LEASED_BODY, reply);
	if (answer != CONN_REPLY || reply_str(reply, NULL) == NULL) {
		leased_not_loaded(a, d, answer);
		return;
	}
	payload = reply_take(reply, &len);
	if (loader_loaded(a->loader, d, payload, len, reply_free_str))
		leased_complain(a, LEASED_BODY, NULL);
	leased_wake(a);
}

static void
leased_ask_body(struct leased *a, struct delivery *d)
{
	struct call *call = leased_call_new(a, LEASED_BODY, leased_loaded);

	batch_add(&call->batch, d);
	words_mem(&call->words, d->msg->tag, d->taglen);
	words_add(&call->words, d->msg->token);
	leased_send(call);
}

void
leased_load(void *arg)
{
	struct leased *a = arg;
	struct delivery *d;

	while ((d = loader_next(a->loader)) != NULL)
		leased_ask_body(a, d);
}

/* -- messages in replies ---------------------------------------------------- */

static void
leased_take_payload(struct message *m, const struct redisReply *body)
{
	if (reply_str(body, NULL) != NULL) {
		m->payload = reply_take(body, &m->len);
		m->free_payload = reply_free_str;
	} else {
		m->len = (size_t)reply_int(body, 0);
		m->too_large = m->len > m->cfg->message_max;
	}
}

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

/* Makes a delivery of the message that begins at element i; NULL: it is no message. */
static struct delivery *
leased_take(struct leased *a, const struct call *call, const struct redisReply *reply, size_t i)
{
	size_t taglen, idlen = (size_t)reply_int_at(reply, i + MESSAGE_IDLEN);
	const char *tag = reply_str(reply_at(reply, i + MESSAGE_TAG), &taglen);
	enum cancel cancel;
	const char *mark, *token = leased_token(reply_at(reply, i + MESSAGE_TOKEN), &cancel, &mark);
	struct message *m;
	struct delivery *d;

	/* The token was not written by our scripts: ignore the entry. */
	if (tag == NULL || token == NULL || !message_id_ok(token, strlen(token)))
		return NULL;
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
	leased_take_payload(m, reply_at(reply, i + MESSAGE_PAYLOAD));
	d = ledger_add(a->ledger, m, taglen, idlen, call->request.sent_at);
	if (m->payload == NULL && !m->too_large) {
		loader_add(a->loader, d);
		leased_ask_body(a, d);
	}
	return d;
}

/* -- the fetch -------------------------------------------------------------- */

static void
leased_finish_fetch(struct leased *a, enum fetch_status status, const char *cause)
{
	struct fetched f = {
		.got = a->got, .status = status, .cause = cause,
		.more = watcher_will_fetch(a->watcher),
	};

	a->asked = 0;
	a->got = 0;
	leased_wake(a);
	a->queue.events->fetched(&f, a->queue.arg);
}

/* The share of a fetch's room that the message takes. */
static unsigned
leased_weight(const struct leased *a, const struct message *m)
{
	return config_has_batches(a->cfg) && message_has_failed(m) ? (unsigned)a->cfg->batch : 1;
}

/* Hands out at least one message: one that is too large for the room would wait for ever. */
static void
leased_hand_out(struct leased *a)
{
	unsigned used = 0;
	struct delivery *d;

	while (!a->deferred && a->got < a->asked && (d = ledger_found(a->ledger)) != NULL) {
		used += leased_weight(a, d->msg);
		if (used > a->asked && a->got > 0)
			break;
		ledger_move(a->ledger, d, DELIVERY_IN_HAND);
		a->got++;
		a->queue.events->deliver(d->msg, a->queue.arg);
	}
	if (ledger_is_unsure(a->ledger))
		leased_renew_all(a);
}

/* The fleet's limit that has held messages back; NULL: none. */
static const char *
leased_saw_limit(struct watcher_popped *p, const struct redisReply *limited)
{
	const char *text = reply_str(limited, NULL);

	if (text == NULL || text[0] == '\0' || (!p->waiting && !p->due))
		return NULL;
	p->full = strcmp(text, "fleet") == 0;
	if (p->full)
		return "fleet";
	p->rate_wait = leased_usec(reply_double(limited, 0)) + MSEC;
	return "rate";
}

/*
 * Tells the watcher what the reply says about further messages.  Returns the limit that
 * cut the pop short, or NULL.
 */
static const char *
leased_popped_state(struct leased *a, const struct redisReply *reply, const char *status)
{
	double now = leased_saw_now(a, reply_at(reply, POP_NOW));
	struct watcher_popped p = {
		.waiting = reply_int_at(reply, POP_WAITING) > 0,
		.due = watcher_saw_retry(a->watcher,
		    leased_until(reply_at(reply, POP_DUE), now), true),
		.late = strcmp(status, "late") == 0,
		.paused = strcmp(status, "paused") == 0,
	};
	struct tick_report report = {
		.dropped = (unsigned)reply_int_at(reply, POP_DROPPED)
	};
	const char *limited = leased_saw_limit(&p, reply_at(reply, POP_LIMITED));
	bool changed;

	leased_saw_list(a, reply_at(reply, POP_TAKEN), reply_at(reply, POP_WAITING));
	p.any = !p.paused && reply_len(reply) >= POP_FIELDS + MESSAGE_FIELDS;
	changed = watcher_popped(a->watcher, &p);
	if (report.dropped > 0)
		a->queue.events->ticked(&report, a->queue.arg);
	if (changed)
		a->queue.events->paused(p.paused,
		    p.paused ? reply_str_at(reply, POP_FIELDS) : NULL, a->queue.arg);
	return limited;
}

/* The refused pop may have taken messages: asks mine, as after a lost reply. */
static void
leased_pop_refused(struct leased *a, const struct redisReply *reply)
{
	enum reply_error e = reply_error(reply);
	char text[REPLY_CAUSE];

	if (e == REPLY_ELSEWHERE) {
		pops_refused(a->pops, e, NULL);
		(void)leased_failed(a, LEASED_POP, reply);
		leased_finish_fetch(a, FETCH_DOWN, NULL);
		return;
	}
	pops_refused(a->pops, e, reply_cause(reply, text, sizeof(text)));
	watcher_pop_refused(a->watcher);
	leased_ask(a);
	leased_finish_fetch(a, FETCH_ERROR, pops_error(a->pops));
}

static void
leased_pop_answered(struct leased *a, struct call *call, const struct redisReply *reply)
{
	const char *status, *limited;
	size_t i;

	if (!reply_has(reply, leased_pop_form)) {
		leased_pop_refused(a, reply);
		return;
	}
	status = reply_str_at(reply, POP_STATUS);
	if (strcmp(status, "paused") == 0) {
		pops_replied(a->pops, false);
		(void)leased_popped_state(a, reply, status);
		leased_finish_fetch(a, FETCH_PAUSED, NULL);
		return;
	}
	for (i = POP_FIELDS; i + MESSAGE_FIELDS <= reply_len(reply); i += MESSAGE_FIELDS)
		(void)leased_take(a, call, reply, i);
	pops_replied(a->pops, i > POP_FIELDS);
	limited = leased_popped_state(a, reply, status);
	if (!a->closing)
		leased_hand_out(a);
	leased_finish_fetch(a, limited != NULL ? FETCH_LIMITED : FETCH_OK, limited);
}

static void
leased_popped(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	if (answer == CONN_REPLY) {
		leased_pop_answered(a, call, reply);
		return;
	}
	pops_ended(a->pops, answer == CONN_LOST);
	watcher_saw_work(a->watcher);
	leased_finish_fetch(a, FETCH_DOWN, NULL);
}

/* The slots that a fetch may fill.  No limit unless Redis has refused a result. */
static unsigned
leased_free_slots(const struct leased *a)
{
	unsigned most = config_most(a->cfg);
	const struct ledger_tally *t = ledger_tally(a->ledger);
	unsigned used = t->count[DELIVERY_LOADING] + t->count[DELIVERY_IN_HAND] + t->refused;

	if (t->refused == 0)
		return UINT_MAX;
	return used < most ? most - used : 0;
}

/*
 * Messages and results have reached their limit of bytes: only FOUND messages are
 * handed out.
 */
static bool
leased_is_heavy(const struct leased *a)
{
	return ledger_tally(a->ledger)->bytes >= config_bytes_max(a->config, a->cfg);
}

bool
leased_may_fetch(const struct leased *a, bool found)
{
	return a->asked == 0 && !a->closing && leased_is_up(a) && !leased_is_unsure(a) &&
	    leased_free_slots(a) > 0 && (found || !leased_is_heavy(a));
}

/* A probe is one message, and runs alone, so it needs no room for a batch. */
static void
leased_pop(struct leased *a, unsigned room)
{
	struct call *call = leased_call_new(a, LEASED_POP, leased_popped);
	bool batches = config_has_batches(a->cfg) && a->fetch_turn == TURN_SHARE;
	const struct pop_terms terms = {
		.n = room < MESSAGES_MAX ? room : MESSAGES_MAX, .turn = a->fetch_turn,
		.batch = batches ? (unsigned)a->cfg->batch : 0, .room = room,
		.inline_max = leased_inline(a),
		.fleet_concurrency = a->cfg->fleet_concurrency, .gap = a->gap,
		.timeout = a->env->redis->timeout,
		.redis_now = conn_redis_time(a->env->conn),
	};

	ledger_expect(a->ledger);
	pops_begin(a->pops, &terms, &call->words);
	leased_words(call);
	leased_send(call);
}

/* The room that messages take which are popped, but cannot be handed out yet. */
static unsigned
leased_unready(const struct leased *a)
{
	const struct ledger_tally *t = ledger_tally(a->ledger);
	unsigned weight = 0;
	const struct delivery *d;

	if (!config_has_batches(a->cfg))
		return t->count[DELIVERY_LOADING] + t->count[DELIVERY_FOUND];
	for (d = ledger_first(a->ledger, DELIVERY_LOADING); d != NULL; d = ledger_next(d))
		weight += leased_weight(a, d->msg);
	for (d = ledger_first(a->ledger, DELIVERY_FOUND); d != NULL; d = ledger_next(d))
		weight += leased_weight(a, d->msg);
	return weight;
}

/* 0 while Redis is away: nobody knows when the messages will be ready. */
unsigned
leased_held(const struct queue *q)
{
	const struct leased *a = (const struct leased *)q;

	return leased_is_up(a) ? leased_unready(a) : 0;
}

/* A fetch counts messages that are not ready yet against its limit. */
static bool
leased_has_no_room(struct leased *a)
{
	bool no_room = a->asked <= leased_unready(a);

	a->no_room_at = ledger_tally(a->ledger)->departures;
	watcher_set_no_room(a->watcher, no_room);
	return no_room;
}

/* Ends the fetch: no pop can be sent now. */
static void
leased_cannot_pop(struct leased *a)
{
	if (!leased_is_up(a) || pops_error(a->pops) == NULL) {
		watcher_saw_work(a->watcher);
		leased_finish_fetch(a, FETCH_DOWN, NULL);
		return;
	}
	watcher_poll(a->watcher);
	leased_finish_fetch(a, FETCH_ERROR, pops_error(a->pops));
}

void
leased_fetch_step(struct leased *a)
{
	unsigned n, room = leased_free_slots(a);

	if (a->asked == 0 || pops_is_sent(a->pops))
		return;
	if (!a->closing)
		leased_hand_out(a);
	if (a->got > 0 || a->closing || leased_has_no_room(a) || leased_is_heavy(a))
		leased_finish_fetch(a, FETCH_OK, NULL);
	else if (!leased_is_up(a) || leased_is_unsure(a))
		leased_cannot_pop(a);
	else if (room == 0)
		leased_finish_fetch(a, FETCH_LIMITED, "results");
	else {
		n = a->asked - leased_unready(a);
		leased_pop(a, n < room ? n : room);
	}
}

/* -- unknown outcomes ------------------------------------------------------- */

/*
 * After an error of the pop the queue is suspended, with that error as the reason: no
 * second one.
 */
static void
leased_mine_refused(struct leased *a, struct pop_call *pop, const struct redisReply *reply)
{
	if (pops_error(a->pops) == NULL || reply_error(reply) == REPLY_ELSEWHERE)
		(void)leased_failed(a, LEASED_MINE, reply);
	pops_mine_refused(a->pops, pop, ledger_patience(a->ledger));
}

static void
leased_mine_replied(struct leased *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct mine_page page = { .from = "" };
	struct delivery *d;
	enum cancel cancel;
	const char *token, *mark;
	size_t i;

	if (answer != CONN_REPLY) {
		pops_mine_lost(call->pop);
		return;
	}
	if (!reply_has(reply, leased_mine_form)) {
		leased_mine_refused(a, call->pop, reply);
		return;
	}
	leased_complain(a, LEASED_MINE, NULL);
	leased_saw_now(a, reply_at(reply, MINE_NOW));
	for (i = MINE_FIELDS; i + MESSAGE_FIELDS <= reply_len(reply); i += MESSAGE_FIELDS) {
		token = leased_token(reply_at(reply, i + MESSAGE_TOKEN), &cancel, &mark);
		if ((token != NULL && ledger_has_token(a->ledger, token)) ||
		    (d = leased_take(a, call, reply, i)) == NULL)
			continue;
		/* mine finds messages by tag; they run in the order of the pop */
		ledger_sort(a->ledger, d);
		page.found = true;
	}
	page.took = reply_int_at(reply, MINE_TOOK) != 0;
	page.from = reply_str_at(reply, MINE_FROM);
	page.offset = reply_int_at(reply, MINE_OFFSET);
	pops_mine_page(a->pops, call->pop, &page);
	if (page.found)
		leased_renew_all(a);
	leased_ask(a);
	leased_wake(a);
}

void
leased_ask(void *arg)
{
	struct leased *a = arg;
	struct call *call;
	struct pop_call *pop;

	while (leased_is_up(a) && (pop = pops_to_ask(a->pops)) != NULL) {
		call = leased_call_new(a, LEASED_MINE, leased_mine_replied);
		call->pop = pop;
		pops_add_question(a->pops, pop, leased_inline(a), &call->words);
		leased_words(call);
		leased_send(call);
	}
}
