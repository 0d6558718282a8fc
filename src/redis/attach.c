/*
 * Serving hiredis' contexts, and looking at what they read.
 *
 * hiredis' reader makes its objects through a table of functions, each with the
 * place of the object in the reply.  Ours refuse what must not be, by making
 * nothing, which the reader takes for want of memory and hiredis for the end of
 * the connection; else they call the reader's own.
 *
 * Replies are read one at a time, and each is handed out before the next is
 * begun.  So when the outermost object of one is made, hiredis' list of callbacks
 * says whether anybody waits for it.  What comes unasked on a subscribed context
 * must be a message, or the confirmation of one of our subscriptions.
 *
 * Commands are not written when the socket can be written, but at the end of the
 * turn, all of a turn in one call; only what the socket does not take is waited
 * for.  The context may be freed in any call of hiredis, and what is attached with
 * it: nothing of it is touched then unless `gone` says that it is still there.
 */
#include "redis/attach.h"

#include <sys/ioctl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <hiredis/hiredis.h>
#include <hiredis/async.h>
#include <hiredis/sds.h>

#include "base/util.h"
#include "loop/io.h"

#define ELEMENTS_MAX	1000000		/* in a reply, at all depths */
#define READ_MAX	16384		/* what hiredis reads at once */

/* hiredis 1.0 has changed it. */
#if HIREDIS_MAJOR >= 1
typedef size_t		elements_t;
#else
typedef int		elements_t;
#endif

enum push { PUSH_NONE, PUSH_MESSAGE, PUSH_CHANNEL, PUSH_PATTERN };

struct attached {
	struct redisAsyncContext *ac;
	struct attach_rules	 *rules;
	struct loop		 *loop;
	struct io		  in, out;
	struct defer		  write;
	bool			 *gone;		/* set when freed; NULL: not in write_out() */

	/* Of the reply that is being read: */
	size_t			  bytes, elements;
	bool			  unasked;
	enum push		  push;		/* unasked: its first word */
};

static redisReplyObjectFunctions	 guards;
static const redisReplyObjectFunctions	*plain;	/* the reader's own */

/* -- the guard ---------------------------------------------------------------- */

static bool
refuse(struct attached *at, const char *complaint)
{
	at->rules->complaint = complaint;
	return false;
}

/* The outermost object of a reply.  Unasked errors are hiredis' to deal with: it closes. */
static bool
may_begin(struct attached *at, int type, size_t elements)
{
	at->bytes = at->elements = 0;
	at->push = PUSH_NONE;
	at->unasked = at->ac->replies.head == NULL && type != REDIS_REPLY_ERROR;
	if (type > REDIS_REPLY_ERROR)
		return refuse(at, "a reply of a protocol that was not asked for");
	if (!at->unasked)
		return true;
	if ((at->ac->c.flags & REDIS_SUBSCRIBED) == 0)
		return refuse(at, "a reply that nobody asked for");
	if (type != REDIS_REPLY_ARRAY || elements < 3 || elements > 4)
		return refuse(at, "not a published message");
	return true;
}

static bool
is_word(const char *word, const char *p, size_t len)
{
	return strlen(word) == len && strncasecmp(word, p, len) == 0;
}

/* The first two words of what comes unasked: its kind and the channel or pattern. */
static bool
may_push(struct attached *at, const redisReadTask *t, const char *p, size_t len)
{
	if (t->idx > 1)
		return true;
	if (t->type != REDIS_REPLY_STRING)
		return refuse(at, "not a published message");
	if (t->idx == 1)
		return at->push == PUSH_MESSAGE ||
		    at->rules->knows(at->push == PUSH_PATTERN, p, len, at->rules->arg) ||
		    refuse(at, "a subscription that nobody asked for");
	if (is_word("message", p, len) || is_word("pmessage", p, len))
		at->push = PUSH_MESSAGE;
	else if (is_word("subscribe", p, len))
		at->push = PUSH_CHANNEL;
	else if (is_word("psubscribe", p, len))
		at->push = PUSH_PATTERN;
	else
		return refuse(at, "not a published message");
	return true;
}

/* Any object: p is NULL for those that are no strings. */
static bool
may_be(const redisReadTask *t, const char *p, size_t len, size_t elements)
{
	struct attached *at = t->privdata;

	if (t->parent == NULL && !may_begin(at, t->type, elements))
		return false;
	at->bytes += len;
	at->elements += elements;
	if (at->bytes > at->rules->bytes_max || at->elements > ELEMENTS_MAX)
		return refuse(at, "a reply that is too large");
	if (at->unasked && t->parent != NULL && t->parent->parent == NULL)
		return may_push(at, t, p, len);
	return true;
}

static void *
guard_string(const redisReadTask *t, char *p, size_t len)
{
	return may_be(t, p, len, 0) ? plain->createString(t, p, len) : NULL;
}

static void *
guard_array(const redisReadTask *t, elements_t n)
{
	return may_be(t, NULL, 0, (size_t)n) ? plain->createArray(t, n) : NULL;
}

static void *
guard_integer(const redisReadTask *t, long long n)
{
	return may_be(t, NULL, 0, 0) ? plain->createInteger(t, n) : NULL;
}

static void *
guard_nil(const redisReadTask *t)
{
	return may_be(t, NULL, 0, 0) ? plain->createNil(t) : NULL;
}

#if HIREDIS_MAJOR >= 1
static void *
guard_double(const redisReadTask *t, double d, char *p, size_t len)
{
	return may_be(t, NULL, len, 0) ? plain->createDouble(t, d, p, len) : NULL;
}

static void *
guard_bool(const redisReadTask *t, int b)
{
	return may_be(t, NULL, 0, 0) ? plain->createBool(t, b) : NULL;
}
#endif

static void
guard_reader(struct attached *at)
{
	redisReader *r = at->ac->c.reader;

	if (plain == NULL) {
		plain = r->fn;
		guards = *r->fn;
		guards.createString = guard_string;
		guards.createArray = guard_array;
		guards.createInteger = guard_integer;
		guards.createNil = guard_nil;
#if HIREDIS_MAJOR >= 1
		guards.createDouble = guard_double;
		guards.createBool = guard_bool;
#endif
	}
	r->fn = &guards;
	r->privdata = at;
}

/* What is read and makes no object yet: the reader then fails by itself. */
static void
check_backlog(struct attached *at)
{
	redisReader *r = at->ac->c.reader;

	if (r->err != 0 || r->len - r->pos <= at->rules->bytes_max)
		return;
	(void)refuse(at, "a reply that is too large");
	r->err = REDIS_ERR_PROTOCOL;
	snprintf(r->errstr, sizeof(r->errstr), "%s", at->rules->complaint);
}

/* -- the loop ----------------------------------------------------------------- */

/* hiredis does not say how much it reads. */
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

	check_backlog(at);
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

/* That the connection is there shows when the socket can be written, too. */
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
attach(struct loop *loop, struct redisAsyncContext *ac, struct attach_rules *rules)
{
	struct attached *at = xcalloc(1, sizeof(*at));

	at->ac = ac;
	at->loop = loop;
	at->rules = rules;
	rules->complaint = NULL;
	rules->read = rules->written = 0;
	io_init(&at->in, loop, ac->c.fd, IO_READ, readable, at);
	io_init(&at->out, loop, ac->c.fd, IO_WRITE, writable, at);
	guard_reader(at);
	ac->ev.addRead = add_read;
	ac->ev.delRead = del_read;
	ac->ev.addWrite = add_write;
	ac->ev.delWrite = del_write;
	ac->ev.cleanup = cleanup;
	ac->ev.data = at;
}

uint64_t
attach_produced(const struct redisAsyncContext *ac)
{
	const struct attached *at = ac->ev.data;

	return at->rules->written + sdslen(ac->c.obuf);
}

uint64_t
attach_sent(const struct redisAsyncContext *ac)
{
	const struct attached *at = ac->ev.data;
	int queued = 0;

	if (ioctl(ac->c.fd, TIOCOUTQ, &queued) == -1 || queued < 0)
		queued = 0;
	return (uint64_t)queued < at->rules->written ? at->rules->written - (unsigned)queued : 0;
}
