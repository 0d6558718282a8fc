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

#include <sys/stat.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

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
	size_t keep;			/* the value without white space at its end */
	char quote = '\0';		/* the one that p is within */
	bool escaped;

	buf_clear(b);
	while (p < end && is_name_char(*p, b->len == 0))
		buf_addc(b, *p++);
	while (p < end && is_blank(*p))
		p++;
	if (b->len == 0 || p == end || *p++ != '=')
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
	return p < end ? p + 1 : p;
}

bool
env_file_is_reserved(const char *entry)
{
	static const char *const names[] = { "RQD_CHANNEL=", "RQD_ID=", "RQD_ATTEMPT=",
	    "RQD_BATCH=", "RQD_MAX_ATTEMPTS=" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strncmp(entry, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

/* A NUL anywhere is an error: it would end an entry before its end. */
int
env_file_parse(const char *p, size_t n, void (*set)(const char *, void *), void *arg)
{
	const char *end = n > 0 ? p + n : p;
	struct buf b = BUF_INIT;

	if (n > 0 && memchr(p, '\0', n) != NULL)
		p = NULL;
	while (p != NULL && p < end) {
		if (*p == '\n' || is_blank(*p)) {
			p++;
		} else if (*p == '#' || *p == ';') {
			p = memchr(p, '\n', (size_t)(end - p));
			p = p != NULL ? p : end;
		} else if ((p = take_entry(p, end, &b)) != NULL) {
			set(buf_str(&b), arg);
		}
	}
	buf_done(&b);
	if (p != NULL || n == 0)
		return 0;
	errno = EINVAL;
	return -1;
}

int
env_file_read(int fd, void (*set)(const char *, void *), void *arg)
{
	struct buf b = BUF_INIT;
	struct stat st;
	int r = fstat(fd, &st);

	if (r == 0 && !S_ISREG(st.st_mode)) {
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
