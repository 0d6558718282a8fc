/*
 * All questions about all queues are sent before the first answer is read.
 */
#include "rqctl/ask_depth.h"

#include <stdio.h>
#include <string.h>

#include "redis/reply.h"
#include "rqctl/ask.h"

static int
append(struct ctl *c, const struct target *t, int step, const char *now)
{
	const char *argv[DEPTH_WORDS];
	int argc = depth_command(&t->keys, t->kind, step, now, argv), i, rc;
	struct words w = { 0 };

	if (argc == 0)
		return 0;
	for (i = 0; i < argc; i++)
		words_add(&w, argv[i]);
	rc = ask_append_words(c, &w);
	words_done(&w);
	return rc;
}

static int
take(struct ctl *c, const struct target *t, int step, const char *now, struct depth *d)
{
	const char *argv[DEPTH_WORDS];
	struct redisReply *reply;

	if (depth_command(&t->keys, t->kind, step, now, argv) == 0)
		return 0;
	if ((reply = ask_next(c)) == NULL)
		return -1;
	depth_answer(d, step, reply);
	client_reply_free(reply);
	return 0;
}

int
depth_read(struct ctl *c, const struct target *t, size_t n, struct depth *ret)
{
	char now[32];
	double at = ask_time(c);
	size_t i, k;
	int step;

	if (at < 0)
		return -1;
	snprintf(now, sizeof(now), "%.6f", at);
	for (i = 0; i < n; i++)
		for (step = 0; step < DEPTH_STEPS; step++)
			if (append(c, &t[i], step, now) == -1)
				return -1;
	for (i = 0; i < n; i++)
		depth_init(&ret[i]);
	for (i = 0; i < n; i++)
		for (step = 0; step < DEPTH_STEPS; step++)
			if (take(c, &t[i], step, now, &ret[i]) == -1) {
				for (k = 0; k < n; k++)
					depth_done(&ret[k]);
				return -1;
			}
	return 0;
}
