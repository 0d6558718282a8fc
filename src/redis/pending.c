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
pending_free(struct pending *p)
{
	if (p == NULL)
		return;
	free(p->argv);
	free(p);
}

/* Copies the words behind the first three, which the caller fills. */
static void
pending_copy(struct pending *p, int argc, const char *const *argv,
    const size_t *argvlen)
{
	size_t n = (size_t)argc + 3, bytes = 0;
	char *to;

	for (int i = 0; i < argc; i++)
		bytes += argvlen[i];
	p->argc = argc + 3;
	p->argv = xmalloc(n * (sizeof(*p->argv) + sizeof(*p->argvlen)) + bytes);
	p->argvlen = (size_t *)(void *)(p->argv + n);
	to = (char *)(p->argvlen + n);
	for (int i = 0; i < argc; i++) {
		p->argv[i + 3] = to;
		p->argvlen[i + 3] = argvlen[i];
		if (argvlen[i] > 0)
			memcpy(to, argv[i], argvlen[i]);
		to += argvlen[i];
	}
}

void
pending_set_script(struct pending *p, const struct script *script, int nkeys, int argc,
    const char *const *argv, const size_t *argvlen)
{
	p->script = script;
	pending_copy(p, argc, argv, argvlen);
	snprintf(p->nkeys, sizeof(p->nkeys), "%d", nkeys);
	p->argv[0] = "EVALSHA";
	p->argv[1] = script->sha;
	p->argv[2] = p->nkeys;
	for (int i = 0; i < 3; i++)
		p->argvlen[i] = strlen(p->argv[i]);
	if (script->sha[0] == '\0')
		pending_use_text(p);
}

void
pending_use_text(struct pending *p)
{
	p->eval = true;
	p->argv[0] = "EVAL";
	p->argvlen[0] = strlen("EVAL");
	p->argv[1] = p->script->text;
	p->argvlen[1] = p->script->len;
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
