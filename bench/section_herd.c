/*
 * Twenty idle daemons on one queue: the number of daemons that a push wakes, its
 * commands, and the wait of the message.
 */
#include "bench.h"

#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/wait.h>

#define DAEMONS	20
#define WARM	40		/* pushes before, for the daemons to learn their number */
#define PUSHES	60

struct seen {
	double	scripts, commands;
	long	switches;
};

static struct seen
look(const pid_t *pids)
{
	struct seen s = { redis_info("commandstats", "cmdstat_evalsha:calls="),
	    redis_info("stats", "total_commands_processed:"), 0 };
	int i;

	for (i = 0; i < DAEMONS; i++)
		s.switches += switches_of(pids[i]);
	return s;
}

static void
push(int n, double pause)
{
	int i;

	for (i = 0; i < n; i++) {
		freeReplyObject(redis("LPUSH q %d", i));
		nap(pause);
	}
}

static void
run(void)
{
	pid_t pids[DAEMONS];
	struct seen a, b;
	int i;

	flush();
	configure("queue \"q\" { command = {\"/bin/true\"} concurrency = 2 }\n");
	for (i = 0; i < DAEMONS; i++)
		pids[i] = rqd_start();
	nap(1);
	push(WARM, 0.05);
	nap(1);
	a = look(pids);
	push(PUSHES, 0.1);
	b = look(pids);
	say("%d idle daemons on one queue, %d pushes, ten a second. For each push:\n\n", DAEMONS,
	    PUSHES);
	say("| scripts | commands | switches of context, all daemons |\n");
	say("| ------: | -------: | -------------------------------: |\n");
	/* Without the pushes and the two looks of the benchmark. */
	say("| %7.1f | %8.1f | %32.1f |\n", (b.scripts - a.scripts) / PUSHES,
	    (b.commands - a.commands - 2) / PUSHES - 1,
	    (double)(b.switches - a.switches) / PUSHES);
	for (i = 0; i < DAEMONS; i++)
		rqd_stop(pids[i]);
}

const struct section section_herd = { "herd", "twenty idle daemons on one queue", run };
