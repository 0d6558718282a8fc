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
	int64_t port;

	if (strncmp(where, "unix:", 5) == 0)
		return parse_unix(where + 5, p, cause);
	if (where[0] == '/')
		return util_cause(cause, "\"%.60s\": write unix:%.60s", where, where);
	if (colon == NULL || units_parse_int(colon + 1, &port) == -1 || port < 0 || port > 65535)
		return util_cause(cause, "\"%.60s\": write an address and a port, "
		    "\"127.0.0.1:17379\", or \"unix:/path\"", where);
	if (parse_host(where, (size_t)(colon - where), htons((uint16_t)port), p) == -1)
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

int
listen_socket_remove(const char *path)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) == -1)
		return -1;
	errno = EADDRINUSE;
	if (!S_ISSOCK(st.st_mode))
		return -1;
	if ((fd = fd_connect(SOCK_STREAM, path)) == -1)
		return errno == ECONNREFUSED ? unlink(path) : -1;
	fd_close(&fd);
	errno = EADDRINUSE;
	return -1;
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
	if (listen_socket_remove(p->u.un.sun_path) == -1) {
		errno = EADDRINUSE;
		return -1;
	}
	return bind_unix(fd, p);
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

/* Says why the socket could not be made.  EPERM: root does not follow this path. */
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
		    "a directory that only root may write to: %s", where, why);
	else
		(void)util_cause(cause, "%s: %s", where, strerror(error));
	free(why);
	errno = error;
	return -1;
}

int
listen_socket_open(struct listen_socket *l, const char *where, char **cause)
{
	struct listen_place p;
	bool is_unix;
	int error;

	*l = (struct listen_socket)LISTEN_SOCKET_INIT;
	if (parse(where, &p, cause) == -1)
		return -1;
	is_unix = p.u.any.sa_family == AF_UNIX;
	l->fd = socket(p.u.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd != -1 && (bind_place(l->fd, &p) == -1 || listen(l->fd, BACKLOG) == -1))
		fd_close(&l->fd);
	if (l->fd == -1 && is_unix) {
		/* Where root only refuses the path, errno stays EADDRINUSE. */
		error = errno;
		l->fd = trust_lend(LEND_LISTEN, p.u.un.sun_path);
		if (l->fd == -1 && errno == EPERM && error == EADDRINUSE)
			errno = error;
	}
	if (l->fd == -1)
		return open_failed(&p, where, cause);
	if (is_unix)
		l->path = xstrdup(p.u.un.sun_path);
	l->address = address_text(l->fd, where);
	l->loopback = p.u.any.sa_family == AF_INET ?
	    ntohl(p.u.in.sin_addr.s_addr) >> 24 == 127 :
	    p.u.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&p.u.in6.sin6_addr);
	return 0;
}

void
listen_socket_close(struct listen_socket *l)
{
	fd_close(&l->fd);
	/* Another daemon may have put its own socket there meanwhile: that one stays. */
	if (l->path != NULL && listen_socket_remove(l->path) == -1 && errno == EACCES)
		(void)trust_lend(LEND_REMOVE, l->path);
	free(l->path);
	free(l->address);
	*l = (struct listen_socket)LISTEN_SOCKET_INIT;
}
