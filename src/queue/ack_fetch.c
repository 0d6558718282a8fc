/*
 * Fetches: sends the scripts pop, mine and body, and makes deliveries of the
 * messages in their replies.  pop.c says when mine is sent, loader.c when body is.
 * What mine finds, and what body has loaded, waits as FOUND for the next fetch, its
 * lease renewed.
 */
#include "queue/ack_private.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define POP_HEAD	6		/* elements of a pop's reply before the first message */
#define MESSAGE_ELEMENTS 6

/* -- large payloads --------------------------------------------------------- */

/* A longer payload is not in a pop's reply. */
static uint64_t
ack_inline(const struct ack *a)
{
	uint64_t most = a->cfg->message_max;

	return a->env->bulk != NULL && most > LOADER_INLINE ? LOADER_INLINE : most;
}

/* No payload came: the connection ended, was not there, or Redis gave another answer. */
static void
ack_not_loaded(struct ack *a, struct delivery *d, enum conn_answer answer)
{
	struct aside aside = loader_failed(a->loader, d, answer != CONN_NOT_SENT && ack_is_up(a),
	    bulk_cause(a->env->bulk), ledger_patience(a->ledger));

	if (aside.text == NULL)
		return;
	if (aside.news)
		ack_complain(a, ACK_BODY, NULL);
	ack_complain(a, ACK_BODY, aside.text);
	free(aside.text);
	ack_wake(a);
}

static void
ack_loaded(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct delivery *d = call->batch.v[0];
	char *payload;
	size_t len;

	if (d->state != DELIVERY_LOADING)
		return;
	if (answer == CONN_REPLY && reply_error(reply) != REPLY_OK)
		(void)ack_failed(a, ACK_BODY, reply);
	if (answer != CONN_REPLY || reply_str(reply, NULL) == NULL) {
		ack_not_loaded(a, d, answer);
		return;
	}
	payload = reply_take(reply, &len);
	if (loader_loaded(a->loader, d, payload, len, reply_free_str))
		ack_complain(a, ACK_BODY, NULL);
	ack_wake(a);
}

static void
ack_ask_body(struct ack *a, struct delivery *d)
{
	struct call *call = ack_call_new(a, ACK_BODY, ack_loaded);
	struct words w = { 0 };

	batch_add(&call->batch, d);
	ack_keys(a, call, &w);
	words_mem(&w, d->msg->tag, d->taglen);
	words_add(&w, d->msg->token);
	ack_send(a, call, &w);
}

void
ack_load(void *arg)
{
	struct ack *a = arg;
	struct delivery *d;

	while ((d = loader_next(a->loader)) != NULL)
		ack_ask_body(a, d);
}

/* -- messages in replies ---------------------------------------------------- */

static void
ack_take_payload(struct message *m, const struct redisReply *body)
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
 * The message that begins at element i: tag, length of the id, token, attempts,
 * crashes, payload.  Only a hand could have written a tag whose id is none.
 */
static struct delivery *
ack_take(struct ack *a, const struct call *call, const struct redisReply *reply, size_t i)
{
	size_t taglen, idlen = (size_t)reply_int(reply_at(reply, i + 1), 0);
	const char *tag = reply_str(reply_at(reply, i), &taglen);
	const char *token = reply_str(reply_at(reply, i + 2), NULL);
	struct message *m;
	struct delivery *d;

	/* A token that no script of ours has made: that is no message. */
	if (tag == NULL || token == NULL || !message_id_ok(token, strlen(token)))
		return NULL;
	m = message_new(a->config, a->cfg);
	m->tag = xmalloc(taglen + 1);
	memcpy(m->tag, tag, taglen);
	m->tag[taglen] = '\0';
	m->token = xstrdup(token);
	if (idlen <= taglen && message_id_ok(tag, idlen))
		m->id = xstrndup(tag, idlen);
	else
		m->id = xasprintf("~%.*s", MESSAGE_ID_MAX - 1, token);
	m->attempts = (unsigned)reply_int(reply_at(reply, i + 3), 0);
	m->crashes = (unsigned)reply_int(reply_at(reply, i + 4), 0);
	m->delivered = clock_mono();
	ack_take_payload(m, reply_at(reply, i + 5));
	d = ledger_add(a->ledger, m, taglen, idlen, call->request.sent_at);
	if (m->payload == NULL && !m->too_large) {
		loader_add(a->loader, d);
		ack_ask_body(a, d);
	}
	return d;
}

/* -- the fetch -------------------------------------------------------------- */

static void
ack_finish_fetch(struct ack *a, enum fetch_status status, const char *cause)
{
	struct fetched f = {
		.got = a->got, .status = status, .cause = cause
	};

	a->asked = 0;
	a->got = 0;
	ack_wake(a);
	a->queue.events->fetched(&f, a->queue.arg);
}

static void
ack_hand_out(struct ack *a)
{
	struct delivery *d;

	while (a->got < a->asked && (d = ledger_found(a->ledger)) != NULL) {
		ledger_move(a->ledger, d, DELIVERY_IN_HAND);
		a->got++;
		a->queue.events->deliver(d->msg, a->queue.arg);
	}
	if (ledger_is_unsure(a->ledger))
		ack_renew_all(a);
}

/* The limit of the fleet that has kept messages back; NULL: none. */
static const char *
ack_saw_limit(struct watcher_popped *p, const struct redisReply *limited)
{
	const char *text = reply_str(limited, NULL);

	if (text == NULL || text[0] == '\0' || (!p->waiting && !p->due))
		return NULL;
	p->full = strcmp(text, "fleet") == 0;
	if (p->full)
		return "fleet";
	p->rate_wait = ack_usec(reply_double(limited, 0)) + MSEC;
	return "rate";
}

/* What a pop found out about the next one; and which limit cut it, or NULL. */
static const char *
ack_popped_state(struct ack *a, const struct redisReply *reply, const char *status)
{
	double now = ack_saw_now(a, reply_at(reply, 1));
	struct watcher_popped p = {
		.waiting = reply_int(reply_at(reply, 2), 0) > 0,
		.due = ack_saw_due(a, now, reply_at(reply, 3), true),
		.late = strcmp(status, "late") == 0,
		.paused = strcmp(status, "paused") == 0,
	};
	struct tick_report report = {
		.dropped = (unsigned)reply_int(reply_at(reply, 4), 0)
	};
	const char *limited = ack_saw_limit(&p, reply_at(reply, 5));
	bool changed;

	p.any = !p.paused && reply_len(reply) >= POP_HEAD + MESSAGE_ELEMENTS;
	changed = watcher_popped(a->watcher, &p);
	if (report.dropped > 0)
		a->queue.events->ticked(&report, a->queue.arg);
	if (changed)
		a->queue.events->paused(p.paused,
		    p.paused ? reply_str(reply_at(reply, POP_HEAD), NULL) : NULL, a->queue.arg);
	return limited;
}

/* What the pop may have taken all the same is asked for as if its reply were lost. */
static void
ack_pop_refused(struct ack *a, const struct redisReply *reply)
{
	enum reply_error e = reply_error(reply);
	char text[REPLY_CAUSE];

	if (e == REPLY_ELSEWHERE) {
		pops_refused(a->pops, e, NULL);
		(void)ack_failed(a, ACK_POP, reply);
		ack_finish_fetch(a, FETCH_DOWN, NULL);
		return;
	}
	pops_refused(a->pops, e, reply_cause(reply, text, sizeof(text)));
	watcher_pop_refused(a->watcher);
	ack_ask(a);
	ack_finish_fetch(a, FETCH_ERROR, pops_error(a->pops));
}

/* status now waiting due dropped limited, then messages (or, paused: why ttl) */
static void
ack_pop_answered(struct ack *a, struct call *call, const struct redisReply *reply)
{
	const char *status = reply_str(reply_at(reply, 0), NULL), *limited;
	size_t i;

	if (status == NULL || reply_len(reply) < POP_HEAD) {
		ack_pop_refused(a, reply);
		return;
	}
	if (strcmp(status, "paused") == 0) {
		pops_replied(a->pops, false);
		(void)ack_popped_state(a, reply, status);
		ack_finish_fetch(a, FETCH_PAUSED, NULL);
		return;
	}
	for (i = POP_HEAD; i + MESSAGE_ELEMENTS <= reply_len(reply); i += MESSAGE_ELEMENTS)
		(void)ack_take(a, call, reply, i);
	pops_replied(a->pops, i > POP_HEAD);
	limited = ack_popped_state(a, reply, status);
	if (!a->closing)
		ack_hand_out(a);
	ack_finish_fetch(a, limited != NULL ? FETCH_LIMITED : FETCH_OK, limited);
}

static void
ack_popped(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	if (answer == CONN_REPLY) {
		ack_pop_answered(a, call, reply);
		return;
	}
	pops_lost(a->pops, answer == CONN_LOST);
	watcher_saw_work(a->watcher);
	ack_finish_fetch(a, FETCH_DOWN, NULL);
}

/* Slots that neither messages in hand nor refused results have. */
static unsigned
ack_free_slots(const struct ack *a)
{
	unsigned most = config_most(a->cfg);
	unsigned refused = ledger_refused(a->ledger);
	unsigned used = ledger_count(a->ledger, DELIVERY_LOADING) +
	    ledger_count(a->ledger, DELIVERY_IN_HAND) + refused;

	if (refused == 0)
		return UINT_MAX;
	return used < most ? most - used : 0;
}

bool
ack_is_full(const struct ack *a)
{
	return ack_free_slots(a) == 0;
}

static void
ack_pop(struct ack *a, unsigned n)
{
	struct call *call = ack_call_new(a, ACK_POP, ack_popped);
	const struct pop_terms terms = {
		.n = n, .turn = a->fetch_turn, .inline_max = ack_inline(a),
		.fleet_concurrency = a->cfg->fleet_concurrency, .gap = a->gap,
		.timeout = a->env->redis->timeout,
		.redis_now = conn_redis_time(a->env->conn),
	};
	struct words w = { 0 };

	ledger_expect(a->ledger);
	ack_keys(a, call, &w);
	pops_begin(a->pops, &terms, &w);
	ack_words(a, call, &w);
	ack_send(a, call, &w);
}

/* Popped, and not to be handed out yet. */
static unsigned
ack_unready(const struct ack *a)
{
	return ledger_count(a->ledger, DELIVERY_LOADING) + ledger_count(a->ledger, DELIVERY_FOUND);
}

/* A fetch pops no more than it asks for beside those that are not ready. */
static bool
ack_has_no_room(struct ack *a)
{
	bool no_room = a->asked <= ack_unready(a);

	a->no_room_at = ledger_departures(a->ledger);
	watcher_set_no_room(a->watcher, no_room);
	return no_room;
}

/* Nothing was found, or nothing can be asked for now. */
static void
ack_cannot_pop(struct ack *a)
{
	if (!ack_is_up(a) || pops_error(a->pops) == NULL) {
		watcher_saw_work(a->watcher);
		ack_finish_fetch(a, FETCH_DOWN, NULL);
		return;
	}
	watcher_poll(a->watcher);
	ack_finish_fetch(a, FETCH_ERROR, pops_error(a->pops));
}

void
ack_fetch_step(struct ack *a)
{
	unsigned n, room = ack_free_slots(a);

	if (a->asked == 0 || pops_is_sent(a->pops))
		return;
	if (!a->closing)
		ack_hand_out(a);
	if (a->got > 0 || a->closing || ack_has_no_room(a))
		ack_finish_fetch(a, FETCH_OK, NULL);
	else if (!ack_is_up(a) || ack_is_unsure(a))
		ack_cannot_pop(a);
	else if (room == 0)
		ack_finish_fetch(a, FETCH_LIMITED, "results");
	else {
		n = a->asked - ack_unready(a);
		if (n > ACK_POP_MAX)
			n = ACK_POP_MAX;
		ack_pop(a, n < room ? n : room);
	}
}

/* -- unknown outcomes ------------------------------------------------------- */

/* After an error of the pop the queue is suspended, and that says it. */
static void
ack_mine_refused(struct ack *a, struct pop_call *pop, const struct redisReply *reply)
{
	if (pops_error(a->pops) == NULL || reply_error(reply) == REPLY_ELSEWHERE)
		(void)ack_failed(a, ACK_MINE, reply);
	pops_not_answered(a->pops, pop, ledger_patience(a->ledger));
}

enum { MINE_NOW, MINE_FROM, MINE_OFFSET, MINE_TOOK, MINE_HEAD };	/* then messages */
static const char ack_mine_form[] = { FIELD_NUMBER, FIELD_STR, FIELD_INT, FIELD_INT, 0 };

static void
ack_told_mine(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct mine_page page = { .from = "" };
	struct delivery *d;
	const char *token;
	size_t i;

	if (answer != CONN_REPLY) {
		pops_not_told(a->pops, call->pop);
		return;
	}
	if (!reply_has(reply, 0, ack_mine_form)) {
		ack_mine_refused(a, call->pop, reply);
		return;
	}
	ack_complain(a, ACK_MINE, NULL);
	ack_saw_now(a, reply_at(reply, MINE_NOW));
	for (i = MINE_HEAD; i + MESSAGE_ELEMENTS <= reply_len(reply); i += MESSAGE_ELEMENTS) {
		token = reply_str(reply_at(reply, i + 2), NULL);
		if ((token != NULL && ledger_has_token(a->ledger, token)) ||
		    (d = ack_take(a, call, reply, i)) == NULL)
			continue;
		/* mine finds them by tag: they are run in the order of the pop. */
		ledger_sort(a->ledger, d);
		page.found = true;
	}
	page.took = reply_int_at(reply, MINE_TOOK) != 0;
	page.from = reply_str_at(reply, MINE_FROM);
	page.offset = reply_int_at(reply, MINE_OFFSET);
	pops_told(a->pops, call->pop, &page);
	if (page.found)
		ack_renew_all(a);
	ack_ask(a);
	ack_wake(a);
}

/* Asks what pops of unknown outcome have taken. */
void
ack_ask(void *arg)
{
	struct ack *a = arg;
	struct call *call;
	struct pop_call *pop;

	while (ack_is_up(a) && (pop = pops_to_ask(a->pops)) != NULL) {
		struct words w = { 0 };

		call = ack_call_new(a, ACK_MINE, ack_told_mine);
		call->pop = pop;
		ack_keys(a, call, &w);
		pops_add_question(a->pops, pop, ack_inline(a), &w);
		ack_words(a, call, &w);
		ack_send(a, call, &w);
	}
}
