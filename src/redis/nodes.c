/*
 * The nodes; see nodes.h.
 *
 * A node of a cluster is made when some user needs it.  When it no longer owns a slot,
 * it is retired: it has a second to answer its calls, and is freed when nobody uses it.
 *
 * The table of slots comes by a question: CLUSTER INFO, for the epoch, and CLUSTER SLOTS.
 * It goes to the READY nodes in turn.  If there is none, it goes to `seed`, a connection
 * that walks through the seeds and all masters that were ever known.  `seed` is closed once
 * a node is READY.  A table of an older epoch than the last one is ignored: it comes from a
 * server that was cut off.
 *
 *	IDLE --nodes_want_table()--> WANTED --the timer--> ASKED --answered--> IDLE, or WANTED
 *	  '--- the timer, in trouble ---^                   | |                 if of no use
 *	                                                    '-' no answer in 1 s: another node
 */
#include "redis/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "loop/timer.h"
#include "redis/reply.h"
#include "redis/slots.h"

#define ASK_EVERY	SEC		/* between two questions, and for an answer */
#define EPOCH_KEPT	(30 * SEC)	/* for this time an older table is ignored */
#define HANGS		SEC		/* after this time without a reply it hangs */
#define RETIRE_AFTER	SEC
#define NODE_BACKOFF	SEC		/* the longest, of a master and of a seed */

enum table_state { TABLE_IDLE, TABLE_WANTED, TABLE_ASKED, TABLE_STOPPED };

struct nodes {
	struct loop		*loop;
	const struct redis_options *opt;
	char			*name;
	const struct nodes_events *events;
	void			*arg;
	TAILQ_HEAD(, node)	 all;		/* one server: exactly one */
	struct conn_limits	 limits;
	unsigned		 closing;	/* connections that nodes_close() waits for */
	void			(*closed)(void *);
	void			*closed_arg;

	/* Of a cluster. */
	struct node		*nowhere;	/* NULL: one server */
	struct timer		 sweep;		/* set: nodes are retired */
	struct slots		 slots;		/* the table */
	bool			 patched;	/* MOVED has changed the table since it came */
	/* A user needs a slot without a node, or did when the table last changed. */
	bool			 missing;
	char			*no_table;	/* why there is no table; NULL: there is one */
	struct redis_options	 any;		/* servers: owned, and only grows */
	size_t			 nservers;
	char			*no_servers[1];
	struct conn		*seed;		/* NULL: not needed */
	enum table_state	 state;
	/* IDLE: the look for trouble; WANTED: the question; ASKED: its limit. */
	struct timer		 ask;
	struct request		 info, question;
	char			*asked;		/* the server that is asked */
	usec_t			 asked_at;	/* mono; 0: never */
	int64_t			 epoch_here;	/* of the server that is asked; 0: unknown */
	int64_t			 epoch;		/* the latest one seen; 0: unknown */
	usec_t			 epoch_at;	/* mono; when it was seen last */
};

static struct node	*node_find(const struct nodes *, const char *address);
static struct node	*node_at(struct nodes *, const char *address);

bool
nodes_is_cluster(const struct nodes *n)
{
	return n->nowhere != NULL;
}

static void
nodes_set_state(struct nodes *n, enum table_state state)
{
	n->state = state;
}

/* Asks for the table now, but at most once a second. */
static void
nodes_want_table(struct nodes *n)
{
	usec_t since = clock_mono() - n->asked_at;

	if (!nodes_is_cluster(n) || n->state != TABLE_IDLE)
		return;
	nodes_set_state(n, TABLE_WANTED);
	timer_set(&n->ask, n->asked_at == 0 || since >= ASK_EVERY ? 0 : ASK_EVERY - since);
}

/* -- one node ------------------------------------------------------------------- */

static void
node_up(const struct conn_server *server, void *arg)
{
	struct node *node = arg;
	struct nodes *n = node->nodes;

	xreplace(&node->cause, NULL);
	if (n->events->up != NULL)
		n->events->up(node, server, n->arg);
	nodes_want_table(n);
}

static void
node_down(const char *cause, void *arg)
{
	struct node *node = arg;
	struct nodes *n = node->nodes;

	xreplace(&node->cause, cause);
	n->events->down(node, cause, n->arg);
	nodes_want_table(n);
}

/*
 * MOVED to another node: the slot is there.  After any other error the command may be
 * sent later.
 */
static struct conn *
node_redirected(const char *error, unsigned slot, bool may_ask, void *arg)
{
	struct node *node = arg;
	struct nodes *n = node->nodes;
	bool moved = strncmp(error, "MOVED ", 6) == 0, later = true;
	char *to = slots_redirection(error, node->address, &slot);
	struct node *asked = NULL;

	/* A master without a connection gets one, for the next time. */
	if (may_ask && !moved && to != NULL) {
		asked = node_find(n, to);
		if (asked == NULL && util_has(n->slots.nodes, n->slots.n, to))
			asked = node_at(n, to);
	}

	if (moved && to != NULL && strcmp(to, node->address) != 0) {
		slots_set(&n->slots, slot, to);
		n->patched = true;
		later = false;
	}
	free(to);
	if (asked != NULL && conn_is_ready(asked->conn))
		return asked->conn;
	if (moved || strncmp(error, "CLUSTERDOWN ", 12) == 0)
		nodes_want_table(n);
	n->events->redirected(node, error, slot, later, n->arg);
	return NULL;
}

static void
node_limit(const struct nodes *n, const struct node *node)
{
	struct conn_limits limits = n->limits;

	if (node->address != NULL && (limits.backoff_max == 0 || limits.backoff_max > NODE_BACKOFF))
		limits.backoff_max = NODE_BACKOFF;
	conn_set_limits(node->conn, &limits);
}

/*
 * address: of a cluster's master; "": the nowhere node; NULL: the server that the
 * options name.
 */
static struct node *
node_new(struct nodes *n, const char *address)
{
	static const struct conn_events one = { .up = node_up, .down = node_down };
	static const struct conn_events master = {
		.up = node_up, .down = node_down, .redirected = node_redirected
	};
	struct node *node = NEW(struct node, .nodes = n);
	const struct redis_options *opt = n->opt;

	if (address != NULL) {
		node->address = xstrdup(address);
		node->servers[0] = address[0] != '\0' ? node->address : NULL;
		node->options = n->any;
		node->options.servers = node->servers;
		node->options.any_role = false;
		opt = &node->options;
	}
	node->conn = conn_new(n->loop, opt, n->name, 0, address != NULL ? &master : &one, node);
	node->watch = watch_new(n->loop, node->conn, opt, n->name, n->events->watch, n->arg);
	node_limit(n, node);
	if (address == NULL || address[0] != '\0')
		TAILQ_INSERT_TAIL(&n->all, node, entry);
	return node;
}

static void
node_free(struct node *node)
{
	if (node == NULL)
		return;
	if (node->nodes->events->gone != NULL)
		node->nodes->events->gone(node, node->nodes->arg);
	watch_free(node->watch);
	conn_free(node->conn);
	free(node->address);
	free(node->cause);
	free(node);
}

static struct node *
node_find(const struct nodes *n, const char *address)
{
	struct node *node;

	TAILQ_FOREACH(node, &n->all, entry) {
		if (strcmp(node->address, address) == 0)
			return node;
	}
	return NULL;
}

/* Finds or makes the node of this address. */
static struct node *
node_at(struct nodes *n, const char *address)
{
	struct node *node = node_find(n, address);

	if (node == NULL) {
		node = node_new(n, address);
		conn_start(node->conn);
	}
	node->retired = false;
	return node;
}

/* The first node that is READY; NULL: none is. */
static struct node *
nodes_ready(const struct nodes *n)
{
	struct node *node;

	TAILQ_FOREACH(node, &n->all, entry) {
		if (conn_is_ready(node->conn))
			break;
	}
	return node;
}

/* -- nodes of keys --------------------------------------------------------------- */

unsigned
nodes_slot(const struct nodes *n, const char *key, size_t len)
{
	return nodes_is_cluster(n) ? slot_of(key, len) : 0;
}

struct node *
nodes_of(struct nodes *n, unsigned slot)
{
	const char *address;

	if (!nodes_is_cluster(n))
		return TAILQ_FIRST(&n->all);
	if ((address = slots_node(&n->slots, slot)) == NULL) {
		n->missing = true;
		nodes_want_table(n);
		return NULL;
	}
	return node_at(n, address);
}

const char *
nodes_master(const struct nodes *n, size_t i)
{
	return i < n->slots.n ? n->slots.nodes[i] : NULL;
}

struct conn *
nodes_master_conn(struct nodes *n, size_t i)
{
	return i < n->slots.n ? node_at(n, n->slots.nodes[i])->conn : NULL;
}

struct node *
nodes_nowhere(struct nodes *n)
{
	return n->nowhere;
}

struct conn *
nodes_conn(struct nodes *n, const char *key)
{
	const struct node *node = nodes_of(n, nodes_slot(n, key, strlen(key)));

	return node != NULL ? node->conn : n->nowhere->conn;
}

const struct redis_options *
nodes_any(const struct nodes *n)
{
	return nodes_is_cluster(n) ? &n->any : n->opt;
}

/* -- nodes that own no slot any more ------------------------------------------------ */

static bool
node_hangs(const struct node *node)
{
	return conn_waits(node->conn) > HANGS;
}

/* Gives up the connection; all calls that were sent are answered as lost. */
static void
node_give_up(struct node *node)
{
	conn_reset(node->conn, "the cluster has another master for its slots");
}

/* Retired nodes have had time to answer: frees those that nobody uses. */
static void
nodes_sweep(void *arg)
{
	struct nodes *n = arg;
	struct node *node, *next;

	TAILQ_FOREACH_SAFE(node, &n->all, entry, next) {
		if (!node->retired)
			continue;
		if (node->users == 0) {
			TAILQ_REMOVE(&n->all, node, entry);
			node_free(node);
			continue;
		}
		node_give_up(node);
		timer_set(&n->sweep, RETIRE_AFTER);
	}
}

/* -- the servers to ask ------------------------------------------------------------------- */

/* Adds a server to the list, which never shrinks: connections remember their place in it. */
static void
nodes_add_server(struct nodes *n, const char *server)
{
	if (util_has(n->any.servers, n->nservers, server) || n->nservers == SLOTS_NODES_MAX)
		return;
	n->any.servers = xreallocarray(n->any.servers, n->nservers + 2, sizeof(char *));
	n->any.servers[n->nservers++] = xstrdup(server);
	n->any.servers[n->nservers] = NULL;
}

/* The server was of no use: the others are tried before it. */
static void
nodes_put_last(struct nodes *n, const char *server)
{
	char **s = n->any.servers, *last;
	size_t i = 0;

	while (i < n->nservers && strcmp(s[i], server) != 0)
		i++;
	for (; i + 1 < n->nservers; i++) {
		last = s[i];
		s[i] = s[i + 1];
		s[i + 1] = last;
	}
}

/* -- the table ------------------------------------------------------------------------ */

static void
nodes_set_no_table(struct nodes *n, const char *cause)
{
	if (cause == NULL ? n->no_table == NULL :
	    n->no_table != NULL && strcmp(n->no_table, cause) == 0)
		return;
	xreplace(&n->no_table, cause);
	n->events->no_table(cause, n->arg);
}

/* Retires the nodes that own no slot any more. */
static void
nodes_changed(struct nodes *n)
{
	struct node *node;

	n->patched = n->missing = false;
	TAILQ_FOREACH(node, &n->all, entry) {
		node->retired = !util_has(n->slots.nodes, n->slots.n, node->address);
		if (!node->retired)
			continue;
		if (node_hangs(node))
			node_give_up(node);
		if (!timer_is_set(&n->sweep))
			timer_set(&n->sweep, RETIRE_AFTER);
	}
	if (n->events->changed != NULL)
		n->events->changed((unsigned)n->slots.n, n->arg);
}

/* A table has come; false if it is of no use. */
static bool
nodes_take_table(struct nodes *n, const struct redisReply *reply, char **cause)
{
	bool changed;

	if (slots_fill(&n->slots, reply, n->asked, &changed, cause) == -1)
		return false;
	if (n->epoch_here > 0) {
		n->epoch = n->epoch_here;
		n->epoch_at = clock_mono();
	}
	for (size_t i = 0; i < n->slots.n; i++)
		nodes_add_server(n, n->slots.nodes[i]);
	nodes_set_no_table(n, NULL);
	if (changed || n->patched)
		nodes_changed(n);
	return true;
}

static void
nodes_got_info(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct nodes *n = arg;
	char *epoch = reply_info(answer == CONN_REPLY ? reply : NULL, "cluster_current_epoch");

	n->epoch_here = strtoll(epoch, NULL, 10);
	free(epoch);
}

static void
nodes_got_slots(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct nodes *n = arg;
	char *cause = NULL;
	bool ok = false;

	if (answer == CONN_REPLY && n->epoch_here > 0 && n->epoch_here < n->epoch &&
	    clock_mono() - n->epoch_at < EPOCH_KEPT)
		(void)util_cause(&cause, "%s: its table of slots is old", n->asked);
	else if (answer == CONN_REPLY)
		ok = nodes_take_table(n, reply, &cause);
	if (!ok)
		nodes_put_last(n, n->asked);
	if (n->seed != NULL && cause != NULL) {
		conn_reset(n->seed, cause);
		nodes_set_no_table(n, cause);
	}
	free(cause);
	request_cancel(&n->info);
	request_cancel(&n->question);
	if (n->state != TABLE_ASKED)
		return;
	nodes_set_state(n, TABLE_IDLE);
	timer_set(&n->ask, ASK_EVERY);
	if (!ok)
		nodes_want_table(n);
}

/* -- questions ------------------------------------------------------------------------ */

static void
nodes_send_question(struct nodes *n, struct conn *conn)
{
	xreplace(&n->asked, conn_server(conn)->address);
	n->epoch_here = 0;
	request_words(&n->info, conn, "CLUSTER", "INFO", NULL);
	request_words(&n->question, conn, "CLUSTER", "SLOTS", NULL);
}

static void
seed_up(const struct conn_server *server UNUSED, void *arg)
{
	struct nodes *n = arg;

	if (n->state == TABLE_ASKED && !request_is_sent(&n->question))
		nodes_send_question(n, n->seed);
}

static void
seed_down(const char *cause, void *arg)
{
	struct nodes *n = arg;

	if (n->slots.n == 0)
		nodes_set_no_table(n, cause);
}

/*
 * Whether another master may soon take a slot, or has taken it: then the table is asked
 * for often.
 */
static bool
nodes_are_in_trouble(const struct nodes *n)
{
	const struct node *node;

	TAILQ_FOREACH(node, &n->all, entry) {
		if (node_hangs(node))
			return true;
	}
	return n->slots.n == 0 || !nodes_are_ready(n);
}

/* The timer: asks, or gives up a question without an answer. */
static void
nodes_ask(void *arg)
{
	static const struct conn_events events = { .up = seed_up, .down = seed_down };
	struct nodes *n = arg;
	bool again = n->state == TABLE_ASKED && request_is_sent(&n->question);
	struct node *node = nodes_ready(n);

	if (n->state == TABLE_IDLE && !nodes_are_in_trouble(n)) {
		timer_set(&n->ask, ASK_EVERY);
		return;
	}
	request_cancel(&n->info);
	request_cancel(&n->question);
	nodes_set_state(n, TABLE_ASKED);
	n->asked_at = clock_mono();
	timer_set(&n->ask, ASK_EVERY);
	if (node != NULL) {	/* they take turns */
		TAILQ_REMOVE(&n->all, node, entry);
		TAILQ_INSERT_TAIL(&n->all, node, entry);
		conn_free(n->seed);
		n->seed = NULL;
		nodes_send_question(n, node->conn);
	} else if (n->seed == NULL) {
		n->seed = conn_new(n->loop, &n->any, n->name, 0, &events, n);
		conn_set_limits(n->seed, &(struct conn_limits){ .backoff_max = NODE_BACKOFF });
		conn_start(n->seed);
	} else if (again) {
		nodes_put_last(n, n->asked);
		conn_reset(n->seed, "no answer to CLUSTER SLOTS");
	} else if (conn_is_ready(n->seed)) {
		nodes_send_question(n, n->seed);
	}
}

static void
nodes_stop_asking(struct nodes *n)
{
	timer_stop(&n->sweep);
	timer_stop(&n->ask);
	request_cancel(&n->info);
	request_cancel(&n->question);
	nodes_set_state(n, TABLE_STOPPED);
}

/* -- all of them ------------------------------------------------------------------------ */

void
nodes_set_limits(struct nodes *n, const struct conn_limits *limits)
{
	struct node *node;

	n->limits = *limits;
	TAILQ_FOREACH(node, &n->all, entry)
		node_limit(n, node);
}

void
nodes_probe(struct nodes *n)
{
	struct node *node;

	TAILQ_FOREACH(node, &n->all, entry) {
		conn_probe(node->conn);
		if (conn_is_ready(node->conn))
			watch_probe(node->watch);
	}
	nodes_want_table(n);
}

void
nodes_start(struct nodes *n)
{
	if (nodes_is_cluster(n))
		nodes_want_table(n);
	else
		conn_start(TAILQ_FIRST(&n->all)->conn);
}

static void
nodes_conn_closed(void *arg)
{
	struct nodes *n = arg;

	if (--n->closing == 0)
		n->closed(n->closed_arg);
}

/* The nowhere node keeps the count above 0, and done() in the loop. */
void
nodes_close(struct nodes *n, usec_t within, void (*done)(void *), void *arg)
{
	struct node *node;

	n->closed = done;
	n->closed_arg = arg;
	nodes_stop_asking(n);
	TAILQ_FOREACH(node, &n->all, entry)
		n->closing++;
	if (nodes_is_cluster(n)) {
		n->closing++;
		conn_close(n->nowhere->conn, 0, nodes_conn_closed, n);
	}
	TAILQ_FOREACH(node, &n->all, entry)
		conn_close(node->conn, within, nodes_conn_closed, n);
}

struct nodes *
nodes_new(struct loop *loop, const struct redis_options *opt, const char *name,
    const struct nodes_events *events, void *arg)
{
	struct nodes *n = NEW(struct nodes, .loop = loop, .opt = opt, .name = xstrdup(name),
	    .events = events, .arg = arg);

	TAILQ_INIT(&n->all);
	timer_init(&n->sweep, n->loop, nodes_sweep, n);
	timer_init(&n->ask, n->loop, nodes_ask, n);
	request_init(&n->info, nodes_got_info, n);
	request_init(&n->question, nodes_got_slots, n);
	if (opt->clusters == NULL || opt->clusters[0] == NULL) {
		(void)node_new(n, NULL);
		return n;
	}
	n->any = *opt;
	n->any.servers = xcalloc(1, sizeof(char *));
	n->any.sentinels = n->no_servers;
	n->any.clusters = NULL;
	n->any.any_role = true;
	n->any.is_node = true;
	for (char **s = opt->clusters; *s != NULL; s++)
		nodes_add_server(n, *s);
	n->nowhere = node_new(n, "");
	return n;
}

void
nodes_free(struct nodes *n)
{
	struct node *node;

	if (n == NULL)
		return;
	nodes_stop_asking(n);
	while ((node = TAILQ_TAKE(&n->all, entry)) != NULL)
		node_free(node);
	node_free(n->nowhere);
	conn_free(n->seed);
	slots_done(&n->slots);
	util_free_list(n->any.servers);
	free(n->asked);
	free(n->no_table);
	free(n->name);
	free(n);
}

/* -- what others see ---------------------------------------------------------------------- */

/* Counts a node without users, too, if only heartbeats need it. */
bool
nodes_are_ready(const struct nodes *n)
{
	const struct node *node;

	TAILQ_FOREACH(node, &n->all, entry) {
		if (!node->retired && !conn_is_ready(node->conn))
			return false;
	}
	return !TAILQ_EMPTY(&n->all) && !n->missing && n->no_table == NULL;
}

bool
nodes_is_one_ready(const struct nodes *n)
{
	return nodes_ready(n) != NULL;
}

void
nodes_causes(const struct nodes *n, struct buf *b)
{
	const struct node *node;

	if (n->no_table != NULL)
		buf_puts(b, n->no_table);
	TAILQ_FOREACH(node, &n->all, entry) {
		if (!node->retired && !conn_is_ready(node->conn))
			buf_printf(b, "%s%s", b->len > 0 ? "; " : "",
			    node->cause != NULL ? node->cause : "not connected yet");
	}
	if (b->len == 0 && n->missing)
		buf_puts(b, "the cluster has no master for some slots");
	if (b->len == 0 && TAILQ_EMPTY(&n->all))
		buf_puts(b, "not connected yet");
}

unsigned
nodes_outstanding(const struct nodes *n)
{
	const struct node *node;
	unsigned sum = 0;

	TAILQ_FOREACH(node, &n->all, entry)
		sum += conn_outstanding(node->conn);
	return sum;
}

uint64_t
nodes_reconnects(const struct nodes *n)
{
	const struct node *node;
	uint64_t connects, sum = 0;

	TAILQ_FOREACH(node, &n->all, entry) {
		connects = conn_generation(node->conn);
		sum += connects > 0 ? connects - 1 : 0;
	}
	return sum;
}

const struct conn_server *
nodes_server(const struct nodes *n)
{
	const struct node *node = nodes_ready(n);

	if (node == NULL)
		node = TAILQ_EMPTY(&n->all) ? n->nowhere : TAILQ_FIRST(&n->all);
	return conn_server(node->conn);
}
