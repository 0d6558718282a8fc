/*
 * Serves hiredis' contexts, and counts what they read and write.
 *
 * All commands of a turn are written in one call at its end.  Only the bytes that the
 * socket does not take then wait until it is writable.  hiredis may free the
 * context, and what is attached to it, in any call; `gone` tells write_out() so.
 *
 * hiredis fails an assertion at a reply that belongs to no command and is no published
 * message, and makes an array of any size that is announced.  Its reader makes objects
 * through a table of functions: ours reject such an object, which ends the connection.
 */
#include "redis/hiredis_loop.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <hiredis/hiredis.h>
#include <hiredis/async.h>
#include <hiredis/sds.h>

#include "base/util.h"
#include "loop/io.h"

#define ELEMENTS_MAX	1000000		/* in an array */

/* The type of an array's length changed in hiredis 1.0. */
#if HIREDIS_MAJOR >= 1
typedef size_t		elements_t;
#else
typedef int		elements_t;
#endif

struct attached {
	struct redisAsyncContext *ac;
	struct reply_rules	 *rules;
	struct loop		 *loop;
	struct io		  in, out;
	struct defer		  write;
	bool			 *gone;		/* set when freed; NULL: not in write_out() */

	/* Of the reply that is being read: */
	bool			  unasked;	/* no command waits for it */
	bool			  confirms;	/* unasked: a SUBSCRIBE or PSUBSCRIBE */
	bool			  pattern;
};

/* -- objects of replies -------------------------------------------------------- */

static redisReplyObjectFunctions	 ours;
static const redisReplyObjectFunctions	*plain;	/* the reader's own */

/* The first two words of an unasked reply: its kind, and the channel or pattern. */
static bool
may_push(struct attached *at, const redisReadTask *t, const char *p, size_t len)
{
	const char *kind = p;

	if (t->type != REDIS_REPLY_STRING || p == NULL)
		return false;	/* a nil has the type of what it could have been */
	if (t->idx == 1)
		return !at->confirms || at->rules->knows(at->pattern, p, len, at->rules->arg);
	at->pattern = len > 0 && (*p == 'p' || *p == 'P');
	kind += at->pattern;
	len -= at->pattern;
	at->confirms = len == strlen("subscribe") && strncasecmp(kind, "subscribe", len) == 0;
	return at->confirms || (len == strlen("message") && strncasecmp(kind, "message", len) == 0);
}

/* Checks any object; p is NULL if it is no string.  hiredis itself ends at an unasked error. */
static bool
may_be(const redisReadTask *t, const char *p, size_t len, size_t elements)
{
	struct attached *at = t->privdata;
	bool ok;

	if (t->parent == NULL) {
		at->unasked = at->ac->replies.head == NULL && t->type != REDIS_REPLY_ERROR;
		ok = !at->unasked || ((at->ac->c.flags & REDIS_SUBSCRIBED) != 0 &&
		    t->type == REDIS_REPLY_ARRAY && elements >= 3 && elements <= 4);
	} else {
		ok = !at->unasked || t->parent->parent != NULL || t->idx > 1 ||
		    may_push(at, t, p, len);
	}
	if (!ok)
		at->rules->complaint = "a reply to no command";
	return ok;
}

static void *
make_string(const redisReadTask *t, char *p, size_t len)
{
	return may_be(t, p, len, 0) ? plain->createString(t, p, len) : NULL;
}

static void *
make_array(const redisReadTask *t, elements_t n)
{
	return (size_t)n <= ELEMENTS_MAX && may_be(t, NULL, 0, (size_t)n) ?
	    plain->createArray(t, n) : NULL;
}

static void *
make_integer(const redisReadTask *t, long long n)
{
	return may_be(t, NULL, 0, 0) ? plain->createInteger(t, n) : NULL;
}

static void *
make_nil(const redisReadTask *t)
{
	return may_be(t, NULL, 0, 0) ? plain->createNil(t) : NULL;
}

#if HIREDIS_MAJOR >= 1
static void *
make_double(const redisReadTask *t, double d, char *p, size_t len)
{
	return may_be(t, NULL, len, 0) ? plain->createDouble(t, d, p, len) : NULL;
}

static void *
make_bool(const redisReadTask *t, int b)
{
	return may_be(t, NULL, 0, 0) ? plain->createBool(t, b) : NULL;
}
#endif

/* -- the loop ----------------------------------------------------------------- */

static void
readable(int what UNUSED, void *arg)
{
	struct attached *at = arg;
	redisReader *r = at->ac->c.reader;
	struct reply_rules *rules = at->rules;
	ssize_t n;

	if (rules->reads++ == 0) {
		n = recv(at->ac->c.fd, rules->first, sizeof(rules->first), MSG_PEEK | MSG_DONTWAIT);
		rules->nfirst = n > 0 ? (size_t)n : 0;
	}
	if (at->rules->came != NULL)
		at->rules->came(at->rules->arg);
	if (r->err == 0 && r->len - r->pos > at->rules->bytes_max) {
		at->rules->complaint = "a reply that is too large";
		r->err = REDIS_ERR_PROTOCOL;
	}
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
		loop_defer(at->loop, &at->write, write_out, at);
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
	struct attached *at = NEW(struct attached, .ac = ac, .loop = loop, .rules = rules,
	    .write.stage = LOOP_SEND);

	rules->complaint = NULL;
	rules->reads = rules->written = 0;
	rules->nfirst = 0;
	io_init(&at->in, loop, ac->c.fd, IO_READ, readable, at);
	io_init(&at->out, loop, ac->c.fd, IO_WRITE, writable, at);
	if (plain == NULL) {
		plain = ac->c.reader->fn;
		ours = *plain;
		ours.createString = make_string;
		ours.createArray = make_array;
		ours.createInteger = make_integer;
		ours.createNil = make_nil;
#if HIREDIS_MAJOR >= 1
		ours.createDouble = make_double;
		ours.createBool = make_bool;
#endif
	}
	ac->c.reader->fn = &ours;
	ac->c.reader->privdata = at;
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
