/*
 * rqctl check: the health of Redis, queues and daemons.
 *
 * check prints a line for each problem, which begins with "warning", "error" or "unknown", and
 * exits as a plugin of a monitoring system does.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "policy/shard_keys.h"
#include "rqctl/ask.h"
#include "rqctl/out.h"
#include "rqctl/snapshot.h"
#include "status/judge.h"

#define COUNT_MAX	INT64_C(1000000000000)	/* of a threshold */

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

/* A value is a problem if it is above a limit, not if it is equal.  Seconds, or a count. */
struct threshold {
	double	 warning;	/* NAN: none */
	double	 critical;	/* NAN: none; else at least warning */
};

#define LEVELS	(LEVEL_UNKNOWN + 1)	/* that are problems */

/* The exit status of a plugin without a problem, and with one of each level. */
#define STATUS_OK	0
static const int statuses[] = { 2, 1, 3 };

struct problems {
	struct ctl	*ctl;
	struct words	 found[LEVELS];	/* "orders: 7 dead letters" */
	json_t		*json[LEVELS];	/* the same */
	struct threshold limits[MEASURE_MAX];
};

/* Adds a problem; queue NULL: it concerns Redis or the fleet.  Frees the text. */
#define find(f, level, queue, ...)	add_problem((f), (level), (queue), xasprintf(__VA_ARGS__))
static void
add_problem(struct problems *f, enum level level, const char *queue, char *text)
{
	words_fmt(&f->found[level], "%s%s%s", or_empty(queue),
	    text_if(queue != NULL, ": "), text);
	json_array_append_new(f->json[level], json_set(json_object(), "level:s queue:s text:s",
	    level_name(level), queue, text));
	free(text);
}

/* -- Redis and keys --------------------------------------------------------------- */

/* Where a finding goes: of a queue, or of a server of a cluster. */
struct finder {
	struct problems	*problems;
	const char	*queue;		/* NULL: of a server */
	const char	*at;		/* begins each text */
};

static void
take_finding(const struct judge_finding *f, void *arg)
{
	struct finder *to = arg;

	if (f->level <= LEVEL_UNKNOWN)
		find(to->problems, f->level, to->queue, "%s%s", to->at, f->sentence);
}

/* Whether its latest messages are in no file, and on no replica. */
static bool
is_volatile(struct ctl *c)
{
	char *aof = ask_info(c, "persistence", "aof_enabled");
	char *replicas = ask_info(c, "replication", "connected_slaves");
	bool lost = strcmp(aof, "0") == 0 && strcmp(replicas, "0") == 0;

	free(aof);
	free(replicas);
	return lost;
}

/*
 * Checks one server.  at begins each text: "", or on a cluster "127.0.0.1:7001: ".  clock:
 * compares its clock with that of this host, too.
 */
static void
check_server(struct problems *f, const char *at, const char *refuses, bool clock)
{
	struct finder to = { .problems = f, .at = at };
	char *policy = ask_config(f->ctl, "maxmemory-policy");
	char *version = ask_info(f->ctl, "server", "redis_version");
	char *role = ask_info(f->ctl, "replication", "role");
	char *used = ask_info(f->ctl, "memory", "used_memory");
	char *most = ask_info(f->ctl, "memory", "maxmemory");
	double now = -1;

	if (clock)
		now = ask_time(f->ctl);
	if (now > 0)
		judge_clock("this host", clock_seconds(clock_wall()) - now, take_finding, &to);
	judge_server(&(struct server_facts){
		.used = strtoull(used, NULL, 10), .max = strtoull(most, NULL, 10),
		.policy = policy, .role = role, .version = version,
		.refuses = or_empty(refuses),
	}, take_finding, &to);
	free(policy);
	free(version);
	free(role);
	free(used);
	free(most);
}

static void
check_servers(struct problems *f, const struct snapshot *p, bool clock)
{
	const struct server_facts no_aof = { .policy = "", .role = "", .version = "",
	    .refuses = "", .no_aof = true };
	struct finder all = { .problems = f, .at = "" };
	bool cluster = ctl_is_cluster(f->ctl), full = false, lost = false;
	size_t n = ask_masters(f->ctl);
	char *at, *value;

	for (size_t i = 0; i < n; i++) {
		ask_master(f->ctl, i);
		if (cluster) {
			at = xasprintf("%s: ", sync_chosen(f->ctl->client));
			check_server(f, at, NULL, clock);
			free(at);
		} else {
			check_server(f, "", p->refuses, clock);
		}
		lost = lost || is_volatile(f->ctl);
		value = NULL;
		if (cluster && !full)
			value = ask_config(f->ctl,
			    "cluster-require-full-coverage");
		full |= value != NULL && strcmp(value, "yes") == 0;
		free(value);
	}
	if (n > 0)
		ask_master_of(f->ctl, NULL);
	if (lost)	/* once is enough */
		judge_server(&no_aof, take_finding, &all);
	if (full)
		find(f, LEVEL_WARNING, NULL, "cluster-require-full-coverage is yes: while one "
		    "master is down, all queues stop; with no, only the queues of its slots do");
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
		{ KEY_RATE, "string" }, { KEY_HELD, "zset" }, { KEY_GROUP, "hash" },
		{ KEY_ORDER, "zset" },
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
			find(f, LEVEL_ERROR, t->name, "the key %s is a %s, not a %s",
			    t->keys.name[want[i].key], type, want[i].type);
		reply_free(reply);
	}
}

/* Compares settings that must be the same among the daemons, and with the configuration. */
static void
check_settings(struct problems *f, const struct snapshot *p, size_t i)
{
	const struct target *t = &p->targets[i];
	const struct service *s = &p->services[i];
	double lease, want = 0;
	const char *group, *instance, *own = keys_group(&t->keys);
	bool leases = !s->leases_differ, groups = kind_has(t->kind, TRAIT_CONSUMER_GROUP);
	const json_t *q;

	if (t->cfg != NULL)
		want = (double)t->cfg->lease / 1e6;
	for (size_t k = 0; k < p->fleet.n; k++) {
		q = fleet_queue(&p->fleet.daemons[k], t->key);
		instance = p->fleet.daemons[k].instance;
		lease = fleet_number(q, "lease", want);
		if (leases && t->cfg != NULL && lease != want) {
			find(f, LEVEL_WARNING, t->name, "%s runs with a lease of %gs, this "
			    "configuration says %gs", instance, lease, want);
			leases = false;		/* one is enough */
		}
		if (fleet_text(q, "no_limits")[0] != '\0')
			find(f, LEVEL_WARNING, t->name, "on %s, memory_max or pids_max has no "
			    "effect: %s", instance, fleet_text(q, "no_limits"));
		/* It would take this group's retries for its own. */
		group = fleet_text(q, "consumer_group");
		if (groups && group[0] != '\0' && strcmp(group, own) != 0) {
			find(f, LEVEL_ERROR, t->name, "%s reads it for the consumer group %s, not "
			    "for %s: the retries of both are mixed", instance, group, own);
			groups = false;
		}
	}
}

/* -- thresholds ------------------------------------------------------------------- */

/* Reads one limit.  Returns -1 if the text is not a number or a duration in range. */
static int
read_limit(const char *text, bool durations, double *ret)
{
	usec_t duration = 0;
	int64_t count = 0;

	if (durations) {
		if (units_parse_duration(text, &duration) == -1)
			return -1;
		*ret = (double)duration / 1e6;
		return 0;
	}
	if (units_parse_int(text, &count) == -1 || count < 0 ||
	    count > COUNT_MAX)
		return -1;
	*ret = (double)count;
	return 0;
}

/* Reads WARN, WARN:CRIT or :CRIT.  Returns 0, or -1 after an error was reported. */
static int
read_threshold(struct ctl *c, enum measure m, struct threshold *ret)
{
	enum opt o = measures[m].option;
	const char *name = opt_table[o].name, *text = ctl_value(c, o);
	bool durations = measures[m].unit[0] != '\0';
	const char *what = "counts from 0 to 1000000000000";
	const char *one = "10", *both = "10:100";	/* examples */
	size_t n = strcspn(text, ":");
	char *first;
	int rc = 0;

	*ret = (struct threshold){ NAN, NAN };
	if (!ctl_given(c, o))
		return 0;
	if (durations) {
		what = "durations";
		one = "5m";
		both = "5m:30m";
	}
	first = xstrndup(text, n);
	if (n > 0 || text[n] == '\0')
		rc = read_limit(first, durations, &ret->warning);
	if (rc == 0 && text[n] == ':')
		rc = read_limit(text + n + 1, durations, &ret->critical);
	free(first);
	if (rc == -1)
		return ctl_error(c, EX_USAGE, "--%s: \"%s\" is not WARN, WARN:CRIT or :CRIT with "
		    "%s: write %s or %s", name, text, what, one, both);
	if (ret->critical < ret->warning)
		return ctl_error(c, EX_USAGE, "--%s: \"%s\": CRIT must not be below WARN: "
		    "write %s", name, text, both);
	return 0;
}

/* The figure; NAN: not known; < 0: the kind does not have it. */
static double
measured(const struct snapshot *p, size_t i, enum measure m)
{
	const struct depth *d = &p->depths[i];
	struct facts facts = snapshot_facts(p, i);
	double latency = facts_latency(&facts);
	int64_t n = d->dead;

	if (m == MEASURE_LATENCY) {
		if (!kind_waits(facts.kind))
			return -1;
		if (latency >= 0)
			return latency;
		return NAN;
	}
	if (m == MEASURE_WAITING)
		n = d->waiting;
	if (n < 0 && d->problem != NULL)
		return NAN;
	return (double)n;
}

static void
check_measure(struct problems *f, const struct snapshot *p, size_t i, enum measure m)
{
	const struct threshold *t = &f->limits[m];
	const struct depth *d = &p->depths[i];
	const char *name = p->targets[i].name;
	const char *wait = "s wait";
	char age[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];
	double value = measured(p, i, m), limit = t->warning;
	enum level level = LEVEL_WARNING;

	if (value < 0)
		return;
	if (value > t->critical) {
		level = LEVEL_ERROR;
		limit = t->critical;
	}
	if (value == 1)
		wait = " waits";
	if (value > limit && m == MEASURE_LATENCY)
		find(f, level, name, "a message has waited %s, longer than %s",
		    units_age(value, age), units_age(limit, most));
	else if (value > limit && m == MEASURE_WAITING)
		find(f, level, name, "%.0f message%s, more than %.0f", value,
		    wait, limit);
	else if (value > limit)
		find(f, level, name, "%.0f dead letter%s, more than %.0f", value,
		    text_if(value != 1, "s"), limit);
	/* A queue without a daemon is a problem by itself, unless other programs consume it. */
	else if (isnan(value) && m == MEASURE_LATENCY && d->problem == NULL &&
	    p->services[i].daemons > 0 && ctl_given(f->ctl, OPT_WARN_LATENCY))
		find(f, LEVEL_UNKNOWN, name, "how long messages have waited is not known");
}

/* -- queues and daemons ------------------------------------------------------------ */

/* How many of QDELAYED are due; other programs that consume the queue may not deliver them. */
static int64_t
delayed_due(struct problems *f, struct target *t, const struct depth *d)
{
	int64_t due = 0;
	double now;

	if (d->problem != NULL || d->delayed <= 0)
		return 0;
	now = ask_time_of(f->ctl, t->keys.name[KEY_DELAYED]);
	EACH_KEY(i, t) {
		const char *key = t->keys.name[KEY_DELAYED];

		due += ask_number(ask(f->ctl, "ZCOUNT %s -inf %f", key, now));
		/* Producers may write milliseconds, too. */
		due += ask_number(ask(f->ctl, "ZCOUNT %s 1e11 %f", key, now * 1e3));
	}
	return due;
}

static void
check_queue(struct problems *f, const struct snapshot *p, size_t i)
{
	const struct depth *d = &p->depths[i];
	const char *name = p->targets[i].name;
	struct facts facts = snapshot_facts(p, i);
	struct judge_context context = { .rqctl = "rqctl", .queue = name, .details = true,
	    .dead_is_fine = ctl_given(f->ctl, OPT_WARN_DEAD) };
	struct finder to = { .problems = f, .queue = name, .at = "" };
	int64_t orphans = d->own - d->in_flight - d->retry -
	    int64_max(d->held, 0);	/* < 0: the kind has none */

	if (facts.elsewhere && facts.service->daemons == 0)
		facts.delayed_due = delayed_due(f, &p->targets[i], d);
	judge(&facts, &context, take_finding, &to);
	for (int m = 0; m < MEASURE_MAX; m++)
		if (ctl_given(f->ctl, measures[m].option))
			check_measure(f, p, i, (enum measure)m);
	if (d->problem == NULL && orphans > 0)
		find(f, LEVEL_WARNING, name, "%lld entries of its %s key belong to no message",
		    (long long)orphans, keys_suffix(KEY_DELIVERY));
	EACH_KEY(k, &p->targets[i])
		check_types(f, &p->targets[i]);
	if (kind_has(p->targets[i].kind, TRAIT_LEASES))
		check_settings(f, p, i);
}

static void
check_schedule(const struct schedule_config *s, const char *missed, void *arg)
{
	find(arg, LEVEL_WARNING, s->queue, "schedule %s did not run at %s", s->name, missed);
}

/* -- the report ------------------------------------------------------------------- */

/* The exit status of check, 0 to 3, for one of its own or of <sysexits.h>. */
int
check_status(int status)
{
	if (status <= statuses[LEVEL_UNKNOWN])
		return status;
	if (status == EX_UNAVAILABLE || status == EX_TEMPFAIL)
		return statuses[LEVEL_ERROR];
	return statuses[LEVEL_UNKNOWN];
}

/* Prints what was found, and sets the exit status. */
static void
report(struct problems *f)
{
	struct ctl *c = f->ctl;
	bool json = ctl_given(c, OPT_JSON);
	json_t *list = json_array();
	int n = 0, status = STATUS_OK;

	for (int l = 0; l < LEVELS; l++) {
		if (n == 0 && f->found[l].n > 0)
			status = statuses[l];
		n += f->found[l].n;
		json_array_extend(list, f->json[l]);
	}
	if (c->status == 0 || status == statuses[LEVEL_ERROR])
		c->status = status;
	for (int l = 0; l < LEVELS && !json; l++)
		for (int i = 0; i < f->found[l].n; i++)
			out_line(NULL, "%s: %s", level_name((enum level)l),
			    f->found[l].v[i]);
	if (json)
		out_json(json_incref(list), false);
	else if (n == 0 && c->status == 0 && out_width() > 0)
		puts("no problems");
	json_decref(list);
}

/* -- keys that nobody consumes ----------------------------------------------------- */

#define STRAYS_MAX	1000	/* of the index KEYS_QUEUES, the latest */

struct strays {
	json_t		*known;		/* by key: the name by which verbs know the queue */
	struct target	*targets;	/* n; their names are their keys */
	size_t		 n;
};

static void
add_known(struct strays *s, const char *key, int64_t shards, const char *name)
{
	char **keys = shard_keys_all(key, shards);

	json_object_set_new_nocheck(s->known, key, json_string_nocheck(name));
	for (char **k = keys; k != NULL && *k != NULL; k++)
		json_object_set_new_nocheck(s->known, *k, json_string_nocheck(name));
	util_free_list(keys);
}

/* Adds a key that is not known.  told: its member in the index, or NULL. */
static void
add_stray(struct strays *s, const char *key, const json_t *told)
{
	if (key[0] == '\0' || s->n >= STRAYS_MAX || json_object_get(s->known, key) != NULL)
		return;
	json_object_set_new_nocheck(s->known, key, json_null());	/* once is enough */
	target_told(APPEND(s->targets, s->n), key, told);
}

/* A producer may have left the braces of a list's key out: orders, not {orders}. */
static void
add_without_braces(struct strays *s, enum kind kind, const char *key)
{
	size_t len = strlen(key);
	char *inner;

	if (kind_source(kind) != SOURCE_LIST || len <= 2 || key[0] != '{' ||
	    strcspn(key + 1, "{}") != len - 2 || key[len - 1] != '}')
		return;
	inner = xstrndup(key + 1, len - 2);
	add_stray(s, inner, NULL);
	free(inner);
}

/*
 * Reports keys with messages that no daemon takes: queues and shards of the index that neither
 * the configuration nor a living daemon has any more, and lists whose key lacks the braces.  Not
 * if a heartbeat or a file of the configuration cannot be read: it may name them.
 */
static void
check_strays(struct problems *f, const struct snapshot *p)
{
	struct ctl *c = f->ctl;
	struct strays s = { .n = 0 };
	struct redisReply *index;
	struct queue_config *const *q = c->config->queues;
	struct depth *depths;
	json_t *member, *queue;
	const char *key, *name;
	char **keys, *braced;
	int64_t n, dead;
	enum level level;
	bool known;

	if (c->args.nwords > 0 || p->fleet.ignored + p->fleet.unread > 0)
		return;
	s.known = json_object();
	for (size_t i = 0; i < p->fleet.n; i++)
		json_object_foreach(p->fleet.daemons[i].by_key, key, queue)
			add_known(&s, key, fleet_count(queue, "shards"), key);
	for (size_t i = 0; i < c->config->nqueues; i++)
		add_known(&s, q[i]->key, (int64_t)config_key_count(q[i]) - 1, q[i]->name);

	/* Keys of the index; of a key that is known, the shards that it had. */
	index = ask_any(c, "ZREVRANGE %s 0 %lld", KEYS_QUEUES, STRAYS_MAX - 1LL);
	for (size_t i = 0; i < reply_len(index); i++) {
		member = fleet_member(reply_at(index, i));
		key = fleet_text(member, "key");
		keys = shard_keys_all(key, fleet_count(member, "shards"));
		known = json_object_get(s.known, key) != NULL;
		add_stray(&s, key, member);
		for (char **k = keys; known && k != NULL && *k != NULL; k++)
			add_stray(&s, *k, NULL);
		util_free_list(keys);
		add_without_braces(&s, fleet_kind(member), key);
		json_decref(member);
	}
	reply_free(index);
	for (size_t i = 0; i < c->config->nqueues; i++)
		add_without_braces(&s, q[i]->kind, q[i]->key);

	depths = xcalloc(s.n + 1, sizeof(*depths));
	known = s.n > 0 && snapshot_depths(c, s.targets, s.n, depths) == 0;
	for (size_t i = 0; known && i < s.n; i++) {
		n = depth_messages(&depths[i]);
		dead = int64_max(depths[i].dead, 0);
		level = LEVEL_ERROR;
		if (dead == n)
			level = LEVEL_WARNING;
		braced = xasprintf("{%s}", s.targets[i].name);
		name = fleet_text(s.known, braced);
		if (n > 0 && name[0] != '\0')
			find(f, LEVEL_WARNING, s.targets[i].name, "no queue reads it, and it holds "
			    "messages: %lld; push to the keys that rqctl queues --keys %s prints",
			    (long long)n, name);
		else if (n > 0)
			find(f, level, s.targets[i].name,
			    "no configuration names it, and it holds messages: %lld, of these "
			    "%lld dead", (long long)n, (long long)dead);
		free(braced);
		depth_done(&depths[i]);
	}
	free(depths);
	targets_free(s.targets, s.n);
	json_decref(s.known);
}

/* Daemons whose clock is wrong: times in their log are, too.  Returns whether there are any. */
static bool
check_clocks(struct problems *f, const struct snapshot *p)
{
	struct finder to = { .problems = f, .at = "" };
	const struct daemon *d;
	bool told = false;

	for (size_t k = 0; k < p->fleet.n; k++) {
		d = &p->fleet.daemons[k];
		told |= judge_clock(d->instance, fleet_number(d->beat, "clock", 0),
		    take_finding, &to);
	}
	return told;
}

static void
check_all(struct problems *f, const struct snapshot *p)
{
	bool told = check_clocks(f, p);

	check_servers(f, p, !told);
	if (p->fleet.n == 0 && (p->full != NULL || p->refuses != NULL))
		find(f, LEVEL_WARNING, NULL,
		    "no daemon is seen: none can write its heartbeat");
	else if (p->fleet.n == 0)
		find(f, LEVEL_WARNING, NULL, "no daemon is running");
	if (p->fleet.ignored > 0)
		find(f, LEVEL_WARNING, NULL, "%zu keys rqd:daemon:... are too large, or no "
		    "heartbeats", p->fleet.ignored);
	if (p->fleet.unread > 0)
		find(f, LEVEL_WARNING, NULL, "only the latest %d daemons were looked at: %s has "
		    "%zu more, alive or not", FLEET_MAX, KEYS_DAEMONS, p->fleet.unread);
	for (int k = 0; k < p->notes.n; k++)
		find(f, LEVEL_WARNING, NULL, "%s", p->notes.v[k]);
	for (size_t i = 0; i < p->n; i++)
		check_queue(f, p, i);
	check_strays(f, p);
	schedules_missed(f->ctl, check_schedule, f);
}

static void
check_run(struct ctl *c)
{
	struct problems f = { .ctl = c };
	struct snapshot p;

	for (int m = 0; m < MEASURE_MAX; m++) {
		if (read_threshold(c, (enum measure)m, &f.limits[m]) == -1)
			return;
	}
	if (snapshot_take(c, &p) == -1)
		return;
	for (int l = 0; l < LEVELS; l++)
		f.json[l] = json_array();
	check_all(&f, &p);
	report(&f);
	for (int l = 0; l < LEVELS; l++) {
		words_done(&f.found[l]);
		json_decref(f.json[l]);
	}
	snapshot_done(&p);
}

const struct verb verb_check = {
	.name = "check",
	.args = "[QUEUE...]",
	.help = "find problems in Redis, queues and daemons",
	.more = "Exits 0 if there are none, 1 with warnings, 2 with errors or "
	    "if Redis cannot be reached, 3 if it cannot tell. A threshold "
	    "is for each queue.",
	.options = OPT(WARN_LATENCY) | OPT(WARN_WAITING) | OPT(WARN_DEAD),
	.max_args = -1,
	.flags = VERB_JSON | VERB_QUEUES,
	.run = check_run,
};
