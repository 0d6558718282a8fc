/*
 * The inside of the log, for log*.c and their tests.
 *
 *	log.c		levels, and the sink in use
 *	log_text.c	records to text
 *	log_journal.c	records for the journal
 *	log_sink.c	where records go, without ever blocking
 */
#pragma once

#include "base/buf.h"
#include "base/log.h"

/* -- log_text.c ---------------------------------------------------------------- */

/*
 * Appends one record without newline; with_ts: it begins with the time.  ctx may be NULL.
 * The text is valid UTF-8 and holds no control character, whatever bytes the values have.
 */
void	log_text(struct buf *, enum log_format, bool with_ts, enum log_level,
	    const char *event, const struct log_ctx *, const struct log_field *);

/* Appends the value of a LOG_T_INT or LOG_T_USEC field, as log_text() writes it. */
void	log_number(struct buf *, const struct log_field *);

/* Sets f to the fields of a context, which may be NULL, and LF_END. */
#define LOG_CONTEXT_MAX	5
void	log_context(const struct log_ctx *, struct log_field f[LOG_CONTEXT_MAX]);

/* -- log_journal.c ------------------------------------------------------------- */

/*
 * sd_journal_sendv(3) waits while the journal's socket is full, for instance because
 * the journal is stuck.  The log must not wait, so this file speaks the protocol
 * itself (systemd.io, "Native Journal Protocol").
 */
#define LOG_JOURNAL_SOCKET	"/run/systemd/journal/socket"

/*
 * Appends one record as a frame: its length, then the datagram.  MESSAGE is the
 * record's text without ts; event, context and fields are RQD_EVENT, RQD_QUEUE,
 * RQD_ID and so on, raw bytes.  Bytes of messages and of output (LOG_T_MEM) are in
 * the text only.
 */
void	 log_journal(struct buf *, enum log_format, int priority, enum log_level,
	    const char *event, const struct log_ctx *, const struct log_field *);

/* Returns the length of the frame at p, with its header. */
size_t	 log_journal_frame(const char *p);

/* Sends a datagram that is too long for the socket, in a memfd; returns as send(2). */
ssize_t	 log_journal_send_long(int fd, const char *p, size_t n);

/* -- log_sink.c ---------------------------------------------------------------- */

/* How bytes are handed to the kernel without waiting. */
enum sink_way {
	SINK_FILE,	/* regular file: plain write */
	SINK_NONBLOCK,	/* pipe or terminal: an open description of our own */
	SINK_POLL,	/* pipe or terminal that cannot be opened again: poll, then a small write */
	SINK_SEND,	/* stream socket: MSG_DONTWAIT */
	SINK_DATAGRAM,	/* syslog: a record is a datagram */
	SINK_JOURNAL	/* the journal: datagrams; log_journal() makes records frames */
};

struct log_sink {
	enum sink_way	 way;
	int		 fd;		/* -1: the datagram socket is not connected */
	bool		 borrowed;	/* fd 2 itself: not ours to close */
	/*
	 * stderr is the stream that $JOURNAL_STREAM names, and the journal's datagram socket
	 * cannot be used: records begin with "<PRIORITY>", and have no ts.
	 */
	bool		 journal;
	bool		 midway;	/* the last byte out did not end a record */
	bool		 choked;	/* drops every record until log_sink_take_lost() */
	char		*path;		/* owned; of a file or a datagram socket, else NULL */
	struct buf	 backlog;	/* records, as written; the first may be a rest of one */
	size_t		 out;		/* bytes at the start of backlog that are written */
	uint64_t	 lost;		/* records dropped and not yet reported */
	int		 error;		/* errno of the last write where it failed, else 0 */
};

/* These return NULL with *cause where they fail; target: see log_open(). */
struct log_sink	*log_sink_open(const char *target, char **cause);
struct log_sink	*log_sink_syslog(const char *socket_path, char **cause);
struct log_sink	*log_sink_journal(const char *socket_path);	/* NULL: it is not there */
void		 log_sink_free(struct log_sink *);	/* does not flush */

/*
 * Writes or keeps one record, which ends in its only newline (SINK_JOURNAL: one frame).
 * Returns false where it was dropped and counted.  Where nothing waits, several records may
 * come in one call, but to a sink of datagrams; false then counts them as one.
 */
bool		 log_sink_write(struct log_sink *, const char *, size_t);

/* Writes as much of the backlog as the descriptor takes now; after an error it drops the rest. */
void		 log_sink_flush(struct log_sink *);

/* Drops the backlog and counts its records as lost. */
void		 log_sink_drop(struct log_sink *);

/*
 * Returns how many records were lost since the last call, and ends `choked`: the caller
 * reports the loss in its next record.  Returns 0 until half of the backlog is written.
 */
uint64_t	 log_sink_take_lost(struct log_sink *);

/* The journal's datagram socket, for log_sink_open("stderr"); tests set another, or NULL: none. */
extern const char *log_sink_journal_path;
