/*
 * A hundred daemons that serve the same five queues, by TCP: their cost in Redis when
 * idle, for each push, and for each delayed message; and their return after Redis died.
 *
 * All run on this machine, so waking them is a part of Redis' time: the kernel gives
 * each packet to the receiver within Redis' call.  With a network that would not count.
 */
#include "bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define DAEMONS		100
#define QUEUES		5
#define LEARN		22		/* seconds: two heartbeats, then each knows the fleet */
#define ALONE		5		/* seconds */
#define IDLE		20
#define WARM		40		/* pushes to each queue, in which they learn to back off */
#define REST		2		/* seconds, after all pushes: backoffs end */
#define BUCKET		0.1		/* seconds, of the histogram */
#define BUCKETS		120
#define ALL_BACK	30		/* seconds, at most */

/* Totals of Redis and of all daemons, at one time. */
struct seen {
	double	at, scripts, commands;
	double	script, redis, daemons;	/* seconds of a processor; script: a part of redis */
	double	switches;
};

static pid_t	daemons[DAEMONS];
static struct seen idle;		/* a second of it */

static struct seen
look(void)
{
	struct seen s = { 0 };
	int i;

	for (i = 0; i < DAEMONS && daemons[i] != 0; i++) {
		s.switches += (double)switches_of(daemons[i]);
		s.daemons += cpu_of(daemons[i]);
	}
	s.scripts = redis_info("commandstats", "cmdstat_evalsha:calls=");
	s.commands = redis_info("stats", "total_commands_processed:");
	s.script = script_usec() / 1e6;
	s.redis = redis_cpu();
	s.at = now();
	return s;
}

/* The difference since then, less the idle cost, divided by n. */
static struct seen
each(const struct seen *since, double n, const struct seen *less)
{
	struct seen b = look(), d;
	double t = b.at - since->at;

	d.at = t / n;
	d.scripts = (b.scripts - since->scripts - t * less->scripts) / n;
	d.commands = (b.commands - since->commands - t * less->commands) / n;
	d.script = (b.script - since->script - t * less->script) / n;
	d.redis = (b.redis - since->redis - t * less->redis) / n;
	d.daemons = (b.daemons - since->daemons - t * less->daemons) / n;
	d.switches = (b.switches - since->switches - t * less->switches) / n;
	return d;
}

static void
print(const char *what, const struct seen *s)
{
	say("| %-29s | %7.1f | %8.1f | %11.0f | %9.0f | %8.1f | %11.0f |\n", what, s->scripts,
	    s->commands, s->script * 1e6, s->redis * 1e6, s->switches, s->daemons * 1e6);
}

/* -- idle, pushes, messages for later ------------------------------------------------- */

static void
push(long i)
{
	freeReplyObject(redis("LPUSH q%ld %ld", i % QUEUES, i));
}

static void
push_later(long i)
{
	freeReplyObject(redis("ZADD q%ldDELAYED %ld later-%ld", i % QUEUES,
	    (long)time(NULL) + 3600, i));
}

static void
measure(const char *what, void (*act)(long), long n, double pause)
{
	struct seen before = look(), s;
	long i;

	for (i = 0; i < n; i++) {
		act(i);
		nap(pause);
	}
	nap(REST);
	s = each(&before, (double)n, &idle);
	print(what, &s);
}

static void
measure_idle(const char *what, int seconds)
{
	static const struct seen nothing;
	struct seen before = look();

	nap(seconds);
	idle = each(&before, seconds, &nothing);
	print(what, &idle);
}

static void
warm_up(void)
{
	long i;

	for (i = 0; i < WARM * QUEUES; i++) {
		push(i);
		nap(0.02);
	}
	nap(2 * REST);
}

static void
measure_all(void)
{
	measure_idle("idle, a second", IDLE);
	warm_up();
	measure("a push, 1 a second", push, 20, 1);
	measure("a push, 10 a second", push, 60, 0.1);
	measure("a push, 200 a second", push, 1000, 0.005);
	/* For 20 s, because ticks come every 10 s, and few daemons look. */
	measure("a ZADD for later, 20 a second", push_later, 360, 0.05);
}

/* -- a restart of Redis ---------------------------------------------------------------- */

static double
time_of_day(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (double)(ts.tv_sec % 86400) + (double)ts.tv_nsec / 1e9;
}

static long
log_size(void)
{
	struct stat st;

	return stat(world_file("rqd.out"), &st) == 0 ? (long)st.st_size : 0;
}

/*
 * Counts the records redis_up in the logs after `offset`, by their time since `since`;
 * returns their number.
 */
static int
count_ups(long offset, double since, int *bucket, double *last)
{
	FILE *f = fopen(world_file("rqd.out"), "r");
	char line[1024];
	double h, m, s, t;
	int n = 0;

	if (f == NULL || fseek(f, offset, SEEK_SET) != 0)
		die("cannot read %s", world_file("rqd.out"));
	memset(bucket, 0, BUCKETS * sizeof(*bucket));
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strstr(line, "event=redis_up") == NULL ||
		    sscanf(line, "ts=%*10[0-9-]T%lf:%lf:%lf", &h, &m, &s) != 3)
			continue;
		t = h * 3600 + m * 60 + s - since;
		t = t < 0 ? 0 : t;
		bucket[t / BUCKET < BUCKETS ? (int)(t / BUCKET) : BUCKETS - 1]++;
		*last = n == 0 || t > *last ? t : *last;
		n++;
	}
	(void)fclose(f);
	return n;
}

/* Redis is down for this long.  Prints when the daemons came back, in tenths of a second. */
static void
measure_restart(double down)
{
	long offset = log_size();
	double since, asked, slowest = 0, last = 0, cpu;
	int bucket[BUCKETS], n, i;

	world_redis_kill();
	nap(down);
	since = time_of_day();
	world_redis_again(wire_port());
	do {
		for (i = 0; i < 20; i++) {
			asked = now();
			freeReplyObject(redis("PING"));
			slowest = now() - asked > slowest ? now() - asked : slowest;
			nap(0.005);
		}
		n = count_ups(offset, since, bucket, &last);
	} while (n < DAEMONS && time_of_day() < since + ALL_BACK);
	cpu = redis_cpu();
	say("\nRedis down for %.1f s: %d of %d daemons are back, the last one %.1f s after its "
	    "start. Redis used\n%.0f ms of processor time, for %.0f connections; the slowest "
	    "PING took %.0f ms.\n\n", down, n, DAEMONS, last, cpu * 1e3,
	    redis_info("stats", "total_connections_received:"), slowest * 1e3);
	say("| after, s | daemons |\n| -------: | ------: |\n");
	for (i = 0; i < BUCKETS; i++) {
		if (bucket[i] > 0)
			say("| %8.1f | %7d |\n", i * BUCKET, bucket[i]);
	}
	nap(LEARN);
}

/* -- all ----------------------------------------------------------------------------------- */

static void
start_all(void)
{
	char text[1024] = "";
	size_t len = 0;
	int i;

	for (i = 0; i < QUEUES; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "queue \"q%d\" { command = {\"/bin/true\"} }\n", i);
	configure("%s", text);
	for (i = 0; i < DAEMONS; i++)
		daemons[i] = rqd_start();
}

static void
stop_all(void)
{
	int i;

	for (i = 0; i < DAEMONS; i++)
		(void)kill(daemons[i], SIGTERM);
	for (i = 0; i < DAEMONS; i++)
		(void)wait_command(daemons[i], now());
}

static void
run(void)
{
	static char server[32];

	flush();
	(void)snprintf(server, sizeof(server), "127.0.0.1:%d", wire_port());
	world_server = server;
	world_launches = false;
	say("%d daemons, %d queues, by TCP. Below the second line: for one, less what is idle.\n"
	    "Scripts' µs are a part of Redis' µs.\n\n", DAEMONS, QUEUES);
	say("| what                          | scripts | commands | scripts' µs | Redis' µs | "
	    "wake-ups | daemons' µs |\n");
	say("| ----------------------------- | ------: | -------: | ----------: | --------: | "
	    "-------: | ----------: |\n");
	measure_idle("Redis alone, a second", ALONE);
	start_all();
	nap(LEARN);
	measure_all();
	measure_restart(0);
	measure_restart(5);
	stop_all();
	world_server = NULL;
	world_launches = true;
}

const struct section section_many = { "many", "a hundred daemons on one Redis", run };
