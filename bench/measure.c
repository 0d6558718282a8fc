/*
 * Costs of processes, and medians.
 *
 * Other programs share the machine.  So sides of a comparison are measured in turns,
 * round by round.  Each value is a median over the rounds, and each ratio is the median
 * of the rounds' own ratios.
 */
#include "bench.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double
quantile(double *v, size_t n, double q)
{
	if (n == 0)
		return 0;
	qsort(v, n, sizeof(*v), compare);
	if (n % 2 == 0 && q == 0.5)
		return (v[n / 2 - 1] + v[n / 2]) / 2;
	return v[(size_t)((double)(n - 1) * q + 0.5)];
}

void
series_add(struct series *s, double v)
{
	if (s->n < ROUNDS_MAX)
		s->v[s->n++] = v;
}

double
series_quantile(const struct series *s, double q)
{
	struct series copy = *s;

	return quantile(copy.v, copy.n, q);
}

double
series_median(const struct series *s)
{
	return series_quantile(s, 0.5);
}

double
series_ratio(const struct series *a, const struct series *b)
{
	struct series r = { .n = 0 };
	size_t i;

	for (i = 0; i < a->n && i < b->n; i++)
		series_add(&r, a->v[i] / b->v[i]);
	return series_median(&r);
}

/* -- processes -------------------------------------------------------------------- */

/*
 * Starts a command that ends with the benchmark.  Its output goes to this file; NULL:
 * nowhere.
 */
pid_t
start_command(const char *const *argv, const char *output)
{
	pid_t pid = fork();
	int fd;

	if (pid == -1)
		die("cannot fork");
	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	fd = open(output != NULL ? output : "/dev/null",
	    O_WRONLY | O_CREAT | O_APPEND, 0644);
	(void)dup2(fd, 1);
	(void)dup2(fd, 2);
	(void)execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static double
seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

struct cost
wait_command(pid_t pid, double started)
{
	struct rusage u;
	int status;

	if (wait4(pid, &status, 0, &u) == -1 || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != 0)
		die("a program of the benchmark failed (status %x); see %s", status,
		    world_file(""));
	return (struct cost){ now() - started,
	    seconds(u.ru_utime) + seconds(u.ru_stime) };
}

struct cost
run_command(const char *const *argv)
{
	double started = now();

	return wait_command(start_command(argv, NULL), started);
}

static FILE *
proc(pid_t pid, const char *name)
{
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	f = fopen(path, "r");
	if (f == NULL)
		die("%s: gone", path);
	return f;
}

/* Reads the first number of schedstat: nanoseconds on a processor. */
double
cpu_of(pid_t pid)
{
	FILE *f = proc(pid, "schedstat");
	double ns = 0;

	if (fscanf(f, "%lf", &ns) != 1)
		ns = 0;
	(void)fclose(f);
	return ns / 1e9;
}

/* The sum of all lines of /proc/PID/status whose name contains this. */
static long
status_sum(pid_t pid, const char *field)
{
	FILE *f = proc(pid, "status");
	char line[256], *colon;
	long sum = 0;

	while (fgets(line, sizeof(line), f) != NULL) {
		colon = strchr(line, ':');
		if (colon == NULL)
			continue;
		*colon = '\0';
		if (strstr(line, field) != NULL)
			sum += atol(colon + 1);
	}
	(void)fclose(f);
	return sum;
}

long
switches_of(pid_t pid)
{
	return status_sum(pid, "ctxt_switches");
}

long
memory_of(pid_t pid, const char *field)
{
	return status_sum(pid, field);
}
