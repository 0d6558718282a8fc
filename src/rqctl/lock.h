/*
 * A lock in Redis: the key Lock:NAME, which its holder renews.
 *
 * The value is a random token and, for people, the holder's host, process and time
 * (see lock.lua).  Other programs may take the same key by SETNX and EXPIRE.
 *
 * A waiter tries several times a second, and when the time to live of the key is over.
 * Waiters are not queued: the first to try after a release gets the lock.
 *
 * A holder's time ends `ttl` after it SENT the last renewal that succeeded, on
 * CLOCK_BOOTTIME.  Redis began to count after that.  So the lock is ours until then,
 * unless Redis loses the key or another program overwrites it.
 *
 * No callback comes from inside a call.
 */
#pragma once

#include "base/clock.h"
#include "loop/loop.h"
#include "redis/redis_options.h"
#include "redis/reply.h"

struct lock;

struct lock_options {
	const char	*name;		/* of the lock, without Lock: */
	const char	*who;		/* "HOST PID" */
	usec_t		 ttl;
	usec_t		 grace;		/* ending() comes this long before the end; < ttl */
	usec_t		 wait;		/* how long to try; 0: once; < 0: for ever */
};

/* Why the lock was not taken. */
enum lock_refusal {
	LOCK_BUSY,		/* text: the holder's value */
	LOCK_DOWN,		/* text: why Redis cannot be reached */
	LOCK_REFUSED		/* text: Redis' error */
};

/* The result of a release. */
enum lock_release {
	LOCK_RELEASED,
	LOCK_LOST,		/* the lock was no longer ours */
	LOCK_LEFT		/* Redis did not answer: the lock will expire */
};

struct lock_events {
	/* At most once, if another holder has it: the holder's value. */
	void	(*waiting)(const char *holder, void *);
	void	(*held)(void *);
	/* Instead of held().  error is REPLY_OK but for LOCK_REFUSED. */
	void	(*refused)(enum lock_refusal, enum reply_error error, const char *text, void *);
	/*
	 * At most once, while held: the lock is lost, or will be after `left`, because
	 * it cannot be renewed.  The protected work must end.
	 */
	void	(*ending)(const char *why, usec_t left, void *);
	void	(*released)(enum lock_release, void *);
};

/* Options are copied, but for their texts, which must outlive the lock. */
struct lock	*lock_new(struct loop *, const struct redis_options *,
		    const struct lock_options *, const struct lock_events *, void *arg);

/* Releases the lock; released() follows.  Call it in any state, but not after refused(). */
void		 lock_release(struct lock *);
/* At any time, but not from its callbacks; NULL is allowed. */
void		 lock_free(struct lock *);

/*
 * Describes the holder by a lock's value: "web3, process 4711, since
 * 2026-11-21T08:00:00.000Z", or the value itself if another program has set it.  The caller
 * frees it.
 */
char		*lock_holder_text(const char *value);
