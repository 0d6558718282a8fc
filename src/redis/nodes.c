/*
 * The nodes; see nodes.h.
 *
 * A node of a cluster is made when some user needs it.  When it no longer owns a slot,
 * it is retired: it has a second to answer its calls, and is freed when nobody uses it.
 */
#include "redis/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "loop/timer.h"
#include "redis/slot_table.h"

#define LOOK_EVERY	SEC
#define HANGS		SEC		/* after this time without a reply it hangs */
#define RETIRE_AFTER	SEC
#define NODE_BACKOFF	SEC		/* the longest, of a master */

struct nodes {
	struct loop		*loop;
	const struct redis_options *opt;
	char			*name;
	const struct nodes_events *events;
	void			*arg;
	TAILQ_HEAD(, node)	 all;		/* one server: exactly one */
	size_t			 reply_max;	/* 0: the limits are not set */
	usec_t			 backoff_max, silence_max;
	unsigned		 closing;	/* connections that nodes_close() waits for */
	void			(*closed)(void *);
	void			*closed_arg;

	/* Of a cluster. */
	struct slot_table	*table;		/* NULL: one server */
	struct slots		*slots;		/* its */
	struct node		*nowhere;
	bool			 patched;	/* MOVED has changed the table since it came */
	enum { SLOTS_HEARD, SLOTS_DENIED, SLOTS_UNKNOWN } refused;	/* the last refusal */
	/* A user needs a slot without a node, or did when the table last changed. */
	bool			 missing;
	struct timer		 sweep;		/* set: nodes are retired */
	struct timer		 look;		/* for a node that hangs */
};

static struct node	*node_find(const struct nodes *, const char *address);
static struct node	*node_at(struct nodes *, const char *address);

/* -- one node ------------------------------------------------------------------- */

static void
node_up(const struct conn_server *server, void *arg)
{
	struct node *node = arg;
	struct nodes *n = node->nodes;

	xreplace(&node->cause, NULL);
	n->events->up(node, server, n->arg);
	if (n->table != NULL)
		slot_table_want(n->table);
}

static void
node_down(const char *cause, void *arg)
{
	struct node *node = arg;
	struct nodes *n = node->nodes;

	xreplace(&node->cause, cause);
	n->events->down(node, cause, n->arg);
	if (n->table != NULL)
		slot_table_want(n->table);
}

static void
node_watch(bool on, const char *why, void *arg)
{
	const struct node *node = arg;

	node->nodes->events->watch(on, why, node->nodes->arg);
}

/*
 * The connection of the node that ASK names; NULL: it is not READY, or not a known
 * master.  A master without a connection gets one, for the next time.
 */
static struct conn *
nodes_asked(struct nodes *n, const char *address)
{
	struct node *node = node_find(n, address);

	for (size_t i = 0; node == NULL && i < n->slots->n; i++) {
		if (strcmp(n->slots->nodes[i], address) == 0)
			node = node_at(n, address);
	}
	return node != NULL && conn_is_ready(node->conn) ? node->conn : NULL;
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
	struct conn *asked = may_ask && !moved && to != NULL ? nodes_asked(n, to) : NULL;

	if (moved && to != NULL && strcmp(to, node->address) != 0) {
		slots_set(n->slots, slot, to);
		n->patched = true;
		later = false;
	}
	free(to);
	if (asked != NULL)
		return asked;
	if (moved || strncmp(error, "CLUSTERDOWN ", 12) == 0)
		slot_table_want(n->table);
	n->events->redirected(node, slot, later, n->arg);
	return NULL;
}

/*
 * Like node_redirected(), but never passes a call on: only the bulk connection answers
 * its calls.
 */
static struct conn *
node_bulk_redirected(const char *error, unsigned slot, bool may_ask UNUSED, void *arg)
{
	return node_redirected(error, slot, false, arg);
}

/* This node knows which one has the slot now, so it is asked next. */
static void
node_slot_left(void *arg)
{
	struct node *node = arg;
	struct nodes *n = node->nodes;

	TAILQ_REMOVE(&n->all, node, entry);
	TAILQ_INSERT_HEAD(&n->all, node, entry);
	slot_table_want(n->table);
}

static void
node_slots_refused(const char *error, bool denied, void *arg)
{
	const struct node *node = arg;
	struct nodes *n = node->nodes;
	unsigned refused = denied ? SLOTS_DENIED : SLOTS_UNKNOWN;

	if (n->refused == refused)
		return;
	n->refused = refused;
	n->events->slots_refused(error, denied, n->arg);
}

static void
node_limit(const struct nodes *n, const struct node *node)
{
	usec_t backoff = n->table != NULL && n->backoff_max > NODE_BACKOFF ? NODE_BACKOFF :
	    n->backoff_max;

	if (n->reply_max == 0)
		return;
	conn_set_reply_max(node->conn, n->reply_max);
	conn_set_backoff_max(node->conn, backoff);
	conn_set_silence_max(node->conn, n->silence_max);
	bulk_set_limits(node->bulk, n->reply_max, backoff);
}

/*
 * address: of a cluster's master; "": the nowhere node; NULL: the server that the
 * options name.
 */
static struct node *
node_new(struct nodes *n, const char *address)
{
	static const struct conn_events events = { node_up, node_down };
	static const struct slot_watch_events slots = { node_slot_left, node_slots_refused };
	struct node *node = NEW(struct node, .nodes = n);
	const struct redis_options *opt = n->opt;

	if (address != NULL) {
		node->address = xstrdup(address);
		node->servers[0] = address[0] != '\0' ? node->address : NULL;
		node->options = *slot_table_any(n->table);
		node->options.servers = node->servers;
		node->options.any_role = false;
		opt = &node->options;
	}
	node->conn = conn_new(n->loop, opt, n->name, 0, &events, node);
	node->watch = watch_new(n->loop, node->conn, opt, n->name, node_watch, node);
	node->bulk = bulk_new(n->loop, node->conn, opt, n->name);
	node_limit(n, node);
	if (address == NULL || address[0] != '\0')
		TAILQ_INSERT_TAIL(&n->all, node, entry);
	if (address == NULL)
		return node;
	if (address[0] != '\0')
		node->slots = watch_slots(node->watch, &slots, node);
	conn_set_redirected(node->conn, node_redirected, node);
	bulk_set_redirected(node->bulk, node_bulk_redirected, node);
	return node;
}

static void
node_free(struct node *node)
{
	if (node == NULL)
		return;
	node->nodes->events->gone(node, node->nodes->arg);
	watch_free(node->watch);
	bulk_free(node->bulk);
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

/* -- nodes of keys --------------------------------------------------------------- */

bool
nodes_is_cluster(const struct nodes *n)
{
	return n->table != NULL;
}

unsigned
nodes_slot(const struct nodes *n, const char *key, size_t len)
{
	return n->table != NULL ? slot_of(key, len) : 0;
}

struct node *
nodes_of(struct nodes *n, unsigned slot)
{
	const char *address;

	if (n->table == NULL)
		return TAILQ_FIRST(&n->all);
	if ((address = slots_node(n->slots, slot)) == NULL) {
		n->missing = true;
		slot_table_want(n->table);
		return NULL;
	}
	return node_at(n, address);
}

const char *
nodes_master(const struct nodes *n, size_t i)
{
	return i < n->slots->n ? n->slots->nodes[i] : NULL;
}

struct conn *
nodes_master_conn(struct nodes *n, size_t i)
{
	return i < n->slots->n ? node_at(n, n->slots->nodes[i])->conn : NULL;
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
	return n->table != NULL ? slot_table_any(n->table) : n->opt;
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

static void
nodes_retire(struct nodes *n)
{
	struct node *node;
	size_t i;

	TAILQ_FOREACH(node, &n->all, entry) {
		for (i = 0; i < SLOTS && !slots_is_node(n->slots, (unsigned)i, node->address); i++)
			continue;
		node->retired = i == SLOTS;
		if (!node->retired)
			continue;
		if (node_hangs(node))
			node_give_up(node);
		if (!timer_is_set(&n->sweep))
			timer_set(&n->sweep, RETIRE_AFTER);
	}
}

/* -- the table ------------------------------------------------------------------------ */

/*
 * Whether another master may soon take a slot, or has taken it: then the table is asked
 * for often.
 */
static bool
nodes_is_in_trouble(void *arg)
{
	const struct nodes *n = arg;
	const struct node *node;

	TAILQ_FOREACH(node, &n->all, entry) {
		if (node_hangs(node) || slot_watch_is_behind(node->slots))
			return true;
	}
	return n->slots->n == 0 || !nodes_are_ready(n);
}

/* Every second. */
static void
nodes_look(void *arg)
{
	struct nodes *n = arg;

	timer_set(&n->look, LOOK_EVERY);
	if (nodes_is_in_trouble(n))
		slot_table_want(n->table);
}

/* The next READY node to ask for the table: they take turns. */
static struct conn *
nodes_ask(void *arg)
{
	struct nodes *n = arg;
	struct node *node;

	TAILQ_FOREACH(node, &n->all, entry) {
		if (conn_is_ready(node->conn))
			break;
	}
	if (node == NULL)
		return NULL;
	TAILQ_REMOVE(&n->all, node, entry);
	TAILQ_INSERT_TAIL(&n->all, node, entry);
	return node->conn;
}

static void
nodes_table_came(bool changed, void *arg)
{
	struct nodes *n = arg;

	if (!changed && !n->patched)
		return;
	n->patched = n->missing = false;
	nodes_retire(n);
	n->events->changed((unsigned)n->slots->n, n->arg);
}

static void
nodes_no_table(const char *cause, void *arg)
{
	struct nodes *n = arg;

	n->events->no_table(cause, n->arg);
}

/* -- all of them ------------------------------------------------------------------------ */

void
nodes_set_limits(struct nodes *n, size_t reply_max, usec_t backoff_max, usec_t silence_max)
{
	struct node *node;

	n->reply_max = reply_max;
	n->backoff_max = backoff_max;
	n->silence_max = silence_max;
	TAILQ_FOREACH(node, &n->all, entry)
		node_limit(n, node);
}

void
nodes_probe(struct nodes *n)
{
	struct node *node;

	TAILQ_FOREACH(node, &n->all, entry) {
		if (!conn_is_ready(node->conn))
			continue;
		conn_probe(node->conn);
		watch_probe(node->watch);
	}
	if (n->table != NULL)
		slot_table_want(n->table);
}

void
nodes_start(struct nodes *n)
{
	struct node *node;

	if (n->table != NULL) {
		timer_set(&n->look, LOOK_EVERY);
		slot_table_want(n->table);
		return;
	}
	node = TAILQ_FIRST(&n->all);
	conn_start(node->conn);
	watch_start(node->watch);
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
	timer_stop(&n->sweep);
	timer_stop(&n->look);
	TAILQ_FOREACH(node, &n->all, entry)
		n->closing++;
	if (n->table != NULL) {
		slot_table_stop(n->table);
		n->closing++;
		conn_close(n->nowhere->conn, 0, nodes_conn_closed, n);
	}
	TAILQ_FOREACH(node, &n->all, entry)
		conn_close(node->conn, within, nodes_conn_closed, n);
}

static void
nodes_init_cluster(struct nodes *n)
{
	static const struct slot_table_events events = {
		.ask = nodes_ask, .is_in_trouble = nodes_is_in_trouble,
		.came = nodes_table_came, .none = nodes_no_table
	};

	n->table = slot_table_new(n->loop, n->opt, n->name, &events, n);
	n->slots = slot_table_slots(n->table);
	timer_init(&n->sweep, n->loop, nodes_sweep, n);
	timer_init(&n->look, n->loop, nodes_look, n);
	n->nowhere = node_new(n, "");
	n->nowhere->options.timeout = MSEC;	/* no call waits for its bulk connection */
}

struct nodes *
nodes_new(struct loop *loop, const struct redis_options *opt, const char *name,
    const struct nodes_events *events, void *arg)
{
	struct nodes *n = NEW(struct nodes, .loop = loop, .opt = opt, .name = xstrdup(name),
	    .events = events, .arg = arg);

	TAILQ_INIT(&n->all);
	if (opt->clusters != NULL && opt->clusters[0] != NULL)
		nodes_init_cluster(n);
	else
		(void)node_new(n, NULL);
	return n;
}

void
nodes_free(struct nodes *n)
{
	struct node *node;

	if (n == NULL)
		return;
	timer_stop(&n->sweep);
	timer_stop(&n->look);
	if (n->table != NULL)
		slot_table_stop(n->table);
	while ((node = TAILQ_TAKE(&n->all, entry)) != NULL)
		node_free(node);
	node_free(n->nowhere);
	slot_table_free(n->table);
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
	return !TAILQ_EMPTY(&n->all) && !n->missing &&
	    (n->table == NULL || slot_table_cause(n->table) == NULL);
}

bool
nodes_is_one_ready(const struct nodes *n)
{
	const struct node *node;

	TAILQ_FOREACH(node, &n->all, entry) {
		if (conn_is_ready(node->conn))
			return true;
	}
	return false;
}

void
nodes_causes(const struct nodes *n, struct buf *b)
{
	const struct node *node;

	if (n->table != NULL && slot_table_cause(n->table) != NULL)
		buf_puts(b, slot_table_cause(n->table));
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
	const struct node *node, *best = TAILQ_FIRST(&n->all);

	TAILQ_FOREACH(node, &n->all, entry) {
		if (conn_is_ready(node->conn))
			best = node;
	}
	return conn_server(best != NULL ? best->conn : n->nowhere->conn);
}
