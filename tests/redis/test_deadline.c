/*
 * Deadlines: large replies and requests over a slow link, and servers that send a few
 * bytes at a time.  The window of timely replies across connections.  How long the
 * connection waits before it connects again.
 */
#include "harness.h"

#include <signal.h>

#include "link.h"
#include "redis/script.h"

#define LARGE	(1024 * 1024)

const struct script script_table[] = { SCRIPT_ADD, { NULL, NULL, 0, NULL } };

struct fixture {
	struct harness h;
	struct server s;
	struct link link;
	struct call calls[8];
};

static int
setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	harness_start(&f->h, &f->s, 5 * SEC, 0);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	harness_done(&f->h);
	link_stop(&f->link);
	server_stop(&f->s);
	free(f);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, teardown)

/* Connects over a slow link, and then sets this timeout. */
static void
start_link(struct fixture *f, size_t up, size_t down, usec_t timeout)
{
	link_start(&f->link, f->s.path, up, down, 20);
	free(f->h.servers[0]);
	f->h.servers[0] = xstrdup(f->link.uri);
	harness_connect(&f->h);
	f->h.opt.timeout = timeout;
}

static void
ping(struct fixture *f, unsigned i)
{
	memset(&f->calls[i], 0, sizeof(f->calls[i]));
	conn_words(f->h.conn, call_answered, &f->calls[i], "PING", NULL);
	WAIT(&f->h, f->calls[i].answers == 1);
}

/* -- deadlines ------------------------------------------------------------ */

FIXTURE_TEST(test_large_reply)
{
	struct fixture *f = *state;
	struct call *c = f->calls;
	usec_t begin;

	server_do(&f->s, "SETRANGE large %d x", LARGE - 1);
	start_link(f, 0, 8192, 1500 * MSEC);
	begin = clock_mono();
	conn_words(f->h.conn, call_answered, &c[0], "GET", "large", NULL);
	conn_words(f->h.conn, call_answered, &c[1], "PING", NULL);
	WAIT(&f->h, c[1].answers == 1);
	assert_true(clock_mono() - begin > 2 * SEC);
	assert_int_equal(c[0].answer, CONN_REPLY);
	assert_int_equal(c[1].answer, CONN_REPLY);
	assert_int_equal(f->h.downs, 0);
}

FIXTURE_TEST(test_large_request)
{
	struct fixture *f = *state;
	struct call *c = f->calls;
	char *large = xmalloc(LARGE);
	const char *argv[] = { "SET", "large", large };
	size_t argvlen[] = { 3, 5, LARGE };
	usec_t begin;

	memset(large, 'x', LARGE);
	start_link(f, 8192, 0, 1500 * MSEC);
	begin = clock_mono();
	call_command(f->h.conn, call_answered, &c[0], 3, argv, argvlen);
	conn_words(f->h.conn, call_answered, &c[1], "STRLEN", "large", NULL);
	WAIT(&f->h, c[1].answers == 1);
	assert_true(clock_mono() - begin > 2 * SEC);
	assert_int_equal(c[0].answer, CONN_REPLY);
	assert_int_equal(c[1].number, LARGE);
	assert_int_equal(f->h.downs, 0);
	free(large);
}

/* Sending more commands after one that nobody answers does not extend its deadline. */
FIXTURE_TEST(test_more_requests)
{
	struct fixture *f = *state;
	char large[8192];
	const char *argv[] = { "SET", "large", large };
	size_t argvlen[] = { 3, 5, sizeof(large) };
	usec_t end;

	memset(large, 'x', sizeof(large));
	start_link(f, 0, 0, 500 * MSEC);
	server_signal(&f->s, SIGSTOP);
	conn_words(f->h.conn, call_answered, &f->calls[0], "PING", NULL);
	end = clock_mono() + 3 * SEC;
	while (f->calls[0].answers == 0 && clock_mono() < end) {
		call_command(f->h.conn, NULL, NULL, 3, argv, argvlen);
		harness_turn(&f->h, 100 * MSEC);
	}
	assert_int_equal(f->calls[0].answers, 1);
	assert_int_equal(f->calls[0].answer, CONN_LOST);
	server_signal(&f->s, SIGCONT);
}

/* -- the window of timely replies --------------------------------------------- */

static usec_t
since(const struct fixture *f)
{
	return conn_timely_since(f->h.conn);
}

static void
cut(struct fixture *f)
{
	unsigned ups = f->h.ups;

	server_int(&f->s, "CLIENT KILL ID %lld", (long long)conn_id(f->h.conn));
	WAIT(&f->h, f->h.ups == ups + 1);
}

/* The window goes on if only connections end, not the server. */
FIXTURE_TEST(test_window_kept)
{
	struct fixture *f = *state;
	usec_t first;

	conn_set_limits(f->h.conn, &(struct conn_limits){ .silence_max = 5 * SEC });
	harness_connect(&f->h);
	first = since(f);
	assert_int_not_equal(first, 0);
	for (unsigned i = 0; i < 3; i++) {
		ping(f, 0);
		harness_turn(&f->h, 100 * MSEC);
		cut(f);
		assert_int_equal(since(f), first);
	}
	server_do(&f->s, "CONFIG SET timeout 1");
	WAIT(&f->h, f->h.ups == 5);
	assert_int_equal(since(f), first);
}

/*
 * The same where INFO is denied: the connection knows the server by the ids of its
 * clients.
 */
FIXTURE_TEST(test_window_no_info)
{
	struct fixture *f = *state;
	usec_t first;

	server_do(&f->s, "ACL SETUSER default -@dangerous +client +config +acl");
	conn_set_limits(f->h.conn, &(struct conn_limits){ .silence_max = 5 * SEC });
	harness_connect(&f->h);
	assert_string_equal(f->h.run_id, "");
	first = since(f);
	harness_turn(&f->h, 100 * MSEC);
	cut(f);
	assert_true(f->h.changed);
	assert_int_equal(since(f), first);
	server_kill(&f->s);
	server_again(&f->s);
	WAIT(&f->h, f->h.ups == 3);
	assert_true(since(f) > first);
}

/* Without a silence_max each connection begins a new window. */
FIXTURE_TEST(test_window_plain)
{
	struct fixture *f = *state;
	usec_t first;

	harness_connect(&f->h);
	first = since(f);
	cut(f);
	assert_true(since(f) > first);
}

FIXTURE_TEST(test_window_reset)
{
	struct fixture *f = *state;
	usec_t before;

	conn_set_limits(f->h.conn, &(struct conn_limits){ .silence_max = 5 * SEC });
	harness_connect(&f->h);
	before = since(f);
	conn_reset(f->h.conn, "READONLY");
	WAIT(&f->h, f->h.ups == 2);
	assert_true(since(f) > before);
	before = since(f);
	/* the same server refuses the connection for a moment */
	server_do(&f->s, "CONFIG SET requirepass secret");
	server_int(&f->s, "CLIENT KILL ID %lld", (long long)conn_id(f->h.conn));
	WAIT(&f->h, strstr(f->h.cause, "NOAUTH") != NULL);
	server_do(&f->s, "CONFIG SET requirepass %s", "");
	WAIT(&f->h, f->h.ups == 3);
	assert_false(f->h.changed);
	assert_true(since(f) > before);
	before = since(f);
	/* another server in its place */
	server_kill(&f->s);
	server_again(&f->s);
	WAIT(&f->h, f->h.ups == 4);
	assert_true(f->h.changed);
	assert_true(since(f) > before);
}

/*
 * While the caller sends nothing, the server stops for a while: the connection stays up,
 * and the window begins again.
 */
FIXTURE_TEST(test_window_silence)
{
	struct fixture *f = *state;
	usec_t before;

	harness_connect(&f->h);
	conn_set_limits(f->h.conn, &(struct conn_limits){ .silence_max = unit_time(SEC) });
	before = since(f);
	/* the connection's own PINGs keep the window going */
	harness_turn(&f->h, unit_time(2500 * MSEC));
	assert_int_equal(since(f), before);
	/* shorter than the timeout of a PING that is sent meanwhile */
	server_signal(&f->s, SIGSTOP);
	harness_turn(&f->h, unit_time(1250 * MSEC));
	assert_true(since(f) > before);
	server_signal(&f->s, SIGCONT);
	ping(f, 0);
	assert_true(since(f) > before + 2 * SEC);
	assert_int_equal(f->h.downs, 0);
	before = since(f);
	harness_turn(&f->h, 200 * MSEC);
	assert_int_equal(since(f), before);
}

/* A reply that keeps arriving does not end the window; one that pauses for long does. */
FIXTURE_TEST(test_window_large)
{
	struct fixture *f = *state;
	usec_t before;

	server_do(&f->s, "SETRANGE large %d x", LARGE / 2 - 1);
	start_link(f, 0, 8192, SEC);
	before = since(f);
	conn_words(f->h.conn, call_answered, &f->calls[0], "GET", "large", NULL);
	WAIT(&f->h, f->calls[0].answers == 1);
	assert_int_equal(since(f), before);
	conn_words(f->h.conn, call_answered, &f->calls[1], "GET", "large", NULL);
	harness_turn(&f->h, 300 * MSEC);
	kill(f->link.pid, SIGSTOP);
	harness_turn(&f->h, 700 * MSEC);
	kill(f->link.pid, SIGCONT);
	WAIT(&f->h, f->calls[1].answers == 1);
	assert_int_equal(f->calls[1].answer, CONN_REPLY);
	assert_true(since(f) > before);
}

/* -- backoff ------------------------------------------------------------------ */

static void
reset_it(struct harness *h)
{
	conn_reset(h->conn, "MOVED 1 127.0.0.1:1");
}

/* A server redirects each connection: the connection backs off. */
FIXTURE_TEST(test_elsewhere)
{
	struct fixture *f = *state;

	f->h.on_up = reset_it;
	conn_start(f->h.conn);
	harness_turn(&f->h, 3 * SEC);
	assert_in_range(f->h.ups, 3, 8);
	f->h.on_up = NULL;
	WAIT(&f->h, conn_is_ready(f->h.conn));
}

/* Connections that work and soon end make the next attempt wait. */
FIXTURE_TEST(test_short)
{
	struct fixture *f = *state;
	usec_t end;

	harness_connect(&f->h);
	end = clock_mono() + 4 * SEC;
	while (clock_mono() < end) {
		ping(f, 0);
		cut(f);
	}
	assert_in_range(f->h.ups, 5, 16);
	/* after a connection that has lasted, the next attempt does not wait */
	ping(f, 0);
	harness_turn(&f->h, 1100 * MSEC);
	end = clock_mono() + 200 * MSEC;
	cut(f);
	assert_true(clock_mono() < end);
}
