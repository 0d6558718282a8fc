/*
 * The output of a handler: up to two pipes.  The loop reads them, and passes line after
 * line to the handler's events, with the context for a log record.  It keeps the last
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
#include "policy/pushes.h"

#define OUTPUT_LINE_MAX	((size_t)8 * 1024)
#define OUTPUT_TAIL	((size_t)4 * 1024)

struct output_pair;

struct output_stream {
	struct output_pair	 *output;
	int		  number;	/* 1 or 2 */
	int		  fd;		/* the daemon's end; -1: closed, or never opened */
	struct io	  io;
	struct line	  line;
};

struct output_pair {
	/* set by output_init(); the owner may change ctx, and owns its strings: */
	struct loop		*loop;
	const struct handler *handler;
	struct log_ctx		 ctx;
	void			(*eof)(struct output_pair *);	/* all streams have ended */
	/* read only: */
	bool			 cut;		/* the output exceeded the limit */
	/* private: */
	struct output_stream	 stream[2];	/* stdout, stderr */
	const struct message	*msg;		/* output_collect(); NULL: lines are logged */
	struct pushes		**pushes;
	bool			 collected;	/* output_end_collect() */
	struct buf		 tail;		/* of stderr; up to twice OUTPUT_TAIL */
	uint64_t		 left;		/* bytes until the limit */
};

/*
 * Opens nothing.  Lines go to the handler's events.  eof() comes from the loop, or from
 * output_drain(); it may free the output.
 */
void	output_init(struct output_pair *, struct loop *, const struct handler *,
	    uint64_t limit, void (*eof)(struct output_pair *));

/*
 * Makes the pipe of stream 1 or 2.  The caller gives *child_end to the child, and
 * closes it.  Returns 0, or -1 with errno.
 */
int	output_open(struct output_pair *, int number, int *child_end) MUSTCHECK;

/*
 * Lines of stream 1 become messages for the queue that cfg->output names.  They go to
 * *pushes, without the limit and without events; empty lines are skipped.  The message
 * must live until output_end_collect(), which also takes a last line without newline.
 * Later output is dropped.
 */
void	output_collect(struct output_pair *, const struct message *, struct pushes **pushes);
/* leftovers: the command has left processes; a kill may have cut their last line. */
void	output_end_collect(struct output_pair *, bool leftovers);

/*
 * From now on the loop reads the pipes.  Before this only output_drain() reads, and the
 * child waits when its pipe is full.
 */
void	output_listen(struct output_pair *);

/* Reads the pipes' present content, within bounds; call it when the child has exited. */
void	output_drain(struct output_pair *);

bool	output_is_open(const struct output_pair *);

/* The last OUTPUT_TAIL bytes of stderr, which the caller frees; NULL: none. */
char	*output_take_tail(struct output_pair *, size_t *len);

/*
 * Counts the limit anew, for another message.  forget: drops the tail, which was the
 * last message's.
 */
void	output_renew(struct output_pair *, uint64_t limit, bool forget);

void	output_close(struct output_pair *);	/* hands out unfinished lines; no eof() */
void	output_done(struct output_pair *);	/* hands out nothing; closes and frees */
