/*
 * The time from LPUSH to the handler's first instruction, one message at a time, about
 * 150 a second.  It compares rqd with a process per message, rqd with persistent
 * handlers, and the minimum: a loop that waits in BRPOP and then calls vfork(2).
 */
#include "bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MESSAGES	150

struct way {
	const char	*name;
	struct series	 p50, p99;
	double		 all[ROUNDS_MAX * MESSAGES];
	size_t		 n;
};

static struct way limit = { .name = "BRPOP and vfork, nothing else" };
static struct way exec = { .name = "rqd, a process per message" };
static struct way launched = { .name = "rqd, the same as root" };
static struct way persistent = { .name = "rqd, a persistent process" };

static void
push(const char *queue)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	freeReplyObject(redis("LPUSH %s %lld", queue,
	    ts.tv_sec * 1000000000LL + ts.tv_nsec));
}

static size_t
read_stamps(double *v, size_t most)
{
	FILE *f = fopen(world_file("stamps"), "r");
	size_t n = 0;

	while (f != NULL && n < most && fscanf(f, "%lf %*d", &v[n]) == 1)
		n++;
	if (f != NULL)
		(void)fclose(f);
	return n;
}

/* Pushes messages one after the other, and waits until all have been handled. */
static void
take_stamps(struct way *w)
{
	double v[MESSAGES], until;
	size_t n, i;

	(void)unlink(world_file("stamps"));
	for (i = 0; i < MESSAGES; i++) {
		push("q");
		nap(0.004 + 0.005 * drand48());
	}
	for (until = now() + 10; (n = read_stamps(v, MESSAGES)) < MESSAGES; nap(0.01)) {
		if (now() > until)
			die("only %zu of %d messages were handled", n, MESSAGES);
	}
	for (i = 0; i < n; i++)
		w->all[w->n++] = v[i];
	series_add(&w->p50, quantile(v, n, 0.5));
	series_add(&w->p99, quantile(v, n, 0.99));
}

/* -- the least that can be --------------------------------------------------------- */

static void
run_handler(const char *stamp, const char *file, const redisReply *r)
{
	char *argv[] = { (char[512]){ 0 }, (char[512]){ 0 }, NULL };
	const char *text = r->element[1]->str;
	int fd[2];
	pid_t pid;

	(void)snprintf(argv[0], 512, "%s", stamp);
	(void)snprintf(argv[1], 512, "%s", file);
	if (pipe(fd) == -1 || write(fd[1], text, r->element[1]->len) == -1)
		_exit(71);
	pid = vfork();
	if (pid == 0) {
		(void)dup2(fd[0], 0);
		(void)execv(argv[0], argv);
		_exit(127);
	}
	(void)close(fd[0]);
	(void)close(fd[1]);
	(void)waitpid(pid, NULL, 0);
}

static pid_t
start_bare(void)
{
	pid_t pid = fork();
	redisContext *ctx;
	redisReply *r;

	if (pid != 0)
		return pid;
	ctx = world_redis();
	while ((r = redisCommand(ctx, "BRPOP q 0")) != NULL) {
		run_handler(helper("stamp"), world_file("stamps"), r);
		freeReplyObject(r);
	}
	_exit(0);
}

static void
measure_limit(void)
{
	pid_t pid;

	flush();
	pid = start_bare();
	nap(0.1);
	take_stamps(&limit);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void
measure_exec(struct way *w, bool launches)
{
	pid_t pid;

	flush();
	world_launches = launches;
	configure("queue \"q\" { command = {\"%s\", \"%s\"} concurrency = 2 }\n",
	    helper("stamp"), world_file("stamps"));
	pid = rqd_start();
	nap(0.1);
	take_stamps(w);
	rqd_stop(pid);
	world_launches = true;
}

static void
measure_persistent(void)
{
	pid_t pid;

	flush();
	configure("queue \"q\" { command = {\"%s\", \"%s\", \"persistent\"} "
	    "mode = \"persistent\" concurrency = 2 }\n", helper("stamp"), world_file("stamps"));
	pid = rqd_start();
	nap(0.1);
	take_stamps(&persistent);
	rqd_stop(pid);
}

static void
print(struct way *w)
{
	say("| %-30s | %6.0f | %6.0f | %5.2f |\n", w->name, series_median(&w->p50),
	    quantile(w->all, w->n, 0.99), series_ratio(&w->p50, &limit.p50));
}

static void
run(void)
{
	int r;

	for (r = 0; r < rounds; r++) {
		measure_limit();
		measure_exec(&exec, false);
		measure_exec(&launched, true);
		measure_persistent();
	}
	say("In µs; p99 is that of all rounds together; the ratio is of p50.\n\n");
	say("| from LPUSH to the handler      |    p50 |    p99 | ratio |\n");
	say("| ------------------------------ | -----: | -----: | ----: |\n");
	print(&limit);
	print(&exec);
	print(&launched);
	print(&persistent);
}

const struct section section_latency = { "latency",
    "from LPUSH to the handler's first instruction", run };
