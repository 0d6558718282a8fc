/*
 * rqctl queues lists the configured queues; rqctl forget deletes the keys of a queue that is no
 * longer used.
 *
 * If the configuration does not name the queue, forget takes its name as the key.  The script
 * that deletes checks again for messages: without --force it deletes none that a producer has
 * pushed meanwhile.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "rqctl/ask.h"
#include "rqctl/listing.h"
#include "rqctl/picture.h"
#include "rqctl/unnamed.h"

/* -- queues ----------------------------------------------------------------------- */

/* An array of the first n words; one that is not UTF-8 becomes an object with NAME_base64. */
static json_t *
words_json(const char *name, char *const *word, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; word != NULL && i < n && word[i] != NULL; i++)
		json_array_append_new(array, out_bytes(name, word[i], strlen(word[i])));
	return array;
}

static void
add_words(struct table *t, char *const *word)
{
	struct buf b = BUF_INIT;

	for (; word != NULL && *word != NULL; word++)
		buf_printf(&b, "%s%s", b.len > 0 ? " " : "", *word);
	table_bytes(t, b.data, b.len);
	buf_done(&b);
}

static void
queue_json(json_t *o, const struct target *t)
{
	const struct queue_config *q = t->cfg;

	json_set(o, "name:s key:b kind:s", t->name, t->keys.name[KEY_QUEUE],
	    t->keys.len[KEY_QUEUE], kind_name(t->kind));
	if (q == NULL)
		return;
	if (config_is_sharded(q))
		json_set(o, "shards:i keys:j", (int64_t)q->shards,
		    words_json("key", q->shard_keys, (size_t)q->shards));
	if (kind_has(q->kind, TRAIT_SUBSCRIBES))
		json_set(o, "channels:j", words_json("word", q->keys, SIZE_MAX));
	json_set(o, "mode:s concurrency:i lease:f max_attempts:i command:j file:s line:i",
	    config_modes[q->mode], (int64_t)q->concurrency,
	    kind_has(q->kind, TRAIT_LEASES) ? (double)q->lease / 1e6 : NAN,
	    (int64_t)q->max_attempts, words_json("word", q->command, SIZE_MAX), q->file,
	    (int64_t)q->line);
}

static void
queue_row(struct listing *l, const struct target *target)
{
	const struct queue_config *q = target->cfg;
	json_t *o = listing_row(l);
	struct table *t = &l->table;
	char text[UNITS_TEXT_MAX];

	if (o != NULL) {
		queue_json(o, target);
		return;
	}
	table_add(t, "%s", target->name);
	table_add(t, "%s", kind_name(target->kind));
	if (q != NULL && kind_has(q->kind, TRAIT_SUBSCRIBES))
		add_words(t, q->keys);
	else
		table_add(t, "%s", target->keys.name[KEY_QUEUE]);
	table_number(t, q != NULL ? q->concurrency : -1);
	table_add(t, "%s", q != NULL && kind_has(q->kind, TRAIT_LEASES) ?
	    units_duration(q->lease, text) : "-");
	table_number(t, q != NULL ? q->max_attempts : -1);
	add_words(t, q != NULL ? q->command : NULL);
}

/* Prints the keys that producers push to: the shards, in their order, or Q. */
static void
print_keys(const struct target *t)
{
	size_t n = t->cfg != NULL && t->cfg->shards > 1 ? (size_t)t->cfg->shards :
	    t->cfg == NULL && t->nkeys > 1 ? t->nkeys - 1 : 0;

	for (size_t i = 0; i < n; i++)
		out_line(NULL, "%s", t->all[i].name[KEY_QUEUE]);
	if (n == 0)
		out_line(NULL, "%s", t->key);
}

static void
list(struct ctl *c, const struct target *targets, size_t n)
{
	struct listing l;

	for (size_t i = 0; i < n && ctl_given(c, OPT_NAMES); i++)
		out_line(NULL, "%s", targets[i].name);
	for (size_t i = 0; i < n && ctl_given(c, OPT_KEYS); i++)
		print_keys(&targets[i]);
	if (ctl_given(c, OPT_NAMES) || ctl_given(c, OPT_KEYS))
		return;
	if (listing_init(&l, c, "QUEUE|KIND|KEY|>AT ONCE|>LEASE|>ATTEMPTS|COMMAND") == 0)
		for (size_t i = 0; i < n; i++)
			queue_row(&l, &targets[i]);
	listing_end(&l, n, "queues", "there are no queues");
}

/* The queues of a file need no Redis; without a file, rqctl asks which ones daemons serve. */
void
queues_run(struct ctl *c)
{
	struct target *targets;
	struct picture p;
	size_t n;

	if (ctl_has_file(c)) {
		if ((targets = targets_find(c, &n)) == NULL)
			return;
		list(c, targets, n);
		targets_free(targets, n);
	} else if (picture_take(c, &p) == 0) {
		list(c, p.targets, p.n);
		picture_done(&p);
	}
}

/* -- forget ----------------------------------------------------------------------- */

struct forget {
	struct ctl	*ctl;
	const char	*name;
	struct target	 target;
	int64_t		 nkeys;		/* found or deleted by the last run, in all shards */
	int64_t		 messages;
};

/* Returned by forget_queue.lua. */
enum { FORGET_KEYS, FORGET_MESSAGES, FORGET_FIELDS };

static int
run_for_key(struct forget *f, const char *how)
{
	static const enum key order[KEY_MAX] = {
		KEY_QUEUE, KEY_BACKUP, KEY_RETRY, KEY_DELAYED, KEY_DEAD,
		KEY_CONTEXT, KEY_DELIVERY, KEY_PAUSED, KEY_STATS, KEY_SCHEDULE, KEY_RATE
	};
	struct redisReply *reply;
	struct words w = { .n = 0 };

	for (size_t i = 0; i < KEY_MAX; i++)
		words_mem(&w, f->target.keys.name[order[i]], f->target.keys.len[order[i]]);
	ask_add(&w, "%s", how);
	reply = ask_script_words(f->ctl, "forget_queue", KEY_MAX, &w);
	f->nkeys += reply_int_at(reply, FORGET_KEYS);
	f->messages += reply_int_at(reply, FORGET_MESSAGES);
	blocking_reply_free(reply);
	return reply == NULL ? -1 : 0;
}

/* how: "count" only counts, "force" deletes, "" deletes unless there are messages. */
static int
run_script(struct forget *f, const char *how)
{
	int rc = 0;

	f->nkeys = f->messages = 0;
	EACH_KEY(i, &f->target)
		rc = rc == 0 ? run_for_key(f, how) : rc;
	return rc;
}

/* Returns 0 if no daemon serves the queue, or -1 after an error was reported. */
static int
check_daemons(struct forget *f)
{
	struct fleet fleet;
	int rc = 0;

	if (picture_fleet(f->ctl, &fleet) == -1)
		return -1;
	for (size_t i = 0; i < fleet.n && rc == 0; i++)
		if (fleet_queue(&fleet.daemons[i], f->target.key) != NULL)
			rc = ctl_error(f->ctl, EX_TEMPFAIL, "%s serves %s: remove the queue from "
			    "its configuration first, or use --force",
			    fleet.daemons[i].instance, f->name);
	fleet_done(&fleet);
	return rc;
}

static void
forget(struct forget *f)
{
	struct ctl *c = f->ctl;
	bool force = ctl_given(c, OPT_FORCE), dry = ctl_given(c, OPT_DRY_RUN);
	char *what;

	if ((!force && check_daemons(f) == -1) || run_script(f, "count") == -1)
		return;
	what = xasprintf("%lld key%s and %lld message%s of %s", (long long)f->nkeys,
	    f->nkeys == 1 ? "" : "s", (long long)f->messages, f->messages == 1 ? "" : "s",
	    f->name);
	if (f->nkeys == 0)
		ctl_error(c, EX_NOTHING, "%s has no keys", f->name);
	else if (f->messages > 0 && !force)
		ctl_error(c, EX_TEMPFAIL, "%s holds %lld message%s: rqctl status shows them, "
		    "--force deletes them", f->name, (long long)f->messages,
		    f->messages == 1 ? "" : "s");
	else if (dry || (ctl_confirm(c, "delete %s", what) &&
	    run_script(f, force ? "force" : "") == 0)) {
		if (f->messages > 0 && !force)
			ctl_error(c, EX_TEMPFAIL, "messages were pushed to %s meanwhile: %s",
			    f->name, f->target.nkeys > 1 ? "their shards were not deleted" :
			    "nothing was deleted");
		else
			ctl_result(c, json_set(json_object(), "queue:s keys:i messages:i dry_run:t",
			    f->name, f->nkeys, f->messages, dry), "%s %s",
			    dry ? "would forget" : "forgot", what);
		if (!dry && (f->messages == 0 || force))
			unnamed_forget(c, f->target.key);
	}
	free(what);
}

void
forget_run(struct ctl *c)
{
	struct forget f = { .ctl = c, .name = c->args.words[0] };
	const struct queue_config *cfg = config_queue(c->config, f.name);

	if (f.name[0] == '\0') {
		ctl_error(c, EX_USAGE, "the name of the queue is empty");
		return;
	}
	if (cfg != NULL && !ctl_given(c, OPT_FORCE)) {
		ctl_error(c, EX_USAGE, "%s is in %s, line %d: remove it first, or use --force",
		    f.name, cfg->file, cfg->line);
		return;
	}
	target_init(&f.target, cfg, f.name, cfg == NULL ? unnamed_shards(c, f.name) : 0);
	forget(&f);
	target_done(&f.target);
}
