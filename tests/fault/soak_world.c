/*
 * Redis, the daemons, and a bad network before each of them; the faults.
 *
 * Orphans of a killed daemon become children of this process, which is a
 * subreaper: none can hide.
 */
#include "soak.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

struct daemon {
	pid_t	 pid;		/* 0: none */
	bool	 expected;	/* its end is */
	pid_t	 proxy;
	FILE	*to_proxy, *from_proxy;
};

static struct daemon daemons[DAEMONS];
static struct life lives[DAEMONS * LIVES_MAX];
static size_t nlives;
static pid_t redis_pid;
static bool redis_expected;	/* its end is */
static pid_t adopted;
static int adopted_status = -1;
static const char *rqd_path, *proxy_path;
static redisContext *admin;
static redisReply *admin_reply;

bool redis_away;

static void
nap(void)
{
	usleep(10000);
}

static void __attribute__((__noreturn__))
die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	world_stop();
	exit(99);
}

/* -- processes -------------------------------------------------------------- */

static pid_t
start(const char *log, char *const argv[], int in, int out)
{
	char path[256];
	pid_t parent = getpid(), pid;
	int fd;

	fflush(NULL);
	if ((pid = fork()) == -1)
		die("fork");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(99);
	snprintf(path, sizeof(path), "%s/%s", soak_dir, log);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
	dup2(in != -1 ? in : open("/dev/null", O_RDONLY), 0);
	dup2(out != -1 ? out : fd, 1);
	dup2(fd, 2);
	for (fd = 3; fd < 100; fd++)
		close(fd);
	execvp(argv[0], argv);
	_exit(127);
}

static void
redis_start(void)
{
	char dir[200], sock[256];
	char *argv[] = {
		(char *)"redis-server", (char *)"--port", (char *)"0",
		(char *)"--unixsocket", sock, (char *)"--dir", dir,
		(char *)"--save", (char *)"", (char *)"--appendonly", (char *)"yes",
		(char *)"--appendfsync", (char *)"always", (char *)"--user",
		(char *)"admin", (char *)"on", (char *)"nopass", (char *)"~*",
		(char *)"&*", (char *)"+@all", NULL
	};

	snprintf(dir, sizeof(dir), "%s", soak_dir);
	snprintf(sock, sizeof(sock), "%s/redis.sock", soak_dir);
	redis_pid = start("redis.log", argv, -1, -1);
	redis_expected = false;
}

static void
proxy_start(unsigned slot)
{
	char from[256], to[256], seed[24];
	char *argv[] = { (char *)(uintptr_t)proxy_path, from, to, seed, NULL };
	int in[2], out[2];
	char line[32];

	snprintf(from, sizeof(from), "%s/proxy%u.sock", soak_dir, slot);
	snprintf(to, sizeof(to), "%s/redis.sock", soak_dir);
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)soak_seed + slot);
	if (pipe2(in, O_CLOEXEC) == -1 || pipe2(out, O_CLOEXEC) == -1)
		die("pipe");
	daemons[slot].proxy = start("proxy.log", argv, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	daemons[slot].to_proxy = fdopen(in[1], "w");
	daemons[slot].from_proxy = fdopen(out[0], "r");
	if (fgets(line, sizeof(line), daemons[slot].from_proxy) == NULL)
		die("flakyproxy");
}

static void
proxy_say(unsigned slot, const char *command)
{
	char line[32];

	fprintf(daemons[slot].to_proxy, "%s\n", command);
	fflush(daemons[slot].to_proxy);
	if (fgets(line, sizeof(line), daemons[slot].from_proxy) == NULL)
		die("flakyproxy");
}

static void
daemon_configure(unsigned slot)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/rqd%u.conf", soak_dir, slot);
	if ((f = fopen(path, "w")) == NULL)
		die(path);
	fprintf(f, "redis {\n\tserver = \"unix:%s/proxy%u.sock\"\n\ttimeout = 2s\n}\n"
	    "log {\n\tlevel = \"debug\"\n}\nname = \"host%u\"\ndrain_timeout = 1s\n"
	    "queue \"q\" {\n\tcommand = {\"%s\", \"--handle\", \"%s\", \"%llu\"}\n%s"
	    "\tconcurrency = 8\n\tlease = 3s\n\tmax_attempts = %d\n"
	    "\tbackoff = 100ms\n\tbackoff_max = 500ms\n\tkill_grace = 1s\n}\n",
	    soak_dir, slot, slot, soak_self, soak_dir, (unsigned long long)soak_seed,
	    geteuid() == 0 ? "\tuser = \"root\"\n" : "", MAX_ATTEMPTS);
	fclose(f);
}

static void
daemon_start(unsigned slot)
{
	char conf[256], log[32];
	char *argv[] = { (char *)(uintptr_t)rqd_path, (char *)"-c", conf, NULL };

	if (nlives == DAEMONS * LIVES_MAX)
		return;
	snprintf(conf, sizeof(conf), "%s/rqd%u.conf", soak_dir, slot);
	snprintf(log, sizeof(log), "rqd%u.log", slot);
	daemons[slot].expected = false;
	daemons[slot].pid = start(log, argv, -1, -1);
	lives[nlives++] = (struct life){ daemons[slot].pid, slot };
}

pid_t
world_daemon(unsigned slot)
{
	return daemons[slot].pid;
}

const struct life *
world_life(pid_t pid)
{
	for (size_t i = nlives; i-- > 0;) {
		if (lives[i].pid == pid)
			return &lives[i];
	}
	return NULL;
}

unsigned
world_descriptors(unsigned slot)
{
	char path[64];
	unsigned n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)daemons[slot].pid);
	if ((d = opendir(path)) == NULL)
		return 0;
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n - 2;
}

void
world_adopt(pid_t pid)
{
	adopted = pid;
}

bool
world_adopted_ended(int *status)
{
	*status = adopted_status;
	return adopted_status != -1;
}

static bool
reaped_daemon(unsigned slot, int status)
{
	struct daemon *d = &daemons[slot];
	bool expected = d->expected;

	d->pid = 0;
	if (!expected || (!WIFSIGNALED(status) && WEXITSTATUS(status) != 0)) {
		printf("# daemon %u ended: wait status %#x\n", slot, status);
		expected = false;
	}
	return expected;
}

bool
world_reap(void)
{
	bool well = true;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (unsigned i = 0; i < DAEMONS; i++) {
			if (daemons[i].pid == pid && !reaped_daemon(i, status))
				well = false;
			if (daemons[i].proxy == pid)
				die("a proxy ended");
		}
		if (pid == redis_pid) {
			redis_pid = 0;
			if (!redis_expected)
				die("Redis ended");
		}
		if (pid == adopted)
			adopted_status = status;
	}
	return well;
}

void
world_start(const char *rqd, const char *proxy)
{
	rqd_path = rqd;
	proxy_path = proxy;
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	redis_start();
	for (int i = 0; ask("PING") == NULL; i++) {
		if (i == 1000)
			die("Redis does not start");
		nap();
	}
	for (unsigned i = 0; i < DAEMONS; i++) {
		proxy_start(i);
		daemon_configure(i);
		daemon_start(i);
	}
}

/* Kills what is below this process, at any remove. */
static void
kill_children(void)
{
	char path[64];
	pid_t self = getpid();
	int pid;
	FILE *f;

	for (int round = 0; round < 200; round++) {
		bool any = false;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)self, (int)self);
		if ((f = fopen(path, "r")) == NULL)
			return;
		while (fscanf(f, "%d", &pid) == 1) {
			kill(pid, SIGKILL);
			any = true;
		}
		fclose(f);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (!any)
			return;
		nap();
	}
}

void
world_stop(void)
{
	if (admin_reply != NULL)
		freeReplyObject(admin_reply);
	admin_reply = NULL;
	redisFree(admin);
	admin = NULL;
	for (unsigned i = 0; i < DAEMONS; i++) {
		if (daemons[i].to_proxy != NULL)
			fclose(daemons[i].to_proxy);
		if (daemons[i].from_proxy != NULL)
			fclose(daemons[i].from_proxy);
		daemons[i].to_proxy = daemons[i].from_proxy = NULL;
	}
	kill_children();
}

/* Children that are none of ours: handlers and guardians without a daemon. */
static unsigned
strangers(bool tell)
{
	char path[64], name[64];
	unsigned n = 0;
	int pid;
	FILE *f, *comm;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)getpid(), (int)getpid());
	if ((f = fopen(path, "r")) == NULL)
		return 0;
	while (fscanf(f, "%d", &pid) == 1) {
		if (pid == redis_pid || pid == daemons[0].proxy || pid == daemons[1].proxy)
			continue;
		n++;
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		if (tell && (comm = fopen(path, "r")) != NULL) {
			if (fgets(name, sizeof(name), comm) != NULL)
				printf("# left over: process %d, %s", pid, name);
			fclose(comm);
		}
	}
	fclose(f);
	return n;
}

bool
world_end_daemons(void)
{
	bool well = true;

	for (unsigned i = 0; i < DAEMONS; i++) {
		daemons[i].expected = true;
		if (daemons[i].pid > 0)
			kill(daemons[i].pid, SIGTERM);
	}
	for (int i = 0; i < 1500 && (daemons[0].pid > 0 || daemons[1].pid > 0); i++) {
		well = world_reap() && well;
		nap();
	}
	for (int i = 0; i < 200 && strangers(false) > 0; i++) {
		world_reap();
		nap();
	}
	return strangers(true) == 0 && well;
}

/* -- Redis ------------------------------------------------------------------ */

static redisReply *
admin_try(const char *fmt, va_list ap)
{
	struct timeval patience = { 5, 0 };
	char path[256];

	if (admin == NULL) {
		snprintf(path, sizeof(path), "%s/redis.sock", soak_dir);
		admin = redisConnectUnixWithTimeout(path, patience);
		if (admin != NULL && admin->err == 0) {
			redisSetTimeout(admin, patience);
			freeReplyObject(redisCommand(admin, "AUTH admin x"));
		}
	}
	return admin == NULL || admin->err != 0 ? NULL : redisvCommand(admin, fmt, ap);
}

struct redisReply *
ask(const char *fmt, ...)
{
	va_list ap;

	if (admin_reply != NULL)
		freeReplyObject(admin_reply);
	for (int i = 0; i < 2; i++) {
		va_start(ap, fmt);
		admin_reply = admin_try(fmt, ap);
		va_end(ap);
		if (admin_reply != NULL)
			break;
		redisFree(admin);
		admin = NULL;
	}
	if (admin_reply != NULL && admin_reply->type == REDIS_REPLY_ERROR &&
	    strncmp(admin_reply->str, "LOADING", 7) == 0) {
		freeReplyObject(admin_reply);
		admin_reply = NULL;
	}
	return admin_reply;
}

/* -- faults ----------------------------------------------------------------- */

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
	if (redis_away || kill(redis_pid, SIGSTOP) == -1)
		return false;
	redis_away = true;
	return true;
}

static bool
continue_redis(unsigned slot, const char *detail)
{
	(void)slot, (void)detail;
	redis_away = false;
	kill(redis_pid, SIGCONT);
	return true;
}

FAULT_BEGIN(kill_redis)
{
	UNUSED;
	if (redis_away)
		return false;
	redis_away = redis_expected = true;
	kill(redis_pid, SIGKILL);
	return true;
}

static bool
restart_redis(unsigned slot, const char *detail)
{
	(void)slot, (void)detail;
	if (redis_pid != 0 && redis_expected)
		return false;
	if (redis_pid == 0)
		redis_start();
	if (ask("PING") == NULL)
		return false;
	redis_away = false;
	return true;
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
	{ NULL, 0, CAUSE_NONE, 0, 0, false, false, NULL, NULL }
};
