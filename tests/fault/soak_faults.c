/*
 * The kinds of faults: how each begins and ends.
 */
#include "soak_private.h"

#include <sys/resource.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "redis/script.h"

#define FAULT_BEGIN(name) \
	static bool name(unsigned slot, double seconds, char *detail, size_t size)
#define UNUSED	(void)slot, (void)seconds, (void)detail, (void)size

FAULT_BEGIN(kill_daemon)
{
	UNUSED;
	if (daemons[slot].pid == 0)
		return false;
	daemons[slot].expected = true;
	return kill(daemons[slot].pid, SIGKILL) == 0;
}

FAULT_BEGIN(term_daemon)
{
	UNUSED;
	if (daemons[slot].pid == 0 || daemons[slot].expected)
		return false;
	daemons[slot].expected = true;
	return kill(daemons[slot].pid, SIGTERM) == 0;
}

static bool
restart_daemon(unsigned slot, const char *detail)
{
	(void)detail;
	if (daemons[slot].pid != 0 && daemons[slot].expected)
		return false;
	/* Without a spawner it does not start, and says so. */
	if (daemons[slot].pid == 0 && (daemons[slot].shim->fork_error != 0 ||
	    daemons[slot].shim->exec_error != 0))
		return false;
	if (daemons[slot].pid == 0)
		daemon_start(slot);
	return true;
}

FAULT_BEGIN(stop_daemon)
{
	UNUSED;
	return daemons[slot].pid != 0 && kill(daemons[slot].pid, SIGSTOP) == 0;
}

static bool
continue_daemon(unsigned slot, const char *detail)
{
	(void)detail;
	if (daemons[slot].pid != 0)
		kill(daemons[slot].pid, SIGCONT);
	return true;
}

FAULT_BEGIN(stop_redis)
{
	UNUSED;
	return redis_stop();
}

static bool
continue_redis(unsigned slot, const char *detail)
{
	(void)slot, (void)detail;
	redis_continue();
	return true;
}

FAULT_BEGIN(kill_redis)
{
	UNUSED;
	return redis_kill();
}

static bool
restart_redis(unsigned slot, const char *detail)
{
	(void)slot, (void)detail;
	return redis_restart();
}

FAULT_BEGIN(flush)
{
	UNUSED;
	return soak_redis_is_whole() && redis_flush();
}

FAULT_BEGIN(fall_behind)
{
	UNUSED;
	return soak_redis_is_whole() && redis_fall_behind();
}

static bool
promote(unsigned slot, const char *detail)
{
	(void)slot, (void)detail;
	return redis_promote();
}

FAULT_BEGIN(client_kill)
{
	UNUSED;
	const char *type = seconds > 0.5 ? "pubsub" : "normal";

	snprintf(detail, size, "%s", type);
	ask("CLIENT KILL TYPE %s SKIPME yes", type);
	return true;
}

FAULT_BEGIN(script_flush)
{
	UNUSED;
	ask("SCRIPT FLUSH");
	return true;
}

/* Replaces a key by one of another type; puts its value back afterwards. */
FAULT_BEGIN(wrong_type)
{
	static const char *const keys[] = {
		"q", "qBACKUP", "qCONTEXT", "qRETRY", "qDELIVERY", "qDELAYED", "qPAUSED", "qSTATS",
		"b", "bBACKUP", "bDELIVERY", "end"	/* with PIPE */
	};
	const char *key = keys[(unsigned)(seconds * 1000) % (soak_pipe ? 12 : 8)];
	redisReply *r;

	UNUSED;
	snprintf(detail, size, "%s", key);
	r = ask("EVAL %s 2 %s %s:away",
	    "if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end "
	    "if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('RENAME', KEYS[1], KEYS[2]) end "
	    "if KEYS[1] == 'qPAUSED' then redis.call('LPUSH', KEYS[1], 'x') "
	    "else redis.call('SET', KEYS[1], 'x') end return 1", key, key);
	return r != NULL && r->type == REDIS_REPLY_INTEGER && r->integer == 1;
}

static bool
right_type(unsigned slot, const char *key)
{
	(void)slot;
	return !redis_away && ask("EVAL %s 2 %s %s:away", "redis.call('DEL', KEYS[1]) "
	    "if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('RENAME', KEYS[2], KEYS[1]) end",
	    key, key) != NULL;
}

FAULT_BEGIN(no_memory)
{
	UNUSED;
	return ask("CONFIG SET maxmemory 1") != NULL;
}

static bool
memory_again(unsigned slot, const char *detail)
{
	(void)slot, (void)detail;
	return !redis_away && ask("CONFIG SET maxmemory 0") != NULL;
}

#define COMMANDS_MAX	200

/* The commands that rqd sends itself; commands_find() adds those that the scripts call. */
static const char *const own_commands[] = {
	"auth", "client", "evalsha", "info", "publish", "script", "subscribe", "xautoclaim",
	"xreadgroup", NULL
};
static char commands[COMMANDS_MAX][24];
static unsigned ncommands;

static void
command_add(const char *name, size_t len)
{
	for (unsigned i = 0; i < ncommands; i++) {
		if (strlen(commands[i]) == len && strncmp(commands[i], name, len) == 0)
			return;
	}
	if (ncommands < COMMANDS_MAX)
		snprintf(commands[ncommands++], sizeof(commands[0]), "%.*s", (int)len, name);
}

static void
commands_find(void)
{
	static const char call[] = "call('";

	for (const struct script *script = script_table; script->name != NULL; script++) {
		for (const char *at = script->text; (at = strstr(at, call)) != NULL;) {
			at += sizeof(call) - 1;
			command_add(at, strcspn(at, "'"));
		}
	}
	for (unsigned i = 0; own_commands[i] != NULL; i++)
		command_add(own_commands[i], strlen(own_commands[i]));
}

FAULT_BEGIN(deny)
{
	const char *command;

	UNUSED;
	if (ncommands == 0)
		commands_find();
	command = commands[(unsigned)(seconds * 1e5) % ncommands];
	snprintf(detail, size, "%s", command);
	return ask("ACL SETUSER default -%s", command) != NULL;
}

static bool
allow(unsigned slot, const char *command)
{
	(void)slot;
	return !redis_away && ask("ACL SETUSER default +%s", command) != NULL;
}

/* The network; the detail is the command. */
#define PROXY_FAULT(name, ...) \
FAULT_BEGIN(name) \
{ \
	unsigned some = (unsigned)(seconds * 1e6); \
	snprintf(detail, size, __VA_ARGS__); \
	(void)some; \
	proxy_say(slot, detail); \
	return true; \
}
PROXY_FAULT(cut, "cut %u", some % 5000)
PROXY_FAULT(delay, "delay %u", some % 400)
PROXY_FAULT(split, "split 1")
PROXY_FAULT(lose, "lose %u", 1 + some % 20)
PROXY_FAULT(blackhole, "blackhole 1")
PROXY_FAULT(refuse, "refuse 1")
PROXY_FAULT(drop, "drop")
PROXY_FAULT(unsteady, "random 60")

static const char *const ways[] = { "up", "down", "both" };
PROXY_FAULT(swallow, "swallow %s", ways[some % 3])

/* A fault of all daemons; it goes on when another fault of one of them is over. */
static char connections_end[40];

static bool
calm(unsigned slot, const char *detail)
{
	(void)detail;
	proxy_say(slot, "calm");
	if (connections_end[0] != '\0')
		proxy_say(slot, connections_end);
	return true;
}

FAULT_BEGIN(end_often)
{
	static const unsigned ms[] = { 500, 1500, 15000 };
	unsigned some = (unsigned)(seconds * 1e6);

	UNUSED;
	snprintf(connections_end, sizeof(connections_end), "%s %u",
	    some % 4 < 3 ? "age" : "idle", ms[some / 4 % 3]);
	snprintf(detail, size, "%s", connections_end);
	for (unsigned i = 0; i < DAEMONS; i++)
		proxy_say(i, connections_end);
	return true;
}

static bool
end_no_more(unsigned slot, const char *detail)
{
	(void)slot, (void)detail;
	connections_end[0] = '\0';
	for (unsigned i = 0; i < DAEMONS; i++)
		proxy_say(i, "age 0");
	return true;
}

/* A link of a megabyte a second, and a large message. */
FAULT_BEGIN(slow_link)
{
	UNUSED;
	if (!work_push_large((1 << 20) + (size_t)(seconds * 1e6) % (7 << 20)))
		return false;
	snprintf(detail, size, "rate 1000000");
	proxy_say(slot, detail);
	return true;
}

/* -- limits of Redis' own ------------------------------------------------------ */

static const struct setting { const char *name, *value, *normal; } settings[] = {
	{ "timeout", "1", "0" },
	{ "timeout", "5", "0" },
	{ "client-output-buffer-limit", "normal 65536 0 0", "normal 0 0 0" },
	{ "tracking-table-max-keys", "1", "1000000" },
};

static bool
set_limit(unsigned which, char *detail, size_t size)
{
	const struct setting *s = &settings[which];

	snprintf(detail, size, "%s %s", s->name, s->value);
	return ask("CONFIG SET %s %s", s->name, s->value) != NULL;
}

FAULT_BEGIN(server_timeout)
{
	UNUSED;
	return set_limit((unsigned)(seconds * 1e5) % 2, detail, size);
}

FAULT_BEGIN(output_limit)
{
	UNUSED;
	return set_limit(2, detail, size);
}

FAULT_BEGIN(tracking_limit)
{
	UNUSED;
	return set_limit(3, detail, size);
}

static bool
limits_again(unsigned slot, const char *detail)
{
	(void)slot;
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		const struct setting *s = &settings[i];

		if (strncmp(detail, s->name, strlen(s->name)) == 0)
			return !redis_away && ask("CONFIG SET %s %s", s->name, s->normal) != NULL;
	}
	return true;
}

/* -- messages at a bad moment -------------------------------------------------- */

/*
 * Sixty messages that fail, and one behind them; it is over when no daemon has
 * suspended the queue.
 */
FAULT_BEGIN(burst)
{
	UNUSED;
	return work_push_burst();
}

static bool
burst_over(unsigned slot, const char *detail)
{
	(void)slot, (void)detail;
	return !log_is_suspended();
}

/*
 * Cancels a message in flight, if there is one: it becomes a dead letter, and never
 * runs again.
 */
FAULT_BEGIN(cancel)
{
	static uint64_t state = 1;

	UNUSED;
	(void)work_cancel(draw(&state, 1000000));
	return true;
}

/*
 * Stops a daemon for longer than a lease while it has handlers that fail afterwards.
 * The other daemon finishes their messages meanwhile.  The stopped one is that which
 * takes the first of some late messages.
 */
#define START_TIME	4.0	/* seconds that a daemon may take to start */
#define LATE_AGAIN	8	/* seconds until there are more of them */

static bool
has_late(unsigned *slot)
{
	static double again;
	long first = work_last() + 1;
	const struct life *life;
	pid_t pid = 0;

	if (now() < again || !work_push_late(LEASE + 2))
		return false;
	again = now() + LATE_AGAIN;
	for (unsigned i = 0; i < 50 && pid == 0; i++) {
		nap();
		pid = work_late_daemon(first);
	}
	if ((life = world_life(pid)) == NULL || daemons[life->slot].pid != pid)
		return false;
	*slot = fault_slot = life->slot;
	return true;
}

FAULT_BEGIN(stop_late)
{
	return has_late(&slot) && stop_daemon(slot, seconds, detail, size);
}

FAULT_BEGIN(cut_off_late)
{
	return has_late(&slot) && blackhole(slot, seconds, detail, size);
}

/* Lasts long enough to see that the other daemon takes its messages up. */
FAULT_BEGIN(kill_late)
{
	return daemons[0].pid != 0 && daemons[1].pid != 0 && has_late(&slot) &&
	    kill_daemon(slot, seconds, detail, size);
}

/* -- a machine in trouble ------------------------------------------------------ */

FAULT_BEGIN(clock_jump)
{
	long by = (long)(seconds * 1e6) % 4000000 - 2000000;

	UNUSED;
	snprintf(detail, size, "to %+ld s", by);
	daemons[slot].shim->clock_offset = by;
	return true;
}

static const struct { int error; const char *name; } start_errors[] = {
	{ EAGAIN, "EAGAIN" }, { ENOMEM, "ENOMEM" },
};

/* A daemon that cannot fork, open or write while it starts, ends with an error. */
static bool
is_starting(unsigned slot)
{
	return now() - daemons[slot].started < START_TIME;
}

FAULT_BEGIN(no_fork)
{
	unsigned which = (unsigned)(seconds * 1e4) % 2;

	UNUSED;
	if (is_starting(slot) || daemons[slot].shim->shares)
		return false;
	snprintf(detail, size, "%s", start_errors[which].name);
	daemons[slot].shim->fork_error = start_errors[which].error;
	return true;
}

static bool
fork_again(unsigned slot, const char *detail)
{
	(void)detail;
	daemons[slot].shim->fork_error = 0;
	return true;
}

FAULT_BEGIN(no_exec)
{
	unsigned which = (unsigned)(seconds * 1e4) % 2;

	UNUSED;
	if (is_starting(slot) || daemons[slot].shim->shares)
		return false;
	snprintf(detail, size, "%s", start_errors[which].name);
	daemons[slot].shim->exec_error = start_errors[which].error;
	return true;
}

static bool
exec_again(unsigned slot, const char *detail)
{
	(void)detail;
	daemons[slot].shim->exec_error = 0;
	return true;
}

/* Lets the daemon open no or few more descriptors: EMFILE at any of them. */
FAULT_BEGIN(no_descriptors)
{
	unsigned room = (unsigned)(seconds * 1e5) % 6;
	struct rlimit limit;

	UNUSED;
	if (is_starting(slot))
		return false;
	if (daemons[slot].pid == 0 ||
	    prlimit(daemons[slot].pid, RLIMIT_NOFILE, NULL, &limit) == -1)
		return false;
	limit.rlim_cur = world_descriptors(slot) + room;
	snprintf(detail, size, "%u left", room);
	return prlimit(daemons[slot].pid, RLIMIT_NOFILE, &limit, NULL) == 0;
}

static bool
descriptors_again(unsigned slot, const char *detail)
{
	struct rlimit limit;

	(void)detail;
	if (daemons[slot].pid != 0 &&
	    prlimit(daemons[slot].pid, RLIMIT_NOFILE, NULL, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max < 1024 ? limit.rlim_max : 1024;
		prlimit(daemons[slot].pid, RLIMIT_NOFILE, &limit, NULL);
	}
	return true;
}

FAULT_BEGIN(full_disk)
{
	UNUSED;
	if (is_starting(slot))
		return false;
	daemons[slot].shim->disk_full = 1;
	return true;
}

static bool
disk_again(unsigned slot, const char *detail)
{
	(void)detail;
	daemons[slot].shim->disk_full = 0;
	return true;
}

const struct fault_kind fault_kinds[] = {
	{ "daemon killed", 12, CAUSE_KILLED, 0, 1, false, true, EFFECT_NONE,
	    kill_daemon, restart_daemon },
	{ "daemon ended", 4, CAUSE_ENDED, 0.1, 0.2, false, true, EFFECT_NONE,
	    term_daemon, restart_daemon },
	{ "daemon stopped", 5, CAUSE_STOPPED, 3.3, 4.5, false, true, EFFECT_NONE,
	    stop_daemon, continue_daemon },
	{ "daemon paused", 4, CAUSE_STOPPED, 0.1, 1, false, true, EFFECT_NONE,
	    stop_daemon, continue_daemon },
	{ "Redis killed", 8, CAUSE_REDIS_KILLED, 0.05, 1, false, false, EFFECT_NONE,
	    kill_redis, restart_redis },
	{ "Redis stopped", 3, CAUSE_REDIS_STOPPED, 3.3, 4, false, false, EFFECT_NONE,
	    stop_redis, continue_redis },
	{ "Redis paused", 4, CAUSE_REDIS_STOPPED, 0.1, 1, false, false, EFFECT_NONE,
	    stop_redis, continue_redis },
	{ "CLIENT KILL", 5, CAUSE_CUT_OFF, 0.01, 1, true, false, EFFECT_NONE,
	    client_kill, NULL },
	{ "SCRIPT FLUSH", 4, CAUSE_NONE, 0.01, 0.02, true, false, EFFECT_NONE,
	    script_flush, NULL },
	{ "wrong type", 6, CAUSE_REFUSED, 0.3, 1.5, true, false, EFFECT_NONE,
	    wrong_type, right_type },
	{ "maxmemory", 5, CAUSE_REFUSED, 0.3, 1.5, true, false, EFFECT_NONE,
	    no_memory, memory_again },
	{ "ACL denial", 6, CAUSE_REFUSED, 0.3, 1.5, true, false, EFFECT_NONE,
	    deny, allow },
	{ "cut", 6, CAUSE_CUT_OFF, 0.2, 2, false, true, EFFECT_NONE,
	    cut, calm },
	{ "delay", 4, CAUSE_CUT_OFF, 0.2, 2, false, true, EFFECT_NONE,
	    delay, calm },
	{ "split", 4, CAUSE_CUT_OFF, 0.2, 2, false, true, EFFECT_NONE,
	    split, calm },
	{ "reply lost", 10, CAUSE_CUT_OFF, 0.2, 2, false, true, EFFECT_NONE,
	    lose, calm },
	{ "blackhole", 5, CAUSE_CUT_OFF, 0.5, 4, false, true, EFFECT_NONE,
	    blackhole, calm },
	{ "refuse", 4, CAUSE_CUT_OFF, 0.2, 4, false, true, EFFECT_NONE,
	    refuse, calm },
	{ "drop", 5, CAUSE_CUT_OFF, 0.01, 0.02, false, true, EFFECT_NONE,
	    drop, NULL },
	{ "unsteady", 4, CAUSE_CUT_OFF, 0.5, 3, false, true, EFFECT_NONE,
	    unsteady, calm },
	{ "FLUSHALL", 3, CAUSE_NONE, 0.01, 0.02, true, false, EFFECT_FORGETS,
	    flush, NULL },
	{ "replica promoted", 4, CAUSE_PROMOTED, 0.05, 1.2, true, false, EFFECT_FORGETS,
	    fall_behind, promote },
	{ "clock jump", 4, CAUSE_NONE, 0.01, 5, false, true, EFFECT_NONE,
	    clock_jump, NULL },
	{ "fork fails", 4, CAUSE_NONE, 0.3, 1.5, false, true, EFFECT_HINDERS,
	    no_fork, fork_again },
	{ "exec fails", 4, CAUSE_NONE, 0.3, 1.5, false, true, EFFECT_HINDERS,
	    no_exec, exec_again },
	{ "no descriptors", 4, CAUSE_CUT_OFF, 0.3, 1.5, false, true, EFFECT_NONE,
	    no_descriptors, descriptors_again },
	{ "disk full", 4, CAUSE_NONE, 0.3, 2, false, true, EFFECT_NONE,
	    full_disk, disk_again },
	{ "cut off", 3, CAUSE_CUT_OFF, 3.3, 6, false, true, EFFECT_NONE,
	    blackhole, calm },
	{ "swallowed", 5, CAUSE_CUT_OFF, 0.5, 5, false, true, EFFECT_NONE,
	    swallow, calm },
	{ "short connections", 5, CAUSE_NONE, 4, 20, false, false, EFFECT_NONE,
	    end_often, end_no_more },
	{ "slow link", 3, CAUSE_NONE, 8, 20, true, true, EFFECT_NONE,
	    slow_link, calm },
	{ "server timeout", 4, CAUSE_NONE, 4, 20, true, false, EFFECT_NONE,
	    server_timeout, limits_again },
	{ "output limit", 3, CAUSE_NONE, 0.5, 3, true, false, EFFECT_NONE,
	    output_limit, limits_again },
	{ "tracking limit", 3, CAUSE_NONE, 0.5, 3, true, false, EFFECT_NONE,
	    tracking_limit, limits_again },
	{ "poison", 2, CAUSE_NONE, 2, 3, true, false, EFFECT_HINDERS,
	    burst, burst_over },
	{ "cancel", 8, CAUSE_NONE, 0.01, 0.1, true, false, EFFECT_NONE,
	    cancel, NULL },
	{ "late, stopped", 4, CAUSE_STOPPED, LEASE + 1.5, LEASE + 2.5, true, true, EFFECT_CHOOSES,
	    stop_late, continue_daemon },
	{ "late, cut off", 4, CAUSE_CUT_OFF, LEASE + 1.5, LEASE + 2.5, true, true, EFFECT_CHOOSES,
	    cut_off_late, calm },
	{ "late, killed", 2, CAUSE_KILLED, LEASE + 9, LEASE + 10, true, true, EFFECT_CHOOSES,
	    kill_late, restart_daemon },
	{ NULL, 0, CAUSE_NONE, 0, 0, false, false, EFFECT_NONE, NULL, NULL }
};
