/*
 * Words for QSTATS; see count.h.
 */
#include "queue/count.h"

#include <inttypes.h>
#include <string.h>

bool
count_has(const struct stats *s)
{
	return memcmp(s->n, s->sent, sizeof(s->n)) != 0;
}

void
count_words(const struct stats *s, struct words *w)
{
	for (int i = 0; i < STAT_MAX; i++) {
		if (s->n[i] == s->sent[i])
			continue;
		words_add(w, stats_name((enum stat)i));
		words_fmt(w, "%" PRIu64, s->n[i] - s->sent[i]);
	}
}
