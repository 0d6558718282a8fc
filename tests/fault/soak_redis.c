/*
 * Redis: a server and a replica of it, which change places when the replica is
 * promoted.  All connect to one name, redis.sock, a link to the server's socket.
 *
 * Redis keeps what it has acknowledged (appendonly, fsync always), except after
 * FLUSHALL, and for writes that had not reached the replica that is promoted.  This
 * file records both, message by message, with the place in which each was.  Nothing can
 * bring back messages that waited, but those that a daemon had in flight must come to
 * their end all the same.
 */
#include "soak_private.h"

#include <sys/stat.h>

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "tests/sim/port.h"

struct server {
	pid_t	 pid;		/* 0: none */
	int	 port;		/* for its replica */
	unsigned life;		/* each has a directory of its own */
};

static struct server servers[2];
static unsigned master;		/* of the two */
static bool expected;		/* the server's end is */
static redisContext *admin;
static redisReply *admin_reply;
static struct forgotten *forgotten;
static size_t nforgotten;

bool redis_away, redis_behind;

/*
 * Lua: collects all messages from the keys, each as a letter and its number: W: it
 * waits; H: in flight; D: a dead letter.
 */
#define COLLECT \
    "local out = {} " \
    "local function put(what, body) out[#out+1] = what .. (string.match(body or '', " \
    "'%d+') or '0') end " \
    UNREAD \
    "local kind = redis.call('TYPE', 'q').ok " \
    "for _, body in ipairs(kind == 'list' and redis.call('LRANGE', 'q', 0, -1) or {}) do " \
    "put('W', body) end " \
    "for _, e in ipairs(kind == 'stream' and unread(1000000) or {}) do put('W', e[2][2]) end " \
    "local context, owner = {}, {} " \
    "local c, d = redis.call('HGETALL', 'qCONTEXT'), redis.call('HGETALL', 'qDELIVERY') " \
    "for i = 1, #c, 2 do context[c[i]] = c[i+1] end " \
    "for i = 1, #d, 2 do owner[d[i]] = string.match(d[i+1], " \
    "'^%d+ %d+ (%S+)') end " \
    "local rows = kind == 'stream' and redis.pcall('XPENDING', 'q', 'rqd', '-', '+', " \
    "1000000) or {} " \
    "for _, row in ipairs(rows.err and {} or rows) do " \
    "local e = not context[row[1]] and redis.call('XRANGE', 'q', row[1], row[1])[1] " \
    "if e then put('W', e[2][2]) end end " \
    "for _, tag in ipairs(redis.call('ZRANGE', 'qBACKUP', 0, -1)) do " \
    "put('H', context[tag]) end " \
    "for _, tag in ipairs(redis.call('ZRANGE', 'qRETRY', 0, -1)) do " \
    "put((owner[tag] or '-') == '-' and 'W' or 'H', context[tag]) end " \
    "for _, letter in ipairs(redis.call('XRANGE', 'qDEAD', '-', '+')) do " \
    "for i = 1, #letter[2], 2 do if letter[2][i] == 'message' then put('D', letter[2][i+1]) " \
    "end end end "

/* -- processes -------------------------------------------------------------- */

static void
server_path(const struct server *s, const char *what, char *buf, size_t size)
{
	snprintf(buf, size, "%s/redis%d.%u%s", soak_dir, (int)(s - servers), s->life, what);
}

static void
server_start(struct server *s)
{
	char dir[256], sock[256], port[16], of[16], log[32];
	char *argv[] = {
		(char *)"redis-server", (char *)"--bind", (char *)"127.0.0.1",
		(char *)"--port", port,
		(char *)"--unixsocket", sock, (char *)"--dir", dir, (char *)"--save", (char *)"",
		(char *)"--appendonly", (char *)"yes", (char *)"--appendfsync",
		(char *)"always", (char *)"--repl-diskless-sync-delay", (char *)"0",
		(char *)"--user", (char *)"admin", (char *)"on", (char *)"nopass",
		(char *)"~*", (char *)"&*", (char *)"+@all", (char *)"--replicaof",
		(char *)"127.0.0.1", of, NULL
	};

	if (s == &servers[master])
		argv[24] = NULL;
	server_path(s, "", dir, sizeof(dir));
	server_path(s, ".sock", sock, sizeof(sock));
	if (mkdir(dir, 0700) == -1 && errno != EEXIST)
		die(dir);
	snprintf(port, sizeof(port), "%d", s->port);
	snprintf(of, sizeof(of), "%d", servers[!(s - servers)].port);
	snprintf(log, sizeof(log), "redis%d.log", (int)(s - servers));
	s->pid = start(log, argv, NULL, -1, -1);
}

/* redis.sock is the server's socket from now on. */
static void
server_link(void)
{
	char sock[256], link[256], new[256];

	server_path(&servers[master], ".sock", sock, sizeof(sock));
	snprintf(link, sizeof(link), "%s/redis.sock", soak_dir);
	snprintf(new, sizeof(new), "%s/redis.new", soak_dir);
	if (symlink(sock, new) == -1 || rename(new, link) == -1)
		die(link);
}

void
redis_begin(void)
{
	for (unsigned i = 0; i < 2; i++) {
		if ((servers[i].port = port_reserve()) == -1)
			die("port");
	}
	server_start(&servers[0]);
	server_link();
	for (int i = 0; ask("PING") == NULL; i++) {
		if (i == 1000)
			die("Redis does not start");
		nap();
	}
	server_start(&servers[1]);
}

void
redis_end(void)
{
	if (admin_reply != NULL)
		freeReplyObject(admin_reply);
	admin_reply = NULL;
	redisFree(admin);
	admin = NULL;
	free(forgotten);
	forgotten = NULL;
	nforgotten = 0;
}

bool
redis_is(pid_t pid)
{
	return pid == servers[0].pid || pid == servers[1].pid;
}

/* Prints the last lines of its log, which have the cause. */
static void
show_log(unsigned i)
{
	char cmd[512];

	snprintf(cmd, sizeof(cmd), "tail -n 5 '%s/redis%u.log' | sed 's/^/# /'", soak_dir, i);
	fflush(stdout);
	(void)!system(cmd);
}

void
redis_reaped(pid_t pid)
{
	for (unsigned i = 0; i < 2; i++) {
		if (servers[i].pid != pid)
			continue;
		servers[i].pid = 0;
		if (i == master && expected)
			continue;
		show_log(i);
		die("Redis ended");
	}
}

/* -- asking ----------------------------------------------------------------- */

static bool
admin_connect(void)
{
	struct timeval patience = { 5, 0 };
	char path[256];

	if (admin == NULL) {
		server_path(&servers[master], ".sock", path, sizeof(path));
		admin = redisConnectUnixWithTimeout(path, patience);
		if (admin != NULL && admin->err == 0) {
			redisSetTimeout(admin, patience);
			freeReplyObject(redisCommand(admin, "AUTH admin x"));
		}
	}
	return admin != NULL && admin->err == 0;
}

static void
admin_drop(void)
{
	redisFree(admin);
	admin = NULL;
}

/* The reply to the admin's command; NULL if Redis is loading. */
static redisReply *
admin_answered(void)
{
	if (admin_reply != NULL && admin_reply->type == REDIS_REPLY_ERROR &&
	    strncmp(admin_reply->str, "LOADING", 7) == 0) {
		freeReplyObject(admin_reply);
		admin_reply = NULL;
	}
	return admin_reply;
}

struct redisReply *
ask(const char *fmt, ...)
{
	va_list ap;

	if (admin_reply != NULL)
		freeReplyObject(admin_reply);
	for (int i = 0; i < 2; i++) {
		va_start(ap, fmt);
		admin_reply = admin_connect() ? redisvCommand(admin, fmt, ap) : NULL;
		va_end(ap);
		if (admin_reply != NULL)
			break;
		admin_drop();
	}
	return admin_answered();
}

struct redisReply *
ask_argv(int argc, const char *const argv[], const size_t len[])
{
	if (admin_reply != NULL)
		freeReplyObject(admin_reply);
	for (int i = 0; i < 2; i++) {
		admin_reply = admin_connect() ? redisCommandArgv(admin, argc,
		    (const char **)(uintptr_t)argv, len) : NULL;
		if (admin_reply != NULL)
			break;
		admin_drop();
	}
	return admin_answered();
}

/* -- what it forgets -------------------------------------------------------- */

static void
forget(const char *entry)
{
	long n = 0;

	if ((nforgotten & (nforgotten - 1)) == 0) {
		forgotten = realloc(forgotten, (2 * nforgotten + 1) * sizeof(*forgotten));
		if (forgotten == NULL)
			abort();
	}
	sscanf(entry + 1, "%ld", &n);
	forgotten[nforgotten++] = (struct forgotten){
		.n = n, .at = now(),
		.place = entry[0] == 'W' ? PLACE_WAITING :
		    entry[0] == 'H' ? PLACE_IN_HAND : PLACE_DEAD,
	};
}

const struct forgotten *
redis_forgotten(size_t *n)
{
	*n = nforgotten;
	return forgotten;
}

/* Empties Redis, but keeps the counters of pushed messages, which are no part of the fault. */
bool
redis_flush(void)
{
	redisReply *r = ask("EVAL %s 0", COLLECT
	    "local pushed = redis.call('GET', 'pushed') "
	    "local specials = redis.call('GET', 'specials') redis.call('FLUSHALL') "
	    "if pushed then redis.call('SET', 'pushed', pushed) end "
	    "if specials then redis.call('SET', 'specials', specials) end return out");

	if (r == NULL || r->type != REDIS_REPLY_ARRAY)
		return false;
	for (size_t i = 0; i < r->elements; i++)
		forget(r->element[i]->str);
	return true;
}

/* -- faults ----------------------------------------------------------------- */

bool
redis_stop(void)
{
	if (redis_away || redis_behind || kill(servers[master].pid, SIGSTOP) == -1)
		return false;
	redis_away = true;
	return true;
}

void
redis_continue(void)
{
	redis_away = false;
	kill(servers[master].pid, SIGCONT);
}

bool
redis_kill(void)
{
	if (redis_away || redis_behind)
		return false;
	redis_away = expected = true;
	kill(servers[master].pid, SIGKILL);
	return true;
}

bool
redis_restart(void)
{
	if (servers[master].pid != 0 && expected)
		return false;
	if (servers[master].pid == 0) {
		server_start(&servers[master]);
		expected = false;
	}
	if (ask("PING") == NULL)
		return false;
	redis_away = false;
	return true;
}

/* Cuts the replica off: writes to the server from now on will be lost. */
bool
redis_fall_behind(void)
{
	redisReply *r = ask("INFO replication");

	if (r == NULL || r->type != REDIS_REPLY_STRING ||
	    strstr(r->str, "state=online") == NULL)
		return false;
	redis_behind = ask("ACL SETUSER default -psync -sync") != NULL;
	ask("CLIENT KILL TYPE replica");
	return redis_behind;
}

/*
 * Collects from the old server.  It is as it was when it died, since CLIENT PAUSE
 * allows no more writes.
 */
static redisReply *
collect_old(void)
{
	redisReply *r;

	ask("CLIENT PAUSE 60000 WRITE");
	r = ask("EVAL_RO %s 0", COLLECT "return out");
	if (r == NULL || r->type != REDIS_REPLY_ARRAY)
		die("the old server does not answer");
	admin_reply = NULL;
	kill(servers[master].pid, SIGKILL);
	redisFree(admin);
	admin = NULL;
	return r;
}

/* Whether the message is in the other set, too, any number of times. */
static bool
is_among(const redisReply *all, long n)
{
	for (size_t i = 0; i < all->elements; i++) {
		if (atol(all->element[i]->str + 1) == n)
			return true;
	}
	return false;
}

static void
forget_missing(const redisReply *old, const redisReply *new)
{
	for (size_t i = 0; i < old->elements; i++) {
		if (!is_among(new, atol(old->element[i]->str + 1)))
			forget(old->element[i]->str);
	}
}

bool
redis_promote(void)
{
	redisReply *old = collect_old(), *new;

	expected = true;
	while (servers[master].pid != 0) {
		world_reap();
		nap();
	}
	expected = false;
	master = !master;
	while (ask("REPLICAOF NO ONE") == NULL)
		nap();
	new = ask("EVAL_RO %s 0", COLLECT "return out");
	if (new == NULL || new->type != REDIS_REPLY_ARRAY)
		die("the new server does not answer");
	forget_missing(old, new);
	freeReplyObject(old);
	server_link();
	servers[!master].life++;
	server_start(&servers[!master]);
	redis_behind = false;
	return true;
}
