/*
 * Fresh messages; see fresh.h.
 */
#include "queue/fresh.h"

#include <inttypes.h>

#include "redis/reply.h"

/* Ids that rqd makes must not come again, not even when a queue is opened anew. */
static uint64_t	fresh_sequence;

struct message *
fresh_message(const struct queue_env *env, struct config *config,
    const struct queue_config *cfg, const struct redisReply *body)
{
	struct message *m = message_new(config, cfg);
	char id[MESSAGE_ID_MAX + 1];

	if (reply_str(body, &m->len) == NULL)
		m->len = (size_t)reply_int(body, 0);
	m->too_large = reply_str(body, NULL) == NULL || m->len > cfg->message_max;
	if (!m->too_large) {
		m->payload = reply_take(body, &m->len);
		m->free_payload = reply_free_str;
	}
	fresh_sequence++;
	if (m->payload != NULL && message_id(m->payload, m->len, id) == 0)
		m->id = xstrdup(id);
	else
		m->id = xasprintf("~%s.%" PRIu64, env->instance, fresh_sequence);
	m->tag = xstrdup(m->id);
	m->token = xstrdup("");
	return m;
}
