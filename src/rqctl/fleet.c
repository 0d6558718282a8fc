/*
 * One question for the index, then all heartbeats at once.
 */
#include "rqctl/fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/reply.h"
#include "rqctl/ask.h"

/* Asks for all heartbeats at once. */
static int
read_beats(struct ctl *c, struct fleet *f, const struct redisReply *index)
{
	size_t n = reply_len(index) / 2, i, len;
	struct redisReply *reply;
	const char *name;
	char *key;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		name = reply_str(reply_at(index, 2 * i), &len);
		key = xasprintf("%s%s", KEYS_DAEMON_PREFIX, name != NULL ? name : "");
		rc = ask_append(c, "GET", key, NULL);
		free(key);
	}
	for (i = 0; i < n && rc == 0; i++) {
		if ((reply = ask_next(c)) == NULL)
			rc = -1;
		else
			fleet_add(f, index, i, reply);
		client_reply_free(reply);
	}
	return rc;
}

int
fleet_read(struct ctl *c, struct fleet *f)
{
	struct redisReply *index;
	char last[16];
	int rc;

	memset(f, 0, sizeof(*f));
	snprintf(last, sizeof(last), "%d", FLEET_MAX - 1);
	index = ask(c, "ZREVRANGE", KEYS_DAEMONS, "0", last, "WITHSCORES", NULL);
	if (index == NULL)
		return -1;
	rc = read_beats(c, f, index);
	client_reply_free(index);
	if (rc == -1)
		fleet_done(f);
	return rc;
}
