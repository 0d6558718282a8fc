/*
 * The greeting; see greet.h.
 */
#include "redis/greet.h"

#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/trust.h"
#include "redis/reply.h"

#define PASSWORD_MAX	4096
#define TLS_ALERT	0x15	/* the first byte of one */

/* The first line is the password. */
static int
greet_read_password(struct greet *g, char **cause)
{
	const struct redis_options *opt = g->opt;
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	bool named = opt->password_file != NULL && opt->password_file[0] != '\0';
	char *path = NULL, *p;
	struct buf b = BUF_INIT;
	size_t len;
	int fd, rc = 0;

	if (named)
		path = xstrdup(opt->password_file);
	else if (!opt->is_sentinel && dir != NULL && dir[0] != '\0')
		path = xasprintf("%s/redis-password", dir);
	if (path == NULL)
		return 0;
	buf_reserve(&b, 4 * PASSWORD_MAX);	/* must not move: that would leave a copy */
	fd = trust_open(path);
	if (fd == -1 || buf_read(&b, fd, PASSWORD_MAX - 1) == -1) {
		if (named || errno != ENOENT)
			rc = util_cause(cause, "password file %s: %s", path, strerror(errno));
	} else {
		/* A byte order mark, which some editors write, is no part of it. */
		p = buf_str(&b);
		p += strncmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
		len = strcspn(p, "\n");
		if (len > 0 && p[len - 1] == '\r')
			len--;
		if (len == 0)
			rc = util_cause(cause, "password file %s: its first line is empty, and "
			    "should be the password", path);
		g->password = xstrndup(p, len);
		g->password_len = len;
	}
	fd_close(&fd);
	explicit_bzero(b.data, b.cap);
	buf_done(&b);
	free(path);
	return rc;
}

static void
greet_forget_password(struct greet *g)
{
	if (g->password == NULL)
		return;
	explicit_bzero(g->password, g->password_len);
	free(g->password);
	g->password = NULL;
}

static bool
greet_has_user(const struct greet *g)
{
	return g->opt->username != NULL && g->opt->username[0] != '\0';
}

static bool
greet_needs(const struct greet *g, enum greet_step step, bool worker)
{
	if (step == GREET_AUTH)
		return g->password_len > 0 || greet_has_user(g);
	if (step == GREET_SELECT)
		return g->opt->database != 0;
	if (step == GREET_SETNAME)
		return g->name != NULL;
	return step < GREET_INFO_PERSISTENCE || worker;
}

int
greet_init(struct greet *g, const struct redis_options *opt, const char *name, bool worker,
    char **cause)
{
	*g = (struct greet){ .opt = opt, .name = name };
	if (greet_read_password(g, cause) == -1)
		return -1;
	for (enum greet_step step = 0; step < GREET_STEPS; step++) {
		if (greet_needs(g, step, worker))
			g->steps[g->n++] = step;
	}
	return 0;
}

void
greet_done(struct greet *g)
{
	greet_forget_password(g);
	xreplace(&g->cause, NULL);
}

bool
greet_next(struct greet *g, struct words *w)
{
	static const char *const fixed[GREET_STEPS][3] = {
		[GREET_AUTH] = { "AUTH" }, [GREET_SELECT] = { "SELECT" },
		[GREET_PING] = { "PING" }, [GREET_SETNAME] = { "CLIENT", "SETNAME" },
		[GREET_ID] = { "CLIENT", "ID" }, [GREET_INFO_SERVER] = { "INFO", "server" },
		[GREET_INFO_REPLICATION] = { "INFO", "replication" },
		[GREET_INFO_PERSISTENCE] = { "INFO", "persistence" },
		[GREET_ROLE] = { "ROLE" }, [GREET_TIME] = { "TIME" },
		[GREET_POLICY] = { "CONFIG", "GET", "maxmemory-policy" },
	};
	enum greet_step step;

	words_clear(w);
	if (g->sent > 0)
		greet_forget_password(g);
	if (g->sent == g->n)
		return false;
	step = g->steps[g->sent++];
	for (size_t i = 0; i < ARRAY_LEN(fixed[step]) && fixed[step][i] != NULL; i++)
		words_add(w, fixed[step][i]);
	if (step == GREET_AUTH && greet_has_user(g))
		words_add(w, g->opt->username);
	if (step == GREET_AUTH)
		words_mem(w, g->password != NULL ? g->password : "", g->password_len);
	else if (step == GREET_SELECT)
		words_fmt(w, "%d", g->opt->database);
	else if (step == GREET_SETNAME)
		words_add(w, g->name);
	return true;
}

static void
greet_info(const struct redisReply *r, const char *name, char *buf, size_t size)
{
	char *value = reply_info(r, name);

	snprintf(buf, size, "%s", value);
	free(value);
}

/* Commands with several keys, or with another node's key, would fail. */
static void
greet_saw_mode(struct greet *g, const char *mode)
{
	if (strcmp(mode, "cluster") != 0 || g->opt->is_node)
		return;
	xreplace(&g->cause, "is a node of a Redis Cluster: write "
	    "redis.cluster in place of redis.server");
}

static void
greet_saw_role(struct greet *g, const char *role)
{
	bool sentinel = strcmp(role, "sentinel") == 0;

	if (role[0] == '\0' || g->cause != NULL)
		return;
	if (g->opt->is_sentinel != sentinel)
		g->cause = xstrdup(sentinel ? "is a Sentinel, not a Redis server: write it into "
		    "redis.sentinel, and redis.master" :
		    "is a Redis server, not a Sentinel: write it into redis.server");
	else if (!g->opt->any_role &&
	    (strcmp(role, "slave") == 0 || strcmp(role, "replica") == 0))
		g->cause = xstrdup("is a replica");
}

/* An error with which no command can be sent, and what to write instead. */
static char *
greet_refusal(const struct greet *g, enum greet_step step, const char *error)
{
	static const char *const needless[] = { "ERR AUTH", "ERR Client sent AUTH" };

	if (step == GREET_SELECT)
		return xasprintf("%.200s: redis.database is %d: write a number below databases of "
		    "redis.conf (16), or 0 for a Redis Cluster", error, g->opt->database);
	for (size_t i = 0; step == GREET_AUTH && i < ARRAY_LEN(needless); i++) {
		if (strncmp(error, needless[i], strlen(needless[i])) == 0)
			return xasprintf("%.60s: Redis has no password: remove "
			    "redis.password_file, or set requirepass in redis.conf", error);
	}
	return xasprintf("%.200s", error);
}

bool
greet_answer(struct greet *g, const struct redisReply *r)
{
	enum reply_error e = reply_error(r);
	struct conn_server *s = &g->server;
	char role[16], mode[16], aof[4], replid2[48];
	const char *text;
	enum greet_step step;

	if (g->cause != NULL || g->answered == g->n)
		return true;
	step = g->steps[g->answered++];
	if (e != REPLY_OK) {
		if (step == GREET_AUTH || step == GREET_SELECT ||
		    e == REPLY_TRANSIENT || e == REPLY_ELSEWHERE ||
		    (e == REPLY_DENIED && strncmp(reply_text(r), "NOPERM", 6) != 0))
			/* Every command would get this error. */
			g->cause = greet_refusal(g, step, reply_text(r));
	} else if (step == GREET_ID) {
		s->client_id = reply_int(r, 0);
	} else if (step == GREET_INFO_SERVER) {
		greet_info(r, "run_id", s->run_id, sizeof(s->run_id));
		greet_info(r, "redis_version", s->version, sizeof(s->version));
		greet_info(r, "redis_mode", mode, sizeof(mode));
		greet_saw_mode(g, mode);
	} else if (step == GREET_INFO_REPLICATION) {
		greet_info(r, "master_replid", s->replid, sizeof(s->replid));
		greet_info(r, "master_replid2", replid2, sizeof(replid2));
		g->inherits = replid2[strspn(replid2, "0")] != '\0';
		greet_info(r, "role", role, sizeof(role));
		greet_saw_role(g, role);
	} else if (step == GREET_ROLE) {
		text = reply_str_at(r, 0);
		greet_saw_role(g, text != NULL ? text : "");
	} else if (step == GREET_INFO_PERSISTENCE) {
		greet_info(r, "aof_enabled", aof, sizeof(aof));
		s->no_aof = strcmp(aof, "0") == 0;
	} else if (step == GREET_POLICY) {
		text = reply_str_at(r, 1);
		snprintf(s->maxmemory_policy, sizeof(s->maxmemory_policy), "%s",
		    text != NULL ? text : "");
	} else if (step == GREET_TIME) {
		g->time = (double)reply_int_at(r, 0) + (double)reply_int_at(r, 1) / 1e6;
	}
	return g->cause != NULL || g->answered == g->n;
}

const char *
greet_stranger(const struct redis_options *opt, const char *data, size_t len)
{
	const char first = len > 0 ? data[0] : '\0';

	if (!opt->tls && first == TLS_ALERT)
		return "this port speaks TLS: set redis.tls = true, or write the port without TLS "
		    "into redis.server";
	if (!opt->tls && len >= 5 && memcmp(data, "HTTP/", 5) == 0)
		return "an HTTP server answers there, not Redis: correct the port in redis.server";
	if (len > 0)
		return "what answers there is not Redis: correct the address in redis.server";
	if (!opt->tls)
		return "the server closed the connection before it answered: if this port speaks "
		    "TLS, set redis.tls = true; if it is not Redis, correct redis.server";
	return NULL;
}

bool
greet_last_words(int fd, char *buf, size_t size)
{
	ssize_t n = recv(fd, buf, size - 1, MSG_DONTWAIT);

	if (n < 2 || buf[0] != '-')
		return false;
	buf[n] = '\0';
	buf[strcspn(buf, "\r\n")] = '\0';
	memmove(buf, buf + 1, strlen(buf));
	return true;
}
