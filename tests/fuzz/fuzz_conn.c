/*
 * Fuzzes what a server sends on a connection: hiredis' reader, redis/hiredis_loop.c,
 * conn.c, greet.c.
 *
 * The first byte describes the connection; the rest is what the server sends on it.
 *
 *	bit 0		it is a subscriber's
 *	bit 1		the server answers the greeting properly before
 *	bits 2, 3	the number of commands that wait for an answer
 *	bit 4		the bytes come in two pieces
 *
 * Each command must be answered exactly once, and nothing may end the program.
 */
#include "fuzz.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "loop/loop.h"
#include "redis/conn.h"
#include "redis/reply.h"

FUZZ_MAIN("conn")

static char dir[] = "/tmp/rqd-fuzz.XXXXXX";
static char path[64], server[80];
static int listener = -1;
static unsigned answers;
static volatile size_t looked;	/* so that the compiler keeps the reads of look() */

static void
tidy(void)
{
	(void)unlink(path);
	(void)rmdir(dir);
}

static void
set_up(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	if (mkdtemp(dir) == NULL)
		abort();
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(server, sizeof(server), "unix:%s", path);
	strcpy(sun.sun_path, path);
	atexit(tidy);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(listener, (struct sockaddr *)&sun, sizeof(sun)) == -1 ||
	    listen(listener, 16) == -1)
		abort();
}

/* Reads all of a reply, so that a sanitizer sees wrong memory. */
static void
look(const struct redisReply *r)
{
	const char *s;
	size_t len;

	looked += reply_error(r) + (size_t)reply_int(r, 0) + strlen(reply_text(r));
	looked += reply_double(r, 0) > 0;
	if ((s = reply_str(r, &len)) != NULL && len > 0)
		looked += (size_t)s[len - 1];
	for (size_t i = 0; i < reply_len(r); i++)
		look(reply_at(r, i));
}

static void
answered(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	(void)arg;
	answers++;
	if ((answer == CONN_REPLY) != (r != NULL))
		abort();
	if (r != NULL)
		look(r);
}

static void
message(const char *channel, size_t len, const struct redisReply *r, void *arg)
{
	(void)arg;
	looked += len > 0 ? (size_t)channel[len - 1] : 0;
	look(r);
}

static void
turns(struct loop *l)
{
	for (int i = 0; i < 4; i++)
		loop_turn(l, 0);
}

/* Returns the number of commands that rqd has sent; their form is known to be right. */
static unsigned
commands(int fd)
{
	static char bytes[1 << 20];
	ssize_t n = recv(fd, bytes, sizeof(bytes) - 1, MSG_DONTWAIT);
	const char *p = bytes, *end = bytes + (n > 0 ? n : 0);
	unsigned count = 0;

	while (p < end && *p == '*') {
		for (long words = strtol(p + 1, (char **)&p, 10); words > 0; words--) {
			p += 3;
			p += strtol(p, (char **)&p, 10) + 2;
		}
		p += 2;
		count++;
	}
	return count;
}

static void
say(int fd, const void *p, size_t n)
{
	if (n > 0)
		looked += (size_t)send(fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Answers the greeting, and a subscriber's subscriptions. */
static void
greet(struct loop *l, int fd)
{
	static const char news[] = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
	static const char all[] = "*3\r\n$10\r\npsubscribe\r\n$2\r\nn*\r\n:2\r\n";
	unsigned n = commands(fd);

	while (n-- > 0)
		say(fd, "+OK\r\n", 5);
	turns(l);
	if (commands(fd) == 0)
		return;
	say(fd, news, sizeof(news) - 1);
	say(fd, all, sizeof(all) - 1);
	turns(l);
}

static void
ask(struct conn *c, unsigned n)
{
	static const char *v[] = { "a", "b", "c" };
	static size_t lens[] = { 1, 1, 1 };
	static const struct words keys = { .v = v, .len = lens, .n = 3, .nkeys = 3, .bytes = 3 };

	for (unsigned i = 0; i < n; i++) {
		if (i % 2 == 0)
			conn_words(c, answered, NULL, "GET", "x", NULL);
		else
			conn_script(c, false, script_find("renew"), answered, NULL, &keys);
	}
}

static void
converse(struct loop *l, struct conn *c, uint8_t how, const uint8_t *data, size_t size)
{
	size_t first = (how & 16) != 0 ? size / 2 : size;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd == -1)
		abort();
	turns(l);
	if ((how & 2) != 0)
		greet(l, fd);
	ask(c, how >> 2 & 3);
	turns(l);
	say(fd, data, first);
	turns(l);
	say(fd, data + first, size - first);
	turns(l);
	close(fd);
	turns(l);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *servers[] = { server, NULL };
	static const struct redis_options opt = { .servers = servers, .timeout = 10 * SEC };
	static const struct conn_events events = { .up = NULL };
	struct loop *l;
	struct conn *c;
	int fd;

	if (size == 0)
		return 0;
	if (listener == -1)
		set_up();
	answers = 0;
	l = loop_new();
	c = conn_new(l, &opt, "fuzz", data[0] & CONN_SUBSCRIBER, &events, NULL);
	conn_set_limits(c, &(struct conn_limits){ .reply_max = 1 << 20 });
	if ((data[0] & CONN_SUBSCRIBER) != 0) {
		conn_subscribe(c, false, "news", message, NULL);
		conn_subscribe(c, true, "n*", message, NULL);
	}
	conn_start(c);
	turns(l);
	converse(l, c, data[0], data + 1, size - 1);
	conn_free(c);
	loop_free(l);
	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) != -1)
		close(fd);
	if (answers != (data[0] >> 2 & 3))
		abort();
	return 0;
}
