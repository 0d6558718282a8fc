/*
 * Persistent handlers: rqd against the bare loop of cycle.c with the same scripts, and
 * for the shell against a pipe that writes to the same loop.
 *
 * Then a python3 script that imports modules, in a new process for each message:
 * forked by the example forking.py, against started by rqd in mode "exec".
 */
#include "bench.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH	64
#define DEPTH	4
#define FED	20000		/* messages through the pipe */

struct kind {
	const char	*name, *file, *options;
	long		 count;
	struct drained	 cost;
};

static struct kind kinds[] = {
	{ .name = "C", .file = "answer", .options = "pipeline = 64", .count = 60000 },
	{ .name = "python3", .file = "answer.py", .options = "pipeline = 64", .count = 40000 },
	{ .name = "sh", .file = "answer.sh", .options = "framing = \"line\" pipeline = 4",
	    .count = 20000 },
};
#define KINDS	(sizeof(kinds) / sizeof(kinds[0]))

static struct kind exec_python = { .name = "python3, exec", .count = 100 };
static struct kind forking_python = { .name = "python3, forking.py", .count = 3000 };

static struct series limit_rate, limit_redis, pipe_rate;

static void
measure_limit(void)
{
	double wall;

	flush();
	fill("q", 60000);
	wall = cycle("q", 60000, BATCH, DEPTH);
	series_add(&limit_rate, 60000 / wall);
	series_add(&limit_redis, script_usec() / 60000);
}

static void
measure_rqd(struct kind *k)
{
	configure("queue \"q\" { command = {\"%s\"} mode = \"persistent\" concurrency = 8 %s }\n",
	    helper(k->file), k->options);
	rqd_measure(&k->cost, k->count);
}

static void
measure_imports(void)
{
	char script[512];

	(void)snprintf(script, sizeof(script), "%s", helper("imports.py"));
	configure("queue \"q\" { command = {\"%s\"} concurrency = 8 }\n", script);
	rqd_measure(&exec_python.cost, exec_python.count);
	configure("queue \"q\" { command = {\"%s\", \"%s\", \"json\", \"re\", \"sqlite3\"} "
	    "mode = \"persistent\" concurrency = 8 }\n", helper("forking.py"), script);
	rqd_measure(&forking_python.cost, forking_python.count);
}

/* -- a pipe with the shell's loop at its end ---------------------------------------- */

static pid_t
start_shell(int to[2], int from[2])
{
	pid_t pid;

	if (pipe2(to, O_CLOEXEC) == -1 || pipe2(from, O_CLOEXEC) == -1)
		die("cannot make a pipe");
	pid = fork();
	if (pid != 0)
		return pid;
	(void)dup2(to[0], 0);
	(void)dup2(from[1], 1);
	(void)execl(helper("answer.sh"), "answer.sh", NULL);
	_exit(127);
}

/* Writes one message, reads one line, and so on, in two loops for two processors. */
static void
measure_pipe(void)
{
	char message[MESSAGE_SIZE + 32], line[64];
	int to[2][2], from[2][2], i, which;
	pid_t pid[2];
	double started;

	memset(message, 'x', sizeof(message));
	memcpy(message, "1 1 200 id\n", 11);
	message[MESSAGE_SIZE + 11] = '\n';
	for (which = 0; which < 2; which++)
		pid[which] = start_shell(to[which], from[which]);
	started = now();
	for (i = -2; i < FED; i++) {
		which = i & 1;
		if (i >= 0 && read(from[which][0], line, sizeof(line)) <= 0)
			die("the shell's loop ended");
		if (write(to[which][1], message, MESSAGE_SIZE + 12) == -1)
			die("the shell's loop ended");
	}
	series_add(&pipe_rate, FED / (now() - started));
	for (which = 0; which < 2; which++) {
		(void)close(to[which][0]);
		(void)close(to[which][1]);
		(void)close(from[which][0]);
		(void)close(from[which][1]);
		(void)kill(pid[which], SIGKILL);
		(void)waitpid(pid[which], NULL, 0);
	}
}

static const struct series *
limit_of(const struct kind *k)
{
	if (k == &exec_python || k == &forking_python)
		return &exec_python.cost.rate;
	return strcmp(k->name, "sh") == 0 ? &pipe_rate : &limit_rate;
}

static void
print(const struct kind *k)
{
	say("| rqd, %-24s | %10.0f | %5.2f | %7.1f | %5.1f |\n", k->name,
	    series_median(&k->cost.rate), series_ratio(&k->cost.rate, limit_of(k)),
	    series_median(&k->cost.cpu), series_median(&k->cost.redis));
}

static void
run(void)
{
	size_t i;
	int r;

	for (r = 0; r < rounds; r++) {
		measure_limit();
		measure_pipe();
		for (i = 0; i < KINDS; i++)
			measure_rqd(&kinds[i]);
		measure_imports();
	}
	say("CPU (of rqd and its handlers) and Redis are in µs a message. The ratio is to the\n"
	    "bare loop, that of sh to the pipe.  The last two rows import json, re and sqlite3 "
	    "in a\n"
	    "process of its own for each message; their ratio is to mode \"exec\".\n\n");
	say("|                               | messages/s | ratio |     CPU | Redis |\n");
	say("| ----------------------------- | ---------: | ----: | ------: | ----: |\n");
	say("| bare loop, batches of %-3d     | %10.0f |       |         | %5.1f |\n", BATCH,
	    series_median(&limit_rate), series_median(&limit_redis));
	say("| a pipe to a loop of sh        | %10.0f |       |         |       |\n",
	    series_median(&pipe_rate));
	for (i = 0; i < KINDS; i++)
		print(&kinds[i]);
	print(&exec_python);
	print(&forking_python);
}

const struct section section_persistent = { "persistent", "persistent handlers, 8 of them",
    run };
