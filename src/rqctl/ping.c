/*
 * rqctl ping: is Redis there, is it the master, and how far away?
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "redis/reply.h"
#include "rqctl/ask.h"
#include "rqctl/groups.h"
#include "rqctl/info.h"
#include "rqctl/out.h"

void
ping_run(struct ctl *c)
{
	struct redisReply *reply;
	char took[UNITS_TEXT_MAX], *version;
	usec_t began;
	json_t *o;

	if (ctl_connect(c) == -1)
		return;
	began = clock_mono();
	if ((reply = ask(c, "PING", NULL)) == NULL)
		return;
	client_reply_free(reply);
	began = clock_mono() - began;
	version = info_field(c, "server", "redis_version");
	if (ctl_given(c, OPT_JSON)) {
		o = json_object();
		json_object_set_new(o, "server", json_string(client_address(c->client)));
		json_object_set_new(o, "version", json_string(version));
		json_object_set_new(o, "seconds", json_real((double)began / 1e6));
		out_json(o);
	} else
		printf("redis %s%s%s answers in %s\n", client_address(c->client),
		    version[0] != '\0' ? ", version " : "", version,
		    units_about(began, took));
	free(version);
}
