/*
 * The state of the fleet; see picture.h.  rqctl sends all commands of a round trip before
 * it reads the first reply.
 */
#include "rqctl/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rqctl/ask.h"

#define QUEUES_MAX	10000	/* queues of heartbeats that are shown */
#define BEATS		50	/* heartbeats per round trip */
#define REFRESH_MAX	(1500 * MSEC)	/* wait so long for new heartbeats */
#define REFRESH_SLACK	0.05	/* seconds that a daemon's idea of Redis' time may be off */

/* -- the fleet -------------------------------------------------------------------- */

/* The name of instance i of the index. */
static const char *
instance_at(const struct redisReply *index, size_t i)
{
	const char *name = reply_str_at(index, 2 * i);

	return name != NULL ? name : "";
}

/* Reads the heartbeats of instances first to end - 1. */
static int
read_beats(struct ctl *c, struct fleet *f, const struct redisReply *index, size_t first, size_t end)
{
	struct redisReply *reply;
	const char *text;
	size_t len = 0;
	int rc = 0;

	for (size_t i = first; i < end && rc == 0; i++)
		rc = ask_append(c, "GETRANGE %s%s 0 %lld", KEYS_DAEMON_PREFIX,
		    instance_at(index, i), (long long)BEAT_MAX);
	for (size_t i = first; i < end && rc == 0; i++) {
		if ((reply = ask_next(c)) == NULL)
			return -1;
		text = reply_str(reply, &len);
		fleet_add(f, instance_at(index, i), reply_double_at(index, 2 * i + 1), text,
		    text != NULL ? len : 0);
		blocking_reply_free(reply);
	}
	return rc;
}

static int
count_unread(struct ctl *c, struct fleet *f, size_t read)
{
	int64_t all = ask_number(ask(c, "ZCARD %s", KEYS_DAEMONS));

	if (all > (int64_t)read)
		f->unread = (size_t)all - read;
	return all < 0 ? -1 : 0;
}

int
picture_fleet(struct ctl *c, struct fleet *f)
{
	struct redisReply *index;
	size_t n, i, end;
	int rc = 0;

	memset(f, 0, sizeof(*f));
	index = ask(c, "ZREVRANGE %s 0 %lld WITHSCORES", KEYS_DAEMONS, (long long)FLEET_MAX - 1);
	if (index == NULL)
		return -1;
	n = reply_len(index) / 2;
	for (i = 0; i < n && rc == 0 && !fleet_is_full(f); i = end) {
		end = i + BEATS < n ? i + BEATS : n;
		rc = read_beats(c, f, index, i, end);
	}
	f->ignored += n - i;
	blocking_reply_free(index);
	if (n == FLEET_MAX && rc == 0)
		rc = count_unread(c, f, n);
	if (rc == -1)
		fleet_done(f);
	return rc;
}

/* Whether an entry has all members of `want`, here "tag" or "tag_base64". */
static bool
has(const json_t *entry, json_t *want)
{
	const char *name;
	json_t *value;

	json_object_foreach(want, name, value) {
		if (!json_equal(json_object_get(entry, name), value))
			return false;
	}
	return true;
}

const struct daemon *
picture_holder(const struct fleet *f, const struct target *t, const char *tag, size_t len,
    const json_t **entry)
{
	json_t *want = json_set(json_object(), "tag:b", tag, len);
	const struct daemon *by = NULL;
	const json_t *list;

	*entry = NULL;
	for (size_t i = 0; i < f->n && by == NULL; i++) {
		list = json_object_get(fleet_queue(&f->daemons[i], t->key), "in_hand");
		for (size_t k = 0; k < json_array_size(list) && by == NULL; k++)
			if (has(json_array_get(list, k), want)) {
				*entry = json_array_get(list, k);
				by = &f->daemons[i];
			}
	}
	json_decref(want);
	return by;
}

/* Asks all daemons for a heartbeat now.  Returns how many have received the hint, or -1. */
static int64_t
ask_beats(struct ctl *c, const struct fleet *f)
{
	int64_t *told = xcalloc(f->n + 1, sizeof(*told)), heard = 0;
	struct redisReply *reply;
	int rc = 0;

	for (size_t i = 0; i < f->n && rc == 0; i++)
		rc = ask_append(c, "PUBLISH %s%s beat", KEYS_CONTROL_PREFIX,
		    f->daemons[i].instance);
	for (size_t i = 0; i < f->n && rc == 0; i++) {
		if ((reply = ask_next(c)) == NULL)
			rc = -1;
		told[i] = reply_int(reply, -1);		/* -1: Redis forbids PUBLISH */
		blocking_reply_free(reply);
	}
	for (size_t i = 0; i < f->n && rc == 0; i++)
		heard += ask_heard(c, f->daemons[i].instance, told[i]) > 0;
	free(told);
	return rc == 0 ? heard : -1;
}

int
picture_refresh(struct ctl *c)
{
	double since = ask_time_of(c, KEYS_DAEMONS) - REFRESH_SLACK;
	usec_t until = clock_mono() + REFRESH_MAX;
	struct fleet f;
	int64_t heard, fresh = 0;

	if (since < 0 || picture_fleet(c, &f) == -1)
		return -1;
	heard = ask_beats(c, &f);
	fleet_done(&f);
	while (heard > fresh && fresh >= 0 && clock_mono() < until && ctl_sleep(20 * MSEC))
		fresh = ask_number(ask(c, "ZCOUNT %s %f +inf", KEYS_DAEMONS, since));
	return heard >= 0 && fresh >= 0 ? 0 : -1;
}

/* -- depths ----------------------------------------------------------------------- */

/* One key of a queue. */
struct depth_of {
	const struct keys	*keys;
	enum kind		 kind;
	struct depth		 depth;
};

static int
append_depth(struct ctl *c, const struct depth_of *of, int step, const char *now)
{
	const char *argv[DEPTH_WORDS];
	int argc = depth_command(of->keys, of->kind, step, now, argv), i;
	struct words w = { .n = 0 };

	if (argc == 0)
		return 0;
	for (i = 0; i < argc; i++)
		words_add(&w, argv[i]);
	return ask_append_words(c, &w);
}

static int
take_depth(struct ctl *c, struct depth_of *of, int step, const char *now)
{
	const char *argv[DEPTH_WORDS];
	struct redisReply *reply;

	if (depth_command(of->keys, of->kind, step, now, argv) == 0)
		return 0;
	if ((reply = ask_next(c)) == NULL)
		return -1;
	depth_answer(&of->depth, step, reply);
	blocking_reply_free(reply);
	return 0;
}

/* Sends the commands for all keys, then reads all replies. */
static int
ask_depths(struct ctl *c, struct depth_of *of, size_t n, double at)
{
	char now[32];
	int rc = 0;

	snprintf(now, sizeof(now), "%.6f", at);
	for (size_t i = 0; rc == 0 && i < n * DEPTH_STEPS; i++)
		rc = append_depth(c, &of[i / DEPTH_STEPS], (int)(i % DEPTH_STEPS), now);
	for (size_t i = 0; rc == 0 && i < n * DEPTH_STEPS; i++)
		rc = take_depth(c, &of[i / DEPTH_STEPS], (int)(i % DEPTH_STEPS), now);
	return rc;
}

/* Adds up the depths of a queue's keys, from of[*at] on, and moves *at behind them. */
static void
sum_up(struct depth *ret, const struct target *t, struct depth_of *of, size_t *at)
{
	*ret = of[*at].depth;
	of[*at].depth = (struct depth){ 0 };
	for (size_t i = 1; i < t->nkeys; i++)
		depth_add(ret, &of[*at + i].depth);
	*at += t->nkeys;
}

int
picture_depths(struct ctl *c, const struct target *t, size_t n, struct depth *ret)
{
	double at = ask_time(c);
	struct depth_of *of = NULL;
	size_t nof = 0, i, k;
	int rc = at < 0 ? -1 : 0;

	for (i = 0; i < n; i++)
		for (k = 0; k < t[i].nkeys; k++) {
			*APPEND(of, nof) = (struct depth_of){
				.keys = &t[i].all[k], .kind = t[i].kind
			};
			depth_init(&of[nof - 1].depth);
			of[nof - 1].depth.now = at;
		}
	if (rc == 0)
		rc = ask_depths(c, of, nof, at);
	for (i = k = 0; rc == 0 && i < n; i++)
		sum_up(&ret[i], &t[i], of, &k);
	for (i = 0; i < nof; i++)
		depth_done(&of[i].depth);
	free(of);
	return rc;
}

/* -- the picture ------------------------------------------------------------------ */

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct target *)a)->name, ((const struct target *)b)->name);
}

/* Without a file, the queues are those that daemons serve, each once. */
static struct target *
served_queues(const struct fleet *f, size_t *n)
{
	struct served *served = fleet_served(f, n);
	struct target *t;

	*n = *n < QUEUES_MAX ? *n : QUEUES_MAX;
	t = xcalloc(*n + 1, sizeof(*t));
	for (size_t i = 0; i < *n; i++) {
		target_told(&t[i], served[i].key, served[i].queue);
		t[i].name = served[i].name;
	}
	free(served);
	qsort(t, *n, sizeof(*t), by_name);
	return t;
}

static int
find_targets(struct ctl *c, struct picture *p)
{
	if (c->args.nwords == 0 && !ctl_has_file(c))
		p->targets = served_queues(&p->fleet, &p->n);
	else if ((p->targets = targets_find(c, &p->n)) == NULL) {
		p->n = 0;
		return -1;
	}
	return 0;
}

void
picture_done(struct picture *p)
{
	for (size_t i = 0; p->depths != NULL && i < p->n; i++)
		depth_done(&p->depths[i]);
	free(p->depths);
	free(p->services);
	targets_free(p->targets, p->n);
	fleet_done(&p->fleet);
	free(p->full);
	memset(p, 0, sizeof(*p));
}

int
picture_take(struct ctl *c, struct picture *p)
{
	memset(p, 0, sizeof(*p));
	if (picture_fleet(c, &p->fleet) == -1)
		return -1;
	if (find_targets(c, p) == 0) {
		p->depths = xcalloc(p->n + 1, sizeof(p->depths[0]));
		p->services = xcalloc(p->n + 1, sizeof(p->services[0]));
	}
	if (p->depths == NULL || picture_depths(c, p->targets, p->n, p->depths) == -1) {
		picture_done(p);
		return -1;
	}
	for (size_t i = 0; i < p->n; i++) {
		fleet_service(&p->fleet, p->targets[i].key, &p->services[i]);
		/* Without leases, only daemons know what runs. */
		if (!kind_has(p->targets[i].kind, TRAIT_LEASES))
			p->depths[i].in_flight = p->services[i].running;
	}
	p->full = ask_memory(c);
	p->taken = clock_wall();
	return 0;
}

struct facts
picture_facts(const struct picture *p, size_t i)
{
	return (struct facts){
		.name = p->targets[i].name, .keys = &p->targets[i].keys,
		.kind = p->targets[i].kind, .depth = &p->depths[i],
		.elsewhere = target_is_elsewhere(&p->targets[i]),
		.service = &p->services[i], .taken = p->taken, .full = p->full != NULL,
	};
}
