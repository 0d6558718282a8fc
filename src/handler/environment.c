/*
 * The environment of a queue's handlers.
 *
 * entries is what execve(2) gets.  The first nmine slots belong to the message
 * and point at fixed buffers, written over for each; after them comes the
 * fixed part, sorted out by name when it is made.  A name that rqd sets itself
 * cannot be set by env or env_file.
 */
#include "handler/environment.h"

#include <sys/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handler/env_file.h"

#define PATH_ROOT	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define PATH_USER	"/usr/local/bin:/usr/bin:/bin"

/* Those that a message may lack come first: execve(2) then gets what follows. */
enum { MINE_CHANNEL, MINE_ID, MINE_ATTEMPT, MINE_MAX_ATTEMPTS, MINE_COUNT };

struct environment {
	const struct queue_config *cfg;
	struct stat	  file;		/* of env_file when it was read; valid where cfg names one */
	char		 *channel;	/* owned; NULL: the last message had none */
	char		  id[sizeof("RQD_ID=") + MESSAGE_ID_MAX];
	char		  attempt[sizeof("RQD_ATTEMPT=") + 10];
	char		  max_attempts[sizeof("RQD_MAX_ATTEMPTS=") + 11];
	char		**entries;	/* MINE_COUNT, then the fixed ones, then NULL */
	size_t		  n;		/* without the NULL */
	size_t		  cap;
};

static size_t
name_len(const char *entry)
{
	return strcspn(entry, "=");
}

static bool
is_of_message(const char *entry)
{
	static const char *const names[] = { "RQD_CHANNEL=", "RQD_ID=", "RQD_ATTEMPT=",
	    "RQD_MAX_ATTEMPTS=" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		if (strncmp(entry, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

/* Takes entry; what had its name is replaced. */
static void
put(struct environment *e, char *entry)
{
	size_t i, len = name_len(entry);

	for (i = MINE_COUNT; i < e->n; i++) {
		if (name_len(e->entries[i]) == len &&
		    strncmp(e->entries[i], entry, len) == 0) {
			free(e->entries[i]);
			e->entries[i] = entry;
			return;
		}
	}
	if (e->n + 1 >= e->cap) {
		e->cap = e->cap * 2;
		e->entries = xreallocarray(e->entries, e->cap,
		    sizeof(*e->entries));
	}
	e->entries[e->n++] = entry;
	e->entries[e->n] = NULL;
}

static void
put_value(struct environment *e, const char *name, const char *value)
{
	put(e, xasprintf("%s=%s", name, value));
}

/* What is the administrator's: env_file and env. */
static void
put_theirs(const char *entry, void *arg)
{
	if (!is_of_message(entry))
		put(arg, xstrdup(entry));
}

static void
put_locale(struct environment *e)
{
	static const char *const names[] = { "LANG=", "LC_", "TZ=" };
	char **p;
	size_t i;

	for (p = environ; p != NULL && *p != NULL; p++) {
		for (i = 0; i < ARRAY_LEN(names); i++) {
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
put_all(struct environment *e, const struct handler_env *env,
    const struct identity *id)
{
	const struct queue_config *cfg = e->cfg;
	char **p;

	put_identity(e, id);
	put_locale(e);
	if (cfg->env_file[0] != '\0' &&
	    env_file_read(cfg->env_file, put_theirs, e, &e->file) == -1)
		return -1;
	for (p = cfg->env; p != NULL && *p != NULL; p++)
		put_theirs(*p, e);
	put_value(e, "RQD_QUEUE", cfg->name);
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
    const struct identity *id, struct environment **ret)
{
	struct environment *e = xcalloc(1, sizeof(*e));

	e->cfg = cfg;
	e->cap = 32;
	e->n = MINE_COUNT;
	e->entries = xcalloc(e->cap, sizeof(*e->entries));
	e->entries[MINE_ID] = e->id;
	e->entries[MINE_ATTEMPT] = e->attempt;
	e->entries[MINE_MAX_ATTEMPTS] = e->max_attempts;
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
	size_t i;

	if (e == NULL)
		return;
	for (i = MINE_COUNT; i < e->n; i++)
		free(e->entries[i]);
	free(e->entries);
	free(e->channel);
	free(e);
}

bool
environment_is_stale(const struct environment *e)
{
	const struct stat *old = &e->file;
	struct stat st;

	if (e->cfg->env_file[0] == '\0')
		return false;
	return stat(e->cfg->env_file, &st) == -1 || st.st_dev != old->st_dev ||
	    st.st_ino != old->st_ino || st.st_size != old->st_size ||
	    st.st_mtim.tv_sec != old->st_mtim.tv_sec ||
	    st.st_mtim.tv_nsec != old->st_mtim.tv_nsec ||
	    st.st_ctim.tv_sec != old->st_ctim.tv_sec ||
	    st.st_ctim.tv_nsec != old->st_ctim.tv_nsec;
}

char **
environment_for(struct environment *e, const struct message *msg)
{
	int max = msg != NULL ? msg->cfg->max_attempts : e->cfg->max_attempts;

	(void)snprintf(e->max_attempts, sizeof(e->max_attempts),
	    "RQD_MAX_ATTEMPTS=%d", max);
	if (msg == NULL)
		return &e->entries[MINE_MAX_ATTEMPTS];
	(void)snprintf(e->id, sizeof(e->id), "RQD_ID=%s", msg->id);
	(void)snprintf(e->attempt, sizeof(e->attempt), "RQD_ATTEMPT=%u",
	    msg->attempts + 1);
	free(e->channel);
	e->channel = NULL;
	if (msg->channel == NULL)
		return &e->entries[MINE_ID];
	e->channel = xasprintf("RQD_CHANNEL=%s", msg->channel);
	e->entries[MINE_CHANNEL] = e->channel;
	return e->entries;
}
