/*
 * rqd: runs a command for every message of a Redis queue.
 *
 * This file reads the command line, forks the spawner, which reads the configuration, and
 * gives up privileges; the daemon is service/daemon.c.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <config.h>

#include "base/fd.h"
#include "base/units.h"
#include "base/util.h"
#include "config/launch_config.h"
#include "config/load.h"
#include "handler/cgroup.h"
#include "handler/privilege.h"
#include "handler/spawner.h"
#include "service/daemon.h"

#define DEFAULT_FILE	SYSCONFDIR "/rqd.conf"

enum { OPT_UNTIL_EMPTY = 256, OPT_HELP, OPT_VERSION };

struct arguments {
	struct config_source	 source;
	const char	**overrides;	/* of source; NULL-terminated */
	size_t	 noverrides;
	int	 check;	/* -t, -tt */
	bool	 print;	/* -T */
	bool	 until_empty;
	bool	 debug;
};

static const char help[] =
    "usage: rqd [-c FILE] [-o OPTION=VALUE]... [-v] [--until-empty]\n"
    "       rqd -q QUEUE [-j N] [-u USER] [-o OPTION=VALUE]... [-v] [--until-empty]\n"
    "           -- COMMAND [ARGUMENT]...\n"
    "       rqd -t[t] | -T [-c FILE]\n"
    "\n"
    "Runs a command for every message of a Redis queue: the message on standard\n"
    "input, exit status 0 when it is done.\n"
    "\n"
    "  -c FILE          configuration (" DEFAULT_FILE ")\n"
    "  -q QUEUE         no file: serve this queue with COMMAND; the server is $RQD_SERVER\n"
    "                   or 127.0.0.1:6379\n"
    "  -j N             with -q: run up to N at once (1)\n"
    "  -u USER          with -q: run COMMAND as USER\n"
    "  -o OPTION=VALUE  override an option outside queue sections: -o redis.server=host:6379\n"
    "  -t               check the configuration and exit; -tt: warnings are errors\n"
    "  -T               print the configuration in force and exit\n"
    "  -v               log at level debug\n"
    "  --until-empty    exit when all queues are empty, or nothing can run\n"
    "  -V, --version    print the version\n"
    "  -h, --help       print this help\n"
    "\n"
    "rqd(8), rqd.conf(5), rqd-handler(7), rqctl(1)\n";

static int
usage(const char *complaint)
{
	fprintf(stderr, "rqd: %s\nTry 'rqd --help'.\n", complaint);
	return EX_USAGE;
}

static void
add_override(struct arguments *a, const char *text)
{
	a->overrides = xreallocarray(a->overrides, a->noverrides + 2, sizeof(char *));
	a->overrides[a->noverrides++] = text;
	a->overrides[a->noverrides] = NULL;
	a->source.overrides = a->overrides;
}

/* Returns -1 to go on, or an exit status. */
static int
set_option(struct arguments *a, int opt)
{
	int64_t n;

	switch (opt) {
	case 'c':
		a->source.file = optarg;
		return -1;
	case 'q':
		a->source.queue = optarg;
		return -1;
	case 'u':
		a->source.user = optarg;
		return -1;
	case 'o':
		if (strchr(optarg, '=') == NULL)
			return usage("-o takes OPTION=VALUE");
		add_override(a, optarg);
		return -1;
	case 'j':
		if (units_parse_int(optarg, &n) == -1 || n < 1 || n > 10000)
			return usage("-j takes a number from 1 to 10000");
		a->source.concurrency = (int)n;
		return -1;
	case 't':
		a->source.strict = a->check++ > 0;
		return -1;
	case 'T':
		a->print = true;
		return -1;
	case 'v':
		a->debug = true;
		return -1;
	case OPT_UNTIL_EMPTY:
		a->until_empty = true;
		return -1;
	case 'h':
		fputs(help, stdout);
		return EX_OK;
	case 'V':
		puts("rqd " PACKAGE_VERSION);
		return EX_OK;
	default:
		fputs("Try 'rqd --help'.\n", stderr);
		return EX_USAGE;
	}
}

/* Refuses options that exclude each other.  Returns -1 to go on, or an exit status. */
static int
check_arguments(struct arguments *a, int argc, char **argv)
{
	if (a->source.queue == NULL) {
		if (optind < argc)
			return usage("a command needs -q QUEUE");
		if (a->source.concurrency != 0 || a->source.user != NULL)
			return usage("-j and -u go with -q QUEUE");
		if (a->source.file == NULL)
			a->source.file = DEFAULT_FILE;
		return -1;
	}
	if (a->source.file != NULL)
		return usage("-q takes no configuration file: leave out -c");
	if (optind == argc)
		return usage("-q needs a command: rqd -q QUEUE -- COMMAND");
	a->source.command = (const char *const *)argv + optind;
	return -1;
}

static int
parse_arguments(struct arguments *a, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "until-empty", no_argument, NULL, OPT_UNTIL_EMPTY },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int opt, status;

	while ((opt = getopt_long(argc, argv, "+c:q:j:u:o:tTvVh", longs, NULL)) != -1) {
		if ((status = set_option(a, opt)) != -1)
			return status;
	}
	return check_arguments(a, argc, argv);
}

static void
print_report(const struct config_report *report)
{
	for (size_t i = 0; i < report->errors.n; i++)
		fprintf(stderr, "rqd: %s\n", report->errors.v[i]);
	for (size_t i = 0; i < report->warnings.n; i++)
		fprintf(stderr, "rqd: warning: %s\n", report->warnings.v[i]);
}

/* Prints the result of -t and -T, and errors. */
static int
report_and_print(const struct arguments *a, const struct config *config,
    const struct config_report *report)
{
	print_report(report);
	if (config == NULL)
		return EX_CONFIG;
	if (a->print)
		config_print(config, stdout);
	else
		fprintf(stderr, "rqd: configuration ok\n");
	return EX_OK;
}

/* -t and -T. */
static int
check_only(const struct arguments *a)
{
	struct config_report report = { 0 };
	struct config *config;
	int status;

	cgroup_open(false);
	config = config_load(&a->source, &report);
	status = report_and_print(a, config, &report);

	config_report_done(&report);
	config_unref(config);
	return status;
}

static bool
is_ignored(int signo)
{
	struct sigaction old;

	return sigaction(signo, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
}

/* Runs two processes; see launch_config_start().  A daemon's warnings go to its log. */
static int
run(const struct arguments *a)
{
	struct config_report report = { 0 };
	struct daemon_options options = { .source = &a->source, .until_empty = a->until_empty,
	    .debug = a->debug, .report = &report,
	    .ignores_hangup = a->source.queue != NULL && is_ignored(SIGHUP) };
	char *cause = NULL;
	struct config *config = launch_config_start(&a->source, &options.spawner, &report, &cause);
	int status;

	if (config != NULL) {
		status = daemon_run(&options, config);
	} else {
		spawner_stop(options.spawner);
		status = EX_OSERR;
		if (cause != NULL)
			fprintf(stderr, "rqd: %s\n", cause);
		else
			status = report_and_print(a, NULL, &report);
		free(cause);
	}
	config_report_done(&report);
	config_unref(config);
	return status;
}

/*
 * Log rotation or a supervisor may signal a daemon that has just begun.  Such a signal waits
 * until the loop watches it.  A signal that ends rqd is not held, because the start may hang;
 * but the first process of a container does not die of one, and would miss it.
 *
 * The log may be as large as RLIMIT_FSIZE: then writing fails, which the log reports.
 */
static void
hold_signals(void)
{
	const int held[] = { SIGHUP, SIGUSR1, SIGUSR2 };
	const int ends[] = { SIGTERM, SIGINT, SIGQUIT, SIGPWR, SIGRTMIN + 3 };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		(void)sigaddset(&set, held[i]);
	for (size_t i = 0; i < ARRAY_LEN(ends) && getpid() == 1; i++)
		(void)sigaddset(&set, ends[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGXFSZ, SIG_IGN);
}

int
main(int argc, char **argv)
{
	struct arguments a = { 0 };
	int status;

	if (fd_open_standard() == -1)
		fatal_os("/dev/null: %s", strerror(errno));
	hold_signals();
	/* A handler of our own user could otherwise read the password in our memory. */
	privilege_hide();
	if ((status = parse_arguments(&a, argc, argv)) == -1)
		status = a.print || a.check > 0 ? check_only(&a) : run(&a);
	free(a.overrides);
	return status;
}
