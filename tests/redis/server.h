/*
 * A redis-server of a test's own.  It listens on a unix socket in a directory of its own,
 * saves nothing, and ends with the test program.  A failure of any of these functions ends
 * the test program.
 */
#pragma once

#include <sys/types.h>

struct redisContext;

#define SERVER_ARGS_MAX	24

struct server {
	char	 dir[64];
	char	 path[96];		/* the socket */
	char	 uri[104];		/* "unix:" and the socket */
	char	 args[SERVER_ARGS_MAX][96];	/* further arguments of redis-server */
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
/* Starts it again after server_kill(), on the same socket. */
void	 server_again(struct server *);
void	 server_stop(struct server *);			/* kills it, removes its directory */

/*
 * Sends a command over a connection of the test's own; the format is that of
 * redisCommand().  Returns the text or number of the reply (of an array: of its last
 * element).  The text is valid until the next call.
 */
const char *server_do(struct server *, const char *fmt, ...);
long long server_int(struct server *, const char *fmt, ...);
void	 server_drop_admin(struct server *);		/* closes that connection */

int	 server_free_port(void);			/* a port on which nobody listens */
void	 server_write_file(const struct server *, const char *name, const char *text,
    char path[128]);
