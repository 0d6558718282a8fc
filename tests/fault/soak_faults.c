/*
 * The kinds of faults: how each begins and ends.
 */
#include "soak_private.h"

#include <sys/resource.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <hiredis/hiredis.h>

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

/* Another type where a key was; what it held comes back afterwards. */
FAULT_BEGIN(wrong_type)
{
	static const char *const keys[] = {
		"q", "qBACKUP", "qCONTEXT", "qRETRY", "qDELIVERY", "qDELAYED", "qPAUSED", "qSTATS"
	};
	const char *key = keys[(unsigned)(seconds * 1000) % 8];
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

FAULT_BEGIN(deny)
{
	static const char *const commands[] = {
		"zadd", "hset", "hdel", "zrem", "ltrim", "hmget", "zrange", "evalsha",
		"time", "llen", "zremrangebyrank", "zmscore", "hget", "client", "info", "auth",
	};
	const char *command = commands[(unsigned)(seconds * 1000) % 16];

	UNUSED;
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

static bool
calm(unsigned slot, const char *detail)
{
	(void)detail;
	proxy_say(slot, "calm");
	return true;
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

FAULT_BEGIN(no_fork)
{
	unsigned which = (unsigned)(seconds * 1e4) % 2;

	UNUSED;
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

/* It may open no or only a few descriptors more: EMFILE at any of them. */
FAULT_BEGIN(no_descriptors)
{
	unsigned room = (unsigned)(seconds * 1e5) % 6;
	struct rlimit limit;

	UNUSED;
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
	{ "daemon killed", 12, CAUSE_KILLED, 0, 1, false, true, kill_daemon, restart_daemon },
	{ "daemon ended", 4, CAUSE_ENDED, 0.1, 0.2, false, true, term_daemon, restart_daemon },
	{ "daemon stopped", 5, CAUSE_STOPPED, 3.3, 4.5, false, true, stop_daemon, continue_daemon },
	{ "daemon paused", 4, CAUSE_STOPPED, 0.1, 1, false, true, stop_daemon, continue_daemon },
	{ "Redis killed", 8, CAUSE_REDIS_KILLED, 0.05, 1, false, false, kill_redis, restart_redis },
	{ "Redis stopped", 3, CAUSE_REDIS_STOPPED, 3.3, 4, false, false, stop_redis, continue_redis },
	{ "Redis paused", 4, CAUSE_REDIS_STOPPED, 0.1, 1, false, false, stop_redis, continue_redis },
	{ "CLIENT KILL", 5, CAUSE_CUT_OFF, 0.01, 1, true, false, client_kill, NULL },
	{ "SCRIPT FLUSH", 4, CAUSE_NONE, 0.01, 0.02, true, false, script_flush, NULL },
	{ "wrong type", 6, CAUSE_REFUSED, 0.3, 1.5, true, false, wrong_type, right_type },
	{ "maxmemory", 5, CAUSE_REFUSED, 0.3, 1.5, true, false, no_memory, memory_again },
	{ "ACL denial", 6, CAUSE_REFUSED, 0.3, 1.5, true, false, deny, allow },
	{ "cut", 6, CAUSE_CUT_OFF, 0.2, 2, false, true, cut, calm },
	{ "delay", 4, CAUSE_CUT_OFF, 0.2, 2, false, true, delay, calm },
	{ "split", 4, CAUSE_CUT_OFF, 0.2, 2, false, true, split, calm },
	{ "reply lost", 10, CAUSE_CUT_OFF, 0.2, 2, false, true, lose, calm },
	{ "blackhole", 5, CAUSE_CUT_OFF, 0.5, 4, false, true, blackhole, calm },
	{ "refuse", 4, CAUSE_CUT_OFF, 0.2, 4, false, true, refuse, calm },
	{ "drop", 5, CAUSE_CUT_OFF, 0.01, 0.02, false, true, drop, NULL },
	{ "unsteady", 4, CAUSE_CUT_OFF, 0.5, 3, false, true, unsteady, calm },
	{ "FLUSHALL", 3, CAUSE_NONE, 0.01, 0.02, true, false, flush, NULL },
	{ "replica promoted", 4, CAUSE_PROMOTED, 0.05, 1.2, true, false, fall_behind, promote },
	{ "clock jump", 4, CAUSE_NONE, 0.01, 5, false, true, clock_jump, NULL },
	{ "fork fails", 4, CAUSE_NONE, 0.3, 1.5, false, true, no_fork, fork_again },
	{ "exec fails", 4, CAUSE_NONE, 0.3, 1.5, false, true, no_exec, exec_again },
	{ "no descriptors", 4, CAUSE_CUT_OFF, 0.3, 1.5, false, true, no_descriptors, descriptors_again },
	{ "disk full", 4, CAUSE_NONE, 0.3, 2, false, true, full_disk, disk_again },
	{ NULL, 0, CAUSE_NONE, 0, 0, false, false, NULL, NULL }
};
