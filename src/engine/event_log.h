/*
 * The log records about messages and queues: their events, levels and keys, as rqd(8)
 * LOGGING describes them.
 */
#pragma once

#include "base/log.h"
#include "policy/message.h"
#include "policy/outcome.h"
#include "queue/queue.h"

/* A record about a queue; the fields as in log_event(). */
#define queue_event(cfg, level, event, ...)	\
	log_event((level), (event), (&(struct log_ctx){ .queue = (cfg)->name }), __VA_ARGS__)

void	 event_log_delivered(const struct message *);
/* Also counts it. */
void	 event_log_settled(struct stats *, const struct message *, const struct verdict *,
	    const struct result *, enum settled);
/* Processes that a run has left were killed, if it was not stopped.  msg: NULL for a batch. */
void	 event_log_leftovers(const struct queue_config *, const struct message *,
	    const struct result *);
/* Redis has confirmed the acks of a batch. */
void	 event_log_batch(const struct queue_config *, const struct result *, unsigned acked);

/*
 * Describes how a run failed: "exit status 127, stderr: ship: not found"; else as
 * event_log_cause().
 */
char	*event_log_failure(const struct queue_config *, const struct verdict *,
	    const struct result *);
/*
 * Describes how a command failed: "command /opt/ship: exit status 127, stderr: ship:
 * not found"; "command /opt/ship: it said retry: carrier is down".  The text of the handler may
 * be any bytes.  NULL: there is nothing to say.  The caller frees it.
 */
char	*event_log_cause(const struct queue_config *, const struct verdict *,
	    const struct result *);
