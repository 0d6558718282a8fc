/*
 * Fresh messages; see fresh.h.
 */
#include "queue/fresh.h"

#include <inttypes.h>

#include "redis/reply.h"

/* Ids that rqd makes must not come again, not even when a queue is opened anew. */
static uint64_t	fresh_sequence;

static char *
fresh_id(const struct queue_env *env, const char *payload, size_t len)
{
	char id[MESSAGE_ID_MAX + 1];

	fresh_sequence++;
	if (payload != NULL && message_id(payload, len, id) == 0)
		return xstrdup(id);
	return xasprintf("~%s.%" PRIu64, env->instance, fresh_sequence);
}

struct message *
fresh_of(const struct queue_env *env, struct config *config, const struct queue_config *cfg,
    char *payload, size_t len, char *id)
{
	struct message *m = message_new(config, cfg);

	m->payload = payload;
	m->free_payload = payload != NULL ? reply_free_str : NULL;
	m->len = len;
	m->too_large = payload == NULL;
	m->id = id != NULL ? id : fresh_id(env, payload, len);
	m->tag = xstrdup(m->id);
	m->token = xstrdup("");
	return m;
}

struct message *
fresh_message(const struct queue_env *env, struct config *config,
    const struct queue_config *cfg, const struct redisReply *body)
{
	size_t len;
	char *payload = NULL;

	if (reply_str(body, &len) == NULL)
		len = (size_t)reply_int(body, 0);
	else if (len <= cfg->message_max)
		payload = reply_take(body, &len);
	return fresh_of(env, config, cfg, payload, len, NULL);
}
