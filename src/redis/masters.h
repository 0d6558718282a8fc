/*
 * The masters that rqctl talks to: one Redis, or all masters of a Redis Cluster.
 *
 * With a cluster each command goes to the master of its key.  MOVED corrects the table
 * of slots, and the command is sent again.  ASK is followed for commands with one key.
 * A command is also sent again, for MASTERS_RETRY, after ASK to a script with several
 * keys, TRYAGAIN or CLUSTERDOWN, and while the master cannot be reached.  In all these
 * cases the command has not run.
 *
 * A command whose connection is lost may have run: it is not sent again.
 */
#pragma once

#include <stddef.h>

#include "base/clock.h"
#include "redis/redis_options.h"
#include "redis/reply.h"
#include "redis/script.h"
#include "redis/words.h"

#define MASTERS_RETRY	(5 * SEC)

struct masters;

/*
 * Returns NULL with *cause if no server can be used.  The options are borrowed, and so is
 * the name, for CLIENT SETNAME.
 */
struct masters	*masters_open(const struct redis_options *, const char *name, char **cause);
void		 masters_close(struct masters *);

/*
 * As those of blocking_conn.h: the reply, which the caller frees with
 * blocking_reply_free(), or NULL with *cause.  masters_append() copies the words; the
 * replies of masters_next() come in the order of the calls.
 */
struct redisReply *masters_command(struct masters *, char **cause, const struct words *);
struct redisReply *masters_script(struct masters *, char **cause, const struct script *,
		    const struct words *);
void		 masters_append(struct masters *, const struct words *);
struct redisReply *masters_next(struct masters *, char **cause);

/*
 * Commands without a key, such as TIME, go to the chosen master.  The caller chooses it
 * by its number below masters_count(), or by a key; at first it is that of slot 0.
 */
size_t		 masters_count(const struct masters *);
void		 masters_choose(struct masters *, size_t);
void		 masters_choose_key(struct masters *, const char *key);
/* The address of the chosen one. */
const char	*masters_chosen(const struct masters *);

/* The name of the server or cluster, for people: an address, or "cluster://..." */
const char	*masters_name(const struct masters *);
/* The address of the server whose reply came last, or did not come. */
const char	*masters_last(const struct masters *);
