/* rqctl ping: whether Redis answers, and how fast. */
#include <stdlib.h>

#include "base/units.h"
#include "rqctl/ask.h"

static void
ping(struct ctl *c)
{
	char took[UNITS_TEXT_MAX], *version;
	const char *server = sync_chosen(c->client);
	struct redisReply *reply;
	usec_t began;

	/* On a cluster the first command to a master also connects: do not time it. */
	if (ctl_is_cluster(c))
		reply_free(ask_any(c, "PING"));
	began = clock_mono();
	if ((reply = ask(c, "PING")) == NULL)
		return;
	reply_free(reply);
	began = clock_mono() - began;
	version = ask_info(c, "server", "redis_version");
	ctl_result(c, json_set(json_object(), "server:s version:s seconds:f",
	    server, version, (double)began / 1e6),
	    "redis %s%s%s answers in %s",
	    server, text_if(version[0] != '\0', ", version "), version,
	    units_about(began, took));
	free(version);
}

static void
ping_run(struct ctl *c)
{
	size_t n = ask_masters(c);

	for (size_t i = 0; i < n && c->status == 0; i++) {
		ask_master(c, i);
		ping(c);
	}
}

const struct verb verb_ping = {
	.name = "ping",
	.args = "",
	.help = "check that Redis answers",
	.flags = VERB_JSON,
	.run = ping_run,
};
