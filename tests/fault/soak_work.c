/*
 * The producers of messages, and their handlers.
 *
 * Both are this program in another process.  The handler writes a line to
 * DIR/runs when it begins and one when it is done, each by a single write() at
 * the end of the file, so that no kill and no crash takes them back:
 *
 *	B message attempt pid daemon time
 *	E message attempt pid status time
 *
 *	X message attempt pid daemon time	the payload is not what was pushed
 *	S message attempt pid saved time	the text that it got: see struct run
 *
 * A run saves a text when it begins, and another one when it is done.
 *
 * The result of a run depends on seed, message, attempt and daemon only.  Two daemons
 * get different results for a message, so that the test sees whether one undoes what
 * the other has finished.  Now and then, depending on its pid, the handler defers a
 * message instead of succeeding.
 *
 * Faults push messages of their own, with numbers above the producer's, and a member
 * "do" that tells the handler what to do:
 *
 *	fail N		fails N times
 *	succeed		does
 *	large N		is N bytes long, and succeeds
 *	late MS E	its first run ends after MS with status E; others succeed at once.
 *			DIR/late.N holds the process of the daemon that has the first.
 *
 * With PIPE each run of a message hands messages over, whatever its result is: it
 * writes children to standard output, and a number to descriptor 3.  A run of a batch
 * gives some messages their own verdicts; its exit status decides for the others.
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

#define PAYLOAD_MAX	(9 << 20)
#define SPECIAL_HEAD	120	/* bytes in which a special message says all */
#define SPECIALS_MAX	2000
#define BURST		60	/* messages that fail, before one that does not */

static struct special specials[SPECIALS_MAX];
static size_t nspecials;

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

/* -- payloads --------------------------------------------------------------- */

/* Makes a payload with an id of its own, with a common id, or without one; a few are large. */
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
		buf[len++] = (char)(kind < 8 ? 'a' +
		    (int)draw(&state, 26) : (int)draw(&state, 256));
	if (kind < 8) {
		memcpy(buf + len, "\"}", 2);
		len += 2;
	}
	return len;
}

/* Makes a special message; a large one has exactly its length. */
static size_t
make_special(long n, const char *what, char *buf, size_t size)
{
	uint64_t state = mix(soak_seed ^ (uint64_t)n);
	size_t len, want = 0;

	sscanf(what, "large %zu", &want);
	len = (size_t)snprintf(buf, size, "{\"n\":%ld,\"id\":%ld,\"do\":\"%s\",\"pad\":\"", n, n,
	    what);
	while (len + 2 < want)
		buf[len++] = (char)('a' + (int)draw(&state, 26));
	memcpy(buf + len, "\"}", 2);
	return len + 2;
}

static bool
is_whole(long n, const char *payload, size_t len, bool special)
{
	static char wanted[PAYLOAD_MAX];
	char head[SPECIAL_HEAD + 1] = "", what[64] = "";
	size_t want;

	if (special) {
		memcpy(head, payload, SPECIAL_HEAD);
		if (sscanf(head, "{\"n\":%*d,\"id\":%*d,\"do\":\"%63[^\"]", what) != 1)
			return false;
		want = make_special(n, what, wanted, sizeof(wanted));
	} else {
		want = make_payload(n, wanted, sizeof(wanted));
	}
	return len == want && memcmp(payload, wanted, len) == 0;
}

/* -- what is handed over ---------------------------------------------------- */

long
work_child(long n, int i)
{
	return CHILDREN + CHILDREN_EACH * n + i;
}

bool
work_hands_number(long n)
{
	return n > CHILDREN || n % 4 == 0;
}

bool
work_hands_child(long n, int i)
{
	return n < CHILDREN && i <= (int)(n % (CHILDREN_MOST + 1));
}

static void
hand_over(long n)
{
	for (int i = 1; i <= CHILDREN_MOST; i++) {
		if (work_hands_child(n, i))
			dprintf(1, "{\"n\":%ld,\"id\":%ld}\n", work_child(n, i), work_child(n, i));
	}
	if (work_hands_number(n) && getenv("RQD_VERDICT_FD") != NULL)
		dprintf(3, "push end %ld\n", n);
}

/* -- the handler ------------------------------------------------------------ */

/* The daemon of this handler: the parent of the spawner, which is the handler's parent. */
static int
daemon_pid(void)
{
	char path[64], line[256];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)getppid());
	if ((f = fopen(path, "r")) == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL && sscanf(line, "PPid: %d", &pid) != 1)
		continue;
	fclose(f);
	return pid;
}

static void
record(const char *dir, char what, long n, int attempt, int value)
{
	char path[256], line[128];
	int fd, len;

	snprintf(path, sizeof(path), "%s/out/runs", dir);
	len = snprintf(line, sizeof(line), "%c %ld %d %d %d %.6f\n", what, n, attempt,
	    (int)getpid(), value, now());
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd == -1 || write(fd, line, (size_t)len) != len)
		_exit(70);
	close(fd);
}

static bool
can_save(void)
{
	return getenv("RQD_VERDICT_FD") != NULL;
}

static void
save(long n, int step)
{
	if (can_save())
		dprintf(3, "save %ld %d %d\n", n, (int)getpid(), step);
}

/* A text of another message counts as one that nobody has saved. */
static void
record_saved(const char *dir, long n, int attempt)
{
	const char *text = getenv("RQD_SAVED");
	int pid = 0, step = 0;
	long of = n;

	if (text != NULL && (sscanf(text, "%ld %d %d", &of, &pid, &step) != 3 || of != n))
		step = 3;
	if (can_save())
		record(dir, 'S', n, attempt, 10 * pid + step);
}

/* The number of the daemon that runs this handler. */
static unsigned
handler_slot(void)
{
	const char *conf = getenv("RQD_CONFIG");

	conf = conf != NULL ? strrchr(conf, '/') : NULL;
	return conf != NULL ? (unsigned)work_number(conf, strlen(conf)) : 0;
}

static double
work_time(uint64_t *state)
{
	uint32_t kind = draw(state, 100);

	if (kind < 70)
		return draw(state, 5000) / 1e6;
	if (kind < 95)
		return 0.005 + draw(state, 60000) / 1e6;
	if (kind < 98)
		return 0.2 + draw(state, 600000) / 1e6;
	return LEASE + draw(state, 1500000) / 1e6;
}

/* The exit status; 128 and more: a signal. */
static int
work_ordinary(long n, int attempt, unsigned slot)
{
	uint64_t state = mix(soak_seed ^
	    mix((uint64_t)n * 1000 + (uint64_t)attempt * 10 + (uint64_t)slot));
	double time = work_time(&state);
	uint32_t kind = draw(&state, 100);

	pause_for(time);
	if (time >= LEASE)
		kind /= 7;	/* most of them fail */
	return kind < 5 ? 1 : kind < 7 ? 65 : kind < 9 ? 128 + SIGSEGV : 0;
}

/* Defers, before the end is recorded: a statement before the exit counts. */
static int
work_defer(void)
{
	if (getenv("RQD_VERDICT_FD") == NULL)
		return 0;
	return dprintf(3, "defer 1 not now\n") > 0 ? SOAK_DEFERRED : 0;
}

static int
work_or_defer(long n, int attempt, unsigned slot)
{
	int status = work_ordinary(n, attempt, slot);

	return status == 0 && mix((uint64_t)getpid()) % 100 < 4 ? work_defer() : status;
}

static void
late_path(const char *dir, long n, char *buf, size_t size)
{
	snprintf(buf, size, "%s/out/late.%ld", dir, n);
}

static bool
is_first_run(const char *dir, long n)
{
	char path[256];
	int fd;

	late_path(dir, n, path, sizeof(path));
	if ((fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) == -1)
		return false;
	dprintf(fd, "%d\n", daemon_pid());
	close(fd);
	return true;
}

pid_t
work_late_daemon(long n)
{
	char path[256];
	int pid = 0;
	FILE *f;

	late_path(soak_dir, n, path, sizeof(path));
	if ((f = fopen(path, "r")) == NULL)
		return 0;
	if (fscanf(f, "%d", &pid) != 1)
		pid = 0;
	fclose(f);
	return pid;
}

/* The exit status of a special message; -1: it has no orders. */
static int
work_special_one(const char *dir, long n, const char *payload, int attempt)
{
	static const char mark[] = "\"do\":\"";
	char head[SPECIAL_HEAD + 1] = "";
	const char *what;
	unsigned ms;
	int status;

	memcpy(head, payload, SPECIAL_HEAD);
	if (head[0] != '{' || (what = strstr(head, mark)) == NULL)
		return -1;
	what += sizeof(mark) - 1;
	if (sscanf(what, "fail %d", &status) == 1)
		return attempt <= status;
	if (sscanf(what, "late %u %d", &ms, &status) != 2 || !is_first_run(dir, n))
		return 0;
	pause_for(ms / 1e3);
	return status;
}

int
work_handle(const char *dir, uint64_t seed, bool hands_over)
{
	static const struct rlimit no_core = { 0, 0 };
	static char payload[PAYLOAD_MAX];
	const char *text = getenv("RQD_ATTEMPT");
	int attempt = text != NULL ? atoi(text) : 0, status;
	unsigned slot = handler_slot();
	size_t len = 0;
	ssize_t got;
	long n;

	soak_seed = seed;
	signal(SIGPIPE, SIG_IGN);
	while ((got = read(0, payload + len, sizeof(payload) - len)) > 0)
		len += (size_t)got;
	n = work_number(payload, len);
	record(dir, 'B', n, attempt, daemon_pid());
	record_saved(dir, n, attempt);
	save(n, 1);
	status = work_special_one(dir, n, payload, attempt);
	if (!is_whole(n, payload, len, status != -1))
		record(dir, 'X', n, attempt, daemon_pid());
	if (status == -1 && hands_over)
		hand_over(n);
	if (status == -1)
		status = work_or_defer(n, attempt, slot);
	save(n, 2);
	record(dir, 'E', n, attempt, status);
	if (status > 128) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	return status;
}

/* Writes the verdict of a message in a batch, or none if the run's exit status decides. */
static void
say_in_batch(unsigned number, long n, int status)
{
	dprintf(3, "%u push end %ld\n", number, n);
	if (status == 1)
		dprintf(3, "%u retry\n", number);
	else if (status == 65)
		dprintf(3, "%u dead\n", number);
	else if (status == SOAK_DEFERRED)
		dprintf(3, "%u defer 1 not now\n", number);
	else if (number % 2 == 1)
		dprintf(3, "%u ok\n", number);
}

static void
work_in_batch(const char *dir, unsigned number, long n, int attempt, bool fails)
{
	uint64_t state = mix(soak_seed ^ mix((uint64_t)n * 10 + (uint64_t)attempt) ^
	    (uint64_t)getpid());
	uint32_t kind = draw(&state, 100);
	int status = kind < 5 ? 1 : kind < 7 ? 65 : kind < 12 ? SOAK_DEFERRED : 0;

	pause_for(draw(&state, 30000) / 1e6);
	if (status == 0 && number % 2 == 0)
		status = fails ? 2 : 0;		/* the run's */
	record(dir, 'E', n, attempt, status);
	say_in_batch(number, n, status);
}

/*
 * Reads frames of the default: "N ATTEMPT LENGTH ID", the message, and a newline.
 * Records the beginning of all at once, because they were delivered together.
 */
int
work_handle_batch(const char *dir, uint64_t seed)
{
	struct { unsigned number; int attempt; long n; } batch[BATCH_MOST], *m = batch, *end;
	bool fails = mix((uint64_t)getpid()) % 100 < 5;
	char line[512], message[64];
	size_t len;

	soak_seed = seed;
	signal(SIGPIPE, SIG_IGN);
	for (; m < batch + BATCH_MOST && fgets(line, sizeof(line), stdin) != NULL; m++) {
		if (sscanf(line, "%u %d %zu", &m->number, &m->attempt, &len) != 3 ||
		    len >= sizeof(message) || fread(message, 1, len + 1, stdin) != len + 1)
			return 70;
		m->n = work_number(message, len);
		record(dir, 'B', m->n, m->attempt, daemon_pid());
	}
	for (end = m, m = batch; m < end; m++)
		work_in_batch(dir, m->number, m->n, m->attempt, fails);
	return fails;
}

/* -- the producer ----------------------------------------------------------- */

#define WAITING_MAX	200	/* more are not pushed: the queue keeps up */

/*
 * Lua: pushes the message once, however often it is called: numbers rise, so it
 * compares with the last one.  Returns how many wait; -1: too many.
 */
static const char push_once[] =
    UNREAD
    "local stream = ARGV[4] == '1' "
    "local waiting = stream and #unread(ARGV[3]) or redis.call('LLEN', KEYS[1]) "
    "if tonumber(redis.call('GET', KEYS[2]) or 0) >= tonumber(ARGV[1]) then return 0 end "
    "if waiting >= tonumber(ARGV[3]) then return -1 end "
    "if stream then redis.call('XADD', KEYS[1], '*', 'message', ARGV[2]) "
    "else redis.call('LPUSH', KEYS[1], ARGV[2]) end redis.call('SET', KEYS[2], ARGV[1]) return "
    "waiting";

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

/* -- what faults push ------------------------------------------------------- */

/*
 * Lua: pushes all of ARGV from the fifth on, once: the numbers rise, and the key has
 * the last one.  So a call that is sent again after a lost reply pushes nothing.
 */
static const char push_special[] =
    "if tonumber(redis.call('GET', KEYS[2]) or 0) >= tonumber(ARGV[1]) then return 1 end "
    "for i = 3, #ARGV do "
    "if ARGV[2] == '1' then redis.call('XADD', KEYS[1], '*', 'message', ARGV[i]) "
    "else redis.call('LPUSH', KEYS[1], ARGV[i]) end end "
    "redis.call('SET', KEYS[2], ARGV[1]) return 1";

long
work_last(void)
{
	return nspecials > 0 ? specials[nspecials - 1].last : soak_messages;
}

const struct special *
work_special(size_t *n)
{
	*n = nspecials;
	return specials;
}

/* The messages begin with number work_last() + 1. */
static bool
push(size_t n, char *const payloads[], const size_t lengths[], bool burst)
{
	const char *argv[BURST + 10];
	size_t len[BURST + 10], argc = 0;
	char last[24];
	struct special *s = &specials[nspecials];
	redisReply *r;

	snprintf(last, sizeof(last), "%ld", work_last() + (long)n);
	for (const char *const *p = (const char *const[]){ "EVAL", push_special, "2", "q",
	    "specials", last, soak_stream ? "1" : "0", NULL }; *p != NULL; p++) {
		argv[argc] = *p;
		len[argc++] = strlen(*p);
	}
	for (size_t i = 0; i < n; i++) {
		argv[argc] = payloads[i];
		len[argc++] = lengths[i];
	}
	r = ask_argv((int)argc, argv, len);
	if (r != NULL && r->type == REDIS_REPLY_ERROR)
		return false;
	*s = (struct special){ .first = work_last() + 1, .last = work_last() + (long)n,
	    .at = now(), .certain = r != NULL, .burst = burst };
	nspecials++;
	return true;
}

bool
work_push_burst(void)
{
	static char buf[BURST + 1][200];
	char *payloads[BURST + 1];
	size_t lengths[BURST + 1];

	if (nspecials == SPECIALS_MAX)
		return false;
	for (long i = 0; i <= BURST; i++) {
		payloads[i] = buf[i];
		lengths[i] = make_special(work_last() + 1 + i, i == BURST ? "succeed" :
		    i % 2 == 0 ? "fail 1" : "fail 2", buf[i], sizeof(buf[i]));
	}
	return push(BURST + 1, payloads, lengths, true);
}

bool
work_push_large(size_t len)
{
	static char buf[PAYLOAD_MAX];
	char what[64], *payload = buf;
	size_t length;

	if (nspecials == SPECIALS_MAX)
		return false;
	snprintf(what, sizeof(what), "large %zu", len);
	length = make_special(work_last() + 1, what, buf, sizeof(buf));
	if (!push(1, &payload, &length, false))
		return false;
	specials[nspecials - 1].bytes = length;
	return true;
}

/*
 * Pushes late messages: some end before SECONDS are over, some after; some fail, and
 * some become dead letters.
 */
bool
work_push_late(double seconds)
{
	static char buf[4][200];
	char *payloads[4], what[64];
	size_t lengths[4];

	if (nspecials == SPECIALS_MAX)
		return false;
	for (unsigned i = 0; i < 4; i++) {
		snprintf(what, sizeof(what), "late %d %d",
		    (int)((i < 2 ? 0.5 * seconds : seconds + 1) * 1e3), i % 2 == 0 ? 1 : 65);
		payloads[i] = buf[i];
		lengths[i] = make_special(work_last() + 1 + i, what, buf[i], sizeof(buf[i]));
	}
	return push(4, payloads, lengths, false);
}

/* -- cancelled messages ------------------------------------------------------------------ */

/* Lua: returns a tag in flight, and the beginning of its message. */
static const char choose_one[] =
    "local q = ARGV[2] local n = redis.call('ZCARD', q .. 'BACKUP') "
    "if n == 0 then return {} end "
    "local at = ARGV[1] % n local tag = redis.call('ZRANGE', q .. 'BACKUP', at, at)[1] "
    "return {tag, string.sub(redis.call('HGET', q .. 'CONTEXT', tag) or '', 1, 120)}";

/* Lua: marks like cancel.lua with "dead", and sends the hint of rqctl. */
static const char mark_one[] =
    "local q = ARGV[3] "
    "if string.sub(redis.call('HGET', q .. 'CONTEXT', ARGV[1]) or '', 1, 120) ~= ARGV[2] then "
    "return 0 end "
    "local counts, token, rest = string.match(redis.call('HGET', q .. 'DELIVERY', ARGV[1]) or '', "
    "'^(%d+ %d+ )(%S+)( %S+ %d+)$') "
    "if not token or string.find(token, '^[-!]') then return 0 end "
    "redis.call('HSET', q .. 'DELIVERY', ARGV[1], counts .. '!dead:' .. token .. rest) "
    "local instance = string.match(token, '^(.*)%-%d+%.%d+%.%d+$') "
    "if instance then redis.call('PUBLISH', 'rqd:control:' .. instance, 'renew ' .. q) end "
    "return 1";

#define CANCELLED_MAX	2000

static struct cancelled cancelled[CANCELLED_MAX];
static size_t ncancelled;

bool
work_cancel(uint32_t any)
{
	const char *queue = soak_pipe && any % 2 == 1 ? "b" : "q";
	redisReply *r = ask("EVAL %s 0 %u %s", choose_one, any / 2, queue);
	char tag[600], head[121];
	size_t taglen, len;

	if (r == NULL || r->type != REDIS_REPLY_ARRAY || r->elements != 2 ||
	    r->element[0]->len > sizeof(tag) || ncancelled == CANCELLED_MAX)
		return false;
	taglen = r->element[0]->len;
	memcpy(tag, r->element[0]->str, taglen);
	len = r->element[1]->len;
	memcpy(head, r->element[1]->str, len);
	/* Record it before: the mark may be set although its reply is lost. */
	cancelled[ncancelled++] = (struct cancelled){
		.n = work_number(head, len), .at = now()
	};
	r = ask("EVAL %s 0 %b %b %s", mark_one, tag, taglen, head, len, queue);
	cancelled[ncancelled - 1].certain = r != NULL && r->type == REDIS_REPLY_INTEGER &&
	    r->integer == 1;
	return true;
}

const struct cancelled *
work_cancelled(long n)
{
	const struct cancelled *found = NULL;

	for (size_t i = 0; i < ncancelled; i++) {
		if (cancelled[i].n == n && (found == NULL || !found->certain))
			found = &cancelled[i];
	}
	return found;
}
