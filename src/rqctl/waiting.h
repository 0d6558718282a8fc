/* Messages that wait in Redis, page by page: in Q, in QDELAYED and in QRETRY. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rqctl/ask.h"
#include "rqctl/delivery.h"

#define WAITING_CUT	65536	/* bytes of a message that a table needs: enough to find its id */
#define WAITING_SHOWN	200	/* bytes of a message that a table shows */

/* Borrowed from the page. */
struct waiting {
	double		 score;		/* 0 where there is none; see waiting_due() */
	const char	*tag;		/* KEY_RETRY, ids of kind "unique", of entries; else "" */
	size_t		 taglen;
	struct delivery_info	 delivery;	/* KEY_RETRY only */
	int64_t		 size;		/* of the whole message */
	const char	*data;		/* its beginning */
	size_t		 len;
};

/*
 * key is KEY_QUEUE (next first), KEY_DELAYED or KEY_RETRY (by time).  A page may have
 * fewer than count; an empty one is the end, NULL means that an error was reported.
 * from: offset counts from the first with this score; "": from the first.
 * cut: bytes of each message; -1: all.
 */
struct redisReply *waiting_page(struct ctl *, const struct target *, enum key, const char *from,
		    int64_t offset, long count, long cut);
size_t	 waiting_len(const struct redisReply *);
double	 waiting_now(const struct redisReply *);	/* Redis seconds of the page */
void	 waiting_get(const struct redisReply *, size_t, struct waiting *);

/* When a message of QDELAYED or kind "unique" is due, in seconds, whatever unit its score has. */
double	 waiting_due(const struct waiting *);
/* "never", "now", "in 5m" into buf; returns it. */
#define WAITING_DUE_MAX	40
char	*waiting_due_text(double due, double now, char *buf);
/* The id, or "" where rqd will make one or the message is cut; MESSAGE_ID_MAX + 1 bytes. */
const char *waiting_id(enum kind, const struct waiting *, char *buf);
