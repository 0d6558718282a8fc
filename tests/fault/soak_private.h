/*
 * Shared by the files that make the world of a soak: soak_world.c, soak_redis.c,
 * soak_faults.c.
 */
#pragma once

#include "shim.h"
#include "soak.h"

struct daemon {
	pid_t		 pid;		/* 0: none */
	double		 started;	/* now() */
	bool		 expected;	/* its end is */
	pid_t		 proxy;
	FILE		*to_proxy, *from_proxy;
	struct shim	*shim;
};

extern struct daemon daemons[DAEMONS];

/* soak_world.c */
void	 nap(void);
void	 die(const char *what) __attribute__((__noreturn__));
pid_t	 start(const char *log, char *const argv[], char *const env[], int in, int out);
void	 daemon_start(unsigned slot);
void	 proxy_say(unsigned slot, const char *command);

/* soak_redis.c: a server, and a replica of it */
void	 redis_begin(void);		/* returns when it answers */
void	 redis_end(void);
bool	 redis_is(pid_t);
void	 redis_reaped(pid_t);
bool	 redis_stop(void);		/* SIGSTOP */
void	 redis_continue(void);
bool	 redis_kill(void);
bool	 redis_restart(void);		/* false: not yet */
bool	 redis_flush(void);
bool	 redis_fall_behind(void);	/* the replica does */
bool	 redis_promote(void);		/* it becomes the server; false: not yet */
