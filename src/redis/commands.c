/*
 * The commands of a connection: sends them, and finds the command of each reply.  The
 * head of conn.c lists hiredis' traps.
 *
 * A call that Redis answers with NOSCRIPT is sent again with the script's text, after
 * the commands that were sent meanwhile; the script is loaded for later calls.
 *
 * On a subscriber the list of pending commands holds the SUBSCRIBEs that are
 * not confirmed yet: the server confirms them in their order.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>
#include <hiredis/async.h>

#include "redis/conn_private.h"
#include "redis/reply.h"
#include "redis/slots.h"

/* -- answering ---------------------------------------------------------------- */

void
conn_answer(struct conn *c, struct pending *p, enum conn_answer answer,
    const struct redisReply *r)
{
	conn_answer_fn *fn = p->fn;
	void *arg = p->arg;

	TAILQ_REMOVE(&c->pending, p, entry);
	c->outstanding -= !p->own;
	pending_free(p);
	if (fn != NULL)
		fn(answer, r, arg);
}

/* The first command that will get no reply, unless an older one of a caller still waits. */
static struct pending *
conn_answerable(struct conn *c)
{
	struct pending *p;

	TAILQ_FOREACH(p, &c->pending, entry) {
		if (p->fate != PENDING_SENT)
			return p;
		if (!p->own)
			break;
	}
	return NULL;
}

void
conn_flush(struct conn *c)
{
	struct pending *p;

	while ((p = conn_answerable(c)) != NULL)
		conn_answer(c, p, p->fate == PENDING_LOST ? CONN_LOST : CONN_NOT_SENT, NULL);
}

/* Whether the greeting is over. */
static bool
is_up(const struct conn *c)
{
	return c->ac != NULL && (c->state == CONN_READY || c->state == CONN_CLOSING);
}

/* -- sending ------------------------------------------------------------------ */

/* Gives a command to hiredis; fn is conn_reply() or conn_message(). */
void
conn_send(struct conn *c, struct pending *p, redisCallbackFn *fn, const struct words *w)
{
	p->since = clock_mono();
	p->fate = PENDING_SENT;
	TAILQ_INSERT_TAIL(&c->pending, p, entry);
	if (redisAsyncCommandArgv(c->ac, fn, NULL, w->n, w->v, w->len) != REDIS_OK) {
		p->fate = PENDING_NOT_SENT;
		conn_want_turn(c);
		return;
	}
	p->end = hiredis_loop_produced(c->ac);
	if (is_up(c) && !timer_is_set(&c->timer))
		conn_look_begin(c);
}

/* A command of the connection's own; its words are NULL-terminated. */
static void
conn_send_own(struct conn *c, redisCallbackFn *cb, conn_answer_fn *fn, const char *word, ...)
{
	struct words w = { .n = 0 };
	va_list ap;

	va_start(ap, word);
	words_list(&w, word, ap);
	va_end(ap);
	conn_send(c, pending_new(fn, c, true), cb, &w);
	words_done(&w);
}

/* Whether callers' commands can be sent now.  If not, p will be NOT_SENT. */
static bool
conn_accepts(struct conn *c, struct pending *p)
{
	c->outstanding++;
	if (c->state == CONN_READY && !(c->flags & CONN_SUBSCRIBER))
		return true;
	p->fate = PENDING_NOT_SENT;
	TAILQ_INSERT_TAIL(&c->pending, p, entry);
	conn_want_turn(c);
	return false;
}

struct pending *
conn_command(struct conn *c, conn_answer_fn *fn, void *arg, const struct words *w)
{
	struct pending *p = pending_new(fn, arg, false);

	if (conn_accepts(c, p)) {
		if (c->redirected != NULL)
			pending_keep(p, w);
		conn_send(c, p, conn_reply, w);
	}
	return p;
}

void
conn_words(struct conn *c, conn_answer_fn *fn, void *arg, ...)
{
	struct words w = { .n = 0 };
	const char *first;
	va_list ap;

	va_start(ap, arg);
	first = va_arg(ap, const char *);
	words_list(&w, first, ap);
	va_end(ap);
	(void)conn_command(c, fn, arg, &w);
	words_done(&w);
}

static void
conn_cached(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	const struct conn *c = arg;

	if (answer == CONN_REPLY && reply_error(r) != REPLY_OK && c->caching_refused != NULL)
		c->caching_refused(r, c->caching_arg);
}

void
conn_set_caching(struct conn *c, void (*refused)(const struct redisReply *, void *), void *arg)
{
	c->caching_refused = refused;
	c->caching_arg = arg;
}

/* Sends the words that p keeps; before them CLIENT CACHING or ASKING, if p needs it. */
static void
conn_send_kept(struct conn *c, struct pending *p)
{
	static const char *v[] = { "CLIENT", "CACHING", "YES" };
	static size_t len[] = { 6, 7, 3 };
	static const struct words caching = { .v = v, .len = len, .n = 3 };

	if (p->asking)
		conn_send_own(c, conn_reply, NULL, "ASKING", NULL);
	if (p->caching)
		conn_send(c, pending_new(conn_cached, c, true), conn_reply, &caching);
	conn_send(c, p, conn_reply, &p->words);
}

struct pending *
conn_script(struct conn *c, bool caching, const struct script *script, conn_answer_fn *fn,
    void *arg, const struct words *w)
{
	struct pending *p = pending_new(fn, arg, false);

	if (conn_accepts(c, p)) {
		pending_set_script(p, script, w);
		p->caching = caching;
		conn_send_kept(c, p);
	}
	return p;
}

static void
conn_loaded(enum conn_answer answer UNUSED, const struct redisReply *r UNUSED, void *arg)
{
	struct conn *c = arg;

	c->loading = NULL;
}

/* NOSCRIPT: sends this call again, with its text, and loads the script for later ones. */
static void
conn_send_text(struct conn *c, struct pending *p)
{
	const struct script *s = p->script;

	TAILQ_REMOVE(&c->pending, p, entry);
	pending_use_text(p);
	conn_send_kept(c, p);
	if (c->loading == s)
		return;
	c->loading = s;
	conn_send_own(c, conn_reply, conn_loaded, "SCRIPT", "LOAD", s->text, NULL);
}

/* -- a cluster ---------------------------------------------------------------- */

void
conn_set_redirected(struct conn *c, conn_redirected_fn *fn, void *arg)
{
	c->redirected = fn;
	c->redirected_arg = arg;
}

static bool
conn_word_is(const struct pending *p, int i, const char *text)
{
	return i < p->words.n && p->words.len[i] == strlen(text) &&
	    memcmp(p->words.v[i], text, p->words.len[i]) == 0;
}

/* The index of the first key among the words; see pending.h. */
static int
conn_first_key(const struct pending *p)
{
	return conn_word_is(p, 0, "EVALSHA") || conn_word_is(p, 0, "EVAL") ? 3 : 1;
}

/* The slot of the first key; 0: there is no key. */
static unsigned
conn_slot(const struct pending *p)
{
	int key = conn_first_key(p);

	return p->words.n > key ? slot_of(p->words.v[key], p->words.len[key]) : 0;
}

/*
 * Whether it has one key.  rqd sends a cluster no other commands with several keys than
 * scripts.
 */
static bool
conn_has_one_key(const struct pending *p)
{
	return conn_first_key(p) == 1 || conn_word_is(p, 2, "1");
}

/*
 * Passes the command to another connection.  That one does not arm keys: CACHING and
 * ASKING would each have to come right before the command.
 */
static void
conn_hand_over(struct conn *c, struct pending *p, struct conn *to)
{
	TAILQ_REMOVE(&c->pending, p, entry);
	c->outstanding--;
	to->outstanding++;
	p->asking = true;
	p->caching = false;
	conn_send_kept(to, p);
}

/* The command did not run; busy. */
static void
conn_redirect(struct conn *c, struct pending *p, const struct redisReply *r)
{
	struct conn *to = c->redirected(reply_text(r), conn_slot(p),
	    !p->asking && conn_has_one_key(p), c->redirected_arg);

	if (to != NULL)
		conn_hand_over(c, p, to);
	else
		conn_answer(c, p, CONN_NOT_SENT, NULL);
}

/* -- replies ------------------------------------------------------------------ */

/*
 * After a reply: stops the timer if the connection is idle, and answers the commands
 * that can be answered now.
 */
static void
conn_after_reply(struct conn *c)
{
	if (is_up(c) && pending_oldest(&c->pending) == NULL) {
		timer_stop(&c->timer);
		c->grace = false;
	}
	if (conn_answerable(c) != NULL ||
	    (c->state == CONN_CLOSING && TAILQ_EMPTY(&c->pending)))
		conn_want_turn(c);
}

/* The reply to the oldest command; busy. */
static void
conn_take(struct conn *c, struct pending *p, const struct redisReply *r)
{
	conn_received_reply(c);
	if (!p->own && !c->worked)
		c->worked = reply_error(r) == REPLY_OK;
	if (c->state == CONN_GREETING) {
		conn_answer(c, p, CONN_REPLY, r);
		conn_greet(c, r);
	} else if (p->script != NULL && !p->eval && reply_error(r) == REPLY_NOSCRIPT) {
		conn_send_text(c, p);
	} else if (c->redirected != NULL && !p->own && reply_is_redirection(r)) {
		conn_redirect(c, p, r);
	} else {
		conn_answer(c, p, CONN_REPLY, r);
	}
	if (!c->freed)
		conn_after_reply(c);
}

/* hiredis' callback.  r is NULL while the context dies; ac->data is NULL then. */
void
conn_reply(struct redisAsyncContext *ac, void *r, void *unused UNUSED)
{
	struct conn *c = ac->data;
	struct pending *p;

	if (c == NULL || r == NULL)
		return;
	c->busy++;
	conn_flush(c);
	if (!c->freed && c->ac == ac && (p = pending_oldest(&c->pending)) != NULL)
		conn_take(c, p, r);
	conn_leave(c);
}

/* -- subscriptions ------------------------------------------------------------ */

/* One channel is confirmed; busy.  Ignored: no SUBSCRIBE is the oldest command. */
static void
conn_confirm(struct conn *c)
{
	struct pending *p = pending_oldest(&c->pending);

	if (p == NULL || p->of_slot != PENDING_NO_SLOT)
		return;
	conn_received_reply(c);
	conn_answer(c, p, CONN_REPLY, NULL);
	if (c->state == CONN_GREETING && c->greeted && pending_oldest(&c->pending) == NULL)
		conn_ready(c);
	if (!c->freed)
		conn_after_reply(c);
}

/* A message: calls all subscriptions of this name; busy. */
static void
conn_dispatch(struct conn *c, bool pattern, const struct redisReply *name,
    const struct redisReply *channel, const struct redisReply *payload)
{
	size_t name_len, channel_len;
	const char *name_str = reply_str(name, &name_len);
	const char *channel_str = reply_str(channel, &channel_len);
	struct conn_sub *s;

	if (name_str == NULL || channel_str == NULL)
		return;
	conn_received_reply(c);
	TAILQ_FOREACH(s, &c->subs, entry) {
		if (s->pattern == pattern && s->len == name_len &&
		    memcmp(s->name, name_str, name_len) == 0)
			s->fn(channel_str, channel_len, payload, s->arg);
		if (c->freed)
			break;
	}
}

/* The oldest command is answered, and is one on the channel of a slot; busy. */
static void
conn_take_slot(struct conn *c, const struct redisReply *r)
{
	struct pending *p = pending_oldest(&c->pending);

	if (p == NULL || p->of_slot == PENDING_NO_SLOT)
		return;
	conn_received_reply(c);
	conn_answer(c, p, CONN_REPLY, r);
	if (!c->freed)
		conn_after_reply(c);
}

/* Either SUNSUBSCRIBE is answered, or the slot leaves the node; busy. */
static void
conn_end_slot(struct conn *c, const struct redisReply *r)
{
	const struct pending *p = pending_oldest(&c->pending);

	if (p != NULL && p->of_slot == PENDING_LEAVE && p->slot == c->rules.slot) {
		conn_take_slot(c, r);
		return;
	}
	conn_received_reply(c);
	if (c->slot_ended != NULL)
		c->slot_ended(c->rules.slot, c->slot_arg);
}

/* See guard.c: what the guard has made a status is an error again. */
static void
conn_refuse_slot(struct conn *c, struct redisReply *r)
{
	if (r->type != REDIS_REPLY_STATUS)
		return;
	r->type = REDIS_REPLY_ERROR;
	conn_take_slot(c, r);
}

bool
conn_may_refuse(void *arg)
{
	const struct conn *c = arg;
	const struct pending *p = pending_oldest(&c->pending);

	return c->state == CONN_READY && (p == NULL || p->of_slot != PENDING_NO_SLOT);
}

/* hiredis' callback of a subscriber. */
static void
conn_message(struct redisAsyncContext *ac, void *reply, void *unused UNUSED)
{
	struct redisReply *r = reply;
	struct conn *c = ac->data;
	const char *kind = reply_str(reply_at(r, 0), NULL);

	if (c == NULL || r == NULL)
		return;
	c->busy++;
	conn_flush(c);
	if (c->freed || c->ac != ac)
		;
	else if (kind == NULL)
		conn_refuse_slot(c, r);
	else if (strcmp(kind, "message") == 0)
		conn_dispatch(c, false, reply_at(r, 1), reply_at(r, 1), reply_at(r, 2));
	else if (strcmp(kind, "pmessage") == 0)
		conn_dispatch(c, true, reply_at(r, 1), reply_at(r, 2), reply_at(r, 3));
	else if (strcmp(kind, "subscribe") == 0 || strcmp(kind, "psubscribe") == 0)
		conn_confirm(c);
	else if (strcmp(kind, "ssubscribe") == 0)
		conn_take_slot(c, r);
	else if (strcmp(kind, "sunsubscribe") == 0)
		conn_end_slot(c, r);
	conn_leave(c);
}

struct pending *
conn_subscribe_slot(struct conn *c, bool on, const char *channel, conn_answer_fn *fn, void *arg)
{
	struct pending *p = pending_new(fn, arg, true);
	struct words w = { .n = 0 };

	p->of_slot = on ? PENDING_JOIN : PENDING_LEAVE;
	p->slot = slot_of(channel, strlen(channel));
	if (c->state != CONN_READY) {
		p->fate = PENDING_NOT_SENT;
		TAILQ_INSERT_TAIL(&c->pending, p, entry);
		conn_want_turn(c);
		return p;
	}
	words_add(&w, on ? "SSUBSCRIBE" : "SUNSUBSCRIBE");
	words_add(&w, channel);
	conn_send(c, p, conn_message, &w);
	words_done(&w);
	return p;
}

void
conn_set_slot_ended(struct conn *c, void (*ended)(unsigned, void *), void *arg)
{
	c->slot_ended = ended;
	c->slot_arg = arg;
	c->rules.slots_as = TAILQ_FIRST(&c->subs)->name;
}

void
conn_send_subscribe(struct conn *c, const struct conn_sub *s)
{
	conn_send_own(c, conn_message, NULL, s->pattern ? "PSUBSCRIBE" : "SUBSCRIBE", s->name,
	    NULL);
}

bool
conn_has_subscription(bool pattern, const char *name, size_t len, void *arg)
{
	const struct conn *c = arg;
	const struct conn_sub *s;

	TAILQ_FOREACH(s, &c->subs, entry) {
		if (s->pattern == pattern && s->len == len && memcmp(s->name, name, len) == 0)
			return true;
	}
	return false;
}

void
conn_subscribe(struct conn *c, bool pattern, const char *name, conn_message_fn *fn, void *arg)
{
	struct conn_sub *s = NEW(struct conn_sub, .name = xstrdup(name), .len = strlen(name),
	    .pattern = pattern, .fn = fn, .arg = arg);

	TAILQ_INSERT_TAIL(&c->subs, s, entry);
	if (c->state == CONN_READY || (c->state == CONN_GREETING && c->greeted))
		conn_send_subscribe(c, s);
}

/* If a PING returns another word, replies are out of step with commands. */
static void
conn_probed(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct conn *c = arg;
	const char *word = reply_str(reply, NULL);

	c->probing = false;
	if (answer == CONN_REPLY && reply_error(reply) == REPLY_OK &&
	    (word == NULL || strcmp(word, c->probe) != 0))
		conn_reset(c, "a reply belongs to another command");
}

void
conn_probe(struct conn *c)
{
	if (c->state != CONN_READY || c->probing)
		return;
	if (!(c->flags & CONN_SUBSCRIBER)) {
		c->probing = true;
		snprintf(c->probe, sizeof(c->probe), "rqd-%" PRIu64, ++c->probes);
		conn_send_own(c, conn_reply, conn_probed, "PING", c->probe, NULL);
	} else if (pending_oldest(&c->pending) == NULL && !TAILQ_EMPTY(&c->subs))
		conn_send_subscribe(c, TAILQ_FIRST(&c->subs));
}

