/*
 * Totals; see count.h.  What was sent counts as added also when its answer is
 * lost: counted twice would be worse than not at all.
 */
#include "queue/count.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "redis/reply.h"

/* Lives until it is answered, also beyond its count. */
struct count_call {
	struct count	*count;		/* NULL: it is gone */
	uint64_t	 n[STAT_MAX];	/* stats->n as sent */
};

static void
count_answered(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct count_call *call = arg;
	struct count *c = call->count;

	if (c != NULL) {
		c->call = NULL;
		c->failed = answer == CONN_REPLY && reply_str(reply, NULL) == NULL;
		if (answer == CONN_LOST || (answer == CONN_REPLY && !c->failed))
			memcpy(c->stats->sent, call->n, sizeof(call->n));
		c->answered(c->arg);
	}
	free(call);
}

bool
count_has(const struct stats *s)
{
	return memcmp(s->n, s->sent, sizeof(s->n)) != 0;
}

void
count_words(const struct stats *s, struct args *w)
{
	int i;

	for (i = 0; i < STAT_MAX; i++) {
		if (s->n[i] == s->sent[i])
			continue;
		args_str(w, stats_name((enum stat)i));
		args_fmt(w, "%" PRIu64, s->n[i] - s->sent[i]);
	}
}

void
count_send(struct count *c)
{
	struct args w = { 0 };

	if (c->call != NULL || !count_has(c->stats) || !conn_is_ready(c->env->conn))
		return;
	c->call = xcalloc(1, sizeof(*c->call));
	c->call->count = c;
	memcpy(c->call->n, c->stats->n, sizeof(c->call->n));
	args_mem(&w, c->keys->name[KEY_STATS], c->keys->len[KEY_STATS]);
	count_words(c->stats, &w);
	conn_script(c->env->conn, script_find("count"), count_answered, c->call, 1, w.n, w.v,
	    w.len);
	args_done(&w);
}

bool
count_finish(struct count *c)
{
	if (c->call == NULL && !c->failed)
		count_send(c);
	return c->call != NULL;
}

void
count_init(struct count *c, const struct queue_env *env, const struct keys *keys,
    struct stats *stats, void (*answered)(void *), void *arg)
{
	*c = (struct count){
		.env = env, .keys = keys, .stats = stats, .answered = answered, .arg = arg
	};
}

void
count_done(struct count *c)
{
	if (c->call != NULL)
		c->call->count = NULL;
}
