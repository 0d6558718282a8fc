/*
 * Nodes and routes on a Redis Cluster of two masters: which master gets a command, and
 * what happens to commands and queues when slots move and masters die.
 */
#include "../unit/unit.h"

#include <signal.h>

#include "queue/slot_route.h"
#include "redis/reply.h"
#include "redis/request.h"
#include "redis/slots.h"
#include "server.h"

#define HALF	8192	/* "{a}" has slot 15495, "{b}" 3300 */

/* Turns the loop until the condition holds; the test fails if it never does. */
#define WAIT(cond) do {							\
	usec_t end_ = clock_mono() + 2 * MINUTE;			\
	while (!(cond) && clock_mono() < end_)				\
		loop_turn(loop, 20 * MSEC);				\
	assert_true(cond);						\
} while (0)

static struct loop *loop;
static struct server low, high;		/* the masters of the slots below and from HALF on */
static int low_port, high_port, low_bus, high_bus;
static char *seeds[3], *no_servers[1];
static struct redis_options options;
static struct nodes *nodes;
static struct routes *all;
static unsigned changes, redirections, gone;
static bool last_later;
static const struct server *to_stop;	/* stopped at the next redirection; NULL: none */
static char no_table[256];

/* What a queue has of a route, and what the route has told it. */
static struct part {
	struct route_user	 user;
	const struct queue_env	*env;
	struct request		 request;
	unsigned		 ups, downs, replies, lost, not_sent;
	bool			 is_up;
} a, b;

/* -- the owner of the nodes ------------------------------------------------------------ */

static void
on_up(struct node *node, const struct conn_server *server, void *arg UNUSED)
{
	routes_node_up(all, node, server);
	watch_conn_up(node->watch);
}

static void
on_down(struct node *node, const char *cause UNUSED, void *arg UNUSED)
{
	watch_conn_down(node->watch);
	routes_node_down(all, node);
}

static void
on_watch(bool on UNUSED, const char *why UNUSED, void *arg UNUSED)
{
}

static void
on_gone(struct node *node UNUSED, void *arg UNUSED)
{
	gone++;
}

static void
on_changed(unsigned masters UNUSED, void *arg UNUSED)
{
	changes++;
	routes_changed(all);
}

static void
on_redirected(struct node *node, const char *error UNUSED, unsigned slot, bool later,
    void *arg UNUSED)
{
	redirections++;
	last_later = later;
	if (to_stop != NULL)
		server_signal(to_stop, SIGSTOP);
	to_stop = NULL;
	routes_redirected(all, node, slot, later);
}

static void
on_no_table(const char *cause, void *arg UNUSED)
{
	snprintf(no_table, sizeof(no_table), "%s", cause != NULL ? cause : "");
}

/* -- a queue's part ---------------------------------------------------------------------- */

static void
part_up(const struct conn_server *server, void *arg)
{
	struct part *p = arg;

	assert_non_null(server);
	assert_true(conn_is_ready(p->env->conn));
	assert_false(p->is_up);
	p->is_up = true;
	p->ups++;
}

/* When down() comes, no request of the queue is outstanding. */
static void
part_down(void *arg)
{
	struct part *p = arg;

	assert_true(p->is_up);
	assert_false(request_is_sent(&p->request));
	p->is_up = false;
	p->downs++;
}

static void
part_answered(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct part *p = arg;

	if (answer == CONN_REPLY) {
		assert_int_equal(reply_error(reply), REPLY_OK);
		p->replies++;
	} else if (answer == CONN_LOST) {
		p->lost++;
	} else {
		p->not_sent++;
	}
}

static void
part_begin(struct part *p, const char *key)
{
	*p = (struct part){ .user = { .up = part_up, .down = part_down, .arg = p } };
	request_init(&p->request, part_answered, p);
	p->env = route_join(all, key, &p->user);
	route_begin(&p->user);
}

static unsigned
answers(const struct part *p)
{
	return p->replies + p->lost + p->not_sent;
}

static void
part_push(struct part *p, const char *key)
{
	unsigned before = answers(p);

	request_words(&p->request, p->env->conn, "LPUSH", key, "x", NULL);
	WAIT(answers(p) > before);
}

/* Runs a script with two keys that do not exist, "{a}1" and "{a}2". */
static void
part_run(struct part *p)
{
	unsigned before = answers(p);

	request_words(&p->request, p->env->conn, "EVAL", "return 1", "2", "{a}1", "{a}2", NULL);
	WAIT(answers(p) > before);
}

/* -- the cluster --------------------------------------------------------------------------- */

static void
start_node(struct server *s, int *port, int *bus_port)
{
	char text[16], bus[16];

	*port = server_free_port();
	snprintf(text, sizeof(text), "%d", *port);
	*bus_port = server_free_port();
	snprintf(bus, sizeof(bus), "%d", *bus_port);
	server_start(s, "--cluster-enabled", "yes", "--port", text, "--cluster-port", bus,
	    "--cluster-require-full-coverage", "no", "--cluster-node-timeout", "1500", NULL);
}

static bool
knows_all(struct server *s)
{
	const char *info = server_do(s, "CLUSTER INFO");

	return strstr(info, "cluster_state:ok") != NULL &&
	    strstr(info, "cluster_slots_ok:16384") != NULL;
}

static int
setup(void **state UNUSED)
{
	static const struct nodes_events events = {
		on_up, on_down, on_watch, on_gone, on_changed, on_redirected, on_no_table
	};
	static char empty[] = "";

	loop = loop_new();
	start_node(&low, &low_port, &low_bus);
	start_node(&high, &high_port, &high_bus);
	server_do(&low, "CLUSTER ADDSLOTSRANGE 0 %d", HALF - 1);
	server_do(&high, "CLUSTER ADDSLOTSRANGE %d 16383", HALF);
	server_do(&low, "CLUSTER MEET 127.0.0.1 %d %d", high_port, high_bus);
	WAIT(knows_all(&low) && knows_all(&high));
	seeds[0] = xasprintf("127.0.0.1:%d", low_port);
	seeds[1] = xasprintf("127.0.0.1:%d", high_port);
	options = (struct redis_options){ .servers = no_servers, .sentinels = no_servers,
		.clusters = seeds, .username = empty, .password_file = empty, .timeout = 2 * SEC };
	nodes = nodes_new(loop, &options, "test", &events, NULL);
	all = routes_new(&(struct queue_env){ .loop = loop, .redis = nodes_any(nodes) }, nodes);
	part_begin(&a, "{a}");
	part_begin(&b, "{b}");
	changes = redirections = gone = 0;
	nodes_start(nodes);
	return 0;
}

static int
teardown(void **state UNUSED)
{
	request_cancel(&a.request);
	request_cancel(&b.request);
	route_leave(&a.user);
	route_leave(&b.user);
	routes_free(all);
	nodes_free(nodes);
	loop_free(loop);
	server_stop(&low);
	server_stop(&high);
	free(seeds[0]);
	free(seeds[1]);
	return 0;
}

#define CLUSTER_TEST(name)	TEST_WITH(name, setup, teardown)

static char *
id_of(struct server *s)
{
	return xstrdup(server_do(s, "CLUSTER MYID"));
}

/* Gives the slot of "{a}" to this server. */
static void
move_a_to(struct server *to)
{
	unsigned slot = slot_of("{a}", 3);
	char *id = id_of(to);

	server_do(to, "CLUSTER BUMPEPOCH");	/* else the others' claims may count more */
	server_do(to, "CLUSTER SETSLOT %u NODE %s", slot, id);
	server_do(to == &low ? &high : &low, "CLUSTER SETSLOT %u NODE %s", slot, id);
	free(id);
}

static void
move_a(void)
{
	move_a_to(&low);
}

/* Begins to move the slot of "{a}" from high to low; no key has moved yet. */
static void
open_a(void)
{
	unsigned slot = slot_of("{a}", 3);
	char *to = id_of(&low), *from = id_of(&high);

	server_do(&low, "CLUSTER SETSLOT %u IMPORTING %s", slot, from);
	server_do(&high, "CLUSTER SETSLOT %u MIGRATING %s", slot, to);
	free(to);
	free(from);
}

static int64_t
keys_of_a(struct server *s)
{
	return server_int(s, "CLUSTER COUNTKEYSINSLOT %u", slot_of("{a}", 3));
}

/* A figure of a command, from INFO commandstats; 0 if it was never called. */
static long
figure_of(struct server *s, const char *command, const char *figure)
{
	char name[64];
	const char *line;

	snprintf(name, sizeof(name), "cmdstat_%s:", command);
	if ((line = strstr(server_do(s, "INFO commandstats"), name)) == NULL ||
	    (line = strstr(line, figure)) == NULL)
		return 0;
	return strtol(line + strlen(figure) + 1, NULL, 10);
}

static void
key_changed(void *arg)
{
	++*(unsigned *)arg;
}

/* -- tests ------------------------------------------------------------------------------------ */

CLUSTER_TEST(test_routes)
{
	assert_true(nodes_is_cluster(nodes));
	WAIT(a.is_up && b.is_up);
	assert_ptr_not_equal(a.env->conn, b.env->conn);
	part_push(&a, "{a}");
	part_push(&b, "{b}");
	assert_int_equal(a.replies + b.replies, 2);
	assert_int_equal(redirections, 0);
	assert_int_equal(server_int(&high, "LLEN {a}"), 1);
	assert_true(nodes_are_ready(nodes));
	assert_ptr_equal(nodes_conn(nodes, "x{a}"), a.env->conn);
}

/*
 * A slot has moved: the command is answered "not sent", and the queue goes to its new
 * master.
 */
CLUSTER_TEST(test_moved)
{
	unsigned slot = slot_of("{a}", 3);
	const struct node *old;
	usec_t since;

	WAIT(a.is_up && b.is_up);
	old = nodes_of(nodes, slot);
	since = b.env->since;
	move_a();
	part_push(&a, "{a}");
	assert_int_equal(a.not_sent, 1);
	assert_int_equal(redirections, 1);
	assert_false(last_later);
	WAIT(a.downs == 1 && a.is_up);
	assert_ptr_equal(a.env->conn, b.env->conn);
	assert_true(a.env->since > since);
	assert_int_equal(b.env->since, since);
	/* A late redirection by the old master changes nothing. */
	routes_redirected(all, old, slot, true);
	assert_true(conn_is_ready(a.env->conn));
	part_push(&a, "{a}");
	assert_int_equal(a.replies, 1);
	assert_int_equal(b.downs, 0);
	assert_int_equal(server_int(&low, "LLEN {a}"), 1);
}

/* While no master serves a slot, the nodes are not ready. */
CLUSTER_TEST(test_missing)
{
	unsigned slot = slot_of("{a}", 3), before;
	usec_t end;

	WAIT(a.is_up && b.is_up);
	before = changes;
	server_do(&low, "CLUSTER DELSLOTS %u", slot);
	server_do(&high, "CLUSTER DELSLOTS %u", slot);
	nodes_probe(nodes);
	WAIT(changes > before && !nodes_are_ready(nodes));
	for (end = clock_mono() + 2500 * MSEC; clock_mono() < end;) {	/* two more slot tables */
		loop_turn(loop, 20 * MSEC);
		assert_false(nodes_are_ready(nodes));
	}
	part_push(&b, "{b}");
	assert_int_equal(b.downs, 0);
	server_do(&high, "CLUSTER ADDSLOTS %u", slot);
	WAIT(a.is_up && nodes_are_ready(nodes));
}

/* A master loses all its slots: rqd closes its connections. */
CLUSTER_TEST(test_retired)
{
	char *id = id_of(&low);

	WAIT(a.is_up && b.is_up);
	server_do(&low, "CLUSTER BUMPEPOCH");
	for (unsigned i = HALF; i < SLOTS; i++) {
		server_do(&low, "CLUSTER SETSLOT %u NODE %s", i, id);
		server_do(&high, "CLUSTER SETSLOT %u NODE %s", i, id);
	}
	free(id);
	part_push(&a, "{a}");
	WAIT(a.is_up && a.env->conn == b.env->conn);
	WAIT(gone == 1);
	assert_true(nodes_are_ready(nodes));
}

/*
 * A slot moves while nothing is sent to it: rqd learns from the next slot table that the queue
 * has another master.  Keys in other slots are still watched.
 */
CLUSTER_TEST(test_slot_leaves)
{
	struct words w = { .n = 0 };
	struct watch *watch;
	unsigned changed = 0;
	struct watch_key key = { .key = "{foo}", .len = 5, .changed = key_changed,
	    .arg = &changed };

	WAIT(a.is_up && b.is_up && watch_is_on(a.env->watch));
	watch = a.env->watch;
	assert_true(slot_of(key.key, key.len) >= HALF);
	watch_add(watch, &key);
	words_key(&w, key.key, key.len);
	watch_request(watch, &b.request, script_find("arm"), &w);
	WAIT(b.replies == 1);
	for (unsigned i = 0; i < 4; i++) {
		move_a_to(i % 2 == 0 ? &low : &high);
		nodes_probe(nodes);
		WAIT(a.downs == i + 1 && a.is_up &&
		    (a.env->conn == b.env->conn) == (i % 2 == 0));
	}
	assert_int_equal(redirections, 0);
	server_do(&high, "SET {foo} x");
	WAIT(changed == 1);
	assert_true(watch_is_on(watch));
	watch_remove(watch, &key);
}

/*
 * A script with several keys gets ASK or TRYAGAIN: its queue tries again later, and the
 * other queue goes on.
 */
CLUSTER_TEST(test_half_moved)
{
	unsigned slot = slot_of("{a}", 3), ups;

	WAIT(a.is_up && b.is_up);
	open_a();
	part_run(&a);
	assert_int_equal(a.not_sent, 1);
	assert_true(last_later);
	assert_false(conn_is_ready(a.env->conn));
	ups = a.ups;
	WAIT(a.downs == 1);
	part_push(&b, "{b}");
	WAIT(a.ups == ups + 1);
	assert_int_equal(b.downs, 0);
	server_do(&high, "CLUSTER SETSLOT %u STABLE", slot);
	WAIT(a.is_up);
	part_push(&a, "{a}");
	assert_int_equal(a.replies, 1);
}

/*
 * While a slot moves, a command or a script with one key follows ASK, whether its key has
 * moved or not.
 */
CLUSTER_TEST(test_ask)
{
	struct words w = { .n = 0 };

	WAIT(a.is_up && b.is_up);
	part_push(&a, "{a}here");
	open_a();
	part_push(&a, "{a}here");
	part_push(&a, "{a}there");
	assert_int_equal(keys_of_a(&high), 1);
	assert_int_equal(keys_of_a(&low), 1);
	assert_int_equal(server_int(&high, "LLEN {a}here"), 2);
	/*
	 * The other node does not know the script: rqd sends its text, after another
	 * ASKING.
	 */
	server_do(&low, "SCRIPT FLUSH");
	words_key(&w, "{a}lock", 7);
	words_add(&w, "token");
	words_add(&w, "10000");
	words_add(&w, "who");
	watch_request(a.env->watch, &a.request, script_find("lock"), &w);
	WAIT(answers(&a) == 4);
	assert_int_equal(keys_of_a(&low), 2);
	assert_int_equal(a.replies, 4);
	assert_int_equal(redirections, 0);
	assert_int_equal(a.downs, 0);
}

/*
 * The node that ASK names hangs, and then dies: the command is answered once.  If its
 * owner has cancelled it, it is not answered.
 */
CLUSTER_TEST(test_ask_lost)
{
	WAIT(a.is_up && b.is_up);
	open_a();
	server_signal(&low, SIGSTOP);
	request_words(&a.request, a.env->conn, "LPUSH", "{a}", "x", NULL);
	WAIT(figure_of(&high, "lpush", "rejected_calls") == 1);
	request_cancel(&a.request);
	request_words(&a.request, a.env->conn, "LPUSH", "{a}", "x", NULL);
	WAIT(figure_of(&high, "lpush", "rejected_calls") == 2 &&
	    conn_outstanding(a.env->conn) == 0);
	server_kill(&low);
	WAIT(answers(&a) == 1 && nodes_outstanding(nodes) == 0);
	assert_int_equal(a.replies, 0);
}

/*
 * The node that ASK names does not take the slot, or is down: the command is answered
 * "not sent".
 */
CLUSTER_TEST(test_ask_in_vain)
{
	unsigned slot = slot_of("{a}", 3);

	WAIT(a.is_up && b.is_up);
	open_a();
	server_do(&low, "CLUSTER SETSLOT %u STABLE", slot);
	part_push(&a, "{a}");
	assert_int_equal(a.not_sent, 1);
	assert_int_equal(redirections, 1);
	WAIT(a.is_up);
	server_kill(&low);
	WAIT(!b.is_up);
	part_push(&a, "{a}");
	assert_int_equal(a.not_sent, 2);
	assert_true(last_later);
	assert_int_equal(keys_of_a(&high), 0);
}

/*
 * A node answers later than its queue would try again: the queue still gets down() before
 * up().
 */
CLUSTER_TEST(test_slow_to_leave)
{
	unsigned slot = slot_of("{a}", 3);

	WAIT(a.is_up && b.is_up);
	open_a();
	to_stop = &high;
	part_run(&a);
	assert_true(last_later);
	for (usec_t end = clock_mono() + 400 * MSEC; clock_mono() < end;)
		loop_turn(loop, 20 * MSEC);
	assert_int_equal(a.ups, 1);
	assert_int_equal(a.downs, 0);
	server_signal(&high, SIGCONT);
	WAIT(a.downs == 1);
	server_do(&high, "CLUSTER SETSLOT %u STABLE", slot);
	WAIT(a.is_up);
	part_push(&a, "{a}");
	assert_int_equal(a.replies, 1);
	assert_int_equal(a.ups, a.downs + 1);
}

/* A node that is down affects only the queues whose slots it has. */
CLUSTER_TEST(test_down)
{
	struct buf causes = BUF_INIT;

	WAIT(a.is_up && b.is_up);
	server_kill(&high);
	WAIT(!a.is_up);
	part_push(&b, "{b}");
	assert_int_equal(b.replies, 1);
	assert_false(nodes_are_ready(nodes));
	assert_true(nodes_is_one_ready(nodes));
	nodes_causes(nodes, &causes);
	assert_non_null(strstr(buf_str(&causes), seeds[1]));
	buf_done(&causes);
	assert_int_equal(b.downs, 0);
	/* The server knows its slots from nodes.conf. */
	server_again(&high);
	WAIT(a.is_up);
	assert_int_equal(a.downs, 1);
}

/* A server without cluster support cannot be a seed, and rqd says so. */
CLUSTER_TEST(test_no_cluster)
{
	static const struct nodes_events events = {
		on_up, on_down, on_watch, on_gone, on_changed, on_redirected, on_no_table
	};
	struct server other;
	char *servers[] = { NULL, NULL };
	struct redis_options lone = options;
	struct nodes *n;

	server_start_tcp(&other);
	servers[0] = xasprintf("127.0.0.1:%d", other.port);
	lone.clusters = servers;
	n = nodes_new(loop, &lone, "test", &events, NULL);
	nodes_start(n);
	WAIT(strstr(no_table, "cluster support disabled") != NULL);
	assert_false(nodes_are_ready(n));
	nodes_free(n);
	server_stop(&other);
	free(servers[0]);
}
