/*
 * rqctl forget: deletes the keys of a queue that is gone, its totals mostly.
 *
 * The name is taken as the key where the configuration does not have it, as it should be.
 * Whether messages are there is looked at by the script that deletes, so that none that
 * is pushed meanwhile is lost.
 */
#include <stdio.h>
#include <string.h>

#include "redis/reply.h"
#include "rqctl/ask.h"
#include "rqctl/ask_fleet.h"
#include "rqctl/groups.h"
#include "rqctl/out.h"

/* Runs the script; 0, or -1 after an error. */
static int
run_script(struct ctl *c, const struct keys *keys, const char *how, int64_t *nkeys,
    int64_t *messages)
{
	static const enum key order[KEY_MAX] = {
		KEY_QUEUE, KEY_BACKUP, KEY_RETRY, KEY_DELAYED, KEY_DEAD,
		KEY_CONTEXT, KEY_DELIVERY, KEY_PAUSED, KEY_STATS, KEY_SCHEDULE, KEY_RATE
	};
	struct redisReply *reply;
	struct words w = { 0 };
	size_t i;

	for (i = 0; i < KEY_MAX; i++)
		words_mem(&w, keys->name[order[i]], keys->len[order[i]]);
	words_add(&w, how);
	reply = ask_script(c, "forget_queue", KEY_MAX, &w);
	*nkeys = reply_int(reply_at(reply, 0), 0);
	*messages = reply_int(reply_at(reply, 1), 0);
	client_reply_free(reply);
	words_done(&w);
	return reply == NULL ? -1 : 0;
}

/* The instance of a daemon that serves it, into buf; false: none does. */
static bool
is_served(struct ctl *c, const char *key, char *buf, size_t size)
{
	struct fleet f;
	size_t i;

	buf[0] = '\0';
	if (fleet_read(c, &f) == -1)
		return true;
	for (i = 0; i < f.n && buf[0] == '\0'; i++)
		if (fleet_queue(&f.daemons[i], key) != NULL)
			snprintf(buf, size, "%s", f.daemons[i].instance);
	fleet_done(&f);
	return buf[0] != '\0';
}

static void
tell(const struct ctl *c, const char *name, int64_t nkeys, int64_t messages)
{
	bool dry = ctl_given(c, OPT_DRY_RUN);
	struct buf b = BUF_INIT;
	json_t *o;

	if (ctl_given(c, OPT_JSON)) {
		o = json_object();
		out_set_bytes(o, "queue", name, strlen(name));
		json_object_set_new(o, "keys", json_integer(nkeys));
		json_object_set_new(o, "messages", json_integer(messages));
		json_object_set_new(o, "dry_run", json_boolean(dry));
		out_json(o);
		return;
	}
	out_escape(&b, name, strlen(name));
	printf("%s %lld key%s and %lld message%s of %s\n", dry ? "would forget" : "forgot",
	    (long long)nkeys, nkeys == 1 ? "" : "s", (long long)messages,
	    messages == 1 ? "" : "s", buf_str(&b));
	buf_done(&b);
}

static void
forget(struct ctl *c, const char *name, const struct keys *keys)
{
	bool force = ctl_given(c, OPT_FORCE);
	int64_t nkeys, messages;
	char served[256];

	if (is_served(c, keys->name[KEY_QUEUE], served, sizeof(served)) && !force) {
		if (c->status == 0)
			ctl_error(c, EX_TEMPFAIL, "%s serves %s: take it out of its configuration "
			    "first, or say --force", served, name);
		return;
	}
	if (run_script(c, keys, "count", &nkeys, &messages) == -1)
		return;
	if (nkeys == 0)
		ctl_error(c, EX_NOTHING, "there are no keys of %s", name);
	else if (messages > 0 && !force)
		ctl_error(c, EX_TEMPFAIL, "%lld message%s in %s: see rqctl status; --force deletes "
		    "them", (long long)messages, messages == 1 ? " is" : "s are", name);
	else if (ctl_given(c, OPT_DRY_RUN))
		tell(c, name, nkeys, messages);
	else if (ctl_confirm(c, "delete %lld key%s and %lld message%s of %s", (long long)nkeys,
	    nkeys == 1 ? "" : "s", (long long)messages, messages == 1 ? "" : "s", name) &&
	    run_script(c, keys, force ? "force" : "", &nkeys, &messages) == 0) {
		if (messages > 0 && !force)
			ctl_error(c, EX_TEMPFAIL, "messages came into %s meanwhile: nothing was deleted",
			    name);
		else
			tell(c, name, nkeys, messages);
	}
}

void
forget_run(struct ctl *c)
{
	const char *name = c->args.words[0];
	const struct queue_config *cfg = config_queue(c->config, name);
	struct keys keys;

	if (name[0] == '\0') {
		ctl_error(c, EX_USAGE, "the queue's name is empty");
		return;
	}
	if (cfg != NULL && !ctl_given(c, OPT_FORCE)) {
		ctl_error(c, EX_USAGE, "%s is in %s, line %d: take it out first, or say --force", name,
		    cfg->file, cfg->line);
		return;
	}
	keys_init(&keys, cfg != NULL ? cfg->key : name);
	forget(c, name, &keys);
	keys_done(&keys);
}
