/*
 * Descriptor 3 of an exec handler: a pipe, whose lines are statements
 * (policy/statement.h) without a number.  Embedded in its owner.
 *
 * The last retry, defer or dead counts; ok withdraws it.  A line that is no statement
 * beats them all.
 *
 * In a batch a line may begin with the number of a message: it is the run_batch's.  A
 * line without one is about all messages of which no such line has decided.
 */
#ifndef RQD_HANDLER_VERDICT_PIPE_H
#define RQD_HANDLER_VERDICT_PIPE_H

#include "handler/handler.h"
#include "handler/run_batch.h"
#include "loop/io.h"
#include "loop/line.h"
#include "loop/timer.h"

struct verdict_pipe {
	/* private: */
	struct run	*run;		/* whose progress it tells */
	const struct message *msg;
	struct pushes	**pushes;
	struct run_batch *batch;	/* takes lines with a number; NULL: there are none */
	int		 fd;		/* our end; -1: closed, or never opened */
	struct io	 io;
	struct timer	 again;		/* set: Redis is waited for, and nothing is read */
	struct line	 line;
	bool		 inside;	/* of a line that is too long */
	bool		 unfinished;	/* a process may still be writing the last line */
	struct result	 said;		/* said, delay and answer, so far */
};

/*
 * Nothing is open after it.  run outlives the pipe, msg verdict_pipe_end().  What the
 * handler pushes goes to *pushes.  For a batch msg is NULL, and batch outlives the pipe.
 */
void	verdict_pipe_init(struct verdict_pipe *, struct run *, const struct message *,
	    struct pushes **pushes, struct run_batch *batch);

/* *child_end is the caller's to give to the child and close.  0, or -1 with errno. */
int	verdict_pipe_open(struct verdict_pipe *, int *child_end) MUSTCHECK;

/*
 * The loop reads what comes from now on.  Before it nothing is read, and a child that
 * fills the pipe waits.
 */
void	verdict_pipe_listen(struct verdict_pipe *);

/*
 * The command has exited: reads what is in the pipe at this moment, and no byte more, and
 * closes it.  The words and what was said go to the result, which must own no answer.
 */
void	verdict_pipe_end(struct verdict_pipe *, struct result *);

void	verdict_pipe_done(struct verdict_pipe *);	/* reads nothing; closes and frees */

#endif
