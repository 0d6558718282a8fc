/*
 * The log: one record a line, as logfmt or JSON, with stable keys.
 *
 *	log_event(LOG_LV_INFO, "acked", &ctx, LF_INT("status", 0),
 *	    LF_USEC("duration", usec));
 *	-> ts=2026-11-21T03:36:12.345Z level=info event=acked queue=orders
 *	   id=7 attempt=1 pid=812 status=0 duration=0.012431
 *
 * ts, level and event come first, then queue, id, attempt, pid and trace, then the
 * fields in the order given.  Values are quoted only where needed; bytes that
 * are not printable are escaped (\xHH, \n, \t), so that nothing of a message
 * or of a handler's output can forge a record or drive a terminal.
 *
 * No function waits for a reader.  Records that a sink cannot take now wait in a queue of at
 * most LOG_BACKLOG bytes (LOG_BACKLOG_JOURNAL for the journal).  Records beyond it are
 * dropped and counted; `event=warning reason=log_dropped` says how many when there is room
 * again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/util.h"

#define LOG_BACKLOG	(256 * 1024)
/* Larger: the journal's records are three times as long, and it takes them one by one. */
#define LOG_BACKLOG_JOURNAL	(4 * 1024 * 1024)

/* LV: log.c includes syslog.h, too, which has a LOG_INFO. */
enum log_level { LOG_LV_ERROR, LOG_LV_WARN, LOG_LV_INFO, LOG_LV_DEBUG };
enum log_format { LOG_LOGFMT, LOG_JSON };

/* The object of a record; any member may be empty.  Borrowed for the call. */
struct log_ctx {
	const char	*queue;		/* NULL: none */
	const char	*id;		/* NULL: none */
	unsigned	 attempt;	/* 0: none */
	pid_t		 pid;		/* 0: none */
	const char	*trace;		/* NULL: none */
};

enum log_type { LOG_T_END, LOG_T_STR, LOG_T_MEM, LOG_T_INT, LOG_T_USEC };

struct log_field {
	const char	*key;
	enum log_type	 type;
	const char	*str;		/* LOG_T_STR: NULL leaves the field out */
	size_t		 len;		/* LOG_T_MEM */
	int64_t		 num;		/* LOG_T_INT; LOG_T_USEC: printed as seconds */
};

#define LF_STR(k, s)	((struct log_field){ (k), LOG_T_STR, (s), 0, 0 })
#define LF_MEM(k, p, n)	((struct log_field){ (k), LOG_T_MEM, (p), (n), 0 })
#define LF_INT(k, n)	((struct log_field){ (k), LOG_T_INT, NULL, 0, (n) })
#define LF_USEC(k, u)	((struct log_field){ (k), LOG_T_USEC, NULL, 0, (u) })
#define LF_END		((struct log_field){ NULL, LOG_T_END, NULL, 0, 0 })

/* Fields are evaluated only if the level is on. */
#define log_event(level, event, ctx, ...) do {				\
	if (log_is_on(level))						\
		log_write((level), (event), (ctx),			\
		    (const struct log_field[]){ __VA_ARGS__ __VA_OPT__(,) \
		    LF_END });						\
} while (0)

bool	 log_is_on(enum log_level);
void	 log_write(enum log_level, const char *event, const struct log_ctx *,
	    const struct log_field *);

/*
 * Opens a sink: "stderr", "syslog", or a file's absolute path (appended to,
 * created with mode 0640).  On the journal (stderr is the stream that
 * $JOURNAL_STREAM names) records have no ts; they have a priority and the fields
 * RQD_EVENT, RQD_QUEUE, RQD_ID and so on.  Returns 0, or -1 with *cause and keeps
 * the sink in use; stderr says so once, if it is not that sink.  Open a file again after
 * logrotate(8).  Before the first call records go to stderr at level info.
 */
int	 log_open(const char *target, char **cause) MUSTCHECK;
/*
 * Opens a file to append; -1 with errno.  O_NONBLOCK makes open(2) refuse a FIFO without a
 * reader instead of waiting.  O_NOFOLLOW: nobody who can replace the file may redirect our
 * writes to another one.
 */
int	 log_open_file(const char *path) MUSTCHECK;
void	 log_close(void);			/* writes what it can without blocking, frees all */

void	 log_set_level(enum log_level);
void	 log_set_format(enum log_format);
const char *log_level_name(enum log_level);

/*
 * For the event loop: the descriptor that must become writable before more
 * can be written, or -1 when nothing waits; log_flush() writes what it can.
 */
int	 log_waiting_fd(void);
void	 log_flush(void);

/*
 * Why the last write failed ("No space left on device"), or else the last log_open(); valid for
 * the moment; NULL: neither failed.  Where the log is a file or syslog, stderr says so, too: once
 * when it begins and once when it ends.  log_flush() tries again to report what was lost.
 */
const char *log_failure(void);

uint64_t log_dropped(void);		/* records lost since the start */

/*
 * While held, records of level info are collected.  The loop calls log_release() at the end
 * of each turn and so writes hundreds of them in one call.  Errors and warnings are written
 * at once, after the records before them.  At level debug every record is written at once.
 */
void	 log_hold(bool);
void	 log_release(void);

/*
 * Sets a function that is called whenever records begin to wait, or wait for another
 * descriptor.  The loop then watches log_waiting_fd().  The function must not log.
 */
void	 log_set_waiting_cb(void (*)(void *), void *);

/* Tests: every finished record, without newline, goes to fn instead. */
void	 log_set_sink(void (*fn)(void *, enum log_level, const char *, size_t), void *);
/* The sockets of the journal and of syslog; tests set others. */
extern const char *log_journal_path, *log_syslog_path;

/*
 * log_text.c: appends one record without newline; with_ts: it begins with the time.  ctx may
 * be NULL.  The text is valid UTF-8 without control characters, whatever bytes the values
 * have.
 */
void	 log_text(struct buf *, enum log_format, bool with_ts, enum log_level, const char *event,
	    const struct log_ctx *, const struct log_field *);
/* The value of a LOG_T_INT or LOG_T_USEC field. */
void	 log_number(struct buf *, const struct log_field *);
/* The fields of a context, which may be NULL, and LF_END. */
#define LOG_CONTEXT_MAX	6
void	 log_context(const struct log_ctx *, struct log_field f[LOG_CONTEXT_MAX]);
