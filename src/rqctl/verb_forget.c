/*
 * rqctl forget: deletes the keys of a queue that is no longer used.
 *
 * If the configuration does not name the queue, forget takes its name as the key.  The script
 * that deletes checks again for messages: without --force it deletes none that a producer has
 * pushed meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "rqctl/ask.h"
#include "rqctl/snapshot.h"

/* Returned by forget_queue.lua. */
enum { FORGET_KEYS, FORGET_MESSAGES, FORGET_FIELDS };

/*
 * how: "count" only counts, "force" deletes, "" deletes unless there are messages.
 * Sets how many keys and messages were found or deleted in all shards; kept: how
 * many messages have kept their shards.  Returns 0, or -1 after an error, when
 * some shards may be deleted.
 */
static int
run_script(struct ctl *c, const char *how, int64_t *nkeys, int64_t *messages,
    int64_t *kept)
{
	static const enum key order[KEY_MAX] = {
		KEY_QUEUE, KEY_BACKUP, KEY_RETRY, KEY_DELAYED, KEY_DEAD, KEY_HELD,
		KEY_CONTEXT, KEY_DELIVERY, KEY_PAUSED, KEY_STATS, KEY_SCHEDULE, KEY_RATE,
		KEY_GROUP, KEY_ORDER
	};
	const struct keys *k = &c->target.keys;
	struct redisReply *reply;
	int64_t found;

	*nkeys = *messages = *kept = 0;
	EACH_KEY(n, &c->target) {
		struct words w = { .n = 0 };

		for (size_t i = 0; i < KEY_MAX; i++)
			words_mem(&w, k->name[order[i]], k->len[order[i]]);
		ask_add(&w, "%s", how);
		reply = NULL;
		if (c->status == 0)
			reply = ask_script_words(c, "forget_queue", KEY_MAX,
			    &w);
		found = reply_int_at(reply, FORGET_MESSAGES);
		if (how[0] == '\0' && found > 0) {
			*kept += found;
		} else {
			*nkeys += reply_int_at(reply, FORGET_KEYS);
			*messages += found;
		}
		reply_free(reply);
		words_done(&w);
	}
	if (c->status != 0)
		return -1;
	return 0;
}

/*
 * Returns what members of the index KEYS_QUEUES have about the key: the most
 * shards, and the last delayed_key; NULL: none.  With drop, removes these members.
 * Reports an error only if the connection is lost.
 */
static json_t *
in_index(struct ctl *c, const char *key, bool drop)
{
	struct redisReply *index = ask_any(c, "ZRANGE %s 0 -1", KEYS_QUEUES);
	json_t *member, *told = NULL;
	const char *text, *delayed;
	int64_t shards;
	size_t len;

	for (size_t i = 0; i < reply_len(index); i++) {
		member = fleet_member(reply_at(index, i));
		text = reply_str(reply_at(index, i), &len);
		if (strcmp(fleet_text(member, "key"), key) != 0) {
			json_decref(member);
			continue;
		}
		if (told == NULL)
			told = json_incref(member);
		shards = fleet_count(member, "shards");
		delayed = fleet_text(member, "delayed_key");
		if (shards > fleet_count(told, "shards"))
			json_set(told, "shards:i", shards);
		if (delayed[0] != '\0' && told != member)
			json_set(told, "delayed_key:s", delayed);
		if (drop)
			reply_free(ask_any(c, "ZREM %s %.*s", KEYS_QUEUES,
			    (int)len, text));
		json_decref(member);
	}
	reply_free(index);
	return told;
}

/* Whether no daemon serves the queue; else one was reported. */
static bool
is_unused(struct ctl *c, const char *name)
{
	struct fleet fleet;

	if (snapshot_fleet(c, &fleet) == -1)
		return false;
	for (size_t i = 0; i < fleet.n && c->status == 0; i++)
		if (fleet_queue(&fleet.daemons[i], c->target.key) != NULL)
			ctl_error(c, EX_TEMPFAIL, "%s serves %s: remove the "
			    "queue from its configuration first, or use --force",
			    fleet.daemons[i].instance, name);
	fleet_done(&fleet);
	return c->status == 0;
}

/* "4 keys and 3 messages of orders" */
static char *
amount(const char *name, int64_t nkeys, int64_t messages)
{
	return xasprintf("%lld key%s and %lld message%s of %s",
	    (long long)nkeys, plural(nkeys), (long long)messages,
	    plural(messages), name);
}

static void
report(struct ctl *c, const char *name, int64_t nkeys, int64_t messages,
    bool complete)
{
	bool dry = ctl_given(c, OPT_DRY_RUN);
	char *what = amount(name, nkeys, messages);
	const char *did = "forgot";

	if (dry)
		did = "would forget";

	ctl_result(c, json_set(json_object(),
	    "queue:s keys:i messages:i dry_run:t complete:t", name, nkeys,
	    messages, dry, complete), "%s %s%s", did, what,
	    text_if(!complete,
		"; stopped before the end, the rest is unchanged"));
	free(what);
}

/*
 * Asks.  Anybody who may write to the index can name a delayed_key there, so the
 * question names it.
 */
static bool
confirm(struct ctl *c, const char *what)
{
	const struct keys *k = &c->target.keys;
	const char *delayed = k->name[KEY_DELAYED];

	if (strncmp(delayed, c->target.key, k->len[KEY_QUEUE]) == 0)
		return ctl_confirm(c, "delete %s", what);
	return ctl_confirm(c, "delete %s, and its delayed_key %s", what,
	    delayed);
}

/* Deletes the queue.  Some shards may be deleted when others cannot be. */
static void
forget(struct ctl *c, const char *name)
{
	const char *how = text_if(ctl_given(c, OPT_FORCE), "force");
	const char *stays = "nothing was deleted";
	int64_t nkeys, messages, kept;
	int rc = run_script(c, how, &nkeys, &messages, &kept);

	if (c->target.nkeys > 1)
		stays = "their shards were not deleted";
	if ((rc == 0 && kept == 0) || nkeys > 0)
		report(c, name, nkeys, messages, rc == 0 && kept == 0);
	if (kept > 0)
		ctl_error(c, EX_TEMPFAIL,
		    "messages were pushed to %s meanwhile: %s", name, stays);
	audit_removed(c, "forget --force", messages);
	if (c->status == 0)
		json_decref(in_index(c, c->target.key, true));
}

static void
forget_run(struct ctl *c)
{
	const char *name = c->args.words[0];
	const struct queue_config *cfg = config_queue(c->config, name);
	bool force = ctl_given(c, OPT_FORCE);
	int64_t nkeys, messages, kept;
	json_t *told;
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
	if (cfg != NULL) {
		target_init(&c->target, cfg, name, 0);
	} else {
		told = in_index(c, name, false);
		target_told(&c->target, name, told);
		json_decref(told);
	}
	if (c->status != 0 || (!force && !is_unused(c, name)) ||
	    run_script(c, "count", &nkeys, &messages, &kept) == -1)
		return;
	what = amount(name, nkeys, messages);
	if (nkeys == 0)
		ctl_error(c, EX_NOTHING, "%s has no keys", name);
	else if (messages > 0 && !force)
		ctl_error(c, EX_TEMPFAIL, "%s holds %lld message%s: let a queue take them, or "
		    "delete them with --force", name, (long long)messages,
		    plural(messages));
	else if (ctl_given(c, OPT_DRY_RUN))
		report(c, name, nkeys, messages, true);
	else if (confirm(c, what))
		forget(c, name);
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
