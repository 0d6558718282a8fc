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

#include "base/fd.h"
#include "handler/environment.h"

#define FIRST_LINE_MAX	256	/* the kernel's BINPRM_BUF_SIZE */
#define BYTE_ORDER_MARK	"\xef\xbb\xbf"

char *
start_error_first_line(const char *path)
{
	char text[FIRST_LINE_MAX + 1], *program, *end;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t len = -1;
	struct stat st;

	if (fd != -1 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		len = read(fd, text, FIRST_LINE_MAX);
	fd_close(&fd);
	if (len < 0)
		return NULL;
	text[len] = '\0';
	if (strncmp(text, BYTE_ORDER_MARK "#!", 5) == 0)
		return xstrdup("a byte order mark stands before its #!: "
		    "save the file as UTF-8 without one");
	if (strncmp(text, "#!", 2) != 0) {
		/* The kernel executes neither text nor an empty file without "#!". */
		for (ssize_t i = 0; i < len; i++) {
			if ((unsigned char)text[i] < ' ' && memchr("\t\n\r\f", text[i], 4) == NULL)
				return NULL;
		}
		return xstrdup("it has no #! line: begin it with #!/bin/sh, for example");
	}
	end = text + strcspn(text, "\n");
	if (end == text + FIRST_LINE_MAX)
		return NULL;
	if (end[-1] == '\r')
		return xstrdup("its first line ends with a carriage return: "
		    "save the file with Unix line ends");
	*end = '\0';
	program = text + 2 + strspn(text + 2, " \t");
	program[strcspn(program, " \t")] = '\0';
	if (program[0] == '\0')
		return xstrdup("its first line names no interpreter: write #!/bin/sh, for example");
	if (stat(program, &st) == -1)
		return xasprintf("its first line names the interpreter \"%s\": %s: "
		    "install it, or correct that line", program, strerror(errno));
	return NULL;
}

char *
start_error_text(const struct queue_config *q, const char *step, int error)
{
	char *why = NULL, *text;
	const char *path;
	struct stat st;

	if (strcmp(step, "user") == 0 && error == ENOENT)
		return xasprintf("there is no user \"%s\"", q->user);
	if (strcmp(step, "group") == 0 && error == ENOENT)
		return xasprintf("there is no group \"%s\"", q->group);
	if (strcmp(step, "directory") == 0)
		return xasprintf("directory %s: %s", q->directory, strerror(error));
	if (strcmp(step, "nice") == 0)
		return xasprintf("nice = %d: %s: only root can start handlers with a "
		    "lower value than rqd's own: raise it, or leave it out", q->nice,
		    strerror(error));
	if (strcmp(step, "env_file") == 0) {
		why = environment_error(q->env_file, error);
		text = xasprintf("env_file %s", why);
		free(why);
		return text;
	}
	if (strcmp(step, "environment") == 0)
		return xstrdup("the environment is too large for any process: no variable and no "
		    "argument may have 128 KiB, and all together (env, env_file, command) not "
		    "a quarter of the limit of the stack (ulimit -s): put large values in files");
	if (strcmp(step, "exec") == 0 && error == E2BIG)
		return xasprintf("command %s: the environment with the variables of this message "
		    "is too large (env, env_file, env_message)", q->command[0]);
	if (strcmp(step, "exec") != 0)
		return xasprintf("%s: %s", step, strerror(error));
	path = q->command[0];
	if (error == EACCES && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return xasprintf("command %s: is a directory", path);
	/* Denied to whom, see identity.h: folders on the way count, too. */
	if (error == EACCES)
		return xasprintf("command %s: Permission denied: chmod 755 it, and let the user %s "
		    "enter each directory above it", path, q->user[0] != '\0' ? q->user :
		    "that runs rqd");
	if (error == ENOENT && stat(path, &st) == -1)
		error = errno;
	else if (error == ENOENT || error == ENOEXEC)
		why = start_error_first_line(path);
	text = xasprintf("command %s: %s", path, why != NULL ? why : strerror(error));
	free(why);
	return text;
}
