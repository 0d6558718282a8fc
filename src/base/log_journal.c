/*
 * The journal's native protocol.  A record is a datagram of lines NAME=value.  A value
 * with a newline is written as NAME, newline, its length in 64 bits little endian,
 * and the value.  A record too long for a datagram is put into a sealed memfd, and
 * the descriptor is sent instead.
 */
#include "base/log_private.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

/* -- records ------------------------------------------------------------------- */

static void
put_value(struct buf *b, const char *value, size_t n)
{
	uint64_t len = htole64(n);

	if (memchr(value, '\n', n) == NULL) {
		buf_addc(b, '=');
	} else {
		buf_addc(b, '\n');
		buf_add(b, &len, sizeof(len));
	}
	buf_add(b, value, n);
	buf_addc(b, '\n');
}

static void
put_field(struct buf *b, const struct log_field *f)
{
	struct buf number = BUF_INIT;

	if (f->type == LOG_T_MEM || (f->type == LOG_T_STR && f->str == NULL))
		return;
	buf_puts(b, "RQD_");		/* "duration" is RQD_DURATION */
	for (const char *p = f->key; *p != '\0'; p++)
		buf_addc(b, (char)toupper((unsigned char)*p));
	if (f->type == LOG_T_STR) {
		put_value(b, f->str, strlen(f->str));
		return;
	}
	log_number(&number, f);
	put_value(b, number.data, number.len);
	buf_done(&number);
}

static void
put_fields(struct buf *b, const struct log_field *f)
{
	for (; f != NULL && f->type != LOG_T_END; f++)
		put_field(b, f);
}

void
log_journal(struct buf *b, enum log_format format, int priority, enum log_level level,
    const char *event, const struct log_ctx *ctx, const struct log_field *fields)
{
	struct log_field context[LOG_CONTEXT_MAX];
	size_t start = b->len;
	uint32_t len = 0;

	buf_add(b, &len, sizeof(len));
	buf_printf(b, "SYSLOG_IDENTIFIER=%s\nPRIORITY=%d\nMESSAGE=",
	    program_invocation_short_name, priority);
	log_text(b, format, false, level, event, ctx, fields);
	buf_addc(b, '\n');
	put_field(b, &LF_STR("event", event));
	log_context(ctx, context);
	put_fields(b, context);
	put_fields(b, fields);
	len = (uint32_t)(b->len - start);
	memcpy(b->data + start, &len, sizeof(len));
}

/* -- frames -------------------------------------------------------------------- */

size_t
log_journal_frame(const char *p)
{
	uint32_t len;

	memcpy(&len, p, sizeof(len));
	return len;
}

/* -1 with errno. */
static int
sealed_file(const char *p, size_t n)
{
	int fd = memfd_create("rqd-log", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd != -1 && (write(fd, p, n) != (ssize_t)n || fcntl(fd, F_ADD_SEALS,
	    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == -1))
		fd_close(&fd);
	return fd;
}

ssize_t
log_journal_send_long(int fd, const char *p, size_t n)
{
	union {
		struct cmsghdr	head;
		char		space[CMSG_SPACE(sizeof(int))];
	} control = { .head = {
		.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	} };
	struct msghdr msg = { .msg_control = &control, .msg_controllen = sizeof(control.space) };
	int file = sealed_file(p, n);
	ssize_t r;

	if (file == -1)
		return -1;
	memcpy(CMSG_DATA(&control.head), &file, sizeof(file));
	r = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	fd_close(&file);
	return r == -1 ? -1 : (ssize_t)n;
}
