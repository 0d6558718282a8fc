/*
 * rqctl check, ping: the health of Redis, queues and daemons.
 *
 * check prints a line for each problem, which begins with "warning" or "error", and exits
 * as a plugin of a monitoring system does.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "rqctl/ask.h"
#include "rqctl/delivery.h"
#include "rqctl/out.h"
#include "rqctl/picture.h"

#define CHECK_WARNINGS	1
#define CHECK_ERRORS	2
#define CHECK_UNKNOWN	3

struct problems {
	struct ctl	*ctl;
	json_t		*list;
	bool		 json;
};

/* One finding; queue is NULL if it concerns Redis or the fleet. */
static void PRINTF(4, 5)
find(struct problems *f, const char *level, const char *queue, const char *fmt, ...)
{
	char *text, *line;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	if (strcmp(level, "error") == 0)
		f->ctl->status = CHECK_ERRORS;
	else if (f->ctl->status == 0)
		f->ctl->status = CHECK_WARNINGS;
	json_array_append_new(f->list,
	    json_set(json_object(), "level:s queue:s text:s", level, queue, text));
	line = xasprintf("%s: %s%s%s", level, queue != NULL ? queue : "", queue != NULL ? ": " : "",
	    text);
	if (!f->json)
		out_escaped_line(line);
	free(line);
	free(text);
}

static void
check_server(struct problems *f)
{
	char *policy = ask_config(f->ctl, "maxmemory-policy");
	char *version = ask_info(f->ctl, "server", "redis_version");
	char *role = ask_info(f->ctl, "replication", "role");
	int major = 0, minor = 0;

	if (policy[0] != '\0' && strcmp(policy, "noeviction") != 0)
		find(f, "error", NULL, "maxmemory-policy is %s: Redis may evict messages; "
		    "it must be noeviction", policy);
	if (role[0] != '\0' && strcmp(role, "master") != 0)
		find(f, "error", NULL, "this Redis is a %s: redis.server must name the master",
		    role);
	if (sscanf(version, "%d.%d", &major, &minor) == 2 &&
	    (major < 6 || (major == 6 && minor < 2)))
		find(f, "error", NULL, "Redis %s is too old: rqd needs 6.2", version);
	free(policy);
	free(version);
	free(role);
}

/* Each key of a queue must have its type, or not exist. */
static void
check_types(struct problems *f, const struct target *t)
{
	static const char *const sources[] = {
		[SOURCE_LIST] = "list", [SOURCE_IDS] = "zset", [SOURCE_STREAM] = "stream",
		[SOURCE_CHANNEL] = "none", [SOURCE_PATTERN] = "none"
	};
	const struct { enum key key; const char *type; } want[] = {
		{ KEY_QUEUE, sources[t->source] },
		{ KEY_BACKUP, "zset" }, { KEY_CONTEXT, "hash" }, { KEY_DELIVERY, "hash" },
		{ KEY_RETRY, "zset" }, { KEY_DELAYED, "zset" }, { KEY_DEAD, "stream" },
		{ KEY_PAUSED, "string" }, { KEY_STATS, "hash" }, { KEY_SCHEDULE, "hash" },
		{ KEY_RATE, "string" },
	};
	struct redisReply *reply;
	const char *type;
	size_t i;

	for (i = 0; i < ARRAY_LEN(want); i++)
		if (ask_append(f->ctl, "TYPE %s", t->keys.name[want[i].key]) == -1)
			return;
	for (i = 0; i < ARRAY_LEN(want) && (reply = ask_next(f->ctl)) != NULL; i++) {
		type = reply_text(reply);
		if (type[0] != '\0' && reply_error(reply) == REPLY_OK &&
		    strcmp(type, "none") != 0 && strcmp(want[i].type, "none") != 0 &&
		    strcmp(type, want[i].type) != 0)
			find(f, "error", t->name, "the key %s is a %s, not a %s",
			    t->keys.name[want[i].key], type, want[i].type);
		blocking_reply_free(reply);
	}
}

/* One daemon's limits, lease and kind against the configuration that was read. */
static void
check_lease(struct problems *f, const struct picture *p, size_t i)
{
	const struct target *t = &p->targets[i];
	double lease, want = t->cfg != NULL ? (double)t->cfg->lease / 1e6 : 0;
	const json_t *q;
	size_t k;

	if (p->services[i].leases_differ) {
		find(f, "error", t->name, "daemons disagree about the lease");
		return;
	}
	for (k = 0; t->cfg != NULL && k < p->fleet.n; k++) {
		q = fleet_queue(&p->fleet.daemons[k], t->keys.name[KEY_QUEUE]);
		lease = fleet_number(q, "lease", want);
		if (lease != want) {
			find(f, "warning", t->name, "%s runs with a lease of %gs, this "
			    "configuration says %gs", p->fleet.daemons[k].instance, lease, want);
			return;
		}
	}
}

/* A daemon that reads for another group would take this group's retries for its own. */
static void
check_group(struct problems *f, const struct picture *p, size_t i)
{
	const struct target *t = &p->targets[i];
	const char *group;
	size_t k;

	for (k = 0; k < p->fleet.n; k++) {
		group = fleet_text(fleet_queue(&p->fleet.daemons[k],
		    t->keys.name[KEY_QUEUE]), "consumer_group");
		if (group[0] == '\0' || strcmp(group, keys_group(&t->keys)) == 0)
			continue;
		find(f, "error", t->name, "%s reads it for the consumer group %s, not for %s: "
		    "the retries of both are mixed", p->fleet.daemons[k].instance, group,
		    keys_group(&t->keys));
		return;
	}
}

static void
find_unserved(struct problems *f, const char *name, bool work)
{
	if (work)
		find(f, "error", name, "no daemon serves it, and messages wait");
	else
		find(f, "warning", name, "no daemon serves it");
}

static void
check_queue(struct problems *f, const struct picture *p, size_t i)
{
	const struct depth *d = &p->depths[i];
	const struct service *s = &p->services[i];
	const char *name = p->targets[i].name;
	int64_t orphans = d->own - d->in_flight - d->retry;	/* < 0: kinds without */

	if (d->problem != NULL)
		find(f, "error", name, "%s", d->problem);
	if (s->daemons == 0 && !target_is_elsewhere(&p->targets[i]))
		find_unserved(f, name, d->waiting > 0 || d->due > 0);
	if (strcmp(s->state, "suspended") == 0)
		find(f, "error", name, "suspended: %s", s->reason);
	if (strcmp(s->state, "unsubscribed") == 0)
		find(f, "error", name, "a daemon has lost a subscription; its log says why");
	if (d->paused)
		find(f, "warning", name, "paused: %s", d->pause);
	if (d->dead > 0)
		find(f, "warning", name, "%lld dead letter%s", (long long)d->dead,
		    d->dead == 1 ? "" : "s");
	if (d->problem == NULL && orphans > 0)
		orphans -= delivery_daemons(f->ctl, p->targets[i].keys.name[KEY_DELIVERY]);
	if (d->problem == NULL && orphans > 0)
		find(f, "warning", name, "%lld entries of its %s key belong to no message",
		    (long long)orphans, keys_suffix(KEY_DELIVERY));
	check_types(f, &p->targets[i]);
	if (kind_has(p->targets[i].kind, TRAIT_LEASES))
		check_lease(f, p, i);
	if (kind_has(p->targets[i].kind, TRAIT_GROUP))
		check_group(f, p, i);
}

static void
check_daemon(struct problems *f, const struct daemon *d)
{
	const char *error = fleet_text(d->beat, "log_error");

	if (error[0] != '\0')
		find(f, "warning", NULL, "daemon %s cannot write its log: %s", d->instance, error);
}

static void
check_schedule(const struct schedule_config *s, const char *missed, void *arg)
{
	find(arg, "warning", s->queue, "schedule %s did not run at %s", s->name, missed);
}

int
check_status(int status)
{
	if (status <= CHECK_UNKNOWN)
		return status;
	return status == EX_UNAVAILABLE || status == EX_TEMPFAIL ? CHECK_ERRORS : CHECK_UNKNOWN;
}

void
check_run(struct ctl *c)
{
	struct problems f = { .ctl = c, .json = ctl_given(c, OPT_JSON) };
	struct picture p;
	size_t i;

	if (picture_take(c, &p) == -1)
		return;
	f.list = json_array();
	check_server(&f);
	if (p.fleet.n == 0)
		find(&f, "warning", NULL, "no daemon is running");
	if (p.fleet.ignored > 0)
		find(&f, "warning", NULL, "%zu keys rqd:daemon:... are too large, or no heartbeats",
		    p.fleet.ignored);
	for (i = 0; i < p.fleet.n; i++)
		check_daemon(&f, &p.fleet.daemons[i]);
	for (i = 0; i < p.n; i++)
		check_queue(&f, &p, i);
	schedules_missed(c, check_schedule, &f);
	if (f.json)
		out_json(json_incref(f.list));
	json_decref(f.list);
	picture_done(&p);
}

void
ping_run(struct ctl *c)
{
	char took[UNITS_TEXT_MAX], *version;
	struct redisReply *reply;
	usec_t began;

	if (ctl_connect(c) == -1)
		return;
	began = clock_mono();
	if ((reply = ask(c, "PING")) == NULL)
		return;
	blocking_reply_free(reply);
	began = clock_mono() - began;
	version = ask_info(c, "server", "redis_version");
	ctl_result(c, json_set(json_object(), "server:s version:s seconds:f",
	    blocking_address(c->client), version, (double)began / 1e6),
	    "redis %s%s%s answers in %s",
	    blocking_address(c->client), version[0] != '\0' ? ", version " : "", version,
	    units_about(began, took));
	free(version);
}
