/*
 * Pops.  At most one is on its way.  What a pop whose reply was lost has taken
 * is asked for (mine) as soon as Redis is back, and before the next pop; and,
 * because a server may find the old connection's pop after the new one's
 * question, once more when the pop's deadline has passed.  Whatever is found
 * waits as FOUND for the next fetch, its lease renewed.
 */
#include "queue/ack_private.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "policy/backoff.h"
#include "policy/rate.h"

#define POP_HEAD	6		/* elements of a pop's reply before the first message */
#define MESSAGE_ELEMENTS 6
#define MINE_PAGE	1000
#define MINE_SLACK	1.0		/* seconds: clocks drift */

/* Tokens must never come again, not even after a queue was closed and opened. */
static uint64_t	ack_sequence;

uint64_t
ack_next_call(void)
{
	return ++ack_sequence;
}

void
ack_saw_call(struct ack *a, uint64_t number)
{
	if (number > a->prev)
		a->prev = number;
	a->noted = true;
}

static struct doubt *
doubt_new(const struct ack *a)
{
	struct doubt *doubt = xcalloc(1, sizeof(*doubt));

	doubt->number = ack_next_call();
	doubt->name = xasprintf("%s.%" PRIu64, a->instance, doubt->number);
	doubt->sent = clock_mono();
	doubt->since = conn_redis_time(a->env->conn);
	doubt->deadline = doubt->sent + a->env->redis->timeout;
	return doubt;
}

void
ack_doubt_free(struct doubt *doubt)
{
	if (doubt == NULL)
		return;
	free(doubt->name);
	free(doubt);
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
	if (m->payload == NULL && !m->too_large)
		ack_load(a, d);
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

/* Whether an error reply surely came before the script's first write. */
static bool
ack_error_is_early(enum reply_error e)
{
	switch (e) {
	case REPLY_NOSCRIPT:
	case REPLY_TRANSIENT:
	case REPLY_ELSEWHERE:
	case REPLY_REFUSED:
		return true;
	case REPLY_OK:
	case REPLY_DENIED:
	case REPLY_WRONGTYPE:
	case REPLY_OTHER:
		break;
	}
	return false;
}

/* What the pop may have taken all the same is asked for as if its reply were lost. */
static void
ack_pop_refused(struct ack *a, struct call *call, const struct redisReply *reply)
{
	enum reply_error e = reply_error(reply);
	char text[REPLY_CAUSE];

	if (!ack_error_is_early(e)) {
		TAILQ_INSERT_TAIL(&a->doubts, call->doubt, entry);
		call->doubt->deadline = 0;
		call->doubt = NULL;
	}
	if (e == REPLY_ELSEWHERE) {
		(void)ack_failed(a, ACK_POP, reply);
		ack_finish_fetch(a, FETCH_DOWN, NULL);
		return;
	}
	watcher_pop_refused(a->watcher);
	free(a->pop_error);
	a->pop_error = xstrdup(reply_cause(reply, text, sizeof(text)));
	ack_ask(a);
	ack_finish_fetch(a, FETCH_ERROR, a->pop_error);
}

/* status now waiting due dropped limited, then messages (or, paused: why ttl) */
static void
ack_pop_answered(struct ack *a, struct call *call, const struct redisReply *reply)
{
	const char *status = reply_str(reply_at(reply, 0), NULL), *limited;
	size_t i;

	if (status == NULL || reply_len(reply) < POP_HEAD) {
		ack_pop_refused(a, call, reply);
		return;
	}
	free(a->pop_error);
	a->pop_error = NULL;
	if (strcmp(status, "paused") == 0) {
		(void)ack_popped_state(a, reply, status);
		ack_finish_fetch(a, FETCH_PAUSED, NULL);
		return;
	}
	for (i = POP_HEAD; i + MESSAGE_ELEMENTS <= reply_len(reply); i += MESSAGE_ELEMENTS)
		(void)ack_take(a, call, reply, i);
	if (i > POP_HEAD)
		ack_saw_call(a, call->doubt->number);
	limited = ack_popped_state(a, reply, status);
	if (!a->closing)
		ack_hand_out(a);
	ack_finish_fetch(a, limited != NULL ? FETCH_LIMITED : FETCH_OK, limited);
}

static void
ack_popped(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	a->popping = NULL;
	if (answer == CONN_LOST) {
		TAILQ_INSERT_TAIL(&a->doubts, call->doubt, entry);
		call->doubt = NULL;
	}
	if (answer == CONN_REPLY) {
		ack_pop_answered(a, call, reply);
	} else {
		watcher_saw_work(a->watcher);
		ack_finish_fetch(a, FETCH_DOWN, NULL);
	}
	ack_doubt_free(call->doubt);
}

/* The script's word for it; between retries and new messages the pops alternate. */
static const char *
ack_turn_word(struct ack *a, unsigned n)
{
	static const char *const words[] = {
		[TURN_OLDEST] = "new", [TURN_NEWEST] = "newest", [TURN_FEWEST] = "fewest",
		[TURN_LONGEST] = "retry",
	};

	if (a->fetch_turn != TURN_SHARE)
		return words[a->fetch_turn];
	if (a->due_first > 0) {
		a->due_first -= n < a->due_first ? n : a->due_first;
		return "due";
	}
	a->new_first = !a->new_first;
	return a->new_first ? "retry" : "new";
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
	double timeout = (double)a->env->redis->timeout / (double)SEC;
	struct args w = { 0 };

	call->doubt = a->popping = doubt_new(a);
	ledger_expect(a->ledger);
	ack_keys(a, call, &w);
	args_fmt(&w, "%u", n);
	args_fmt(&w, "%d", ACK_POP_BYTES);
	args_fmt(&w, "%" PRIu64, ack_inline(a));
	args_str(&w, call->doubt->name);
	args_fmt(&w, "%.6f", call->doubt->since > 0 ? call->doubt->since + timeout : 0);
	args_fmt(&w, "%d", a->cfg->fleet_concurrency);
	args_fmt(&w, "%.9f", a->gap);
	args_fmt(&w, "%.9f", RATE_SLACK);
	args_str(&w, ack_turn_word(a, n));
	args_fmt(&w, "%" PRIu64, a->prev);
	ack_words(a, call, &w);
	ack_send(a, call, &w);
}

/* Nothing was found, or nothing can be asked for now. */
static void
ack_cannot_pop(struct ack *a)
{
	if (!ack_is_up(a) || a->pop_error == NULL) {
		watcher_saw_work(a->watcher);
		ack_finish_fetch(a, FETCH_DOWN, NULL);
		return;
	}
	watcher_poll(a->watcher);
	ack_finish_fetch(a, FETCH_ERROR, a->pop_error);
}

void
ack_fetch_step(struct ack *a)
{
	unsigned n, room = ack_free_slots(a);

	if (a->asked == 0 || a->popping != NULL)
		return;
	if (!a->closing)
		ack_hand_out(a);
	if (a->got > 0 || a->closing || ack_has_no_room(a))
		ack_finish_fetch(a, FETCH_OK, NULL);
	else if (!ack_is_up(a) || ack_in_doubt(a))
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

/* -- pops in doubt ---------------------------------------------------------- */

bool
ack_in_doubt(const struct ack *a)
{
	const struct doubt *doubt;

	if (settler_is_rescuing(a->settler))
		return true;
	TAILQ_FOREACH(doubt, &a->doubts, entry) {
		if (!doubt->answered)
			return true;
	}
	return false;
}

static bool
ack_doubt_is_late(const struct ack *a, const struct doubt *doubt)
{
	return doubt != NULL && clock_mono() - doubt->sent >= ledger_renew_interval(a->ledger) / 2;
}

bool
ack_is_late(const struct ack *a)
{
	return !TAILQ_EMPTY(&a->doubts) || ack_doubt_is_late(a, a->popping);
}

static void
ack_add_doubt(const struct doubt *doubt, struct args *w)
{
	args_str(w, doubt->name);
	args_fmt(w, "%.6f", doubt->since > MINE_SLACK ? doubt->since - MINE_SLACK : 0);
}

void
ack_add_unanswered(struct ack *a, struct args *w)
{
	bool late = ack_doubt_is_late(a, a->popping);
	const struct doubt *doubt;
	unsigned n = late ? 1 : 0;

	TAILQ_FOREACH(doubt, &a->doubts, entry)
		n++;
	args_fmt(w, "%u", n);
	if (late)
		ack_add_doubt(a->popping, w);
	TAILQ_FOREACH(doubt, &a->doubts, entry)
		ack_add_doubt(doubt, w);
}

static void	ack_ask_page(struct ack *, struct doubt *);

/* The last page of an answer: done, unless the pop could still run. */
static void
ack_doubt_answered(struct ack *a, struct doubt *doubt)
{
	doubt->from[0] = '\0';
	if (doubt->took && !doubt->found && !doubt->whole) {
		/* Redis' clock was set back: look beyond the time of the pop. */
		doubt->whole = true;
		doubt->since = 0;
		ack_ask_page(a, doubt);
		return;
	}
	doubt->answered = true;
	free(a->pop_error);
	a->pop_error = NULL;
	if (!doubt->found && !doubt->took && clock_mono() < doubt->deadline) {
		ack_ask(a);
		return;
	}
	TAILQ_REMOVE(&a->doubts, doubt, entry);
	ack_doubt_free(doubt);
}

/* now from offset took, then messages */
static void
ack_told_mine(struct ack *a, struct call *call, enum conn_answer answer,
    const struct redisReply *reply)
{
	struct doubt *doubt = call->doubt;
	struct delivery *d;
	const char *from, *token;
	size_t i;

	doubt->asked = false;
	if (answer != CONN_REPLY) {
		doubt->from[0] = '\0';
		return;
	}
	from = reply_str(reply_at(reply, 1), NULL);
	if (from == NULL || reply_len(reply) < 4) {
		doubt->from[0] = '\0';
		/* After an error of the pop the queue is suspended, and that says it. */
		if (a->pop_error == NULL || reply_error(reply) == REPLY_ELSEWHERE)
			(void)ack_failed(a, ACK_MINE, reply);
		timer_set(&a->ask, backoff_delay(100 * MSEC, ledger_patience(a->ledger),
		    ++a->ask_failures, random_unit()));
		return;
	}
	a->ask_failures = 0;
	ack_complain(a, ACK_MINE, NULL);
	ack_saw_now(a, reply_at(reply, 0));
	for (i = 4; i + MESSAGE_ELEMENTS <= reply_len(reply); i += MESSAGE_ELEMENTS) {
		token = reply_str(reply_at(reply, i + 2), NULL);
		if ((token != NULL && ledger_has_token(a->ledger, token)) ||
		    (d = ack_take(a, call, reply, i)) == NULL)
			continue;
		/* mine finds them by tag: they are run in the order of the pop. */
		ledger_sort(a->ledger, d);
		doubt->found = true;
	}
	if (reply_int(reply_at(reply, 3), 0) != 0)
		doubt->took = true;
	if (doubt->found || doubt->took)
		ack_saw_call(a, doubt->number);
	if (doubt->found)
		ack_renew_all(a);
	snprintf(doubt->from, sizeof(doubt->from), "%s", from);
	doubt->offset = reply_int(reply_at(reply, 2), 0);
	if (from[0] != '\0')
		ack_ask_page(a, doubt);
	else
		ack_doubt_answered(a, doubt);
	ack_wake(a);
}

static void
ack_ask_page(struct ack *a, struct doubt *doubt)
{
	struct call *call = ack_call_new(a, ACK_MINE, ack_told_mine);
	struct args w = { 0 };

	call->doubt = doubt;
	doubt->asked = true;
	ack_keys(a, call, &w);
	args_str(&w, doubt->name);
	if (doubt->from[0] != '\0')
		args_str(&w, doubt->from);
	else
		args_fmt(&w, "%.6f", doubt->since > MINE_SLACK ? doubt->since - MINE_SLACK : 0);
	args_fmt(&w, "%" PRId64, doubt->from[0] != '\0' ? doubt->offset : 0);
	args_fmt(&w, "%" PRIu64, ack_inline(a));
	args_fmt(&w, "%d", MINE_PAGE);
	ack_words(a, call, &w);
	ack_send(a, call, &w);
}

void
ack_ask(struct ack *a)
{
	struct doubt *doubt;
	usec_t now = clock_mono(), left;

	if (!ack_is_up(a))
		return;
	TAILQ_FOREACH(doubt, &a->doubts, entry) {
		if (doubt->asked)
			continue;
		left = doubt->deadline + 100 * MSEC - now;
		if (!doubt->answered || left <= 0)
			ack_ask_page(a, doubt);
		else if (!timer_is_set(&a->ask) || timer_left(&a->ask) > left)
			timer_set(&a->ask, left);
	}
}

void
ack_ask_timer(void *arg)
{
	ack_ask(arg);
}
