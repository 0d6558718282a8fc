/*
 * The connection: commands, scripts, subscriptions, its end.
 */
#include "harness.h"

#include <dlfcn.h>
#include <math.h>
#include <netdb.h>
#include <signal.h>

#include "base/log.h"
#include "loop/timer.h"
#include "redis/script.h"

#define TIMEOUT		(5 * SEC)

const struct script script_table[] = { SCRIPT_ADD, SCRIPT_ECHO, { NULL, NULL, 0, NULL } };

struct fixture {
	struct harness h;
	struct server s;
	struct call calls[2000];
	struct conn_server server;
};

static int
setup_flags(void **state, unsigned flags)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	harness_start(&f->h, &f->s, TIMEOUT, flags);
	*state = f;
	return 0;
}

static int
setup(void **state)
{
	return setup_flags(state, 0);
}

static int
setup_subscriber(void **state)
{
	return setup_flags(state, CONN_SUBSCRIBER);
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	harness_done(&f->h);
	server_stop(&f->s);
	free(f);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, teardown)

static void
start(struct fixture *f)
{
	conn_start(f->h.conn);
	WAIT(&f->h, f->h.ups == 1);
	assert_true(conn_is_ready(f->h.conn));
}

/* Calls a script of the table with one key and one argument. */
static void
run_script(struct fixture *f, const char *name, struct call *call, const char *arg)
{
	const char *argv[] = { "key", arg };
	size_t argvlen[] = { 3, strlen(arg) };

	call_script(f->h.conn, script_find(name), call_answered, call, 1, 2, argv, argvlen);
}

/* -- commands ----------------------------------------------------------------- */

FIXTURE_TEST(test_up)
{
	struct fixture *f = *state;
	struct harness *h = &f->h;

	assert_false(conn_is_ready(h->conn));
	assert_int_equal(conn_timely_since(h->conn), 0);
	start(f);
	assert_true(h->first);
	assert_true(h->changed);
	assert_int_equal(strlen(h->run_id), 40);
	assert_string_equal(h->address, f->s.uri);
	assert_int_not_equal(h->version[0], '\0');
	assert_string_equal(h->policy, "noeviction");
	assert_int_equal(h->downs, 0);
	assert_int_equal(conn_generation(h->conn), 1);
	assert_true(conn_timely_since(h->conn) > 0);
	assert_true(conn_redis_time(h->conn) > (double)clock_wall() / 1e6 - 2);
	assert_true(conn_redis_time(h->conn) < (double)clock_wall() / 1e6 + 0.001);
	assert_non_null(strstr(server_do(&f->s, "CLIENT LIST"), "name=rqd-test"));
	assert_int_equal(server_int(&f->s, "CLIENT KILL ID %lld", (long long)conn_id(h->conn)), 1);
}

/* Keeps the first address in the log to which a connection failed. */
static void
keep_failed(void *arg, enum log_level level UNUSED, const char *record, size_t n UNUSED)
{
	const char *at = strstr(record, " to=down server=");
	char *failed = arg;

	if (at != NULL && failed[0] == '\0')
		assert_int_equal(sscanf(at, " to=down server=%127s", failed), 1);
}

/*
 * The first of two servers does not exist: the log names it, and the connection uses the
 * other one.
 */
FIXTURE_TEST(test_second_server)
{
	struct fixture *f = *state;
	char failed[128] = "";

	f->h.servers[1] = f->h.servers[0];
	f->h.servers[0] = xstrdup("unix:/nonexistent/redis");
	log_set_level(LOG_LV_DEBUG);
	log_set_sink(keep_failed, failed);
	start(f);
	log_set_sink(NULL, NULL);
	log_set_level(LOG_LV_INFO);
	assert_string_equal(failed, "unix:/nonexistent/redis");
	assert_string_equal(f->h.address, f->s.uri);
}

/* In front of libc's: long names, which no name service here knows, are this machine. */
int
getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
    struct addrinfo **list)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	return real(strlen(node) > 200 ? "127.0.0.1" : node, service, hints, list);
}

/*
 * Servers whose names have 253 bytes and differ in the last one have different addresses: by
 * these Sentinels take turns, and nodes of a cluster are found.
 */
TEST(test_long_names)
{
	struct server s;
	struct harness h;
	char *name = xasprintf("%0252d", 0), *seen[2];

	server_start_tcp(&s);
	for (int i = 0; i < 2; i++) {
		char *uri = xasprintf("%s%c:%d", name, 'a' + i, s.port);

		harness_init(&h, uri, TIMEOUT);
		harness_open(&h, 0);
		harness_connect(&h);
		seen[i] = xstrdup(h.address);
		assert_string_equal(seen[i], uri);
		free(uri);
		harness_done(&h);
	}
	assert_string_not_equal(seen[0], seen[1]);
	free(seen[0]);
	free(seen[1]);
	free(name);
	server_stop(&s);
}

/*
 * Before the connection is up, a command is answered "not sent", and never from inside
 * the call.
 */
FIXTURE_TEST(test_not_sent)
{
	struct fixture *f = *state;
	struct call *c = f->calls;

	conn_words(f->h.conn, call_answered, &c[0], "PING", NULL);
	run_script(f, "echo", &c[1], "x");
	assert_int_equal(c[0].answers, 0);
	assert_int_equal(conn_outstanding(f->h.conn), 2);
	WAIT(&f->h, c[1].answers == 1);
	assert_int_equal(c[0].answer, CONN_NOT_SENT);
	assert_int_equal(c[1].answer, CONN_NOT_SENT);
	assert_int_equal(c[0].order + 1, c[1].order);
	conn_start(f->h.conn);
	while (f->h.ups == 0) {
		memset(&c[2], 0, sizeof(c[2]));
		conn_words(f->h.conn, call_answered, &c[2], "PING", NULL);
		assert_int_equal(c[2].answers, 0);
		WAIT(&f->h, c[2].answers == 1);
	}
	assert_int_equal(conn_outstanding(f->h.conn), 0);
}

FIXTURE_TEST(test_binary)
{
	static const char value[] = "a\0b\r\n\xff$5\r\n";
	struct fixture *f = *state;
	struct call *c = f->calls;
	const char *set[] = { "SET", "k\0e\r\ny", value };
	const size_t setlen[] = { 3, 6, sizeof(value) - 1 };
	const char *get[] = { "STRLEN", "k\0e\r\ny" };

	start(f);
	call_command(f->h.conn, call_answered, &c[0], 3, set, setlen);
	call_command(f->h.conn, call_answered, &c[1], 2, get, (size_t[]){ 6, 6 });
	call_command(f->h.conn, call_answered, &c[2], 2, (const char *[]){ "GET", "k\0e\r\ny" },
	    setlen);
	call_command(f->h.conn, NULL, NULL, 2, get, (size_t[]){ 6, 6 });
	WAIT(&f->h, c[2].answers == 1);
	assert_string_equal(c[0].text, "OK");
	assert_int_equal(c[1].number, sizeof(value) - 1);
	assert_memory_equal(c[2].text, value, 2);
}

FIXTURE_TEST(test_order)
{
	struct fixture *f = *state;
	char number[16];

	start(f);
	run_script(f, "echo", &f->calls[0], "0");
	WAIT(&f->h, f->calls[0].answers == 1);
	f->calls[0] = (struct call){ .h = &f->h };
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(number, sizeof(number), "%u", i);
		if (i % 3 == 0)
			run_script(f, "echo", &f->calls[i], number);
		else
			conn_words(f->h.conn, call_answered, &f->calls[i], "ECHO", number, NULL);
		assert_int_equal(f->calls[i].answers, 0);
	}
	assert_int_equal(conn_outstanding(f->h.conn), 2000);
	WAIT(&f->h, f->calls[1999].answers == 1);
	for (unsigned i = 0; i < 2000; i++) {
		assert_int_equal(f->calls[i].answers, 1);
		assert_int_equal(f->calls[i].answer, CONN_REPLY);
		assert_int_equal(f->calls[i].number, i);
		assert_int_equal(f->calls[i].order, f->calls[0].order + i);
	}
	assert_int_equal(conn_outstanding(f->h.conn), 0);
}

/* While nothing is outstanding no timer runs. */
FIXTURE_TEST(test_idle)
{
	struct fixture *f = *state;

	start(f);
	assert_int_equal(timer_next(f->h.loop), USEC_MAX);
	conn_words(f->h.conn, call_answered, &f->calls[0], "PING", NULL);
	assert_int_not_equal(timer_next(f->h.loop), USEC_MAX);
	WAIT(&f->h, f->calls[0].answers == 1);
	assert_int_equal(timer_next(f->h.loop), USEC_MAX);
	conn_probe(f->h.conn);
	assert_int_not_equal(timer_next(f->h.loop), USEC_MAX);
	WAIT(&f->h, timer_next(f->h.loop) == USEC_MAX);
	assert_true(conn_is_ready(f->h.conn));
}

/*
 * An error is a reply; and the caller may send commands from a reply's callback, and from
 * up().
 */
static void
then_ping(struct call *c)
{
	if (c->answers == 1)
		conn_words(c->h->conn, call_answered, c, "PING", NULL);
}

static struct call up_call;

static void
up_ping(struct harness *h)
{
	assert_true(conn_is_ready(h->conn));
	conn_words(h->conn, call_answered, &up_call, "PING", NULL);
}

FIXTURE_TEST(test_from_callbacks)
{
	struct fixture *f = *state;
	struct call *c = &f->calls[0];

	f->h.on_up = up_ping;
	memset(&up_call, 0, sizeof(up_call));
	start(f);
	c->h = &f->h;
	c->then = then_ping;
	conn_words(f->h.conn, call_answered, c, "NOSUCHCOMMAND", NULL);
	WAIT(&f->h, c->answers == 2);
	assert_int_equal(c->answer, CONN_REPLY);
	assert_string_equal(c->text, "PONG");
	assert_string_equal(up_call.text, "PONG");
}

/* -- scripts ------------------------------------------------------------------ */

FIXTURE_TEST(test_script)
{
	struct fixture *f = *state;
	const struct script unnamed = { "unnamed", "return {ARGV[1]}", 16, "" };
	const char *argv[] = { "", "x\0y" };

	start(f);
	run_script(f, "add", &f->calls[0], "40");
	WAIT(&f->h, f->calls[0].answers == 1);
	run_script(f, "add", &f->calls[1], "2");
	WAIT(&f->h, f->calls[1].answers == 1);
	assert_int_equal(f->calls[1].number, 42);
	call_script(f->h.conn, &unnamed, call_answered, &f->calls[2], 1, 2, argv,
	    (size_t[]){ 0, 3 });
	WAIT(&f->h, f->calls[2].answers == 1);
	assert_int_equal(f->calls[2].answer, CONN_REPLY);
	assert_int_equal(f->calls[2].error, REPLY_OK);
	assert_non_null(strstr(server_do(&f->s, "INFO commandstats"), "cmdstat_evalsha:calls=2"));
}

/* Redis does not know a script yet: of many calls at once one brings the text. */
FIXTURE_TEST(test_noscript)
{
	struct fixture *f = *state;
	struct call *c = f->calls;

	start(f);
	assert_null(strstr(server_do(&f->s, "INFO commandstats"), "cmdstat_script|load"));
	for (unsigned i = 0; i < 30; i++) {
		if (i % 3 == 0)
			run_script(f, "add", &c[i], "1");
		else
			conn_words(f->h.conn, call_answered, &c[i], "INCR", "other", NULL);
	}
	WAIT(&f->h, c[27].answers == 1);
	for (unsigned i = 0; i < 30; i++) {
		assert_int_equal(c[i].answers, 1);
		assert_int_equal(c[i].answer, CONN_REPLY);
		assert_int_equal(c[i].number, i % 3 == 0 ? i / 3 + 1 : i / 3 * 2 + i % 3);
	}
	assert_non_null(strstr(server_do(&f->s, "INFO commandstats"), "cmdstat_eval:calls=1,"));
	/* Redis has kept the script */
	server_do(&f->s, "CONFIG RESETSTAT");
	run_script(f, "add", &c[30], "1");
	WAIT(&f->h, c[30].answers == 1);
	assert_null(strstr(server_do(&f->s, "INFO commandstats"), "cmdstat_eval:"));
	assert_int_equal(conn_outstanding(f->h.conn), 0);
}

/* Redis may forget its scripts at any moment: each call runs once. */
FIXTURE_TEST(test_noscript_often)
{
	struct fixture *f = *state;

	start(f);
	for (unsigned i = 0; i < 300; i++) {
		if (i % 5 == 0)
			server_do(&f->s, "SCRIPT FLUSH");
		run_script(f, i % 2 == 0 ? "add" : "echo", &f->calls[i], "1");
		loop_turn(f->h.loop, 0);
	}
	WAIT(&f->h, conn_outstanding(f->h.conn) == 0);
	for (unsigned i = 0; i < 300; i++) {
		assert_int_equal(f->calls[i].answers, 1);
		assert_int_equal(f->calls[i].error, REPLY_OK);
	}
	assert_string_equal(server_do(&f->s, "GET key"), "150");
}

/* -- subscriptions ------------------------------------------------------------ */

struct heard {
	unsigned	n;
	char		channel[64], payload[64];
	size_t		channel_len, payload_len;
};

static void
hear(const char *channel, size_t len, const struct redisReply *r, void *arg)
{
	struct heard *heard = arg;
	const char *s = reply_str(r, &heard->payload_len);

	heard->n++;
	heard->channel_len = len;
	snprintf(heard->channel, sizeof(heard->channel), "%s", channel);
	memcpy(heard->payload, s, heard->payload_len);
}

TEST_WITH(test_subscribe, setup_subscriber, teardown)
{
	struct fixture *f = *state;
	struct heard a = { 0 }, b = { 0 }, p = { 0 }, late = { 0 };
	struct conn *c = f->h.conn;

	conn_subscribe(c, false, "a", hear, &a);
	conn_subscribe(c, false, "b\xff \r\n", hear, &b);
	conn_subscribe(c, true, "p.*", hear, &p);
	start(f);
	/* up() comes after Redis has confirmed the subscriptions */
	assert_int_equal(server_int(&f->s, "PUBLISH a %b", "x\0y", (size_t)3), 1);
	assert_int_equal(server_int(&f->s, "PUBLISH %b 1", "b\xff \r\n", (size_t)5), 1);
	assert_int_equal(server_int(&f->s, "PUBLISH p.q 2"), 1);
	WAIT(&f->h, p.n == 1);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.payload_len, 3);
	assert_memory_equal(a.payload, "x\0y", 3);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.channel_len, 5);
	assert_memory_equal(b.channel, "b\xff \r\n", 5);
	assert_string_equal(p.channel, "p.q");
	/* subscribe while the connection is up, twice to one name */
	conn_subscribe(c, false, "late", hear, &late);
	conn_subscribe(c, false, "late", hear, &p);
	WAIT(&f->h, server_int(&f->s, "PUBLISH late 3") == 1);
	WAIT(&f->h, late.n > 0 && p.n > 1);
	/* a subscriber's connection sends no commands */
	conn_words(c, call_answered, &f->calls[0], "PING", NULL);
	WAIT(&f->h, f->calls[0].answers == 1);
	assert_int_equal(f->calls[0].answer, CONN_NOT_SENT);
	for (int i = 0; i < 3; i++) {
		conn_probe(c);
		assert_int_not_equal(timer_next(f->h.loop), USEC_MAX);
		conn_probe(c);
		WAIT(&f->h, timer_next(f->h.loop) == USEC_MAX);
	}
	/* a new connection subscribes to all channels again */
	server_int(&f->s, "CLIENT KILL TYPE pubsub");
	WAIT(&f->h, f->h.ups == 2);
	assert_false(f->h.changed);
	server_int(&f->s, "PUBLISH late 4");
	WAIT(&f->h, late.n == 2);
	assert_int_equal(f->h.downs, 1);
}

/* If Redis refuses a subscription, the connection ends, and the next attempt waits. */
TEST_WITH(test_subscribe_denied, setup_subscriber, teardown)
{
	struct fixture *f = *state;
	struct heard a = { 0 };
	usec_t end;

	server_do(&f->s, "ACL SETUSER default resetchannels");
	conn_subscribe(f->h.conn, false, "a", hear, &a);
	conn_start(f->h.conn);
	WAIT(&f->h, f->h.downs == 1);
	assert_non_null(strstr(f->h.cause, "NOPERM"));
	end = clock_mono() + SEC;
	while (clock_mono() < end)
		loop_turn(f->h.loop, 20 * MSEC);
	assert_int_equal(f->h.downs, 1);
	assert_int_equal(f->h.ups, 0);
	assert_in_range(server_int(&f->s, "ACL LOG RESET") * 0 + strtol(strstr(
	    server_do(&f->s, "INFO stats"), "total_connections_received:") +
	    strlen("total_connections_received:"), NULL, 10), 4, 12);
	server_do(&f->s, "ACL SETUSER default allchannels");
	WAIT(&f->h, f->h.ups == 1);
}

TEST_WITH(test_no_subscriptions, setup_subscriber, teardown)
{
	struct fixture *f = *state;
	struct heard a = { 0 };

	start(f);
	conn_probe(f->h.conn);
	conn_subscribe(f->h.conn, false, "a", hear, &a);
	WAIT(&f->h, server_int(&f->s, "PUBLISH a 1") == 1);
	WAIT(&f->h, a.n == 1);
}

/* -- ends --------------------------------------------------------------------- */

static void
closed(void *arg)
{
	(*(unsigned *)arg)++;
}

FIXTURE_TEST(test_close)
{
	struct fixture *f = *state;
	struct call *c = f->calls;
	unsigned done = 0;

	start(f);
	for (unsigned i = 0; i < 10; i++)
		conn_words(f->h.conn, call_answered, &c[i], "PING", NULL);
	conn_close(f->h.conn, 5 * SEC, closed, &done);
	assert_false(conn_is_ready(f->h.conn));
	conn_words(f->h.conn, call_answered, &c[10], "PING", NULL);
	WAIT(&f->h, done == 1);
	for (unsigned i = 0; i < 11; i++) {
		assert_int_equal(c[i].answers, 1);
		assert_int_equal(c[i].answer, i < 10 ? CONN_REPLY : CONN_NOT_SENT);
		assert_int_equal(c[i].order, c[0].order + i);
	}
	assert_int_equal(f->h.downs, 0);
	assert_false(conn_is_ready(f->h.conn));
	assert_int_equal(timer_next(f->h.loop), USEC_MAX);
}

FIXTURE_TEST(test_close_late)
{
	struct fixture *f = *state;
	unsigned done = 0;

	start(f);
	server_signal(&f->s, SIGSTOP);
	conn_words(f->h.conn, call_answered, &f->calls[0], "PING", NULL);
	conn_close(f->h.conn, 100 * MSEC, closed, &done);
	WAIT(&f->h, done == 1);
	assert_int_equal(f->calls[0].answer, CONN_LOST);
	server_signal(&f->s, SIGCONT);
}

/* A connection can be closed in every state, also before it was started. */
FIXTURE_TEST(test_close_early)
{
	struct fixture *f = *state;
	unsigned done = 0;

	conn_words(f->h.conn, call_answered, &f->calls[0], "PING", NULL);
	conn_close(f->h.conn, 5 * SEC, closed, &done);
	assert_int_equal(done, 0);
	WAIT(&f->h, done == 1);
	assert_int_equal(f->calls[0].answer, CONN_NOT_SENT);
}

FIXTURE_TEST(test_free_answers)
{
	struct fixture *f = *state;

	start(f);
	for (unsigned i = 0; i < 5; i++)
		conn_words(f->h.conn, call_answered, &f->calls[i], "PING", NULL);
	conn_free(f->h.conn);
	f->h.conn = NULL;
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(f->calls[i].answers, 1);
		assert_int_equal(f->calls[i].answer, CONN_LOST);
	}
	loop_turn(f->h.loop, 20 * MSEC);
}

static void
then_free(struct call *c)
{
	struct conn *conn = c->h->conn;

	c->h->conn = NULL;
	conn_free(conn);
}

FIXTURE_TEST(test_free_in_reply)
{
	struct fixture *f = *state;

	start(f);
	f->calls[1].h = &f->h;
	f->calls[1].then = then_free;
	for (unsigned i = 0; i < 4; i++)
		conn_words(f->h.conn, call_answered, &f->calls[i], "PING", NULL);
	WAIT(&f->h, f->h.conn == NULL);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(f->calls[i].answers, 1);
		assert_int_equal(f->calls[i].answer, i < 2 ? CONN_REPLY : CONN_LOST);
	}
	loop_turn(f->h.loop, 20 * MSEC);
}

static void
free_conn(struct harness *h)
{
	conn_free(h->conn);
	h->conn = NULL;
}

FIXTURE_TEST(test_free_in_up)
{
	struct fixture *f = *state;

	f->h.on_up = free_conn;
	conn_start(f->h.conn);
	WAIT(&f->h, f->h.conn == NULL);
	loop_turn(f->h.loop, 20 * MSEC);
}

FIXTURE_TEST(test_free_in_down)
{
	struct fixture *f = *state;

	start(f);
	f->h.on_down = free_conn;
	conn_words(f->h.conn, call_answered, &f->calls[0], "PING", NULL);
	conn_reset(f->h.conn, "reset");
	assert_int_equal(f->h.downs, 0);
	WAIT(&f->h, f->h.conn == NULL);
	assert_int_equal(f->calls[0].answer, CONN_LOST);
	loop_turn(f->h.loop, 20 * MSEC);
}

static void
then_reset(struct call *c)
{
	conn_reset(c->h->conn, "told to");
}

FIXTURE_TEST(test_reset)
{
	struct fixture *f = *state;

	start(f);
	f->calls[1].h = &f->h;
	f->calls[1].then = then_reset;
	for (unsigned i = 0; i < 4; i++)
		conn_words(f->h.conn, call_answered, &f->calls[i], "PING", NULL);
	WAIT(&f->h, f->h.ups == 2);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(f->calls[i].answers, 1);
		assert_int_equal(f->calls[i].answer, i < 2 ? CONN_REPLY : CONN_LOST);
	}
	assert_int_equal(f->h.downs, 1);
	assert_non_null(strstr(f->h.cause, "told to"));
	assert_false(f->h.changed);
	assert_false(f->h.first);
	assert_int_equal(conn_generation(f->h.conn), 2);
}

/* The connection ignores a time that no clock of Redis can show. */
FIXTURE_TEST(test_times)
{
	struct fixture *f = *state;
	static const double wrong[] = { 0, -1, 1e11, 1e300, INFINITY, NAN };

	conn_start(f->h.conn);
	WAIT(&f->h, f->h.ups == 1);
	conn_saw_time(f->h.conn, 1000);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		conn_saw_time(f->h.conn, wrong[i]);
		assert_true(conn_redis_time(f->h.conn) >= 1000 &&
		    conn_redis_time(f->h.conn) < 1060);
	}
}
