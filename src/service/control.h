/*
 * Hints that rqctl sends to one daemon, on the channel rqd:control:INSTANCE.
 *
 * Hints only: nothing depends on their arrival, and unknown ones are ignored.  They come
 * over a connection of their own, so that a server that forbids the channel takes nothing
 * else away.
 */
#ifndef RQD_SERVICE_CONTROL_H
#define RQD_SERVICE_CONTROL_H

#include <stdbool.h>

#include "engine/consumer.h"
#include "loop/loop.h"
#include "redis/redis_options.h"

#define CONTROL_MAX	4096		/* bytes of one hint */

struct control;

struct control_events {
	void	(*quiet)(bool, void *);	/* take no new messages, or take them again */
	/*
	 * Call it for the queues with this key: consumer_probe_now(), or, where a message was
	 * cancelled, consumer_renew(): the renewal tells which one.
	 */
	void	(*queue)(const char *key, void (*)(struct consumer *), void *);
	void	(*beat)(void *);	/* rqctl wants a fresh heartbeat */
};

/* The options are borrowed. */
struct control	*control_new(struct loop *, const struct redis_options *, const char *instance,
		    const struct control_events *, void *arg);
void		 control_conn_up(struct control *);	/* Redis is there: connects now */
void		 control_probe(struct control *);	/* see conn_probe() */
void		 control_free(struct control *);

#endif
