/*
 * Where records go, without ever blocking.
 *
 * The type of the descriptor decides how it is written.  An inherited descriptor is
 * never made non-blocking: the flag belongs to the open description, which the
 * shell and its other children share.  A pipe or terminal is opened once more
 * through /proc instead; a socket takes the flag per call.
 *
 * Records that cannot be written wait in the backlog, whole, and at most LOG_BACKLOG
 * bytes of them (the journal: more).  When it is full the sink drops records until
 * half of the backlog is written and the loss is reported: otherwise a slow reader
 * would get one report for each record.  Pipes are written in pieces of at most
 * PIPE_BUF bytes that end with a record where possible, so that writers sharing a
 * pipe do not mix.
 *
 * Where stderr is the journal's stream, records go to its datagram socket instead, with
 * fields; and to the stream if that socket is missing.
 *
 * A record that a full disk cut short is taken off the file again; where that
 * is impossible the next record comes after a newline of its own.
 */
#include "base/log_private.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/trust.h"

#define PIECE	PIPE_BUF

const char *log_sink_journal_path = LOG_JOURNAL_SOCKET;

static int	(*opener)(const char *, void *);
static void	*opener_arg;

/* -- opening --------------------------------------------------------------- */

static bool
is_journal(const struct stat *st)
{
	const char *env = getenv("JOURNAL_STREAM");
	char mine[64];

	if (env == NULL)
		return false;
	(void)snprintf(mine, sizeof(mine), "%ju:%ju", (uintmax_t)st->st_dev,
	    (uintmax_t)st->st_ino);
	return strcmp(env, mine) == 0;
}

/* Opens the file of descriptor 2 once more; if that fails, polls before each write. */
static void
open_twin(struct log_sink *s)
{
	int fd = open("/proc/self/fd/2",
	    O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	s->borrowed = fd == -1;
	s->fd = fd == -1 ? STDERR_FILENO : fd;
	s->way = fd == -1 ? SINK_POLL : SINK_NONBLOCK;
}

static struct log_sink *
sink_new(enum sink_way way, int fd)
{
	return NEW(struct log_sink, .way = way, .fd = fd);
}

/* NULL with errno. */
static struct log_sink *
datagram_sink(enum sink_way way, const char *path)
{
	int fd = fd_connect(SOCK_DGRAM, path);
	struct log_sink *s;

	if (fd == -1)
		return NULL;
	s = sink_new(way, fd);
	s->path = xstrdup(path);
	return s;
}

struct log_sink *
log_sink_journal(const char *path)
{
	return path != NULL ? datagram_sink(SINK_JOURNAL, path) : NULL;
}

static struct log_sink *
open_stderr(char **cause)
{
	struct log_sink *s;
	struct stat st;

	if (fstat(STDERR_FILENO, &st) == -1) {
		(void)util_cause(cause, "stderr: %s", strerror(errno));
		return NULL;
	}
	if (is_journal(&st) && (s = log_sink_journal(log_sink_journal_path)) != NULL)
		return s;
	s = sink_new(SINK_FILE, STDERR_FILENO);
	s->borrowed = true;
	s->journal = is_journal(&st);
	if (S_ISSOCK(st.st_mode))
		s->way = SINK_SEND;
	else if (!S_ISREG(st.st_mode))
		open_twin(s);
	return s;
}

int
log_open_file(const char *path)
{
	return open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK |
	    O_NOCTTY | O_NOFOLLOW | O_CLOEXEC, 0640);
}

static int
open_by_opener(const char *path)
{
	int fd = log_open_file(path);

	if (fd == -1 && errno == EACCES && opener != NULL)
		fd = opener(path, opener_arg);
	return fd;
}

/* EPERM: an opener that is root does not follow this path. */
static void
explain(const char *path, char **cause)
{
	int error = errno;
	char *why = NULL;

	if (error == EPERM && trust_folders(path, 0, &why) == -1)
		(void)util_cause(cause, "%s: Permission denied; as root rqd opens a log only in a "
		    "folder that only root may write to: %s", path, why);
	else
		(void)util_cause(cause, "%s: %s", path, error == ELOOP ?
		    "is a symbolic link, which is not followed" : strerror(error));
	free(why);
}

static struct log_sink *
open_file(const char *path, char **cause)
{
	int fd = open_by_opener(path);
	struct log_sink *s;
	struct stat st;

	if (fd == -1) {
		explain(path, cause);
		return NULL;
	}
	s = sink_new(SINK_FILE, fd);
	s->path = xstrdup(path);
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode))
		s->way = SINK_NONBLOCK;
	return s;
}

void
log_set_opener(int (*fn)(const char *, void *), void *arg)
{
	opener = fn;
	opener_arg = arg;
}

struct log_sink *
log_sink_syslog(const char *path, char **cause)
{
	struct log_sink *s = datagram_sink(SINK_DATAGRAM, path);

	if (s == NULL)
		(void)util_cause(cause, "%s: %s", path, strerror(errno));
	return s;
}

struct log_sink *
log_sink_open(const char *target, char **cause)
{
	if (strcmp(target, "stderr") == 0)
		return open_stderr(cause);
	if (strcmp(target, "syslog") == 0)
		return log_sink_syslog("/dev/log", cause);
	if (target[0] == '/')
		return open_file(target, cause);
	(void)util_cause(cause,
	    "%s: not \"stderr\", \"syslog\" or an absolute path", target);
	return NULL;
}

void
log_sink_free(struct log_sink *s)
{
	if (s == NULL)
		return;
	if (!s->borrowed)
		fd_close(&s->fd);
	buf_done(&s->backlog);
	free(s->path);
	free(s);
}

/* -- one write ------------------------------------------------------------- */

/* poll(2) promises PIPE_BUF bytes of a pipe; more could block. */
static ssize_t
write_polled(int fd, const char *p, size_t n)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	if (poll(&pfd, 1, 0) != 1) {
		errno = EAGAIN;
		return -1;
	}
	return write(fd, p, n < PIECE ? n : PIECE);
}

/* The log daemon may have been restarted: its socket is then a new one. */
static ssize_t
send_datagram(struct log_sink *s, const char *p, size_t n)
{
	ssize_t r = -1;

	if (s->fd != -1)
		r = send(s->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (r != -1 || (s->fd != -1 && errno != ECONNREFUSED &&
	    errno != ENOTCONN && errno != ECONNRESET))
		return r;
	fd_close(&s->fd);
	s->fd = fd_connect(SOCK_DGRAM, s->path);
	return s->fd == -1 ? -1 : send(s->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Sends a frame; in a memfd if it is too long for the socket. */
static ssize_t
send_frame(struct log_sink *s, const char *p, size_t n)
{
	size_t head = sizeof(uint32_t);
	ssize_t r = send_datagram(s, p + head, n - head);

	if (r == -1 && errno == EMSGSIZE)
		r = log_journal_send_long(s->fd, p + head, n - head);
	return r;
}

/* Keeps why a write failed: a full disk, a closed pipe.  Having to wait is no failure. */
static void
note_error(struct log_sink *s, ssize_t r)
{
	if (r > 0)
		s->error = 0;
	else if (r == 0)
		s->error = ENOSPC;
	else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EMSGSIZE)
		s->error = errno;
}

/*
 * As write(2); EAGAIN: must wait.  A datagram goes without its newline, and
 * one that is too long for the socket is lost alone.
 */
static ssize_t
write_once(struct log_sink *s, const char *p, size_t n)
{
	ssize_t r = -1;

	do {
		switch (s->way) {
		case SINK_FILE:
		case SINK_NONBLOCK:
			r = write(s->fd, p, n);
			break;
		case SINK_POLL:
			r = write_polled(s->fd, p, n);
			break;
		case SINK_SEND:
			r = send(s->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
			break;
		case SINK_DATAGRAM:
			r = send_datagram(s, p, n - 1);	/* never half of it */
			break;
		case SINK_JOURNAL:
			r = send_frame(s, p, n);
			break;
		}
	} while (r == -1 && errno == EINTR);
	note_error(s, r);
	if (s->way != SINK_DATAGRAM && s->way != SINK_JOURNAL)
		return r;
	if (r == -1 && errno == EMSGSIZE) {
		s->lost++;
		return (ssize_t)n;
	}
	return r == -1 ? -1 : (ssize_t)n;
}

/* -- regular files --------------------------------------------------------- */

/* Takes the last n bytes off the file, if they are still the last. */
static int
take_back(int fd, size_t n)
{
	off_t end = lseek(fd, 0, SEEK_CUR);
	struct stat st;

	if (end < (off_t)n || fstat(fd, &st) == -1 || st.st_size != end ||
	    ftruncate(fd, end - (off_t)n) == -1)
		return -1;
	return lseek(fd, end - (off_t)n, SEEK_SET) == -1 ? -1 : 0;
}

static bool
write_file(struct log_sink *s, const char *p, size_t n)
{
	size_t done = 0;
	ssize_t r;

	if (s->midway && write_once(s, "\n", 1) == 1)
		s->midway = false;
	while (!s->midway && done < n) {
		r = write_once(s, p + done, n - done);
		if (r <= 0)
			break;
		done += (size_t)r;
	}
	if (done == n)
		return true;
	s->lost++;
	if (done > 0 && take_back(s->fd, done) == -1)
		s->midway = true;
	return false;
}

/* -- everything that may have to wait ---------------------------------------- */

/* How much to write at once: whole records that fit a piece, or one record. */
static size_t
piece_length(const struct log_sink *s, const char *p, size_t n)
{
	const char *nl;

	if (s->way == SINK_JOURNAL)
		return log_journal_frame(p);
	if (s->way != SINK_DATAGRAM && n <= PIECE)
		return n;
	nl = s->way == SINK_DATAGRAM ? NULL : memrchr(p, '\n', PIECE);
	if (nl == NULL)
		nl = memchr(p, '\n', n);
	return nl == NULL ? n : (size_t)(nl - p) + 1;
}

/*
 * Writes piece by piece until one must wait or fails; returns how many bytes
 * went.  Keeps midway true to what is out.
 */
static size_t
write_pieces(struct log_sink *s, const char *p, size_t n, bool *failed)
{
	size_t done = 0;
	ssize_t r;

	*failed = false;
	while (done < n) {
		r = write_once(s, p + done, piece_length(s, p + done, n - done));
		if (r <= 0) {
			*failed = r == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
			break;
		}
		done += (size_t)r;
		s->midway = p[done - 1] != '\n';
	}
	return done;
}

static size_t
count_records(const struct log_sink *s)
{
	const char *p = s->backlog.data + s->out, *end = s->backlog.data + s->backlog.len;
	size_t count = 0;

	for (; p < end; count++) {
		if (s->way == SINK_JOURNAL)
			p += log_journal_frame(p);
		else if ((p = memchr(p, '\n', (size_t)(end - p))) != NULL)
			p++;
		else
			break;
	}
	return count;
}

void
log_sink_drop(struct log_sink *s)
{
	s->lost += count_records(s);
	buf_done(&s->backlog);
	s->out = 0;
}

/* A broken sink (EPIPE, ENOSPC) loses its backlog: waiting would not help. */
void
log_sink_flush(struct log_sink *s)
{
	struct buf *b = &s->backlog;
	bool failed;

	if (b->len == 0)
		return;
	s->out += write_pieces(s, b->data + s->out, b->len - s->out, &failed);
	if (failed || s->out == b->len) {
		log_sink_drop(s);
	} else if (s->out > b->len / 2) {	/* not each time: it moves the rest */
		buf_drain(b, s->out);
		s->out = 0;
	}
}

/* The most bytes that may wait. */
static size_t
limit(const struct log_sink *s)
{
	return s->way == SINK_JOURNAL ? LOG_BACKLOG_JOURNAL : LOG_BACKLOG;
}

/* Nothing waits yet: writes directly and keeps what must wait. */
static bool
write_now(struct log_sink *s, const char *p, size_t n)
{
	bool failed;
	size_t done;

	if (s->midway)
		(void)write_pieces(s, "\n", 1, &failed);
	if (s->midway) {	/* the newline failed, too: drops this record */
		s->lost++;
		return false;
	}
	done = write_pieces(s, p, n, &failed);
	if (failed && done < n) {
		s->lost++;
		return false;
	}
	buf_add(&s->backlog, p + done, n - done);
	return true;
}

bool
log_sink_write(struct log_sink *s, const char *p, size_t n)
{
	if (s->way == SINK_FILE)
		return write_file(s, p, n);
	log_sink_flush(s);
	if (s->choked || n > limit(s) - (s->backlog.len - s->out)) {
		s->choked = true;
		s->lost++;
		return false;
	}
	if (s->backlog.len == 0)
		return write_now(s, p, n);
	buf_add(&s->backlog, p, n);
	return true;
}

uint64_t
log_sink_take_lost(struct log_sink *s)
{
	uint64_t n = s->lost;

	if (s->backlog.len - s->out > limit(s) / 2)
		return 0;
	s->lost = 0;
	s->choked = false;
	return n;
}
