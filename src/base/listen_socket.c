/* Listening sockets; see listen_socket.h. */
#include "base/listen_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/trust.h"
#include "base/units.h"

#define BACKLOG		128
#define UNIX_MODE	0660

/* Set by listen_socket_set_opener(); NULL: none. */
static int	(*opener)(const char *, void *);
static void	(*closer)(void *);
static void	*opener_arg;

/* An address of one of the three forms; any.sa_family says which. */
struct listen_place {
	union {
		struct sockaddr		 any;
		struct sockaddr_in	 in;
		struct sockaddr_in6	 in6;
		struct sockaddr_un	 un;
	} u;
	socklen_t	 len;
};

/* -- what is written in the configuration ------------------------------------ */

static int
parse_unix(const char *path, struct listen_place *p, char **cause)
{
	struct sockaddr_un *un = &p->u.un;

	if (path[0] != '/')
		return util_cause(cause, "\"unix:%.60s\": write an absolute path: unix:/path",
		    path);
	if (strlen(path) >= sizeof(un->sun_path))
		return util_cause(cause, "\"unix:%.60s...\": a socket's path has at most %zu bytes",
		    path, sizeof(un->sun_path) - 1);
	un->sun_family = AF_UNIX;
	strcpy(un->sun_path, path);
	p->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
	return 0;
}

static int
parse_port(const char *text, in_port_t *ret)
{
	int64_t n;

	if (units_parse_int(text, &n) == -1 || n < 0 || n > 65535)
		return -1;
	*ret = htons((uint16_t)n);
	return 0;
}

/* "[::1]" or "127.0.0.1", of len bytes. */
static int
parse_host(const char *text, size_t len, in_port_t port, struct listen_place *p)
{
	char host[INET6_ADDRSTRLEN];

	if (len >= sizeof(host))
		return -1;
	snprintf(host, sizeof(host), "%.*s", (int)len, text);
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		p->u.in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = port };
		p->len = sizeof(p->u.in6);
		return inet_pton(AF_INET6, host + 1, &p->u.in6.sin6_addr) == 1 ? 0 : -1;
	}
	p->u.in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port };
	p->len = sizeof(p->u.in);
	return inet_pton(AF_INET, host, &p->u.in.sin_addr) == 1 ? 0 : -1;
}

static int
parse(const char *where, struct listen_place *p, char **cause)
{
	const char *colon = strrchr(where, ':');
	in_port_t port;

	if (strncmp(where, "unix:", 5) == 0)
		return parse_unix(where + 5, p, cause);
	if (where[0] == '/')
		return util_cause(cause, "\"%.60s\": write unix:%.60s", where, where);
	if (colon == NULL || parse_port(colon + 1, &port) == -1)
		return util_cause(cause, "\"%.60s\": write an address and a port, "
		    "\"127.0.0.1:17379\", or \"unix:/path\"", where);
	if (parse_host(where, (size_t)(colon - where), port, p) == -1)
		return util_cause(cause, "\"%.60s\": %.*s is not an address: write "
		    "\"127.0.0.1:17379\", \"[::1]:17379\", or \"0.0.0.0:17379\" for all of "
		    "this host's", where, (int)(colon - where), where);
	return 0;
}

int
listen_socket_check(const char *where, char **cause)
{
	struct listen_place p;

	return parse(where, &p, cause);
}

/* -- opening ------------------------------------------------------------------- */

/* Whether the file is a socket on which nobody listens. */
static bool
is_dead(const struct listen_place *p)
{
	const char *path = p->u.un.sun_path;
	struct stat st;
	int fd;

	if (lstat(path, &st) == -1 || !S_ISSOCK(st.st_mode))
		return false;
	if ((fd = fd_connect(SOCK_STREAM, path)) == -1)
		return errno == ECONNREFUSED;
	fd_close(&fd);
	return false;
}

/* Sets the mode by umask(2), so that the file is never open to others. */
static int
bind_unix(int fd, const struct listen_place *p)
{
	mode_t old = umask(0777 & ~UNIX_MODE);
	int rc = bind(fd, &p->u.any, p->len), saved = errno;

	umask(old);
	errno = saved;
	return rc;
}

static int
bind_place(int fd, const struct listen_place *p)
{
	int on = 1;

	if (p->u.any.sa_family != AF_UNIX) {
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		return bind(fd, &p->u.any, p->len);
	}
	if (bind_unix(fd, p) == 0)
		return 0;
	if (errno != EADDRINUSE)
		return -1;
	if (!is_dead(p) || unlink(p->u.un.sun_path) == -1) {
		errno = EADDRINUSE;
		return -1;
	}
	return bind_unix(fd, p);
}

static bool
is_loopback(const struct listen_place *p)
{
	if (p->u.any.sa_family == AF_INET)
		return ntohl(p->u.in.sin_addr.s_addr) >> 24 == 127;
	return p->u.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&p->u.in6.sin6_addr);
}

/* The address with the port that the kernel chose. */
static char *
address_text(int fd, const char *where)
{
	struct listen_place p = { .len = sizeof(p.u) };
	char host[INET6_ADDRSTRLEN];

	if (strncmp(where, "unix:", 5) == 0 || getsockname(fd, &p.u.any, &p.len) == -1)
		return xstrdup(where);
	if (p.u.any.sa_family == AF_INET6)
		return xasprintf("[%s]:%u", inet_ntop(AF_INET6, &p.u.in6.sin6_addr, host,
		    sizeof(host)), ntohs(p.u.in6.sin6_port));
	return xasprintf("%s:%u", inet_ntop(AF_INET, &p.u.in.sin_addr, host, sizeof(host)),
	    ntohs(p.u.in.sin_port));
}

/*
 * Says why the socket could not be made.  EPERM: an opener that is root does not
 * follow this path.
 */
static int
open_failed(const struct listen_place *p, const char *where, char **cause)
{
	int error = errno;
	char *why = NULL;

	if (error == EADDRINUSE)
		(void)util_cause(cause, "%s is in use", where);
	else if (error == EPERM && p->u.any.sa_family == AF_UNIX &&
	    trust_folders(p->u.un.sun_path, 0, &why) == -1)
		(void)util_cause(cause, "%s: Permission denied; as root rqd makes a socket only in "
		    "a folder that only root may write to: %s", where, why);
	else
		(void)util_cause(cause, "%s: %s", where, strerror(error));
	free(why);
	errno = error;
	return -1;
}

/* -1 with errno. */
static int
open_place(const struct listen_place *p)
{
	int fd = socket(p->u.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd != -1 && (bind_place(fd, p) == -1 || listen(fd, BACKLOG) == -1))
		fd_close(&fd);
	return fd;
}

/* Asks the opener.  Where that only refuses the path, errno stays EADDRINUSE. */
static void
borrow(struct listen_socket *l, const char *where)
{
	int error = errno;

	l->fd = opener(where, opener_arg);
	l->lent = l->fd != -1;
	if (l->fd == -1 && errno == EPERM && error == EADDRINUSE)
		errno = error;
}

int
listen_socket_open(struct listen_socket *l, const char *where, char **cause)
{
	struct listen_place p;
	bool is_unix;

	*l = (struct listen_socket)LISTEN_SOCKET_INIT;
	if (parse(where, &p, cause) == -1)
		return -1;
	is_unix = p.u.any.sa_family == AF_UNIX;
	l->fd = open_place(&p);
	if (l->fd != -1 && is_unix) {
		l->path = xstrdup(p.u.un.sun_path);
		(void)lstat(l->path, &l->file);
	}
	if (l->fd == -1 && is_unix && opener != NULL)
		borrow(l, where);
	if (l->fd == -1)
		return open_failed(&p, where, cause);
	l->address = address_text(l->fd, where);
	l->loopback = is_loopback(&p);
	return 0;
}

void
listen_socket_set_opener(int (*open_unix)(const char *, void *), void (*close_unix)(void *),
    void *arg)
{
	opener = open_unix;
	closer = close_unix;
	opener_arg = arg;
}

/* Removes the file, unless another daemon has put its own socket there meanwhile. */
static void
remove_file(const struct listen_socket *l)
{
	struct stat st;

	if (lstat(l->path, &st) == 0 && st.st_dev == l->file.st_dev &&
	    st.st_ino == l->file.st_ino &&
	    memcmp(&st.st_ctim, &l->file.st_ctim, sizeof(st.st_ctim)) == 0)
		(void)unlink(l->path);
}

void
listen_socket_close(struct listen_socket *l)
{
	if (l->path != NULL)
		remove_file(l);
	fd_close(&l->fd);
	if (l->lent && closer != NULL)
		closer(opener_arg);
	free(l->path);
	free(l->address);
	*l = (struct listen_socket)LISTEN_SOCKET_INIT;
}
