/*
 * Hints from rqctl; see control.h.
 *
 *	quiet
 *	end_quiet
 *	probe KEY
 *	renew KEY
 *	beat
 */
#include "service/control.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "queue/keys.h"
#include "redis/conn.h"
#include "redis/reply.h"

#define PROBE	"probe "
#define RENEW	"renew "

struct control {
	struct conn			*conn;
	const struct control_events	*events;
	void				*arg;
	bool				 forbidden;	/* Redis has said so, and so has the log */
};

static void
control_heard(const char *channel UNUSED, size_t channel_len UNUSED,
    const struct redisReply *payload, void *arg)
{
	struct control *c = arg;
	size_t len = 0;
	const char *text = reply_str(payload, &len);

	if (text == NULL || len > CONTROL_MAX || memchr(text, '\0', len) != NULL)
		return;
	if (strcmp(text, "quiet") == 0)
		c->events->quiet(true, c->arg);
	else if (strcmp(text, "end_quiet") == 0)
		c->events->quiet(false, c->arg);
	else if (strncmp(text, PROBE, strlen(PROBE)) == 0)
		c->events->queue(text + strlen(PROBE), consumer_probe_now, c->arg);
	else if (strncmp(text, RENEW, strlen(RENEW)) == 0)
		c->events->queue(text + strlen(RENEW), consumer_renew, c->arg);
	else if (strcmp(text, "beat") == 0)
		c->events->beat(c->arg);
}

static void
control_up(const struct conn_server *server UNUSED, void *arg)
{
	struct control *c = arg;

	c->forbidden = false;
}

/* Nothing to do: the sender of a hint sees that no daemon received it. */
static void
control_down(const char *cause, void *arg)
{
	struct control *c = arg;

	if (c->forbidden || strstr(cause, "NOPERM") == NULL)
		return;
	c->forbidden = true;
	log_event(LOG_LV_WARN, "warning", NULL, LF_STR("error", cause),
	    LF_STR("warning", "rqctl cannot reach this daemon: it may not subscribe to its "
	    "control channel"));
}

struct control *
control_new(struct loop *loop, const struct redis_options *options, const char *instance,
    const struct control_events *events, void *arg)
{
	static const struct conn_events conn_events = { .up = control_up, .down = control_down };
	char *name = xasprintf("%s-control", instance);
	char *channel = xasprintf("%s%s", KEYS_CONTROL_PREFIX, instance);
	struct control *c = NEW(struct control, .events = events, .arg = arg);

	c->conn = conn_new(loop, options, name, CONN_SUBSCRIBER, &conn_events, c);
	conn_set_reply_max(c->conn, (size_t)16 * CONTROL_MAX);
	conn_subscribe(c->conn, false, channel, control_heard, c);
	free(channel);
	free(name);
	return c;
}

void
control_conn_up(struct control *c)
{
	conn_start(c->conn);
}

void
control_probe(struct control *c)
{
	conn_probe(c->conn);
}

void
control_free(struct control *c)
{
	if (c == NULL)
		return;
	conn_free(c->conn);
	free(c);
}
