/*
 * rqctl quiet, probe: hints to daemons, on their control channels.
 *
 * Redis says how many have heard one.  A daemon that Redis forbids the channel, or that is
 * of an older version, hears none; rqctl says so.
 */
#include <stdio.h>
#include <string.h>

#include "queue/keys.h"
#include "redis/reply.h"
#include "rqctl/ask.h"
#include "rqctl/ask_fleet.h"
#include "rqctl/groups.h"
#include "rqctl/out.h"

/* Sends a hint; whether the daemon has heard it. */
static bool
send_hint(struct ctl *c, const char *instance, const char *hint)
{
	char *channel = xasprintf("%s%s", KEYS_CONTROL_PREFIX, instance);
	struct words w = { 0 };
	struct redisReply *reply;
	bool heard;

	words_add(&w, "PUBLISH");
	words_add(&w, channel);
	words_add(&w, hint);
	reply = ask_words(c, &w);
	heard = reply_int(reply, 0) > 0;
	if (reply != NULL && !heard)
		ctl_error(c, EX_UNAVAILABLE, "%s does not hear its channel %s: Redis forbids it, or "
		    "its version is older", instance, channel);
	client_reply_free(reply);
	words_done(&w);
	free(channel);
	return heard;
}

static void
say(const struct ctl *c, const char *instance, const char *queue, const char *done,
    const char *words)
{
	struct buf b = BUF_INIT;
	json_t *o;

	if (ctl_given(c, OPT_JSON)) {
		o = json_object();
		out_set_bytes(o, "daemon", instance, strlen(instance));
		if (queue != NULL)
			out_set_bytes(o, "queue", queue, strlen(queue));
		json_object_set_new(o, "done", json_string(done));
		out_json_line(o);
		return;
	}
	buf_printf(&b, "%s%s%s%s", words, queue != NULL ? queue : "", queue != NULL ? " by " : "",
	    instance);
	out_escaped_line(buf_str(&b));
	buf_done(&b);
}

void
quiet_run(struct ctl *c)
{
	const char *who = c->args.words[0], *name;
	bool end = ctl_given(c, OPT_END);
	struct fleet f;
	size_t i, n = 0;

	if (fleet_read(c, &f) == -1)
		return;
	for (i = 0; i < f.n; i++) {
		name = fleet_text(f.daemons[i].beat, "name");
		if (strcmp(who, f.daemons[i].instance) != 0 && strcmp(who, name) != 0)
			continue;
		n++;
		if (send_hint(c, f.daemons[i].instance, end ? "end_quiet" : "quiet"))
			say(c, f.daemons[i].instance, NULL, end ? "end_quiet" : "quiet",
			    end ? "not quiet any more: " : "quiet: ");
	}
	if (n == 0)
		ctl_error(c, EX_NOTHING, "no daemon lives that is called %s: rqctl daemons lists them",
		    who);
	fleet_done(&f);
}

void
probe_run(struct ctl *c)
{
	const json_t *q;
	struct target t;
	struct fleet f;
	size_t i, n = 0;
	char *hint;

	if (ctl_target(c, c->args.words[0], &t) == -1)
		return;
	hint = xasprintf("probe %s", t.keys.name[KEY_QUEUE]);
	if (fleet_read(c, &f) == 0) {
		for (i = 0; i < f.n; i++) {
			q = fleet_queue(&f.daemons[i], t.keys.name[KEY_QUEUE]);
			if (strcmp(fleet_text(q, "state"), "suspended") != 0)
				continue;
			n++;
			if (send_hint(c, f.daemons[i].instance, hint))
				say(c, f.daemons[i].instance, t.name, "probe", "probing ");
		}
		if (n == 0)
			ctl_error(c, EX_NOTHING, "no daemon has suspended %s", t.name);
		fleet_done(&f);
	}
	free(hint);
	ctl_target_done(&t);
}
