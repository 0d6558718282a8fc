/*
 * The environment of a queue's handlers, with one entry for each name.  env and env_file
 * cannot set names that rqd sets itself.
 *
 * In env_file a line is NAME=value, as in systemd's EnvironmentFile=.  White space around both is
 * dropped.  A value may have parts in single quotes (taken as they are) and in double quotes (\
 * before " \ $ ` makes that character plain); outside quotes \ makes any next character plain.
 * In quotes a value may go over several lines; a \ at the end of a line, outside single quotes,
 * joins it with the next.  Nothing is expanded.
 */
#include "handler/environment.h"

#include <sys/stat.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_ROOT	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define PATH_USER	"PATH=/usr/local/bin:/usr/bin:/bin"

/* -- env_file -------------------------------------------------------------------------- */

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool
is_name_char(char c, bool first)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
	    (!first && c >= '0' && c <= '9');
}

/*
 * Takes the entry at p, and its newline.  The next character, or NULL: this is no entry.
 * Within double quotes a backslash stays before most characters.
 */
static const char *
take_entry(const char *p, const char *end, struct buf *b)
{
	size_t begin = b->len, keep;	/* keep: without white space at the value's end */
	char quote = '\0';		/* the one that p is within */
	bool escaped;

	while (p < end && is_name_char(*p, b->len == begin))
		buf_addc(b, *p++);
	while (p < end && is_blank(*p))
		p++;
	if (b->len == begin || p == end || *p++ != '=')
		return NULL;
	buf_addc(b, '=');
	keep = b->len;
	while (p < end && is_blank(*p))
		p++;
	for (; p < end && (quote != '\0' || *p != '\n'); p++) {
		escaped = *p == '\\' && quote != '\'';
		if (escaped && ++p == end) {
			keep = b->len;
			break;
		}
		if (!escaped && quote != '\0' && *p == quote) {
			quote = '\0';
		} else if (!escaped && quote == '\0' && (*p == '"' || *p == '\'')) {
			quote = *p;
		} else if (!escaped || *p != '\n') {
			if (escaped && quote == '"' && strchr("\"\\$`", *p) == NULL)
				buf_addc(b, '\\');
			buf_addc(b, *p);
		}
		if (escaped || quote != '\0' || !is_blank(*p))
			keep = b->len;
	}
	if (quote != '\0')
		return NULL;
	b->len = keep;
	buf_addc(b, '\0');
	return p < end ? p + 1 : p;
}

/* A NUL anywhere is an error: it would end an entry before its end. */
int
environment_parse(const char *p, size_t n, struct buf *b)
{
	const char *end = n > 0 ? p + n : p;

	if (n > 0 && memchr(p, '\0', n) != NULL)
		p = NULL;
	while (p != NULL && p < end) {
		if (*p == '\n' || is_blank(*p)) {
			p++;
		} else if (*p == '#' || *p == ';') {
			p = memchr(p, '\n', (size_t)(end - p));
			p = p != NULL ? p : end;
		} else {
			p = take_entry(p, end, b);
		}
	}
	if (p != NULL || n == 0)
		return 0;
	errno = EINVAL;
	return -1;
}

static int
read_file(int fd, struct buf *entries)
{
	struct buf b = BUF_INIT;
	struct stat st;
	int r = fstat(fd, &st);

	if (r == 0 && !S_ISREG(st.st_mode)) {
		errno = EINVAL;
		r = -1;
	}
	if (r == 0)
		r = buf_read(&b, fd, ENVIRONMENT_FILE_MAX);
	if (r == 0)
		r = environment_parse(b.data, b.len, entries);
	buf_done(&b);		/* free(3) keeps errno */
	return r;
}

/* -- the whole ------------------------------------------------------------------------- */

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

/* Moves the entry of this name to the end; if there is none, adds the name alone. */
static void
put_last(struct environment *e, const char *member)
{
	size_t len = strcspn(member, "="), i = 0;
	char *entry;

	while (i < e->n && strncmp(e->entries[i], member, len + 1) != 0)
		i++;
	if (i == e->n) {
		*APPEND(e->entries, e->n) = xstrndup(member, len);
		return;
	}
	entry = e->entries[i];
	memmove(&e->entries[i], &e->entries[i + 1], (e->n - i - 1) * sizeof(entry));
	e->entries[e->n - 1] = entry;
}

static bool
begins(const char *entry, const char *const *names)
{
	while (*names != NULL && strncmp(entry, *names, strlen(*names)) != 0)
		names++;
	return *names != NULL;
}

/* Adds an entry of env_file or env, unless only rqd may set it. */
static void
put_theirs(struct environment *e, const char *entry)
{
	static const char *const ours[] = { "RQD_CHANNEL=", "RQD_ID=", "RQD_ATTEMPT=",
	    "RQD_BATCH=", "RQD_DEADLINE=", "RQD_MAX_ATTEMPTS=", "RQD_SAVED=", NULL };

	if (!begins(entry, ours))
		put(e, xstrdup(entry));
}

int
environment_make(const struct config *config, const struct queue_config *cfg,
    const struct identity *id, int env_file, struct buf *b)
{
	static const char *const locale[] = { "LANG=", "LC_", "TZ=", NULL };
	struct environment e = { .n = 0 };
	struct buf theirs = BUF_INIT;
	int r = 0;

	put(&e, xstrdup(id->runs_as == 0 ? PATH_ROOT : PATH_USER));
	put(&e, xasprintf("HOME=%s", id->home));
	put(&e, xasprintf("USER=%s", id->name));
	put(&e, xasprintf("LOGNAME=%s", id->name));
	put(&e, xasprintf("SHELL=%s", id->shell));
	for (char **p = environ; p != NULL && *p != NULL; p++) {
		if (begins(*p, locale) && strchr(*p, '=') != NULL)
			put(&e, xstrdup(*p));
	}
	if (env_file != -1)
		r = read_file(env_file, &theirs);
	for (size_t at = 0; r == 0 && at < theirs.len; at += strlen(theirs.data + at) + 1)
		put_theirs(&e, theirs.data + at);
	for (char **p = cfg->env; p != NULL && *p != NULL; p++)
		put_theirs(&e, *p);
	put(&e, xasprintf("RQD_QUEUE=%s", cfg->name));
	if (cfg->mode == MODE_EXEC && cfg->verdicts)
		put(&e, xstrdup("RQD_VERDICT_FD=3"));
	if (config->file[0] != '\0')
		put(&e, xasprintf("RQD_CONFIG=%s", config->file));
	else
		put(&e, xasprintf("RQD_SERVER=%s", config->redis.servers[0]));
	if (config->overrides[0] != '\0')
		put(&e, xasprintf("RQD_OPTIONS=%s", config->overrides));
	for (size_t i = 0; i < config_members(cfg); i++)
		put_last(&e, cfg->env_message[i]);
	for (size_t i = 0; i < e.n; i++) {
		if (r == 0)
			buf_add(b, e.entries[i], strlen(e.entries[i]) + 1);
		free(e.entries[i]);		/* keeps errno */
	}
	free(e.entries);
	buf_done(&theirs);
	return r == 0 ? (int)e.n : -1;
}
