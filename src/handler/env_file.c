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
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

struct text {
	const char	*p;
	const char	*end;
};

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

static void
skip_blanks(struct text *t)
{
	while (t->p < t->end && is_blank(*t->p))
		t->p++;
}

static void
skip_line(struct text *t)
{
	while (t->p < t->end && *t->p != '\n')
		t->p++;
}

/* Up to and with the "=". */
static bool
take_name(struct text *t, struct buf *out)
{
	bool first = true;

	for (; t->p < t->end && is_name_char(*t->p, first); first = false)
		buf_addc(out, *t->p++);
	skip_blanks(t);
	if (first || t->p == t->end || *t->p++ != '=')
		return false;
	buf_addc(out, '=');
	return true;
}

/* After a backslash; within double quotes it is kept before most characters. */
static void
take_escaped(struct text *t, struct buf *out, bool quoted)
{
	char c;

	if (t->p == t->end)
		return;
	c = *t->p++;
	if (c == '\n')
		return;
	if (quoted && strchr("\"\\$`", c) == NULL)
		buf_addc(out, '\\');
	buf_addc(out, c);
}

/* After an opening quote, up to and with the closing one. */
static bool
take_quoted(struct text *t, struct buf *out, char quote)
{
	char c;

	while (t->p < t->end) {
		c = *t->p++;
		if (c == quote)
			return true;
		if (c == '\\' && quote == '"')
			take_escaped(t, out, true);
		else
			buf_addc(out, c);
	}
	return false;
}

/* Up to the end of the line.  keep: as much of out is not trailing white space. */
static bool
take_value(struct text *t, struct buf *out)
{
	size_t keep = out->len;
	char c;

	skip_blanks(t);
	while (t->p < t->end && (c = *t->p) != '\n') {
		t->p++;
		if ((c == '"' || c == '\'') && !take_quoted(t, out, c))
			return false;
		if (c == '\\')
			take_escaped(t, out, false);
		else if (c != '"' && c != '\'')
			buf_addc(out, c);
		if (!is_blank(c))
			keep = out->len;
	}
	out->len = keep;
	return true;
}

static int
parse(struct text *t, struct buf *entry, void (*set)(const char *, void *),
    void *arg)
{
	while (t->p < t->end) {
		if (*t->p == '\n' || is_blank(*t->p)) {
			t->p++;
			continue;
		}
		if (*t->p == '#' || *t->p == ';') {
			skip_line(t);
			continue;
		}
		buf_clear(entry);
		if (!take_name(t, entry) || !take_value(t, entry)) {
			errno = EINVAL;
			return -1;
		}
		set(buf_str(entry), arg);
	}
	return 0;
}

int
env_file_parse(const char *p, size_t n, void (*set)(const char *, void *),
    void *arg)
{
	struct text t = { .p = p, .end = p + n };
	struct buf entry = BUF_INIT;
	int r;

	if (n == 0)
		return 0;
	if (memchr(p, '\0', n) != NULL) {
		errno = EINVAL;
		return -1;
	}
	r = parse(&t, &entry, set, arg);
	buf_done(&entry);
	return r;
}

/* Not blocking, or a fifo would stop the daemon before we see that it is one. */
int
env_file_read(const char *path, void (*set)(const char *, void *), void *arg,
    struct stat *ret)
{
	struct buf b = BUF_INIT;
	struct stat st;
	int fd, r, error;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd == -1)
		return -1;
	r = fstat(fd, &st);
	if (r == 0 && !S_ISREG(st.st_mode)) {
		errno = EINVAL;
		r = -1;
	}
	if (r == 0)
		r = buf_read(&b, fd, ENV_FILE_MAX);
	if (r == 0)
		r = env_file_parse(b.data, b.len, set, arg);
	error = errno;
	(void)close(fd);
	buf_done(&b);
	if (r == 0)
		*ret = st;
	errno = error;
	return r;
}
