/*
 * With a configuration file, the name of a queue must be one of the file's; without
 * one, it is the key itself.
 */
#include "rqctl/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "rqctl/ctl.h"

#define NAMED	8	/* queues that the error for an unknown name lists */

static int
no_such_queue(struct ctl *c, const char *name)
{
	struct queue_config *const *q = c->config->queues;
	const char *file = c->config->file, *near = NULL;
	struct buf list = BUF_INIT;
	size_t i;
	int rc;

	for (i = 0; i < c->config->nqueues; i++) {
		if (util_distance(name, q[i]->name) <= 2)
			near = q[i]->name;
		if (i < NAMED)
			buf_printf(&list, "%s%s", i > 0 ? ", " : "", q[i]->name);
	}
	if (i > NAMED)
		buf_printf(&list, " and %zu more", i - NAMED);
	if (c->left_out)
		rc = ctl_error(c, EX_USAGE, "there is no queue \"%s\" in %s and the files without "
		    "errors; with --server ADDRESS, rqctl takes the name as the key", name, file);
	else if (near != NULL)
		rc = ctl_error(c, EX_USAGE, "there is no queue \"%s\" in %s; did you mean %s?",
		    name, file, near);
	else
		rc = ctl_error(c, EX_USAGE, "there is no queue \"%s\" in %s; it has: %s",
		    name, file, i > 0 ? buf_str(&list) : "none");
	buf_done(&list);
	return rc;
}

static void
target_init(struct target *t, const struct queue_config *cfg, const char *key)
{
	*t = (struct target){
		.name = cfg != NULL ? cfg->name : key, .cfg = cfg,
		.kind = cfg != NULL ? cfg->kind : KIND_DEFAULT
	};
	keys_init(&t->keys, cfg != NULL ? cfg->key : key);
	t->source = kind_source(t->kind);
	if (cfg != NULL)
		keys_set_group(&t->keys, cfg->consumer_group);
}

void
target_done(struct target *t)
{
	keys_done(&t->keys);
}

static bool
is_served(enum kind kind, unsigned serves)
{
	if (serves == VERB_ANY || kind_has(kind, TRAIT_LEASES))
		return true;
	if (kind_waits(kind))
		return serves != VERB_KEEPING;
	return kind_source(kind) == SOURCE_CHANNEL && serves == VERB_PUSHES;
}

int
target_find(struct ctl *c, const char *name, unsigned serves, struct target *t)
{
	const struct queue_config *cfg = config_queue(c->config, name);

	memset(t, 0, sizeof(*t));
	if (name[0] == '\0')
		return ctl_error(c, EX_USAGE, "the name of the queue is empty");
	if (cfg == NULL && ctl_has_file(c))
		return no_such_queue(c, name);
	target_init(t, cfg, name);
	if (is_served(t->kind, serves))
		return 0;
	return ctl_error(c, EX_USAGE, "%s does not serve queues of kind %s, as %s is%s",
	    c->args.verb->name, kind_name(t->kind), name, serves != VERB_KEEPING ? "" :
	    ": their messages leave Redis when they are taken");
}

struct target *
targets_find(struct ctl *c, size_t *n)
{
	size_t given = (size_t)c->args.nwords, i;
	struct target *t;

	*n = given > 0 ? given : c->config->nqueues;
	t = xcalloc(*n + 1, sizeof(*t));
	for (i = 0; i < *n; i++) {
		if (given == 0)
			target_init(&t[i], c->config->queues[i], NULL);
		else if (target_find(c, c->args.words[i], VERB_ANY, &t[i]) == -1) {
			targets_free(t, i);
			return NULL;
		}
	}
	return t;
}

void
targets_free(struct target *t, size_t n)
{
	while (n > 0)
		target_done(&t[--n]);
	free(t);
}
