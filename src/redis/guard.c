/*
 * The guard's functions.
 *
 * hiredis' reader makes its objects through a table of functions; each gets the place
 * of the object in the reply.  The guard's functions call the reader's own, or return
 * NULL to reject an object.  Then hiredis reports out of memory and closes the
 * connection.
 *
 * hiredis hands out each reply before it reads the next.  So when it makes the outermost
 * object of a reply, its list of callbacks shows whether a command waits for a reply.
 * A reply for no command must be a published message, or the confirmation of one of
 * our subscriptions.
 *
 * hiredis knows nothing of SSUBSCRIBE.  It drops replies on a channel that it has not
 * subscribed to, and closes the connection after an error.  So such a reply gets the name of
 * another subscription (rules->slots_as), and the error becomes a status.
 */
#include "redis/guard.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <hiredis/hiredis.h>
#include <hiredis/async.h>

#include "redis/hiredis_loop.h"
#include "redis/slots.h"

#define ELEMENTS_MAX	1000000		/* in a reply, at all depths */

/* The type of an array's length changed in hiredis 1.0. */
#if HIREDIS_MAJOR >= 1
typedef size_t		elements_t;
#else
typedef int		elements_t;
#endif

static redisReplyObjectFunctions	 guards;
static const redisReplyObjectFunctions	*plain;	/* the reader's own */

static bool
refuse(struct guard *g, const char *complaint)
{
	g->rules->complaint = complaint;
	return false;
}

/* The outermost object of a reply.  hiredis closes the connection at an unasked error. */
static bool
may_begin(struct guard *g, int type, size_t elements)
{
	g->bytes = g->elements = 0;
	g->push = PUSH_NONE;
	g->unasked = g->ac != NULL && g->ac->replies.head == NULL && type != REDIS_REPLY_ERROR;
	if (type > REDIS_REPLY_ERROR)
		return refuse(g, "a reply of a protocol that rqd does not use");
	if (!g->unasked)
		return true;
	if ((g->ac->c.flags & REDIS_SUBSCRIBED) == 0)
		return refuse(g, "a reply to no command");
	if (type != REDIS_REPLY_ARRAY || elements < 3 || elements > 4)
		return refuse(g, "not a published message");
	return true;
}

static bool
is_word(const char *word, const char *p, size_t len)
{
	return strlen(word) == len && strncasecmp(word, p, len) == 0;
}

/* The first two words of an unasked reply: its kind, and the channel or pattern. */
static bool
may_push(struct guard *g, const redisReadTask *t, const char *p, size_t len)
{
	if (t->idx > 1)
		return true;
	/* A nil has the type of what it could have been. */
	if (t->type != REDIS_REPLY_STRING || p == NULL)
		return refuse(g, "not a published message");
	if (t->idx == 1 && g->push == PUSH_SLOT)
		g->rules->slot = slot_of(p, len);
	if (t->idx == 1)
		return g->push == PUSH_MESSAGE || g->push == PUSH_SLOT ||
		    g->rules->knows(g->push == PUSH_PATTERN, p, len, g->rules->arg) ||
		    refuse(g, "a subscription that rqd did not ask for");
	if (is_word("message", p, len) || is_word("pmessage", p, len))
		g->push = PUSH_MESSAGE;
	else if (is_word("subscribe", p, len))
		g->push = PUSH_CHANNEL;
	else if (is_word("psubscribe", p, len))
		g->push = PUSH_PATTERN;
	else if (g->rules->slots_as != NULL && (is_word("ssubscribe", p, len) ||
	    is_word("sunsubscribe", p, len) || is_word("smessage", p, len)))
		g->push = PUSH_SLOT;
	else
		return refuse(g, "not a published message");
	return true;
}

/* Checks any object; p is NULL if it is no string. */
static bool
may_be(const redisReadTask *t, const char *p, size_t len, size_t elements)
{
	struct guard *g = t->privdata;

	if (t->parent == NULL && !may_begin(g, t->type, elements))
		return false;
	g->bytes += len;
	g->elements += elements;
	if (g->bytes > g->rules->bytes_max || g->elements > ELEMENTS_MAX)
		return refuse(g, "a reply that is too large");
	if (g->unasked && t->parent != NULL && t->parent->parent == NULL)
		return may_push(g, t, p, len);
	return true;
}

/* The name of the channel of a slot, in an unasked reply. */
static bool
is_slot_channel(const struct guard *g, const redisReadTask *t)
{
	return g->push == PUSH_SLOT && t->idx == 1 && t->parent != NULL &&
	    t->parent->parent == NULL;
}

/* An error that hiredis takes for unasked, and that answers a command on such a channel. */
static bool
is_refusal(const struct guard *g, const redisReadTask *t)
{
	return t->type == REDIS_REPLY_ERROR && t->parent == NULL && g->ac != NULL &&
	    g->ac->replies.head == NULL && g->rules->slots_as != NULL &&
	    g->rules->may_refuse(g->rules->arg);
}

static void *
guard_string(const redisReadTask *t, char *p, size_t len)
{
	const struct guard *g = t->privdata;
	redisReadTask status;

	if (!may_be(t, p, len, 0))
		return NULL;
	if (is_slot_channel(g, t))
		return plain->createString(t, g->rules->slots_as, strlen(g->rules->slots_as));
	if (!is_refusal(g, t))
		return plain->createString(t, p, len);
	status = *t;
	status.type = REDIS_REPLY_STATUS;
	return plain->createString(&status, p, len);
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

void
guard_start(struct guard *g, struct redisReader *r, const struct redisAsyncContext *ac,
    struct reply_rules *rules)
{
	*g = (struct guard){ .reader = r, .ac = ac, .rules = rules };
	rules->complaint = NULL;
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
	r->privdata = g;
}

/* The type of the object that is being read; hiredis 1.0 keeps it elsewhere than 0.14. */
static int
type_read(const redisReader *r)
{
	if (r->ridx < 0)
		return -1;
#if HIREDIS_MAJOR >= 1
	return r->task[r->ridx]->type;
#else
	return r->rstack[r->ridx].type;
#endif
}

/* The announced length of a string whose bytes have not all come; else 0. */
static size_t
announced(const redisReader *r)
{
	size_t n = 0;

	if (type_read(r) != REDIS_REPLY_STRING)
		return 0;
	for (size_t i = r->pos; i < r->len && isdigit((unsigned char)r->buf[i]); i++) {
		if (n > SIZE_MAX / 16)
			break;
		n = n * 10 + (size_t)(r->buf[i] - '0');
	}
	return n;
}

void
guard_backlog(struct guard *g)
{
	redisReader *r = g->reader;

	if (r->err != 0 || (r->len - r->pos <= g->rules->bytes_max &&
	    announced(r) <= g->rules->bytes_max))
		return;
	(void)refuse(g, "a reply that is too large");
	r->err = REDIS_ERR_PROTOCOL;
	snprintf(r->errstr, sizeof(r->errstr), "%s", g->rules->complaint);
}
