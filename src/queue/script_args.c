/*
 * Words of commands, in three arrays that grow together.
 */
#include "queue/script_args.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void
args_add(struct args *a, const char *word, size_t len, char *own)
{
	if (a->n == a->cap) {
		a->cap = a->cap == 0 ? 32 : 2 * a->cap;
		a->v = xreallocarray(a->v, (size_t)a->cap, sizeof(*a->v));
		a->len = xreallocarray(a->len, (size_t)a->cap, sizeof(*a->len));
		a->own = xreallocarray(a->own, (size_t)a->cap, sizeof(*a->own));
	}
	a->v[a->n] = word;
	a->len[a->n] = len;
	a->own[a->n++] = own;
	a->bytes += len;
}

void
args_mem(struct args *a, const char *word, size_t len)
{
	args_add(a, word, len, NULL);
}

void
args_str(struct args *a, const char *word)
{
	args_add(a, word, strlen(word), NULL);
}

void
args_fmt(struct args *a, const char *format, ...)
{
	va_list ap;
	char *word;

	va_start(ap, format);
	word = xvasprintf(format, ap);
	va_end(ap);
	args_add(a, word, strlen(word), word);
}

void
args_own(struct args *a, char *word, size_t len)
{
	args_add(a, word, len, word);
}

void
args_done(struct args *a)
{
	int i;

	for (i = 0; i < a->n; i++)
		free(a->own[i]);
	free(a->v);
	free(a->len);
	free(a->own);
	memset(a, 0, sizeof(*a));
}
