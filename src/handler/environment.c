/*
 * The environment of a queue's handlers, with one entry for each name.  env and env_file
 * cannot set names that rqd sets itself.
 */
#include "handler/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handler/env_file.h"

#define PATH_ROOT	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define PATH_USER	"/usr/local/bin:/usr/bin:/bin"

struct environment {
	char	**entries;	/* owned, as each of them */
	size_t	  n;
};

/* Takes the entry, in place of the one of the same name. */
static void
put(struct environment *e, char *entry)
{
	size_t len = strcspn(entry, "=") + 1;

	for (size_t i = 0; i < e->n; i++) {
		if (strncmp(e->entries[i], entry, len) == 0) {
			free(e->entries[i]);
			e->entries[i] = entry;
			return;
		}
	}
	*APPEND(e->entries, e->n) = entry;
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

int
environment_make(const struct config *config, const struct queue_config *cfg,
    const struct identity *id, int env_file, struct buf *b)
{
	struct environment e = { .n = 0 };
	int r = 0;

	put_value(&e, "PATH", id->runs_as == 0 ? PATH_ROOT : PATH_USER);
	put_value(&e, "HOME", id->home);
	put_value(&e, "USER", id->name);
	put_value(&e, "LOGNAME", id->name);
	put_value(&e, "SHELL", id->shell);
	put_locale(&e);
	if (env_file != -1)
		r = env_file_read(env_file, put_theirs, &e);
	for (char **p = cfg->env; p != NULL && *p != NULL; p++)
		put_theirs(*p, &e);
	put_value(&e, "RQD_QUEUE", cfg->name);
	if (cfg->mode == MODE_EXEC && cfg->verdicts)
		put_value(&e, "RQD_VERDICT_FD", "3");
	if (config->file[0] != '\0')
		put_value(&e, "RQD_CONFIG", config->file);
	else
		put_value(&e, "RQD_SERVER", config->redis.servers[0]);
	if (config->overrides[0] != '\0')
		put_value(&e, "RQD_OPTIONS", config->overrides);
	for (size_t i = 0; i < e.n; i++) {
		if (r == 0)
			buf_add(b, e.entries[i], strlen(e.entries[i]) + 1);
		free(e.entries[i]);		/* keeps errno */
	}
	free(e.entries);
	return r == 0 ? (int)e.n : -1;
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
