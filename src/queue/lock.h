/*
 * A lock in Redis: the key Lock:NAME, which its holder renews.
 *
 *	WANTED -> HELD -> RELEASING -> OVER
 *	   `------------------^
 *
 * The value is a random token and, for people, who holds it since when (see
 * lock.lua).  Other programs may take the same key by SETNX and EXPIRE.
 *
 * Who waits tries when the key changes (client tracking, a second connection
 * that is made only then), when its time to live is over, and now and then;
 * where tracking is refused, several times a second.  There is no line: who
 * comes first when it is free has it.
 *
 * A holder's time ends `ttl` after the moment at which the last renewal that
 * succeeded was SENT, on CLOCK_BOOTTIME: Redis began to count after that moment,
 * so the lock is ours until then, whatever has happened to Redis, except that
 * its memory may be lost or overwritten.
 *
 * No callback comes from inside a call.
 */
#ifndef RQD_QUEUE_LOCK_H
#define RQD_QUEUE_LOCK_H

#include "base/clock.h"
#include "loop/loop.h"
#include "redis/redis_options.h"
#include "redis/reply.h"

struct lock;

struct lock_options {
	const char	*name;		/* of the lock, without Lock: */
	const char	*who;		/* "HOST PID" */
	usec_t		 ttl;
	usec_t		 grace;		/* ending() comes so long before the end; < ttl */
	usec_t		 wait;		/* how long to try; 0: once; < 0: without end */
};

/* Why the lock was not had. */
enum lock_refusal {
	LOCK_BUSY,		/* text: the holder's value */
	LOCK_DOWN,		/* text: why Redis cannot be reached */
	LOCK_REFUSED		/* text: Redis' error */
};

/* How it went to give it back. */
enum lock_release {
	LOCK_RELEASED,
	LOCK_LOST,		/* it was not ours any more */
	LOCK_LEFT		/* Redis did not answer: it ends with its time to live */
};

struct lock_events {
	/* Once, when it turns out that somebody else has it: the holder's value. */
	void	(*waiting)(const char *holder, void *);
	void	(*held)(void *);
	/* Instead of held().  error is REPLY_OK but for LOCK_REFUSED. */
	void	(*refused)(enum lock_refusal, enum reply_error error, const char *text, void *);
	/*
	 * While held, once: it is lost, or will be in `left`, because it cannot
	 * be renewed.  What it protects must end.
	 */
	void	(*ending)(const char *why, usec_t left, void *);
	void	(*released)(enum lock_release, void *);
};

/* Options are copied, but for their texts, which must outlive the lock. */
struct lock	*lock_new(struct loop *, const struct redis_options *,
		    const struct lock_options *, const struct lock_events *, void *arg);

/* Gives it back, and answers released(), in any state but after refused(). */
void		 lock_release(struct lock *);
void		 lock_free(struct lock *);	/* any time, but not from its callbacks; NULL is fine */

/* The parts of a value: "TOKEN HOST PID SINCE". */
struct lock_holder {
	char	host[256];	/* "": another program's, or nobody's */
	long	pid;
	double	since;		/* Redis' time */
};
void		 lock_holder(const char *value, struct lock_holder *);

#endif
