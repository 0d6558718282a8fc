/*
 * rqctl check, ping: the health of Redis, queues and daemons.
 *
 * check prints a line for each problem, which begins with "warning", "error" or "unknown", and
 * exits as a plugin of a monitoring system does.  With --plugin or a threshold, it also prints
 * as one does: see plugin.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "rqctl/ask.h"
#include "rqctl/delivery.h"
#include "rqctl/out.h"
#include "rqctl/picture.h"
#include "rqctl/unnamed.h"
#include "rqctl/plugin.h"
#include "status/advice.h"

/* The figures that thresholds apply to. */
enum measure { MEASURE_LATENCY, MEASURE_WAITING, MEASURE_DEAD, MEASURE_MAX };

static const struct {
	enum opt	 option;
	const char	*name;
	const char	*unit;		/* "s", or "": a count */
} measures[MEASURE_MAX] = {
	[MEASURE_LATENCY] = { OPT_WARN_LATENCY, "latency", "s" },
	[MEASURE_WAITING] = { OPT_WARN_WAITING, "waiting", "" },
	[MEASURE_DEAD] = { OPT_WARN_DEAD, "dead", "" },
};

struct problem {
	const char	*level;
	char		*text;		/* "orders: 7 dead letters"; owned */
	json_t		*json;		/* owned */
};

struct problems {
	struct ctl	*ctl;
	struct problem	*found;		/* n */
	size_t		 n;
	int		 status;	/* PLUGIN_...; of the worst finding */
	struct threshold limits[MEASURE_MAX];
	struct buf	 data;		/* performance data */
};

bool
check_is_plugin(const struct ctl *c)
{
	bool plugin = ctl_given(c, OPT_PLUGIN);

	for (int m = 0; m < MEASURE_MAX; m++)
		plugin = plugin || ctl_given(c, measures[m].option);
	return plugin && !ctl_given(c, OPT_JSON);
}

/* Keeps the worst: an error is worse than a warning, a warning worse than "unknown". */
static void
raise_status(struct problems *f, const char *level)
{
	if (strcmp(level, "error") == 0)
		f->status = PLUGIN_CRITICAL;
	else if (strcmp(level, "warning") == 0 && f->status != PLUGIN_CRITICAL)
		f->status = PLUGIN_WARNING;
	else if (f->status == PLUGIN_OK)
		f->status = PLUGIN_UNKNOWN;
}

/* Adds a problem.  queue is NULL if it concerns Redis or the fleet.  Frees the text. */
#define find(f, level, queue, ...)	add_problem((f), (level), (queue), xasprintf(__VA_ARGS__))
static void
add_problem(struct problems *f, const char *level, const char *queue, char *text)
{
	raise_status(f, level);
	*APPEND(f->found, f->n) = (struct problem){
		.level = level,
		.text = queue == NULL ? xstrdup(text) : xasprintf("%s: %s", queue, text),
		.json = json_set(json_object(), "level:s queue:s text:s", level, queue, text),
	};
	free(text);
}

static void
problems_done(struct problems *f)
{
	while (f->n > 0) {
		free(f->found[--f->n].text);
		json_decref(f->found[f->n].json);
	}
	free(f->found);
	buf_done(&f->data);
}

/* Checks one server.  at begins each text: "", or on a cluster "127.0.0.1:7001: ". */
static void
check_server(struct problems *f, const char *at)
{
	char *full = ask_memory(f->ctl);
	char *policy = ask_config(f->ctl, "maxmemory-policy");
	char *version = ask_info(f->ctl, "server", "redis_version");
	char *role = ask_info(f->ctl, "replication", "role");
	int major = 0, minor = 0;

	if (policy[0] != '\0' && strcmp(policy, "noeviction") != 0)
		find(f, "error", NULL, "%smaxmemory-policy is %s: Redis may evict messages; "
		    "it must be noeviction", at, policy);
	if (role[0] != '\0' && strcmp(role, "master") != 0)
		find(f, "error", NULL, "%sthis Redis is a %s: redis.server must name the "
		    "master", at, role);
	if (sscanf(version, "%d.%d", &major, &minor) == 2 &&
	    (major < 6 || (major == 6 && minor < 2)))
		find(f, "error", NULL, "%sRedis %s is too old: rqd needs 6.2", at, version);
	if (full != NULL)
		find(f, "error", NULL, "%s%s", at, full);
	free(full);
	free(policy);
	free(version);
	free(role);
}

/* Whether a master that is down stops the queues of all others, too. */
static bool
needs_full_coverage(struct ctl *c)
{
	char *value = ask_config(c, "cluster-require-full-coverage");
	bool yes = strcmp(value, "yes") == 0;

	free(value);
	return yes;
}

static void
check_servers(struct problems *f)
{
	bool cluster = ctl_is_cluster(f->ctl), full = false;
	size_t n = ask_masters(f->ctl);
	char *at;

	for (size_t i = 0; i < n; i++) {
		ask_master(f->ctl, i);
		at = cluster ? xasprintf("%s: ", masters_chosen(f->ctl->client)) : xstrdup("");
		check_server(f, at);
		full = cluster && (full || needs_full_coverage(f->ctl));
		free(at);
	}
	if (n > 0)
		ask_master_of(f->ctl, NULL);
	if (full)
		find(f, "warning", NULL, "cluster-require-full-coverage is yes: while one master "
		    "is down, all queues stop; with no, only the queues of its slots do");
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

/* Compares lease and shards among the daemons, and the lease with the configuration. */
static void
check_lease(struct problems *f, const struct picture *p, size_t i)
{
	const struct target *t = &p->targets[i];
	const struct service *s = &p->services[i];
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];
	double lease, want = t->cfg != NULL ? (double)t->cfg->lease / 1e6 : 0;
	const json_t *q;

	if (s->shards_differ)
		find(f, "error", t->name, "daemons disagree about the shards");
	if (s->leases_differ) {
		find(f, "error", t->name, "daemons disagree about the lease: one has %s, another "
		    "%s; rqctl daemons", units_age(s->lease_least, a), units_age(s->lease_most, b));
		return;
	}
	for (size_t k = 0; t->cfg != NULL && k < p->fleet.n; k++) {
		q = fleet_queue(&p->fleet.daemons[k], t->key);
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

	for (size_t k = 0; k < p->fleet.n; k++) {
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

/* -- thresholds ------------------------------------------------------------------- */

/* One value of a queue. */
struct measured {
	double	 value;		/* NAN: not known; < 0: the kind does not have it */
	double	 least;		/* an unknown latency is at least this */
};

static struct measured
measure_latency(const struct picture *p, size_t i)
{
	struct facts f = picture_facts(p, i);
	struct latency l = state_latency(&f);

	if (!kind_waits(f.kind))
		return (struct measured){ -1, 0 };
	if (l.how == LATENCY_KNOWN)
		return (struct measured){ l.seconds, 0 };
	return (struct measured){ NAN, l.seconds };
}

static struct measured
measure(const struct picture *p, size_t i, enum measure m)
{
	const struct depth *d = &p->depths[i];
	int64_t n = m == MEASURE_WAITING ? d->waiting : d->dead;

	if (m == MEASURE_LATENCY)
		return measure_latency(p, i);
	return (struct measured){ n < 0 && d->problem != NULL ? NAN : (double)n, 0 };
}

/* Reports a value that is above a limit. */
static void
find_above(struct problems *f, const char *level, const char *name, enum measure m, double value,
    double limit)
{
	char age[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];

	if (m == MEASURE_LATENCY)
		find(f, level, name, "a message has waited %s, longer than %s",
		    units_age(value, age), units_age(limit, most));
	else if (m == MEASURE_WAITING)
		find(f, level, name, "%.0f message%s, more than %.0f", value,
		    value == 1 ? " waits" : "s wait", limit);
	else
		find(f, level, name, "%.0f dead letter%s, more than %.0f", value,
		    value == 1 ? "" : "s", limit);
}

/*
 * Reports that a latency with a threshold is not known.  Skips queues without a daemon:
 * check_queue() reports those, unless other programs consume them.
 */
static void
find_unknown(struct problems *f, const struct picture *p, size_t i, double least)
{
	char age[UNITS_TEXT_MAX];

	if (p->depths[i].problem != NULL || p->services[i].daemons == 0 ||
	    !ctl_given(f->ctl, OPT_WARN_LATENCY))
		return;
	find(f, "unknown", p->targets[i].name, "how long messages have waited is not known%s%s",
	    least > 0 ? ": at least " : "", least > 0 ? units_age(least, age) : "");
}

static void
check_measure(struct problems *f, const struct picture *p, size_t i, enum measure m)
{
	const struct threshold *t = &f->limits[m];
	const char *name = p->targets[i].name;
	struct measured got = measure(p, i, m);
	double value = isnan(got.value) ? got.least : got.value;
	int status = threshold_judge(t, value);

	if (got.value < 0)
		return;
	plugin_add(&f->data, name, measures[m].name, got.value, measures[m].unit, t);
	if (status == PLUGIN_CRITICAL)
		find_above(f, "error", name, m, value, t->critical);
	else if (status == PLUGIN_WARNING)
		find_above(f, "warning", name, m, value, t->warning);
	else if (isnan(got.value) && m == MEASURE_LATENCY)
		find_unknown(f, p, i, got.least);
}

/* Checks the figures that have a threshold, or all of them if none has one. */
static void
check_measures(struct problems *f, const struct picture *p, size_t i)
{
	bool all = true;

	for (int m = 0; m < MEASURE_MAX; m++)
		all = all && !ctl_given(f->ctl, measures[m].option);
	for (int m = 0; m < MEASURE_MAX; m++)
		if (all || ctl_given(f->ctl, measures[m].option))
			check_measure(f, p, i, (enum measure)m);
}

/* -- queues and daemons ------------------------------------------------------------ */

/* How many members of QDELAYED are due; producers may write milliseconds, too. */
static int64_t
count_delayed_due(struct ctl *c, struct target *t, double now)
{
	int64_t n = 0;

	EACH_KEY(i, t) {
		const char *key = t->keys.name[KEY_DELAYED];

		n += ask_number(ask(c, "ZCOUNT %s -inf %f", key, now));
		n += ask_number(ask(c, "ZCOUNT %s 1e11 %f", key, now * 1e3));
	}
	return n;
}

/* Programs other than rqd consume this queue: they may not deliver QRETRY and QDELAYED. */
static void
check_elsewhere(struct problems *f, struct target *t, const struct depth *d)
{
	int64_t due = d->due > 0 ? d->due : 0;

	if (d->problem == NULL && d->delayed > 0)
		due += count_delayed_due(f->ctl, t,
		    ask_time_of(f->ctl, t->keys.name[KEY_DELAYED]));
	if (due > 0)
		find(f, "warning", t->name, "%lld of its retries and delayed messages are due, and "
		    "no daemon delivers them: it is declared with concurrency = 0",
		    (long long)due);
}

static void
check_queue(struct problems *f, const struct picture *p, size_t i)
{
	const struct depth *d = &p->depths[i];
	const struct service *s = &p->services[i];
	const struct facts facts = picture_facts(p, i);
	const char *name = p->targets[i].name;
	int64_t orphans = d->own - d->in_flight - d->retry;	/* < 0: the kind has none */
	bool work = d->waiting > 0 || d->due > 0;
	char age[UNITS_TEXT_MAX];

	if (d->problem != NULL)
		find(f, "error", name, "%s", d->problem);
	if (s->daemons == 0 && !target_is_elsewhere(&p->targets[i]))
		find(f, work ? "error" : "warning", name, "%s", work ?
		    "no daemon serves it, and messages wait" : "no daemon serves it");
	else if (s->daemons == 0)
		check_elsewhere(f, &p->targets[i], d);
	if (strcmp(s->state, "suspended") == 0)
		find(f, "error", name, "suspended: %s%s%s", s->reason,
		    s->cause[0] != '\0' ? ": " : "", s->cause);
	if (strcmp(s->state, "refused") == 0)
		find(f, "error", name, "Redis refuses the results of its messages: %s", s->reason);
	if (strcmp(s->state, "unsubscribed") == 0)
		find(f, "error", name, "a daemon has lost a subscription; its log says why");
	if (state_is_late(&facts))
		find(f, "warning", name, "late: all handlers are busy, and a message has waited %s",
		    units_age(state_latency(&facts).seconds, age));
	if (d->paused || d->partly)
		find(f, "warning", name, "%spaused: %s", d->partly ? "partly " : "", d->pause);
	if (d->dead > 0 && !ctl_given(f->ctl, OPT_WARN_DEAD))
		find(f, "warning", name, "%lld dead letter%s", (long long)d->dead,
		    d->dead == 1 ? "" : "s");
	check_measures(f, p, i);
	if (d->problem == NULL && orphans > 0)
		EACH_KEY(k, &p->targets[i])	/* minus the fields of daemons */
			orphans -= delivery_daemons(f->ctl,
			    p->targets[i].keys.name[KEY_DELIVERY]);
	if (d->problem == NULL && orphans > 0)
		find(f, "warning", name, "%lld entries of its %s key belong to no message",
		    (long long)orphans, keys_suffix(KEY_DELIVERY));
	EACH_KEY(k, &p->targets[i])
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
	const char *reload = fleet_text(d->beat, "reload_error");

	if (error[0] != '\0')
		find(f, "warning", NULL, ADVICE_LOG, d->instance, error);
	if (reload[0] != '\0')
		find(f, "warning", NULL, ADVICE_RELOAD, d->instance, reload);
}

static void
check_schedule(const struct schedule_config *s, const char *missed, void *arg)
{
	find(arg, "warning", s->queue, "schedule %s did not run at %s", s->name, missed);
}

/* -- the report ------------------------------------------------------------------- */

int
check_status(int status)
{
	if (status <= PLUGIN_UNKNOWN)
		return status;
	return status == EX_UNAVAILABLE || status == EX_TEMPFAIL ? PLUGIN_CRITICAL : PLUGIN_UNKNOWN;
}

void
check_end(struct ctl *c)
{
	struct buf none = BUF_INIT;

	if (c->held != NULL)
		plugin_line(check_status(c->status), c->held, &none);
	buf_done(&none);
	c->hold = false;
}

/* The text of the first line when all is well. */
static char *
totals_text(const struct picture *p)
{
	int64_t waiting = 0, dead = 0;

	for (size_t i = 0; i < p->n; i++) {
		waiting += p->depths[i].waiting > 0 ? p->depths[i].waiting : 0;
		dead += p->depths[i].dead > 0 ? p->depths[i].dead : 0;
	}
	return xasprintf("%zu queue%s, %zu daemon%s, %lld waiting, %lld dead", p->n,
	    p->n == 1 ? "" : "s", p->fleet.n, p->fleet.n == 1 ? "" : "s", (long long)waiting,
	    (long long)dead);
}

/* The first line has the worst problem.  If there are more, a line for each follows. */
static void
print_plugin(struct problems *f, const struct picture *p)
{
	char *text = f->n == 0 ? totals_text(p) : xstrdup(f->found[0].text), *line;
	size_t more = f->n > 0 ? f->n - 1 : 0;

	line = more == 0 ? xstrdup(text) :
	    xasprintf("%s (and %zu more problem%s)", text, more, more == 1 ? "" : "s");
	plugin_line(f->status, line, &f->data);
	free(line);
	free(text);
	for (size_t i = 0; more > 0 && i < f->n; i++) {
		text = plugin_text(f->found[i].text);
		printf("%s: %s\n", f->found[i].level, text);
		free(text);
	}
}

/* The first text is for a key without the braces of a queue's key, see unnamed.h. */
static void
check_one_unnamed(struct problems *f, const struct unnamed *u, size_t i)
{
	const struct depth *d = &u->depths[i];
	const char *key = u->targets[i].name;
	char *text = unnamed_text(d);

	if (u->meant[i] != NULL)
		find(f, "warning", key, "no queue reads it, and it holds messages: %s; push to the "
		    "keys that rqctl queues --keys %s prints", text, u->meant[i]);
	else
		find(f, d->dead == depth_messages(d) ? "warning" : "error", key,
		    "no configuration names it, and it holds messages: %s", text);
	free(text);
}

/* Reports messages that no daemon takes, because no queue has their key. */
static void
check_unnamed(struct problems *f, const struct picture *p)
{
	struct unnamed u;

	if (unnamed_find(f->ctl, p, &u) == 0)
		for (size_t k = 0; k < u.n; k++)
			check_one_unnamed(f, &u, k);
	unnamed_done(&u);
}

static void
check_all(struct problems *f, const struct picture *p)
{
	check_servers(f);
	if (p->fleet.n == 0)
		find(f, "warning", NULL, p->full != NULL ? "no daemon is seen: none can write its "
		    "heartbeat" : "no daemon is running");
	if (p->fleet.ignored > 0)
		find(f, "warning", NULL, "%zu keys rqd:daemon:... are too large, or no heartbeats",
		    p->fleet.ignored);
	if (p->fleet.unread > 0)
		find(f, "warning", NULL, "only the latest %d daemons were looked at: %s has %zu "
		    "more, alive or not", FLEET_MAX, KEYS_DAEMONS, p->fleet.unread);
	for (size_t i = 0; i < p->fleet.n; i++)
		check_daemon(f, &p->fleet.daemons[i]);
	for (size_t i = 0; i < p->n; i++)
		check_queue(f, p, i);
	check_unnamed(f, p);
	schedules_missed(f->ctl, check_schedule, f);
}

/* Sorts by level, the worst first.  Problems of one level keep their order. */
static void
sort_problems(struct problems *f)
{
	static const char *const levels[] = { "error", "warning", "unknown" };
	struct problem *sorted = xcalloc(f->n + 1, sizeof(*sorted));
	size_t n = 0;

	for (size_t l = 0; l < ARRAY_LEN(levels); l++)
		for (size_t i = 0; i < f->n; i++)
			if (strcmp(f->found[i].level, levels[l]) == 0)
				sorted[n++] = f->found[i];
	free(f->found);
	f->found = sorted;
}

static void
print_json(const struct problems *f)
{
	json_t *list = json_array();

	for (size_t i = 0; i < f->n; i++)
		json_array_append(list, f->found[i].json);
	out_json(list);
}

/*
 * Prints what check_all() has found, and sets the exit status.  c->held says why check_all() has
 * ended early: check_end() prints it as the plugin's first line.
 */
static void
report(struct problems *f, const struct picture *p)
{
	struct ctl *c = f->ctl;

	if (c->status == 0 || f->status == PLUGIN_CRITICAL)
		c->status = f->status;
	sort_problems(f);
	if (ctl_given(c, OPT_JSON))
		print_json(f);
	else if (check_is_plugin(c) && c->held == NULL)
		print_plugin(f, p);
	for (size_t i = 0; i < f->n && !ctl_given(c, OPT_JSON) && !check_is_plugin(c); i++)
		out_line(NULL, "%s: %s", f->found[i].level, f->found[i].text);
}

void
check_run(struct ctl *c)
{
	struct problems f = { .ctl = c, .status = PLUGIN_OK };
	struct picture p;

	if (ctl_given(c, OPT_PLUGIN) && ctl_given(c, OPT_JSON)) {
		ctl_error(c, EX_USAGE, "--plugin and --json do not go together");
		return;
	}
	for (int m = 0; m < MEASURE_MAX; m++)
		if (threshold_read(c, measures[m].option, measures[m].unit[0] != '\0',
		    &f.limits[m]) == -1)
			return;
	if (picture_take(c, &p) == -1)
		return;
	check_all(&f, &p);
	report(&f, &p);
	problems_done(&f);
	picture_done(&p);
}

static void
ping(struct ctl *c)
{
	char took[UNITS_TEXT_MAX], *version;
	const char *server = masters_chosen(c->client);
	struct redisReply *reply;
	usec_t began;

	/* On a cluster the first command to a master also connects: do not time it. */
	if (ctl_is_cluster(c))
		blocking_reply_free(ask_any(c, "PING"));
	began = clock_mono();
	if ((reply = ask(c, "PING")) == NULL)
		return;
	blocking_reply_free(reply);
	began = clock_mono() - began;
	version = ask_info(c, "server", "redis_version");
	ctl_result(c, json_set(json_object(), "server:s version:s seconds:f",
	    server, version, (double)began / 1e6),
	    "redis %s%s%s answers in %s",
	    server, version[0] != '\0' ? ", version " : "", version,
	    units_about(began, took));
	free(version);
}

void
ping_run(struct ctl *c)
{
	size_t n = ask_masters(c);

	for (size_t i = 0; i < n && c->status == 0; i++) {
		ask_master(c, i);
		ping(c);
	}
}
