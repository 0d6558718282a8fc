/*
 * Requests whose caller waits; see sync.h.  This is an owner of nodes (nodes.h), as the
 * daemon is one, and has no way of its own to talk to Redis.
 *
 *	          its node is READY
 *	CALL_WAITS ----------------> CALL_SENT ----> CALL_DONE: a reply, or a cause
 *	   ^                             |
 *	   '---- it did not run ---------'	in a cluster, for SYNC_RETRY
 */
#include "redis/sync.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/list.h"
#include "loop/loop.h"
#include "redis/nodes.h"
#include "redis/request.h"
#include "redis/sentinel.h"

#define PAUSE		(100 * MSEC)	/* before a command is sent again */
#define SENTINELS_MAX	(3 * SEC)	/* time to ask other Sentinels after a wrong master */
#define LOOK		(100 * MSEC)	/* for the times at which calls end */

enum call_state { CALL_WAITS, CALL_SENT, CALL_DONE };

struct sync_call {
	TAILQ_ENTRY(sync_call) entry;
	struct sync	*sync;
	enum call_state	 state;
	const struct script *script;	/* NULL: a command */
	struct words	 words;		/* owned */
	int		 slot;		/* of its first key; -1: it has none */
	struct request	 request;
	usec_t		 due;		/* CALL_WAITS: not before */
	usec_t		 until;		/* mono; the end of SYNC_RETRY; 0: no trouble yet */
	char		*at;		/* the address of the server that got it last */
	struct redisReply *reply;	/* CALL_DONE; NULL: it is lost */
	char		*cause;		/* of the last trouble */
};

struct sync {
	struct loop	*loop;
	struct redis_options opt;
	struct nodes	*nodes;
	TAILQ_HEAD(, sync_call) calls;	/* in order */
	unsigned	 slot;		/* its master is the chosen one ... */
	size_t		 master;	/* ... unless this is below sync_masters() */
	char		*cause;		/* why not; NULL: it is not known yet */
	char		*last;
};

/* -- the nodes' events ------------------------------------------------------------- */

static void
sync_down(struct node *node UNUSED, const char *cause, void *arg)
{
	struct sync *s = arg;

	xreplace(&s->cause, cause);
}

static void
sync_no_table(const char *cause, void *arg)
{
	struct sync *s = arg;

	xreplace(&s->cause, cause);
}

/* A command of this slot will be answered CONN_NOT_SENT: keeps the reason for it. */
static void
sync_redirected(struct node *node UNUSED, const char *error, unsigned slot, bool later, void *arg)
{
	struct sync *s = arg;
	struct sync_call *c;

	TAILQ_FOREACH(c, &s->calls, entry) {
		if (c->state == CALL_SENT && c->slot == (int)slot) {
			xreplace(&c->cause, error);
			c->due = 0;
			if (later)
				c->due = clock_after(PAUSE);
		}
	}
}

static struct conn *
sync_conn(const struct sync *s, int slot)
{
	unsigned of = s->slot;
	struct node *node;

	if (slot == -1 && s->master < sync_masters(s) && nodes_is_cluster(s->nodes))
		return nodes_master_conn(s->nodes, s->master);
	if (slot != -1)
		of = (unsigned)slot;
	node = nodes_of(s->nodes, of);
	if (node == NULL)
		return nodes_nowhere(s->nodes)->conn;
	return node->conn;
}

/* -- calls --------------------------------------------------------------------------- */

static void
call_set_state(struct sync_call *c, enum call_state state)
{
	c->state = state;
}

static void
call_free(struct sync_call *c)
{
	TAILQ_REMOVE(&c->sync->calls, c, entry);
	request_cancel(&c->request);
	words_done(&c->words);
	reply_free(c->reply);
	free(c->at);
	free(c->cause);
	free(c);
}

static void
call_answered(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct sync_call *c = arg;

	if (answer == CONN_REPLY)
		c->reply = reply_steal(reply);
	else if (answer == CONN_LOST)
		xreplace(&c->cause, NULL);	/* the node says why, a little later */
	else if (c->until == 0)
		c->until = clock_after(SYNC_RETRY);
	if (answer == CONN_NOT_SENT)
		call_set_state(c, CALL_WAITS);
	else
		call_set_state(c, CALL_DONE);
}

static void
call_send(struct sync_call *c, struct conn *conn)
{
	struct words w = { .n = 0, .nkeys = c->words.nkeys };

	for (int i = 0; i < c->words.n; i++)
		words_mem(&w, c->words.v[i], c->words.len[i]);
	xreplace(&c->at, conn_server(conn)->address);
	call_set_state(c, CALL_SENT);
	if (c->script != NULL)
		request_script(&c->request, conn, c->script, &w);
	else
		request_command(&c->request, conn, &w);
}

/* Commands whose first key is not their second word. */
static const struct {
	const char	*command;
	int		 key;	/* which word; -1: it has none */
} keys[] = {
	{ "EVAL", 3 }, { "XINFO", 2 }, { "CLUSTER", -1 }, { "CONFIG", -1 }, { "DBSIZE", -1 },
	{ "INFO", -1 }, { "PING", -1 }, { "PUBSUB", -1 }, { "SCAN", -1 }, { "TIME", -1 },
};

/* Which word is the first key; -1: none. */
static int
first_key(const struct script *script, const struct words *w)
{
	if (script != NULL && w->nkeys > 0)
		return 0;
	if (script != NULL)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (w->n > 0 && w->len[0] == strlen(keys[i].command) &&
		    memcmp(w->v[0], keys[i].command, w->len[0]) == 0)
			return keys[i].key;
	}
	return 1;
}

void
sync_append(struct sync *s, const struct script *script, const struct words *w)
{
	struct sync_call *c = NEW(struct sync_call, .sync = s, .script = script, .slot = -1);
	int key = first_key(script, w);
	struct conn *conn;

	if (key != -1 && key < w->n)
		c->slot = (int)nodes_slot(s->nodes, w->v[key], w->len[key]);
	else if (s->master >= sync_masters(s))	/* even if it must wait */
		c->slot = (int)s->slot;
	conn = sync_conn(s, c->slot);
	for (int i = 0; i < w->n; i++)
		words_own(&c->words, xmemdup(w->v[i], w->len[i]), w->len[i]);
	c->words.nkeys = w->nkeys;
	request_init(&c->request, call_answered, c);
	TAILQ_INSERT_TAIL(&s->calls, c, entry);
	if (conn_is_ready(conn))
		call_send(c, conn);
}

/* Sends what waits and can be sent now; then one turn. */
static void
sync_turn(struct sync *s)
{
	bool cluster = nodes_is_cluster(s->nodes);
	struct sync_call *c;
	struct conn *conn;
	struct buf why;

	TAILQ_FOREACH(c, &s->calls, entry) {
		if (c->state != CALL_WAITS)
			continue;
		conn = sync_conn(s, c->slot);
		if (conn_is_ready(conn) && clock_mono() >= c->due &&
		    (c->until == 0 || clock_mono() < c->until)) {
			call_send(c, conn);
			continue;
		}
		/*
		 * Its node is not READY.  Without a cluster it ends when the server is known to
		 * be down; in a cluster SYNC_RETRY later, since another master may take the slot.
		 */
		if (c->until == 0 && cluster)
			c->until = clock_after(SYNC_RETRY);
		else if (c->until == 0)
			c->until = clock_after(s->opt.timeout);
		if (clock_mono() < c->until && (s->cause == NULL || cluster))
			continue;
		if (c->cause == NULL) {
			why = (struct buf)BUF_INIT;
			nodes_causes(s->nodes, &why);
			(void)buf_str(&why);
			c->cause = buf_steal(&why);
		}
		call_set_state(c, CALL_DONE);
	}
	loop_turn(s->loop, LOOK);
}

struct redisReply *
sync_next(struct sync *s, char **cause)
{
	struct sync_call *c = TAILQ_FIRST(&s->calls);
	const char *why = "connection lost";
	struct redisReply *reply;

	if (c == NULL)
		fatalx("sync_next: no call");
	while (c->state != CALL_DONE)
		sync_turn(s);
	if (c->at != NULL)
		xreplace(&s->last, c->at);
	reply = c->reply;
	c->reply = NULL;
	if (c->cause != NULL)
		why = c->cause;
	else if (s->cause != NULL)
		why = s->cause;
	if (reply == NULL)
		(void)util_cause(cause, "%s", why);
	call_free(c);
	return reply;
}

void
sync_drop(struct sync *s)
{
	while (!TAILQ_EMPTY(&s->calls))
		call_free(TAILQ_FIRST(&s->calls));
}

/* -- life ---------------------------------------------------------------------------- */

/* Whether there is a server, or the table of slots. */
static bool
sync_is_up(const struct sync *s)
{
	if (nodes_is_cluster(s->nodes))
		return nodes_master(s->nodes, 0) != NULL;
	return nodes_is_one_ready(s->nodes);
}

struct sync *
sync_open(const struct redis_options *opt, const char *name, char **cause)
{
	static const struct nodes_events events = {
		.down = sync_down, .redirected = sync_redirected, .no_table = sync_no_table
	};
	struct sync *s = NEW(struct sync, .loop = loop_new(), .opt = *opt, .master = SIZE_MAX);
	usec_t until = clock_after(SENTINELS_MAX);
	const char *why = "no answer";

	TAILQ_INIT(&s->calls);
	if (opt->sentinels != NULL && opt->sentinels[0] != NULL)
		s->opt.sentinel = sentinel_new(s->loop, opt, name, NULL);
	s->nodes = nodes_new(s->loop, &s->opt, name, &events, s);
	nodes_start(s->nodes);
	/* A Sentinel may name a server that is no master any more: the next one is asked. */
	while (!sync_is_up(s) && (s->cause == NULL ||
	    (s->opt.sentinel != NULL && strncmp(s->cause, "Sentinel", 8) != 0 &&
	    clock_mono() < until)))
		loop_turn(s->loop, LOOK);
	if (sync_is_up(s)) {
		xreplace(&s->cause, NULL);
		s->last = xstrdup(sync_name(s));
		return s;
	}
	if (s->cause != NULL)
		why = s->cause;
	(void)util_cause(cause, "%s", why);
	sync_close(s);
	return NULL;
}

void
sync_close(struct sync *s)
{
	if (s == NULL)
		return;
	sync_drop(s);
	nodes_free(s->nodes);
	sentinel_free(s->opt.sentinel);
	loop_free(s->loop);
	free(s->cause);
	free(s->last);
	free(s);
}

/* -- one of several masters -------------------------------------------------------------- */

size_t
sync_masters(const struct sync *s)
{
	size_t n = 0;

	if (!nodes_is_cluster(s->nodes))
		return 1;
	while (nodes_master(s->nodes, n) != NULL)
		n++;
	return n;
}

void
sync_choose(struct sync *s, size_t i)
{
	s->master = i;
}

void
sync_choose_key(struct sync *s, const char *key)
{
	s->master = SIZE_MAX;
	s->slot = nodes_slot(s->nodes, key, strlen(key));
}

const char *
sync_chosen(const struct sync *s)
{
	const struct node *node;

	if (!nodes_is_cluster(s->nodes))
		return sync_name(s);
	if (s->master < sync_masters(s))
		return nodes_master(s->nodes, s->master);
	node = nodes_of(s->nodes, s->slot);
	if (node == NULL)
		return sync_name(s);
	return node->address;
}

const char *
sync_name(const struct sync *s)
{
	if (nodes_is_cluster(s->nodes))
		return s->opt.servers[0];
	return nodes_server(s->nodes)->address;
}

const char *
sync_last(const struct sync *s)
{
	return s->last;
}
