/*
 * The drain: how the daemon finishes before it exits.  No consumer takes a new message;
 * handlers may finish until the timeout, and are ended then; their results reach Redis.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "loop/loop.h"
#include "service/consumers.h"

struct drain;

/*
 * The consumers are borrowed.  over() comes once, from the loop.  all_closed: all
 * consumers are closed; false: the drain has stopped waiting, and has logged which
 * messages will run again.
 */
struct drain	*drain_new(struct loop *, struct consumers *,
		    void (*over)(bool all_closed, void *), void *arg);
void		 drain_free(struct drain *);	/* any time; NULL is fine */

/* timeout: drain_timeout; call it once. */
void		 drain_begin(struct drain *, usec_t timeout);
/*
 * Ends the handlers now; if that is under way already, by SIGKILL.  Call it after
 * drain_begin().
 */
void		 drain_hasten(struct drain *);
/* A consumer was closed; call it whether or not a drain has begun. */
void		 drain_consumer_closed(struct drain *);

/* "draining" or "stopped", as systemd, HTTP and rqctl show it; NULL: it has not begun. */
const char	*drain_state_name(const struct drain *);
