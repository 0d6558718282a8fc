/*
 * One question for the index, then the heartbeats in groups.
 */
#include "rqctl/ask_fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/reply.h"
#include "rqctl/ask.h"
#include "status/beat.h"

#define GROUP	50	/* heartbeats that are asked for at once */

/* The name of instance i of the index; caller frees. */
static char *
instance_at(const struct redisReply *index, size_t i)
{
	size_t len;
	const char *name = reply_str(reply_at(index, 2 * i), &len);

	return name != NULL ? xstrndup(name, len) : xstrdup("");
}

static void
take(struct fleet *f, const struct redisReply *index, size_t i, const struct redisReply *beat)
{
	char *name = instance_at(index, i);
	size_t len = 0;
	const char *text = reply_str(beat, &len);

	fleet_add(f, name, reply_double(reply_at(index, 2 * i + 1), 0), text, len);
	free(name);
}

/* Asks for those from the first on, GROUP at most, at once; how many: *done. */
static int
read_group(struct ctl *c, struct fleet *f, const struct redisReply *index, size_t first,
    size_t *done)
{
	size_t n = reply_len(index) / 2, end = first + GROUP < n ? first + GROUP : n, i;
	struct redisReply *reply;
	char *key, *name, last[24];
	int rc = 0;

	snprintf(last, sizeof(last), "%zu", BEAT_MAX);
	for (i = first; i < end && rc == 0; i++) {
		name = instance_at(index, i);
		key = xasprintf("%s%s", KEYS_DAEMON_PREFIX, name);
		rc = ask_append(c, "GETRANGE", key, "0", last, NULL);
		free(key);
		free(name);
	}
	for (i = first; i < end && rc == 0; i++) {
		if ((reply = ask_next(c)) == NULL)
			rc = -1;
		else
			take(f, index, i, reply);
		client_reply_free(reply);
	}
	*done = end - first;
	return rc;
}

static int
read_beats(struct ctl *c, struct fleet *f, const struct redisReply *index)
{
	size_t n = reply_len(index) / 2, i, done;

	for (i = 0; i < n && !fleet_is_full(f); i += done)
		if (read_group(c, f, index, i, &done) == -1)
			return -1;
	f->ignored += n - i;
	return 0;
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
