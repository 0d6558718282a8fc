/*
 * The benchmark of `make bench`.
 *
 *	bench [-r ROUNDS] [-o REPORT] [-s SECTION]... BUILD-DIRECTORY
 *
 * Each section starts the processes that it needs, prints a table, and removes
 * everything.  See README.md beside this file.
 */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const struct section *const sections[] = {
	&section_exec, &section_batch, &section_persistent, &section_redis,
	&section_backlog, &section_fleet, &section_latency, &section_herd, &section_many,
	&section_cluster, &section_idle, &section_group,
};
#define SECTIONS	(sizeof(sections) / sizeof(sections[0]))

int			 rounds = 5;
const char		*build_dir;
static FILE		*report;

void
die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fprintf(stderr, "bench: ");
	vfprintf(stderr, format, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(1);
}

void
say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	(void)fflush(stdout);
	if (report == NULL)
		return;
	va_start(ap, format);
	vfprintf(report, format, ap);
	va_end(ap);
}

double
now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void
nap(double s)
{
	struct timespec ts = { .tv_sec = (time_t)s,
	    .tv_nsec = (long)((s - (double)(time_t)s) * 1e9) };

	(void)nanosleep(&ts, NULL);
}

/* The sections that -s names; all if it names none. */
static bool		 wanted[SECTIONS], choosy;

static void
want(const char *name)
{
	size_t i;

	for (i = 0; i < SECTIONS; i++) {
		if (strcmp(name, sections[i]->name) == 0)
			wanted[i] = choosy = true;
	}
	if (!choosy)
		die("no section %s", name);
}

/* A line of a text that begins with this name, without it; "" if there is none. */
static const char *
value_of(const char *text, const char *name)
{
	static char value[128];
	const char *p = strstr(text, name);

	value[0] = '\0';
	if (p != NULL)
		(void)sscanf(p + strlen(name), "%*[ \t:]%127[^\r\n]", value);
	return value;
}

/* Prints the date, the machine and the versions. */
static void
say_world(void)
{
	char cpu[8192] = "", date[32];
	FILE *f = fopen("/proc/cpuinfo", "r");
	time_t t = time(NULL);
	struct utsname u;
	double load = 0;
	redisReply *r;

	if (f != NULL && fread(cpu, 1, sizeof(cpu) - 1, f) > 0)
		(void)fclose(f);
	(void)uname(&u);
	(void)strftime(date, sizeof(date), "%F %R UTC", gmtime(&t));
	say("%s; %ld processors, %s", date, sysconf(_SC_NPROCESSORS_ONLN),
	    value_of(cpu, "model name"));
	r = redis("INFO server");
	say("; Linux %s; Redis %s", u.release, value_of(r->str, "redis_version"));
	say("; rqd %s; gcc %s", RQD_BENCH_VERSION, __VERSION__);
	(void)getloadavg(&load, 1);
	say("; load average before: %.1f.\n", load);
	freeReplyObject(r);
}

static void
run_sections(void)
{
	double from = now(), at;
	size_t i;

	say_world();
	for (i = 0; i < SECTIONS; i++) {
		if (choosy && !wanted[i])
			continue;
		at = now();
		say("\n## %s: %s\n\n", sections[i]->name, sections[i]->what);
		sections[i]->run();
		say("\n(%.0f s)\n", now() - at);
	}
	say("\nAll in %.0f s, %d rounds.\n", now() - from, rounds);
}

int
main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "r:o:s:")) != -1) {
		if (c == 'r' && atoi(optarg) > 0 && atoi(optarg) <= ROUNDS_MAX)
			rounds = atoi(optarg);
		else if (c == 's')
			want(optarg);
		else if (c != 'o' || (report = fopen(optarg, "w")) == NULL)
			die("usage: bench [-r ROUNDS] [-o REPORT] [-s SECTION]... BUILD-DIRECTORY");
	}
	if (optind >= argc)
		die("which build?");
	build_dir = argv[optind];
	world_start();
	run_sections();
	world_stop();
	if (report != NULL)
		(void)fclose(report);
	return 0;
}
