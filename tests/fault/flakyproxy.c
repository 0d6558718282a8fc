/*
 * A bad network between two unix sockets, for tests.
 *
 *	flakyproxy LISTEN UPSTREAM [SEED]
 *
 * Every connection to LISTEN is joined to one of its own to UPSTREAM.  Commands
 * come in lines on standard input, whose end is the end of the proxy; each is
 * answered by "ok" on standard output and holds for all connections, those
 * there and those to come, until the next one of its name:
 *
 *	cut N		close after N more bytes of a connection, both ways counted
 *	delay MS	hold every piece for 0 to MS milliseconds
 *	split 1|0	send byte by byte (the first of each piece), then in crumbs
 *	lose N		swallow every Nth piece from upstream, and close
 *	blackhole 1|0	nothing arrives; it all comes later, where one still listens
 *	refuse 1|0	accept and close, the connections there too
 *	drop		close all connections, once
 *	say HEX		these bytes go to all clients now, between replies or within one
 *	flood HEX	the same, and then as many more as they take, for ever
 *	random P	P of 100 new connections get one of these for themselves
 *	calm		all of the above off
 *
 * A piece is what one read() returned: one or more replies of Redis.
 */
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>

#define BUFFER_MAX	(4 << 20)
#define SINGLE_BYTES	256	/* of each piece are sent alone */

struct weather {
	long	cut;		/* bytes left; -1: no limit */
	long	delay;		/* ms */
	long	lose;		/* every Nth piece; 0: none */
	bool	split;
};

struct link;

/* One direction. */
struct half {
	struct link	*link;
	int		 from, to;
	bool		 reply;	/* from upstream */
	struct evbuffer	*buf;
	struct event	*in, *out, *timer;
	size_t		 single;	/* bytes still to be sent one by one */
};

struct link {
	TAILQ_ENTRY(link) entry;
	bool		  floods;	/* the client gets no end of bytes */
	struct half	  half[2];
	struct weather	  own;
	bool		  is_own;	/* its own weather, not that of all */
	long		  cut;		/* bytes left of it */
	long		  pieces;	/* from upstream, of its own weather */
};

static TAILQ_HEAD(, link) links = TAILQ_HEAD_INITIALIZER(links);
static struct event_base *base;
static struct weather all = { .cut = -1 };
static const char *upstream;
static bool blackhole, refuse;
static char flood[65536];
static long random_percent, pieces;
static uint64_t rng;

static uint32_t
draw(uint32_t n)
{
	uint64_t z = (rng += 0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (uint32_t)((z ^ z >> 31) >> 32) % n;
}

static const struct weather *
weather_of(const struct link *l)
{
	return l->is_own ? &l->own : &all;
}

static void
link_close(struct link *l)
{
	TAILQ_REMOVE(&links, l, entry);
	for (int i = 0; i < 2; i++) {
		event_free(l->half[i].in);
		event_free(l->half[i].out);
		event_free(l->half[i].timer);
		evbuffer_free(l->half[i].buf);
	}
	close(l->half[0].from);
	close(l->half[0].to);
	free(l);
}

static void
links_close(void)
{
	struct link *l;

	while ((l = TAILQ_FIRST(&links)) != NULL)
		link_close(l);
}

/* How much may be written now. */
static size_t
half_portion(const struct half *h)
{
	size_t n = evbuffer_get_length(h->buf);

	if (h->single > 0)
		n = 1;
	else if (weather_of(h->link)->split && n > 1000)
		n = 1 + draw(1000);
	if (h->link->cut >= 0 && (size_t)h->link->cut < n)
		n = (size_t)h->link->cut;
	return n;
}

static void
half_flush(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval crumb = { 0, 20 };
	struct half *h = arg;
	struct link *l = h->link;
	int n;

	(void)fd, (void)what;
	if (l->floods && h->reply && evbuffer_get_length(h->buf) == 0)
		evbuffer_add(h->buf, flood, sizeof(flood));
	if (blackhole || evbuffer_get_length(h->buf) == 0)
		return;
	if (l->cut == 0) {
		link_close(l);
		return;
	}
	n = evbuffer_write_atmost(h->buf, h->to, (ev_ssize_t)half_portion(h));
	if (n <= 0) {
		event_add(h->out, NULL);
		return;
	}
	if (l->cut > 0)
		l->cut -= n;
	if (h->single > 0)
		h->single--;
	if (l->floods && h->reply)
		event_add(h->out, NULL);
	else if (evbuffer_get_length(h->buf) > 0)
		event_add(h->timer, &crumb);
	else
		event_add(h->in, NULL);
}

static bool
half_loses(struct half *h)
{
	const struct weather *w = weather_of(h->link);
	long *count = h->link->is_own ? &h->link->pieces : &pieces;

	return h->reply && w->lose > 0 && ++*count % w->lose == 0;
}

static void
half_read(evutil_socket_t fd, short what, void *arg)
{
	struct half *h = arg;
	const struct weather *w = weather_of(h->link);
	struct timeval tv = { 0, 0 };
	int n = evbuffer_read(h->buf, fd, 65536);

	(void)what;
	if (n <= 0 || half_loses(h)) {
		link_close(h->link);
		return;
	}
	if (evbuffer_get_length(h->buf) < BUFFER_MAX && !w->split)
		event_add(h->in, NULL);
	if (w->split)
		h->single = (size_t)n < SINGLE_BYTES ? (size_t)n : SINGLE_BYTES;
	if (evtimer_pending(h->timer, NULL))
		return;
	if (w->delay > 0) {
		long us = (long)draw((uint32_t)w->delay * 1000);
		tv.tv_sec = us / 1000000;
		tv.tv_usec = us % 1000000;
	}
	event_add(h->timer, &tv);
}

static void
half_init(struct half *h, struct link *l, int from, int to, bool reply)
{
	h->link = l;
	h->from = from;
	h->to = to;
	h->reply = reply;
	h->buf = evbuffer_new();
	h->in = event_new(base, from, EV_READ, half_read, h);
	h->out = event_new(base, to, EV_WRITE, half_flush, h);
	h->timer = evtimer_new(base, half_flush, h);
	event_add(h->in, NULL);
}

static int
unix_socket(const char *path, struct sockaddr_un *sun)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	if (fd == -1 || strlen(path) >= sizeof(sun->sun_path)) {
		fprintf(stderr, "flakyproxy: %s: no socket\n", path);
		exit(71);
	}
	strcpy(sun->sun_path, path);
	return fd;
}

/* A connection's own weather. */
static void
link_draw(struct link *l)
{
	l->own = (struct weather){ .cut = -1 };
	if (random_percent == 0 || draw(100) >= (uint32_t)random_percent)
		return;
	l->is_own = true;
	switch (draw(4)) {
	case 0: l->own.cut = (long)draw(20000); break;
	case 1: l->own.delay = 1 + (long)draw(300); break;
	case 2: l->own.lose = 1 + (long)draw(30); break;
	case 3: l->own.split = true; break;
	}
}

static void
on_accept(evutil_socket_t listener, short what, void *arg)
{
	struct sockaddr_un sun;
	struct link *l;
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), to;

	(void)what, (void)arg;
	if (fd == -1)
		return;
	to = unix_socket(upstream, &sun);
	if (refuse || connect(to, (struct sockaddr *)&sun, sizeof(sun)) == -1) {
		close(fd);
		close(to);
		return;
	}
	evutil_make_socket_nonblocking(to);
	if ((l = calloc(1, sizeof(*l))) == NULL)
		abort();
	link_draw(l);
	l->cut = weather_of(l)->cut;
	half_init(&l->half[0], l, fd, to, false);
	half_init(&l->half[1], l, to, fd, true);
	TAILQ_INSERT_TAIL(&links, l, entry);
}

/* -- commands --------------------------------------------------------------- */

static void
set_cut(long n)
{
	struct link *l;

	all.cut = n;
	TAILQ_FOREACH(l, &links, entry)
		l->cut = n;
}

static void
set_blackhole(bool on)
{
	struct link *l;

	blackhole = on;
	TAILQ_FOREACH(l, &links, entry) {
		for (int i = 0; i < 2 && !on; i++)
			event_active(l->half[i].timer, EV_TIMEOUT, 0);
	}
}

/* Hexadecimal digits, as bytes of the server's. */
static void
say(const char *hex, bool floods)
{
	unsigned byte;
	struct link *l;

	TAILQ_FOREACH(l, &links, entry) {
		for (const char *p = hex; sscanf(p, "%2x", &byte) == 1; p += 2) {
			char c = (char)byte;

			evbuffer_add(l->half[1].buf, &c, 1);
		}
		l->floods = floods;
		event_active(l->half[1].timer, EV_TIMEOUT, 0);
	}
}

static void
command(const char *line)
{
	char name[32] = "", hex[4096] = "";
	long n = 0;

	if (sscanf(line, "%31s %ld", name, &n) < 1)
		return;
	if (strcmp(name, "cut") == 0)
		set_cut(n);
	else if (strcmp(name, "delay") == 0)
		all.delay = n;
	else if (strcmp(name, "split") == 0)
		all.split = n != 0;
	else if (strcmp(name, "lose") == 0)
		all.lose = n;
	else if (strcmp(name, "blackhole") == 0)
		set_blackhole(n != 0);
	else if (strcmp(name, "refuse") == 0)
		refuse = n != 0;
	else if (strcmp(name, "random") == 0)
		random_percent = n;
	else if (sscanf(line, "say %4095s", hex) == 1 || sscanf(line, "flood %4095s", hex) == 1)
		say(hex, name[0] == 'f');
	else if (strcmp(name, "calm") == 0) {
		all = (struct weather){ .cut = -1 };
		refuse = false;
		random_percent = 0;
		set_cut(-1);
		set_blackhole(false);
	} else if (strcmp(name, "drop") != 0) {
		printf("unknown: %s\n", name);
		return;
	}
	if (refuse || strcmp(name, "drop") == 0)
		links_close();
	printf("ok\n");
}

static void
on_stdin(evutil_socket_t fd, short what, void *arg)
{
	struct evbuffer *lines = arg;
	char *line;

	(void)what;
	if (evbuffer_read(lines, fd, 4096) <= 0) {
		event_base_loopbreak(base);
		return;
	}
	while ((line = evbuffer_readln(lines, NULL, EVBUFFER_EOL_LF)) != NULL) {
		command(line);
		free(line);
	}
}

int
main(int argc, char **argv)
{
	struct evbuffer *lines = evbuffer_new();
	struct event *accepting, *reading;
	struct sockaddr_un sun;
	int fd;

	if (argc < 3)
		return 64;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	upstream = argv[2];
	rng = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	unlink(argv[1]);
	fd = unix_socket(argv[1], &sun);
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1 || listen(fd, 128) == -1) {
		perror(argv[1]);
		return 71;
	}
	evutil_make_socket_nonblocking(fd);
	base = event_base_new();
	accepting = event_new(base, fd, EV_READ | EV_PERSIST, on_accept, NULL);
	reading = event_new(base, 0, EV_READ | EV_PERSIST, on_stdin, lines);
	event_add(accepting, NULL);
	event_add(reading, NULL);
	printf("ok\n");
	event_base_dispatch(base);
	links_close();
	event_free(accepting);
	event_free(reading);
	evbuffer_free(lines);
	event_base_free(base);
	close(fd);
	return 0;
}
