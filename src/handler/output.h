/*
 * What the process of a handler writes: up to three pipes.  The lines of each are records
 * of the log, or messages for another queue, or statements.  It also keeps the last
 * OUTPUT_TAIL bytes of standard error, for the error of a dead letter.  Embedded in its
 * owner.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/log.h"
#include "handler/handler.h"
#include "loop/io.h"
#include "loop/line.h"
#include "loop/timer.h"
#include "policy/pushes.h"

#define OUTPUT_LINE_MAX	((size_t)8 * 1024)
#define OUTPUT_TAIL	((size_t)4 * 1024)

struct output;

enum stream_use {
	STREAM_LOG,		/* lines go to the handler's events, up to output_limit */
	/*
	 * Lines are messages for the queue that msg->cfg->output names.  They go to *pushes,
	 * without limit and events; empty ones are skipped.
	 */
	STREAM_MESSAGES,
	STREAM_STATEMENTS,	/* lines go to statement() */
	STREAM_DROPPED		/* is read, and nothing is done with it */
};

struct output_stream {
	struct output	*output;
	int		 number;	/* the child's descriptor: 1, 2 or 3 */
	enum stream_use	 use;
	int		 fd;		/* the daemon's end; -1: closed, or never opened */
	struct io	 io;
	struct line	 line;
};

struct output {
	/* set by output_init(): */
	struct loop		*loop;
	const struct queue_config *cfg;
	const struct handler_events *events;
	void			*arg;		/* of events */
	/* A line; cut: it goes on.  output is this struct. */
	void			(*statement)(const char *, size_t, bool cut, void *output);
	void			(*ended)(struct output *);	/* a stream has ended */
	/* set by the owner, which owns the strings of ctx and the message: */
	struct log_ctx		 ctx;
	const struct message	*msg;		/* of STREAM_MESSAGES; until output_end() */
	struct pushes		**pushes;	/* likewise */
	struct pushes_debt	*debt;		/* reference; large: no statement is read */
	/* read only: */
	bool			 cut;		/* the output exceeded the limit */
	bool			 unfinished;	/* a process may be writing the last statement */
	usec_t			 waited;	/* mono: it last waited because of the debt; or 0 */
	/* private: */
	struct output_stream	 stream[3];
	struct timer		 again;		/* set: it waits because of the debt */
	struct buf		 tail;		/* of stderr; up to twice OUTPUT_TAIL */
	uint64_t		 left;		/* until the limit: bytes, and 100 a record */
};

/* Opens nothing.  ended() comes from the loop, not from the calls below. */
void	output_init(struct output *, struct loop *, const struct queue_config *,
	    const struct handler_events *, void *arg,
	    void (*statement)(const char *, size_t, bool, void *), void (*ended)(struct output *));

/*
 * Makes the pipe of a stream.  The caller gives *child_end to the child, and closes it.
 * Returns 0, or -1 with errno.
 */
int	output_open(struct output *, int number, enum stream_use, int *child_end) MUSTCHECK;

/*
 * From now on the loop reads the pipes.  Before this only output_drain() reads, and the
 * child waits when its pipe is full.
 */
void	output_listen(struct output *);

/* Reads the pipes' present content, within bounds; call it when the child has exited. */
void	output_drain(struct output *);
/*
 * The child has exited, and the pipes were drained: ends the lines of messages and of
 * statements.  On descriptors 1 (messages) and 3, a last line without newline is a line,
 * unless a process may still be writing it, or left: the child was killed, or has left
 * processes, and a kill may have cut that line.
 */
void	output_end(struct output *, bool left);

bool	output_is_open(const struct output *);
static inline bool
output_has(const struct output *o, int number)		/* the pipe is open */
{
	return o->stream[number - 1].fd != -1;
}

/* The last OUTPUT_TAIL bytes of stderr, which the caller frees; NULL: none. */
char	*output_take_tail(struct output *, size_t *len);

/*
 * Counts the limit anew, for another message.  forget: drops the tail, which was the
 * last message's.
 */
void	output_renew(struct output *, bool forget);

void	output_close(struct output *);	/* hands out unfinished lines */
void	output_done(struct output *);	/* hands out nothing; closes and frees */
