/*
 * The state of the fleet; see snapshot.h.  rqctl sends all commands of a round trip before
 * it reads the first reply.
 */
#include "rqctl/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rqctl/ask.h"
#include "status/advice.h"

#define QUEUES_MAX	10000	/* queues of heartbeats that are shown */
#define BEATS		50	/* heartbeats per round trip */
#define REFRESH_MAX	(1500 * MSEC)	/* wait so long for new heartbeats */
#define REFRESH_SLACK	0.05	/* seconds that a daemon's idea of Redis' time may be off */

/* -- the fleet -------------------------------------------------------------------- */

int
snapshot_fleet(struct ctl *c, struct fleet *f)
{
	struct redisReply *index, *reply;
	const char *text;
	size_t n, i, k, end, len;
	int64_t all;
	int rc = 0;

	memset(f, 0, sizeof(*f));
	index = ask(c, "ZREVRANGE %s 0 %lld WITHSCORES", KEYS_DAEMONS, (long long)FLEET_MAX - 1);
	if (index == NULL)
		return -1;
	n = reply_len(index) / 2;
	for (i = 0; i < n && rc == 0 && !fleet_is_full(f); i = end) {
		end = size_min(i + BEATS, n);
		for (k = i; k < end && rc == 0; k++) {
			text = reply_str(reply_at(index, 2 * k), NULL);
			rc = ask_append(c, "GETRANGE %s%s 0 %lld", KEYS_DAEMON_PREFIX,
			    or_empty(text), (long long)BEAT_MAX);
		}
		for (k = i; k < end && rc == 0; k++) {
			reply = ask_next(c);
			if (reply == NULL)
				rc = -1;
			text = reply_str(reply, &len);
			if (rc == 0 && reply_str(reply_at(index, 2 * k), NULL) != NULL)
				fleet_add(f, reply_str_at(index, 2 * k),
				    reply_double_at(index, 2 * k + 1), text, len);
			reply_free(reply);
		}
	}
	f->ignored += n - i;
	reply_free(index);
	if (n == FLEET_MAX && rc == 0) {
		all = ask_number(ask(c, "ZCARD %s", KEYS_DAEMONS));
		if (all < 0)
			rc = -1;
		else if ((size_t)all > n)
			f->unread = (size_t)all - n;
	}
	if (rc == -1)
		fleet_done(f);
	return rc;
}

const struct daemon *
snapshot_holder(const struct fleet *f, const struct target *t, const char *tag, size_t len,
    const json_t **entry)
{
	for (size_t i = 0; i < f->n; i++) {
		*entry = fleet_entry(&f->daemons[i], t->key, "in_hand", tag, len);
		if (*entry != NULL)
			return &f->daemons[i];
	}
	*entry = NULL;
	return NULL;
}

int
snapshot_refresh(struct ctl *c)
{
	double since = ask_time_of(c, KEYS_DAEMONS) - REFRESH_SLACK;
	usec_t until = clock_mono() + REFRESH_MAX;
	int64_t *told, heard = 0, fresh = 0;
	struct redisReply *reply;
	struct fleet f;
	int rc = 0;

	if (since < 0 || snapshot_fleet(c, &f) == -1)
		return -1;
	told = xcalloc(f.n + 1, sizeof(*told));
	for (size_t i = 0; i < f.n && rc == 0; i++)
		rc = ask_append(c, "PUBLISH %s%s beat", KEYS_CONTROL_PREFIX,
		    f.daemons[i].instance);
	for (size_t i = 0; i < f.n && rc == 0; i++) {
		if ((reply = ask_next(c)) == NULL)
			rc = -1;
		told[i] = reply_int(reply, -1);		/* -1: Redis forbids PUBLISH */
		reply_free(reply);
	}
	for (size_t i = 0; i < f.n && rc == 0; i++)
		heard += ask_heard(c, f.daemons[i].instance, told[i]) > 0;
	free(told);
	fleet_done(&f);
	while (rc == 0 && heard > fresh && fresh >= 0 && clock_mono() < until &&
	    ctl_sleep(20 * MSEC))
		fresh = ask_number(ask(c, "ZCOUNT %s %f +inf", KEYS_DAEMONS, since));
	if (fresh < 0)
		return -1;
	return rc;
}

/* -- depths ----------------------------------------------------------------------- */

/* Sends the commands for one key. */
static int
send_depth(struct ctl *c, const struct keys *keys, enum kind kind, double at)
{
	const char *argv[DEPTH_WORDS];
	char now[32];
	int argc, rc = 0;

	snprintf(now, sizeof(now), "%.6f", at);
	for (int step = 0; step < DEPTH_STEPS && rc == 0; step++) {
		struct words w = { .n = 0 };

		argc = depth_command(keys, kind, step, now, argv);
		for (int i = 0; i < argc; i++)
			words_add(&w, argv[i]);
		if (argc > 0)
			rc = ask_append_words(c, &w);
	}
	return rc;
}

/* Reads the replies to them. */
static int
read_depth(struct ctl *c, const struct keys *keys, enum kind kind, double at,
    struct depth *d)
{
	const char *argv[DEPTH_WORDS];
	struct redisReply *reply;

	depth_init(d);
	d->now = at;
	for (int step = 0; step < DEPTH_STEPS; step++) {
		if (depth_command(keys, kind, step, "", argv) == 0)
			continue;
		if ((reply = ask_next(c)) == NULL)
			return -1;
		depth_answer(d, step, reply);
		reply_free(reply);
	}
	return 0;
}

/* Adds up the depths of the queue's keys, which are next in the pipeline. */
static int
read_target(struct ctl *c, const struct target *t, const double *now,
    struct depth *ret)
{
	struct depth d;
	int rc = read_depth(c, &t->all[0], t->kind, now[0], ret);

	for (size_t k = 1; k < t->nkeys && rc == 0; k++) {
		rc = read_depth(c, &t->all[k], t->kind, now[k], &d);
		depth_add(ret, &d);
		depth_done(&d);
	}
	return rc;
}

/* Sends the commands for all keys, then reads all replies. */
int
snapshot_depths(struct ctl *c, const struct target *t, size_t n, struct depth *ret)
{
	const char **keys = NULL;
	size_t nkeys = 0, at = 0, i, k;
	double *now;
	int rc;

	memset(ret, 0, n * sizeof(*ret));
	for (i = 0; i < n; i++)
		for (k = 0; k < t[i].nkeys; k++)
			*APPEND(keys, nkeys) = t[i].all[k].name[KEY_QUEUE];
	now = xcalloc(nkeys + 1, sizeof(*now));
	rc = ask_times(c, keys, nkeys, now);
	for (i = 0; i < n; i++)
		for (k = 0; k < t[i].nkeys && rc == 0; k++)
			rc = send_depth(c, &t[i].all[k], t[i].kind, now[at++]);
	at = 0;
	for (i = 0; i < n && rc == 0; i++) {
		rc = read_target(c, &t[i], &now[at], &ret[i]);
		at += t[i].nkeys;
	}
	for (i = 0; rc == -1 && i < n; i++)
		depth_done(&ret[i]);
	free(keys);
	free(now);
	return rc;
}

/* -- the snapshot ------------------------------------------------------------------ */

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct target *)a)->name, ((const struct target *)b)->name);
}

void
snapshot_done(struct snapshot *p)
{
	for (size_t i = 0; i < p->n; i++)
		depth_done(&p->depths[i]);
	free(p->depths);
	free(p->services);
	targets_free(p->targets, p->n);
	fleet_done(&p->fleet);
	words_done(&p->notes);
	free(p->full);
	free(p->refuses);
	memset(p, 0, sizeof(*p));
}

int
snapshot_take(struct ctl *c, struct snapshot *p)
{
	const char *log, *reload;
	const struct daemon *d;
	struct served *served;

	memset(p, 0, sizeof(*p));
	if (snapshot_fleet(c, &p->fleet) == -1)
		return -1;
	if (c->args.nwords > 0 || ctl_has_file(c)) {
		p->targets = targets_find(c, &p->n);
	} else {
		/* Without a file, the queues are those that daemons serve, each once. */
		served = fleet_served(&p->fleet, &p->n);
		p->n = size_min(p->n, QUEUES_MAX);
		p->targets = xcalloc(p->n + 1, sizeof(*p->targets));
		for (size_t i = 0; i < p->n; i++) {
			target_told(&p->targets[i], served[i].key, served[i].queue);
			p->targets[i].name = served[i].name;
		}
		free(served);
		qsort(p->targets, p->n, sizeof(*p->targets), by_name);
	}
	if (p->targets == NULL)
		p->n = 0;
	p->depths = xcalloc(p->n + 1, sizeof(p->depths[0]));
	p->services = xcalloc(p->n + 1, sizeof(p->services[0]));
	if (p->targets == NULL || snapshot_depths(c, p->targets, p->n, p->depths) == -1) {
		snapshot_done(p);
		return -1;
	}
	for (size_t i = 0; i < p->n; i++) {
		fleet_service(&p->fleet, p->targets[i].key, &p->services[i]);
		/* Without leases, only daemons know what runs. */
		if (!kind_has(p->targets[i].kind, TRAIT_LEASES))
			p->depths[i].in_flight = p->services[i].running;
	}
	for (size_t i = 0; i < p->fleet.n; i++) {
		d = &p->fleet.daemons[i];
		log = fleet_text(d->beat, "log_error");
		reload = fleet_text(d->beat, "reload_error");
		if (log[0] != '\0')
			words_fmt(&p->notes, ADVICE_LOG, d->instance, log);
		if (reload[0] != '\0')
			words_fmt(&p->notes, ADVICE_RELOAD, d->instance, reload);
	}
	p->full = ask_memory(c);
	p->refuses = ask_refusal(c);
	p->taken = clock_wall();
	return 0;
}

struct facts
snapshot_facts(const struct snapshot *p, size_t i)
{
	return (struct facts){
		.name = p->targets[i].name, .keys = &p->targets[i].keys,
		.kind = p->targets[i].kind, .depth = &p->depths[i],
		.elsewhere = target_is_elsewhere(&p->targets[i]),
		.service = &p->services[i], .taken = p->taken, .full = p->full != NULL,
		.refuses = p->refuses,
	};
}
