/*
 * One delivery of one message; see message.h.  message_id.c reads its JSON.
 */
#include "policy/message.h"

#include <stdlib.h>
#include <string.h>

struct message *
message_new(struct config *config, const struct queue_config *cfg)
{
	return NEW(struct message, .config = config_ref(config), .cfg = cfg,
	    .delivered = clock_mono());
}

void
message_free(struct message *m)
{
	if (m == NULL)
		return;
	free(m->payload);
	free(m->tag);
	free(m->id);
	free(m->token);
	free(m->channel);
	buf_done(&m->members);
	free(m->trace);
	free(m->cancelled_by);
	free(m->saved);
	config_unref(m->config);
	free(m);
}

bool
message_has_failed(const struct message *m)
{
	return m->attempts > 0 || m->crashes > 0;
}

bool
message_is_sure(const struct message *m)
{
	return m->ours_at == 0 || clock_boot() - m->ours_at < m->cfg->lease / 4 * 3;
}

bool
message_is_line(const struct message *m)
{
	return m->payload == NULL || (memchr(m->payload, '\n', m->len) == NULL &&
	    memchr(m->payload, '\0', m->len) == NULL);
}
