/*
 * One process of a persistent handler, and the messages that it has.
 *
 * The owner gives it messages while worker_has_room(); each comes back exactly once
 * by finished(), in any order.  Both callbacks may come from inside of a call: they
 * only note what has changed, and free nothing.
 */
#ifndef RQD_HANDLER_WORKER_H
#define RQD_HANDLER_WORKER_H

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
	WORKER_RETIRING,	/* takes none; finishes those it has */
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
	/* The feed is off the worker's list; its result is certain. */
	void			 (*finished)(struct worker *, struct feed *);
	void			 (*changed)(struct worker *);	/* its state, or it has room */
	TAILQ_ENTRY(worker)	   entry;
	bool			   exit_seen;	/* by the owner */
	/* read only: */
	enum worker_state	   state;
	unsigned		   outstanding;	/* feeds */
	uint64_t		   messages;	/* given so far */
	uint64_t		   answers;
	const char		  *why;		/* rqd ends it; NULL: it ends by itself */
	usec_t			   started;	/* mono */
	/* private: */
	struct feed_list	   feeds;	/* as they were given */
	struct feeder		   feeder;	/* its stdin */
	struct feed		  *culprit;	/* whose fault the end is; NULL: not known */
	char			  *protocol;	/* what broke it; NULL: nothing; owned */
	struct subprocess		   process;
	int			   out;		/* our end of its stdout; -1: closed */
	struct io		   out_io;
	bool			   inside;	/* of a line that is too long */
	struct line		   line;
	size_t			   pushed;	/* pushes_memory() of what is not answered */
	struct pushes_debt	  *debt;	/* reference; NULL: none */
	struct timer		   again;	/* set: stdout is not read before */
	struct output_pair	   output;	/* stderr */
	usec_t			   answered_at;	/* mono; 0: never */
	struct timer		   timer;	/* limit, then grace, then the tail's */
	struct timer		   age;
};

/* Starts a process: 0, or -1 with errno and *step; free it then too. */
int	worker_start(struct worker *, struct command *, const char **step) MUSTCHECK;
void	worker_free(struct worker *);	/* kills; its feeds must be gone */

bool	worker_has_room(const struct worker *);
bool	worker_is_live(const struct worker *);	/* has a process */
void	worker_give(struct worker *, struct feed *);

/* Each goes further than the one before; none goes back. */
void	worker_retire(struct worker *, const char *why);
void	worker_stop(struct worker *, const char *why);
void	worker_kill(struct worker *);

#endif
