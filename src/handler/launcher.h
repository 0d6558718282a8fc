/*
 * The launcher: a second process, which may change users.  The main process talks to
 * Redis and has no privileges.
 *
 * The main process is started with privileges.  Before anything else it forks the
 * launcher, and gives up its own privileges.  The launcher never speaks to Redis and
 * never sees a message.  It reads the configuration itself.
 *
 * The orders of the main process (launch_wire.h has the bytes):
 *
 *	load		Read the configuration again, and check it.  If it has no errors, the
 *			launcher keeps it as a generation, and sends its text, from which the
 *			main process makes the same.
 *	retire G	No handler of generation G is left, and none will be started.
 *	start		The command of queue Q of generation G, with these words RQD_NAME=... of
 *			a message and these descriptors.  S is a free slot, a small number.  The
 *			command line, user, directory, limits and all other variables are those of
 *			the launcher's own copy of the configuration.
 *	signal S	SIGTERM, SIGCONT or SIGKILL to the session of slot S.
 *	end PID		SIGKILL to the group of a child of the main process.
 *	file PATH	Open the file, if it is redis.password_file, tls_ca, tls_cert or tls_key of
 *			a generation, or redis-password of $CREDENTIALS_DIRECTORY.  Connect to it,
 *			if it is the unix socket of a redis.server of a generation.
 *	log G		Open the log file of generation G, log.target, to append to it.
 *	listen G	Listen on the unix socket of generation G, http.listen.
 *	unlisten	The main process has closed that socket: remove its file.
 *
 * The paths of "log" and "listen" are those of the launcher's own copy.  It opens them
 * as root, so it follows a path only if root alone may write to all folders on the way
 * (base/trust.h).
 *
 * The launcher answers "load", "file", "log" and "listen".  The child of a start sends
 * its pid as its first act; the launcher answers a start only if that fails.  The last
 * four orders have a socket of their own, because the main process waits for the answer.
 * An order that breaks the rules of launch_wire.h ends the launcher.
 *
 * A handler is a child of the main process (CLONE_PARENT), which reaps it.
 *
 * Ownership.  Descriptors of a start stay the sender's; the launcher closes its copies
 * once the child has its own.  A slot is the main process' from launcher_start() to
 * launcher_finish().
 *
 * If the main process dies the launcher reads the end of its sockets, and ends.  If
 * the launcher ends, its guardian (guardian.h) kills all sessions whose slot is not
 * finished, and the main process ends.  The launcher starts the guardian again if that dies.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "handler/spawn.h"
#include "loop/loop.h"
#include "policy/config.h"

struct launcher;

struct launcher_ops {
	/*
	 * In a process of its own, with privileges: writes the configuration to text,
	 * if it has no errors, and the findings to report.  0, or -1: it has errors.
	 */
	int		 (*load)(int text, int report, void *arg);
	/* In the launcher: the configuration from that text; NULL: impossible. */
	struct config	*(*read)(int text, void *arg);
	/*
	 * In the launcher: opens the log file of the configuration, or listens on its
	 * unix socket.  A descriptor, or -1 with errno.
	 */
	int		 (*open_log)(const struct config *);
	int		 (*listen)(const struct config *);
	/* In the launcher: removes that socket's file, if there is one. */
	void		 (*unlisten)(void);
};

/* Forks.  Call before anything else, while the process is small; fatal on failure. */
struct launcher	*launcher_fork(const struct launcher_ops *, void *arg);

/* The answer to a load; the caller closes both descriptors. */
struct launcher_loaded {
	unsigned	 generation;	/* 0: there are errors, see report */
	int		 text;		/* -1 where generation is 0 */
	int		 report;	/* -1: none */
	int		 error;		/* why there is no report; or 0 */
};

/* Loads, and waits for the answer.  0, or -1 with errno: the launcher has ended. */
int	launcher_load_now(struct launcher *, struct launcher_loaded *) MUSTCHECK;

/*
 * From here on the loop serves it; call this after child_init().  died(): the launcher
 * has ended.
 */
void	launcher_attach(struct launcher *, struct loop *, void (*died)(void *), void *arg);

/* loaded() is called once, from the loop; at most one load at a time. */
void	launcher_load(struct launcher *, void (*loaded)(struct launcher_loaded *, void *),
	    void *arg);

/*
 * Ends the launcher, and waits for that; NULL is fine.  Call it after child_done().  It
 * kills handlers that still run.
 */
void	launcher_stop(struct launcher *);

/* Waits for the answer, a few seconds at most.  Returns the descriptor, or -1 with errno. */
int	launcher_open(struct launcher *, const char *path) MUSTCHECK;

/* The same for the log file and the listening unix socket of a generation. */
int	launcher_open_log(struct launcher *, unsigned generation) MUSTCHECK;
int	launcher_listen(struct launcher *, unsigned generation) MUSTCHECK;
/* The socket is closed: lets the launcher remove its file.  Does not wait. */
void	launcher_unlisten(struct launcher *);

/* The launcher keeps a generation while it is held. */
void	launcher_hold(struct launcher *, unsigned generation);
void	launcher_drop(struct launcher *, unsigned generation);

/* One start of a handler, embedded in its owner's struct. */
struct start {
	/* set by the owner; one of them comes, once, from the loop: */
	void		(*started)(struct start *, pid_t);
	void		(*failed)(struct start *, int error, enum spawn_step);
	/* private: */
	struct launcher	*launcher;	/* NULL: no launcher has started it */
	uint32_t	 slot;
};

/* 0: one of the callbacks will come; -1 with errno: none will. */
int	launcher_start(struct launcher *, struct start *, unsigned generation, unsigned queue,
	    const struct buf *words, const int fd[SPAWN_FDS]) MUSTCHECK;
void	launcher_signal(struct start *, int signo);
/* At its exit: the error number and *step if it could not be executed; 0: it was. */
int	launcher_exited(const struct start *, enum spawn_step *step);
/* No process of the handler is left: the slot is free. */
void	launcher_finish(struct start *);
/*
 * The owner is freed before the process ends: no callback comes any more, and the
 * launcher ends the process.
 */
void	launcher_forget(struct start *);
