/*
 * The log: levels, where records go, and the report of what was lost.
 *
 * A record is put together at the end of the sink's queue, and the queue is written at once,
 * or at the end of the turn (log_hold()).  What the descriptor does not take now stays there.
 * When it is full, records are dropped until half of it is written and the loss is reported:
 * otherwise a slow reader would get one report for each record.
 *
 * The type of the descriptor decides how it is written.  An inherited descriptor is never made
 * non-blocking: the flag belongs to the open description, which the shell and its other
 * children share.  A pipe or terminal is opened once more through /proc instead; a socket
 * takes the flag per call.  Pipes are written in pieces of at most PIPE_BUF bytes that end
 * with a record where possible, so that writers sharing a pipe do not mix.
 *
 * sd_journal_sendv(3) waits while the journal's socket is full.  So this file speaks the
 * journal's native protocol itself: a record is a datagram of lines NAME=value.  A record that
 * is too long for that is a sealed file, whose descriptor is sent.
 */
#include "base/log.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/trust.h"

#define HELD_MAX	(32 * 1024)
#define QUEUE_KEEP	(64 * 1024)	/* the memory of a larger queue is not kept */
#define FAILURE_GAP	MINUTE		/* between two reports that the log cannot be written */

enum way {
	WAY_FILE,	/* regular file: plain write */
	WAY_NONBLOCK,	/* pipe or terminal: an open description of our own */
	WAY_POLL,	/* pipe or terminal that cannot be opened again: poll, then a small write */
	WAY_SEND,	/* stream socket: MSG_DONTWAIT */
	WAY_SYSLOG,	/* a record is a datagram */
	WAY_JOURNAL	/* likewise; in the queue its length, in four bytes, comes before it */
};

struct sink {
	enum way	 way;
	int		 fd;		/* -1: not opened yet, or a datagram socket is gone */
	char		*path;		/* owned; of a file or a datagram socket, else NULL */
	bool		 stream;	/* the journal's: records begin with "<PRIORITY>", no ts */
	bool		 blocked;	/* the queue waits for the descriptor */
	bool		 midway;	/* the file ends within a record */
	bool		 choked;	/* drops every record until the loss is reported */
	struct buf	 queue;		/* records; the first may be a rest of one */
	size_t		 out;		/* bytes at the start of the queue that are written */
	uint64_t	 lost;		/* records dropped and not yet reported */
	int		 error;		/* errno of the last write where it failed, else 0 */
};

static struct sink sink = { .fd = -1 };
static enum log_level max_level = LOG_LV_INFO;
static enum log_format record_format = LOG_LOGFMT;
static uint64_t reported;		/* records lost, and reported */
static bool failure_reported;		/* on stderr, for the sink in use */
static usec_t failure_at;		/* when one was last reported; 0: never */
static bool holding;
static char *open_failure;	/* owned; of the last log_open(); NULL: none */

static void (*waiting_fn)(void *);
static void *waiting_arg;
static void (*test_fn)(void *, enum log_level, const char *, size_t);
static void *test_arg;

const char *log_journal_path = "/run/systemd/journal/socket", *log_syslog_path = "/dev/log";

static const struct {
	const char	*name;
	int		 priority;	/* syslog's */
} levels[] = {
	[LOG_LV_ERROR] = { "error", LOG_ERR },
	[LOG_LV_WARN] = { "warn", LOG_WARNING },
	[LOG_LV_INFO] = { "info", LOG_INFO },
	[LOG_LV_DEBUG] = { "debug", LOG_DEBUG },
};

bool
log_is_on(enum log_level level)
{
	return level <= max_level;
}

void
log_set_level(enum log_level level)
{
	max_level = level;
}

void
log_set_format(enum log_format format)
{
	record_format = format;
}

const char *
log_level_name(enum log_level level)
{
	return levels[level].name;
}

/* -- records ------------------------------------------------------------------ */

/* RQD_KEY=value; a value with a newline: RQD_KEY, newline, length in 64 bits, value. */
static void
put_journal_field(struct buf *b, const struct log_field *f)
{
	struct buf value = BUF_INIT;
	uint64_t len;

	/* Bytes of messages and of output are in the text only. */
	if (f->type == LOG_T_MEM || (f->type == LOG_T_STR && f->str == NULL))
		return;
	buf_puts(b, "RQD_");
	for (const char *p = f->key; *p != '\0'; p++)
		buf_addc(b, (char)toupper((unsigned char)*p));
	if (f->type == LOG_T_STR)
		buf_puts(&value, f->str);
	else
		log_number(&value, f);
	if (value.len == 0 || memchr(value.data, '\n', value.len) == NULL) {
		buf_addc(b, '=');
	} else {
		len = htole64(value.len);
		buf_addc(b, '\n');
		buf_add(b, &len, sizeof(len));
	}
	buf_add(b, value.data, value.len);
	buf_addc(b, '\n');
	buf_done(&value);
}

static void
put_journal_record(struct buf *b, enum log_level level, const char *event,
    const struct log_ctx *ctx, const struct log_field *fields)
{
	struct log_field context[LOG_CONTEXT_MAX];
	size_t start = b->len;
	uint32_t len = 0;

	buf_add(b, &len, sizeof(len));
	buf_printf(b, "SYSLOG_IDENTIFIER=%s\nPRIORITY=%d\nMESSAGE=",
	    program_invocation_short_name, levels[level].priority);
	log_text(b, record_format, false, level, event, ctx, fields);
	buf_addc(b, '\n');
	put_journal_field(b, &LF_STR("event", event));
	log_context(ctx, context);
	for (const struct log_field *f = context; f->type != LOG_T_END; f++)
		put_journal_field(b, f);
	for (; fields != NULL && fields->type != LOG_T_END; fields++)
		put_journal_field(b, fields);
	len = (uint32_t)(b->len - start);
	memcpy(b->data + start, &len, sizeof(len));
}

static void
put_record(struct buf *b, enum log_level level, const char *event, const struct log_ctx *ctx,
    const struct log_field *fields)
{
	time_t now = (time_t)(clock_wall() / SEC);
	char text[32];
	struct tm tm;

	if (sink.way == WAY_JOURNAL) {
		put_journal_record(b, level, event, ctx, fields);
		return;
	}
	if (sink.stream) {
		buf_printf(b, "<%d>", levels[level].priority);
	} else if (sink.way == WAY_SYSLOG) {	/* as syslog(3) would write it */
		(void)localtime_r(&now, &tm);
		(void)strftime(text, sizeof(text), "%b %e %T", &tm);
		buf_printf(b, "<%d>%s %s[%ld]: ", LOG_DAEMON | levels[level].priority, text,
		    program_invocation_short_name, (long)getpid());
	}
	log_text(b, record_format, !sink.stream, level, event, ctx, fields);
	buf_addc(b, '\n');
}

/* -- one write ---------------------------------------------------------------- */

/* The journal reads the record from a file in memory that nobody can change any more. */
static ssize_t
send_as_file(const char *p, size_t n)
{
	union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } u = { .room = { 0 } };
	struct msghdr m = { .msg_control = u.room, .msg_controllen = sizeof(u.room) };
	int fd = fd_memory("rqd-record");
	ssize_t r = -1;

	u.head.cmsg_level = SOL_SOCKET;
	u.head.cmsg_type = SCM_RIGHTS;
	u.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&u.head), &fd, sizeof(int));
	if (fd != -1 && fd_write_at(fd, p, n, 0) == 0 && fcntl(fd, F_ADD_SEALS,
	    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
		r = sendmsg(sink.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	fd_close(&fd);
	return r;
}

static ssize_t
send_once(const char *p, size_t n)
{
	ssize_t r = send(sink.fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (r == -1 && sink.way == WAY_JOURNAL && (errno == EMSGSIZE || errno == ENOBUFS))
		r = send_as_file(p, n);
	return r;
}

/* The log daemon may have been restarted: its socket is then a new one. */
static ssize_t
send_datagram(const char *p, size_t n)
{
	ssize_t r = -1;

	if (sink.fd != -1)
		r = send_once(p, n);
	if (r == -1 && (sink.fd == -1 || errno == ECONNREFUSED || errno == ENOTCONN ||
	    errno == ECONNRESET)) {
		fd_close(&sink.fd);
		sink.fd = fd_connect(SOCK_DGRAM, sink.path);
		r = sink.fd == -1 ? -1 : send_once(p, n);
	}
	return r;
}

static bool
is_datagram(void)
{
	return sink.way == WAY_SYSLOG || sink.way == WAY_JOURNAL;
}

/* How much to write at once: a datagram, or whole records that fit into PIPE_BUF bytes. */
static size_t
piece_length(const char *p, size_t n)
{
	const char *nl;
	uint32_t len;

	if (sink.way == WAY_JOURNAL) {
		memcpy(&len, p, sizeof(len));
		return len;
	}
	if (sink.way == WAY_SYSLOG)
		return (size_t)((const char *)memchr(p, '\n', n) - p) + 1;
	if (sink.way == WAY_FILE || n <= PIPE_BUF)
		return n;
	nl = memrchr(p, '\n', PIPE_BUF);
	return nl != NULL ? (size_t)(nl - p) + 1 : PIPE_BUF;
}

/* As write(2), of one piece; EAGAIN: must wait. */
static ssize_t
write_piece(const char *p, size_t n)
{
	struct pollfd pfd = { .fd = sink.fd, .events = POLLOUT };
	ssize_t r = -1;

	/* poll(2) promises PIPE_BUF bytes of a pipe. */
	if (sink.way == WAY_POLL && poll(&pfd, 1, 0) != 1) {
		errno = EAGAIN;
		return -1;
	}
	switch (sink.way) {
	case WAY_POLL:
	case WAY_FILE:
	case WAY_NONBLOCK:
		r = write(sink.fd, p, n);
		break;
	case WAY_SEND:
		r = send(sink.fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	case WAY_SYSLOG:	/* without its newline */
		r = send_datagram(p, n - 1) == -1 ? -1 : (ssize_t)n;
		break;
	case WAY_JOURNAL:
		r = send_datagram(p + sizeof(uint32_t), n - sizeof(uint32_t)) == -1 ? -1 :
		    (ssize_t)n;
		break;
	}
	return r;
}

/* -- the queue ---------------------------------------------------------------- */

/* Takes the part of a record that a full disk cut short off the file, if it is still the last. */
static int
take_back(void)
{
	const char *nl = sink.out > 0 ? memrchr(sink.queue.data, '\n', sink.out) : NULL;
	off_t n = (off_t)(sink.out - (nl != NULL ? (size_t)(nl + 1 - sink.queue.data) : 0));
	off_t end = lseek(sink.fd, 0, SEEK_CUR);
	struct stat st;

	if (n == 0)
		return 0;
	if (sink.way != WAY_FILE || end < n || fstat(sink.fd, &st) == -1 || st.st_size != end ||
	    ftruncate(sink.fd, end - n) == -1)
		return -1;
	return lseek(sink.fd, end - n, SEEK_SET) == -1 ? -1 : 0;
}

/* Counts what waits as lost, and drops it. */
static void
drop_queue(void)
{
	while (sink.out < sink.queue.len) {
		const char *p = sink.queue.data + sink.out;
		size_t n = sink.queue.len - sink.out;

		n = is_datagram() ? piece_length(p, n) :
		    (size_t)((const char *)memchr(p, '\n', n) - p) + 1;
		sink.out += n;
		sink.lost += n > 1;	/* not the newline that ends a cut record */
	}
}

/* Writes as much as the descriptor takes now. */
static void
write_queue(void)
{
	struct buf *b = &sink.queue;
	size_t n;
	ssize_t r;

	sink.blocked = false;
	while (sink.out < b->len && !sink.blocked) {
		n = piece_length(b->data + sink.out, b->len - sink.out);
		r = write_piece(b->data + sink.out, n);
		if (r > 0) {
			sink.out += (size_t)r;
			sink.error = 0;
			sink.midway = false;
		} else if (r == -1 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			sink.blocked = true;
		} else if (r == -1 && errno == EINTR) {
			continue;
		} else if (is_datagram()) {	/* too long for syslog: it is lost alone */
			sink.error = errno == EMSGSIZE ? sink.error : errno;
			sink.out += n;
			sink.lost++;
		} else {			/* a full disk, a closed pipe: no use to wait */
			sink.error = r == 0 ? ENOSPC : errno;
			sink.midway = sink.midway || take_back() == -1;
			drop_queue();
		}
	}
	if (sink.out == b->len) {
		sink.out = 0;
		if (b->cap > QUEUE_KEEP)
			buf_done(b);
		buf_clear(b);
	} else if (sink.out > b->len / 2) {	/* not each time: it moves the rest */
		buf_drain(b, sink.out);
		sink.out = 0;
	}
}

static size_t
queue_max(void)
{
	return sink.way == WAY_JOURNAL ? LOG_BACKLOG_JOURNAL : LOG_BACKLOG;
}

/* Adds a record, or drops and counts it. */
static void
add_record(enum log_level level, const char *event, const struct log_ctx *ctx,
    const struct log_field *fields)
{
	size_t start = sink.queue.len;

	if (!sink.choked) {
		if (sink.midway && start == 0)
			buf_addc(&sink.queue, '\n');
		put_record(&sink.queue, level, event, ctx, fields);
		sink.choked = sink.queue.len - sink.out > queue_max();
	}
	if (sink.choked) {
		sink.queue.len = start;
		sink.lost++;
	}
}

/* Says how many records were lost, once half of the queue is written. */
static void
report_lost(void)
{
	uint64_t n;

	if (sink.lost == 0)
		return;
	write_queue();
	n = sink.lost;
	if (sink.queue.len - sink.out > queue_max() / 2)
		return;
	sink.lost = 0;
	sink.choked = false;
	add_record(LOG_LV_WARN, "warning", NULL, (const struct log_field[]){
	    LF_STR("reason", "log_dropped"), LF_INT("dropped", (int64_t)n), LF_END });
	write_queue();
	if (sink.lost > 0)
		sink.lost += n - 1;	/* the report is not a record to report */
	else
		reported += n;
}

/* error: NULL for "log_resumed". */
static void
tell_stderr(const char *target, const char *error)
{
	struct pollfd pfd = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct buf b = BUF_INIT;

	log_text(&b, record_format, true, error != NULL ? LOG_LV_ERROR : LOG_LV_WARN, "warning",
	    NULL, (const struct log_field[]){
	    LF_STR("reason", error != NULL ? "log_failed" : "log_resumed"),
	    LF_STR("target", target), LF_STR("error", error), LF_END });
	buf_addc(&b, '\n');
	if (poll(&pfd, 1, 0) == 1)
		(void)!write(STDERR_FILENO, b.data, b.len);
	buf_done(&b);
}

/*
 * Reports on stderr that the log's file or syslog refuses records, and that it takes them
 * again: an operator who reads only that log would never know.  A disk that is almost full
 * takes short records and refuses long ones, so reports keep FAILURE_GAP.
 */
static void
report_failure(void)
{
	bool failed = sink.error != 0;

	if (failed == failure_reported || sink.path == NULL || sink.way == WAY_JOURNAL ||
	    (failed && failure_at != 0 && clock_mono() - failure_at < FAILURE_GAP))
		return;
	failure_reported = failed;
	if (failed)
		failure_at = clock_mono();
	tell_stderr(sink.path, failed ? strerror(sink.error) : NULL);
}

void
log_flush(void)
{
	int saved = errno, waiting = log_waiting_fd();

	if (sink.way != WAY_FILE || sink.fd != -1) {
		write_queue();
		report_lost();
		report_failure();
	}
	if (waiting_fn != NULL && log_waiting_fd() != waiting && log_waiting_fd() != -1)
		waiting_fn(waiting_arg);
	errno = saved;
}

void
log_write(enum log_level level, const char *event, const struct log_ctx *ctx,
    const struct log_field *fields)
{
	struct buf b = BUF_INIT;
	int saved = errno;

	if (test_fn != NULL) {
		log_text(&b, record_format, true, level, event, ctx, fields);
		test_fn(test_arg, level, buf_str(&b), b.len);
		buf_done(&b);
	} else if (sink.path != NULL || sink.fd != -1 || log_open("stderr", NULL) == 0) {
		report_lost();
		add_record(level, event, ctx, fields);
		/* Errors, warnings and debug records may explain a crash. */
		if (!holding || level != LOG_LV_INFO || max_level != LOG_LV_INFO ||
		    sink.queue.len - sink.out >= HELD_MAX)
			log_flush();
	}
	errno = saved;
}

void
log_hold(bool on)
{
	holding = on;
	if (!on)
		log_release();
}

void
log_release(void)
{
	if (sink.queue.len > 0 && !sink.blocked)
		log_flush();
}

int
log_waiting_fd(void)
{
	return sink.blocked ? sink.fd : -1;
}

const char *
log_failure(void)
{
	return sink.error != 0 ? strerror(sink.error) : open_failure;
}

uint64_t
log_dropped(void)
{
	return reported + sink.lost;
}

void
log_set_waiting_cb(void (*fn)(void *), void *arg)
{
	waiting_fn = fn;
	waiting_arg = arg;
}

void
log_set_sink(void (*fn)(void *, enum log_level, const char *, size_t), void *arg)
{
	test_fn = fn;
	test_arg = arg;
}

/* -- opening and closing ------------------------------------------------------- */

/* -1 with errno. */
static int
open_datagram(struct sink *s, enum way way, const char *path)
{
	s->way = way;
	s->fd = fd_connect(SOCK_DGRAM, path);
	if (s->fd != -1)
		s->path = xstrdup(path);
	return s->fd == -1 ? -1 : 0;
}

/* An inherited descriptor: standard error, or standard output. */
static int
open_standard(struct sink *s, int fd, char **cause)
{
	const char *env = getenv("JOURNAL_STREAM");
	char mine[64], path[32];
	struct stat st;

	if (fstat(fd, &st) == -1)
		return util_cause(cause, "descriptor %d: %s", fd, strerror(errno));
	(void)snprintf(mine, sizeof(mine), "%ju:%ju", (uintmax_t)st.st_dev,
	    (uintmax_t)st.st_ino);
	s->stream = env != NULL && strcmp(env, mine) == 0;
	if (s->stream && open_datagram(s, WAY_JOURNAL, log_journal_path) == 0) {
		s->stream = false;
		return 0;
	}
	if (S_ISREG(st.st_mode))
		s->way = WAY_FILE;
	else if (S_ISSOCK(st.st_mode))
		s->way = WAY_SEND;
	else
		s->way = WAY_NONBLOCK;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (s->way == WAY_NONBLOCK)
		s->fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY |
		    O_CLOEXEC);
	if (s->fd == -1 && s->way == WAY_NONBLOCK)
		s->way = WAY_POLL;
	if (s->fd == -1)
		s->fd = fd;
	return 0;
}

int
log_open_file(const char *path)
{
	return open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK |
	    O_NOCTTY | O_NOFOLLOW | O_CLOEXEC, 0640);
}

static int
open_file(struct sink *s, const char *path, char **cause)
{
	char *why = NULL;
	struct stat st;
	int error;

	s->fd = log_open_file(path);
	if (s->fd == -1 && errno == EACCES)
		s->fd = trust_lend(LEND_LOG, path);
	error = errno;
	if (s->fd == -1) {
		/* EPERM: root does not follow this path. */
		if (error == EPERM && trust_folders(path, 0, &why) == -1)
			(void)util_cause(cause, "%s: Permission denied; as root rqd opens a log "
			    "only in a directory that only root may write to: %s", path, why);
		else
			(void)util_cause(cause, "%s: %s", path, error == ELOOP ?
			    "is a symbolic link, which is not followed" : strerror(error));
		free(why);
		return -1;
	}
	s->path = xstrdup(path);
	s->way = fstat(s->fd, &st) == -1 || !S_ISREG(st.st_mode) ? WAY_NONBLOCK : WAY_FILE;
	return 0;
}

/*
 * Puts a new sink in the old one's place.  What the old one could not write is lost, and the
 * new one says so.  The watcher of the old descriptor is called before it is closed.
 */
static void
replace_sink(const struct sink *s)
{
	struct sink old;

	if (sink.queue.len > 0)
		log_flush();
	drop_queue();
	old = sink;
	sink = *s;
	sink.lost = old.lost;
	failure_reported = false;
	if (waiting_fn != NULL)
		waiting_fn(waiting_arg);
	if (old.fd > STDERR_FILENO)
		fd_close(&old.fd);
	buf_done(&old.queue);
	free(old.path);
}

int
log_open(const char *target, char **cause)
{
	struct sink s = { .fd = -1 };
	bool failed = open_failure != NULL, asked = cause != NULL;
	char *why = NULL;
	int rc;

	cause = asked ? cause : &why;
	/* These two links lead to what we have open already; no other link is followed. */
	if (strcmp(target, "stderr") == 0 || strcmp(target, "/dev/stderr") == 0)
		rc = open_standard(&s, STDERR_FILENO, cause);
	else if (strcmp(target, "/dev/stdout") == 0)
		rc = open_standard(&s, STDOUT_FILENO, cause);
	else if (strcmp(target, "syslog") == 0)
		rc = open_datagram(&s, WAY_SYSLOG, log_syslog_path) == 0 ? 0 :
		    util_cause(cause, "%s: %s", log_syslog_path, strerror(errno));
	else if (target[0] == '/')
		rc = open_file(&s, target, cause);
	else
		rc = util_cause(cause, "%s: not \"stderr\", \"syslog\" or an absolute path",
		    target);
	/* log_write() opens stderr without being asked to: the target has still failed. */
	if (asked || rc == -1) {
		free(open_failure);
		open_failure = rc == -1 ? xstrdup(*cause) : NULL;
	}
	if (rc == 0)
		replace_sink(&s);
	else if (!failed && sink.path != NULL)
		tell_stderr(target, open_failure);
	free(why);
	return rc;
}

void
log_close(void)
{
	log_flush();
	replace_sink(&(struct sink){ .fd = -1 });
	free(open_failure);
	open_failure = NULL;
	sink.lost = 0;
}
