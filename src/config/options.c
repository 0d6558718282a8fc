/*
 * The table of options, and what is found by name in it.
 */
#include "config/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "config/option_check.h"
#include "policy/zone.h"

#define C(member)	offsetof(struct config, member)
#define Q(member)	offsetof(struct queue_config, member)
#define S(member)	offsetof(struct schedule_config, member)

#define DAY		(24 * HOUR)
#define MIB		((int64_t)1 << 20)
#define TIB		((int64_t)1 << 40)
#define MILLION		1000000
#define PERSISTENT	(1U << MODE_PERSISTENT)

static const char *const levels[] = { "error", "warn", "info", "debug", NULL };
static const char *const formats[] = { "logfmt", "json", NULL };
static const char *const notifications[] = { "check", "set", NULL };
static const char *const pops[] = { "right", "left", NULL };
static const char *const framings[] = { "length", "line", NULL };
static const char *const outputs[] = { "log", "none", NULL };
static const char *const leftovers[] = { "kill", "keep", NULL };

static const struct option options[] = {
	{
		.section = SECTION_GLOBAL, .name = "name", .type = OPTION_STRING,
		.offset = C(name), .def = "", .check = check_name, .flags = OPTION_RESTART,
		.help = "the name of this daemon; empty: the host name",
	}, {
		.section = SECTION_GLOBAL, .name = "max_handlers", .type = OPTION_INT,
		.offset = C(max_handlers), .def = "16", .min = 1, .max = 10000,
		.help = "handlers that run at once, all queues together",
	}, {
		.section = SECTION_GLOBAL, .name = "drain_timeout", .type = OPTION_DURATION,
		.offset = C(drain_timeout), .def = "20s", .max = DAY,
		.help = "time that handlers get to finish when the daemon stops",
	}, {
		.section = SECTION_GLOBAL, .name = "privileged", .type = OPTION_BOOL,
		.offset = C(privileged), .def = "true", .flags = OPTION_RESTART,
		.help = "started as root: true: handlers run as any user; false: all as _rqd",
	},

	{
		.section = SECTION_REDIS, .name = "server", .type = OPTION_STRINGS,
		.offset = C(redis.servers), .def = "127.0.0.1:6379",
		.check = check_servers, .flags = OPTION_RESTART,
		.help = "host:port, [v6]:port or unix:/path; rqd tries a list in order",
	}, {
		.section = SECTION_REDIS, .name = "database", .type = OPTION_INT,
		.offset = C(redis.database), .def = "0", .max = INT32_MAX,
		.flags = OPTION_RESTART, .help = "the number of the database",
	}, {
		.section = SECTION_REDIS, .name = "username", .type = OPTION_STRING,
		.offset = C(redis.username), .def = "", .check = check_word,
		.flags = OPTION_RESTART, .help = "the ACL user; empty: the default user",
	}, {
		.section = SECTION_REDIS, .name = "password_file", .type = OPTION_STRING,
		.offset = C(redis.password_file), .def = "", .check = check_path,
		.flags = OPTION_RESTART, .help = "the file whose first line is the password",
	}, {
		.section = SECTION_REDIS, .name = "timeout", .type = OPTION_DURATION,
		.offset = C(redis.timeout), .def = "10s", .min = 100 * MSEC,
		.max = 10 * MINUTE, .flags = OPTION_RESTART,
		.help = "time limit for a connect or for the reply to a command",
	}, {
		.section = SECTION_REDIS, .name = "tls", .type = OPTION_BOOL,
		.offset = C(redis.tls), .def = "false", .check = check_tls,
		.flags = OPTION_RESTART, .help = "true: encrypt the connection",
	}, {
		.section = SECTION_REDIS, .name = "tls_ca", .type = OPTION_STRING,
		.offset = C(redis.tls_ca), .def = "", .check = check_path,
		.flags = OPTION_RESTART,
		.help = "PEM file of the certificates to trust; empty: those of the system",
	}, {
		.section = SECTION_REDIS, .name = "tls_cert", .type = OPTION_STRING,
		.offset = C(redis.tls_cert), .def = "", .check = check_path,
		.flags = OPTION_RESTART, .help = "PEM file of the client's certificate",
	}, {
		.section = SECTION_REDIS, .name = "tls_key", .type = OPTION_STRING,
		.offset = C(redis.tls_key), .def = "", .check = check_path,
		.flags = OPTION_RESTART, .help = "PEM file of the private key of tls_cert",
	}, {
		.section = SECTION_REDIS, .name = "tls_name", .type = OPTION_STRING,
		.offset = C(redis.tls_name), .def = "", .check = check_word,
		.flags = OPTION_RESTART,
		.help = "the name in the server's certificate; empty: the host in server",
	},

	{
		.section = SECTION_LOG, .name = "target", .type = OPTION_STRING,
		.offset = C(log.target), .def = "stderr", .check = check_target,
		.help = "\"stderr\", \"syslog\" or a file's absolute path",
	}, {
		.section = SECTION_LOG, .name = "level", .type = OPTION_CHOICE,
		.offset = C(log.level), .def = "info", .choices = levels,
		.help = "the lowest level that is logged",
	}, {
		.section = SECTION_LOG, .name = "format", .type = OPTION_CHOICE,
		.offset = C(log.format), .def = "logfmt", .choices = formats,
		.help = "logfmt: key=value pairs; json: one JSON object per line",
	}, {
		.section = SECTION_LOG, .name = "payloads", .type = OPTION_BOOL,
		.offset = C(log.payloads), .def = "false",
		.help = "true: log the messages themselves",
	},

	{
		.section = SECTION_HTTP, .name = "listen", .type = OPTION_STRING,
		.offset = C(http.listen), .def = "", .check = check_listen,
		.help = "address of the HTTP listener; empty: off",
	},

	/* Where messages come from. */
	{
		.section = SECTION_QUEUE, .name = "kind", .type = OPTION_CHOICE,
		.offset = Q(kind), .def = "ack", .choices = kind_names,
		.help = "the kind of queue",
	}, {
		.section = SECTION_QUEUE, .name = "key", .type = OPTION_STRINGS,
		.offset = Q(keys), .def = "", .check = check_key,
		.flags = OPTION_OWN | OPTION_ALONE,
		.help = "the key in Redis, or the channels; empty: the queue's name",
	}, {
		.section = SECTION_QUEUE, .name = "match", .type = OPTION_STRINGS,
		.offset = Q(match), .def = "*", .check = check_key, .flags = OPTION_ALONE,
		.trait = TRAIT_KEY_EVENTS, .help = "pattern of the keys whose expiry is a message",
	}, {
		.section = SECTION_QUEUE, .name = "database", .type = OPTION_INT,
		.offset = Q(database), .def = "-1", .min = -1, .max = INT32_MAX,
		.trait = TRAIT_KEY_EVENTS, .help = "the database of the keys; -1: redis.database",
	}, {
		.section = SECTION_QUEUE, .name = "notifications", .type = OPTION_CHOICE,
		.offset = Q(notifications), .def = "check", .choices = notifications,
		.trait = TRAIT_KEY_EVENTS,
		.help = "if Redis has notifications off: set: turn them on; check: report an error",
	}, {
		.section = SECTION_QUEUE, .name = "skew", .type = OPTION_DURATION,
		.offset = Q(skew), .def = "2s", .min = 100 * MSEC, .max = DAY,
		.trait = TRAIT_KEY_EVENTS,
		.help = "how much later than another a daemon may hear of an expiry",
	}, {
		.section = SECTION_QUEUE, .name = "backlog", .type = OPTION_INT,
		.offset = Q(backlog), .def = "1000", .min = 1, .max = MILLION,
		.trait = TRAIT_SUBSCRIBES, .help = "messages that may wait in the daemon; more are dropped",
	}, {
		.section = SECTION_QUEUE, .name = "backlog_bytes", .type = OPTION_SIZE,
		.offset = Q(backlog_bytes), .def = "16M", .min = 1, .max = TIB,
		.trait = TRAIT_SUBSCRIBES, .help = "total size of the messages that wait",
	}, {
		.section = SECTION_QUEUE, .name = "pop", .type = OPTION_CHOICE,
		.offset = Q(pop), .def = "right", .choices = pops,
		.trait = TRAIT_POP_END, .help = "the end of the list that rqd pops from",
	}, {
		.section = SECTION_QUEUE, .name = "consumer_group", .type = OPTION_STRING,
		.offset = Q(consumer_group), .def = "rqd", .check = check_group,
		.trait = TRAIT_GROUP, .help = "the stream's consumer group; created if missing",
	}, {
		.section = SECTION_QUEUE, .name = "message_max", .type = OPTION_SIZE,
		.offset = Q(message_max), .def = "16M", .min = 1, .max = 512 * MIB,
		.help = "larger messages become dead letters without being run",
	},

	/* What is run. */
	{
		.section = SECTION_QUEUE, .name = "command", .type = OPTION_STRINGS,
		.offset = Q(command), .def = "", .check = check_command,
		.flags = OPTION_BRACES, .help = "the command and its arguments",
	}, {
		.section = SECTION_QUEUE, .name = "mode", .type = OPTION_CHOICE,
		.offset = Q(mode), .def = "exec", .choices = config_modes,
		.help = "exec: one process per message; persistent: a process takes many",
	}, {
		.section = SECTION_QUEUE, .name = "framing", .type = OPTION_CHOICE,
		.offset = Q(framing), .def = "length", .choices = framings,
		.modes = PERSISTENT, .help = "how rqd separates messages",
	}, {
		.section = SECTION_QUEUE, .name = "pipeline", .type = OPTION_INT,
		.offset = Q(pipeline), .def = "1", .min = 1, .max = 10000,
		.modes = PERSISTENT, .help = "messages that a process may have at once",
	}, {
		.section = SECTION_QUEUE, .name = "max_messages", .type = OPTION_INT,
		.offset = Q(max_messages), .def = "0", .max = INT32_MAX,
		.modes = PERSISTENT, .help = "messages until a process is replaced; 0: no limit",
	}, {
		.section = SECTION_QUEUE, .name = "max_age", .type = OPTION_DURATION,
		.offset = Q(max_age), .def = "0", .max = 365 * DAY,
		.modes = PERSISTENT, .help = "time until a process is replaced; 0: no limit",
	}, {
		.section = SECTION_QUEUE, .name = "user", .type = OPTION_STRING,
		.offset = Q(user), .def = "", .check = check_word,
		.help = "the user to run it as; required when rqd runs as root",
	}, {
		.section = SECTION_QUEUE, .name = "group", .type = OPTION_STRING,
		.offset = Q(group), .def = "", .check = check_word,
		.help = "the group; empty: the user's groups",
	}, {
		.section = SECTION_QUEUE, .name = "directory", .type = OPTION_STRING,
		.offset = Q(directory), .def = "/", .check = check_root,
		.help = "the working directory",
	}, {
		.section = SECTION_QUEUE, .name = "umask", .type = OPTION_OCTAL,
		.offset = Q(umask), .def = "", .max = 0777,
		.help = "octal, as \"027\"; empty: that of the daemon",
	}, {
		.section = SECTION_QUEUE, .name = "nice", .type = OPTION_INT,
		.offset = Q(nice), .def = "0", .min = -20, .max = 19,
		.help = "the nice value",
	}, {
		.section = SECTION_QUEUE, .name = "env", .type = OPTION_STRINGS,
		.offset = Q(env), .def = "", .check = check_env,
		.help = "variables to add to the environment, NAME=value",
	}, {
		.section = SECTION_QUEUE, .name = "env_file", .type = OPTION_STRING,
		.offset = Q(env_file), .def = "", .check = check_path,
		.help = "a file of lines NAME=value",
	}, {
		.section = SECTION_QUEUE, .name = "limit_nofile", .type = OPTION_LIMIT,
		.offset = Q(limit_nofile), .def = "1024", .min = 16, .max = 1 << 30,
		.help = "open files per process",
	}, {
		.section = SECTION_QUEUE, .name = "limit_as", .type = OPTION_LIMIT_SIZE,
		.offset = Q(limit_as), .def = "inherit", .min = MIB, .max = 1024 * TIB,
		.help = "address space per process",
	}, {
		.section = SECTION_QUEUE, .name = "limit_cpu", .type = OPTION_LIMIT_TIME,
		.offset = Q(limit_cpu), .def = "inherit", .min = 1, .max = 365 * DAY / SEC,
		.help = "CPU time per process, in whole seconds",
	}, {
		.section = SECTION_QUEUE, .name = "limit_fsize", .type = OPTION_LIMIT_SIZE,
		.offset = Q(limit_fsize), .def = "inherit", .max = 1024 * TIB,
		.help = "size of each file that it writes",
	}, {
		.section = SECTION_QUEUE, .name = "limit_nproc", .type = OPTION_LIMIT,
		.offset = Q(limit_nproc), .def = "inherit", .min = 1, .max = 1 << 30,
		.help = "processes of its user, all programs together",
	}, {
		.section = SECTION_QUEUE, .name = "limit_core", .type = OPTION_LIMIT_SIZE,
		.offset = Q(limit_core), .def = "inherit", .max = 1024 * TIB,
		.help = "size of core dumps",
	}, {
		.section = SECTION_QUEUE, .name = "output", .type = OPTION_CHOICE,
		.offset = Q(output), .def = "log", .choices = outputs,
		.help = "where standard output and standard error go",
	}, {
		.section = SECTION_QUEUE, .name = "output_limit", .type = OPTION_SIZE,
		.offset = Q(output_limit), .def = "1M", .max = TIB,
		.help = "output of one delivery that is logged",
	}, {
		.section = SECTION_QUEUE, .name = "leftovers", .type = OPTION_CHOICE,
		.offset = Q(leftovers), .def = "kill", .choices = leftovers,
		.help = "what to do with processes that outlive the command",
	},

	/* How many, and who first. */
	{
		.section = SECTION_QUEUE, .name = "concurrency", .type = OPTION_INT,
		.offset = Q(concurrency), .def = "1", .min = 1, .max = 10000,
		.help = "messages of this queue in flight at once, this daemon",
	}, {
		.section = SECTION_QUEUE, .name = "fleet_concurrency", .type = OPTION_INT,
		.offset = Q(fleet_concurrency), .def = "0", .max = MILLION,
		.trait = TRAIT_LEASES,
		.help = "messages of this queue in flight at once, all daemons; 0: no limit",
	}, {
		.section = SECTION_QUEUE, .name = "rate", .type = OPTION_STRING,
		.offset = Q(rate), .def = "", .check = check_rate,
		.trait = TRAIT_LEASES,
		.help = "messages per time, as \"100/s\", all daemons; empty: no limit",
	}, {
		.section = SECTION_QUEUE, .name = "priority", .type = OPTION_INT,
		.offset = Q(priority), .def = "0", .min = -1000, .max = 1000,
		.help = "when max_handlers is reached, higher values go first",
	},

	/* How long. */
	{
		.section = SECTION_QUEUE, .name = "lease", .type = OPTION_DURATION,
		.offset = Q(lease), .def = "60s", .min = 3 * SEC, .max = DAY,
		.trait = TRAIT_LEASES,
		.help = "time after the last renewal until another daemon may take the message",
	}, {
		.section = SECTION_QUEUE, .name = "foreign_timeout", .type = OPTION_DURATION,
		.offset = Q(foreign_timeout), .def = "0", .min = 1 * SEC, .max = 365 * DAY,
		.zero = true, .trait = TRAIT_LEASES,
		.help = "the same for deliveries of other programs; 0: the lease",
	}, {
		.section = SECTION_QUEUE, .name = "time_limit", .type = OPTION_DURATION,
		.offset = Q(time_limit), .def = "30m", .min = 1 * MSEC, .max = 365 * DAY,
		.zero = true, .help = "how long one run of the handler may take; 0: no limit",
	}, {
		.section = SECTION_QUEUE, .name = "kill_grace", .type = OPTION_DURATION,
		.offset = Q(kill_grace), .def = "5s", .max = DAY,
		.help = "the time between SIGTERM and SIGKILL",
	},

	/* What if it fails. */
	{
		.section = SECTION_QUEUE, .name = "max_attempts", .type = OPTION_INT,
		.offset = Q(max_attempts), .def = "25", .min = 1, .max = MILLION,
		.trait = TRAIT_LEASES,
		.help = "failures after which a message is a dead letter",
	}, {
		.section = SECTION_QUEUE, .name = "backoff", .type = OPTION_DURATION,
		.offset = Q(backoff), .def = "5s", .max = 30 * DAY,
		.trait = TRAIT_LEASES,
		.help = "delay before the first retry; doubles with each attempt",
	}, {
		.section = SECTION_QUEUE, .name = "backoff_max", .type = OPTION_DURATION,
		.offset = Q(backoff_max), .def = "1h", .max = 30 * DAY,
		.trait = TRAIT_LEASES,
		.help = "longest delay before a retry",
	}, {
		.section = SECTION_QUEUE, .name = "max_crashes", .type = OPTION_INT,
		.offset = Q(max_crashes), .def = "3", .max = MILLION,
		.trait = TRAIT_LEASES,
		.help = "expired leases after which a message is a dead letter",
	}, {
		.section = SECTION_QUEUE, .name = "dead_status", .type = OPTION_STATUSES,
		.offset = Q(dead_status), .def = "65", .min = 1, .max = 255,
		.trait = TRAIT_LEASES,
		.help = "exit statuses that make the message a dead letter at once",
	}, {
		.section = SECTION_QUEUE, .name = "suspend_after", .type = OPTION_INT,
		.offset = Q(suspend_after), .def = "20", .max = MILLION,
		.help = "failures in a row that suspend the queue; 0: never",
	}, {
		.section = SECTION_QUEUE, .name = "dead_max", .type = OPTION_INT64,
		.offset = Q(dead_max), .def = "0", .max = (int64_t)MILLION * MILLION,
		.trait = TRAIT_LEASES,
		.help = "dead letters to keep, the newest; 0: all",
	},

	/* Schedules. */
	{
		.section = SECTION_SCHEDULE, .name = "queue", .type = OPTION_STRING,
		.offset = S(queue), .def = "", .check = check_word,
		.help = "the name of the queue to push to",
	}, {
		.section = SECTION_SCHEDULE, .name = "message", .type = OPTION_STRING,
		.offset = S(message), .def = "",
		.help = "the message; empty: an object whose id is the schedule's name and time",
	}, {
		.section = SECTION_SCHEDULE, .name = "every", .type = OPTION_DURATION,
		.offset = S(every), .def = "0", .min = 1 * SEC, .max = 365 * DAY,
		.zero = true, .help = "the time from one run to the next",
	}, {
		.section = SECTION_SCHEDULE, .name = "cron", .type = OPTION_STRING,
		.offset = S(cron), .def = "", .check = check_cron,
		.help = "times of runs as in a crontab",
	}, {
		.section = SECTION_SCHEDULE, .name = "timezone", .type = OPTION_STRING,
		.offset = S(timezone), .def = ZONE_UTC, .check = check_timezone,
		.help = "the timezone for cron",
	}, {
		.section = SECTION_SCHEDULE, .name = "catch_up", .type = OPTION_BOOL,
		.offset = S(catch_up), .def = "false",
		.help = "true: make up for the last run that was missed",
	},
};
_Static_assert(ARRAY_LEN(options) <= OPTIONS_MAX, "OPTIONS_MAX is too small");
_Static_assert(ARRAY_LEN(notifications) == NOTIFICATIONS_SET + 2,
    "notifications must match enum notifications");
_Static_assert(ARRAY_LEN(pops) == POP_LEFT + 2, "pops must match enum pop");
_Static_assert(ARRAY_LEN(levels) == LOG_LV_DEBUG + 2, "levels must match enum log_level");

static const char *const sections[SECTION_MAX] = {
	[SECTION_GLOBAL] = "", [SECTION_REDIS] = "redis", [SECTION_LOG] = "log",
	[SECTION_HTTP] = "http", [SECTION_QUEUE] = "queue",
	[SECTION_SCHEDULE] = "schedule",
};

const struct option *
option_next(const struct option *o)
{
	if (o == NULL)
		return &options[0];
	return o + 1 < options + ARRAY_LEN(options) ? o + 1 : NULL;
}

size_t
option_index(const struct option *o)
{
	return (size_t)(o - options);
}

const struct option *
option_find(enum section section, const char *name)
{
	const struct option *o;

	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		if (o->section == section && strcmp(o->name, name) == 0)
			return o;
	}
	return NULL;
}

bool
option_is_list(const struct option *o)
{
	return o->type == OPTION_STRINGS || o->type == OPTION_STATUSES;
}

bool
option_applies(const struct option *o, const struct queue_config *q)
{
	return (o->modes == 0 || (o->modes & 1U << q->mode) != 0) &&
	    (o->trait == 0 || kind_has(q->kind, o->trait));
}

const char *
section_name(enum section section)
{
	return sections[section];
}

bool
section_has_title(enum section section)
{
	return section == SECTION_QUEUE || section == SECTION_SCHEDULE;
}

bool
section_find(const char *name, enum section *ret)
{
	enum section s;

	for (s = SECTION_REDIS; s < SECTION_MAX; s++) {
		if (strcmp(sections[s], name) == 0) {
			*ret = s;
			return true;
		}
	}
	return false;
}

/* The option of this section whose name is nearest, if it is near. */
static const struct option *
option_near(enum section section, const char *name)
{
	const struct option *o, *best = NULL;
	unsigned d, best_d = strlen(name) > 4 ? 3 : 2;

	for (o = option_next(NULL); o != NULL; o = option_next(o)) {
		if (o->section != section)
			continue;
		d = util_distance(name, o->name);
		if (d < best_d) {
			best_d = d;
			best = o;
		}
	}
	return best;
}

/* How to name the place where an option of this section stands. */
static const char *
section_words(enum section section)
{
	switch (section) {
	case SECTION_GLOBAL:
		return "outside of all sections";
	case SECTION_REDIS:
		return "in redis { }";
	case SECTION_LOG:
		return "in log { }";
	case SECTION_HTTP:
		return "in http { }";
	case SECTION_QUEUE:
		return "in queue \"NAME\" { } or defaults { }";
	case SECTION_SCHEDULE:
		return "in schedule \"NAME\" { }";
	case SECTION_MAX:
		break;
	}
	return "";
}

char *
option_unknown(enum section section, const char *name)
{
	const struct option *near = option_near(section, name);
	enum section s;

	for (s = SECTION_GLOBAL; s < SECTION_MAX; s++) {
		if (option_find(s, name) != NULL)
			return xasprintf("%s does not belong here: it stands %s", name,
			    section_words(s));
	}
	if (near != NULL)
		return xasprintf("unknown option \"%.60s\"; did you mean %s?", name, near->name);
	return xasprintf("unknown option \"%.60s\"", name);
}
