/*
 * The environment of a queue's handlers, with one entry for each name.  env and env_file
 * cannot set names that rqd sets itself.
 *
 * In env_file a line is NAME=value, as in systemd's EnvironmentFile=.  White space around both is
 * dropped.  A value may have parts in single quotes (taken as they are) and in double quotes (\
 * before " \ $ ` makes that character plain); outside quotes \ makes any next character plain.
 * In quotes a value may go over several lines; a \ at the end of a line, outside single quotes,
 * joins it with the next.  Nothing is expanded.  A byte order mark at the beginning is skipped.
 *
 * What is wrong with a line crosses two processes as a number in place of an errno, above all
 * errnos: the line, and which of the faults below.
 */
#include "handler/environment.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_ROOT	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define PATH_USER	"PATH=/usr/local/bin:/usr/bin:/bin"

#define BYTE_ORDER_MARK	"\xef\xbb\xbf"

/* Limits of execve(2): of all strings and pointers, and of one string with its NUL. */
#define ARGUMENTS_LEAST	((size_t)128 * 1024)
#define ARGUMENTS_MOST	((size_t)6 * 1024 * 1024)
#define STRING_PAGES	32
#define ROOM		((size_t)8 * 1024)	/* for the variables of any message */

/* -- env_file -------------------------------------------------------------------------- */

enum fault { FAULT_EXPORT, FAULT_NAME, FAULT_NO_EQUALS, FAULT_QUOTE, FAULT_NUL, FAULTS };

#define FAULTY		(1 << 24)	/* above errnos; below it the line and the fault */

static int
set_fault(const char *text, const char *at, enum fault fault)
{
	int line = 1;

	for (; text < at; text++)
		line += *text == '\n';
	errno = FAULTY + line * FAULTS + (int)fault;
	return -1;
}

const char *
environment_strerror(int error)
{
	static const char *const texts[] = {
		[FAULT_EXPORT] = "\"export\" is of shells: write NAME=value alone",
		[FAULT_NAME] = "the name of a variable begins with a letter or _, and has only "
		    "letters, digits and _: write NAME=value",
		[FAULT_NO_EQUALS] = "there is no \"=\": write NAME=value, or # before a "
		    "comment",
		[FAULT_QUOTE] = "a quote that begins in this entry is not closed: close it, or "
		    "write \\ before a quote that belongs to the value",
		[FAULT_NUL] = "there is a NUL byte: save the file as UTF-8 text",
	};

	return error < FAULTY ? strerror(error) : texts[(error - FAULTY) % FAULTS];
}

char *
environment_error(const char *file, int error)
{
	if (error == EINVAL)
		return xasprintf("%s: is not a regular file", file);
	if (error == EFBIG)
		return xasprintf("%s: is larger than 256 KiB", file);
	if (error < FAULTY)
		return xasprintf("%s: %s", file, strerror(error));
	return xasprintf("%s:%d: %s", file, (error - FAULTY) / FAULTS,
	    environment_strerror(error));
}

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

/* Why there is no entry at p, whose name ends at `name`. */
static enum fault
name_fault(const char *p, const char *name, const char *end)
{
	const char *q;

	if (name - p == 6 && memcmp(p, "export", 6) == 0 && name < end && is_blank(*name))
		return FAULT_EXPORT;
	for (q = p; q < end && *q != '\n'; q++) {
		if (*q == '=')
			return FAULT_NAME;
	}
	return FAULT_NO_EQUALS;
}

/*
 * Takes the entry at *at, and its newline.  -1 and *fault: this is no entry.  Within double
 * quotes a backslash stays before most characters.
 */
static int
take_entry(const char **at, const char *end, struct buf *b, enum fault *fault)
{
	const char *p = *at, *name;
	size_t begin = b->len, keep;	/* keep: without white space at the value's end */
	char quote = '\0';		/* the one that p is within */
	bool escaped;

	while (p < end && is_name_char(*p, b->len == begin))
		buf_addc(b, *p++);
	name = p;
	while (p < end && is_blank(*p))
		p++;
	if (b->len == begin || p == end || *p++ != '=') {
		*fault = name_fault(*at, name, end);
		return -1;
	}
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
	if (quote != '\0') {
		*fault = FAULT_QUOTE;
		return -1;
	}
	b->len = keep;
	buf_addc(b, '\0');
	*at = p < end ? p + 1 : p;
	return 0;
}

/* A NUL anywhere is an error: it would end an entry before its end. */
int
environment_parse(const char *text, size_t n, struct buf *b)
{
	const char *p = text, *end = n > 0 ? p + n : p, *nul;
	enum fault fault;

	nul = n > 0 ? memchr(p, '\0', n) : NULL;
	if (nul != NULL)
		return set_fault(text, nul, FAULT_NUL);
	if (n >= 3 && memcmp(p, BYTE_ORDER_MARK, 3) == 0)
		p += 3;
	while (p < end) {
		if (*p == '\n' || is_blank(*p)) {
			p++;
		} else if (*p == '#' || *p == ';') {
			p = memchr(p, '\n', (size_t)(end - p));
			p = p != NULL ? p : end;
		} else if (take_entry(&p, end, b, &fault) == -1) {
			return set_fault(text, p, fault);
		}
	}
	return 0;
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

/*
 * Whether the environment and the command line leave room for a message's variables; the
 * kernel counts the program's name, too.
 */
static bool
fits(const struct environment *e, const struct queue_config *cfg)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), most = ARGUMENTS_MOST, len, sum = ROOM;
	struct rlimit stack;

	if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur / 4 < most)
		most = (size_t)stack.rlim_cur / 4;
	if (most < ARGUMENTS_LEAST)
		most = ARGUMENTS_LEAST;
	for (size_t i = 0; i < e->n; i++) {
		len = strlen(e->entries[i]) + 1;
		sum += len + sizeof(char *);
		if (len > STRING_PAGES * page)
			return false;
	}
	for (char *const *p = cfg->command; *p != NULL; p++) {
		len = strlen(*p) + 1;
		sum += (p == cfg->command ? 2 : 1) * len + sizeof(char *);
		if (len > STRING_PAGES * page)
			return false;
	}
	return sum <= most;
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
	/* As cron(8): the shell of a service's user is often nologin, and programs execute it. */
	put(&e, xstrdup("SHELL=/bin/sh"));
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
	if (r == 0 && !fits(&e, cfg)) {
		errno = E2BIG;
		r = -1;
	}
	for (size_t i = 0; i < e.n; i++) {
		if (r == 0)
			buf_add(b, e.entries[i], strlen(e.entries[i]) + 1);
		free(e.entries[i]);		/* keeps errno */
	}
	free(e.entries);
	buf_done(&theirs);
	return r == 0 ? (int)e.n : -1;
}
