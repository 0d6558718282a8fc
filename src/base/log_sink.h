/*
 * Where records go, without ever blocking.  Private to log.c and its tests.
 */
#ifndef RQD_BASE_LOG_SINK_H
#define RQD_BASE_LOG_SINK_H

#include "base/buf.h"
#include "base/log.h"

/* How bytes are handed to the kernel without waiting. */
enum sink_way {
	SINK_FILE,	/* regular file: plain write */
	SINK_NONBLOCK,	/* pipe or terminal: an open description of our own */
	SINK_POLL,	/* pipe or terminal that cannot be opened again: poll, then a small write */
	SINK_SEND,	/* stream socket: MSG_DONTWAIT */
	SINK_DATAGRAM,	/* syslog: a record is a datagram */
	SINK_JOURNAL	/* the journal: datagrams; records come as frames (log_journal.h) */
};

struct log_sink {
	enum sink_way	 way;
	int		 fd;		/* -1: the datagram socket is not connected */
	bool		 borrowed;	/* fd 2 itself: not ours to close */
	bool		 journal;	/* stderr is $JOURNAL_STREAM, and its socket is not there */
	bool		 midway;	/* the last byte out did not end a record */
	bool		 choked;	/* drops every record until log_sink_take_lost() */
	char		*path;		/* owned; of a file or a datagram socket, else NULL */
	struct buf	 backlog;	/* records with newlines; midway: a rest first */
	size_t		 out;		/* bytes at the start of backlog that are written */
	uint64_t	 lost;		/* records dropped and not yet reported */
	int		 error;		/* errno of the last write where it failed, else 0 */
};

/* NULL with *cause; target as for log_open(). */
struct log_sink	*log_sink_open(const char *target, char **cause);
/*
 * As log_open() opens a file; -1 with errno.  O_NONBLOCK makes open(2) refuse a FIFO
 * without a reader instead of waiting.  O_NOFOLLOW: nobody who can replace the file may
 * redirect our writes to another one.
 */
int		 log_sink_open_file(const char *path) MUSTCHECK;
void		 log_sink_set_opener(int (*)(const char *path, void *arg), void *arg);
struct log_sink	*log_sink_syslog(const char *socket_path, char **cause);
struct log_sink	*log_sink_journal(const char *socket_path);	/* NULL: it is not there */
void		 log_sink_free(struct log_sink *);	/* does not flush */

/*
 * Writes or keeps one record, which ends in its only newline (SINK_JOURNAL: one
 * frame).  Returns false where it was dropped and counted.
 */
bool		 log_sink_write(struct log_sink *, const char *, size_t);

/* Writes as much of the backlog as the descriptor takes now. */
void		 log_sink_flush(struct log_sink *);

/* Drops the backlog and counts its records as lost. */
void		 log_sink_drop(struct log_sink *);

/*
 * Returns how many records were lost since the last call; the caller reports it in
 * its next record.  Returns 0 until half of the backlog is written.
 */
uint64_t	 log_sink_take_lost(struct log_sink *);

/* Where stderr's journal is looked for; tests set another path, or NULL. */
extern const char *log_sink_journal_path;

#endif
