/*
 * Where records go, without ever blocking.  Private to log.c and its tests.
 */
#ifndef RQD_BASE_LOG_SINK_H
#define RQD_BASE_LOG_SINK_H

#include "base/buf.h"
#include "base/log.h"

/* How bytes are handed to the kernel so that it does not make us wait. */
enum sink_way {
	SINK_FILE,	/* regular file: plain write; nothing ever waits */
	SINK_NONBLOCK,	/* pipe or terminal: an open description of our own */
	SINK_POLL,	/* the same where none could be had: poll, then a small write */
	SINK_SEND,	/* stream socket: MSG_DONTWAIT */
	SINK_DATAGRAM,	/* syslog: a record is a datagram */
	SINK_JOURNAL	/* the journal: the same, and records come as frames (log_journal.h) */
};

struct log_sink {
	enum sink_way	 way;
	int		 fd;		/* -1: the datagram socket is not connected */
	bool		 borrowed;	/* fd 2 itself: not ours to close */
	bool		 journal;	/* stderr is $JOURNAL_STREAM, and its socket is not there */
	bool		 midway;	/* the last byte out did not end a record */
	bool		 choked;	/* losing all until log_sink_take_lost() */
	char		*path;		/* owned; of a file or a datagram socket, else NULL */
	struct buf	 backlog;	/* records with newlines; midway: a rest first */
	size_t		 out;		/* of backlog: so many bytes at its beginning are out */
	uint64_t	 lost;		/* records dropped and not yet reported */
};

/* NULL with *cause; target as for log_open(). */
struct log_sink	*log_sink_open(const char *target, char **cause);
struct log_sink	*log_sink_syslog(const char *socket_path, char **cause);
struct log_sink	*log_sink_journal(const char *socket_path);	/* NULL: it is not there */
void		 log_sink_free(struct log_sink *);	/* does not flush */

/*
 * Takes one record, which ends in its only newline (SINK_JOURNAL: one frame), to
 * write or to keep; false: it was lost, and counted.
 */
bool		 log_sink_write(struct log_sink *, const char *, size_t);

/* Writes of the backlog what can be written now. */
void		 log_sink_flush(struct log_sink *);

/* Gives up what waits, and counts it as lost. */
void		 log_sink_drop(struct log_sink *);

/*
 * How many records were lost since the last call, for the report that must be
 * written next; 0 while half of the backlog is not out yet.
 */
uint64_t	 log_sink_take_lost(struct log_sink *);

/* Where stderr's journal is looked for; tests set another path, or NULL. */
extern const char *log_sink_journal_path;

#endif
