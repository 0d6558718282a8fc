/*
 * Pending commands.  A script's words stand in one block: the vectors, then
 * the bytes.
 */
#include "redis/pending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pending *
pending_new(conn_answer_fn *fn, void *arg, bool own)
{
	struct pending *p = xcalloc(1, sizeof(*p));

	p->fn = fn;
	p->arg = arg;
	p->own = own;
	return p;
}

void
pending_drop_script(struct pending *p)
{
	if (p->script != NULL)
		free(p->script->argv);
	free(p->script);
	p->script = NULL;
}

void
pending_free(struct pending *p)
{
	if (p == NULL)
		return;
	pending_drop_script(p);
	free(p);
}

/* Copies the words behind the first three, which the caller fills. */
static void
pending_copy(struct pending_script *s, int argc, const char *const *argv,
    const size_t *argvlen)
{
	size_t n = (size_t)argc + 3, bytes = 0;
	char *to;

	for (int i = 0; i < argc; i++)
		bytes += argvlen[i];
	s->argc = argc + 3;
	s->argv = xmalloc(n * (sizeof(*s->argv) + sizeof(*s->argvlen)) + bytes);
	s->argvlen = (size_t *)(void *)(s->argv + n);
	to = (char *)(s->argvlen + n);
	for (int i = 0; i < argc; i++) {
		s->argv[i + 3] = to;
		s->argvlen[i + 3] = argvlen[i];
		if (argvlen[i] > 0)
			memcpy(to, argv[i], argvlen[i]);
		to += argvlen[i];
	}
}

void
pending_set_script(struct pending *p, const struct script *script, int nkeys, int argc,
    const char *const *argv, const size_t *argvlen)
{
	struct pending_script *s = xcalloc(1, sizeof(*s));

	p->script = s;
	s->script = script;
	pending_copy(s, argc, argv, argvlen);
	snprintf(s->nkeys, sizeof(s->nkeys), "%d", nkeys);
	s->argv[0] = "EVALSHA";
	s->argv[1] = script->sha;
	s->argv[2] = s->nkeys;
	for (int i = 0; i < 3; i++)
		s->argvlen[i] = strlen(s->argv[i]);
	if (script->sha[0] == '\0')
		pending_use_text(p);
}

void
pending_use_text(struct pending *p)
{
	struct pending_script *s = p->script;

	s->eval = true;
	s->argv[0] = "EVAL";
	s->argvlen[0] = strlen("EVAL");
	s->argv[1] = s->script->text;
	s->argvlen[1] = s->script->len;
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
