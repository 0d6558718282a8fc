/*
 * The syntax of env_file.
 *
 * A line is NAME=value.  White space around both is dropped.  A value may have
 * parts in single quotes (taken as they are) and in double quotes (\ before
 * " \ $ ` makes that character plain); outside quotes \ makes any next character
 * plain.  In quotes a value may go over several lines; a \ at the end of a line,
 * outside single quotes, joins it with the next.  Nothing is expanded.
 */
#include "handler/env_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

/* May run in a child that shares our memory: no library, no instruments. */
#define SHARED	__attribute__((__noinline__, __no_sanitize__("address"), \
    __no_sanitize__("undefined")))

SHARED static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

SHARED static bool
is_name_char(char c, bool first)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
	    (!first && c >= '0' && c <= '9');
}

SHARED static void
skip_blanks(struct env_text *t)
{
	while (t->p < t->end && is_blank(*t->p))
		t->p++;
}

SHARED static void
skip_line(struct env_text *t)
{
	while (t->p < t->end && *t->p != '\n')
		t->p++;
}

/* Takes the name and the "=". */
SHARED static bool
take_name(struct env_text *t)
{
	bool first = true;

	for (; t->p < t->end && is_name_char(*t->p, first); first = false)
		*t->out++ = *t->p++;
	skip_blanks(t);
	if (first || t->p == t->end || *t->p++ != '=')
		return false;
	*t->out++ = '=';
	return true;
}

/*
 * Takes the character after a backslash; within double quotes the backslash stays
 * before most characters.
 */
SHARED static void
take_escaped(struct env_text *t, bool quoted)
{
	char c;

	if (t->p == t->end)
		return;
	c = *t->p++;
	if (c == '\n')
		return;
	if (quoted && c != '"' && c != '\\' && c != '$' && c != '`')
		*t->out++ = '\\';
	*t->out++ = c;
}

/* Takes the text after an opening quote, and the closing one. */
SHARED static bool
take_quoted(struct env_text *t, char quote)
{
	char c;

	while (t->p < t->end) {
		c = *t->p++;
		if (c == quote)
			return true;
		if (c == '\\' && quote == '"')
			take_escaped(t, true);
		else
			*t->out++ = c;
	}
	return false;
}

/* Takes the value, to the end of the line.  keep: its end without trailing white space. */
SHARED static bool
take_value(struct env_text *t)
{
	char *keep = t->out, c;

	skip_blanks(t);
	while (t->p < t->end && (c = *t->p) != '\n') {
		t->p++;
		if ((c == '"' || c == '\'') && !take_quoted(t, c))
			return false;
		if (c == '\\')
			take_escaped(t, false);
		else if (c != '"' && c != '\'')
			*t->out++ = c;
		if (!is_blank(c))
			keep = t->out;
	}
	t->out = keep;
	return true;
}

/* A NUL anywhere is an error: it would end an entry before its end. */
SHARED void
env_file_begin(struct env_text *t, char *p, size_t n)
{
	*t = (struct env_text){ p, p + n, p, false };
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\0')
			t->bad = true;
	}
}

SHARED char *
env_file_next(struct env_text *t)
{
	char *entry = t->out;

	while (!t->bad && t->p < t->end) {
		if (*t->p == '\n' || is_blank(*t->p)) {
			t->p++;
			continue;
		}
		if (*t->p == '#' || *t->p == ';') {
			skip_line(t);
			continue;
		}
		if (!take_name(t) || !take_value(t)) {
			t->bad = true;
			return NULL;
		}
		if (t->p < t->end)
			t->p++;		/* the newline, which the NUL may overwrite */
		*t->out++ = '\0';
		return entry;
	}
	return NULL;
}

SHARED bool
env_file_is_reserved(const char *entry)
{
	static const char *const names[] = { "RQD_CHANNEL=", "RQD_ID=", "RQD_ATTEMPT=",
	    "RQD_BATCH=", "RQD_MAX_ATTEMPTS=" };
	const char *a, *b;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		for (a = names[i], b = entry; *a != '\0' && *a == *b; a++, b++)
			continue;
		if (*a == '\0')
			return true;
	}
	return false;
}

/* -- in a process of its own ---------------------------------------------------------- */

int
env_file_parse(const char *p, size_t n, void (*set)(const char *, void *),
    void *arg)
{
	char *copy = xmalloc(n + 1), *entry;
	struct env_text t;

	if (n > 0)
		memcpy(copy, p, n);
	env_file_begin(&t, copy, n);
	while ((entry = env_file_next(&t)) != NULL)
		set(entry, arg);
	free(copy);
	if (!t.bad)
		return 0;
	errno = EINVAL;
	return -1;
}

int
env_file_read_fd(int fd, void (*set)(const char *, void *), void *arg, struct stat *ret)
{
	struct buf b = BUF_INIT;
	int r = fstat(fd, ret);

	if (r == 0 && !S_ISREG(ret->st_mode)) {
		errno = EINVAL;
		r = -1;
	}
	if (r == 0)
		r = buf_read(&b, fd, ENV_FILE_MAX);
	if (r == 0)
		r = env_file_parse(b.data, b.len, set, arg);
	buf_done(&b);		/* free(3) keeps errno */
	return r;
}

/* Opens without blocking: a fifo would stop the daemon before it can see that it is one. */
int
env_file_read(const char *path, void (*set)(const char *, void *), void *arg,
    struct stat *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r = fd == -1 ? -1 : env_file_read_fd(fd, set, arg, ret);

	fd_close(&fd);
	return r;
}

/* Whether root owns it, and nobody else may write to it. */
static bool
is_roots(int fd, bool folder)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == 0 &&
	    (folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)) &&
	    (st.st_mode & S_IWOTH) == 0 && (st.st_gid == 0 || (st.st_mode & S_IWGRP) == 0);
}

int
env_file_open_roots(const char *path)
{
	char *copy = xstrdup(path), *rest = copy, *word;
	int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), next;
	bool last;

	while (at != -1 && (word = strsep(&rest, "/")) != NULL) {
		if (*word == '\0' || strcmp(word, ".") == 0)
			continue;
		last = rest == NULL;
		next = is_roots(at, true) && strcmp(word, "..") != 0 ?
		    openat(at, word, O_CLOEXEC | O_NOFOLLOW |
		    (last ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY)) : -1;
		(void)close(at);
		at = next;
		if (last && at != -1 && !is_roots(at, false))
			fd_close(&at);
	}
	free(copy);
	return at;
}
