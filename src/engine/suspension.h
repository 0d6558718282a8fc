/*
 * The suspension of one queue: its circuit breaker (policy/breaker.h), with the timers,
 * the log records and the counter that belong to it.  Embedded in its consumer.
 *
 * It also keeps the reason why Redis refuses results of the queue, which suspends
 * nothing.
 */
#pragma once

#include "base/stats.h"
#include "loop/timer.h"
#include "policy/breaker.h"
#include "policy/message.h"

#define SUSPENSION_CAUSE_MAX	500	/* bytes */

struct suspension {
	/* read only: */
	struct breaker	 breaker;
	char		*refused;	/* why Redis refuses results; owned; NULL: it does not */
	usec_t		 refused_since;	/* mono */
	/*
	 * The cause of the suspension, or of the last probe's failure; visible UTF-8;
	 * "": none.
	 */
	char		 cause[SUSPENSION_CAUSE_MAX + 1];
	/* private: */
	const struct queue_config *cfg;
	struct stats	*stats;
	struct timer	 probe;		/* set while the breaker is OPEN */
	struct timer	 reminder;	/* hourly while suspended */
	void		(*changed)(void *);
	void		(*blocked)(void *);
	void		*arg;
};

/*
 * changed(): breaker_allows() may have another answer now.  blocked(): the queue was
 * suspended or resumed, or `refused` has changed.  Both may come from inside of a call.
 */
void	suspension_init(struct suspension *, struct loop *, const struct queue_config *,
	    struct stats *, void (*changed)(void *), void (*blocked)(void *), void *arg);
void	suspension_done(struct suspension *);
void	suspension_reconfigure(struct suspension *, const struct queue_config *);

bool	suspension_is_on(const struct suspension *);
void	suspension_probe_now(struct suspension *);

/* A delivery has ended. */
void	suspension_judge(struct suspension *, const struct verdict *, const struct result *);
/* A message was given back before it ran, or a fetch brought none. */
void	suspension_idle(struct suspension *);
/* Redis refused a fetch, with this error.  _accepted: it answered one. */
void	suspension_refused(struct suspension *, const char *error);
void	suspension_accepted(struct suspension *);
/*
 * Redis refuses results, for this reason; "": it accepts them again.  The first reason
 * stays.
 */
void	suspension_results(struct suspension *, const char *why);
