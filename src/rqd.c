/*
 * rqd: runs a command for every message of a Redis queue.
 *
 * This file reads the command line and the configuration, and gives up privileges; the
 * daemon is service/daemon.c.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <config.h>

#include "base/units.h"
#include "base/util.h"
#include "config/launch_config.h"
#include "config/load.h"
#include "handler/privilege.h"
#include "queue/queue.h"
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
    "  --until-empty    exit when all queues are empty\n"
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

/* A daemon's warnings go to its log. */
static int
run(const struct arguments *a, struct config *config, const struct config_report *report,
    struct launcher *launcher)
{
	struct daemon_options options = {
		.source = &a->source, .until_empty = a->until_empty, .debug = a->debug,
		.report = report, .launcher = launcher,
	};

	return daemon_run(&options, config);
}

static int
load_and_run(const struct arguments *a)
{
	struct config_report report = { 0 };
	struct config *config = config_load(&a->source, &report);
	int status;

	if (config != NULL && !a->print && a->check == 0)
		status = run(a, config, &report, NULL);
	else
		status = report_and_print(a, config, &report);
	config_report_done(&report);
	config_unref(config);
	return status;
}

static int
complain(char *cause)
{
	fprintf(stderr, "rqd: %s\n", cause);
	free(cause);
	return EX_OSERR;
}

/* Runs the daemon with a configuration that the launcher has read. */
static int
run_sealed(const struct arguments *a, struct config *config, const struct config_report *report,
    struct launcher *launcher)
{
	char *cause = NULL;

	if (privilege_seal(&cause) == -1)
		return complain(cause);
	return run(a, config, report, launcher);
}

/*
 * Runs two processes; see launcher.h.  With privileged = false the launcher ends as
 * soon as that is known, and this process goes on as the ordinary user that it is by
 * then.
 */
static int
run_privileged(const struct arguments *a)
{
	struct launcher *launcher = launcher_fork(&launch_config_ops,
	    (void *)(uintptr_t)&a->source);
	struct config_report report = { 0 };
	struct launcher_loaded loaded;
	struct config *config;
	char *cause = NULL;
	int status;

	if (privilege_drop(&cause) == -1)
		return complain(cause);
	if (launcher_load_now(launcher, &loaded) == -1)
		return complain(xstrdup("the launcher died"));
	config = launch_config_take(&a->source, &loaded, &report);
	if (config != NULL && config->privileged) {
		status = run_sealed(a, config, &report, launcher);
	} else {
		launcher_stop(launcher);
		status = config != NULL ? load_and_run(a) : report_and_print(a, NULL, &report);
	}
	config_report_done(&report);
	config_unref(config);
	return status;
}

int
main(int argc, char **argv)
{
	struct arguments a = { 0 };
	int status;

	queue_check_ops();
	if ((status = parse_arguments(&a, argc, argv)) == -1)
		status = privilege_held() && !a.print && a.check == 0 ?
		    run_privileged(&a) : load_and_run(&a);
	free(a.overrides);
	return status;
}
