/*
 * The greeting.  Two places go through the same steps: the next command to send, and
 * the next one to be answered.
 */
#include "redis/greet.h"

#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "redis/reply.h"
#include "redis/script.h"
#include "redis/secret.h"

#define PASSWORD_MAX	4096

/* Reads a whole small file; -1 with errno. */
static int
greet_read_file(const char *path, struct buf *b)
{
	int fd = secret_open(path), rc;

	if (fd == -1)
		return -1;
	rc = buf_read(b, fd, PASSWORD_MAX - 1);
	fd_close(&fd);
	return rc;
}

/*
 * The path of the password file, which the caller frees; NULL: none.  *may_lack: if the
 * file does not exist, there is no password.
 */
static char *
greet_password_path(const struct redis_options *opt, bool *may_lack)
{
	const char *dir;

	*may_lack = false;
	if (opt->password_file != NULL && opt->password_file[0] != '\0')
		return xstrdup(opt->password_file);
	if (opt->is_sentinel || (dir = getenv("CREDENTIALS_DIRECTORY")) == NULL ||
	    dir[0] == '\0')
		return NULL;
	*may_lack = true;
	return xasprintf("%s/redis-password", dir);
}

/* The first line is the password. */
static int
greet_read_password(struct greet *g, char **cause)
{
	bool may_lack;
	char *path = greet_password_path(g->opt, &may_lack);
	struct buf b = BUF_INIT;
	size_t len;
	int rc = 0;

	if (path == NULL)
		return 0;
	buf_reserve(&b, 4 * PASSWORD_MAX);	/* must not move: that would leave a copy */
	if (greet_read_file(path, &b) == -1) {
		if (!may_lack || errno != ENOENT)
			rc = util_cause(cause, "password file %s: %s", path, strerror(errno));
	} else {
		len = strcspn(buf_str(&b), "\n");
		if (len > 0 && b.data[len - 1] == '\r')
			len--;
		if (len == 0)
			rc = util_cause(cause, "password file %s is empty", path);
		g->password = xstrndup(b.data, len);
		g->password_len = len;
	}
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

int
greet_init(struct greet *g, const struct redis_options *opt, const char *name, bool worker,
    bool scripts, char **cause)
{
	*g = (struct greet){ .opt = opt, .name = name, .worker = worker,
		.scripts = worker && scripts };
	snprintf(g->database, sizeof(g->database), "%d", opt->database);
	return greet_read_password(g, cause);
}

void
greet_done(struct greet *g)
{
	greet_forget_password(g);
	xreplace(&g->cause, NULL);
}

static bool
greet_has_user(const struct greet *g)
{
	return g->opt->username != NULL && g->opt->username[0] != '\0';
}

/* Whether this step is part of the greeting: the same answer for both places. */
static bool
greet_wants(const struct greet *g, const struct greet_place *p)
{
	switch (p->step) {
	case GREET_AUTH:
		return g->password_len > 0 || greet_has_user(g);
	case GREET_SELECT:
		return g->opt->database != 0;
	case GREET_SETNAME:
		return g->name != NULL;
	case GREET_POLICY:
	case GREET_TIME:
		return g->worker;
	case GREET_SCRIPT:
		return g->scripts && script_table[p->script].name != NULL;
	case GREET_PING:
	case GREET_ID:
	case GREET_INFO_SERVER:
	case GREET_INFO_REPLICATION:
	case GREET_ROLE:
	case GREET_END:
		break;
	}
	return true;
}

/* Moves the place to the next step that is part of the greeting, or to GREET_END. */
static void
greet_skip(const struct greet *g, struct greet_place *p)
{
	while (!greet_wants(g, p))
		p->step++;
}

static void
greet_advance(const struct greet *g, struct greet_place *p)
{
	if (p->step == GREET_SCRIPT)
		p->script++;
	else
		p->step++;
	greet_skip(g, p);
}

static void
greet_build(const struct greet *g, struct words *w)
{
	static const char *const fixed[GREET_END][3] = {
		[GREET_AUTH] = { "AUTH" }, [GREET_SELECT] = { "SELECT" },
		[GREET_PING] = { "PING" }, [GREET_SETNAME] = { "CLIENT", "SETNAME" },
		[GREET_ID] = { "CLIENT", "ID" }, [GREET_INFO_SERVER] = { "INFO", "server" },
		[GREET_INFO_REPLICATION] = { "INFO", "replication" },
		[GREET_ROLE] = { "ROLE" }, [GREET_TIME] = { "TIME" },
		[GREET_POLICY] = { "CONFIG", "GET", "maxmemory-policy" },
		[GREET_SCRIPT] = { "SCRIPT", "LOAD" },
	};
	enum greet_step step = g->sent.step;

	for (size_t i = 0; i < ARRAY_LEN(fixed[step]) && fixed[step][i] != NULL; i++)
		words_add(w, fixed[step][i]);
	if (step == GREET_AUTH) {
		if (greet_has_user(g))
			words_add(w, g->opt->username);
		words_mem(w, g->password != NULL ? g->password : "", g->password_len);
	} else if (step == GREET_SELECT) {
		words_add(w, g->database);
	} else if (step == GREET_SETNAME) {
		words_add(w, g->name);
	} else if (step == GREET_SCRIPT) {
		words_mem(w, script_table[g->sent.script].text, script_table[g->sent.script].len);
	}
}

bool
greet_next(struct greet *g, struct words *w)
{
	words_clear(w);
	if (g->sent.step > GREET_AUTH)
		greet_forget_password(g);
	greet_skip(g, &g->sent);
	if (g->sent.step == GREET_END)
		return false;
	greet_build(g, w);
	greet_advance(g, &g->sent);
	return true;
}

static void
greet_info(const struct redisReply *r, const char *name, char *buf, size_t size)
{
	char *value = reply_info(r, name);

	snprintf(buf, size, "%s", value);
	free(value);
}

static void
greet_saw_role(struct greet *g, const char *role)
{
	bool sentinel = strcmp(role, "sentinel") == 0;

	if (role[0] == '\0')
		return;
	if (g->opt->is_sentinel != sentinel)
		g->cause = xstrdup(sentinel ? "is a Sentinel, not a Redis server" :
		    "is a Redis server, not a Sentinel");
	else if (!g->opt->any_role &&
	    (strcmp(role, "slave") == 0 || strcmp(role, "replica") == 0))
		g->cause = xstrdup("is a replica");
}

/* Whether every command would get this error. */
static bool
greet_is_fatal(const struct greet *g, const struct redisReply *r)
{
	enum reply_error e = reply_error(r);

	if (e == REPLY_OK)
		return false;
	if (g->answered.step == GREET_AUTH || g->answered.step == GREET_SELECT)
		return true;
	return e == REPLY_TRANSIENT || e == REPLY_ELSEWHERE ||
	    (e == REPLY_DENIED && strncmp(reply_text(r), "NOPERM", 6) != 0);
}

/* Keeps the facts of a reply that is no error. */
static void
greet_keep(struct greet *g, const struct redisReply *r)
{
	const char *s;
	char role[16], replid2[48];

	switch (g->answered.step) {
	case GREET_ID:
		g->id = reply_int(r, 0);
		break;
	case GREET_INFO_SERVER:
		greet_info(r, "run_id", g->run_id, sizeof(g->run_id));
		greet_info(r, "redis_version", g->version, sizeof(g->version));
		break;
	case GREET_INFO_REPLICATION:
		greet_info(r, "master_replid", g->replid, sizeof(g->replid));
		greet_info(r, "master_replid2", replid2, sizeof(replid2));
		g->inherits = replid2[strspn(replid2, "0")] != '\0';
		greet_info(r, "role", role, sizeof(role));
		greet_saw_role(g, role);
		break;
	case GREET_ROLE:
		if (g->cause == NULL && (s = reply_str(reply_at(r, 0), NULL)) != NULL)
			greet_saw_role(g, s);
		break;
	case GREET_POLICY:
		if ((s = reply_str(reply_at(r, 1), NULL)) != NULL)
			snprintf(g->maxmemory_policy, sizeof(g->maxmemory_policy), "%s", s);
		break;
	case GREET_TIME:
		if (reply_len(r) == 2)
			g->time = (double)reply_int(reply_at(r, 0), 0) +
			    (double)reply_int(reply_at(r, 1), 0) / 1e6;
		break;
	case GREET_AUTH:
	case GREET_SELECT:
	case GREET_PING:
	case GREET_SETNAME:
	case GREET_SCRIPT:
	case GREET_END:
		break;
	}
}

bool
greet_answer(struct greet *g, const struct redisReply *r)
{
	greet_skip(g, &g->answered);
	if (g->cause != NULL || g->answered.step == GREET_END)
		return true;
	if (greet_is_fatal(g, r))
		g->cause = xasprintf("%.200s", reply_text(r));
	else if (reply_error(r) == REPLY_OK)
		greet_keep(g, r);
	greet_advance(g, &g->answered);
	return g->cause != NULL || g->answered.step == GREET_END;
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
