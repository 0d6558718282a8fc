/*
 * How long queues stand still; see stall.h.
 */
#include "status/stall.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

struct queue_stall {
	char		*key;	/* owned */
	struct stall	 stall;
};

void
stall_note(struct stall *s, usec_t now, int64_t ready, int64_t delivered)
{
	bool blind = s->seen == 0 || now - s->seen > STALL_GAP;

	s->waits = ready > 0;
	if (blind || !s->waits || ready < s->ready || delivered != s->delivered)
		s->since = now;
	s->seen = now;
	s->ready = ready;
	s->delivered = delivered;
}

usec_t
stall_length(const struct stall *s, usec_t now)
{
	return s->waits ? now - s->since : 0;
}

static int
compare_key(const void *a, const void *b)
{
	return strcmp(((const struct queue_stall *)a)->key, ((const struct queue_stall *)b)->key);
}

static void
queue_stall_free(void *stall)
{
	free(((struct queue_stall *)stall)->key);
	free(stall);
}

struct stall *
stalls_get(struct stalls *stalls, const char *key)
{
	struct queue_stall wanted = { .key = (char *)(uintptr_t)key }, **found;

	found = tfind(&wanted, &stalls->tree, compare_key);
	if (found == NULL) {
		wanted.key = xstrdup(key);
		found = tsearch(xmemdup(&wanted, sizeof(wanted)), &stalls->tree, compare_key);
		if (found == NULL)
			fatal_os("out of memory");
	}
	return &(*found)->stall;
}

void
stalls_done(struct stalls *stalls)
{
	tdestroy(stalls->tree, queue_stall_free);
	stalls->tree = NULL;
}
