/*
 * Sums over heartbeats; see fleet.h.
 */
#include "status/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "status/beat.h"

#define COUNT_MAX	1e12		/* so that sums over a fleet are exact */

const char *
fleet_text(const json_t *object, const char *member)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text != NULL ? text : "";
}

double
fleet_number(const json_t *object, const char *member, double otherwise)
{
	const json_t *v = json_object_get(object, member);

	return json_is_number(v) ? json_number_value(v) : otherwise;
}

int64_t
fleet_count(const json_t *object, const char *member)
{
	double n = fleet_number(object, member, 0);

	return n > 0 && n < COUNT_MAX ? (int64_t)n : 0;
}

const json_t *
fleet_queue(const struct daemon *d, const char *key)
{
	return json_object_get(d->by_key, key);
}

/* The heartbeat's queues by their keys; borrowed from it, and counted. */
static json_t *
index_queues(json_t *beat)
{
	json_t *index = json_object(), *q;
	const char *name, *key;

	json_object_foreach(json_object_get(beat, "queues"), name, q) {
		key = fleet_text(q, "key");
		json_object_set(index, key[0] != '\0' ? key : name, q);
	}
	return index;
}

bool
fleet_is_full(const struct fleet *f)
{
	return f->weight >= FLEET_WEIGHT_MAX;
}

void
fleet_add(struct fleet *f, const char *instance, double seen, const char *beat, size_t len)
{
	json_t *json = NULL;

	if (len == 0)
		return;
	if (!fleet_is_full(f) && strlen(instance) <= BEAT_TEXT_MAX)
		json = beat_read(beat, len);
	if (json == NULL) {
		f->ignored++;
		return;
	}
	f->weight += beat_weight(beat, len);
	f->daemons = xreallocarray(f->daemons, f->n + 1, sizeof(f->daemons[0]));
	f->daemons[f->n++] = (struct daemon){
		.beat = json, .by_key = index_queues(json), .instance = xstrdup(instance),
		.seen = seen,
	};
}

enum kind
fleet_kind(const json_t *queue)
{
	return kind_find(fleet_text(queue, "kind"));
}

void
fleet_done(struct fleet *f)
{
	while (f->n > 0) {
		f->n--;
		json_decref(f->daemons[f->n].by_key);
		json_decref(f->daemons[f->n].beat);
		free(f->daemons[f->n].instance);
	}
	free(f->daemons);
	memset(f, 0, sizeof(*f));
}

/* The age of the oldest delivery that a daemon lists. */
static double
oldest(const json_t *queue)
{
	const json_t *list = json_object_get(queue, "in_hand");
	double max = -1, age;
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		age = fleet_number(json_array_get(list, i), "age", -1);
		if (age > max)
			max = age;
	}
	return max;
}

/* A state that an operator must know of beats one that is only unusual. */
static int
rank(const char *state)
{
	static const char *const order[] = {
		"quiet", "draining", "paused", "unsubscribed", "suspended"
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(order); i++)
		if (strcmp(state, order[i]) == 0)
			return (int)i + 1;
	return 0;
}

static void
add_state(struct service *s, const json_t *q)
{
	const char *state = fleet_text(q, "state");

	if (rank(state) <= rank(s->state))
		return;
	s->state = state;
	s->reason = fleet_text(q, "reason");
	s->since = fleet_number(q, "since", 0);
}

void
fleet_service(const struct fleet *f, const char *key, struct service *s)
{
	double lease = -1, theirs, age;
	const json_t *q;
	size_t i;

	*s = (struct service){ .oldest = -1, .state = "", .reason = "" };
	for (i = 0; i < f->n; i++) {
		if ((q = fleet_queue(&f->daemons[i], key)) == NULL)
			continue;
		s->daemons++;
		s->running += fleet_count(q, "running");
		s->concurrency += fleet_count(q, "concurrency");
		if ((age = oldest(q)) > s->oldest)
			s->oldest = age;
		if (strcmp(fleet_text(q, "blocked"), "limited") == 0)
			s->limited = true;
		theirs = fleet_number(q, "lease", lease);
		if (lease >= 0 && theirs != lease)
			s->leases_differ = true;
		lease = theirs;
		add_state(s, q);
	}
}
