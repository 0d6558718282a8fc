/*
 * Faults of the connection: servers that die, hang, refuse, load, or are replicas;
 * names and ports without a server; a daemon that was stopped; and a random sequence of
 * all these.
 */
#include "harness.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <fcntl.h>
#include <signal.h>

#include "loop/timer.h"
#include "redis/script.h"

#define TIMEOUT		SEC

const struct script script_table[] = { SCRIPT_ADD, { NULL, NULL, 0, NULL } };

struct fixture {
	struct harness h;
	struct server s;
	struct call calls[64];
};

static int
setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	harness_start(&f->h, &f->s, TIMEOUT, 0);
	*state = f;
	return 0;
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
ping(struct fixture *f, unsigned i)
{
	conn_words(f->h.conn, call_answered, &f->calls[i], "PING", NULL);
}

/* -- servers that go away ----------------------------------------------------- */

FIXTURE_TEST(test_killed)
{
	struct fixture *f = *state;
	char run_id[48];

	harness_connect(&f->h);
	strcpy(run_id, f->h.run_id);
	server_signal(&f->s, SIGSTOP);
	for (unsigned i = 0; i < 50; i++)
		ping(f, i);
	loop_turn(f->h.loop, 0);
	loop_turn(f->h.loop, 0);
	server_kill(&f->s);
	WAIT(&f->h, f->h.downs >= 1);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(f->calls[i].answers, 1);
		assert_int_equal(f->calls[i].answer, CONN_LOST);
		assert_int_equal(f->calls[i].order, f->calls[0].order + i);
	}
	assert_int_equal(conn_outstanding(f->h.conn), 0);
	assert_int_equal(conn_timely_since(f->h.conn), 0);
	assert_int_equal(conn_id(f->h.conn), 0);
	ping(f, 50);
	WAIT(&f->h, f->calls[50].answers == 1);
	assert_int_equal(f->calls[50].answer, CONN_NOT_SENT);
	WAIT_CAUSE(&f->h, "Connection refused");
	harness_turn(&f->h, 400 * MSEC);
	assert_int_equal(f->h.downs, 2);
	server_again(&f->s);
	WAIT(&f->h, f->h.ups == 2);
	assert_true(f->h.changed);
	assert_false(f->h.first);
	assert_string_not_equal(f->h.run_id, run_id);
	ping(f, 51);
	WAIT(&f->h, f->calls[51].answers == 1);
	assert_int_equal(f->calls[51].answer, CONN_REPLY);
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(f->calls[i].answers, 1);
}

FIXTURE_TEST(test_client_kill)
{
	struct fixture *f = *state;

	harness_connect(&f->h);
	for (unsigned i = 0; i < 5; i++) {
		server_int(&f->s, "CLIENT KILL ID %lld", (long long)conn_id(f->h.conn));
		WAIT(&f->h, f->h.ups == i + 2);
		assert_false(f->h.changed);
		assert_int_equal(f->h.downs, i + 1);
	}
	assert_non_null(strstr(f->h.cause, f->s.uri));
	/* the server may have lost data meanwhile: it counts as changed */
	server_do(&f->s, "REPLICAOF 127.0.0.1 1");
	server_do(&f->s, "REPLICAOF NO ONE");
	server_int(&f->s, "CLIENT KILL ID %lld", (long long)conn_id(f->h.conn));
	WAIT(&f->h, f->h.ups == 7);
	assert_true(f->h.changed);
}

/*
 * A server hangs: each command is lost once, and the connection comes back with the
 * server.
 */
FIXTURE_TEST(test_stopped_server)
{
	struct fixture *f = *state;
	usec_t begin;

	harness_connect(&f->h);
	f->h.opt.timeout = 300 * MSEC;
	server_signal(&f->s, SIGSTOP);
	begin = clock_mono();
	ping(f, 0);
	harness_turn(&f->h, 100 * MSEC);
	ping(f, 1);
	WAIT(&f->h, f->calls[1].answers == 1);
	assert_int_equal(f->calls[0].answer, CONN_LOST);
	assert_int_equal(f->calls[1].answer, CONN_LOST);
	assert_true(clock_mono() - begin >= 300 * MSEC);
	assert_true(clock_mono() - begin < 15 * SEC);
	WAIT_CAUSE(&f->h, "no answer within 300ms");
	harness_turn(&f->h, SEC);
	assert_int_equal(f->h.downs, 1);
	server_signal(&f->s, SIGCONT);
	WAIT(&f->h, f->h.ups == 2);
	assert_false(f->h.changed);
	harness_turn(&f->h, 200 * MSEC);
	assert_int_equal(f->calls[0].answers, 1);
}

/*
 * The daemon is stopped for longer than the timeout: the connection reads replies that
 * have arrived before it judges that they are late.
 */
FIXTURE_TEST(test_stopped_daemon)
{
	struct fixture *f = *state;
	usec_t since;

	harness_connect(&f->h);
	since = conn_timely_since(f->h.conn);
	for (unsigned i = 0; i < 10; i++)
		ping(f, i);
	loop_turn(f->h.loop, 0);
	usleep(1300000);
	ping(f, 10);
	WAIT(&f->h, f->calls[10].answers == 1);
	for (unsigned i = 0; i < 11; i++)
		assert_int_equal(f->calls[i].answer, CONN_REPLY);
	/* and the same if nothing had been written yet */
	ping(f, 11);
	usleep(1300000);
	assert_true(conn_timely_since(f->h.conn) > since + SEC);
	WAIT(&f->h, f->calls[11].answers == 1);
	assert_int_equal(f->calls[11].answer, CONN_REPLY);
	assert_true(conn_timely_since(f->h.conn) > since + 2 * SEC);
	assert_int_equal(f->h.downs, 0);
}

/* A reply that is slow, but within the timeout, begins a new window of timely replies. */
FIXTURE_TEST(test_timely)
{
	struct fixture *f = *state;
	usec_t since;

	f->h.opt.timeout = 2 * SEC;
	harness_connect(&f->h);
	since = conn_timely_since(f->h.conn);
	ping(f, 0);
	WAIT(&f->h, f->calls[0].answers == 1);
	assert_int_equal(conn_timely_since(f->h.conn), since);
	conn_words(f->h.conn, call_answered, &f->calls[1], "DEBUG", "SLEEP", "1.1", NULL);
	WAIT(&f->h, f->calls[1].answers == 1);
	assert_int_equal(f->calls[1].answer, CONN_REPLY);
	assert_true(conn_timely_since(f->h.conn) > since);
}

/* -- being refused ------------------------------------------------------------ */

FIXTURE_TEST(test_passwords)
{
	struct fixture *f = *state;
	char path[128];

	server_do(&f->s, "CONFIG SET requirepass secret");
	conn_start(f->h.conn);
	WAIT_CAUSE(&f->h, "NOAUTH");
	snprintf(f->h.password_file, sizeof(f->h.password_file), "%s/nothing", f->s.dir);
	WAIT_CAUSE(&f->h, "No such file or directory");
	server_write_file(&f->s, "empty", "\n", path);
	strcpy(f->h.password_file, path);
	WAIT_CAUSE(&f->h, "is empty");
	server_write_file(&f->s, "password", "wrong\n", path);
	strcpy(f->h.password_file, path);
	WAIT_CAUSE(&f->h, "WRONGPASS");
	harness_turn(&f->h, 300 * MSEC);
	assert_int_equal(f->h.downs, 4);
	assert_null(strstr(f->h.cause, "wrong "));
	server_write_file(&f->s, "password", "secret\n", path);
	WAIT(&f->h, f->h.ups == 1);
	server_write_file(&f->s, "password", "secret\r\n", path);
	conn_reset(f->h.conn, "again");
	WAIT(&f->h, f->h.ups == 2);
}

FIXTURE_TEST(test_credentials)
{
	struct fixture *f = *state;
	char path[128];

	server_do(&f->s, "CONFIG SET requirepass secret");
	server_write_file(&f->s, "redis-password", "secret", path);
	setenv("CREDENTIALS_DIRECTORY", f->s.dir, 1);
	conn_start(f->h.conn);
	WAIT(&f->h, f->h.ups == 1);
	unsetenv("CREDENTIALS_DIRECTORY");
	server_do(&f->s, "AUTH secret");
	server_do(&f->s, "CONFIG SET requirepass %s", "");
	strcpy(f->h.password_file, path);
	conn_reset(f->h.conn, "again");
	WAIT_CAUSE(&f->h, "AUTH <password> called without any password");
}

/*
 * A user with few permissions can connect.  The connection cannot know which server it is,
 * and reports it as changed.
 */
FIXTURE_TEST(test_acl_user)
{
	struct fixture *f = *state;
	char path[128];

	server_do(&f->s, "ACL SETUSER rqd on >pw ~* &* +@all -@dangerous");
	server_write_file(&f->s, "password", "pw", path);
	strcpy(f->h.password_file, path);
	strcpy(f->h.username, "rqd");
	harness_connect(&f->h);
	assert_string_equal(f->h.run_id, "");
	assert_string_equal(f->h.policy, "");
	assert_int_not_equal(conn_id(f->h.conn), 0);
	assert_true(conn_redis_time(f->h.conn) > 0);
	conn_reset(f->h.conn, "again");
	WAIT(&f->h, f->h.ups == 2);
	assert_true(f->h.changed);
	/* ROLE shows a replica if INFO is denied */
	server_do(&f->s, "ACL SETUSER rqd +role");
	server_do(&f->s, "REPLICAOF 127.0.0.1 1");
	conn_reset(f->h.conn, "again");
	WAIT_CAUSE(&f->h, "is a replica");
	/* a user without a password, who may run nothing but scripts */
	server_do(&f->s, "REPLICAOF NO ONE");
	server_do(&f->s, "ACL SETUSER bare on nopass ~* -@all +evalsha +eval +incrby");
	strcpy(f->h.username, "bare");
	f->h.password_file[0] = '\0';
	WAIT(&f->h, f->h.ups == 3);
	call_script(f->h.conn, script_find("add"), call_answered, &f->calls[0], 1, 2,
	    (const char *[]){ "k", "5" }, (size_t[]){ 1, 1 });
	WAIT(&f->h, f->calls[0].answers == 1);
	assert_int_equal(f->calls[0].number, 5);
}

FIXTURE_TEST(test_database)
{
	struct fixture *f = *state;

	f->h.opt.database = 99;
	conn_start(f->h.conn);
	WAIT_CAUSE(&f->h, "DB index is out of range");
	f->h.opt.database = 3;
	WAIT(&f->h, f->h.ups == 1);
	assert_non_null(strstr(server_do(&f->s, "CLIENT LIST ID %lld",
	    (long long)conn_id(f->h.conn)), " db=3 "));
}

FIXTURE_TEST(test_max_clients)
{
	struct fixture *f = *state;

	server_do(&f->s, "CONFIG SET maxclients 1");
	for (unsigned i = 0; i < 5; i++) {
		conn_start(f->h.conn);
		WAIT_CAUSE(&f->h, "max number of clients reached");
		f->h.cause[0] = '\0';
		conn_free(f->h.conn);
		harness_open(&f->h, i % 2 == 0 ? CONN_SUBSCRIBER : 0);
	}
	assert_int_equal(f->h.downs, 5);
	server_do(&f->s, "CONFIG SET maxclients 100");
	harness_connect(&f->h);
}

FIXTURE_TEST(test_loading)
{
	struct fixture *f = *state;
	static const char *const words[] = { "--key-load-delay", "500",
	    "--loading-process-events-interval-bytes", "1024" };

	server_do(&f->s, "DEBUG POPULATE 3000 key 100");
	server_do(&f->s, "SAVE");
	server_kill(&f->s);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		strcpy(f->s.args[f->s.nargs++], words[i]);
	server_again(&f->s);
	conn_start(f->h.conn);
	WAIT_CAUSE(&f->h, " is loading the dataset in memory");	/* Redis, or Valkey */
	WAIT(&f->h, f->h.ups == 1);
	assert_int_equal(f->h.downs, 1);
}

/* While a script runs for ever, Redis refuses new connections with BUSY. */
FIXTURE_TEST(test_busy)
{
	struct fixture *f = *state;
	struct script spin = { "spin", "while true do end", 17,
	    "694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7" };

	server_do(&f->s, "CONFIG SET busy-reply-threshold 50");
	f->h.opt.timeout = 5 * SEC;
	harness_connect(&f->h);
	call_script(f->h.conn, &spin, call_answered, &f->calls[0], 0, 0, NULL, NULL);
	harness_turn(&f->h, 200 * MSEC);
	conn_reset(f->h.conn, "again");
	WAIT_CAUSE(&f->h, "BUSY ");
	server_do(&f->s, "SCRIPT KILL");
	WAIT(&f->h, f->h.ups == 2);
	assert_int_equal(f->calls[0].answer, CONN_LOST);
}

/* -- where to connect --------------------------------------------------------- */

FIXTURE_TEST(test_replica)
{
	struct fixture *f = *state;
	struct server master;

	server_do(&f->s, "REPLICAOF 127.0.0.1 1");
	conn_start(f->h.conn);
	WAIT_CAUSE(&f->h, "is a replica");
	harness_turn(&f->h, 300 * MSEC);
	assert_int_equal(f->h.downs, 1);
	server_start(&master, NULL);
	f->h.servers[1] = xstrdup("unix:/nowhere/at/all");
	f->h.servers[2] = xstrdup(master.uri);
	WAIT(&f->h, f->h.ups == 1);
	assert_string_equal(f->h.address, master.uri);
	/* the master dies, and the replica becomes master */
	server_kill(&master);
	WAIT(&f->h, !conn_is_ready(f->h.conn));
	server_do(&f->s, "REPLICAOF NO ONE");
	WAIT(&f->h, f->h.ups == 2);
	assert_string_equal(f->h.address, f->s.uri);
	assert_true(f->h.changed);
	/* the server becomes a replica while the connection is up */
	server_do(&f->s, "REPLICAOF 127.0.0.1 1");
	call_script(f->h.conn, script_find("add"), call_answered, &f->calls[0], 1, 2,
	    (const char *[]){ "k", "1" }, (size_t[]){ 1, 1 });
	WAIT(&f->h, f->calls[0].answers == 1);
	assert_int_equal(f->calls[0].error, REPLY_ELSEWHERE);
	conn_reset(f->h.conn, f->calls[0].text);
	WAIT_CAUSE(&f->h, "READONLY");
	WAIT_CAUSE(&f->h, "is a replica; unix:/nowhere/at/all: No such file or directory; unix:");
	server_stop(&master);
}

/* A server with another replication id is the same one, unless it has been a replica. */
FIXTURE_TEST(test_same_server)
{
	struct fixture *f = *state;
	struct server master;

	server_start_tcp(&master);
	free(f->h.servers[0]);
	f->h.servers[0] = xasprintf("127.0.0.1:%d", master.port);
	harness_connect(&f->h);
	/* with its first replica the server takes a replication id */
	server_do(&f->s, "REPLICAOF 127.0.0.1 %d", master.port);
	for (int i = 0; i < 2000 && strstr(server_do(&f->s, "INFO replication"),
	    "master_link_status:up") == NULL; i++)
		usleep(5000);
	conn_reset(f->h.conn, "again");
	WAIT(&f->h, f->h.ups == 2);
	assert_false(f->h.changed);
	/* it becomes a replica, and master again, before the next connection */
	server_do(&master, "REPLICAOF 127.0.0.1 1");
	server_do(&master, "REPLICAOF NO ONE");
	conn_reset(f->h.conn, "again");
	WAIT(&f->h, f->h.ups == 3);
	assert_true(f->h.changed);
	server_stop(&master);
}

FIXTURE_TEST(test_tcp)
{
	struct fixture *f = *state;
	struct server tcp;
	int fd;

	server_start_tcp(&tcp);
	free(f->h.servers[0]);
	f->h.servers[0] = xasprintf("localhost:%d", tcp.port);
	harness_connect(&f->h);
	/* handlers must not inherit the socket */
	for (fd = 3; fd < 64; fd++) {
		int flags = fcntl(fd, F_GETFD), type;
		socklen_t len = sizeof(type);

		if (flags == -1 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == -1)
			continue;
		assert_true(flags & FD_CLOEXEC);
	}
	free(f->h.servers[0]);
	f->h.servers[0] = xasprintf("127.0.0.1:%d", tcp.port);
	conn_reset(f->h.conn, "again");
	WAIT(&f->h, f->h.ups == 2);
	assert_true(f->h.changed);
	ping(f, 0);
	WAIT(&f->h, f->calls[0].answers == 1);
	assert_int_equal(f->calls[0].answer, CONN_REPLY);
	server_kill(&tcp);
	WAIT_CAUSE(&f->h, "Connection refused");
	server_stop(&tcp);
}

FIXTURE_TEST(test_nowhere)
{
	struct fixture *f = *state;

	free(f->h.servers[0]);
	f->h.servers[0] = xasprintf("127.0.0.1:%d", server_free_port());
	conn_start(f->h.conn);
	WAIT_CAUSE(&f->h, "Connection refused");
	harness_turn(&f->h, 500 * MSEC);
	assert_int_equal(f->h.downs, 1);
	free(f->h.servers[0]);
	f->h.servers[0] = xstrdup("no..such.host:1");
	WAIT_CAUSE(&f->h, "no..such.host:1: cannot resolve the name");
	free(f->h.servers[0]);
	f->h.servers[0] = xstrdup("http://localhost");
	WAIT_CAUSE(&f->h, "URL");
	free(f->h.servers[0]);
	f->h.servers[0] = NULL;
	WAIT_CAUSE(&f->h, "no server is configured");
	f->h.servers[0] = xstrdup(f->s.uri);
	WAIT(&f->h, f->h.ups == 1);
}

/* A server accepts connections and sends nothing, or what Redis never sends. */
FIXTURE_TEST(test_mute)
{
	struct fixture *f = *state;
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), peer;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/mute", f->s.dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 5), 0);
	free(f->h.servers[0]);
	f->h.servers[0] = xasprintf("unix:%s", sa.sun_path);
	f->h.opt.timeout = 300 * MSEC;
	conn_start(f->h.conn);
	WAIT_CAUSE(&f->h, "no answer within 300ms");
	for (unsigned i = 0; i < 3; i++) {
		static const char *const nonsense[] = { "HTTP/1.1 400 Bad Request\r\n\r\n",
		    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
		    "$99999999999999999999\r\n" };
		unsigned accepted = 0;
		usec_t end = clock_mono() + 2 * SEC;

		while (accepted < 2 && clock_mono() < end) {
			loop_turn(f->h.loop, 10 * MSEC);
			if ((peer = accept(fd, NULL, NULL)) == -1)
				continue;
			accepted++;
			(void)!write(peer, nonsense[i], strlen(nonsense[i]));
			harness_turn(&f->h, 20 * MSEC);
			close(peer);
		}
	}
	assert_int_equal(f->h.ups, 0);
	close(fd);
	free(f->h.servers[0]);
	f->h.servers[0] = xstrdup(f->s.uri);
	WAIT(&f->h, f->h.ups == 1);
}

/* -- a random walk ------------------------------------------------------------ */

struct random_call {
	struct harness	*h;
	unsigned	 answers;
};

static unsigned walk_sent, walk_answered, walk_kinds[CONN_NOT_SENT + 1];

static void
walk_free(struct harness *h)
{
	struct conn *c = h->conn;

	h->conn = NULL;
	conn_free(c);
}

static void
walk_answer(enum conn_answer answer, const struct redisReply *r UNUSED, void *arg)
{
	struct random_call *c = arg;

	walk_answered++;
	walk_kinds[answer]++;
	assert_int_equal(c->answers++, 0);
	if (c->h->conn == NULL)
		return;
	if (unit_below(200) == 0)
		conn_reset(c->h->conn, "the walk");
	else if (unit_below(200) == 0 && answer == CONN_REPLY)
		walk_free(c->h);
}

static void
walk_closed(void *arg)
{
	*(bool *)arg = true;
}

static void
walk_send(struct harness *h, struct random_call *c)
{
	*c = (struct random_call){ .h = h };
	walk_sent++;
	if (unit_below(2) == 0)
		conn_words(h->conn, walk_answer, c, "PING", NULL);
	else
		call_script(h->conn, script_table, walk_answer, c, 1, 2,
		    (const char *[]){ "k", "1" }, (size_t[]){ 1, 1 });
}

FIXTURE_TEST(test_walk)
{
	enum { STEPS = 4000 };
	struct fixture *f = *state;
	struct random_call *calls = xcalloc(STEPS, sizeof(*calls));
	bool stopped = false, closed;

	walk_sent = walk_answered = 0;
	f->h.opt.timeout = 50 * MSEC;
	conn_start(f->h.conn);
	for (unsigned i = 0; i < STEPS; i++) {
		if (f->h.conn == NULL) {
			harness_open(&f->h, 0);
			conn_start(f->h.conn);
		}
		switch (unit_below(400)) {
		case 0:
			if (!stopped)
				server_do(&f->s, "CLIENT KILL TYPE normal SKIPME yes");
			break;
		case 1:
			if (!stopped)
				server_do(&f->s, "SCRIPT FLUSH");
			break;
		case 2:
			conn_free(f->h.conn);
			f->h.conn = NULL;
			break;
		case 3:
			closed = false;
			conn_close(f->h.conn, (usec_t)unit_below(20000), walk_closed, &closed);
			WAIT(&f->h, closed || f->h.conn == NULL);
			if (f->h.conn != NULL)
				conn_start(f->h.conn);
			break;
		case 4:
			server_signal(&f->s, stopped ? SIGCONT : SIGSTOP);
			stopped = !stopped;
			break;
		case 5:
			if (unit_below(4) == 0) {
				server_kill(&f->s);
				server_again(&f->s);
				stopped = false;
			}
			break;
		case 6:
			conn_reset(f->h.conn, "the walk");
			break;
		case 7:
			conn_probe(f->h.conn);
			break;
		default:
			if (unit_below(3) == 0)
				loop_turn(f->h.loop, (usec_t)unit_below(10000));
			break;
		}
		if (f->h.conn != NULL && (conn_is_ready(f->h.conn) || unit_below(50) == 0))
			walk_send(&f->h, &calls[i]);
		else
			loop_turn(f->h.loop, 5 * MSEC);
	}
	if (stopped)
		server_signal(&f->s, SIGCONT);
	conn_free(f->h.conn);
	f->h.conn = NULL;
	assert_int_equal(walk_sent, walk_answered);
	printf("# %u replies, %u lost, %u not sent, %u times up\n", walk_kinds[CONN_REPLY],
	    walk_kinds[CONN_LOST], walk_kinds[CONN_NOT_SENT], f->h.ups);
	free(calls);
}
