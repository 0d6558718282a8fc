/*
 * Descriptor 3 of an exec handler: a pipe, whose lines are statements
 * (policy/statement.h) without a number.  Embedded in its owner.
 *
 * The last retry, defer or dead counts; ok withdraws it.  After a line that is no
 * statement, none of them counts.
 *
 * In a batch a line may begin with the number of a message; the run_batch takes it.  A
 * line without a number is about all messages that no line with a number has decided.
 */
#pragma once

#include "handler/handler.h"
#include "handler/run_batch.h"
#include "loop/io.h"
#include "loop/line.h"
#include "loop/timer.h"

struct verdict_pipe {
	/* private: */
	struct run	*run;		/* gets the progress */
	const struct message *msg;
	struct pushes	**pushes;
	struct run_batch *batch;	/* takes lines with a number; NULL: no batch */
	int		 fd;		/* our end; -1: closed, or never opened */
	struct io	 io;
	struct timer	 again;		/* set: waits for Redis, and reads nothing */
	struct line	 line;
	bool		 inside;	/* of a line that is too long */
	bool		 unfinished;	/* a process may still be writing the last line */
	struct result	 said;		/* said, delay and answer so far */
};

/*
 * Opens nothing.  run must outlive the pipe; msg must live until verdict_pipe_end().
 * Messages that the handler pushes go to *pushes.  For a batch msg is NULL, and batch
 * must outlive the pipe.
 */
void	verdict_pipe_init(struct verdict_pipe *, struct run *, const struct message *,
	    struct pushes **pushes, struct run_batch *batch);

/* The caller gives *child_end to the child, and closes it.  Returns 0, or -1 with errno. */
int	verdict_pipe_open(struct verdict_pipe *, int *child_end) MUSTCHECK;

/*
 * From now on the loop reads the pipe.  Before this nothing is read, and a child that
 * fills the pipe waits.
 */
void	verdict_pipe_listen(struct verdict_pipe *);

/*
 * The command has exited: reads the pipe's present content, no byte more, and closes
 * it.  The verdict goes to the result, which must own no answer.
 */
void	verdict_pipe_end(struct verdict_pipe *, struct result *);

void	verdict_pipe_done(struct verdict_pipe *);	/* reads nothing; closes and frees */
