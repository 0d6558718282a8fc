/*
 * One process of a persistent handler, and the messages that it has.
 *
 * The owner hands it messages while worker_has_room(); each comes back exactly
 * once by over(), in any order.  Neither over() nor changed() may free anything.
 */
#ifndef RQD_HANDLER_WORKER_H
#define RQD_HANDLER_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "handler/command.h"
#include "handler/handler.h"
#include "handler/output.h"
#include "loop/child.h"
#include "loop/io.h"
#include "loop/line.h"
#include "loop/timer.h"

struct worker;

/* One message at a persistent handler. */
struct feed {
	struct run	 base;
	TAILQ_ENTRY(feed) entry;	/* of worker.feeds, or of the owner's lists */
	struct message	*msg;
	struct worker	*worker;	/* NULL: not at a process (waiting, or over) */
	uint64_t	 number;
	char		 header[MESSAGE_ID_MAX + 80];
	size_t		 header_len;
	bool		 answered;	/* result is certain, but not all bytes are written */
	bool		 over;		/* result is certain, done() is to come */
	struct result	 result;	/* result.stop: why rqd ended it */
	usec_t		 started;	/* mono: given to the process */
	usec_t		 written;	/* mono: its last byte, or started */
};
TAILQ_HEAD(feed_list, feed);

enum worker_state {
	WORKER_WORKING,		/* takes messages */
	WORKER_RETIRING,	/* none any more; finishes those it has */
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
	void			 (*finished)(struct feed *);	/* off feeds; result is certain */
	void			 (*changed)(struct worker *);	/* has room, has exited, or is gone */
	TAILQ_ENTRY(worker)	   entry;
	/* read only: */
	enum worker_state	   state;
	unsigned		   outstanding;	/* feeds */
	uint64_t		   messages;	/* given so far */
	/* private: */
	struct feed_list	   feeds;	/* as they were given */
	struct feed		  *next;	/* the first not wholly written; NULL: none */
	size_t			   sent;	/* bytes of next */
	struct feed		  *culprit;	/* whose fault the end is; NULL: not known */
	char			  *protocol;	/* what broke it; NULL: nothing; owned */
	const char		  *why;		/* of its end, for the log; NULL: its own */
	struct child		   child;
	pid_t			   pid;
	volatile pid_t		  *slot;
	int			   in, out;	/* our ends; -1: closed */
	struct io		   in_io, out_io;
	struct line		   line;
	struct output_pair	   output;	/* stderr */
	usec_t			   answered_at;	/* mono; 0: never */
	struct timer		   timer;	/* limit, then grace, then the tail's */
	struct timer		   age;
	struct defer		   flush;
};

/* Starts a process: 0, or -1 with errno and *step; free it then too. */
int	worker_start(struct worker *, struct command *, const char **step) MUSTCHECK;
void	worker_free(struct worker *);	/* kills; its feeds must be gone */

bool	worker_has_room(const struct worker *);
bool	worker_is_live(const struct worker *);	/* has a process */
void	worker_give(struct worker *, struct feed *);
void	worker_retire(struct worker *, const char *why);
void	worker_stop(struct worker *, const char *why);
void	worker_kill(struct worker *);

#endif
