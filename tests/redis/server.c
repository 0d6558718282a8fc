/*
 * The redis-server of tests.  It is ready when it answers PING, also with an error: it may
 * want a password, or be loading.
 */
#include "server.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "tests/sim/port.h"

static void __attribute__((__noreturn__, __format__(__printf__, 1, 2)))
fail_now(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "server: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	abort();
}

static void
server_exec(struct server *s, pid_t parent)
{
	char *argv[SERVER_ARGS_MAX + 16];
	char port[12], log[128];
	int n = 0, fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	snprintf(port, sizeof(port), "%d", s->port);
	snprintf(log, sizeof(log), "%s/log", s->dir);
	argv[n++] = (char *)(size_t)"redis-server";
	argv[n++] = (char *)(size_t)"--port";
	argv[n++] = port;
	argv[n++] = (char *)(size_t)"--bind";
	argv[n++] = (char *)(size_t)"127.0.0.1";
	argv[n++] = (char *)(size_t)"--unixsocket";
	argv[n++] = s->path;
	argv[n++] = (char *)(size_t)"--dir";
	argv[n++] = s->dir;
	argv[n++] = (char *)(size_t)"--save";
	argv[n++] = (char *)(size_t)"";
	argv[n++] = (char *)(size_t)"--enable-debug-command";
	argv[n++] = (char *)(size_t)"yes";
	for (unsigned i = 0; i < s->nargs; i++)
		argv[n++] = s->args[i];
	argv[n] = NULL;
	if ((fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600)) == -1)
		_exit(1);
	dup2(fd, 1);
	dup2(fd, 2);
	execvp(argv[0], argv);
	_exit(127);
}

static void
server_wait(struct server *s)
{
	for (int i = 0; i < 1000; i++) {
		redisContext *c = redisConnectUnix(s->path);
		redisReply *r = c != NULL && c->err == 0 ? redisCommand(c, "PING") : NULL;

		if (c != NULL)
			redisFree(c);
		if (r != NULL) {
			freeReplyObject(r);
			return;
		}
		usleep(10000);
	}
	fail_now("redis-server does not answer on %s", s->path);
}

void
server_again(struct server *s)
{
	pid_t parent = getpid();

	if ((s->pid = fork()) == 0)
		server_exec(s, parent);
	if (s->pid == -1)
		fail_now("fork: %s", strerror(errno));
	server_wait(s);
}

static void
server_prepare(struct server *s)
{
	memset(s, 0, sizeof(*s));
	snprintf(s->dir, sizeof(s->dir), "/tmp/rqd-test.XXXXXX");
	if (mkdtemp(s->dir) == NULL)
		fail_now("mkdtemp: %s", strerror(errno));
	snprintf(s->path, sizeof(s->path), "%s/redis", s->dir);
	snprintf(s->uri, sizeof(s->uri), "unix:%s", s->path);
}

void
server_start(struct server *s, ...)
{
	const char *arg;
	va_list ap;

	server_prepare(s);
	va_start(ap, s);
	while ((arg = va_arg(ap, const char *)) != NULL) {
		if (s->nargs == SERVER_ARGS_MAX)
			fail_now("too many arguments");
		snprintf(s->args[s->nargs++], sizeof(s->args[0]), "%s", arg);
	}
	va_end(ap);
	server_again(s);
}

void
server_start_tcp(struct server *s)
{
	server_prepare(s);
	s->port = server_free_port();
	server_again(s);
}

void
server_signal(const struct server *s, int signo)
{
	if (kill(s->pid, signo) == -1)
		fail_now("kill: %s", strerror(errno));
}

void
server_drop_admin(struct server *s)
{
	if (s->admin != NULL)
		redisFree(s->admin);
	s->admin = NULL;
}

void
server_kill(struct server *s)
{
	server_drop_admin(s);
	if (s->pid == 0)
		return;
	kill(s->pid, SIGKILL);
	while (waitpid(s->pid, NULL, 0) == -1 && errno == EINTR)
		continue;
	s->pid = 0;
}

void
server_stop(struct server *s)
{
	char cmd[128];

	server_kill(s);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", s->dir);
	if (system(cmd) == -1)
		fail_now("rm failed");
}

static redisReply *
server_ask(struct server *s, const char *fmt, va_list ap)
{
	redisReply *r;

	if (s->admin == NULL)
		s->admin = redisConnectUnix(s->path);
	if (s->admin == NULL || s->admin->err != 0)
		fail_now("cannot connect to %s", s->path);
	if ((r = redisvCommand(s->admin, fmt, ap)) == NULL)
		fail_now("%s: %s", fmt, s->admin->errstr);
	return r;
}

const char *
server_do(struct server *s, const char *fmt, ...)
{
	static char text[65536];
	redisReply *r;
	va_list ap;

	va_start(ap, fmt);
	r = server_ask(s, fmt, ap);
	va_end(ap);
	if (r->str != NULL)
		snprintf(text, sizeof(text), "%s", r->str);
	else if (r->elements > 0 && r->element[r->elements - 1]->str != NULL)
		snprintf(text, sizeof(text), "%s", r->element[r->elements - 1]->str);
	else
		snprintf(text, sizeof(text), "%lld", r->integer);
	freeReplyObject(r);
	return text;
}

long long
server_int(struct server *s, const char *fmt, ...)
{
	redisReply *r;
	long long n;
	va_list ap;

	va_start(ap, fmt);
	r = server_ask(s, fmt, ap);
	va_end(ap);
	if (r->type == REDIS_REPLY_ERROR)
		fail_now("%s: %s", fmt, r->str);
	n = r->integer;
	freeReplyObject(r);
	return n;
}

int
server_free_port(void)
{
	int port = port_reserve();

	if (port == -1)
		fail_now("no free port: %s", strerror(errno));
	return port;
}

void
server_write_file(const struct server *s, const char *name, const char *text, char path[128])
{
	FILE *f;

	snprintf(path, 128, "%s/%s", s->dir, name);
	if ((f = fopen(path, "w")) == NULL || fputs(text, f) == EOF || fclose(f) == EOF)
		fail_now("%s: %s", path, strerror(errno));
}
