/*
 * A bad network between two unix sockets, for tests.
 *
 *	flakyproxy LISTEN UPSTREAM [SEED [LOG]]
 *
 * Each connection to LISTEN gets a connection of its own to UPSTREAM.  Commands come in
 * lines on standard input; at its end the proxy ends.  The proxy answers each command
 * by "ok" on standard output.  A command holds for all connections, also later ones,
 * until the next one of its name.  LOG gets a line at the end of each connection: the
 * seconds of CLOCK_MONOTONIC.
 *
 *	cut N		close after N more bytes of a connection, both ways counted
 *	delay MS	hold every piece for 0 to MS milliseconds
 *	split 1|0	send byte by byte (the first of each piece), then in crumbs
 *	lose N		swallow every Nth piece from upstream, and close
 *	blackhole 1|0	nothing arrives; it all comes later, where one still listens
 *	hold TEXT	from the first piece from upstream with this text on, a connection's
 *			replies wait for "release"
 *	refuse 1|0	accept and close, the connections there too
 *	drop		close all connections, once
 *	lie P		of 100 values in replies, P are others: numbers, types, lengths
 *			of arrays, errors; "lies" answers with how many it told
 *	skip		swallow the next piece from upstream of each connection there, once
 *	say HEX		these bytes go to all clients now, between replies or within one
 *	flood HEX	the same, and then as many more as they take, for ever
 *	rate N		N bytes a second each way, which all connections share
 *	swallow WAY	reads, and sends nothing on: up (to the server), down, both; none.
 *			A connection of which something was swallowed stays so.
 *	age MS		closes each connection MS milliseconds after it was made, or
 *			after this command
 *	idle MS		closes each connection on which nothing moved for so long
 *	random P	P of 100 new connections get a cut, delay, lose or split of their own
 *	calm		all of the above off
 *
 * A piece is what one read() returned: one or more replies of Redis.
 */
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>

#define BUFFER_MAX	(4 << 20)
#define RATE_DEPTH	0.02	/* seconds' worth of bytes that may be sent at once */
#define RATE_QUEUED	0.1	/* seconds' worth that wait in the proxy */
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
	bool		 swallows;	/* bytes were swallowed: all later ones are, too */
	bool		 holds;		/* replies wait for "release" */
	bool		 skips;		/* swallow the next piece, and no more */
};

struct link {
	TAILQ_ENTRY(link) entry;
	bool		  floods;	/* send bytes to the client for ever */
	struct half	  half[2];
	struct weather	  own;
	bool		  is_own;	/* it has its own faults, not those of all */
	long		  cut;		/* bytes left of it */
	long		  pieces;	/* from upstream, with its own faults */
	struct event	 *end;		/* fires at its age or idle limit */
};

static TAILQ_HEAD(, link) links = TAILQ_HEAD_INITIALIZER(links);
static struct event_base *base;
static struct weather all = { .cut = -1 };
static const char *upstream;
static bool blackhole, refuse;
static char held[64];		/* "": none */
static FILE *ends;		/* NULL: no LOG */
static bool swallow[2];		/* by whether it is a reply */
static long age, idle;		/* ms; 0: no limit */
/* Token buckets of the two ways. */
static struct { double tokens, at; } bucket[2];
static double rate;		/* bytes a second; 0: no limit */
static uint32_t lie_percent;
static unsigned long lies;
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

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct timeval
milliseconds(long ms)
{
	return (struct timeval){ ms / 1000, ms % 1000 * 1000 };
}

static const struct weather *
weather_of(const struct link *l)
{
	return l->is_own ? &l->own : &all;
}

static void
link_close(struct link *l)
{
	if (ends != NULL)
		fprintf(ends, "%.6f\n", now());
	TAILQ_REMOVE(&links, l, entry);
	for (int i = 0; i < 2; i++) {
		event_free(l->half[i].in);
		event_free(l->half[i].out);
		event_free(l->half[i].timer);
		evbuffer_free(l->half[i].buf);
	}
	event_free(l->end);
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

/* How many bytes the link takes now in this direction. */
static size_t
bucket_fill(bool reply)
{
	double t = now(), depth = rate * RATE_DEPTH > 1 ? rate * RATE_DEPTH : 1;

	bucket[reply].tokens += (t - bucket[reply].at) * rate;
	bucket[reply].at = t;
	if (bucket[reply].tokens > depth)
		bucket[reply].tokens = depth;
	return bucket[reply].tokens > 0 ? (size_t)bucket[reply].tokens : 0;
}

/* The time until the bucket has room: for a quarter of it, or a byte. */
static struct timeval
bucket_wait(void)
{
	double wait = RATE_DEPTH / 4 > 1 / rate ? RATE_DEPTH / 4 : 1 / rate;
	long us = (long)(wait * 1e6) + (long)draw(1000);

	return (struct timeval){ us / 1000000, us % 1000000 };
}

/* Whether there is room for more input. */
static bool
half_has_room(const struct half *h)
{
	size_t most = BUFFER_MAX;

	if (rate > 0)
		most = rate * RATE_QUEUED > 1000 ? (size_t)(rate * RATE_QUEUED) : 1000;
	return evbuffer_get_length(h->buf) < most;
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
	if (rate > 0) {
		size_t room = bucket_fill(h->reply);

		n = n < room ? n : room;
	}
	return n;
}

static void
half_flush(evutil_socket_t fd, short what, void *arg)
{
	struct timeval crumb = { 0, 20 };
	struct half *h = arg;
	struct link *l = h->link;
	size_t portion;
	int n;

	(void)fd, (void)what;
	if (l->floods && h->reply && evbuffer_get_length(h->buf) == 0)
		evbuffer_add(h->buf, flood, sizeof(flood));
	if (blackhole || h->holds || evbuffer_get_length(h->buf) == 0)
		return;
	if (l->cut == 0) {
		link_close(l);
		return;
	}
	if ((portion = half_portion(h)) == 0) {
		crumb = bucket_wait();
		event_add(h->timer, &crumb);
		return;
	}
	n = evbuffer_write_atmost(h->buf, h->to, (ev_ssize_t)portion);
	if (n <= 0) {
		event_add(h->out, NULL);
		return;
	}
	if (rate > 0)
		bucket[h->reply].tokens -= n;
	if (l->cut > 0)
		l->cut -= n;
	if (h->single > 0)
		h->single--;
	if (l->floods && h->reply)
		event_add(h->out, NULL);
	else if (evbuffer_get_length(h->buf) > 0)
		event_add(h->timer, &crumb);
	if (!weather_of(l)->split ? half_has_room(h) : evbuffer_get_length(h->buf) == 0)
		event_add(h->in, NULL);
}

/* Writes another value.  It need not make sense, and is mostly well-formed. */
static void
tell_lie(struct evbuffer *to, char type, long n)
{
	static const char *const others[] = {
		":0", ":-1", ":1", ":9223372036854775807", ":-9223372036854775808", "$-1",
		"$0\r\n", "$1\r\nx", "$4\r\n1e99", "$3\r\nnan", "$5\r\n-0.01", "+OK", "*0", "*-1",
		"*1\r\n:7", "-ERR a lie",
		"-OOM command not allowed when used memory > 'maxmemory'.",
		"-NOPERM this user has no permissions", "-WRONGTYPE Operation against a key",
	};

	lies++;
	if (type == '*' && draw(2) == 0)
		evbuffer_add_printf(to, "*%ld", n + (draw(2) == 0 ? 1 : -1));
	else if (type == ':' && draw(2) == 0)
		evbuffer_add_printf(to, ":%ld", (long)draw(1000) - 500);
	else
		evbuffer_add_printf(to, "%s", others[draw(sizeof(others) / sizeof(*others))]);
	evbuffer_add_printf(to, "\r\n");
}

/*
 * Replaces values in replies.  A value at the end of a piece that is not whole is sent
 * unchanged, and text in a message may be taken for a value.
 */
static void
half_lie(struct half *h, size_t before)
{
	size_t n = evbuffer_get_length(h->buf) - before;
	char *piece = malloc(n), *p = piece, *end = piece + n, *eol;
	struct evbuffer *to = evbuffer_new();

	if (piece == NULL || to == NULL)
		abort();
	evbuffer_remove_buffer(h->buf, to, before);
	evbuffer_remove(h->buf, piece, n);
	while ((eol = memmem(p, (size_t)(end - p), "\r\n", 2)) != NULL) {
		char type = *p, *next = eol + 2;
		long size = eol - p < 20 ? strtol(p + 1, NULL, 10) : 0;

		if (type == '$' && size >= 0 && end - next >= size + 2)
			next += size + 2;
		if (strchr("+-:$*", type) != NULL && draw(100) < lie_percent)
			tell_lie(to, type, size);
		else
			evbuffer_add(to, p, (size_t)(next - p));
		p = next;
	}
	evbuffer_add(to, p, (size_t)(end - p));
	evbuffer_add_buffer(h->buf, to);
	evbuffer_free(to);
	free(piece);
}

/* The connection ends MS from now. */
static void
link_limit(struct link *l, long ms)
{
	struct timeval tv = milliseconds(ms);

	event_add(l->end, &tv);
}

static void
link_expire(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	link_close(arg);
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
	size_t before = evbuffer_get_length(h->buf);
	int n = evbuffer_read(h->buf, fd, 65536);

	(void)what;
	if (n <= 0 || half_loses(h)) {
		link_close(h->link);
		return;
	}
	if (idle > 0)
		link_limit(h->link, idle);
	if (swallow[h->reply] || h->swallows || h->skips) {
		h->swallows = !h->skips;
		h->skips = false;
		evbuffer_drain(h->buf, evbuffer_get_length(h->buf) - before);
		event_add(h->in, NULL);
		return;
	}
	if (h->reply && held[0] != '\0' &&
	    evbuffer_search(h->buf, held, strlen(held), NULL).pos != -1)
		h->holds = true;
	if (h->reply && lie_percent > 0)
		half_lie(h, before);
	if (half_has_room(h) && !w->split)
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

/* Draws the connection's own faults. */
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
	l->end = evtimer_new(base, link_expire, l);
	if (age > 0 || idle > 0)
		link_limit(l, age > 0 ? age : idle);
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

/* Sends all that waits in the proxy. */
static void
flush_all(void)
{
	struct link *l;

	TAILQ_FOREACH(l, &links, entry) {
		for (int i = 0; i < 2; i++)
			event_active(l->half[i].timer, EV_TIMEOUT, 0);
	}
}

static void
set_blackhole(bool on)
{
	blackhole = on;
	if (!on)
		flush_all();
}

static void
release(void)
{
	struct link *l;

	held[0] = '\0';
	TAILQ_FOREACH(l, &links, entry)
		l->half[1].holds = false;
	flush_all();
}

static void
set_rate(long n)
{
	rate = (double)n;
	bucket[0].tokens = bucket[1].tokens = 0;
	bucket[0].at = bucket[1].at = now();
	flush_all();
}

static void
set_swallow(const char *way)
{
	bool both = strcmp(way, "both") == 0;

	swallow[false] = both || strcmp(way, "up") == 0;
	swallow[true] = both || strcmp(way, "down") == 0;
}

/* Sets one of the two limits, and ends the other. */
static void
set_limit(long new_age, long new_idle)
{
	struct link *l;

	age = new_age;
	idle = new_idle;
	TAILQ_FOREACH(l, &links, entry) {
		if (age > 0 || idle > 0)
			link_limit(l, age > 0 ? age : idle);
		else
			event_del(l->end);
	}
}

static void
set_skip(void)
{
	struct link *l;

	TAILQ_FOREACH(l, &links, entry)
		l->half[1].skips = true;
}

/* Sends the bytes of hexadecimal digits as if the server did. */
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
	char name[32] = "", hex[4096] = "", way[8];
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
	else if (sscanf(line, "hold %63s", held) == 1)
		;
	else if (strcmp(name, "release") == 0)
		release();
	else if (strcmp(name, "refuse") == 0)
		refuse = n != 0;
	else if (strcmp(name, "random") == 0)
		random_percent = n;
	else if (strcmp(name, "lie") == 0)
		lie_percent = (uint32_t)n;
	else if (strcmp(name, "lies") == 0)
		printf("%lu lies\n", lies);
	else if (strcmp(name, "rate") == 0)
		set_rate(n);
	else if (sscanf(line, "swallow %7s", way) == 1)
		set_swallow(way);
	else if (strcmp(name, "skip") == 0)
		set_skip();
	else if (strcmp(name, "age") == 0)
		set_limit(n, 0);
	else if (strcmp(name, "idle") == 0)
		set_limit(0, n);
	else if (sscanf(line, "say %4095s", hex) == 1 || sscanf(line, "flood %4095s", hex) == 1)
		say(hex, name[0] == 'f');
	else if (strcmp(name, "calm") == 0) {
		all = (struct weather){ .cut = -1 };
		refuse = false;
		random_percent = 0;
		lie_percent = 0;
		set_cut(-1);
		set_rate(0);
		set_swallow("none");
		set_limit(0, 0);
		set_blackhole(false);
		release();
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
	if (argc > 4) {
		if ((ends = fopen(argv[4], "ae")) == NULL) {
			perror(argv[4]);
			return 71;
		}
		setvbuf(ends, NULL, _IOLBF, 0);
	}
	unlink(argv[1]);
	fd = unix_socket(argv[1], &sun);
	/* The main process of a privileged rqd is not root. */
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1 ||
	    chmod(argv[1], 0777) == -1 || listen(fd, 128) == -1) {
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
	if (ends != NULL)
		fclose(ends);
	return 0;
}
