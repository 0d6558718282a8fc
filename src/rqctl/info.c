/*
 * INFO and CONFIG GET, which operators often deny.
 */
#include "rqctl/info.h"

#include <string.h>

#include "redis/reply.h"
#include "rqctl/ask.h"

/* The reply of one command, errors included; NULL: the connection is lost. */
static struct redisReply *
tolerant(struct ctl *c, const char *command, const char *sub, const char *arg)
{
	if (ask_append(c, command, sub, arg, NULL) == -1)
		return NULL;
	return ask_next(c);
}

char *
info_field(struct ctl *c, const char *section, const char *field)
{
	struct redisReply *reply = tolerant(c, "INFO", section, NULL);
	const char *p = reply_str(reply, NULL);
	size_t n = strlen(field);
	char *ret = NULL;

	for (; p != NULL; p = strchr(p, '\n') != NULL ? strchr(p, '\n') + 1 : NULL)
		if (strncmp(p, field, n) == 0 && p[n] == ':') {
			ret = xstrndup(p + n + 1, strcspn(p + n + 1, "\r\n"));
			break;
		}
	client_reply_free(reply);
	return ret != NULL ? ret : xstrdup("");
}

char *
info_config(struct ctl *c, const char *parameter)
{
	struct redisReply *reply = tolerant(c, "CONFIG", "GET", parameter);
	const char *text = reply_str(reply_at(reply, 1), NULL);
	char *ret = xstrdup(text != NULL ? text : "");

	client_reply_free(reply);
	return ret;
}
