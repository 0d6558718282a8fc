/*
 * Who pushes messages, and who handles them.
 *
 * Both are this program in another process.  The handler writes a line to
 * DIR/runs when it begins and one when it is done, each by a single write() at
 * the end of the file, so that no kill and no crash takes them back:
 *
 *	B message attempt pid daemon time
 *	E message attempt pid status time
 *
 * What it does with a message depends on seed, message and attempt only.
 */
#include "soak.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/resource.h>

#include <hiredis/hiredis.h>

double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

uint64_t
mix(uint64_t z)
{
	z += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint32_t
draw(uint64_t *state, uint32_t n)
{
	*state += 0x9e3779b97f4a7c15;
	return (uint32_t)(mix(*state) >> 32) % n;
}

static void
pause_for(double seconds)
{
	struct timespec ts = {
		.tv_sec = (time_t)seconds,
		.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9),
	};

	nanosleep(&ts, NULL);
}

/* The first number in a payload. */
long
work_number(const char *payload, size_t len)
{
	size_t i = 0;
	long n = 0;

	while (i < len && (payload[i] < '0' || payload[i] > '9'))
		i++;
	for (; i < len && payload[i] >= '0' && payload[i] <= '9'; i++)
		n = n * 10 + payload[i] - '0';
	return n;
}

/* -- the handler ------------------------------------------------------------ */

static void
record(const char *dir, char what, long n, int attempt, int value)
{
	char path[256], line[128];
	int fd, len;

	snprintf(path, sizeof(path), "%s/runs", dir);
	len = snprintf(line, sizeof(line), "%c %ld %d %d %d %.6f\n", what, n, attempt,
	    (int)getpid(), value, now());
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd == -1 || write(fd, line, (size_t)len) != len)
		_exit(70);
	close(fd);
}

static double
work_time(uint64_t *state)
{
	uint32_t kind = draw(state, 100);

	if (kind < 70)
		return draw(state, 5000) / 1e6;
	if (kind < 95)
		return 0.005 + draw(state, 60000) / 1e6;
	if (kind < 99)
		return 0.2 + draw(state, 600000) / 1e6;
	return LEASE + draw(state, 1500000) / 1e6;
}

int
work_handle(const char *dir, uint64_t seed)
{
	static const struct rlimit no_core = { 0, 0 };
	static char payload[1 << 20];
	const char *text = getenv("RQD_ATTEMPT");
	int attempt = text != NULL ? atoi(text) : 0, status = 0;
	size_t len = 0;
	ssize_t got;
	uint64_t state;
	uint32_t kind;
	long n;

	while ((got = read(0, payload + len, sizeof(payload) - len)) > 0)
		len += (size_t)got;
	n = work_number(payload, len);
	record(dir, 'B', n, attempt, (int)getppid());
	state = mix(seed ^ mix((uint64_t)n * 1000 + (uint64_t)attempt));
	pause_for(work_time(&state));
	kind = draw(&state, 100);
	if (kind < 5)
		status = 1;
	else if (kind < 7)
		status = 65;
	else if (kind < 9)
		status = 128 + SIGSEGV;
	record(dir, 'E', n, attempt, status);
	if (status > 128) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	return status;
}

/* -- the producer ----------------------------------------------------------- */

#define WAITING_MAX	200	/* more are not pushed: the queue keeps up */

/*
 * Any number of times: the message is pushed once.  Numbers go up, so the last
 * one says it all.  Answers with how many wait; -1: too many do.
 */
static const char push_once[] =
    UNREAD
    "local stream = ARGV[4] == '1' "
    "local waiting = stream and #unread(ARGV[3]) or redis.call('LLEN', KEYS[1]) "
    "if tonumber(redis.call('GET', KEYS[2]) or 0) >= tonumber(ARGV[1]) then return 0 end "
    "if waiting >= tonumber(ARGV[3]) then return -1 end "
    "if stream then redis.call('XADD', KEYS[1], '*', 'message', ARGV[2]) "
    "else redis.call('LPUSH', KEYS[1], ARGV[2]) end redis.call('SET', KEYS[2], ARGV[1]) return waiting";

/* With an id of its own, with one that many have, without; a few are large. */
static size_t
make_payload(long n, char *buf, size_t size)
{
	uint64_t state = mix(soak_seed ^ (uint64_t)n);
	uint32_t kind = draw(&state, 10);
	size_t len, pad = draw(&state, 50) == 0 ? draw(&state, 100000) : draw(&state, 200);

	if (kind < 6)
		len = (size_t)snprintf(buf, size, "{\"n\":%ld,\"id\":%ld,\"pad\":\"", n, n);
	else if (kind < 8)
		len = (size_t)snprintf(buf, size, "{\"n\":%ld,\"id\":\"shared\",\"pad\":\"", n);
	else
		len = (size_t)snprintf(buf, size, "%ld \r\n", n);
	for (size_t i = 0; i < pad; i++)
		buf[len++] = (char)(kind < 8 ? 'a' + (int)draw(&state, 26) : (int)draw(&state, 256));
	if (kind < 8) {
		memcpy(buf + len, "\"}", 2);
		len += 2;
	}
	return len;
}

static redisContext *
producer_connect(const char *path)
{
	redisContext *c = redisConnectUnix(path);
	redisReply *r;

	if (c != NULL && c->err == 0) {
		r = redisCommand(c, "AUTH admin x");
		if (r != NULL) {
			freeReplyObject(r);
			return c;
		}
	}
	redisFree(c);
	return NULL;
}

int
work_produce(long messages, double seconds)
{
	static char payload[200000];
	char path[256];
	double start = now(), at;
	redisContext *c = NULL;
	redisReply *r;
	size_t len;
	bool done;

	snprintf(path, sizeof(path), "%s/redis.sock", soak_dir);
	for (long n = 1; n <= messages; n++) {
		len = make_payload(n, payload, sizeof(payload));
		at = start + seconds * (double)n / (double)messages;
		if (at > now())
			pause_for(at - now());
		for (done = false; !done;) {
			r = c == NULL ? NULL : redisCommand(c, "EVAL %s 2 q pushed %ld %b %d %d",
			    push_once, n, payload, len, WAITING_MAX, soak_stream);
			done = r != NULL && r->type == REDIS_REPLY_INTEGER && r->integer >= 0;
			if (r != NULL)
				freeReplyObject(r);
			else {
				redisFree(c);
				c = producer_connect(path);
			}
			if (!done)
				pause_for(0.03);
		}
		*soak_pushed = n;
	}
	redisFree(c);
	return 0;
}
