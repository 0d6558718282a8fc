/*
 * Taking pictures; see picture.h.
 */
#include "rqctl/picture.h"

#include <stdlib.h>
#include <string.h>

#define QUEUES_MAX	10000	/* that are taken from heartbeats */

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct target *)a)->name, ((const struct target *)b)->name);
}

/* Without a file the queues are those that daemons serve, each once. */
static struct target *
served_queues(const struct fleet *f, size_t *n)
{
	json_t *seen = json_object(), *q;
	struct target *t = NULL;
	const char *name, *key;
	size_t i;

	*n = 0;
	for (i = 0; i < f->n; i++)
		json_object_foreach(json_object_get(f->daemons[i].beat, "queues"), name, q) {
			key = fleet_text(q, "key");
			key = key[0] != '\0' ? key : name;
			if (*n >= QUEUES_MAX || json_object_get(seen, key) != NULL)
				continue;
			json_object_set_new(seen, key, json_true());
			t = xreallocarray(t, *n + 1, sizeof(*t));
			t[*n] = (struct target){ .name = name, .kind = fleet_kind(q) };
			keys_init(&t[*n].keys, key);
			keys_set_group(&t[(*n)++].keys, fleet_text(q, "consumer_group"));
		}
	json_decref(seen);
	if (t != NULL)
		qsort(t, *n, sizeof(*t), by_name);
	return t;
}

static int
find_targets(struct ctl *c, struct picture *p)
{
	if (c->args.nwords == 0 && !ctl_has_file(c))
		p->targets = served_queues(&p->fleet, &p->n);
	else if ((p->targets = ctl_targets(c, 0, &p->n)) == NULL)
		return -1;
	return 0;
}

void
picture_done(struct picture *p)
{
	size_t i;

	for (i = 0; p->depths != NULL && i < p->n; i++)
		depth_done(&p->depths[i]);
	free(p->depths);
	free(p->services);
	ctl_targets_free(p->targets, p->n);
	fleet_done(&p->fleet);
	memset(p, 0, sizeof(*p));
}

int
picture_take(struct ctl *c, struct picture *p)
{
	size_t i;

	memset(p, 0, sizeof(*p));
	if (fleet_read(c, &p->fleet) == -1)
		return -1;
	if (find_targets(c, p) == 0) {
		p->depths = xcalloc(p->n + 1, sizeof(p->depths[0]));
		p->services = xcalloc(p->n + 1, sizeof(p->services[0]));
		if (depth_read(c, p->targets, p->n, p->depths) == 0) {
			for (i = 0; i < p->n; i++) {
				fleet_service(&p->fleet, p->targets[i].keys.name[KEY_QUEUE],
				    &p->services[i]);
				/* Only daemons know what runs. */
				if (!kind_has(p->targets[i].kind, TRAIT_LEASES))
					p->depths[i].in_flight = p->services[i].running;
			}
			p->taken = clock_wall();
			return 0;
		}
	}
	picture_done(p);
	return -1;
}
