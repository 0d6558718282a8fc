/*
 * Pages of messages that wait: peek.lua.
 */
#ifndef RQD_RQCTL_PEEK_H
#define RQD_RQCTL_PEEK_H

#include <stddef.h>
#include <stdint.h>

#include "rqctl/ctl.h"
#include "rqctl/delivery.h"

struct redisReply;

/* Borrowed from the page. */
struct peeked {
	double		 score;		/* due; 0 where it has none; see peek_due() */
	const char	*tag;		/* KEY_RETRY, ids of kind "unique", of entries; else "" */
	size_t		 taglen;
	struct delivery	 delivery;	/* KEY_RETRY only */
	int64_t		 size;		/* of the whole message */
	const char	*data;		/* its beginning */
	size_t		 len;
};

/*
 * key is KEY_QUEUE (next first), KEY_DELAYED or KEY_RETRY (by time).  A page may have
 * fewer than count; an empty one is the end, NULL an error that was said.
 * from: where offset counts from the first with this score or more; "": from the first.
 * cut: bytes of each message, -1 all.
 */
struct redisReply *peek_page(struct ctl *, const struct target *, enum key, const char *from,
		    int64_t offset, long count, long cut);
size_t		 peek_len(const struct redisReply *);
void		 peek_get(const struct redisReply *, size_t, struct peeked *);
/* Of QDELAYED, or of kind "unique": seconds, where the score has another unit or was put off. */
double		 peek_due(const struct peeked *);
const char	*peek_id(enum kind, const struct peeked *, char *buf);	/* MESSAGE_ID_MAX + 1 bytes */

#endif
