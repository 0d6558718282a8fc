/*
 * Totals; see count.h.  What was sent counts as added also when the answer is
 * lost: to count it twice would be worse than not at all.
 */
#include "queue/count.h"

#include <inttypes.h>
#include <string.h>

#include "redis/reply.h"

static void
count_answered(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct count *c = arg;

	c->failed = answer == CONN_REPLY && reply_str(reply, NULL) == NULL;
	if (answer != CONN_NOT_SENT && !c->failed)
		memcpy(c->stats->sent, c->n, sizeof(c->n));
	c->answered(c->arg);
}

bool
count_has(const struct stats *s)
{
	return memcmp(s->n, s->sent, sizeof(s->n)) != 0;
}

void
count_words(const struct stats *s, struct words *w)
{
	int i;

	for (i = 0; i < STAT_MAX; i++) {
		if (s->n[i] == s->sent[i])
			continue;
		words_add(w, stats_name((enum stat)i));
		words_fmt(w, "%" PRIu64, s->n[i] - s->sent[i]);
	}
}

void
count_send(struct count *c)
{
	struct words w = { 0 };

	if (request_is_sent(&c->request) || !count_has(c->stats) || !conn_is_ready(c->env->conn))
		return;
	memcpy(c->n, c->stats->n, sizeof(c->n));
	keys_add(c->keys, &w, KEY_STATS);
	count_words(c->stats, &w);
	request_script(&c->request, c->env->conn, script_find("count"), &w);
}

bool
count_finish(struct count *c)
{
	if (!c->failed)
		count_send(c);
	return request_is_sent(&c->request);
}

void
count_init(struct count *c, const struct queue_env *env, const struct keys *keys,
    struct stats *stats, void (*answered)(void *), void *arg)
{
	*c = (struct count){
		.env = env, .keys = keys, .stats = stats, .answered = answered, .arg = arg
	};
	request_init(&c->request, count_answered, c);
}

void
count_done(struct count *c)
{
	request_cancel(&c->request);
}
