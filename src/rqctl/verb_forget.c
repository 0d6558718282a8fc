/*
 * rqctl forget: deletes the keys of a queue that is no longer used.
 *
 * If the configuration does not name the queue, forget takes its name as the key.  The script
 * that deletes checks again for messages: without --force it deletes none that a producer has
 * pushed meanwhile.
 */#include <stdlib.h>
#include <string.h>

#include "rqctl/ask.h"
#include "rqctl/picture.h"

/* Returned by forget_queue.lua. */
enum { FORGET_KEYS, FORGET_MESSAGES, FORGET_FIELDS };

/*
 * how: "count" only counts, "force" deletes, "" deletes unless there are messages.  Sets how many
 * keys and messages were found or deleted in all shards.  Returns 0, or -1 after an error.
 */
static int
run_script(struct ctl *c, const char *how, int64_t *nkeys, int64_t *messages)
{
	static const enum key order[KEY_MAX] = {
		KEY_QUEUE, KEY_BACKUP, KEY_RETRY, KEY_DELAYED, KEY_DEAD, KEY_HELD,
		KEY_CONTEXT, KEY_DELIVERY, KEY_PAUSED, KEY_STATS, KEY_SCHEDULE, KEY_RATE,
		KEY_GROUP, KEY_ORDER
	};
	const struct keys *k = &c->target.keys;
	struct redisReply *reply;

	*nkeys = *messages = 0;
	EACH_KEY(n, &c->target) {
		struct words w = { .n = 0 };

		for (size_t i = 0; i < KEY_MAX; i++)
			words_mem(&w, k->name[order[i]], k->len[order[i]]);
		ask_add(&w, "%s", how);
		reply = c->status == 0 ?
		    ask_script_words(c, "forget_queue", KEY_MAX, &w) : NULL;
		*nkeys += reply_int_at(reply, FORGET_KEYS);
		*messages += reply_int_at(reply, FORGET_MESSAGES);
		reply_free(reply);
		words_done(&w);
	}
	return c->status == 0 ? 0 : -1;
}

/*
 * Returns the most shards that a member of the index KEYS_QUEUES has for the key; with drop,
 * removes these members.  Reports an error only if the connection is lost.
 */
static int64_t
in_index(struct ctl *c, const char *key, bool drop)
{
	struct redisReply *index = ask_any(c, "ZRANGE %s 0 -1", KEYS_QUEUES);
	int64_t shards = 0, n;
	json_t *member;
	const char *text;
	size_t len;

	for (size_t i = 0; i < reply_len(index); i++) {
		member = fleet_member(reply_at(index, i));
		text = reply_str(reply_at(index, i), &len);
		if (strcmp(fleet_text(member, "key"), key) == 0) {
			n = fleet_count(member, "shards");
			shards = n > shards ? n : shards;
			if (drop)
				reply_free(ask_any(c, "ZREM %s %.*s", KEYS_QUEUES, (int)len, text));
		}
		json_decref(member);
	}
	reply_free(index);
	return shards;
}

static void
forget_run(struct ctl *c)
{
	const char *name = c->args.words[0];
	const struct queue_config *cfg = config_queue(c->config, name);
	bool force = ctl_given(c, OPT_FORCE), dry = ctl_given(c, OPT_DRY_RUN);
	struct fleet fleet = { .n = 0 };
	int64_t nkeys, messages;
	char *what;

	if (name[0] == '\0') {
		ctl_error(c, EX_USAGE, "the name of the queue is empty");
		return;
	}
	if (cfg != NULL && !force) {
		ctl_error(c, EX_USAGE, "%s is in %s, line %d: remove it first, or use --force",
		    name, cfg->file, cfg->line);
		return;
	}
	target_init(&c->target, cfg, name, cfg == NULL ? in_index(c, name, false) : 0);
	if (!force && picture_fleet(c, &fleet) == -1)
		return;
	for (size_t i = 0; i < fleet.n && c->status == 0; i++)
		if (fleet_queue(&fleet.daemons[i], c->target.key) != NULL)
			ctl_error(c, EX_TEMPFAIL, "%s serves %s: remove the queue from its "
			    "configuration first, or use --force", fleet.daemons[i].instance,
			    name);
	fleet_done(&fleet);
	if (c->status != 0 || run_script(c, "count", &nkeys, &messages) == -1)
		return;

	what = xasprintf("%lld key%s and %lld message%s of %s", (long long)nkeys,
	    nkeys == 1 ? "" : "s", (long long)messages, messages == 1 ? "" : "s", name);
	if (nkeys == 0)
		ctl_error(c, EX_NOTHING, "%s has no keys", name);
	else if (messages > 0 && !force)
		ctl_error(c, EX_TEMPFAIL, "%s holds %lld message%s: let a queue take them, or "
		    "delete them with --force", name, (long long)messages,
		    messages == 1 ? "" : "s");
	else if (dry || (ctl_confirm(c, "delete %s", what) &&
	    run_script(c, force ? "force" : "", &nkeys, &messages) == 0)) {
		if (messages > 0 && !force)
			ctl_error(c, EX_TEMPFAIL, "messages were pushed to %s meanwhile: %s",
			    name, c->target.nkeys > 1 ? "their shards were not deleted" :
			    "nothing was deleted");
		else
			ctl_result(c, json_set(json_object(), "queue:s keys:i messages:i dry_run:t",
			    name, nkeys, messages, dry), "%s %s",
			    dry ? "would forget" : "forgot", what);
		if (!dry && force)
			audit_removed(c, "forget --force", messages);
		if (!dry && (messages == 0 || force))
			in_index(c, c->target.key, true);
	}
	free(what);
}

const struct verb verb_forget = {
	.name = "forget",
	.args = "QUEUE",
	.help = "delete the keys of a queue that you have removed",
	.more = "Refuses, with exit status 75, while a daemon serves the queue "
	    "or messages are in it, unless --force is given.",
	.options = OPT(FORCE),
	.min_args = 1,
	.max_args = 1,
	.flags = VERB_JSON | VERB_ASKS,
	.run = forget_run,
};
