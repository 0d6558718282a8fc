/*
 * Messages of kinds that keep nothing in Redis: their tag is their id.
 */
#ifndef RQD_QUEUE_FRESH_H
#define RQD_QUEUE_FRESH_H

#include "queue/queue.h"

struct redisReply;

/*
 * A message whose payload is taken out of a reply: a string, or an integer, the
 * length of one that is too large.  Its id is its own, or made up.
 */
struct message	*fresh_message(const struct queue_env *, struct config *,
		    const struct queue_config *, const struct redisReply *);

/*
 * The same of a payload that was taken before, NULL where it was too large.  Takes
 * payload, which reply_free_str() frees, and id; a NULL id is found, or made up.
 */
struct message	*fresh_of(const struct queue_env *, struct config *,
		    const struct queue_config *, char *payload, size_t len, char *id);

#endif
