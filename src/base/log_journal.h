/*
 * Records for systemd's journal, with fields that it can be searched by.  Private
 * to log.c, log_sink.c and their tests.
 *
 * sd_journal_sendv(3) waits while the journal's socket is full, for instance because
 * the journal is stuck.  The log must not wait, so this file speaks the protocol
 * itself (systemd.io, "Native Journal Protocol").
 */
#ifndef RQD_BASE_LOG_JOURNAL_H
#define RQD_BASE_LOG_JOURNAL_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/log.h"

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

#endif
