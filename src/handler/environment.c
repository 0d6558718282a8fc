/*
 * The environment of a queue's handlers.
 *
 * execve(2) gets `entries`.  The first ENVIRONMENT_WORDS slots are for the message; its
 * words are in the last of them.  The fixed part follows, with one entry for each name.
 * env and env_file cannot set names that rqd sets itself.
 *
 * Root must not read a file that the queue's user could have replaced.  So a launcher
 * reads an env_file only if it is root's own.  Otherwise the child reads it, as its
 * user.  The entries that it may replace, the weak ones, come first.
 */
#include "handler/environment.h"

#include <sys/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "handler/env_file.h"

#define PATH_ROOT	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define PATH_USER	"/usr/local/bin:/usr/bin:/bin"

struct environment {
	const struct queue_config *cfg;
	bool		  guarded;
	bool		  left;		/* the child must read env_file */
	struct stat	  file;		/* of env_file when it was read; valid unless left */
	char		**entries;	/* ENVIRONMENT_WORDS, then the fixed ones, then NULL */
	size_t		  n;		/* without the NULL */
	size_t		  cap;
	size_t		  weak_end;	/* the child's entries replace those before it */
	size_t		  words;	/* of the last message */
};

static size_t
name_len(const char *entry)
{
	return strcspn(entry, "=");
}

static void
append(struct environment *e, char *entry)
{
	if (e->n + 1 >= e->cap) {
		e->cap = e->cap * 2;
		e->entries = xreallocarray(e->entries, e->cap,
		    sizeof(*e->entries));
	}
	e->entries[e->n++] = entry;
	e->entries[e->n] = NULL;
}

static void
take_out(struct environment *e, size_t i)
{
	free(e->entries[i]);
	memmove(&e->entries[i], &e->entries[i + 1], (e->n - i) * sizeof(*e->entries));
	e->n--;
	if (i < e->weak_end)
		e->weak_end--;
}

/* Takes the entry, and drops the one of the same name. */
static void
put(struct environment *e, char *entry)
{
	size_t i, len = name_len(entry);

	for (i = ENVIRONMENT_WORDS; i < e->n; i++) {
		if (name_len(e->entries[i]) == len &&
		    strncmp(e->entries[i], entry, len) == 0) {
			take_out(e, i);
			break;
		}
	}
	append(e, entry);
}

static void
put_value(struct environment *e, const char *name, const char *value)
{
	put(e, xasprintf("%s=%s", name, value));
}

/* Adds an entry of env_file or env. */
static void
put_theirs(const char *entry, void *arg)
{
	if (!env_file_is_reserved(entry))
		put(arg, xstrdup(entry));
}

static void
put_locale(struct environment *e)
{
	static const char *const names[] = { "LANG=", "LC_", "TZ=" };
	char **p;

	for (p = environ; p != NULL && *p != NULL; p++) {
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			if (strncmp(*p, names[i], strlen(names[i])) == 0 &&
			    strchr(*p, '=') != NULL)
				put(e, xstrdup(*p));
		}
	}
}

static void
put_identity(struct environment *e, const struct identity *id)
{
	put_value(e, "PATH", id->runs_as == 0 ? PATH_ROOT : PATH_USER);
	put_value(e, "HOME", id->home);
	put_value(e, "USER", id->name);
	put_value(e, "LOGNAME", id->name);
	put_value(e, "SHELL", id->shell);
}

static int
put_file(struct environment *e)
{
	const char *path = e->cfg->env_file;
	int fd, r;

	e->weak_end = e->n;
	if (path[0] == '\0')
		return 0;
	if (!e->guarded)
		return env_file_read(path, put_theirs, e, &e->file);
	fd = env_file_open_roots(path);
	e->left = fd == -1;
	if (e->left)
		return 0;
	r = env_file_read_fd(fd, put_theirs, e, &e->file);
	fd_close(&fd);
	return r;
}

static int
put_all(struct environment *e, const struct handler_env *env,
    const struct identity *id)
{
	const struct queue_config *cfg = e->cfg;
	char **p;

	put_identity(e, id);
	put_locale(e);
	if (put_file(e) == -1)
		return -1;
	for (p = cfg->env; p != NULL && *p != NULL; p++)
		put_theirs(*p, e);
	put_value(e, "RQD_QUEUE", cfg->name);
	if (cfg->mode == MODE_EXEC && cfg->verdicts)
		put_value(e, "RQD_VERDICT_FD", "3");
	if (env->config_file != NULL)
		put_value(e, "RQD_CONFIG", env->config_file);
	if (env->server != NULL)
		put_value(e, "RQD_SERVER", env->server);
	if (env->options != NULL)
		put_value(e, "RQD_OPTIONS", env->options);
	return 0;
}

int
environment_new(const struct handler_env *env, const struct queue_config *cfg,
    const struct identity *id, bool guarded, struct environment **ret)
{
	struct environment *e = NEW(struct environment, .cfg = cfg, .guarded = guarded,
	    .cap = 2 * ENVIRONMENT_WORDS + 32, .n = ENVIRONMENT_WORDS);

	e->entries = xcalloc(e->cap, sizeof(*e->entries));
	if (put_all(e, env, id) == -1) {
		environment_free(e);
		return -1;
	}
	*ret = e;
	return 0;
}

void
environment_free(struct environment *e)
{
	if (e == NULL)
		return;
	for (size_t i = ENVIRONMENT_WORDS; i < e->n; i++)
		free(e->entries[i]);
	free(e->entries);
	free(e);
}

static bool
is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	    a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	    a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	    a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	    a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

bool
environment_is_stale(const struct environment *e)
{
	struct stat st;
	bool stale;
	int fd;

	if (e->cfg->env_file[0] == '\0')
		return false;
	if (!e->guarded)
		return stat(e->cfg->env_file, &st) == -1 || !is_same_file(&st, &e->file);
	fd = env_file_open_roots(e->cfg->env_file);
	if (fd == -1)
		return !e->left;
	stale = e->left || fstat(fd, &st) == -1 || !is_same_file(&st, &e->file);
	(void)close(fd);
	return stale;
}

char **
environment_with(struct environment *e, char *words, size_t len)
{
	char *p, *end = words + len;
	size_t n = 0, i;

	for (p = words; p < end && n < ENVIRONMENT_WORDS; p += strlen(p) + 1)
		n++;
	e->words = n;
	for (p = words, i = ENVIRONMENT_WORDS - n; i < ENVIRONMENT_WORDS; p += strlen(p) + 1)
		e->entries[i++] = p;
	return &e->entries[ENVIRONMENT_WORDS - n];
}

const char *
environment_left_file(const struct environment *e, size_t *first, size_t *weak)
{
	*first = e->words;
	*weak = e->weak_end - ENVIRONMENT_WORDS;
	return e->left ? e->cfg->env_file : NULL;
}

static void
add_word(struct buf *b, const char *name, const char *value)
{
	buf_printf(b, "%s=%s", name, value);
	buf_addc(b, '\0');
}

void
environment_words(struct buf *b, const struct message *msg, unsigned batch,
    const struct queue_config *cfg)
{
	char number[24];

	if (msg != NULL && msg->channel != NULL)
		add_word(b, "RQD_CHANNEL", msg->channel);
	if (msg != NULL) {
		add_word(b, "RQD_ID", msg->id);
		(void)snprintf(number, sizeof(number), "%u", msg->attempts + 1);
		add_word(b, "RQD_ATTEMPT", number);
	}
	if (batch > 0) {
		(void)snprintf(number, sizeof(number), "%u", batch);
		add_word(b, "RQD_BATCH", number);
	}
	(void)snprintf(number, sizeof(number), "%d",
	    msg != NULL ? msg->cfg->max_attempts : cfg->max_attempts);
	add_word(b, "RQD_MAX_ATTEMPTS", number);
}
