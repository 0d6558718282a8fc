/*
 * A small process that waits for the daemon's death, and then kills every process of
 * every handler's session.  So no handler runs while another daemon has its message.
 *
 * The daemon writes the session ids of its handlers into shared memory (the child
 * itself does, before exec, so no death falls in between); the guardian sleeps in
 * read(2) on a pipe until the daemon is gone.  A message costs it nothing.
 */
#pragma once

#include <sys/types.h>

#include "base/util.h"
#include "loop/loop.h"

struct guardian;

/*
 * Forks.  Call early, while the process is small, and after child_init().  Never NULL:
 * a guardian that cannot be forked, or dies, is started again, at most once a second.
 */
struct guardian	*guardian_start(struct loop *);
void		 guardian_stop(struct guardian *);	/* NULL is fine; all slots must be free */

/*
 * A slot for one handler; the child writes its pid to it.  NULL only without a
 * guardian.  Release it after the handler's group was killed and reaped.
 */
volatile pid_t	*guardian_slot(struct guardian *);
void		 guardian_release(struct guardian *, volatile pid_t *);	/* NULL slot is fine */

pid_t		 guardian_pid(const struct guardian *);	/* 0: none at this moment */

/*
 * The parts of a guardian, for the launcher, which has no loop.  shared: slots that the
 * main process marks as done.
 */
struct guardian_table;
struct launch_slot;

struct guardian_table *guardian_table_new(const struct launch_slot *shared);
volatile pid_t	*guardian_table_slot(struct guardian_table *, size_t);
/*
 * The slot's process starts now.  A process that began a second later or more is
 * another one.
 */
void		 guardian_table_note(struct guardian_table *, size_t);
/* The guardian acts when *fd is closed in all processes.  Returns its pid, or -1 with errno. */
pid_t		 guardian_fork(const struct guardian_table *, int *fd) MUSTCHECK;
