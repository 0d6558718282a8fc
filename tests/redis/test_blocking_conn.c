/*
 * The blocking connection.
 */
#include "harness.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <signal.h>

#include <hiredis/hiredis.h>

#include "link.h"
#include "redis/blocking_conn.h"
#include "redis/script.h"

const struct script script_table[] = { SCRIPT_ADD, { NULL, NULL, 0, NULL } };

struct fixture {
	struct server s;
	struct redis_options opt;
	char	*servers[4];
	char	 username[16], password_file[128];
	char	*cause;
	struct link link;
};

static int
setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	server_start(&f->s, NULL);
	f->servers[0] = f->s.uri;
	f->opt = (struct redis_options){ .servers = f->servers, .timeout = 3 * SEC,
		.username = f->username, .password_file = f->password_file };
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	link_stop(&f->link);
	server_stop(&f->s);
	free(f->cause);
	free(f);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, teardown)

static struct blocking_conn *
must_open(struct fixture *f)
{
	struct blocking_conn *c = blocking_open(&f->opt, "rqctl", &f->cause);

	if (c == NULL)
		fail_msg("%s", f->cause);
	assert_null(f->cause);
	return c;
}

static void
must_fail(struct fixture *f, const char *says)
{
	free(f->cause);
	f->cause = NULL;
	assert_null(blocking_open(&f->opt, "rqctl", &f->cause));
	assert_non_null(f->cause);
	if (strstr(f->cause, says) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", f->cause, says);
	assert_null(blocking_open(&f->opt, "rqctl", NULL));
}

static struct redisReply *
command(struct fixture *f, struct blocking_conn *c, int argc, const char *const *argv,
    const size_t *argvlen)
{
	struct words w = words_of(0, argc, argv, argvlen);
	struct redisReply *r = blocking_command(c, &f->cause, &w);

	words_done(&w);
	return r;
}

FIXTURE_TEST(test_commands)
{
	struct fixture *f = *state;
	struct blocking_conn *c = must_open(f);
	struct redisReply *r;
	const char *argv[] = { "SET", "k\0\r\n", "v\0\xff" };
	size_t argvlen[] = { 3, 4, 3 };

	assert_string_equal(blocking_address(c), f->s.uri);
	r = command(f, c, 3, argv, argvlen);
	assert_string_equal(reply_text(r), "OK");
	blocking_reply_free(r);
	argv[0] = "STRLEN";
	argvlen[0] = 6;
	r = command(f, c, 2, argv, argvlen);
	assert_int_equal(reply_int(r, -1), 3);
	blocking_reply_free(r);
	r = blocking_words(c, &f->cause, "LPUSH", "k", NULL);
	assert_int_equal(reply_error(r), REPLY_OTHER);
	blocking_reply_free(r);
	r = blocking_words(c, &f->cause, "CLIENT", "GETNAME", NULL);
	assert_string_equal(reply_str(r, NULL), "rqctl");
	blocking_reply_free(r);
	blocking_reply_free(NULL);
	blocking_close(c);
	blocking_close(NULL);
}

FIXTURE_TEST(test_script)
{
	struct fixture *f = *state;
	struct blocking_conn *c = must_open(f);
	const char *argv[] = { "k", "5" };
	struct words w = words_of(1, 2, argv, (size_t[]){ 1, 1 });
	struct redisReply *r;

	for (int i = 1; i <= 4; i++) {
		if (i == 3)
			server_do(&f->s, "SCRIPT FLUSH");
		r = blocking_script(c, &f->cause, script_table, &w);
		assert_int_equal(reply_int(r, -1), 5 * i);
		blocking_reply_free(r);
	}
	words_done(&w);
	blocking_close(c);
}

FIXTURE_TEST(test_pipeline)
{
	struct fixture *f = *state;
	struct blocking_conn *c = must_open(f);
	struct redisReply *r;
	char *big = xmalloc(1000000);
	const char *argv[] = { "ECHO", big };
	struct words w;

	memset(big, 'x', 1000000);
	for (size_t i = 0; i < 20; i++) {
		w = words_of(0, 2, argv, (size_t[]){ 4, i * 50000 });
		blocking_append(c, &w);
		words_done(&w);
	}
	for (size_t i = 0; i < 20; i++) {
		size_t len;

		r = blocking_next(c, &f->cause);
		assert_non_null(reply_str(r, &len));
		assert_int_equal(len, i * 50000);
		blocking_reply_free(r);
	}
	free(big);
	blocking_close(c);
}

FIXTURE_TEST(test_lost)
{
	struct fixture *f = *state;
	static const struct words none;
	struct blocking_conn *c = must_open(f);
	usec_t begin;

	blocking_close(c);
	f->opt.timeout = 500 * MSEC;
	c = must_open(f);
	server_signal(&f->s, SIGSTOP);
	begin = clock_mono();
	assert_null(blocking_words(c, &f->cause, "PING", NULL));
	assert_non_null(strstr(f->cause, "no answer within 500ms"));
	assert_true(clock_mono() - begin < 9 * SEC);
	must_fail(f, "no answer within 500ms");
	/* after that the connection cannot be used */
	free(f->cause);
	f->cause = NULL;
	assert_null(blocking_words(c, &f->cause, "PING", NULL));
	assert_string_equal(f->cause, "not connected");
	blocking_append(c, &none);
	assert_null(blocking_next(c, NULL));
	blocking_close(c);
	server_signal(&f->s, SIGCONT);

	f->opt.timeout = 3 * SEC;
	free(f->cause);
	f->cause = NULL;
	c = must_open(f);
	server_kill(&f->s);
	assert_null(blocking_words(c, &f->cause, "PING", NULL));
	assert_non_null(f->cause);
	blocking_close(c);
	must_fail(f, "Connection refused");
}

FIXTURE_TEST(test_refused)
{
	struct fixture *f = *state;
	char path[128];
	struct blocking_conn *c;

	server_do(&f->s, "CONFIG SET requirepass secret");
	must_fail(f, "NOAUTH");
	server_write_file(&f->s, "password", "wrong", path);
	strcpy(f->password_file, path);
	must_fail(f, "WRONGPASS");
	strcpy(f->username, "nobody");
	must_fail(f, "WRONGPASS");
	f->username[0] = '\0';
	server_write_file(&f->s, "password", "secret\n", path);
	free(f->cause);
	f->cause = NULL;
	c = must_open(f);
	blocking_close(c);
	f->opt.database = 77;
	must_fail(f, "DB index");
	f->opt.database = 0;
	server_do(&f->s, "AUTH secret");
	server_do(&f->s, "CONFIG SET maxclients 1");
	for (int i = 0; i < 10; i++)
		must_fail(f, "max number of clients");
}

FIXTURE_TEST(test_list)
{
	struct fixture *f = *state;
	struct server master;
	struct blocking_conn *c;

	server_start_tcp(&master);
	server_do(&f->s, "REPLICAOF 127.0.0.1 1");
	f->servers[1] = xasprintf("localhost:%d", server_free_port());
	must_fail(f, ": is a replica; localhost:");
	f->servers[2] = xasprintf("localhost:%d", master.port);
	free(f->cause);
	f->cause = NULL;
	c = must_open(f);
	assert_string_equal(blocking_address(c), f->servers[2]);
	blocking_close(c);
	free(f->servers[1]);
	free(f->servers[2]);
	f->servers[1] = xstrdup("no..such.host");
	f->servers[2] = NULL;
	must_fail(f, "no..such.host: cannot resolve the name");
	free(f->servers[1]);
	f->servers[0] = NULL;
	must_fail(f, "no server");
	server_stop(&master);
}

/* Opens a connection over a slow link, and then sets this timeout. */
static struct blocking_conn *
open_link(struct fixture *f, size_t up, size_t down, usec_t timeout)
{
	struct blocking_conn *c;

	link_start(&f->link, f->s.path, up, down, 20);
	f->servers[0] = f->link.uri;
	f->opt.timeout = 10 * SEC;
	c = must_open(f);
	f->opt.timeout = timeout;
	return c;
}

/* A request or a reply that keeps moving does not time out, whatever its size. */
FIXTURE_TEST(test_large)
{
	enum { LARGE = 1024 * 1024 };
	struct fixture *f = *state;
	size_t slow = (size_t)(8192 / unit_time(1));
	struct blocking_conn *c = open_link(f, slow, slow, unit_time(1500 * MSEC));
	char *large = xcalloc(1, LARGE);
	const char *argv[] = { "SET", "large", large };
	struct redisReply *r;
	size_t len;

	r = command(f, c, 3, argv, (size_t[]){ 3, 5, LARGE });
	if (r == NULL)
		fail_msg("%s", f->cause);
	assert_string_equal(reply_text(r), "OK");
	blocking_reply_free(r);
	r = blocking_words(c, &f->cause, "GET", "large", NULL);
	assert_non_null(reply_str(r, &len));
	assert_int_equal(len, LARGE);
	blocking_reply_free(r);
	blocking_close(c);
	free(large);
}

FIXTURE_TEST(test_trickle)
{
	struct fixture *f = *state;
	struct blocking_conn *c = open_link(f, 0, 100, 500 * MSEC);
	usec_t begin = clock_mono();

	server_do(&f->s, "SETRANGE large 1000000 x");
	assert_null(blocking_words(c, &f->cause, "GET", "large", NULL));
	assert_non_null(strstr(f->cause, "no answer within 500ms"));
	assert_true(clock_mono() - begin < 9 * SEC);
	blocking_close(c);
}

/*
 * Starts a server that answers the first commands as Redis does, and then sends `says`.
 */
static pid_t
lying_server(const char *path, const char *says)
{
	static const char greeting[] = "+PONG\r\n+OK\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n*0\r\n";
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), peer;
	pid_t pid;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(fd, 5), 0);
	if ((pid = fork()) == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		peer = accept(fd, NULL, NULL);
		(void)!write(peer, greeting, sizeof(greeting) - 1);
		(void)!write(peer, says, strlen(says));
		pause();
	}
	close(fd);
	return pid;
}

/* A length that is too large is refused before memory is allocated for it. */
FIXTURE_TEST(test_too_large)
{
	static const char *const says[] = { "$2147483647\r\nx", "*1\r\n$9999999999\r\n",
	    "*2147483647\r\n" };
	struct fixture *f = *state;
	char path[108], uri[120];
	struct blocking_conn *c;
	usec_t begin;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/liar", f->s.dir);
	snprintf(uri, sizeof(uri), "unix:%s", path);
	f->servers[0] = uri;
	for (size_t i = 0; i < ARRAY_LEN(says); i++) {
		pid = lying_server(path, says[i]);
		c = must_open(f);
		begin = clock_mono();
		assert_null(blocking_words(c, &f->cause, "GET", "x", NULL));
		assert_string_equal(f->cause, "a reply that is too large");
		assert_true(clock_mono() - begin < SEC);
		free(f->cause);
		f->cause = NULL;
		blocking_close(c);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		unlink(path);
	}
}
