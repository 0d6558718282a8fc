/*
 * The text for a start that failed.  execve(2) fails with ENOENT for a missing file,
 * and also for a missing interpreter, so this looks at the first line of the file.
 *
 * It reads the file after the start has failed, perhaps as another user.  If it finds
 * no fault, it returns the text of the error number.
 */
#include "handler/start_error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

#define FIRST_LINE_MAX	256	/* the kernel's BINPRM_BUF_SIZE */
#define BYTE_ORDER_MARK	"\xef\xbb\xbf"

/*
 * Reads the beginning of a file; returns its length, or -1 if it is no readable regular
 * file.
 */
static ssize_t
read_beginning(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = -1;
	struct stat st;

	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = read(fd, text, size);
	close(fd);
	return n;
}

/* Whether the file holds text, or nothing: the kernel executes neither without "#!". */
static bool
is_text(const char *begin, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)begin[i] < ' ' && strchr("\t\n\r\f", begin[i]) == NULL)
			return false;
		if (begin[i] == '\0')
			return false;
	}
	return true;
}

/* line is what follows "#!", without the newline. */
static char *
explain_interpreter(char *line)
{
	size_t len = strlen(line);
	struct stat st;
	char *path;

	if (len > 0 && line[len - 1] == '\r')
		return xstrdup("its first line ends with a carriage return: "
		    "save the file with Unix line ends");
	path = line + strspn(line, " \t");
	path[strcspn(path, " \t")] = '\0';
	if (path[0] == '\0')
		return xstrdup("its first line names no interpreter: write #!/bin/sh, for example");
	if (stat(path, &st) == -1)
		return xasprintf("its first line names the interpreter \"%s\": %s: "
		    "install it, or correct that line", path, strerror(errno));
	return NULL;
}

char *
start_error_first_line(const char *path)
{
	char text[FIRST_LINE_MAX + 1];
	ssize_t len = read_beginning(path, text, FIRST_LINE_MAX);
	char *newline;

	if (len < 0)
		return NULL;
	text[len] = '\0';
	if (strncmp(text, BYTE_ORDER_MARK "#!", 5) == 0)
		return xstrdup("a byte order mark stands before its #!: "
		    "save the file as UTF-8 without one");
	if (strncmp(text, "#!", 2) != 0)
		return !is_text(text, (size_t)len) ? NULL :
		    xstrdup("it has no #! line: begin it with #!/bin/sh, for example");
	newline = strchr(text, '\n');
	if (newline != NULL)
		*newline = '\0';
	else if (len == FIRST_LINE_MAX)
		return NULL;
	return explain_interpreter(text + 2);
}

/* Denied to whom, see identity.h: folders on the way count, too. */
static char *
explain_denied(const struct queue_config *q, const char *path)
{
	const char *user = q->user[0] != '\0' ? q->user : "that runs rqd";
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return xasprintf("command %s: is a directory", path);
	return xasprintf("command %s: Permission denied: chmod 755 it, and let the user %s enter "
	    "each folder above it", path, user);
}

static char *
explain_exec(const struct queue_config *q, int error)
{
	const char *path = q->command[0];
	struct stat st;
	char *why, *text;

	if (error == EACCES)
		return explain_denied(q, path);
	if (error == ENOENT && stat(path, &st) == -1)
		return xasprintf("command %s: %s", path, strerror(errno));
	why = error == ENOENT || error == ENOEXEC ? start_error_first_line(path) : NULL;
	text = xasprintf("command %s: %s", path, why != NULL ? why : strerror(error));
	free(why);
	return text;
}

char *
start_error_text(const struct queue_config *q, const char *step, int error)
{
	if (step == NULL)
		return xasprintf("start: %s", strerror(error));
	if (strcmp(step, "exec") == 0)
		return explain_exec(q, error);
	if (strcmp(step, "user") == 0 && error == ENOENT)
		return xasprintf("there is no user \"%s\"", q->user);
	if (strcmp(step, "group") == 0 && error == ENOENT)
		return xasprintf("there is no group \"%s\"", q->group);
	if (strcmp(step, "directory") == 0)
		return xasprintf("directory %s: %s", q->directory, strerror(error));
	if (strcmp(step, "env_file") == 0)
		return xasprintf("env_file %s: %s", q->env_file, strerror(error));
	return xasprintf("%s: %s", step, strerror(error));
}
