/*
 * The greeting: what is sent first on every connection, and what the answers
 * say.  Shared by conn.c and client.c, which do the sending: the commands are
 * written one behind the other, in one round trip, and answered in that order.
 *
 *	AUTH SELECT PING CLIENT-SETNAME CLIENT-ID INFO ROLE CONFIG TIME SCRIPT-LOAD
 *
 * AUTH and SELECT must succeed.  The others may be denied by an ACL, and
 * fail the greeting only with what concerns every command: NOAUTH, LOADING,
 * too many clients.  A server that is known not to be a master fails it too.
 */
#ifndef RQD_REDIS_GREET_H
#define RQD_REDIS_GREET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "redis/redis_options.h"

struct redisReply;
struct script;

enum greet_step {
	GREET_AUTH,
	GREET_SELECT,
	GREET_PING,
	GREET_SETNAME,
	GREET_ID,
	GREET_INFO_SERVER,
	GREET_INFO_REPLICATION,
	GREET_ROLE,
	GREET_POLICY,
	GREET_TIME,
	GREET_SCRIPT,			/* once per script of the table */
	GREET_END
};

enum greet_role { GREET_ROLE_UNKNOWN, GREET_ROLE_MASTER, GREET_ROLE_OTHER };

/* A command of the greeting; borrowed until the next one is asked for. */
struct greet_command {
	int		  argc;
	const char	 *argv[4];
	size_t		  argvlen[4];
};

/* Where the walk through the steps stands. */
struct greet_place {
	enum greet_step	 step;
	size_t		 script;	/* GREET_SCRIPT: index in the table */
};

struct greet {
	const struct redis_options *opt;
	const char	 *name;		/* NULL: no CLIENT SETNAME; borrowed */
	bool		  worker;	/* ask what a worker needs to know */
	bool		  scripts;	/* load them */
	char		 *password;	/* NULL: none; wiped and freed as soon as it is sent */
	size_t		  password_len;
	char		  database[12];
	struct greet_place sent, answered;	/* the next one of either */

	/* what was learnt: */
	char		 *cause;	/* why this server cannot be used; NULL: no reason yet */
	enum greet_role	  role;
	int64_t		  id;		/* CLIENT ID; 0: unknown */
	double		  time;		/* Redis' own; 0: unknown */
	char		  run_id[48];
	char		  replid[48];	/* "" where INFO is denied */
	bool		  inherits;	/* it goes on with another server's data: it was a replica */
	char		  version[24];
	char		  maxmemory_policy[24];
};

/* Reads the password.  Returns 0, or -1 with *cause; greet_done() is due after both. */
int	greet_init(struct greet *, const struct redis_options *, const char *name,
	    bool worker, bool scripts, char **cause) MUSTCHECK;
void	greet_done(struct greet *);

/* The next command to send; false when there is none. */
bool	greet_next(struct greet *, struct greet_command *);

/*
 * The answer to the oldest unanswered one.  Returns true when the greeting is
 * over: it has failed if greet.cause is set, which may be before the last one.
 */
bool	greet_answer(struct greet *, const struct redisReply *);

/*
 * A server that refuses us says why and closes; when our greeting meets the
 * closed socket first, what it said is still there to be read.  False: nothing.
 */
bool	greet_last_words(int fd, char *buf, size_t size);

#endif
