/*
 * Commands to the masters of a cluster; see masters.h.
 *
 * A call is a command and its reply.  masters_set_state() alone changes its state:
 *
 *	            written to a master's connection
 *	CALL_WAITS ---------------------------------> CALL_SENT ----> CALL_ANSWERED
 *	 | ^                                            | |
 *	 | '---- moved, or to be sent again later ------' |  the connection is lost
 *	 '----------------> CALL_LOST <-----------------'
 *	   no master for MASTERS_RETRY
 *
 * Each master answers its own calls in their order.  masters_next() returns the replies
 * in the order of all calls, so a call may be answered before its turn.
 *
 * Without a cluster there is one connection, and no calls: blocking_conn.c does it all.
 */
#include "redis/masters.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/list.h"
#include "redis/blocking_conn.h"
#include "redis/pending.h"
#include "redis/slots.h"

#define PAUSE		(100 * MSEC)	/* before a command is sent again */
#define MOVES_MAX	5		/* redirections in a row without a pause */

enum call_state { CALL_WAITS, CALL_SENT, CALL_ANSWERED, CALL_LOST };

struct masters_call {
	TAILQ_ENTRY(masters_call) entry;	/* in masters.calls */
	TAILQ_ENTRY(masters_call) sent;		/* CALL_SENT: in master.sent */
	enum call_state	 state;
	struct words	 words;		/* owned */
	int		 slot;		/* of its keys; -1: it has none */
	bool		 one_key;
	struct master	*at;		/* where it was or will be sent; NULL: by its slot */
	const struct master *failed;	/* the master that caused the trouble; NULL: none */
	bool		 asking;	/* ASKING goes before it, and is answered first */
	unsigned	 moves;		/* since the last pause */
	usec_t		 due;		/* CALL_WAITS: not before */
	usec_t		 until;		/* mono; the end of MASTERS_RETRY; 0: no trouble yet */
	bool		 unreachable;	/* no master can be reached for it */
	struct redisReply *reply;	/* CALL_ANSWERED */
	char		*cause;		/* why it was not sent, or is lost */
};

TAILQ_HEAD(masters_calls, masters_call);

struct master {
	char		*address;
	char		*servers[2];	/* the address alone */
	struct redis_options opt;
	struct blocking_conn *conn;	/* NULL: not connected */
	usec_t		 failed;	/* mono; of the last failed connect; 0: it worked */
	char		*cause;		/* why */
	struct masters_calls sent;
};

struct masters {
	const struct redis_options *opt;
	const char	*name;
	bool		 cluster;
	struct master	**list;		/* all masters used so far; without a cluster one */
	size_t		 n;
	struct slots	 slots;
	usec_t		 refreshed;	/* mono; when the table was last asked for */
	struct masters_calls calls;	/* in order */
	unsigned	 chosen;	/* a slot: its master gets commands without a key */
	const struct master *last;	/* NULL: none yet */
};

/* -- connections ---------------------------------------------------------------------- */

/* The master of that address, which is not connected if it is new. */
static struct master *
masters_find(struct masters *m, const char *address)
{
	struct master *new;

	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->list[i]->address, address) == 0)
			return m->list[i];
	new = xcalloc(1, sizeof(*new));
	new->address = new->servers[0] = xstrdup(address);
	new->opt = *m->opt;
	new->opt.servers = new->servers;
	new->opt.clusters = NULL;
	TAILQ_INIT(&new->sent);
	return *APPEND(m->list, m->n) = new;
}

/* Keeps the cause of a failure, without the address, which every error names. */
static void
master_fail(struct master *a, char *why)
{
	size_t len = strlen(a->address);
	bool named = strncmp(why, a->address, len) == 0 && strncmp(why + len, ": ", 2) == 0;

	xreplace(&a->cause, named ? why + len + 2 : why);
	a->failed = clock_mono();
	free(why);
}

/*
 * Connects, but not again soon after a failure: many commands for a dead master cost
 * one attempt.
 */
static int
master_connect(struct masters *m, struct master *a, char **cause)
{
	char *why = NULL;

	m->last = a;
	if (a->conn != NULL)
		return 0;
	if (a->failed == 0 || clock_mono() - a->failed >= PAUSE) {
		a->failed = 0;
		if ((a->conn = blocking_open(&a->opt, m->name, &why)) != NULL)
			return 0;
		master_fail(a, why);
	}
	return util_cause(cause, "%s", a->cause);
}

/* Fills the table of slots from one node's answer; a replica will do. */
static int
masters_ask(struct masters *m, struct master *node, char **cause)
{
	bool open = node->conn != NULL;
	struct redisReply *reply;
	struct words w = { .n = 0 };
	int rc;

	node->opt.any_role = true;
	rc = master_connect(m, node, cause);
	node->opt.any_role = false;
	if (rc == -1)
		return -1;
	words_add(&w, "CLUSTER");
	words_add(&w, "SLOTS");
	reply = blocking_command(node->conn, cause, &w);
	rc = reply == NULL ? -1 : slots_fill(&m->slots, reply, node->address, cause);
	words_done(&w);
	if (!open || reply == NULL) {
		blocking_close(node->conn);
		node->conn = NULL;
	}
	blocking_reply_free(reply);
	return rc;
}

static bool
master_is_idle(const struct master *a)
{
	return TAILQ_EMPTY(&a->sent);
}

/* Returns true if the node has answered.  A node whose replies are due cannot be asked. */
static bool
masters_try(struct masters *m, struct master *node, struct buf *causes)
{
	char *why = NULL;

	if (!master_is_idle(node))
		return false;
	if (masters_ask(m, node, &why) == 0)
		return true;
	buf_printf(causes, "%s%s: %s", causes->len > 0 ? "; " : "", node->address, why);
	free(why);
	return false;
}

/*
 * Tries the connected nodes first, then the configured ones, then the rest, until one
 * answers.
 */
static bool
masters_try_all(struct masters *m, struct buf *causes)
{
	struct master *node;

	for (size_t i = 0; i < m->n; i++)
		if (m->list[i]->conn != NULL && masters_try(m, m->list[i], causes))
			return true;
	for (char **seed = m->opt->clusters; *seed != NULL; seed++) {
		node = masters_find(m, *seed);
		if (node->conn == NULL && masters_try(m, node, causes))
			return true;
	}
	for (size_t i = 0; i < m->n; i++)
		if (m->list[i]->conn == NULL && m->list[i]->failed == 0 &&
		    masters_try(m, m->list[i], causes))
			return true;
	return false;
}

static int
masters_refresh(struct masters *m, char **cause)
{
	struct buf causes = BUF_INIT;
	int rc = 0;

	m->refreshed = clock_mono();
	if (!masters_try_all(m, &causes))
		rc = util_cause(cause, "%s", causes.len > 0 ? buf_str(&causes) :
		    "no node answers");
	buf_done(&causes);
	return rc;
}

static void
master_free(struct master *a)
{
	blocking_close(a->conn);
	free(a->address);
	free(a->cause);
	free(a);
}

static struct masters *
masters_open_one(struct masters *m, char **cause)
{
	struct master *one = *APPEND(m->list, m->n) = xcalloc(1, sizeof(*one));

	TAILQ_INIT(&one->sent);
	m->last = one;
	one->conn = blocking_open(m->opt, m->name, cause);
	if (one->conn != NULL) {
		one->address = xstrdup(blocking_address(one->conn));
		return m;
	}
	masters_close(m);
	return NULL;
}

struct masters *
masters_open(const struct redis_options *opt, const char *name, char **cause)
{
	struct masters *m = NEW(struct masters, .opt = opt, .name = name,
	    .cluster = opt->clusters != NULL && opt->clusters[0] != NULL);

	TAILQ_INIT(&m->calls);
	if (!m->cluster)
		return masters_open_one(m, cause);
	if (masters_refresh(m, cause) == 0)
		return m;
	masters_close(m);
	return NULL;
}

/* -- calls ------------------------------------------------------------------------------- */

static void
masters_set_state(struct masters_call *c, enum call_state state)
{
	if (c->state == CALL_SENT)
		TAILQ_REMOVE(&c->at->sent, c, sent);
	c->state = state;
	if (state == CALL_SENT)
		TAILQ_INSERT_TAIL(&c->at->sent, c, sent);
}

static void
masters_free_call(struct masters *m, struct masters_call *c)
{
	if (c->state == CALL_SENT)
		masters_set_state(c, CALL_LOST);
	TAILQ_REMOVE(&m->calls, c, entry);
	words_done(&c->words);
	blocking_reply_free(c->reply);
	free(c->cause);
	free(c);
}

void
masters_close(struct masters *m)
{
	if (m == NULL)
		return;
	while (!TAILQ_EMPTY(&m->calls))
		masters_free_call(m, TAILQ_FIRST(&m->calls));
	while (m->n > 0)
		master_free(m->list[--m->n]);
	free(m->list);
	slots_done(&m->slots);
	free(m);
}

/* Commands whose first key is not their second word. */
static const struct {
	const char	*command;
	int		 key;	/* which word; -1: it has none */
} masters_keys[] = {
	{ "EVAL", 3 }, { "EVALSHA", 3 }, { "XINFO", 2 },
	{ "CLUSTER", -1 }, { "CONFIG", -1 }, { "DBSIZE", -1 }, { "INFO", -1 }, { "PING", -1 },
	{ "PUBSUB", -1 }, { "SCAN", -1 }, { "TIME", -1 },
};

static bool
is_word(const struct words *w, int i, const char *text)
{
	return i < w->n && w->len[i] == strlen(text) && memcmp(w->v[i], text, w->len[i]) == 0;
}

/* Finds the slot of a command's keys. */
static void
masters_route(struct masters_call *c)
{
	const struct words *w = &c->words;
	int key = 1;

	for (size_t i = 0; i < ARRAY_LEN(masters_keys); i++)
		if (is_word(w, 0, masters_keys[i].command))
			key = masters_keys[i].key;
	c->one_key = key != 3 || is_word(w, 2, "1");
	c->slot = key == -1 || key >= w->n || (key == 3 && is_word(w, 2, "0")) ? -1 :
	    (int)slot_of(w->v[key], w->len[key]);
}

/* The same words, and all of them owned. */
static void
masters_copy(struct words *to, const struct words *from)
{
	for (int i = 0; i < from->n; i++)
		words_own(to, xmemdup(from->v[i], from->len[i]), from->len[i]);
}

/* The master of a slot, or of commands without keys; NULL: nobody serves it. */
static struct master *
masters_owner(struct masters *m, int slot)
{
	const char *address = slots_node(&m->slots, slot >= 0 ? (unsigned)slot : m->chosen);

	return address != NULL ? masters_find(m, address) : NULL;
}

/* Puts the call off.  Takes the cause, which is reported if the call is never sent. */
static void
masters_put_off(struct masters_call *c, char *cause)
{
	usec_t now = clock_mono();

	if (c->until == 0)
		c->until = now + MASTERS_RETRY;
	free(c->cause);
	c->cause = cause;
	c->failed = c->at;
	c->at = NULL;
	c->asking = false;
	c->moves = 0;
	c->due = now + PAUSE;
}

static void
master_append_asking(struct master *a)
{
	struct words w = { .n = 0 };

	words_add(&w, "ASKING");
	blocking_append(a->conn, &w);
	words_done(&w);
}

/* Writes the call to its master's connection; without one the call is put off. */
static void
masters_send(struct masters *m, struct masters_call *c)
{
	char *cause = NULL, *ignored = NULL;

	if (c->at == NULL)
		c->at = masters_owner(m, c->slot);
	if (c->at == NULL || master_connect(m, c->at, &cause) == -1) {
		masters_put_off(c, cause != NULL ? cause : xstrdup("no master serves its slot"));
		c->unreachable = true;
		if (clock_mono() - m->refreshed >= PAUSE)
			(void)masters_refresh(m, &ignored);
		free(ignored);
		return;
	}
	if (c->asking)
		master_append_asking(c->at);
	blocking_append(c->at->conn, &c->words);
	c->unreachable = false;
	masters_set_state(c, CALL_SENT);
}

/* The connection is lost, and with it all that was sent on it. */
static void
masters_lose(struct master *a, char *cause)
{
	struct masters_call *c;

	while ((c = TAILQ_FIRST(&a->sent)) != NULL) {
		xreplace(&c->cause, cause);
		masters_set_state(c, CALL_LOST);
	}
	free(cause);
	blocking_close(a->conn);
	a->conn = NULL;
}

/* -- redirections ------------------------------------------------------------------------ */

/* Follows a MOVED or an ASK; false: the error is neither, or too many came in a row. */
static bool
masters_follow(struct masters *m, struct masters_call *c, const char *error)
{
	bool ask = strncmp(error, "ASK ", 4) == 0;
	unsigned slot;
	char *to;

	if ((ask && !c->one_key) || c->moves >= MOVES_MAX ||
	    (to = slots_redirection(error, c->at->address, &slot)) == NULL)
		return false;
	if (!ask)
		slots_set(&m->slots, slot, to);
	c->at = masters_find(m, to);
	c->asking = ask;
	c->moves++;
	free(to);
	return true;
}

/* Takes the reply to a call, as its answer or as a reason to send it again. */
static void
masters_answer(struct masters *m, struct masters_call *c, struct redisReply *reply)
{
	if (!reply_is_redirection(reply) || (c->until != 0 && clock_mono() >= c->until)) {
		c->reply = reply;
		masters_set_state(c, CALL_ANSWERED);
		return;
	}
	masters_set_state(c, CALL_WAITS);
	c->due = 0;
	if (!masters_follow(m, c, reply_text(reply)))
		masters_put_off(c, xstrdup(reply_text(reply)));
	blocking_reply_free(reply);
}

/* Takes one reply of a master: its first call's, or the OK to ASKING before that. */
static void
masters_receive(struct masters *m, struct master *a)
{
	struct masters_call *c = TAILQ_FIRST(&a->sent);
	struct redisReply *reply;
	char *cause = NULL;

	m->last = a;
	for (size_t i = 0; i < m->n; i++)
		if (m->list[i] != a && m->list[i]->conn != NULL)
			blocking_flush(m->list[i]->conn);
	if ((reply = blocking_next(a->conn, &cause)) == NULL) {
		masters_lose(a, cause);
	} else if (c->asking) {
		c->asking = false;
		blocking_reply_free(reply);
	} else {
		masters_answer(m, c, reply);
	}
}

/* A master that has not answered all of its calls; NULL: none. */
static struct master *
masters_busy(const struct masters *m)
{
	for (size_t i = 0; i < m->n; i++)
		if (!master_is_idle(m->list[i]))
			return m->list[i];
	return NULL;
}

/*
 * Sends a waiting call when it is due.  Before that all others are answered, so that
 * any node can be asked for the slots.  After MASTERS_RETRY, a call that no master
 * takes is lost.  Any other call is sent once more, and the error that it gets is its
 * reply.
 */
static void
masters_send_again(struct masters *m, struct masters_call *c)
{
	usec_t now = clock_mono();
	struct master *busy = masters_busy(m);

	if (busy != NULL) {
		masters_receive(m, busy);
	} else if (blocking_is_interrupted()) {
		xreplace(&c->cause, "interrupted");
		masters_set_state(c, CALL_LOST);
	} else if (c->unreachable && now >= c->until) {
		masters_set_state(c, CALL_LOST);
	} else if (now < c->due) {
		(void)poll(NULL, 0, (int)((c->due - now) / MSEC) + 1);
	} else {
		masters_send(m, c);
	}
}

/* -- commands ---------------------------------------------------------------------------- */

void
masters_append(struct masters *m, const struct words *w)
{
	struct masters_call *c;

	if (!m->cluster) {
		blocking_append(m->list[0]->conn, w);
		return;
	}
	c = xcalloc(1, sizeof(*c));
	masters_copy(&c->words, w);
	masters_route(c);
	TAILQ_INSERT_TAIL(&m->calls, c, entry);
	masters_send(m, c);
}

/* Ends the calls that are not answered, and the connections on which they were sent. */
static void
masters_drop_calls(struct masters *m)
{
	struct master *busy;

	while ((busy = masters_busy(m)) != NULL)
		masters_lose(busy, xstrdup("not connected"));
	while (!TAILQ_EMPTY(&m->calls))
		masters_free_call(m, TAILQ_FIRST(&m->calls));
}

/* Takes its reply; NULL: it was lost, and so are the calls behind it. */
static struct redisReply *
masters_take(struct masters *m, struct masters_call *c, char **cause)
{
	struct redisReply *reply = c->reply;

	if (c->at != NULL)
		m->last = c->at;
	else if (c->failed != NULL)
		m->last = c->failed;
	c->reply = NULL;
	if (reply != NULL) {
		masters_free_call(m, c);
	} else {
		(void)util_cause(cause, "%s", c->cause);
		masters_drop_calls(m);
	}
	return reply;
}

struct redisReply *
masters_next(struct masters *m, char **cause)
{
	struct masters_call *c = TAILQ_FIRST(&m->calls);

	if (!m->cluster)
		return blocking_next(m->list[0]->conn, cause);
	if (c == NULL) {
		(void)util_cause(cause, "not connected");
		return NULL;
	}
	while (c->state == CALL_WAITS || c->state == CALL_SENT)
		if (c->state == CALL_SENT)
			masters_receive(m, c->at);
		else
			masters_send_again(m, c);
	return masters_take(m, c, cause);
}

struct redisReply *
masters_command(struct masters *m, char **cause, const struct words *w)
{
	masters_append(m, w);
	return masters_next(m, cause);
}

struct redisReply *
masters_script(struct masters *m, char **cause, const struct script *script,
    const struct words *w)
{
	struct pending *p;
	struct redisReply *r;

	if (!m->cluster)
		return blocking_script(m->list[0]->conn, cause, script, w);
	p = pending_new(NULL, NULL, true);
	pending_set_script(p, script, w);
	r = masters_command(m, cause, &p->words);
	if (r != NULL && !p->eval && reply_error(r) == REPLY_NOSCRIPT) {
		blocking_reply_free(r);
		pending_use_text(p);
		r = masters_command(m, cause, &p->words);
	}
	pending_free(p);
	return r;
}

/* -- one of them --------------------------------------------------------------------------- */

/* Counts the masters with slots up to number `wanted`; *slot: the first slot of that master. */
static size_t
masters_walk(const struct masters *m, size_t wanted, unsigned *slot)
{
	bool seen[SLOTS_NODES_MAX + 1] = { [0] = true };
	size_t n = 0;

	for (unsigned i = 0; i < SLOTS; i++) {
		if (seen[m->slots.owner[i]])
			continue;
		seen[m->slots.owner[i]] = true;
		if (n++ == wanted)
			*slot = i;
	}
	return n;
}

size_t
masters_count(const struct masters *m)
{
	unsigned slot;

	return m->cluster ? masters_walk(m, 0, &slot) : 1;
}

void
masters_choose(struct masters *m, size_t i)
{
	if (m->cluster)
		(void)masters_walk(m, i, &m->chosen);
}

void
masters_choose_key(struct masters *m, const char *key)
{
	m->chosen = slot_of(key, strlen(key));
}

const char *
masters_chosen(const struct masters *m)
{
	const char *address;

	if (!m->cluster)
		return m->list[0]->address;
	address = slots_node(&m->slots, m->chosen);
	return address != NULL ? address : masters_name(m);
}

const char *
masters_name(const struct masters *m)
{
	return m->cluster ? m->opt->servers[0] : m->list[0]->address;
}

const char *
masters_last(const struct masters *m)
{
	return m->last->address;
}
