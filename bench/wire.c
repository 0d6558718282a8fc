/*
 * The wires to the private Redis: its unix socket, TCP by the loopback, and TLS.
 *
 * Not every hiredis speaks TLS, so openssl's s_client does it, at the other end of a
 * pair of sockets.  Its cost is not measured.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static struct {
	pid_t	pid;		/* of s_client; 0: unused */
	int	fd;		/* of our end */
} clients[CROWD_MAX];

static int
free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd == -1 || bind(fd, (struct sockaddr *)&a, len) == -1 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) == -1)
		die("no free port");
	(void)close(fd);
	return ntohs(a.sin_port);
}

/* Sets an option that this Redis may not know. */
static bool
set(const char *name, const char *value)
{
	redisContext *c = world_redis();
	redisReply *r = redisCommand(c, "CONFIG SET %s %s", name, value);
	bool ok = r != NULL && r->type == REDIS_REPLY_STATUS;

	freeReplyObject(r);
	redisFree(c);
	return ok;
}

/* The port that Redis listens on by now; 0: it cannot. */
static int
listening(const char *name)
{
	char port[16];

	(void)snprintf(port, sizeof(port), "%d", free_port());
	return set(name, port) ? atoi(port) : 0;
}

static redisContext *
checked(redisContext *c)
{
	redisReply *r = c != NULL && c->err == 0 ? redisCommand(c, "PING") : NULL;
	bool ok = r != NULL && r->type == REDIS_REPLY_STATUS;

	freeReplyObject(r);
	if (ok)
		return c;
	wire_close(c);
	return NULL;
}

/* -- TLS ---------------------------------------------------------------------- */

static bool
make_certificate(void)
{
	const char *argv[] = { "/usr/bin/env", "openssl", "req", "-x509", "-newkey", "ec",
	    "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
	    "/CN=localhost", "-keyout", world_file("tls.key"), "-out",
	    world_file("tls.crt"), NULL };
	int status;
	pid_t pid = start_command(argv, NULL);

	return waitpid(pid, &status, 0) == pid && status == 0;
}

static int
tls_port(void)
{
	static int port = -1;

	if (port != -1)
		return port;
	port = 0;
	if (make_certificate() && set("tls-cert-file", world_file("tls.crt")) &&
	    set("tls-key-file", world_file("tls.key")) &&
	    set("tls-ca-cert-file", world_file("tls.crt")) && set("tls-auth-clients", "no"))
		port = listening("tls-port");
	return port;
}

static void
be_client(int fd, int port)
{
	char to[32];
	int null = open("/dev/null", O_WRONLY);

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)snprintf(to, sizeof(to), "127.0.0.1:%d", port);
	(void)dup2(fd, 0);
	(void)dup2(fd, 1);
	(void)dup2(null, 2);
	(void)close(fd);
	(void)execlp("openssl", "openssl", "s_client", "-connect", to, "-quiet",
	    "-no_ign_eof", "-nocommands", (char *)NULL);
	_exit(127);
}

static redisContext *
open_tls(void)
{
	int port = tls_port(), fd[2], i = 0;

	if (port == 0)
		return NULL;
	while (i < CROWD_MAX && clients[i].pid != 0)
		i++;
	if (i == CROWD_MAX || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == -1 ||
	    (clients[i].pid = fork()) == -1)
		die("no s_client");
	if (clients[i].pid == 0)
		be_client(fd[1], port);
	(void)close(fd[1]);
	clients[i].fd = fd[0];
	return checked(redisConnectFd(fd[0]));
}

int
wire_port(void)
{
	static int port;

	if (port == 0)
		port = listening("port");
	return port;
}

/* -- open and close ------------------------------------------------------------- */

redisContext *
wire_open(enum wire wire)
{
	redisContext *c;

	switch (wire) {
	case WIRE_UNIX:
		return world_redis();
	case WIRE_TCP:
		if (wire_port() == 0)
			die("Redis does not listen");
		c = checked(redisConnect("127.0.0.1", wire_port()));
		if (c == NULL)
			die("no connection by TCP");
		return c;
	case WIRE_TLS:
		return open_tls();
	}
	return NULL;
}

void
wire_close(redisContext *c)
{
	int fd = c != NULL ? c->fd : -1, i;

	if (c != NULL)
		redisFree(c);
	for (i = 0; i < CROWD_MAX; i++) {
		if (clients[i].pid == 0 || clients[i].fd != fd)
			continue;
		(void)waitpid(clients[i].pid, NULL, 0);
		clients[i].pid = 0;
	}
}
