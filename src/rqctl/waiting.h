/*
 * Messages of a queue, page by page: in Q, QDELAYED, QRETRY and QBACKUP; and the fields of
 * QDELIVERY, "ATTEMPTS CRASHES TOKEN TIME IDLEN" for each tag (see doc/keys.md).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rqctl/ask.h"

#define WAITING_CUT	65536	/* bytes of a message that a table needs: enough to find its id */
#define WAITING_SHOWN	200	/* bytes of a message that a table shows */

#define DELIVERY_INSTANCE	128	/* bytes for the name of an instance */
#define DELIVERY_BY		65	/* bytes for who has cancelled it */

struct delivery_info {
	bool	 ours;		/* rqd has written the field; else the rest is 0 */
	long	 attempts;	/* failures so far */
	long	 crashes;
	bool	 owned;		/* in flight, or it was when its lease ended */
	double	 time;		/* Redis seconds of the delivery, or of the push */
	size_t	 idlen;		/* length of the id in the tag */
	bool	 saves;		/* a handler has saved a text ... */
	const char *saved;	/* ... in the text that was parsed, of a page; else NULL */
	bool	 cancelled;	/* by rqctl cancel ... */
	char	 by[DELIVERY_BY];	/* ... and who did it; "": not known */
	char	 instance[DELIVERY_INSTANCE];	/* the daemon's, while owned; else "" */
};

/* The daemon of a token; "": it is no token of rqd. */
void	delivery_instance(const char *token, char ret[DELIVERY_INSTANCE]);

/* Parses a field.  NULL, or text of another form: rqd has not written it. */
void	delivery_parse(const char *, struct delivery_info *);

/* Borrowed from the page. */
struct waiting {
	double		 score;		/* 0 where there is none; see waiting_due() */
	const char	*tag;		/* of tags, ids of kind "unique" and entries; else "" */
	size_t		 taglen;
	struct delivery_info	 delivery;	/* of tags only: KEY_RETRY, KEY_BACKUP, KEY_HELD */
	int64_t		 size;		/* of the whole message */
	const char	*data;		/* its beginning */
	size_t		 len;
};

/*
 * A place between two pages.  Of a zset it is a score, not an offset from the front: daemons
 * remove others from there meanwhile.
 */
struct waiting_place {
	enum key	 key;		/* KEY_QUEUE (next first); of the others by time */
	char		 from[48];	/* a score, or the id of a stream's last entry; "": first */
	int64_t		 passed;	/* messages from there on that the pages had */
	bool		 end;		/* no more follow */
};

/*
 * Returns the page at this place, and moves the place behind it; NULL after an error was
 * reported.  A page has WAITING_PAGE messages and 256 KiB at most, so it may have fewer than
 * count.  cut: bytes of each message; -1: all.
 */
#define WAITING_PAGE	250
struct redisReply *waiting_page(struct ctl *, const struct target *, struct waiting_place *,
		    long count, long cut);
/*
 * Visits messages one by one, from a place on:
 *
 *	struct visit v = { .ctl = c, .target = t, .at = { .key = KEY_HELD } };
 *	while (visit_next(&v, &m))
 *		...
 *	rc = visit_end(&v);	// 0, or -1 after an error was reported
 */
struct visit {
	struct ctl		*ctl;
	const struct target	*target;
	struct waiting_place	 at;	/* behind the page */
	long			 cut;	/* as for waiting_page() */
	int64_t			 most;	/* messages; 0: all */
	int64_t			 n;	/* messages so far */
	double			 now;	/* Redis seconds of the page */
	/* private: */
	struct redisReply	*page;
	size_t			 i;
	bool			 failed;
};

bool	 visit_next(struct visit *, struct waiting *);	/* borrowed until the next call */
/* The message, the last one, has left the key: what follows has moved up. */
void	 visit_gone(struct visit *, const struct waiting *);
int	 visit_end(struct visit *);

size_t	 waiting_len(const struct redisReply *);
double	 waiting_now(const struct redisReply *);	/* Redis seconds of the page */
void	 waiting_get(const struct redisReply *, size_t, struct waiting *);

/*
 * Whether it may be a message of a group that was held until a walk, which began at `since`, has
 * removed the one before it: nobody has chosen it.
 */
bool	 waiting_is_next(const struct waiting *, double since, double now);

/*
 * Where an entry of a stream is: state is "" (there is no such entry), "waiting", "pending" or
 * "done".  NULL after an error was reported.
 */
enum { ENTRY_STATE, ENTRY_MESSAGE, ENTRY_CONSUMER, ENTRY_IDLE, ENTRY_DELIVERIES, ENTRY_FIELDS };
struct redisReply *waiting_entry(struct ctl *, const char *id);

/* When a message of QDELAYED or kind "unique" is due, in seconds, whatever unit its score has. */
double	 waiting_due(const struct waiting *);
/* "never", "now", "in 5m" into buf; returns it. */
#define WAITING_DUE_MAX	40
char	*waiting_due_text(double due, double now, char *buf);
/* The id, or "" where rqd will make one or the message is cut; MESSAGE_ID_MAX + 1 bytes. */
const char *waiting_id(const struct target *, const struct waiting *, char *buf);
