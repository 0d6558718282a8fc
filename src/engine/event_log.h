/*
 * The log records about messages and queues: their events, levels and keys, as rqd(8)
 * LOGGING describes them.
 */
#pragma once

#include <stdbool.h>

#include "policy/breaker.h"
#include "policy/message.h"
#include "policy/outcome.h"
#include "queue/queue.h"

void	 event_log_delivered(const struct message *);
void	 event_log_settled(const struct message *, const struct verdict *,
	    const struct result *, enum settled);
/* An acked delivery's messages are in their queues. */
void	 event_log_pushed(const struct message *, const struct result *);
/* Redis has confirmed the acks of a batch. */
void	 event_log_batch(const struct queue_config *, const struct result *, unsigned acked);
/* All messages of a batch have results, and its process goes on. */
void	 event_log_lingers(const struct queue_config *, pid_t, unsigned batch);
/* A batch has written a wrong line that belongs to no message. */
void	 event_log_wrong(const struct queue_config *, const struct result *);
void	 event_log_ticked(const struct queue_config *, const struct tick_report *);
void	 event_log_paused(const struct queue_config *, bool, const char *why);
void	 event_log_limited(const struct queue_config *, const char *reason);
void	 event_log_listening(const struct queue_config *, bool on, const char *why);
void	 event_log_suspended(const struct queue_config *, const struct breaker *,
	    const char *cause);
void	 event_log_resumed(const struct queue_config *, const struct breaker *);

/* A schedule's tick, at Redis' time `now`; and an error of one. */
void	 event_log_scheduled(const struct queue_config *, const struct schedule_config *,
	    int64_t tick, double now);
void	 event_log_schedule_missed(const struct queue_config *, const struct schedule_config *,
	    int64_t tick);
void	 event_log_schedule_failed(const struct queue_config *, const struct schedule_config *,
	    const char *cause);

/*
 * Describes how a command failed: "command /opt/ship: exit status 127, stderr: ship:
 * not found".  The text of the handler may be any bytes.  NULL: no process has ended or
 * failed to start.  The caller frees it.
 */
char	*event_log_cause(const struct queue_config *, const struct result *);
