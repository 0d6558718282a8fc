/*
 * One process of a handler, whatever the mode.
 *
 * The daemon starts the process, or asks the launcher to.  The guardian knows it until
 * it and its group are gone.  The owner embeds the struct, and gives it descriptors.
 */
#pragma once

#include "handler/command.h"
#include "handler/launcher.h"
#include "loop/child.h"

struct subprocess;

/* All come from the loop. */
struct subprocess_events {
	/* The launcher has started it: pid is set. */
	void	(*started)(struct subprocess *);
	/* The launcher could not start it: the error number, and the step that failed. */
	void	(*failed)(struct subprocess *, int error, const char *step);
	/*
	 * It was reaped, and its group is gone; other processes may still hold its
	 * pipes.  error and step say why the command could not be executed; 0: it was.
	 */
	void	(*exited)(struct subprocess *, const struct child_exit *, int error,
		    const char *step);
};

struct subprocess {
	/* read only: */
	pid_t			 pid;		/* 0: not known yet; stays set after the exit */
	/* private: */
	const struct handler_env *env;
	const struct subprocess_events *events;
	struct child		 child;
	volatile pid_t		*slot;		/* guardian's; NULL: none */
	struct start		 start;		/* used if there is a launcher */
};

/*
 * Starts the command with these descriptors; -1 in fd is /dev/null.  It is started for
 * msg; for a batch of so many messages (msg is NULL); or for many messages one by one
 * (NULL, and 0).  The caller closes its copies of the descriptors.  Returns 0, or -1
 * with errno and *step, and then no callback comes.  Afterwards pid is set, unless
 * started() or failed() will come.
 */
int	subprocess_start(struct subprocess *, const struct handler_env *, struct command *,
	    const struct message *, unsigned batch,
	    const int fd[SPAWN_FDS], bool kill_leftovers,
	    const struct subprocess_events *, const char **step) MUSTCHECK;

/*
 * Sends SIGTERM, and SIGCONT in case it is stopped.  At its exit the rest of its group
 * is killed.
 */
void	subprocess_stop(struct subprocess *);
void	subprocess_kill(struct subprocess *);		/* SIGKILL */

/*
 * Call it before the owner is freed: no callback comes any more.  A zeroed struct, or
 * one that was done before, is fine.
 */
void	subprocess_done(struct subprocess *);
