/*
 * The log records about messages and queues: their events, levels and keys
 * (section 9 of the contract, rqd(8) LOGGING).  The only file that spells them.
 */
#ifndef RQD_ENGINE_JOURNAL_H
#define RQD_ENGINE_JOURNAL_H

#include <stdbool.h>

#include "base/log.h"
#include "policy/breaker.h"
#include "policy/message.h"
#include "policy/outcome.h"
#include "queue/queue.h"

void	 journal_delivered(const struct message *);
void	 journal_settled(const struct message *, const struct verdict *,
	    const struct result *, enum settled);
void	 journal_ticked(const struct queue_config *, const struct tick_report *);
void	 journal_paused(const struct queue_config *, bool, const char *why);
void	 journal_limited(const struct queue_config *, const char *reason);
void	 journal_listening(const struct queue_config *, bool on, const char *why);
void	 journal_suspended(const struct queue_config *, const struct breaker *,
	    const char *cause);
void	 journal_resumed(const struct queue_config *, const struct breaker *);

/* A schedule's tick, at Redis' time `now`; and what went wrong with one. */
void	 journal_scheduled(const struct queue_config *, const struct schedule_config *,
	    int64_t tick, double now);
void	 journal_schedule_missed(const struct queue_config *, const struct schedule_config *,
	    int64_t tick);
void	 journal_schedule_failed(const struct queue_config *, const struct schedule_config *,
	    const char *cause);

/* Why a command could not be executed, in words; NULL where it says nothing.
 * The caller frees it. */
char	*journal_cause(const struct queue_config *, const struct result *);

#endif
