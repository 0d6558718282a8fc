/*
 * Handlers from inside: processes, and the messages that they have.
 *
 *	handler.c	which process gets a message; calls done()
 *	process.c		one process, from its start to its end
 *	feed.c		the frames in its input
 *	output.c	its pipes
 *
 * A message is a struct feed.  One list at a time has it, and owns it, unless it is memory of
 * its batch:
 *
 *	handler.waiting --> process.feeds --> handler.over --> done(), freed
 *
 * A process has none to many.  In mode exec it is started for one message, or for a batch of
 * them, and its exit ends them; a batch may end single ones before.  In mode persistent it
 * gets messages while it runs, and its answers end them.
 *
 * Nothing here calls the owner of the handler but handler.c, once a turn.  So a process and a
 * feed stay valid until the end of the turn in which they end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "handler/handler.h"
#include "handler/output.h"
#include "handler/spawner.h"
#include "loop/io.h"
#include "loop/timer.h"

/* A message; or a batch (msg is NULL), which ends after its messages. */
struct feed {
	struct run	 base;
	TAILQ_ENTRY(feed) entry;	/* of the list that owns it; a batch: of handler.over */
	struct message	*msg;
	struct process	*process;	/* NULL: it waits for one, or is over */
	uint64_t	 number;	/* among the messages of its process, from 1 */
	size_t		 len;		/* of its frame; 0: none was made */
	bool		 answered;	/* result is certain, but not all bytes are written */
	bool		 over;		/* result is certain, done() will come */
	bool		 in_batch;	/* is memory of process.batch */
	struct result	 result;	/* result.stop: why rqd ended it; .said: so far */
	usec_t		 started;	/* mono: given to the process */
	usec_t		 written;	/* mono: its last byte, or started */
};
TAILQ_HEAD(feed_list, feed);

/*
 * Writes frames of messages by one call of writev(2), from the byte *sent of *next on; moves
 * both.  1: all that it tried was written; 0: not all; -1 with errno.
 */
int	feed_write(int fd, struct feed **next, size_t *sent, bool raw) MUSTCHECK;

TAILQ_HEAD(process_list, process);

struct handler {
	const struct handler_events	*events;
	void			*arg;
	const struct handler_env *env;
	struct config		*config;	/* reference held */
	const struct queue_config *cfg;
	struct process_list	 processes;	/* idle ones first, the last used of them first */
	struct process_list	 gone;		/* freed at the end of the turn */
	struct feed_list	 waiting;	/* persistent: for room, in order */
	struct feed_list	 over;		/* done() will come */
	struct defer		 update;
	bool			*freed;		/* set when freed; NULL: not in done() */
	void			(*closed)(void *);	/* NULL: not closing */
	void			*closed_arg;
	/* of processes: */
	unsigned		 live;		/* have a process */
	unsigned		 working;	/* are WORKING */
	unsigned		 busy;		/* have messages */
	/* persistent: */
	unsigned		 deaths;	/* in a row, without an answer */
	usec_t			 not_before;	/* mono: of the next start */
	struct timer		 pause;
};

/* At the end of the turn, looks what is to be done. */
void		 handler_touch(struct handler *);

enum process_state {
	PROCESS_WORKING,	/* persistent: takes messages */
	PROCESS_RETIRING,	/* persistent: takes none, and finishes the ones it has */
	PROCESS_CLOSING,	/* persistent: its stdin is closed; kill_grace to exit */
	PROCESS_STOPPING,	/* SIGTERM; SIGKILL after kill_grace */
	PROCESS_TAIL,		/* has exited; its output is read for a second */
	PROCESS_GONE		/* on handler.gone */
};

struct process {
	struct handler		*handler;
	TAILQ_ENTRY(process)	 entry;		/* of handler.processes, or of handler.gone */
	enum process_state	 state;
	struct subprocess	 child;
	usec_t			 started;	/* mono */
	struct timer		 timer;		/* listening, limit, then grace, then the tail's */
	const char		*why;		/* why rqd ends it; NULL: it ends by itself */
	struct feed_list	 feeds;		/* without a result, as they were given */
	unsigned		 outstanding;	/* length of feeds */
	uint64_t		 messages;	/* given so far */
	struct output		 output;	/* stdout, stderr, descriptor 3 */
	bool			 inside;	/* of a statement's line that is too long */
	size_t			 pushed;	/* pushes_memory() of unanswered messages */
	/* exec: */
	struct feed		*run;		/* the message, or the batch (owned); NULL: over */
	struct feed		*batch;		/* its messages by number - 1; owned; NULL: none */
	bool			 listens;	/* or will when pid is known */
	char			 id[MESSAGE_ID_MAX + 1];	/* for late output */
	char			*trace;		/* likewise; owned; NULL: none */
	/* persistent: */
	int			 in;		/* the daemon's end of its stdin; -1: closed */
	struct io		 in_io;
	struct defer		 in_flush;
	bool			 in_stopped;	/* nothing more is written */
	struct feed		*next;		/* the first not wholly written; NULL: none */
	size_t			 sent;		/* bytes of next */
	uint64_t		 answers;
	usec_t			 answered_at;	/* mono; 0: never */
	struct feed		*culprit;	/* the one that caused the end; NULL: not known */
	char			*protocol;	/* the breach of the protocol; NULL: none; owned */
	struct timer		 age;
};

/*
 * Makes one that takes messages.  Mode exec: run is its message (n is 0), or the batch of n
 * messages, whose feeds the caller makes in process.batch; persistent: NULL.  Give it the
 * messages of its run before it is started.  If it cannot be started, its messages end with
 * END_NOT_STARTED, and it is gone.
 */
struct process	*process_new(struct handler *, struct feed *run, unsigned n);
void		 process_give(struct process *, struct feed *);
void		 process_start(struct process *);
void		 process_free(struct process *);	/* kills; frees its feeds; is on no list */

/* Takes no more messages, and closes stdin after the last one.  Persistent. */
void		 process_retire(struct process *, const char *why);
/* SIGTERM and SIGCONT now, SIGKILL after kill_grace.  Has no effect if it was stopped. */
void		 process_stop(struct process *, const char *why);

void		 feed_free(struct feed *);
/*
 * The message has its result, and leaves its process: done() comes at the end of the turn.
 * If it has none, it must be on no list.
 */
void		 feed_over(struct feed *);
