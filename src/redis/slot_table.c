/*
 * The table of slots; see slot_table.h.
 *
 * A question is CLUSTER INFO, for the epoch, and CLUSTER SLOTS.  It goes to the READY
 * nodes in turn.  If there is none, it goes to `seed`, a connection that walks through
 * the seeds and all masters that were ever known.  `seed` is closed once a node is
 * READY.
 *
 *	IDLE --slot_table_want()--> WANTED --the timer--> ASKED --answered--> IDLE, or WANTED
 *	                               ^                   | |                in trouble
 *	                               '-- of no use ------' '-- no answer in 1 s: ASKED, another
 */
#include "redis/slot_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "loop/timer.h"
#include "redis/reply.h"
#include "redis/request.h"

#define ASK_EVERY	SEC		/* between two questions, and for an answer */
#define SEED_BACKOFF	SEC
#define EPOCH_KEPT	(30 * SEC)	/* for this time an older table is ignored */

enum table_state { TABLE_IDLE, TABLE_WANTED, TABLE_ASKED, TABLE_STOPPED };

struct slot_table {
	struct loop		*loop;
	char			*name;
	const struct slot_table_events *events;
	void			*arg;
	char			*no_servers[1];
	struct redis_options	 any;		/* servers: owned, and only grows */
	size_t			 nservers;
	struct slots		 slots;
	struct conn		*seed;		/* NULL: not needed */
	enum table_state	 state;
	struct timer		 timer;		/* WANTED: the question; ASKED: its limit */
	struct request		 info, question;
	char			*asked;		/* the server that is asked */
	usec_t			 asked_at;	/* mono; 0: never */
	int64_t			 epoch_here;	/* of the server that is asked; 0: unknown */
	int64_t			 epoch;		/* the latest one seen; 0: unknown */
	usec_t			 epoch_at;	/* mono; when it was seen last */
	char			*cause;		/* why there is no table; NULL: there is one */
};

static void
table_set_state(struct slot_table *t, enum table_state state)
{
	t->state = state;
}

/* -- the list of servers ---------------------------------------------------------- */

static size_t
table_find_server(const struct slot_table *t, const char *server)
{
	size_t i;

	for (i = 0; i < t->nservers && strcmp(t->any.servers[i], server) != 0; i++)
		continue;
	return i;
}

/* Adds a server to the list, which never shrinks: connections remember their place in it. */
static void
table_add_server(struct slot_table *t, const char *server)
{
	if (table_find_server(t, server) < t->nservers || t->nservers == SLOTS_NODES_MAX)
		return;
	t->any.servers = xreallocarray(t->any.servers, t->nservers + 2, sizeof(char *));
	t->any.servers[t->nservers++] = xstrdup(server);
	t->any.servers[t->nservers] = NULL;
}

/* The server was of no use: the others are tried before it. */
static void
table_put_last(struct slot_table *t, const char *server)
{
	size_t i = table_find_server(t, server);
	char *s;

	if (i >= t->nservers)
		return;
	s = t->any.servers[i];
	memmove(&t->any.servers[i], &t->any.servers[i + 1],
	    (t->nservers - 1 - i) * sizeof(*t->any.servers));
	t->any.servers[t->nservers - 1] = s;
}

/* -- answers ------------------------------------------------------------------------ */

static void
table_none(struct slot_table *t, const char *cause)
{
	if (cause == NULL ? t->cause == NULL : t->cause != NULL && strcmp(t->cause, cause) == 0)
		return;
	xreplace(&t->cause, cause);
	t->events->none(cause, t->arg);
}

/* Whether the server that was asked has an older epoch than an earlier one. */
static bool
table_is_old(const struct slot_table *t)
{
	return t->epoch_here > 0 && t->epoch_here < t->epoch &&
	    clock_mono() - t->epoch_at < EPOCH_KEPT;
}

/* A table has come; false if it is of no use. */
static bool
table_take(struct slot_table *t, const struct redisReply *reply, char **cause)
{
	struct slots *old = xmemdup(&t->slots, sizeof(t->slots));
	bool changed;

	t->slots = (struct slots){ .n = 0 };
	if (slots_fill(&t->slots, reply, t->asked, cause) == -1) {
		t->slots = *old;
		free(old);
		return false;
	}
	if (t->epoch_here > 0) {
		t->epoch = t->epoch_here;
		t->epoch_at = clock_mono();
	}
	changed = !slots_are_equal(old, &t->slots);
	slots_done(old);
	free(old);
	for (size_t i = 0; i < t->slots.n; i++)
		table_add_server(t, t->slots.nodes[i]);
	table_none(t, NULL);
	t->events->came(changed, t->arg);
	return true;
}

/* Ends the question. */
static void
table_answered(struct slot_table *t, bool again)
{
	request_cancel(&t->info);
	request_cancel(&t->question);
	if (t->state != TABLE_ASKED)
		return;
	timer_stop(&t->timer);
	table_set_state(t, TABLE_IDLE);
	if (again || t->events->is_in_trouble(t->arg))
		slot_table_want(t);
}

static void
table_got_info(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	static const char name[] = "cluster_current_epoch:";
	struct slot_table *t = arg;
	const char *text = answer == CONN_REPLY ? reply_str(reply, NULL) : NULL;

	if (text != NULL && (text = strstr(text, name)) != NULL)
		t->epoch_here = strtoll(text + strlen(name), NULL, 10);
}

static void
table_got_slots(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct slot_table *t = arg;
	char *cause = NULL;
	bool ok = false;

	if (answer == CONN_REPLY && table_is_old(t))
		(void)util_cause(&cause, "%s: its table of slots is old", t->asked);
	else if (answer == CONN_REPLY)
		ok = table_take(t, reply, &cause);
	if (!ok)
		table_put_last(t, t->asked);
	if (t->seed != NULL && cause != NULL) {
		conn_reset(t->seed, cause);
		table_none(t, cause);
	}
	free(cause);
	table_answered(t, !ok);
}

/* -- questions ------------------------------------------------------------------------ */

static void
table_send(struct slot_table *t, struct conn *conn)
{
	xreplace(&t->asked, conn_server(conn)->address);
	t->epoch_here = 0;
	request_words(&t->info, conn, "CLUSTER", "INFO", NULL);
	request_words(&t->question, conn, "CLUSTER", "SLOTS", NULL);
}

static void
table_seed_up(const struct conn_server *server UNUSED, void *arg)
{
	struct slot_table *t = arg;

	if (t->state == TABLE_ASKED && !request_is_sent(&t->question))
		table_send(t, t->seed);
}

static void
table_seed_down(const char *cause, void *arg)
{
	struct slot_table *t = arg;

	if (t->slots.n == 0)
		table_none(t, cause);
}

static void
table_ask_seed(struct slot_table *t, bool again)
{
	static const struct conn_events events = { table_seed_up, table_seed_down };

	if (t->seed == NULL) {
		t->seed = conn_new(t->loop, &t->any, t->name, 0, &events, t);
		conn_set_backoff_max(t->seed, SEED_BACKOFF);
		conn_start(t->seed);
	} else if (again) {
		table_put_last(t, t->asked);
		conn_reset(t->seed, "no answer to CLUSTER SLOTS");
	} else if (conn_is_ready(t->seed)) {
		table_send(t, t->seed);
	}
}

/* The timer: asks, or gives up a question without an answer. */
static void
table_ask(void *arg)
{
	struct slot_table *t = arg;
	bool again = t->state == TABLE_ASKED && request_is_sent(&t->question);
	struct conn *conn = t->events->ask(t->arg);

	request_cancel(&t->info);
	request_cancel(&t->question);
	table_set_state(t, TABLE_ASKED);
	t->asked_at = clock_mono();
	timer_set(&t->timer, ASK_EVERY);
	if (conn == NULL) {
		table_ask_seed(t, again);
		return;
	}
	conn_free(t->seed);
	t->seed = NULL;
	table_send(t, conn);
}

void
slot_table_want(struct slot_table *t)
{
	usec_t since = clock_mono() - t->asked_at;

	if (t->state != TABLE_IDLE)
		return;
	table_set_state(t, TABLE_WANTED);
	timer_set(&t->timer, t->asked_at == 0 || since >= ASK_EVERY ? 0 : ASK_EVERY - since);
}

/* -- life ------------------------------------------------------------------------------- */

struct slots *
slot_table_slots(struct slot_table *t)
{
	return &t->slots;
}

const char *
slot_table_cause(const struct slot_table *t)
{
	return t->cause;
}

const struct redis_options *
slot_table_any(const struct slot_table *t)
{
	return &t->any;
}

struct slot_table *
slot_table_new(struct loop *loop, const struct redis_options *options, const char *name,
    const struct slot_table_events *events, void *arg)
{
	struct slot_table *t = xcalloc(1, sizeof(*t));

	t->loop = loop;
	t->name = xstrdup(name);
	t->events = events;
	t->arg = arg;
	t->any = *options;
	t->any.servers = xcalloc(1, sizeof(char *));
	t->any.sentinels = t->no_servers;
	t->any.clusters = NULL;
	t->any.any_role = true;
	for (char **s = options->clusters; *s != NULL; s++)
		table_add_server(t, *s);
	timer_init(&t->timer, loop, table_ask, t);
	request_init(&t->info, table_got_info, t);
	request_init(&t->question, table_got_slots, t);
	return t;
}

void
slot_table_stop(struct slot_table *t)
{
	timer_stop(&t->timer);
	request_cancel(&t->info);
	request_cancel(&t->question);
	table_set_state(t, TABLE_STOPPED);
}

void
slot_table_free(struct slot_table *t)
{
	if (t == NULL)
		return;
	slot_table_stop(t);
	conn_free(t->seed);
	slots_done(&t->slots);
	for (size_t i = 0; i < t->nservers; i++)
		free(t->any.servers[i]);
	free(t->any.servers);
	free(t->asked);
	free(t->cause);
	free(t->name);
	free(t);
}
