/* The table of options, and looking them up by name. */
#include "config/options.h"

#include <stdlib.h>
#include <string.h>

#include <config.h>

#include "base/clock.h"
#include "base/listen_socket.h"
#include "base/utf8.h"
#include "policy/cron.h"
#include "policy/message.h"
#include "policy/rate.h"
#include "policy/shard_keys.h"
#include "policy/zone.h"
#include "redis/addr.h"

#define NAME_MAX_LEN	200
#define KEY_MAX_LEN	512
#define MEMBER_MAX_LEN	200

/* A row of the table; the name of the member is mostly that of the option. */
#define ROW(section_, name_, type_, struct_, member, default_, ...) { \
	.section = SECTION_##section_, .name = #name_, .type = OPTION_##type_, \
	.offset = offsetof(struct_, member), .def = default_, __VA_ARGS__ }
#define GLOBAL(name, type, ...) ROW(GLOBAL, name, type, struct config, name, __VA_ARGS__)
#define REDIS(name, type, ...)	ROW(REDIS, name, type, struct config, redis.name, __VA_ARGS__)
#define LOG(name, type, ...)	ROW(LOG, name, type, struct config, log.name, __VA_ARGS__)
#define HTTP(name, type, ...)	ROW(HTTP, name, type, struct config, http.name, __VA_ARGS__)
#define QUEUE(name, type, ...)	ROW(QUEUE, name, type, struct queue_config, name, __VA_ARGS__)
#define SCHEDULE(name, type, ...) \
	ROW(SCHEDULE, name, type, struct schedule_config, name, __VA_ARGS__)

#define DAY		(24 * HOUR)
#define MIB		((int64_t)1 << 20)
#define TIB		((int64_t)1 << 40)
#define MILLION		1000000
#define EXEC		(1U << MODE_EXEC)
#define PERSISTENT	(1U << MODE_PERSISTENT)

static const char *const levels[] = { "error", "warn", "info", "debug", NULL };
static const char *const formats[] = { "logfmt", "json", NULL };
static const char *const notifications[] = { "check", "set", NULL };
static const char *const pops[] = { "right", "left", NULL };
static const char *const framings[] = { "length", "line", "raw", NULL };
static const char *const leftovers[] = { "kill", "keep", NULL };

static option_check_fn check_cluster, check_command, check_cron, check_env, check_env_message,
	check_group, check_group_by, check_id, check_key, check_listen, check_name, check_on_dead,
	check_output, check_path, check_rate, check_root, check_sentinels, check_servers,
	check_target, check_timezone, check_tls, check_word;

const struct option option_table[] = {
	GLOBAL(name, STRING, "", .check = check_name, .flags = OPTION_RESTART,
	    .help = "the name of this daemon; empty: the host name"),
	GLOBAL(max_handlers, INT, "16", .min = 1, .max = 10000,
	    .help = "handlers that run at once, all queues together"),
	GLOBAL(drain_timeout, DURATION, "20s", .max = DAY,
	    .help = "time that handlers get to finish when the daemon stops"),
	GLOBAL(privileged, BOOL, "true", .flags = OPTION_RESTART,
	    .help = "started as root: true: handlers run as any user; false: all as _rqd"),

	ROW(REDIS, server, STRINGS, struct config, redis.servers, "127.0.0.1:6379",
	    .check = check_servers, .flags = OPTION_RESTART,
	    .missing = "no server: write host:port or unix:/path",
	    .help = "host:port, [v6]:port or unix:/path; rqd tries a list in order"),
	ROW(REDIS, sentinel, STRINGS, struct config, redis.sentinels, "",
	    .check = check_sentinels, .flags = OPTION_RESTART,
	    .help = "Redis Sentinels, host:port, in place of server; port 26379 by default"),
	REDIS(master, STRING, "", .check = check_word, .flags = OPTION_RESTART,
	    .help = "the name by which the Sentinels know the master"),
	REDIS(sentinel_username, STRING, "", .check = check_word, .flags = OPTION_RESTART,
	    .help = "the Sentinels' ACL user; empty: the default user"),
	REDIS(sentinel_password_file, STRING, "", .check = check_path, .flags = OPTION_RESTART,
	    .help = "the file whose first line is the Sentinels' password"),
	ROW(REDIS, cluster, STRINGS, struct config, redis.clusters, "",
	    .check = check_cluster, .flags = OPTION_RESTART,
	    .help = "nodes of a Redis Cluster, host:port, in place of server"),
	REDIS(database, INT, "0", .max = INT32_MAX, .flags = OPTION_RESTART,
	    .help = "the number of the database"),
	REDIS(username, STRING, "", .check = check_word, .flags = OPTION_RESTART,
	    .help = "the ACL user; empty: the default user"),
	REDIS(password_file, STRING, "", .check = check_path, .flags = OPTION_RESTART,
	    .help = "the file whose first line is the password"),
	REDIS(timeout, DURATION, "10s", .min = 100 * MSEC, .max = 10 * MINUTE,
	    .flags = OPTION_RESTART,
	    .help = "time limit for a connect or for the reply to a command"),
	REDIS(tls, BOOL, "false", .check = check_tls, .flags = OPTION_RESTART,
	    .help = "true: encrypt the connection"),
	REDIS(tls_ca, STRING, "", .check = check_path, .flags = OPTION_RESTART,
	    .help = "PEM file of the certificates to trust; empty: those of the system"),
	REDIS(tls_cert, STRING, "", .check = check_path, .flags = OPTION_RESTART,
	    .help = "PEM file of the client's certificate"),
	REDIS(tls_key, STRING, "", .check = check_path, .flags = OPTION_RESTART,
	    .help = "PEM file of the private key of tls_cert"),
	REDIS(tls_name, STRING, "", .check = check_word, .flags = OPTION_RESTART,
	    .help = "the name in the server's certificate; empty: the host in server"),

	LOG(target, STRING, "stderr", .check = check_target,
	    .help = "\"stderr\", \"syslog\" or a file's absolute path"),
	LOG(level, CHOICE, "info", .choices = levels,
	    .help = "the lowest level that is logged"),
	LOG(format, CHOICE, "logfmt", .choices = formats,
	    .help = "logfmt: key=value pairs; json: one JSON object per line"),
	LOG(payloads, BOOL, "false", .help = "true: log the messages themselves"),

	HTTP(listen, STRING, "", .check = check_listen,
	    .help = "address of the HTTP listener; empty: off"),
	HTTP(details, BOOL, "false",
	    .help = "true: show ids, errors and progress of messages on TCP"),

	/* Where messages come from. */
	QUEUE(kind, CHOICE, "ack", .choices = kind_names,
	    .help = "the kind of queue"),
	ROW(QUEUE, key, STRINGS, struct queue_config, keys, "", .check = check_key,
	    .flags = OPTION_OWN | OPTION_ALONE,
	    .help = "the key in Redis, or the channels; empty: the queue's name"),
	QUEUE(shards, INT, "1", .min = 1, .max = SHARDS_MAX, .trait = TRAIT_SHARDS,
	    .flags = OPTION_OWN,
	    .help = "keys that the queue is spread over: 1, 2, 4, 8 ... 256"),
	QUEUE(shards_drain, INT, "1", .min = 1, .max = SHARDS_MAX, .trait = TRAIT_SHARDS,
	    .flags = OPTION_OWN,
	    .help = "the former, larger number of shards, until they are empty; 1: none"),
	QUEUE(match, STRINGS, "*", .check = check_key, .flags = OPTION_ALONE,
	    .trait = TRAIT_KEY_EVENTS, .help = "pattern of the keys whose expiry is a message"),
	QUEUE(database, INT, "-1", .min = -1, .max = INT32_MAX, .trait = TRAIT_KEY_EVENTS,
	    .help = "the database of the keys; -1: redis.database"),
	QUEUE(notifications, CHOICE, "check", .choices = notifications,
	    .trait = TRAIT_KEY_EVENTS,
	    .help = "if Redis has notifications off: set: turn them on; check: report an error"),
	QUEUE(skew, DURATION, "2s", .min = 100 * MSEC, .max = DAY, .trait = TRAIT_KEY_EVENTS,
	    .help = "how much later than the first daemon another one may receive an expiry"),
	QUEUE(backlog, INT, "1000", .min = 1, .max = MILLION, .trait = TRAIT_SUBSCRIBES,
	    .help = "messages that may wait in the daemon; more are dropped"),
	QUEUE(backlog_bytes, SIZE, "16M", .min = 1, .max = TIB, .trait = TRAIT_SUBSCRIBES,
	    .help = "total size of the messages that wait"),
	QUEUE(pop, CHOICE, "right", .choices = pops, .trait = TRAIT_LIST,
	    .help = "the end of the list that rqd pops from"),
	QUEUE(id, STRING, "id", .check = check_id, .trait = TRAIT_LIST,
	    .help = "the first-level member of a JSON message that is its id"),
	QUEUE(delayed_key, STRING, "", .check = check_key, .flags = OPTION_OWN,
	    .trait = TRAIT_TAKES_PUSHES,
	    .help = "the key of messages that a producer delayed; empty: KEYDELAYED"),
	QUEUE(consumer_group, STRING, "rqd", .check = check_group, .trait = TRAIT_CONSUMER_GROUP,
	    .help = "the stream's consumer group; created if missing"),
	QUEUE(message_max, SIZE, "16M", .min = 1, .max = 512 * MIB,
	    .help = "larger messages become dead letters without being run"),

	/* The command and its process. */
	QUEUE(command, STRINGS, "", .check = check_command, .flags = OPTION_BRACES,
	    .help = "the command and its arguments"),
	QUEUE(mode, CHOICE, "exec", .choices = config_modes,
	    .help = "exec: one process per message; persistent: a process takes many"),
	QUEUE(batch, INT, "1", .min = 1, .max = 10000, .modes = EXEC, .trait = TRAIT_LEASES,
	    .help = "messages that one run of the command may get"),
	QUEUE(batch_wait, DURATION, "0", .max = HOUR, .modes = EXEC, .trait = TRAIT_LEASES,
	    .help = "how long the first message waits for others of its batch"),
	QUEUE(framing, CHOICE, "length", .choices = framings, .modes = PERSISTENT,
	    .batches = true, .help = "how rqd separates messages"),
	QUEUE(pipeline, INT, "1", .min = 1, .max = 10000, .modes = PERSISTENT,
	    .help = "messages that a process may have at once"),
	QUEUE(max_messages, INT, "0", .max = INT32_MAX, .modes = PERSISTENT,
	    .help = "messages until a process is replaced; 0: no limit"),
	QUEUE(max_age, DURATION, "0", .max = 365 * DAY, .modes = PERSISTENT,
	    .help = "time until a process is replaced; 0: no limit"),
	QUEUE(user, STRING, "", .check = check_word,
	    .help = "the user to run it as; required when rqd runs as root"),
	QUEUE(group, STRING, "", .check = check_word,
	    .help = "the group; empty: the user's groups"),
	QUEUE(directory, STRING, "/", .check = check_root,
	    .help = "the working directory"),
	QUEUE(umask, OCTAL, "", .max = 0777,
	    .help = "octal, as \"027\"; empty: that of the daemon"),
	QUEUE(nice, NICE, "inherit", .min = -20, .max = 19, .help = "the nice value"),
	QUEUE(env, STRINGS, "", .check = check_env,
	    .help = "variables to add to the environment, NAME=value"),
	QUEUE(env_file, STRING, "", .check = check_path,
	    .help = "a file of lines NAME=value"),
	QUEUE(env_message, STRINGS, "", .check = check_env_message, .modes = EXEC,
	    .flags = OPTION_SINGLE,
	    .help = "variables whose values are members of the message, NAME=member"),
	QUEUE(limit_nofile, LIMIT, "1024", .min = 16, .max = 1 << 30,
	    .help = "open files per process"),
	QUEUE(limit_as, LIMIT_SIZE, "inherit", .min = MIB, .max = 1024 * TIB,
	    .help = "address space per process"),
	QUEUE(limit_cpu, LIMIT_TIME, "inherit", .min = 1, .max = 365 * DAY / SEC,
	    .help = "CPU time per process, in whole seconds"),
	QUEUE(limit_fsize, LIMIT_SIZE, "inherit", .max = 1024 * TIB,
	    .help = "size of each file that it writes"),
	QUEUE(limit_nproc, LIMIT, "4096", .min = 1, .max = 1 << 30,
	    .help = "processes of its user, all programs together"),
	QUEUE(limit_core, LIMIT_SIZE, "inherit", .max = 1024 * TIB,
	    .help = "size of core dumps"),
	QUEUE(memory_max, SIZE, "0", .min = MIB, .max = 1024 * TIB, .zero = true,
	    .help = "memory of all processes of a run; 0: no limit"),
	QUEUE(pids_max, INT, "0", .max = 4194304,
	    .help = "processes and threads of a run at once; 0: no limit"),
	QUEUE(output, STRING, "log", .check = check_output,
	    .help = "where output goes: log, none, or push:QUEUE: stdout to that queue"),
	QUEUE(output_limit, SIZE, "1M", .max = TIB,
	    .help = "output of one delivery that is logged"),
	QUEUE(leftovers, CHOICE, "kill", .choices = leftovers,
	    .help = "what to do with processes that outlive the command"),
	QUEUE(pushes, STRINGS, "", .check = check_word, .flags = OPTION_BRACES,
	    .trait = TRAIT_LEASES,
	    .help = "the queues that its handlers may push to"),
	QUEUE(push_max, INT, "1000", .min = 1, .max = CONFIG_PUSH_MAX, .trait = TRAIT_LEASES,
	    .help = "messages that the handler of one message may push"),

	QUEUE(verdicts, BOOL, "true", .modes = EXEC,
	    .help = "true: descriptor 3 takes the handler's result lines; false: it is closed"),

	/* Numbers, and order. */
	QUEUE(concurrency, INT, "1", .max = 10000,
	    .help = "runs of the command at once, this daemon; 0: others consume the queue"),
	QUEUE(fleet_concurrency, INT, "0", .max = MILLION, .trait = TRAIT_LEASES,
	    .help = "messages of this queue in flight at once, all daemons; 0: no limit"),
	QUEUE(rate, STRING, "", .check = check_rate, .trait = TRAIT_LEASES,
	    .help = "messages per time, as \"100/s\", all daemons; empty: no limit"),
	QUEUE(group_by, STRING, "", .check = check_group_by, .trait = TRAIT_GROUPS,
	    .help = "the member of the message that names its group; \"/\": its id does"),
	QUEUE(group_concurrency, INT, "1", .min = 1, .max = 100, .trait = TRAIT_GROUPS,
	    .help = "messages of one group in flight at once, all daemons; 1: in order"),
	QUEUE(priority, INT, "0", .min = -1000, .max = 1000,
	    .help = "when max_handlers is reached, higher values go first"),

	/* Times. */
	QUEUE(lease, DURATION, "60s", .min = 3 * SEC, .max = DAY, .trait = TRAIT_LEASES,
	    .help = "time after the last renewal until another daemon may take the message"),
	QUEUE(foreign_timeout, DURATION, "0", .min = 1 * SEC, .max = 365 * DAY,
	    .zero = true, .trait = TRAIT_LEASES,
	    .help = "the same for deliveries of other programs; 0: the lease"),
	QUEUE(time_limit, DURATION, "30m", .min = 1 * MSEC, .max = 365 * DAY,
	    .zero = true,
	    .help = "how long one run of the handler may take; 0: no limit"),
	QUEUE(kill_grace, DURATION, "5s", .max = DAY,
	    .help = "the time between SIGTERM and SIGKILL"),

	/* Failures. */
	QUEUE(max_attempts, INT, "25", .min = 1, .max = MILLION, .trait = TRAIT_LEASES,
	    .help = "failures after which a message is a dead letter"),
	QUEUE(backoff, DURATION, "5s", .max = 30 * DAY, .trait = TRAIT_LEASES,
	    .help = "delay before the first retry; doubles with each failure"),
	QUEUE(backoff_max, DURATION, "1h", .max = 30 * DAY, .trait = TRAIT_LEASES,
	    .help = "longest delay before a retry"),
	QUEUE(max_crashes, INT, "3", .max = MILLION, .trait = TRAIT_LEASES,
	    .help = "expired leases; one more makes a dead letter"),
	QUEUE(dead_status, STATUSES, "65", .min = 1, .max = 255, .trait = TRAIT_LEASES,
	    .help = "exit statuses that make the message a dead letter at once"),
	QUEUE(suspend_after, INT, "20", .max = MILLION,
	    .help = "failures in a row that suspend the queue; 0: never"),
	QUEUE(dead_max, INT64, "0", .max = (int64_t)MILLION * MILLION, .trait = TRAIT_LEASES,
	    .help = "dead letters to keep, the newest; 0: all"),
	QUEUE(dead_max_age, DURATION, "0", .min = MINUTE, .max = 3650 * DAY, .zero = true,
	    .trait = TRAIT_LEASES,
	    .help = "time after which a dead letter is deleted; 0: never"),
	QUEUE(on_dead, STRING, "", .check = check_on_dead, .trait = TRAIT_LEASES,
	    .help = "push:QUEUE: announce each dead letter in that queue; empty: nowhere"),
	QUEUE(on_dead_message, BOOL, "false", .trait = TRAIT_LEASES,
	    .help = "true: the announcement has the message"),

	/* Schedules. */
	SCHEDULE(queue, STRING, "", .check = check_word,
	    .help = "the name of the queue to push to"),
	SCHEDULE(message, STRING, "",
	    .help = "the message; empty: an object whose id is the schedule's name and time"),
	SCHEDULE(every, DURATION, "0", .min = 1 * SEC, .max = 365 * DAY, .zero = true,
	    .help = "the time from one run to the next"),
	SCHEDULE(cron, STRING, "", .check = check_cron,
	    .help = "times of runs as in a crontab"),
	SCHEDULE(timezone, STRING, ZONE_UTC, .check = check_timezone,
	    .help = "the timezone for cron"),
	SCHEDULE(catch_up, BOOL, "false",
	    .help = "true: make up for the last run that was missed"),
	{ .name = NULL }
};
_Static_assert(ARRAY_LEN(option_table) <= OPTIONS_MAX, "OPTIONS_MAX is too small");
_Static_assert(ARRAY_LEN(notifications) == NOTIFICATIONS_SET + 2,
    "notifications must match enum notifications");
_Static_assert(ARRAY_LEN(framings) == FRAMING_RAW + 2, "framings must match enum framing");
_Static_assert(ARRAY_LEN(pops) == POP_LEFT + 2, "pops must match enum pop");
_Static_assert(ARRAY_LEN(levels) == LOG_LV_DEBUG + 2, "levels must match enum log_level");

/* Each section's name, and the words for the place of its options. */
static const struct {
	const char	*name;
	const char	*place;
} sections[SECTION_MAX] = {
	[SECTION_GLOBAL] = { "", "outside of all sections" },
	[SECTION_REDIS] = { "redis", "in redis { }" },
	[SECTION_LOG] = { "log", "in log { }" },
	[SECTION_HTTP] = { "http", "in http { }" },
	[SECTION_QUEUE] = { "queue", "in queue \"NAME\" { } or defaults { }" },
	[SECTION_SCHEDULE] = { "schedule", "in schedule \"NAME\" { }" },
	[SECTION_DEFAULTS] = { "defaults", "" },
};

size_t
option_index(const struct option *o)
{
	return (size_t)(o - option_table);
}

bool
option_belongs(const struct option *o, enum section section)
{
	return o->section == section || (section == SECTION_DEFAULTS &&
	    o->section == SECTION_QUEUE && (o->flags & OPTION_OWN) == 0);
}

const struct option *
option_find(enum section section, const char *name)
{
	EACH_OPTION(o) {
		if (option_belongs(o, section) && strcmp(o->name, name) == 0)
			return o;
	}
	return NULL;
}

const struct option *
option_named(enum section section, const char *name)
{
	const struct option *o = option_find(section, name);

	if (o == NULL)
		fatalx("no option has the name %s", name);
	return o;
}

bool
option_is_list(const struct option *o)
{
	return o->type == OPTION_STRINGS || o->type == OPTION_STATUSES;
}

bool
option_applies(const struct option *o, const struct queue_config *q)
{
	bool modes = o->modes == 0 || (o->modes & 1U << q->mode) != 0;

	return (modes || (o->batches && config_has_batches(q))) &&
	    ((o->flags & OPTION_SINGLE) == 0 || !config_has_batches(q)) &&
	    (o->trait == 0 || kind_has(q->kind, o->trait));
}

const char *
section_name(enum section section)
{
	return sections[section].name;
}

bool
section_has_title(enum section section)
{
	return section == SECTION_QUEUE || section == SECTION_SCHEDULE;
}

enum section
section_find(const char *name)
{
	enum section s = SECTION_REDIS;

	while (s < SECTION_MAX && strcmp(sections[s].name, name) != 0)
		s++;
	return s;
}

/* For the word that was probably meant by this name. */
static struct nearest
nearest_to(const char *name)
{
	struct nearest near = { name, 2, NULL };

	if (strlen(name) > 4)
		near.within = 3;
	return near;
}

/* "unknown option NAME; did you mean OTHER?" */
static char *
unknown(const char *what, const struct nearest *near)
{
	if (near->best == NULL)
		return xasprintf("%s \"%.60s\"", what, near->typed);
	return xasprintf("%s \"%.60s\"; did you mean %s?", what, near->typed,
	    near->best);
}

char *
section_unknown(const char *name)
{
	struct nearest near = nearest_to(name);

	for (enum section s = SECTION_REDIS; s < SECTION_MAX; s++)
		util_nearest(&near, sections[s].name);
	return unknown("unknown section", &near);
}

char *
option_unknown(enum section section, const char *name)
{
	struct nearest near = nearest_to(name);

	const char *place;

	EACH_OPTION(o) {
		if (strcmp(o->name, name) == 0) {
			place = sections[o->section].place;
			if ((o->flags & OPTION_OWN) != 0)
				place = "in queue \"NAME\" { } only";
			return xasprintf("%s does not belong here: it stands %s",
			    name, place);
		}
		if (option_belongs(o, section))
			util_nearest(&near, o->name);
	}
	return unknown("unknown option", &near);
}

/* -- checks of values ------------------------------------------------------------ */

#define NAME_CHARS	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

/* Text that heartbeats, logs and metrics show: no control characters. */
static int
check_text(const char *s, char **cause)
{
	if (!utf8_is_valid(s, strlen(s)))
		return util_cause(cause, "\"%.60s\" is not UTF-8", s);
	return check_word(s, 0, 1, cause);
}

static int
check_word(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	for (const char *p = value; *p != '\0'; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return util_cause(cause, "\"%.60s\" has control characters", value);
	}
	return 0;
}

static int
check_name(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	if (strlen(value) > NAME_MAX_LEN)
		return util_cause(cause, "the name is longer than %d bytes", NAME_MAX_LEN);
	return check_text(value, cause);
}

static int
check_key(const char *value, size_t i UNUSED, size_t n, char **cause)
{
	if (strlen(value) > KEY_MAX_LEN)
		return util_cause(cause, "the key is longer than %d bytes", KEY_MAX_LEN);
	if (n > 1 && value[0] == '\0')
		return util_cause(cause, "one of several keys is empty");
	return check_text(value, cause);
}

/* pop.lua makes a pattern of it. */
static int
check_id(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	size_t len = strlen(value);

	if (len >= 1 && len <= 32 && strspn(value, NAME_CHARS "-.:@$") == len)
		return 0;
	return util_cause(cause, "id \"%.60s\": write the name of a member, such as \"jid\": 1 to "
	    "32 letters, digits and _-.:@$", value);
}

static int
check_group_by(const char *value, size_t i, size_t n, char **cause)
{
	if (strlen(value) > MEMBER_MAX_LEN || strpbrk(value, "\"\\") != NULL)
		return util_cause(cause, "group_by \"%.60s\": write the name of a member, of at "
		    "most %d bytes without \" and \\, or \"/\"", value, MEMBER_MAX_LEN);
	return check_word(value, i, n, cause);
}

static int
check_group(const char *value, size_t i, size_t n, char **cause)
{
	if (value[0] == '\0')
		return util_cause(cause, "a consumer group must have a name, such as \"rqd\"");
	return check_key(value, i, n, cause);
}

static int
check_path(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	if (value[0] == '\0' || value[0] == '/')
		return 0;
	return util_cause(cause, "\"%.200s\" is not an absolute path: begin it with /", value);
}

static int
check_root(const char *value, size_t i, size_t n, char **cause)
{
	if (value[0] == '\0')
		return util_cause(cause, "an empty path: write \"/\" or another absolute path");
	return check_path(value, i, n, cause);
}

static int
check_command(const char *value, size_t i, size_t n, char **cause)
{
	const char *more = "", *name = value;

	if (i > 0 || value[0] == '/')
		return 0;
	if (value[0] == '\0')
		name = "command";
	if (n > 1)
		more = ", ...";
	return util_cause(cause, "the command \"%.200s\" is not an absolute path: "
	    "write {\"/path/to/%s\"%s}, or let a shell find it: "
	    "{\"/bin/sh\", \"-c\", '...'}", value, name, more);
}

/* The length of the name of a variable with "=" behind it; 0: there is none. */
static size_t
variable_name(const char *value)
{
	size_t len = strspn(value, NAME_CHARS);

	if (value[len] != '=' || (value[0] >= '0' && value[0] <= '9'))
		return 0;
	return len;
}

static int
check_env(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	size_t len = variable_name(value);

	if (len == 0)
		return util_cause(cause, "\"%.60s\" in env: write \"NAME=value\"", value);
	if (strncmp(value, "RQD_", 4) == 0)
		return util_cause(cause,
		    "%.*s in env: names that begin with RQD_ are set by rqd itself",
		    (int)len, value);
	return 0;
}

/*
 * Producers choose the values: no variable that the dynamic linker, the C library or a shell
 * obeys.  Those of interpreters, of which there are many, are warnings (consistency.c).
 */
static int
check_env_message(const char *value, size_t i, size_t n UNUSED, char **cause)
{
	static const char *const refused[] = { "RQD_", "LD_", "PATH=", "IFS=", "BASH_ENV=", "ENV=",
	    "SHELLOPTS=", "BASHOPTS=", "BASH_FUNC_", "PS4=", "PROMPT_COMMAND=", "GCONV_PATH=",
	    "GLIBC_TUNABLES=", "LOCPATH=", "NLSPATH=", "MALLOC_", "HOSTALIASES=", "RES_OPTIONS=",
	    "LOCALDOMAIN=", "GETCONF_DIR=" };
	size_t len = variable_name(value);

	if (len == 0 || value[len + 1] == '\0')
		return util_cause(cause, "\"%.60s\" in env_message: write \"NAME=member\"",
		    value);
	for (size_t k = 0; k < ARRAY_LEN(refused); k++) {
		if (strncmp(value, refused[k], strlen(refused[k])) == 0)
			return util_cause(cause, "%.*s in env_message: a message cannot set "
			    "this variable: choose another name", (int)len, value);
	}
	if (i >= CONFIG_MEMBERS_MAX)
		return util_cause(cause, "env_message has more than %d variables",
		    CONFIG_MEMBERS_MAX);
	return 0;
}

static int
check_servers(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	struct addr addr;

	if (addr_parse(value, &addr, cause) == -1)
		return -1;
	addr_done(&addr);
	return 0;
}

static int
check_sentinels(const char *value, size_t i, size_t n, char **cause)
{
	if (value[0] == '/' || strncmp(value, "unix:", strlen("unix:")) == 0)
		return util_cause(cause, "sentinel \"%s\": write host:port; a Sentinel has no "
		    "unix socket", value);
	return check_servers(value, i, n, cause);
}

static int
check_cluster(const char *value, size_t i, size_t n, char **cause)
{
	if (value[0] == '/' || strncmp(value, "unix:", strlen("unix:")) == 0)
		return util_cause(cause, "cluster \"%s\": write host:port; the nodes of a cluster "
		    "name each other by host and port", value);
	return check_servers(value, i, n, cause);
}

static int
check_listen(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	if (value[0] == '\0')
		return 0;
	return listen_socket_check(value, cause);
}

static int
check_target(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	if (value[0] == '/' || strcmp(value, "stderr") == 0 || strcmp(value, "syslog") == 0)
		return 0;
	return util_cause(cause, "target \"%.60s\": write \"stderr\", \"syslog\", "
	    "or the absolute path of a file", value);
}

/* "log", "none", "push:QUEUE". */
static int
check_output(const char *value, size_t i, size_t n, char **cause)
{
	if (strcmp(value, "log") == 0 || strcmp(value, "none") == 0)
		return 0;
	if (config_pushed_queue(value) != NULL)
		return check_word(value, i, n, cause);
	return util_cause(cause, "output \"%.60s\": write \"log\", \"none\", or "
	    "\"push:QUEUE\" with the name of a queue", value);
}

static int
check_on_dead(const char *value, size_t i, size_t n, char **cause)
{
	if (value[0] == '\0' || config_pushed_queue(value) != NULL)
		return check_word(value, i, n, cause);
	return util_cause(cause, "on_dead \"%.60s\": write \"push:QUEUE\" with the name of a "
	    "queue, or \"\"", value);
}

/* "100/s", "5/m", "1000/h", "1/d"; "" for none. */
static int
check_rate(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	double gap;

	return rate_parse(value, &gap, cause);
}

/* Times of a crontab; "" for none. */
static int
check_cron(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	char *why = NULL;
	struct cron c;
	int rc;

	if (value[0] == '\0')
		return 0;
	if ((rc = cron_parse(value, &c, &why)) == -1)
		(void)util_cause(cause, "cron \"%.60s\": %s", value, why);
	free(why);
	return rc;
}

static int
check_timezone(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	return zone_check_name(value, cause);
}

static int
check_tls(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
#ifdef HAVE_HIREDIS_SSL
	(void)value, (void)cause;
	return 0;
#else
	if (strcasecmp(value, "true") != 0 && strcasecmp(value, "yes") != 0 &&
	    strcasecmp(value, "on") != 0)
		return 0;
	return util_cause(cause, "tls: this rqd was built without TLS (its hiredis has none): "
	    "use a tunnel (socat or stunnel), or a build with hiredis_ssl");
#endif
}
