/*
 * Pending commands.  Words that are kept stand in one block: the vectors, then
 * the bytes.
 */
#include "redis/pending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pending *
pending_new(conn_answer_fn *fn, void *arg, bool own)
{
	return NEW(struct pending, .fn = fn, .arg = arg, .own = own);
}

void
pending_free(struct pending *p)
{
	if (p == NULL)
		return;
	free(p->words.v);
	free(p);
}

/* Copies the words, and leaves room before them for `behind` words of the caller. */
static void
pending_copy(struct words *to, size_t behind, const struct words *from)
{
	size_t n = (size_t)from->n + behind;
	char *p;

	to->v = xmalloc(n * (sizeof(*to->v) + sizeof(*to->len)) + from->bytes);
	to->len = (size_t *)(void *)(to->v + n);
	to->n = (int)n;
	to->nkeys = from->nkeys;
	to->bytes = from->bytes;
	p = (char *)(to->len + n);
	for (int i = 0; i < from->n; i++) {
		to->v[(size_t)i + behind] = p;
		to->len[(size_t)i + behind] = from->len[i];
		if (from->len[i] > 0)
			p = mempcpy(p, from->v[i], from->len[i]);
	}
}

void
pending_set_script(struct pending *p, const struct script *script, const struct words *w)
{
	p->script = script;
	pending_copy(&p->words, 3, w);
	snprintf(p->nkeys, sizeof(p->nkeys), "%d", w->nkeys);
	p->words.v[0] = "EVALSHA";
	p->words.v[1] = script->sha;
	p->words.v[2] = p->nkeys;
	for (int i = 0; i < 3; i++)
		p->words.len[i] = strlen(p->words.v[i]);
	if (script->sha[0] == '\0')
		pending_use_text(p);
}

void
pending_keep(struct pending *p, const struct words *w)
{
	pending_copy(&p->words, 0, w);
}

void
pending_use_text(struct pending *p)
{
	p->eval = true;
	p->words.v[0] = "EVAL";
	p->words.len[0] = strlen("EVAL");
	p->words.v[1] = p->script->text;
	p->words.len[1] = p->script->len;
}

struct pending *
pending_oldest(const struct pending_list *list)
{
	struct pending *p;

	TAILQ_FOREACH(p, list, entry) {
		if (p->fate == PENDING_SENT)
			return p;
	}
	return NULL;
}

void
pending_lose(struct pending_list *list)
{
	struct pending *p;

	TAILQ_FOREACH(p, list, entry) {
		if (p->fate == PENDING_SENT)
			p->fate = PENDING_LOST;
	}
}
