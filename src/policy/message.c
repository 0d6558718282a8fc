/*
 * One delivery of one message: its memory.  Its id is read in message_id.c.
 */
#include "policy/message.h"

#include <stdlib.h>
#include <string.h>

struct message *
message_new(struct config *config, const struct queue_config *cfg)
{
	struct message *m = xcalloc(1, sizeof(*m));

	m->config = config_ref(config);
	m->cfg = cfg;
	m->delivered = clock_mono();
	return m;
}

void
message_free(struct message *m)
{
	if (m == NULL)
		return;
	if (m->payload != NULL && m->free_payload != NULL)
		m->free_payload(m->payload);
	free(m->tag);
	free(m->id);
	free(m->token);
	free(m->channel);
	free(m->cancelled_by);
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

int
message_id_of(enum kind kind, const char *payload, size_t len, char *ret)
{
	if (!kind_has(kind, TRAIT_ID_ONLY))
		return message_id(payload, len, ret);
	if (!message_id_ok(payload, len))
		return -1;
	memcpy(ret, payload, len);
	ret[len] = '\0';
	return 0;
}

bool
message_id_ok(const char *id, size_t len)
{
	if (len < 1 || len > MESSAGE_ID_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)id[i] < 0x20 || id[i] == 0x7f)
			return false;
	}
	return true;
}
