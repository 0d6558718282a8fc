/*
 * Messages to hand over: see pushes.h.  One buffer has all of them, one after the
 * other.  A message's shard is chosen when it is added, so a result that is sent again
 * names the same one.
 */
#include "policy/pushes.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "policy/shard_keys.h"

struct pushes_entry {
	size_t	 target;	/* index in targets */
	size_t	 len;
	size_t	 begin;		/* in bytes */
};

struct pushes {
	struct buf	 bytes;
	struct pushes_entry *entries;	/* owned */
	size_t		 n;
	struct pushes_target *targets;	/* owned; each has at least one message */
	size_t		 ntargets;
	char		*fault;		/* owned; NULL: none */
	struct pushes_debt *debt;	/* reference; NULL: its message has no answer yet */
};

struct pushes_debt {
	unsigned	 refs;
	size_t		 bytes;		/* pushes_memory() of all that refer to it */
};

static struct pushes *
pushes_have(struct pushes **p)
{
	if (*p == NULL)
		*p = xcalloc(1, sizeof(**p));
	return *p;
}

static void
pushes_clear(struct pushes *p)
{
	buf_done(&p->bytes);
	free(p->entries);
	free(p->targets);
	p->entries = NULL;
	p->targets = NULL;
	p->n = p->ntargets = 0;
}

void
pushes_owe(struct pushes *p, struct pushes_debt **debt)
{
	if (p == NULL)
		return;
	if (*debt == NULL) {
		*debt = xcalloc(1, sizeof(**debt));
		(*debt)->refs = 1;
	}
	(*debt)->refs++;
	(*debt)->bytes += pushes_memory(p);
	p->debt = *debt;
}

bool
pushes_debt_is_large(const struct pushes_debt *debt)
{
	return debt != NULL && debt->bytes >= PUSHES_RUN_BYTES;
}

void
pushes_debt_unref(struct pushes_debt *debt)
{
	if (debt != NULL && --debt->refs == 0)
		free(debt);
}

void
pushes_free(struct pushes *p)
{
	if (p == NULL)
		return;
	if (p->debt != NULL)
		p->debt->bytes -= pushes_memory(p);
	pushes_debt_unref(p->debt);
	pushes_clear(p);
	free(p->fault);
	free(p);
}

/* Sets the fault, unless there is one: the first counts. */
static void PRINTF(2, 3)
pushes_fail(struct pushes *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	p->fault = xvasprintf(fmt, ap);
	va_end(ap);
	pushes_clear(p);
}

size_t
pushes_longest(const struct config *config, const char *name)
{
	const struct queue_config *q = config_queue(config, name);

	if (q == NULL)
		return 0;
	return q->message_max < PUSHES_BYTES ? (size_t)q->message_max : PUSHES_BYTES;
}

static void
pushes_put(struct pushes *p, const struct queue_config *q, const void *message, size_t len)
{
	const char *key = config_key_at(q, shard_keys_pick(q, message, len));
	size_t target = 0;

	while (target < p->ntargets &&
	    (p->targets[target].queue != q || p->targets[target].key != key))
		target++;
	if (target == p->ntargets)
		*APPEND(p->targets, p->ntargets) = (struct pushes_target){ .queue = q, .key = key };
	*APPEND(p->entries, p->n) = (struct pushes_entry){
		.target = target, .len = len, .begin = p->bytes.len
	};
	p->targets[target].count++;
	buf_add(&p->bytes, message, len);
}

void
pushes_add(struct pushes **pushes, const struct config *config, const struct queue_config *cfg,
    const char *name, size_t name_len, const void *message, size_t len)
{
	const struct queue_config *q = NULL;
	struct pushes *p = pushes_have(pushes);

	for (size_t i = 0; q == NULL && cfg->pushes[i] != NULL; i++) {
		if (strlen(cfg->pushes[i]) == name_len &&
		    memcmp(cfg->pushes[i], name, name_len) == 0)
			q = config_queue(config, cfg->pushes[i]);
	}
	if (p->fault != NULL)
		return;
	if (q == NULL)
		pushes_fail(p, "a message for the queue \"%.*s\", which \"pushes\" does not "
		    "list", (int)(name_len < 200 ? name_len : 200), name);
	else if (message == NULL && q->message_max < PUSHES_BYTES)
		pushes_fail(p, "a message for the queue \"%s\" is longer than its message_max, "
		    "which is %llu", q->name, (unsigned long long)q->message_max);
	else if (len > q->message_max)
		pushes_fail(p, "a message of %zu bytes for the queue \"%s\": its message_max is "
		    "%llu", len, q->name, (unsigned long long)q->message_max);
	else if (message != NULL && p->n >= (size_t)cfg->push_max)
		pushes_fail(p, "more messages than push_max, which is %d", cfg->push_max);
	else if (message == NULL || len > PUSHES_BYTES - p->bytes.len)
		pushes_fail(p, "messages of more than %zu bytes in all", PUSHES_BYTES);
	else
		pushes_put(p, q, message, len);
}

void
pushes_add_said(struct pushes **p, const struct message *m, const struct statement *s, bool cut,
    size_t *sum)
{
	size_t before = pushes_memory(*p);

	pushes_add(p, m->config, m->cfg, s->queue, s->queue_len, cut ? NULL : s->text,
	    cut ? 0 : s->len);
	if (sum == NULL)
		return;
	*sum += pushes_memory(*p) - before;
	if (*sum <= PUSHES_RUN_BYTES || (*p)->fault != NULL)
		return;
	*sum -= pushes_memory(*p);
	pushes_fail(*p, "with it all messages of its run, or of its process, that are not "
	    "acknowledged yet would hand over more than %zu bytes", PUSHES_RUN_BYTES);
}

size_t
pushes_line_max(const struct queue_config *q)
{
	return q->pushes[0] != NULL ? PUSHES_BYTES + STATEMENT_LINE_MAX : STATEMENT_LINE_MAX;
}

void
pushes_add_cut(struct pushes **pushes)
{
	struct pushes *p = pushes_have(pushes);

	if (p->fault == NULL)
		pushes_fail(p, "the last message has no newline, and a process that goes on may "
		    "still be writing it");
}

const char *
pushes_fault(const struct pushes *p)
{
	return p != NULL ? p->fault : NULL;
}

size_t
pushes_count(const struct pushes *p)
{
	return p != NULL ? p->n : 0;
}

size_t
pushes_bytes(const struct pushes *p)
{
	return p != NULL ? p->bytes.len : 0;
}

size_t
pushes_memory(const struct pushes *p)
{
	return pushes_bytes(p) + pushes_count(p) * PUSHES_EACH;
}

size_t
pushes_targets(const struct pushes *p)
{
	return p != NULL ? p->ntargets : 0;
}

const struct pushes_target *
pushes_target(const struct pushes *p, size_t i)
{
	return &p->targets[i];
}

const char *
pushes_next(const struct pushes *p, size_t i, size_t *at, size_t *len)
{
	const struct pushes_entry *e;

	while (*at < p->n) {
		e = &p->entries[(*at)++];
		if (e->target != i)
			continue;
		*len = e->len;
		return e->len > 0 ? p->bytes.data + e->begin : "";
	}
	return NULL;
}
