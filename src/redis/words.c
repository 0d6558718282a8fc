/*
 * Words of commands, in three arrays that grow together.
 */
#include "redis/words.h"

#include <stdlib.h>
#include <string.h>

static void
words_append(struct words *w, const char *word, size_t len, char *own)
{
	if (w->n == w->cap) {
		w->cap = w->cap == 0 ? 32 : 2 * w->cap;
		w->v = xreallocarray(w->v, (size_t)w->cap, sizeof(*w->v));
		w->len = xreallocarray(w->len, (size_t)w->cap, sizeof(*w->len));
		w->own = xreallocarray(w->own, (size_t)w->cap, sizeof(*w->own));
	}
	w->v[w->n] = word;
	w->len[w->n] = len;
	w->own[w->n++] = own;
	w->bytes += len;
}

void
words_key(struct words *w, const char *key, size_t len)
{
	words_append(w, key, len, NULL);
	w->nkeys = w->n;
}

void
words_mem(struct words *w, const void *word, size_t len)
{
	words_append(w, word, len, NULL);
}

void
words_add(struct words *w, const char *word)
{
	words_append(w, word, strlen(word), NULL);
}

void
words_list(struct words *w, va_list ap)
{
	const char *word;

	while ((word = va_arg(ap, const char *)) != NULL)
		words_add(w, word);
}

void
words_fmt(struct words *w, const char *format, ...)
{
	va_list ap;
	char *word;

	va_start(ap, format);
	word = xvasprintf(format, ap);
	va_end(ap);
	words_own(w, word, strlen(word));
}

void
words_own(struct words *w, char *word, size_t len)
{
	words_append(w, word, len, word);
}

void
words_clear(struct words *w)
{
	for (int i = 0; i < w->n; i++)
		free(w->own[i]);
	w->n = w->nkeys = 0;
	w->bytes = 0;
}

void
words_done(struct words *w)
{
	words_clear(w);
	free(w->v);
	free(w->len);
	free(w->own);
	*w = (struct words){ .n = 0 };
}
