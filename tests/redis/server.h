/*
 * A private redis-server for tests: a unix socket in a directory of its own,
 * nothing saved.  Failures end the test.  It dies with the test program.
 */
#pragma once

#include <sys/types.h>

struct redisContext;

#define SERVER_ARGS_MAX	24

struct server {
	char	 dir[64];
	char	 path[96];		/* the socket */
	char	 uri[104];		/* "unix:" and the socket */
	char	 args[SERVER_ARGS_MAX][96];	/* more for redis-server */
	unsigned nargs;
	int	 port;			/* 0: no TCP */
	pid_t	 pid;			/* 0: not running */
	struct redisContext *admin;	/* NULL: not connected */
};

/* Further words are arguments of redis-server; NULL-terminated. */
void	 server_start(struct server *, ...) __attribute__((__sentinel__));
void	 server_start_tcp(struct server *);		/* also listens on 127.0.0.1:port */
void	 server_signal(const struct server *, int signo);
void	 server_kill(struct server *);			/* kill -9 */
/* after server_kill(): empty, on the same socket */
void	 server_again(struct server *);
void	 server_stop(struct server *);			/* and removes the directory */

/*
 * A command by an own connection, as redisCommand(3) takes it; the text or
 * number of the reply (of an array: of its last element), valid until the next call.
 */
const char *server_do(struct server *, const char *fmt, ...);
long long server_int(struct server *, const char *fmt, ...);
void	 server_drop_admin(struct server *);		/* close that connection */

int	 server_free_port(void);			/* nobody listens there */
void	 server_write_file(const struct server *, const char *name, const char *text,
    char path[128]);
