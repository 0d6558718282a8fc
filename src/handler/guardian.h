/*
 * A tiny process that outlives the daemon by a moment: when the daemon dies
 * in any way, it kills every process of every handler's session, so that no
 * handler runs beside its redelivered message.
 *
 * The daemon writes the session ids of its handlers into shared memory (the
 * child itself does, before exec, so no death falls in between); the guardian
 * sleeps in read(2) on a pipe until the daemon is gone.  It costs nothing per
 * message.
 */
#ifndef RQD_HANDLER_GUARDIAN_H
#define RQD_HANDLER_GUARDIAN_H

#include <sys/types.h>

#include "loop/loop.h"

struct guardian;

/* Forks.  Call early, while the process is small.  slots: sessions at most at once. */
struct guardian	*guardian_start(struct loop *, unsigned slots);
void		 guardian_stop(struct guardian *);	/* NULL is fine; all slots must be free */

/* A slot for one handler; never NULL: beyond `slots` the table grows by a new guardian. */
volatile pid_t	*guardian_slot(struct guardian *);
void		 guardian_release(struct guardian *, volatile pid_t *);

#endif
