/*
 * Serves hiredis' contexts, and counts the bytes that they read and write.
 *
 * All commands of a turn are written in one call at its end.  Only the bytes that the
 * socket does not take then wait until it is writable.  hiredis may free the
 * context, and what is attached to it, in any call; `gone` tells write_out() so.
 */
#include "redis/hiredis_loop.h"

#include <sys/ioctl.h>

#include <stdlib.h>

#include <hiredis/hiredis.h>
#include <hiredis/async.h>
#include <hiredis/sds.h>

#include "base/util.h"
#include "loop/io.h"
#include "redis/guard.h"

#define READ_MAX	16384		/* bytes that hiredis reads at once */

struct attached {
	struct redisAsyncContext *ac;
	struct reply_rules	 *rules;
	struct loop		 *loop;
	struct io		  in, out;
	struct defer		  write;
	bool			 *gone;		/* set when freed; NULL: not in write_out() */
	struct guard		  guard;
};

/* -- the loop ----------------------------------------------------------------- */

/* Asks the kernel how much hiredis will read, since hiredis does not tell. */
static void
count_read(struct attached *at)
{
	int ready = 0;

	if (ioctl(at->ac->c.fd, FIONREAD, &ready) == -1 || ready <= 0)
		return;
	at->rules->read += ready < READ_MAX ? (unsigned)ready : READ_MAX;
	if (at->rules->came != NULL)
		at->rules->came(at->rules->arg);
}

static void
readable(int what UNUSED, void *arg)
{
	struct attached *at = arg;

	guard_backlog(&at->guard);
	count_read(at);
	redisAsyncHandleRead(at->ac);
}

static void
write_out(void *arg)
{
	struct attached *at = arg;
	size_t before = sdslen(at->ac->c.obuf);
	bool gone = false;

	at->gone = &gone;
	redisAsyncHandleWrite(at->ac);
	if (gone)
		return;
	at->gone = NULL;
	if (sdslen(at->ac->c.obuf) < before)
		at->rules->written += before - sdslen(at->ac->c.obuf);
}

static void
writable(int what UNUSED, void *arg)
{
	write_out(arg);
}

static void
add_read(void *arg)
{
	struct attached *at = arg;

	io_start(&at->in);
}

static void
del_read(void *arg)
{
	struct attached *at = arg;

	io_stop(&at->in);
}

/*
 * Writes at the end of the turn.  A new connection must wait until its socket is
 * writable: then it is established.
 */
static void
add_write(void *arg)
{
	struct attached *at = arg;

	if (at->gone != NULL || (at->ac->c.flags & REDIS_CONNECTED) == 0)
		io_start(&at->out);
	else if (!at->out.on)
		loop_defer_last(at->loop, &at->write, write_out, at);
}

static void
del_write(void *arg)
{
	struct attached *at = arg;

	io_stop(&at->out);
	loop_defer_cancel(at->loop, &at->write);
}

static void
cleanup(void *arg)
{
	struct attached *at = arg;

	if (at->gone != NULL)
		*at->gone = true;
	loop_defer_cancel(at->loop, &at->write);
	io_done(&at->in);
	io_done(&at->out);
	free(at);
}

void
hiredis_loop_attach(struct loop *loop, struct redisAsyncContext *ac, struct reply_rules *rules)
{
	struct attached *at = NEW(struct attached, .ac = ac, .loop = loop, .rules = rules);

	rules->complaint = NULL;
	rules->read = rules->written = 0;
	io_init(&at->in, loop, ac->c.fd, IO_READ, readable, at);
	io_init(&at->out, loop, ac->c.fd, IO_WRITE, writable, at);
	guard_start(&at->guard, ac->c.reader, ac, rules);
	ac->ev.addRead = add_read;
	ac->ev.delRead = del_read;
	ac->ev.addWrite = add_write;
	ac->ev.delWrite = del_write;
	ac->ev.cleanup = cleanup;
	ac->ev.data = at;
}

uint64_t
hiredis_loop_produced(const struct redisAsyncContext *ac)
{
	const struct attached *at = ac->ev.data;

	return at->rules->written + sdslen(ac->c.obuf);
}

uint64_t
hiredis_loop_sent(const struct redisAsyncContext *ac)
{
	const struct attached *at = ac->ev.data;
	int queued = 0;

	if (ioctl(ac->c.fd, TIOCOUTQ, &queued) == -1 || queued < 0)
		queued = 0;
	return (uint64_t)queued < at->rules->written ? at->rules->written - (unsigned)queued : 0;
}
