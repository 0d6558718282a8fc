/*
 * Hints that rqctl sends to one daemon, on the channel rqd:control:INSTANCE.
 *
 * They are hints only: nothing depends on their arrival, and unknown ones are ignored.
 * They come over a connection of their own, so that nothing else fails if the server
 * forbids the channel.
 */
#pragma once

#include <stdbool.h>

#include "engine/consumer.h"
#include "loop/loop.h"
#include "redis/redis_options.h"

#define CONTROL_MAX	4096		/* bytes of one hint */

struct control;

struct control_events {
	void	(*quiet)(bool, void *);	/* take no new messages, or take them again */
	/*
	 * Call the function for the queues with this key.  It is consumer_probe_now(),
	 * or, after a cancel, consumer_renew(): the renewal tells which message was
	 * cancelled.
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
