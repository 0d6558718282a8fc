/*
 * Kind "stream": at least once, from a consumer group of a Redis stream.
 *
 * It is built on leased.c; its source is the consumer group.  From
 * its first delivery until it is done, an entry is in two places: in the group's pending
 * list, for other consumers and for people, and in the keys of doc/keys.md, which decide.
 * The script that ends its message acknowledges it, whoever has it in the pending list.
 *
 * The consumer's name shows people which daemon has read an entry.  It decides nothing.  A queue
 * that closes removes its consumer, unless entries are pending for it.
 */
#include "queue/leased.h"

#include <inttypes.h>

static void
stream_words(enum leased_script script, const struct leased *a, struct words *w)
{
	words_add(w, a->cfg->consumer_group);
	if (script == LEASED_POP || script == LEASED_LEAVE)
		words_fmt(w, "%s-%s", a->env->host, a->cfg->name);
	if (script == LEASED_TICK) {
		words_add(w, a->tick_scan);
		words_fmt(w, "%" PRIu64, a->cfg->message_max);
	}
}

static const struct leased_kind stream_kind = {
	.ops = &queue_stream, .source = "stream_", .words = stream_words, .promotes = true,
};

static struct queue *
stream_open(const struct queue_env *env, const char *key, struct config *config,
    const struct queue_config *cfg, struct stats *stats,
    const struct queue_events *events, void *arg)
{
	return leased_new(&stream_kind, env, key, config, cfg, stats, events, arg);
}

const struct queue_ops queue_stream = {
	.open = stream_open,
	LEASED_OPS,
};
