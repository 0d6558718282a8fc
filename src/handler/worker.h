/*
 * One process of a persistent handler, and the messages that it has.
 *
 * The owner gives it messages while worker_has_room().  Each comes back exactly once by
 * finished(), in any order.  Both callbacks may come from inside of a call, so they may
 * only note changes, and must free nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "handler/command.h"
#include "handler/feed.h"
#include "handler/handler.h"
#include "handler/output.h"
#include "handler/subprocess.h"
#include "loop/io.h"
#include "loop/line.h"
#include "loop/timer.h"

enum worker_state {
	WORKER_WORKING,		/* takes messages */
	WORKER_RETIRING,	/* takes none, and finishes the ones it has */
	WORKER_CLOSING,		/* its stdin is closed; kill_grace to exit */
	WORKER_STOPPING,	/* SIGTERM; SIGKILL after kill_grace */
	WORKER_TAIL,		/* has exited; stderr is read for a second */
	WORKER_GONE		/* the owner may free it */
};

struct worker {
	/* set by the owner: */
	const struct handler_env  *env;
	const struct queue_config *cfg;
	struct handler		  *handler;
	/* The feed has left the worker's list; its result is certain. */
	void			 (*finished)(struct worker *, struct feed *);
	void			 (*changed)(struct worker *);	/* its state, or it has room */
	TAILQ_ENTRY(worker)	   entry;
	bool			   exit_seen;	/* by the owner */
	/* read only: */
	enum worker_state	   state;
	unsigned		   outstanding;	/* feeds */
	uint64_t		   messages;	/* given so far */
	uint64_t		   answers;
	const char		  *why;		/* why rqd ends it; NULL: it ends by itself */
	usec_t			   started;	/* mono */
	/* private: */
	struct feed_list	   feeds;	/* as they were given */
	struct feeder		   feeder;	/* its stdin */
	struct feed		  *culprit;	/* the one that caused the end; NULL: not known */
	char			  *protocol;	/* the breach of the protocol; NULL: none; owned */
	struct subprocess		   process;
	int			   out;		/* the daemon's end of its stdout; -1: closed */
	struct io		   out_io;
	bool			   inside;	/* of a line that is too long */
	struct line		   line;
	size_t			   pushed;	/* pushes_memory() of unanswered messages */
	struct pushes_debt	  *debt;	/* reference; NULL: none */
	struct timer		   again;	/* set: read stdout no earlier */
	struct output_pair	   output;	/* stderr */
	usec_t			   answered_at;	/* mono; 0: never */
	struct timer		   timer;	/* limit, then grace, then the tail's */
	struct timer		   age;
};

/* Starts a process: 0, or -1 with errno and *step.  Free the worker in both cases. */
int	worker_start(struct worker *, struct command *, const char **step) MUSTCHECK;
void	worker_free(struct worker *);	/* kills; its feeds must be gone */

bool	worker_has_room(const struct worker *);
bool	worker_is_live(const struct worker *);	/* has a process */
void	worker_give(struct worker *, struct feed *);

/*
 * Three ways to end the process, each faster than the one before.  A slower one after a
 * faster one has no effect.
 */
void	worker_retire(struct worker *, const char *why);
void	worker_stop(struct worker *, const char *why);
void	worker_kill(struct worker *);
