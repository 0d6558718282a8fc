/*
 * The spawner: a second process, the parent of every handler.  It starts, signals and reaps
 * them; the main process talks to Redis and has no handlers as children.
 *
 * The main process forks it before anything else, whoever starts rqd.  Started as root, the
 * spawner alone keeps privileges, and the main process becomes another user.  The spawner
 * never speaks to Redis.  Of a message it sees the id, the channel, and the values of
 * env_message.
 *
 * The orders of the main process (spawner_wire.h has the bytes):
 *
 *	load		Read the configuration again, and check it.  A child of the spawner does
 *			that, the loader.  If there are no errors, the spawner gets a generation
 *			of rows (load_rows.c): all that it needs to start the command of a queue.
 *			The main process gets the same configuration as text.
 *	retire G	No handler of generation G will be started any more.
 *	start		The command of queue Q of generation G, for a message with this id and these
 *			values of variables that the row names, with these descriptors.  S is a free
 *			slot, a small number.  The command line, user, directory, limits and all
 *			other variables are those of the row.
 *	signal S	SIGTERM, SIGCONT or SIGKILL to the process group of slot S.
 *	open PATH	Open a file, connect to a unix socket or listen on it (enum lend), if a
 *			generation names it.  A child does that, which has a few seconds: the
 *			file's server may hang.
 *
 * The last order has a socket of its own, because the main process waits for the answer.  The
 * spawner opens paths as root, so it follows a path only if root alone may write to all
 * folders on the way (base/trust.h).  An order that breaks the rules of spawner_wire.h ends it.
 *
 * When the main process has ended, however, the spawner kills all processes below itself,
 * and ends.  It inherits what handlers leave behind, so nothing of them is missed.  When the
 * spawner has ended, the kernel kills the handlers themselves, though not their children; the
 * main process kills those that have cgroups (cgroup.h), and exits.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "handler/spawn.h"
#include "loop/loop.h"
#include "policy/config.h"
#include "policy/message.h"
#include "policy/outcome.h"

struct rows;
struct spawner;

/*
 * The loader, a process of its own with the spawner's privileges: reads the configuration, and
 * writes what it has found wrong to file, and itself if it has no errors.  Later, with a
 * generation, it takes the configuration from there, because some rows could not be started.
 * Writes rows (load_rows()).  Returns whether it could.
 */
typedef bool	spawner_loader(int file, int rows, const struct rows *, unsigned generation,
		    void *arg);

/*
 * Forks.  Call before anything else, while the process is small; fatal on failure.  A spawner
 * with privileges opens files for us from now on (trust_lend()).
 */
struct spawner	*spawner_fork(spawner_loader *, void *arg);
/*
 * Ends the spawner and all handlers, and waits for that; NULL is fine.  Call it after all
 * handlers were freed; the loop must still be there, if it was attached to one.
 */
void		 spawner_stop(struct spawner *);

/*
 * From here on the loop serves it; call this after child_init().  died(): the spawner has
 * ended, and with it the handlers, but for processes that they have left.
 */
void	spawner_attach(struct spawner *, struct loop *, void (*died)(void *), void *arg);

/* -- the configuration --------------------------------------------------------------- */

/* The answer to a load. */
struct spawner_loaded {
	unsigned	 generation;	/* 0: there are errors */
	int		 config;	/* what the loader has written; -1: nothing */
	int		 error;		/* why there is nothing; or 0 */
};

/* loaded() is called once, from the loop; it closes the descriptor.  One load at a time. */
void	spawner_load(struct spawner *, void (*loaded)(const struct spawner_loaded *, void *),
	    void *arg);
/* Waits.  0, and the caller closes the descriptor; or -1: the spawner has ended. */
int	spawner_load_now(struct spawner *, struct spawner_loaded *) MUSTCHECK;
/* No handler of this generation will be started any more. */
void	spawner_retire(struct spawner *, unsigned generation);
/* The spawner keeps a generation while it is held; NULL is fine. */
void	spawner_hold(struct spawner *, struct config *);
void	spawner_drop(struct spawner *, struct config *);

/* -- handlers ------------------------------------------------------------------------ */

struct subprocess;

/* The end of a process: it was reaped, and nothing is left of its group. */
struct spawner_exit {
	bool		 signaled;	/* ended by a signal: code is its number */
	int		 code;
	unsigned	 leftovers;	/* processes of it outlived it; at least so many */
	bool		 oom;		/* the kernel killed some, for want of memory */
	int		 error;		/* why the command was not executed; 0: it was */
	const char	*step;		/* of the start that failed; static */
	struct usage	 usage;		/* of it, and of children that it has waited for */
};

/* Both come from the loop: started(), then exited(); or, if there was no process, only exited(). */
struct subprocess_events {
	/* pid is set. */
	void	(*started)(struct subprocess *);
	/* Other processes may still hold its pipes. */
	void	(*exited)(struct subprocess *, const struct spawner_exit *);
};

/* A process of a handler, embedded in its owner's struct; zeroed to start. */
struct subprocess {
	/* read only: */
	pid_t			 pid;		/* 0: not known yet; stays set after the exit */
	/* private: */
	const struct subprocess_events *events;
	struct spawner		*spawner;	/* NULL: no callback will come */
	uint32_t		 slot;
};

/*
 * Starts the command of a queue of this configuration, which the spawner has, with these
 * descriptors; -1 in fd is /dev/null.  It is started for msg; for a batch of so many messages
 * (msg is NULL); or for many messages one by one (NULL, and 0).  The caller closes its copies
 * of the descriptors.  0, or -1 with errno: no callback comes.
 */
int	subprocess_start(struct subprocess *, struct spawner *, const struct config *,
	    const struct queue_config *, const struct message *, unsigned batch,
	    const int fd[SPAWN_FDS], const struct subprocess_events *) MUSTCHECK;

/*
 * Sends SIGTERM, and SIGCONT in case it is stopped.  At its exit the rest of its session is
 * killed, whatever the queue's leftovers says.
 */
void	subprocess_stop(struct subprocess *);
void	subprocess_kill(struct subprocess *);		/* SIGKILL, likewise */

/*
 * Call it before the owner is freed: no callback comes any more.  A zeroed struct, or
 * one that was done before, is fine.
 */
void	subprocess_done(struct subprocess *);
