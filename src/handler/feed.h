/*
 * The standard input of a persistent handler's process (struct feeder), and a message
 * on its way there or at the process (struct feed).  persistent.c makes and frees
 * feeds.  The worker has them on its list, in the order in which it gave them; the
 * feeder only points into that list.  frame.h describes the frames.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "handler/handler.h"
#include "loop/io.h"

struct worker;

/* One message at a persistent handler. */
struct feed {
	struct run	 base;
	TAILQ_ENTRY(feed) entry;	/* of worker.feeds, or of the owner's lists */
	struct message	*msg;
	struct worker	*worker;	/* NULL: not at a process (waiting, or over) */
	uint64_t	 number;
	bool		 answered;	/* result is certain, but not all bytes are written */
	bool		 over;		/* result is certain, done() will come */
	struct result	 result;	/* result.stop: why rqd ended it */
	usec_t		 started;	/* mono: given to the process */
	usec_t		 written;	/* mono: its last byte, or started */
};
TAILQ_HEAD(feed_list, feed);

/*
 * The pipe.  Messages that are added in a turn of the loop are written at its end, in
 * as few calls as possible.  The rest waits until the process has read.
 */
struct feeder {
	/* set by feeder_init(): */
	struct loop	 *loop;
	void		(*written)(struct feed *);	/* to its last byte; may not free it */
	void		(*broken)(struct feeder *);	/* the process has closed its stdin */
	/* read only: */
	int		  fd;		/* our end; -1: closed */
	struct feed	 *next;		/* the first not wholly written; NULL: none */
	size_t		  sent;		/* bytes of next */
	/* private: */
	bool		  stopped;
	struct io	  io;
	struct defer	  flush;
};

void	feeder_init(struct feeder *, struct loop *, void (*written)(struct feed *),
	    void (*broken)(struct feeder *));
/* The caller gives *child_end to the child, and closes it.  Returns 0, or -1 with errno. */
int	feeder_open(struct feeder *, int *child_end) MUSTCHECK;

/* f is the last of its list, and stays on it until written() or feeder_close(). */
void	feeder_add(struct feeder *, struct feed *);

/*
 * Ends the stream.  Inside of a message it leaves the pipe open and silent instead: the
 * process would take the part for a whole message.
 */
void	feeder_stop(struct feeder *);
void	feeder_close(struct feeder *);
