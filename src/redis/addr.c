/*
 * Addresses and their resolution.
 *
 * The resolver is a forked child: it calls getaddrinfo(3) and writes one numeric
 * address a line, or "!"  and a cause, to a pipe.  The parent reads up to end of file.
 * Of the daemon's descriptors the child keeps only that pipe.  It runs no signal
 * handler of the daemon, and ends by _exit(2).
 */
#include "redis/addr.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/units.h"
#include "loop/child.h"
#include "loop/io.h"

#define ADDR_PORT	6379
#define ADDR_ANSWER_MAX	4096	/* more than ADDR_MAX lines, or any cause */

struct addr_resolve {
	struct loop	 *loop;
	void		(*fn)(char (*)[INET6_ADDRSTRLEN], unsigned, const char *, void *);
	void		 *arg;
	struct child	  child;
	struct io	  io;
	int		  fd;		/* -1: the child could not be started */
	struct buf	  answer;
	struct defer	  defer;
};

/* Takes "port" into a->port; -1 if it is none. */
static int
addr_parse_port(const char *text, struct addr *a)
{
	int64_t n;

	if (units_parse_int(text, &n) == -1 || n < 1 || n > 65535)
		return -1;
	a->port = (int)n;
	return 0;
}

/* "unix:/path" behind its prefix. */
static int
addr_parse_unix(const char *path, struct addr *a, char **cause)
{
	if (path[0] != '/')
		return util_cause(cause, "\"unix:%s\": write an absolute path: unix:/path", path);
	if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return util_cause(cause, "\"unix:%s\": a socket's path has at most %zu bytes",
		    path, sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
	a->path = xstrdup(path);
	return 0;
}

/* "[v6]:port" or "[v6]". */
static int
addr_parse_v6(const char *text, struct addr *a, char **cause)
{
	const char *end = strchr(text, ']');
	struct in6_addr in6;
	char host[INET6_ADDRSTRLEN];

	if (end == NULL || (end[1] != '\0' && end[1] != ':') ||
	    (size_t)(end - text) > sizeof(host))
		return util_cause(cause, "\"%s\": write [v6]:port", text);
	snprintf(host, sizeof(host), "%.*s", (int)(end - text - 1), text + 1);
	if (inet_pton(AF_INET6, host, &in6) != 1)
		return util_cause(cause, "\"%s\": %s is not an IPv6 address", text, host);
	if (end[1] == ':' && addr_parse_port(end + 2, a) == -1)
		return util_cause(cause, "\"%s\": the port must be 1 to 65535", text);
	a->host = xstrdup(host);
	return 0;
}

/* "host:port" or "host". */
static int
addr_parse_host(const char *text, struct addr *a, char **cause)
{
	size_t len = strcspn(text, ":");

	if (len == 0)
		return util_cause(cause, "\"%s\": write host:port", text);
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)text[i]) && strchr(".-_", text[i]) == NULL)
			return util_cause(cause, "\"%s\" is not a host name: write host:port",
			    text);
	}
	if (len > 253)
		return util_cause(cause, "\"%.40s...\" is too long for a host name", text);
	if (text[len] == ':' && addr_parse_port(text + len + 1, a) == -1)
		return util_cause(cause, "\"%s\": the port must be 1 to 65535", text);
	a->host = xstrndup(text, len);
	return 0;
}

int
addr_parse(const char *text, struct addr *ret, char **cause)
{
	struct addr a = { NULL, NULL, ADDR_PORT };
	struct in6_addr in6;
	int rc;

	if (text[0] == '\0')
		return util_cause(cause, "an empty server: write host:port or unix:/path");
	if (text[0] == '/')
		return util_cause(cause, "\"%s\": write unix:%s", text, text);
	if (strstr(text, "://") != NULL)
		return util_cause(cause, "\"%s\" is a URL: write host:port, "
		    "and the password into password_file", text);
	if (inet_pton(AF_INET6, text, &in6) == 1)
		return util_cause(cause, "\"%s\": write [%s]:%d", text, text, ADDR_PORT);
	if (strncmp(text, "unix:", 5) == 0)
		rc = addr_parse_unix(text + 5, &a, cause);
	else if (text[0] == '[')
		rc = addr_parse_v6(text, &a, cause);
	else
		rc = addr_parse_host(text, &a, cause);
	if (rc == 0)
		*ret = a;
	return rc;
}

void
addr_done(struct addr *a)
{
	free(a->host);
	free(a->path);
	*a = (struct addr){ NULL, NULL, 0 };
}

bool
addr_is_numeric(const struct addr *a)
{
	unsigned char in[sizeof(struct in6_addr)];

	return a->host != NULL && (inet_pton(AF_INET, a->host, in) == 1 ||
	    inet_pton(AF_INET6, a->host, in) == 1);
}

unsigned
addr_lookup(const char *host, char (*ret)[INET6_ADDRSTRLEN], const char **cause)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *ai;
	unsigned n = 0;
	int rc;

	if ((rc = getaddrinfo(host, NULL, &hints, &list)) != 0) {
		*cause = rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc);
		return 0;
	}
	*cause = "No usable address";
	for (ai = list; ai != NULL && n < ADDR_MAX; ai = ai->ai_next) {
		if (getnameinfo(ai->ai_addr, ai->ai_addrlen, ret[n], sizeof(ret[n]),
		    NULL, 0, NI_NUMERICHOST) == 0)
			n++;
	}
	freeaddrinfo(list);
	return n;
}

/* The resolver process: never returns. */
static void NORETURN
addr_child(const char *host, int fd)
{
	char found[ADDR_MAX][INET6_ADDRSTRLEN];
	const char *cause;
	sigset_t none;
	unsigned n;

	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fd != 3 && (dup2(fd, 3) == -1))
		_exit(1);
	closefrom(4);

	n = addr_lookup(host, found, &cause);
	for (unsigned i = 0; i < n; i++)
		dprintf(3, "%s\n", found[i]);
	if (n == 0)
		dprintf(3, "!%s\n", cause);
	_exit(0);
}

static void
addr_resolve_free(struct addr_resolve *r)
{
	loop_defer_cancel(r->loop, &r->defer);
	if (r->fd != -1) {
		io_done(&r->io);
		close(r->fd);
		child_forget(r->loop, &r->child);
	}
	buf_done(&r->answer);
	free(r);
}

/* Takes the child's lines apart; returns how many addresses there are. */
static unsigned
addr_answer(char *text, char (*ret)[INET6_ADDRSTRLEN], const char **cause)
{
	char *line, *rest = text;
	unsigned n = 0;

	*cause = "The resolver process failed";
	while ((line = strsep(&rest, "\n")) != NULL && rest != NULL && n < ADDR_MAX) {
		if (line[0] == '!')
			*cause = line + 1;
		else if (strlen(line) < sizeof(ret[n]))
			memcpy(ret[n++], line, strlen(line) + 1);
	}
	return n;
}

/* The answer is complete: calls fn, and frees the resolution. */
static void
addr_finish(void *arg)
{
	struct addr_resolve *r = arg;
	char found[ADDR_MAX][INET6_ADDRSTRLEN];
	struct buf answer = r->answer;
	void (*fn)(char (*)[INET6_ADDRSTRLEN], unsigned, const char *, void *) = r->fn;
	void *fn_arg = r->arg;
	const char *cause;
	unsigned n;

	r->answer = (struct buf)BUF_INIT;
	addr_resolve_free(r);
	n = addr_answer(buf_str(&answer), found, &cause);
	fn(found, n, n == 0 ? cause : NULL, fn_arg);
	buf_done(&answer);
}

static void
addr_readable(int what UNUSED, void *arg)
{
	struct addr_resolve *r = arg;
	char bytes[512];
	ssize_t n = read(r->fd, bytes, sizeof(bytes));

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		buf_add(&r->answer, bytes, (size_t)n);
		if (r->answer.len < ADDR_ANSWER_MAX)
			return;
	}
	io_stop(&r->io);
	loop_defer(r->loop, &r->defer, addr_finish, r);
}

/* Nothing to do: the pipe's end of file tells that the answer is complete. */
static void
addr_exited(struct child *child UNUSED, const struct child_exit *x UNUSED)
{
}

/* Forks with all signals blocked, so that the child never runs the daemon's handlers. */
static pid_t
addr_fork(const char *host, int fd)
{
	sigset_t all, old;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	if ((pid = fork()) == 0)
		addr_child(host, fd);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return pid;
}

struct addr_resolve *
addr_resolve(struct loop *loop, const char *host,
    void (*fn)(char (*)[INET6_ADDRSTRLEN], unsigned, const char *, void *), void *arg)
{
	struct addr_resolve *r = xcalloc(1, sizeof(*r));
	int fds[2] = { -1, -1 };
	pid_t pid = -1;

	*r = (struct addr_resolve){ .loop = loop, .fn = fn, .arg = arg, .fd = -1 };
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) == -1 || (pid = addr_fork(host, fds[1])) == -1) {
		buf_printf(&r->answer, "!Cannot start the resolver: %s\n", strerror(errno));
		if (fds[0] != -1)
			close(fds[0]);
		loop_defer(loop, &r->defer, addr_finish, r);
	} else {
		r->fd = fds[0];
		r->child.exited = addr_exited;
		child_watch(loop, &r->child, pid);
		io_init(&r->io, loop, r->fd, IO_READ, addr_readable, r);
		io_start(&r->io);
	}
	if (fds[1] != -1)
		close(fds[1]);
	return r;
}

void
addr_resolve_cancel(struct addr_resolve *r)
{
	if (r == NULL)
		return;
	if (r->fd != -1)
		(void)child_kill(&r->child, SIGKILL);
	addr_resolve_free(r);
}
