/*
 * An idle daemon with twenty queues: processor time, wake-ups, commands, memory.  And
 * one with a thousand queues: the time of its start, and the memory of a queue.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS	20
#define WAITING	20000

static const char *
queues(int n)
{
	static char text[200 * 1000];
	size_t len = 0;
	int i;

	for (i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "queue \"q%d\" { command = {\"/bin/true\"} }\n", i);
	return text;
}

static void
measure_idle(void)
{
	double cpu, redis_cpu;
	long switches;
	pid_t pid;

	flush();
	configure("%s", queues(20));
	pid = rqd_start();
	nap(2);
	cpu = cpu_of(pid);
	redis_cpu = cpu_of(world_redis_pid());
	switches = switches_of(pid);
	nap(SECONDS);
	say("Idle with 20 queues, over %d s: %.3f ms of processor time a second, "
	    "%.2f wake-ups a second;\n"
	    "Redis uses %.2f ms a second meanwhile. Resident: %ld kB, of which %ld kB are not of "
	    "files.\n", SECONDS, (cpu_of(pid) - cpu) * 1e3 / SECONDS,
	    (double)(switches_of(pid) - switches) / SECONDS,
	    (cpu_of(world_redis_pid()) - redis_cpu) * 1e3 / SECONDS,
	    memory_of(pid, "VmRSS"), memory_of(pid, "RssAnon"));
	rqd_stop(pid);
}

/* Measures the kind whose messages wait in the daemon, the only one. */
static void
measure_waiting(void)
{
	long before, kb;
	pid_t pid;
	int i;

	flush();
	configure("queue \"c\" { kind = \"channel\" key = {\"news\"} backlog = 50000 "
	    "command = {\"/bin/sleep\", \"60\"} concurrency = 1 }\n"
	    "drain_timeout = 0s\n");
	pid = rqd_start();
	nap(0.5);
	before = memory_of(pid, "RssAnon");
	for (i = 0; i < WAITING; i++)
		freeReplyObject(redis("PUBLISH news message-%d", i));
	nap(0.5);
	kb = memory_of(pid, "RssAnon") - before;
	say("A published message that waits for its handler: %.0f bytes, with its own 13.\n",
	    (double)kb * 1024 / WAITING);
	rqd_stop(pid);
}

static void
measure_start(int n)
{
	struct series wall = { .n = 0 }, cpu = { .n = 0 };
	double from;
	long kb = 0;
	pid_t pid;
	int r;

	for (r = 0; r < rounds; r++) {
		flush();
		configure("%s", queues(n));
		from = now();
		pid = rqd_start();
		series_add(&wall, now() - from);
		series_add(&cpu, cpu_of(pid));
		kb = memory_of(pid, "RssAnon");
		rqd_stop(pid);
	}
	say("| %6d | %6.0f | %6.0f | %8ld |\n", n, series_median(&wall) * 1e3,
	    series_median(&cpu) * 1e3, kb);
}

static void
run(void)
{
	measure_idle();
	measure_waiting();
	say("\nFrom the start to the first heartbeat, in ms, and memory that is not of files:\n\n");
	say("| queues |   wall |    CPU |       kB |\n");
	say("| -----: | -----: | -----: | -------: |\n");
	measure_start(1);
	measure_start(100);
	measure_start(1000);
}

const struct section section_idle = { "idle", "a daemon with nothing to do, and its start", run };
