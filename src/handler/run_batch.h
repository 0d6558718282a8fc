/*
 * The messages of one run of a batch: their frames, and which of them are done.
 *
 * Messages are numbered from 1, in the order in which the process gets them.  A line "N
 * ok" on descriptor 3 ends message N at the end of the turn.  Other verdicts count when
 * the command exits by itself.
 */
#pragma once

#include "handler/handler.h"
#include "policy/statement.h"

struct run_batch;

struct run_batch	*run_batch_new(struct run *, struct message *const *, unsigned n);
/* May be called inside of done(). */
void			 run_batch_free(struct run_batch *);	/* NULL is fine */
unsigned		 run_batch_size(const struct run_batch *);

/*
 * Writes the frames of all messages into a new file; its position stays at the beginning.
 * 0, or -1 with errno.
 */
int			 run_batch_write(const struct run_batch *, int fd) MUSTCHECK;

/*
 * Takes a line with a number; cut: only its beginning.  fault: why it is no statement,
 * which fails the message; or NULL.  Returns NULL, or why the line fails the run: no
 * message has the number, or that message is done.
 */
const char		*run_batch_say(struct run_batch *, const struct statement *,
			    const char *fault, bool cut, const char *line, size_t) MUSTCHECK;

/* The results that Redis has not taken yet are large: read no more lines for now. */
bool			 run_batch_must_wait(const struct run_batch *);

/*
 * The run has ended: calls done() for each message that is not done, then over().  The
 * caller must return at once, since the run may be freed.
 */
void			 run_batch_finish(struct run_batch *, struct result *);
