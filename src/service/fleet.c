/*
 * Sums over heartbeats; see fleet.h.
 */
#include "service/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "redis/reply.h"

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

static const json_t *
by_key(json_t *queues, const char *key)
{
	const char *name, *is;
	json_t *q;

	json_object_foreach(queues, name, q) {
		is = fleet_text(q, "key");
		if (strcmp(is[0] != '\0' ? is : name, key) == 0)
			return q;
	}
	return NULL;
}

const json_t *
fleet_queue(const struct daemon *d, const char *key)
{
	return by_key(json_object_get(d->beat, "queues"), key);
}

void
fleet_add(struct fleet *f, const struct redisReply *index, size_t i,
    const struct redisReply *beat)
{
	size_t len;
	const char *text = reply_str(beat, &len), *name;
	json_t *json = text != NULL ? json_loadb(text, len, 0, NULL) : NULL;

	name = reply_str(reply_at(index, 2 * i), &len);
	if (!json_is_object(json) || name == NULL) {
		json_decref(json);
		return;
	}
	f->daemons = xreallocarray(f->daemons, f->n + 1, sizeof(f->daemons[0]));
	f->daemons[f->n++] = (struct daemon){
		.beat = json,
		.instance = xstrndup(name, len),
		.seen = reply_double(reply_at(index, 2 * i + 1), 0)
	};
}

void
fleet_done(struct fleet *f)
{
	while (f->n > 0) {
		f->n--;
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
	static const char *const order[] = { "quiet", "draining", "paused", "suspended" };
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
		s->running += (int)fleet_number(q, "running", 0);
		s->concurrency += (int)fleet_number(q, "concurrency", 0);
		if ((age = oldest(q)) > s->oldest)
			s->oldest = age;
		theirs = fleet_number(q, "lease", lease);
		if (lease >= 0 && theirs != lease)
			s->leases_differ = true;
		lease = theirs;
		add_state(s, q);
	}
}
