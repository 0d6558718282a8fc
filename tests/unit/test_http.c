/*
 * The HTTP server and its bounds.  The clients are nonblocking sockets in the same
 * loop.  The test moves the time by hand, so deadlines cost nothing.
 */
#define UNIT_OWN_MAIN
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "loop/loop.h"
#include "status/http.h"
#include "base/listen_socket.h"

#define BIG	(4 * 1024 * 1024)

struct rig {
	struct loop	*loop;
	struct http	*http;
	char		 address[128];	/* as it was logged */
	char		 dir[64];
	int		 warnings;
	struct http_request *kept;	/* by /later */
};

static struct rig rig;

/* -- the server -------------------------------------------------------------------- */

static void
serve_hello(struct http_request *r, const struct http_route *route UNUSED, void *arg UNUSED)
{
	struct buf b = BUF_INIT;

	buf_puts(&b, "hello\n");
	http_answer(r, 200, "text/plain", &b);
}

static void
serve_big(struct http_request *r, const struct http_route *route UNUSED, void *arg UNUSED)
{
	struct buf b = BUF_INIT;

	buf_reserve(&b, BIG);
	memset(b.data, 'x', BIG);
	b.len = BIG;
	http_answer(r, 200, "text/plain", &b);
}

static void
serve_later(struct http_request *r, const struct http_route *route UNUSED, void *arg UNUSED)
{
	rig.kept = r;
}

static const struct http_route routes[] = {
	{ "/", serve_hello, NULL }, { "/big", serve_big, NULL }, { "/later", serve_later, NULL },
	{ NULL, NULL, NULL },
};

static void
hear(void *arg UNUSED, enum log_level level, const char *text, size_t len UNUSED)
{
	const char *p = strstr(text, "address=");

	if (p != NULL)
		snprintf(rig.address, sizeof(rig.address), "%.*s", (int)strcspn(p + 8, " \n"),
		    p + 8);
	rig.warnings += level <= LOG_LV_WARN;
}

static int
start(void **state UNUSED)
{
	memset(&rig, 0, sizeof(rig));
	strcpy(rig.dir, "/tmp/rqd-http.XXXXXX");
	assert_non_null(mkdtemp(rig.dir));
	clock_fake(1000 * SEC, INT64_C(1795248000000000));
	log_set_sink(hear, NULL);
	rig.loop = loop_new();
	rig.http = http_new(rig.loop, routes, "queue-host", NULL);
	return 0;
}

static int
end(void **state UNUSED)
{
	char command[128];

	http_free(rig.http);
	loop_free(rig.loop);
	log_set_sink(NULL, NULL);
	clock_real(0);
	snprintf(command, sizeof(command), "rm -rf %s", rig.dir);
	return system(command);
}

#define FIXTURE_TEST(name)	TEST_WITH(name, start, end)

/* Turns the loop until nothing happens any more. */
static void
settle(void)
{
	int i;

	for (i = 0; i < 40; i++)
		loop_turn(rig.loop, i % 8 == 7 ? MSEC : 0);
}

static void
pass(usec_t t)
{
	clock_fake_advance(t);
	settle();
}

/* -- clients ----------------------------------------------------------------------- */

static int
connect_to(const char *address)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr_in in = { .sin_family = AF_INET };
	bool is_unix = strncmp(address, "unix:", 5) == 0;
	int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_not_equal(fd, -1);
	if (is_unix) {
		snprintf(un.sun_path, sizeof(un.sun_path), "%s", address + 5);
		assert_int_equal(connect(fd, (void *)&un, sizeof(un)), 0);
	} else {
		in.sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1));
		in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		assert_int_equal(connect(fd, (void *)&in, sizeof(in)), 0);
	}
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static void
say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
	settle();
}

/* Reads what has come so far; sets *closed if the other side has closed. */
static char *
hear_from(int fd, bool *closed)
{
	static char text[65536];
	size_t n = 0;
	ssize_t r;

	while ((r = recv(fd, text + n, sizeof(text) - 1 - n, 0)) > 0)
		n += (size_t)r;
	*closed = r == 0 || (r == -1 && errno != EAGAIN);
	text[n] = '\0';
	return text;
}

static bool
is_closed(int fd)
{
	bool closed;

	(void)hear_from(fd, &closed);
	return closed;
}

/* Sends a request on a new connection; returns the answer, valid until the next call. */
static char *
ask(const char *request)
{
	int fd = connect_to(rig.address);
	char *answer;
	bool closed;

	settle();
	say(fd, request);
	answer = hear_from(fd, &closed);
	close(fd);
	settle();
	return answer;
}

static void
check_status(const char *request, const char *status)
{
	char *answer = ask(request);

	if (strncmp(answer, "HTTP/1.1 ", 9) != 0 ||
	    strncmp(answer + 9, status, strlen(status)) != 0)
		fail_msg("%.40s gives %.40s", request, answer);
}

/* -- tests ------------------------------------------------------------------------- */

FIXTURE_TEST(test_get)
{
	char *answer;

	http_listen(rig.http, "127.0.0.1:0");
	answer = ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_non_null(strstr(answer, "HTTP/1.1 200 OK\r\n"));
	assert_non_null(strstr(answer, "\r\n\r\nhello\n"));
	assert_non_null(strstr(answer, "Content-Security-Policy: default-src 'none'"));
	assert_non_null(strstr(answer, "Content-Length: 6\r\n"));
	answer = ask("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_non_null(strstr(answer, "HTTP/1.1 200 OK\r\n"));
	assert_non_null(strstr(answer, "Content-Length: 6\r\n"));
	assert_null(strstr(answer, "hello"));
	answer = ask("GET /?x=1 HTTP/1.0\r\n\r\n");
	assert_non_null(strstr(answer, " 200 OK\r\n"));
}

FIXTURE_TEST(test_refused)
{
	http_listen(rig.http, "127.0.0.1:0");
	check_status("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi", "405");
	check_status("DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", "405");
	check_status("OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n", "405");
	check_status("GET /../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "404");
	check_status("GET /healthz/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "404");
	assert_non_null(strstr(ask("PUT / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	    "Allow: GET, HEAD\r\n"));
}

/* On loopback a Host that somebody may have pointed at this address is refused. */
FIXTURE_TEST(test_rebinding)
{
	char request[128], path[128];
	static const char *const good[] = {
		"localhost", "LocalHost:17379", "127.0.0.1", "127.0.0.1:17379", "[::1]:17379",
		"10.0.0.1", "queue-host", "x.localhost:1",
	};
	static const char *const bad[] = {
		"evil.example", "evil.example:17379", "localhost.evil.example",
		"127.0.0.1.evil.example",
		"[::1", "notlocalhost",
	};
	size_t i;

	http_listen(rig.http, "127.0.0.1:0");
	for (i = 0; i < ARRAY_LEN(good); i++) {
		snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", good[i]);
		check_status(request, "200");
	}
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", bad[i]);
		check_status(request, "403");
	}
	check_status("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "403");
	snprintf(path, sizeof(path), "unix:%s/http.sock", rig.dir);
	http_listen(rig.http, path);	/* a browser cannot connect to a unix socket */
	check_status("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "200");
}

FIXTURE_TEST(test_keep_alive)
{
	int fd, i;
	bool closed;

	http_listen(rig.http, "127.0.0.1:0");
	fd = connect_to(rig.address);
	for (i = 0; i < 20; i++) {
		say(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
		assert_non_null(strstr(hear_from(fd, &closed), "hello"));
		assert_false(closed);
	}
	assert_false(is_closed(fd));
	close(fd);
}

FIXTURE_TEST(test_whole_answer)
{
	size_t n = 0;
	ssize_t r;
	char some[65536];
	int fd;

	http_listen(rig.http, "127.0.0.1:0");
	fd = connect_to(rig.address);
	say(fd, "GET /big HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
	do {
		settle();
		while ((r = recv(fd, some, sizeof(some), 0)) > 0)
			n += (size_t)r;
	} while (r == -1 && errno == EAGAIN);
	assert_int_equal(r, 0);
	assert_true(n > BIG && n < BIG + 4096);
	close(fd);
}

FIXTURE_TEST(test_headers)
{
	char *request = xmalloc(HTTP_HEADERS * 2);
	bool closed;
	int fd;

	http_listen(rig.http, "127.0.0.1:0");
	strcpy(request, "GET / HTTP/1.1\r\nX: ");
	memset(request + strlen(request), 'x', HTTP_HEADERS + 100);
	strcpy(request + 19 + HTTP_HEADERS, "\r\n\r\n");
	assert_null(strstr(ask(request), "hello"));
	fd = connect_to(rig.address);
	memset(request, 'y', HTTP_HEADERS + 100);
	request[HTTP_HEADERS + 100] = '\0';
	(void)!write(fd, request, strlen(request));
	settle();
	assert_null(strstr(hear_from(fd, &closed), "hello"));
	assert_true(closed);
	close(fd);
	free(request);
}

FIXTURE_TEST(test_garbage)
{
	char bytes[2000];
	size_t i, k;
	int fd;

	http_listen(rig.http, "127.0.0.1:0");
	for (i = 0; i < 300; i++) {
		fd = connect_to(rig.address);
		for (k = 0; k < sizeof(bytes); k++)
			bytes[k] = (char)unit_random();
		if (i % 3 == 0)
			memcpy(bytes, "GET / HTTP/1.1\r\nHost: ", 22);
		if (i % 3 == 1)
			memcpy(bytes, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 47);
		(void)!write(fd, bytes, 1 + unit_below(sizeof(bytes)));
		settle();
		close(fd);
	}
	settle();
	check_status("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "200");
}

/* A client that holds all connections does not keep others out. */
FIXTURE_TEST(test_crowd)
{
	int fds[2 * HTTP_CONNECTIONS], open = 0;
	size_t i;

	http_listen(rig.http, "127.0.0.1:0");
	for (i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = connect_to(rig.address);
		settle();
	}
	check_status("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "200");
	for (i = 0; i < ARRAY_LEN(fds); i++) {
		open += !is_closed(fds[i]);
		assert_int_equal(is_closed(fds[i]), i <= HTTP_CONNECTIONS);
		close(fds[i]);
	}
	assert_int_equal(open, HTTP_CONNECTIONS - 1);
	settle();
}

/* A connection whose request is being answered is evicted last. */
FIXTURE_TEST(test_crowd_spares)
{
	struct buf b = BUF_INIT;
	int fds[HTTP_CONNECTIONS + 8], fd;
	bool closed;
	size_t i;

	http_listen(rig.http, "127.0.0.1:0");
	fd = connect_to(rig.address);
	settle();
	say(fd, "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
	for (i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = connect_to(rig.address);
		settle();
		if (i == HTTP_CONNECTIONS / 2)
			pass(1500 * MSEC);
	}
	assert_non_null(rig.kept);
	buf_puts(&b, "at last\n");
	http_answer(rig.kept, 200, "text/plain", &b);
	settle();
	assert_non_null(strstr(hear_from(fd, &closed), "at last"));
	close(fd);
	for (i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	settle();
}

/* When all clients hang, the newest connection is not the one that is evicted. */
FIXTURE_TEST(test_crowd_hangs)
{
	int fds[HTTP_CONNECTIONS + 8], fd = -1, small = 4096;
	bool closed;
	size_t i;

	http_listen(rig.http, "127.0.0.1:0");
	for (i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = connect_to(rig.address);
		(void)setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
		say(fds[i], "GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
		if (i != HTTP_CONNECTIONS)
			continue;
		fd = connect_to(rig.address);
		settle();
	}
	say(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_non_null(strstr(hear_from(fd, &closed), "hello"));
	close(fd);
	for (i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	settle();
}

/* Clients that connect and close at once do not evict one that has sent a request. */
FIXTURE_TEST(test_passers_by)
{
	int i, fd;
	bool closed;

	http_listen(rig.http, "127.0.0.1:0");
	fd = connect_to(rig.address);
	say(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_non_null(strstr(hear_from(fd, &closed), "hello"));
	for (i = 0; i < 3 * HTTP_CONNECTIONS; i++) {
		close(connect_to(rig.address));
		settle();
	}
	assert_false(is_closed(fd));
	say(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_non_null(strstr(hear_from(fd, &closed), "hello"));
	close(fd);
	settle();
}

/* An answer to a client that has closed its connection does no harm. */
FIXTURE_TEST(test_gone)
{
	struct buf b = BUF_INIT;
	int fd;

	http_listen(rig.http, "127.0.0.1:0");
	fd = connect_to(rig.address);
	say(fd, "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
	close(fd);
	settle();
	assert_non_null(rig.kept);
	buf_puts(&b, "too late\n");
	http_answer(rig.kept, 200, "text/plain", &b);
	settle();
	check_status("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "200");
}

FIXTURE_TEST(test_in_use)
{
	struct listen_socket other;
	char *cause = NULL;

	assert_int_equal(listen_socket_open(&other, "127.0.0.1:0", &cause), 0);
	http_listen(rig.http, other.address);
	assert_int_equal(rig.warnings, 1);
	pass(HTTP_RETRY + SEC);
	pass(HTTP_RETRY + SEC);
	assert_int_equal(rig.warnings, 1);	/* said once */
	assert_string_equal(rig.address, "");
	listen_socket_close(&other);
	pass(HTTP_RETRY + SEC);
	check_status("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "200");
}

FIXTURE_TEST(test_move)
{
	char first[128], path[128];
	int idle;

	http_listen(rig.http, "127.0.0.1:0");
	strcpy(first, rig.address);
	idle = connect_to(first);
	settle();
	snprintf(path, sizeof(path), "unix:%s/http.sock", rig.dir);
	http_listen(rig.http, path);
	settle();
	assert_true(is_closed(idle));
	close(idle);
	check_status("GET / HTTP/1.1\r\n\r\n", "200");
	http_listen(rig.http, "");
	assert_int_equal(access(path + 5, F_OK), -1);
	http_listen(rig.http, first);
	check_status("GET / HTTP/1.1\r\n\r\n", "200");
}

/* -- sockets ----------------------------------------------------------------------- */

FIXTURE_TEST(test_addresses)
{
	static const char *const good[] = {
		"127.0.0.1:17379", "0.0.0.0:1", "[::1]:17379", "[::]:0", "unix:/run/x.sock",
	};
	static const char *const bad[] = {
		"17379", ":17379", "localhost:17379", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
		"127.0.0.1:65536", "::1:17379", "[::1]", "[::1:17379", "unix:x", "/run/x.sock",
		"http://127.0.0.1:17379", "*:17379", "",
	};
	char *cause;
	size_t i;

	for (i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(listen_socket_check(good[i], NULL), 0);
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		cause = NULL;
		if (listen_socket_check(bad[i], &cause) != -1)
			fail_msg("%s is taken", bad[i]);
		assert_non_null(cause);
		free(cause);
	}
}

FIXTURE_TEST(test_socket_file)
{
	struct listen_socket a, b;
	char where[128], *cause = NULL;
	struct stat st;

	snprintf(where, sizeof(where), "unix:%s/s", rig.dir);
	assert_int_equal(listen_socket_open(&a, where, NULL), 0);
	assert_int_equal(stat(where + 5, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	assert_int_equal(listen_socket_open(&b, where, &cause), -1);	/* a listens there */
	assert_non_null(strstr(cause, "is in use"));
	free(cause);
	close(a.fd);		/* as if a's process were killed: the file stays */
	a.fd = -1;
	assert_int_equal(listen_socket_open(&b, where, NULL), 0);
	listen_socket_close(&a);	/* must not remove the file, which is b's now */
	assert_int_equal(access(where + 5, F_OK), 0);
	listen_socket_close(&b);
	assert_int_equal(access(where + 5, F_OK), -1);
}

/* A file that is not a socket is never removed. */
FIXTURE_TEST(test_not_ours)
{
	struct listen_socket l;
	char where[128], *cause = NULL;
	FILE *f;

	snprintf(where, sizeof(where), "unix:%s/precious", rig.dir);
	assert_non_null(f = fopen(where + 5, "w"));
	fclose(f);
	assert_int_equal(listen_socket_open(&l, where, &cause), -1);
	free(cause);
	assert_int_equal(access(where + 5, F_OK), 0);
}

int
main(void)
{
	signal(SIGPIPE, SIG_IGN);	/* as the daemon does, see http.h */
	return unit_run(NULL, NULL);
}
