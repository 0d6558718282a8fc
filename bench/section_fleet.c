/*
 * The load of a fleet on its Redis, a line for each thing that daemons and producers
 * do.  Sixteen TCP connections call at once, as those of a fleet do, so that Redis does
 * not sleep in between.  Some lines are also measured with one connection, one call at
 * a time; over the unix socket, over TLS, and with the append-only file.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/script.h"

#define IN_HAND		10000
#define RENEW_MAX	250
#define DAEMONS		100
#define LARGE		16384
#define STORED		100000

enum { OVER_TCP, OVER_UNIX, OVER_TLS, OVER_AOF, OVER };

struct row {
	const char	*name;
	const char	*each;		/* the unit of the figures */
	const char	*commands;	/* the commands that count */
	const char	*script;	/* `sha` has its SHA1; or NULL */
	void		(*prepare)(const struct row *);
	/* Does it `count` times, by `from` of these connections. */
	void		(*run)(redisContext *const *, const struct row *);
	/*
	 * For calls(): appends what a connection sends at a time, for `size` of
	 * `count`; returns the number of replies.
	 */
	int		(*append)(redisContext *, const struct row *, long done);
	const char	*op;		/* of cycles */
	int		 from, size;
	long		 bytes;		/* of a message; 0: the common size */
	long		 count;
	bool		 varied;	/* also measured by other wires */
	struct series	 usec, cpu[OVER];
};

static redisContext	*crowd[OVER][CROWD_MAX];
static redisContext	*told[CROWD_MAX];	/* for tracking: they get the changes */
static const char	*sha;
static char		*beat;			/* a heartbeat */
static char		 payload[LARGE + 1];

static long
bytes_of(const struct row *row)
{
	return row->bytes > 0 ? row->bytes : MESSAGE_SIZE;
}

/* Returns any reply but an error. */
static redisReply *
answer(redisContext *c)
{
	void *v;
	redisReply *r;

	if (redisGetReply(c, &v) != REDIS_OK)
		die("Redis: %s", c->errstr);
	r = v;
	if (r->type == REDIS_REPLY_ERROR)
		die("Redis: %s", r->str);
	return r;
}

static void
answers(redisContext *c, int n)
{
	while (n-- > 0)
		freeReplyObject(answer(c));
}

static void
send_now(redisContext *c)
{
	int done = 0;

	while (!done) {
		if (redisBufferWrite(c, &done) != REDIS_OK)
			die("Redis: %s", c->errstr);
	}
}

/* All connections send at once. */
static void
calls(redisContext *const *c, const struct row *row)
{
	int expected[CROWD_MAX], i, n;
	long done = 0;

	while (done < row->count) {
		for (n = 0; n < row->from && done < row->count; n++, done += row->size)
			expected[n] = row->append(c[n], row, done);
		for (i = 0; i < n; i++)
			send_now(c[i]);
		for (i = 0; i < n; i++)
			answers(c[i], expected[i]);
	}
}

/* -- producers ---------------------------------------------------------------- */

static void
prepare_payload(const struct row *row)
{
	memset(payload, 'x', (size_t)bytes_of(row));
	payload[bytes_of(row)] = '\0';
}

static int
push(redisContext *c, const struct row *row, long done)
{
	int i;

	(void)done;
	for (i = 0; i < row->size; i++)
		redisAppendCommand(c, "LPUSH q %s", payload);
	return row->size;
}

static int
push_many(redisContext *c, const struct row *row, long done)
{
	const char *argv[2 + 64] = { "LPUSH", "q" };
	int i;

	(void)done;
	for (i = 0; i < row->size; i++)
		argv[2 + i] = payload;
	redisAppendCommandArgv(c, 2 + row->size, argv, NULL);
	return 1;
}

/* -- messages ----------------------------------------------------------------- */

static void
prepare_messages(const struct row *row)
{
	fill_sized("q", row->count, bytes_of(row));
}

static void
cycles(redisContext *const *c, const struct row *row)
{
	(void)cycle_crowd(c, row->from, row->op, "q", row->count, row->size);
}

/* Makes deliveries of other daemons. */
static void
prepare_in_hand(const struct row *row)
{
	static const char script[] =
	    "local t = redis.call('TIME')[1] "
	    "for i = 1, tonumber(ARGV[1]) do "
	    "  local tag = 'm' .. i "
	    "  redis.call('ZADD', KEYS[1], t, tag) "
	    "  redis.call('HSET', KEYS[2], tag, '{\"id\":\"' .. tag .. '\"}') "
	    "  redis.call('HSET', KEYS[3], tag, '0 0 fleet.' .. i .. ' ' .. t .. ' ' .. #tag) "
	    "end";

	(void)row;
	freeReplyObject(redis("EVAL %s 3 q0BACKUP q0CONTEXT q0DELIVERY %d", script, IN_HAND));
}

static int
renew(redisContext *c, const struct row *row, long done)
{
	const char *argv[8 + 2 * RENEW_MAX] = { "EVALSHA", sha, "3", "q0BACKUP", "q0RETRY",
	    "q0DELIVERY", "0", "0" };
	char words[2 * RENEW_MAX][32];
	int i;

	for (i = 0; i < 2 * row->size; i++) {
		(void)snprintf(words[i], sizeof(words[i]), "%s%ld", i % 2 == 0 ? "m" : "fleet.",
		    (done + i / 2) % IN_HAND + 1);
		argv[8 + i] = words[i];
	}
	redisAppendCommandArgv(c, 8 + 2 * row->size, argv, NULL);
	return 1;
}

/* -- daemons that have nothing to do -------------------------------------------- */

static int
pop_nothing(redisContext *c, const struct row *row, long done)
{
	(void)row;
	redisAppendCommand(c, "EVALSHA %s 8 q qBACKUP qCONTEXT qRETRY qDELIVERY qPAUSED qRATE "
	    "qSTATS 8 1048576 16777216 bench.%ld 0 0 0 0 retry 0", sha, done);
	return 1;
}

/* A daemon sends the calls of one turn of its loop, for all its queues, at once. */
static int
tick(redisContext *c, const struct row *row, long done)
{
	int i;

	(void)done;
	for (i = 0; i < row->size; i++)
		redisAppendCommand(c, "EVALSHA %s 11 q%d q%dBACKUP q%dCONTEXT q%dRETRY "
		    "q%dDELIVERY q%dDELAYED q%dSTATS q%dDEAD q%dHELD q%dGROUP q%dORDER "
		    "60 60 1 9999999999.000000 250 1048576 0 0 0 LPUSH", sha, i, i, i, i, i, i, i,
		    i, i, i, i);
	return row->size;
}

static int
arm(redisContext *c, const struct row *row, long done)
{
	int i;

	(void)done;
	for (i = 0; i < row->size; i++) {
		redisAppendCommand(c, "CLIENT CACHING YES");
		redisAppendCommand(c, "EVALSHA %s 4 q%d q%dRETRY q%dDELAYED q%dPAUSED 0", sha, i,
		    i, i, i);
	}
	return 2 * row->size;
}

/* Connects sixteen daemons, with two connections each. */
static void
prepare_tracking(const struct row *row)
{
	redisReply *r;
	int i;

	prepare_payload(row);
	for (i = 0; i < CROWD_MAX; i++) {
		told[i] = wire_open(WIRE_TCP);
		redisAppendCommand(told[i], "CLIENT ID");
		r = answer(told[i]);
		redisAppendCommand(told[i], "SUBSCRIBE __redis__:invalidate");
		answers(told[i], 1);
		redisAppendCommand(crowd[OVER_TCP][i], "CLIENT TRACKING ON REDIRECT %lld OPTIN",
		    r->integer);
		answers(crowd[OVER_TCP][i], 1);
		freeReplyObject(r);
	}
}

static void
end_tracking(void)
{
	int i;

	for (i = 0; i < CROWD_MAX; i++) {
		redisAppendCommand(crowd[OVER_TCP][i], "CLIENT TRACKING OFF");
		answers(crowd[OVER_TCP][i], 1);
		wire_close(told[i]);
	}
}

static void
arms(redisContext *const *c, const struct row *row)
{
	calls(c, row);
	end_tracking();
}

/* A push wakes all of them up, and they arm again. */
static void
wakes(redisContext *const *c, const struct row *row)
{
	struct row once = *row;
	long done;
	int i;

	once.count = once.from;
	for (done = 0; done < row->count; done += row->from) {
		calls(c, &once);
		freeReplyObject(redis("LPUSH q0 %s", payload));
		for (i = 0; i < row->from; i++)
			answers(told[i], 1);
	}
	end_tracking();
}

/* Reads a heartbeat of a real daemon. */
static void
prepare_heartbeat(const struct row *row)
{
	char *text = calloc((size_t)row->size, 64);
	size_t len = 0;
	redisReply *r, *b;
	pid_t pid;
	int i;

	for (i = 0; text != NULL && i < row->size; i++)
		len += (size_t)snprintf(text + len, 64,
		    "queue \"queue%d\" { command = {\"/bin/true\"} }\n", i);
	configure("%s", text);
	free(text);
	pid = rqd_start();
	r = redis("ZRANGE rqd:daemons 0 0");
	b = redis("GET rqd:daemon:%s", r->elements > 0 ? r->element[0]->str : "");
	free(beat);
	beat = b->str != NULL ? strdup(b->str) : NULL;
	if (beat == NULL)
		die("no heartbeat");
	freeReplyObject(b);
	freeReplyObject(r);
	rqd_stop(pid);
}

static int
heartbeat(redisContext *c, const struct row *row, long done)
{
	long of = done % DAEMONS;

	(void)row;
	redisAppendCommand(c, "PING");
	redisAppendCommand(c, "SET rqd:daemon:host:%ld %s EX 30", of, beat);
	redisAppendCommand(c, "ZADD rqd:daemons 1760000000.%03ld host:%ld", done % 1000, of);
	redisAppendCommand(c, "ZREMRANGEBYSCORE rqd:daemons -inf 1750000000.000");
	redisAppendCommand(c, "ZCARD rqd:daemons");
	return 5;
}

/* Sends one heartbeat at a time; its size depends on the number of queues. */
static void
heartbeats(redisContext *const *c, const struct row *row)
{
	struct row one = *row;

	one.size = 1;
	calls(c, &one);
}

/* -- the tables --------------------------------------------------------------- */

#define PUSH	.each = "message", .commands = "lpush", .prepare = prepare_payload, .run = calls
#define CYCLE	.commands = "evalsha", .prepare = prepare_messages, .run = cycles
#define ACK	.each = "message", CYCLE, .op = "ack"
#define RETRY	.each = "failure", CYCLE, .op = "retry", .from = 16
#define RENEW	.each = "lease", .commands = "evalsha", .script = "renew", \
		.prepare = prepare_in_hand, .run = calls, .append = renew, .from = 16
#define BEAT	.each = "daemon", .commands = "ping set zadd zremrangebyscore zcard", \
		.prepare = prepare_heartbeat, .run = heartbeats, .append = heartbeat, .from = 16

static struct row rows[] = {
	{ "push, one call at a time", PUSH, .append = push, .from = 1, .size = 1,
	    .count = 2000 },
	{ "push", PUSH, .append = push, .from = 16, .size = 1, .count = 8000, .varied = true },
	{ "push, 16 in a pipeline", PUSH, .append = push, .from = 16, .size = 16,
	    .count = 32000 },
	{ "push, 16 in one LPUSH", PUSH, .append = push_many, .from = 16, .size = 16,
	    .count = 32000 },
	{ "push of 16 kB", PUSH, .append = push, .from = 16, .size = 1, .bytes = LARGE,
	    .count = 1500 },
	{ "pop and ack, batch 1, one call at a time", ACK, .from = 1, .size = 1, .count = 2000 },
	{ "pop and ack, batch 3, one call at a time", ACK, .from = 1, .size = 3, .count = 6000 },
	{ "pop and ack, batch 1", ACK, .from = 16, .size = 1, .count = 3000, .varied = true },
	{ "pop and ack, batch 3", ACK, .from = 16, .size = 3, .count = 6000, .varied = true },
	{ "pop and ack, batch 8", ACK, .from = 16, .size = 8, .count = 8000 },
	{ "pop and ack, batch 64", ACK, .from = 16, .size = 64, .count = 20480, .varied = true },
	{ "pop and ack of 16 kB, batch 3", ACK, .from = 16, .size = 3, .bytes = LARGE,
	    .count = 1200 },
	{ "retry and its pop, batch 1", RETRY, .size = 1, .count = 3000 },
	{ "retry and its pop, batch 3", RETRY, .size = 3, .count = 6000 },
	{ "pop that finds nothing", "pop", "evalsha", "pop", .run = calls,
	    .append = pop_nothing, .from = 16, .size = 1, .count = 3200 },
	{ "wake-up by a push, and arm again", "daemon", "evalsha client|caching", "arm",
	    prepare_tracking, wakes, arm, .from = 16, .size = 1, .count = 3200 },
	{ "safety poll, 20 queues at once", "queue", "evalsha client|caching", "arm",
	    prepare_tracking, arms, arm, .from = 16, .size = 20, .count = 6400 },
	{ "tick, 20 queues at once", "queue", "evalsha", "tick", NULL, calls, tick,
	    .from = 16, .size = 20, .count = 6400 },
	{ "tick, 10,000 in flight", "queue", "evalsha", "tick", prepare_in_hand, calls, tick,
	    .from = 16, .size = 1, .count = 480 },
	{ "renewal, calls of 1", RENEW, .size = 1, .count = 3200 },
	{ "renewal, calls of 8", RENEW, .size = 8, .count = IN_HAND },
	{ "renewal, calls of 250", RENEW, .size = 250, .count = 2 * IN_HAND },
	{ "heartbeat, 1 queue", BEAT, .size = 1, .count = 1600 },
	{ "heartbeat, 100 queues", BEAT, .size = 100, .count = 800 },
};
#define ROWS	(sizeof(rows) / sizeof(rows[0]))

static void
measure(struct row *row, int over)
{
	double usec, cpu;

	flush();
	if (row->script != NULL)
		sha = load_script(crowd[over][0], row->script);
	if (row->prepare != NULL)
		row->prepare(row);
	usec = command_usec(row->commands);
	cpu = redis_cpu();
	row->run(crowd[over], row);
	cpu = redis_cpu() - cpu;
	series_add(&row->cpu[over], cpu * 1e6 / (double)row->count);
	if (over == OVER_TCP)
		series_add(&row->usec, (command_usec(row->commands) - usec) / (double)row->count);
}

static bool
persisting(void)
{
	redisReply *r = redis("INFO persistence");
	bool yes = strstr(r->str, "aof_rewrite_in_progress:1") != NULL ||
	    strstr(r->str, "aof_rewrite_scheduled:1") != NULL;

	freeReplyObject(r);
	return yes;
}

/* Waits until Redis has written all its data, which it does first. */
static void
append_only(bool on)
{
	flush();
	freeReplyObject(redis("CONFIG SET appendonly %s", on ? "yes" : "no"));
	while (persisting())
		nap(0.01);
}

static void
measure_varied(int over)
{
	size_t i;

	if (crowd[over][0] == NULL)
		return;
	if (over == OVER_AOF)
		append_only(true);
	for (i = 0; i < ROWS; i++) {
		if (rows[i].varied)
			measure(&rows[i], over);
	}
	if (over == OVER_AOF)
		append_only(false);
}

static void
open_crowds(void)
{
	int i;

	for (i = 0; i < CROWD_MAX; i++) {
		crowd[OVER_TCP][i] = crowd[OVER_AOF][i] = wire_open(WIRE_TCP);
		crowd[OVER_UNIX][i] = wire_open(WIRE_UNIX);
		crowd[OVER_TLS][i] = wire_open(WIRE_TLS);
	}
}

static void
close_crowds(void)
{
	int i, over;

	for (over = OVER_TCP; over < OVER_AOF; over++) {
		for (i = 0; i < CROWD_MAX; i++)
			wire_close(crowd[over][i]);
	}
}

static void
measure_all(void)
{
	size_t i;
	int r, over;

	open_crowds();
	freeReplyObject(redis("CONFIG SET appendfsync everysec"));
	for (r = 0; r < rounds; r++) {
		for (i = 0; i < ROWS; i++)
			measure(&rows[i], OVER_TCP);
		for (over = OVER_UNIX; over < OVER; over++)
			measure_varied(over);
	}
	close_crowds();
	free(beat);
}

static void
print(const struct row *row)
{
	say("| %-40s | %-7s | %7.1f | %9.1f |\n", row->name, row->each,
	    series_median(&row->usec), series_median(&row->cpu[OVER_TCP]));
}

static void
print_varied(const struct row *row)
{
	int over;

	say("| %-40s | %5.1f |", row->name, series_median(&row->cpu[OVER_TCP]));
	for (over = OVER_UNIX; over < OVER; over++) {
		if (row->cpu[over].n > 0)
			say(" %5.2f |", series_ratio(&row->cpu[over], &row->cpu[OVER_TCP]));
		else
			say("     - |");
	}
	say("\n");
}

static double
memory(void)
{
	redisReply *r = redis("INFO memory");
	const char *p = strstr(r->str, "used_memory:");
	double bytes = p != NULL ? atof(p + 12) : 0;

	freeReplyObject(r);
	return bytes;
}

static void
say_memory(void)
{
	redisContext *c = world_redis();
	double before, waiting;

	flush();
	before = memory();
	fill("q", STORED);
	waiting = memory();
	(void)cycle_on(c, "", "q", STORED, 100, 1);
	say("\nMemory of Redis, of %d messages of %d bytes: %.0f bytes for one that waits, "
	    "%.0f for one in flight.\n", STORED, MESSAGE_SIZE, (waiting - before) / STORED,
	    (memory() - before) / STORED);
	redisFree(c);
	flush();
}

static void
run(void)
{
	size_t i;

	measure_all();
	say("In µs for one of each, messages of %d bytes, by TCP on this machine, %d connections "
	    "at once: the\ncommands, of INFO commandstats; and the processor time of Redis' main "
	    "thread, with reading and\nwriting.\n\n", MESSAGE_SIZE, CROWD_MAX);
	say("| what                                     | each    | command | processor |\n");
	say("| ---------------------------------------- | ------- | ------: | --------: |\n");
	for (i = 0; i < ROWS; i++)
		print(&rows[i]);
	say("\nProcessor time by TCP, and as ratios to it: by the unix socket, by TLS, and by TCP "
	    "with\n`appendonly yes`, `appendfsync everysec`:\n\n");
	say("| what                                     |   TCP |  unix |   TLS |   AOF |\n");
	say("| ---------------------------------------- | ----: | ----: | ----: | ----: |\n");
	for (i = 0; i < ROWS; i++) {
		if (rows[i].varied)
			print_varied(&rows[i]);
	}
	say_memory();
}

const struct section section_fleet = { "fleet", "what daemons and producers cost a Redis", run };
