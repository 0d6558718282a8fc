/*
 * The greeting: the first commands on every connection, and what their replies
 * say.  conn.c sends it: all commands at once, in one round trip; the
 * replies come in the same order.
 *
 *	AUTH SELECT PING CLIENT-SETNAME CLIENT-ID INFO ROLE INFO CONFIG TIME
 *
 * AUTH and SELECT must succeed.  An ACL may deny the others: they fail the greeting
 * only by errors that every command would get, such as NOAUTH, LOADING, or too many
 * clients.  The greeting also fails if the server says that it is not a master
 * (unless options.any_role), that it is a node of a cluster (unless
 * options.is_node), or, if a Sentinel is wanted, that it is not one.
 */
#pragma once

#include "redis/conn.h"

enum greet_step {
	GREET_AUTH,
	GREET_SELECT,
	GREET_PING,
	GREET_SETNAME,
	GREET_ID,
	GREET_INFO_SERVER,
	GREET_INFO_REPLICATION,
	GREET_ROLE,
	GREET_INFO_PERSISTENCE,
	GREET_POLICY,
	GREET_TIME,
	GREET_STEPS
};

struct greet {
	const struct redis_options *opt;
	const char	 *name;		/* NULL: no CLIENT SETNAME; borrowed */
	char		 *password;	/* NULL: none; wiped and freed as soon as it is sent */
	size_t		  password_len;
	enum greet_step	  steps[GREET_STEPS];	/* of this greeting */
	unsigned	  n, sent, answered;	/* how many of them */

	/* From the replies: */
	char		 *cause;	/* why this server cannot be used; NULL: no reason yet */
	struct conn_server server;
	double		  time;		/* Redis' own; 0: unknown */
	bool		  inherits;	/* it was a replica: its data came from another server */
};

/* Reads the password.  Returns 0, or -1 with *cause; call greet_done() after both. */
/* worker: asks for what a worker needs to know. */
int	greet_init(struct greet *, const struct redis_options *, const char *name,
	    bool worker, char **cause) MUSTCHECK;
void	greet_done(struct greet *);

/* The next command to send, which replaces the words; it is valid until the next call. */
bool	greet_next(struct greet *, struct words *);	/* false: no more */

/*
 * The reply to the oldest unanswered command.  Returns true when the greeting is
 * over: it has failed if greet.cause is set, perhaps before the last reply.
 */
bool	greet_answer(struct greet *, const struct redisReply *);

/*
 * What is wrong with a server that ended the connection at the greeting, or sent these bytes,
 * which are no reply.  NULL: not known.
 */
const char	*greet_stranger(const struct redis_options *, const char *, size_t);

/*
 * Reads the error that a server sent before it closed the connection.  Call this after
 * writing the greeting failed: the error is still unread then.  False: there is none.
 */
bool	greet_last_words(int fd, char *buf, size_t size);
