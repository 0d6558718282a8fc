/* rqctl queues: lists the queues of the configuration, or those that daemons serve. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rqctl/ask.h"
#include "rqctl/listing.h"
#include "rqctl/snapshot.h"

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
queue_row(struct listing *l, const struct target *t)
{
	const struct queue_config *q = t->cfg;
	bool leases = q != NULL && kind_has(q->kind, TRAIT_LEASES);
	bool subscribes = q != NULL && kind_has(q->kind, TRAIT_SUBSCRIBES);
	json_t *o, *keys;
	double lease = NAN;

	if (leases)
		lease = (double)q->lease / 1e6;
	if (subscribes)
		keys = words_json("word", q->keys, SIZE_MAX);
	else
		keys = words_json("word", &t->keys.name[KEY_QUEUE], 1);
	o = json_set(json_object(), "name:s key:b kind:s .key:j", t->name,
	    t->keys.name[KEY_QUEUE], t->keys.len[KEY_QUEUE],
	    kind_name(t->kind), keys);

	if (q != NULL && config_is_sharded(q))
		json_set(o, "shards:i keys:j", (int64_t)q->shards,
		    words_json("key", q->shard_keys, (size_t)q->shards));
	if (subscribes)
		json_set(o, "channels:j", words_json("word", q->keys, SIZE_MAX));
	if (q != NULL)
		json_set(o, "mode:s concurrency:i lease:f max_attempts:i command:j file:s line:i",
		    config_modes[q->mode], (int64_t)q->concurrency,
		    lease, (int64_t)q->max_attempts,
		    words_json("word", q->command, SIZE_MAX), q->file, (int64_t)q->line);
	listing_row(l, o);
}

/* Prints the keys that producers push to: the shards, in their order, or Q. */
static void
print_keys(const struct target *t)
{
	size_t n = target_shards(t);

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
	if (listing_init(&l, c, "QUEUE=name|KIND=kind|KEY=.key|>AT ONCE=concurrency|>LEASE=lease|"
	    ">ATTEMPTS=max_attempts|COMMAND=command") == 0)
		for (size_t i = 0; i < n; i++)
			queue_row(&l, &targets[i]);
	listing_end(&l, n, "queues", "there are no queues");
}

/* The queues of a file need no Redis; without a file, rqctl asks which ones daemons serve. */
static void
queues_run(struct ctl *c)
{
	struct target *targets;
	struct snapshot p;
	size_t n;

	if (ctl_has_file(c)) {
		if ((targets = targets_find(c, &n)) == NULL)
			return;
		list(c, targets, n);
		targets_free(targets, n);
	} else if (snapshot_take(c, &p) == 0) {
		list(c, p.targets, p.n);
		snapshot_done(&p);
	}
}

const struct verb verb_queues = {
	.name = "queues",
	.args = "[QUEUE...]",
	.help = "list the queues of the configuration",
	.options = OPT(NAMES) | OPT(KEYS),
	.max_args = -1,
	.flags = VERB_JSON | VERB_QUEUES,
	.run = queues_run,
};
