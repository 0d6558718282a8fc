/*
 * Makes the heartbeat's JSON, sends it, and notes whether Redis takes it; see heartbeat.h.
 * Readers treat every member as optional, so
 * members may be added, here and in the tables of fleet.c.
 */
#include "service/heartbeat.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/utf8.h"
#include "base/util.h"
#include "handler/cgroup.h"
#include "queue/keys.h"
#include "redis/reply.h"
#include "status/fleet.h"
#include "status/json_bytes.h"

#include <config.h>

#define IN_HAND_MAX	64	/* deliveries listed per queue ... */
#define IN_HAND_ALL	2048	/* ... and of all queues, about */
#define ERRORS_ALL	256	/* last errors listed, of all queues, about */
#define QUEUES_EVERY	(10 * MINUTE)	/* the index of queues is written */
#define QUEUES_KEEP	10000	/* queues in it, the latest */
#define USUAL_RUNS	20	/* show how long a run usually takes */
#define COMMAND_MAX	200	/* bytes of a command that are shown */
#define CLOCK_TOLD	1	/* seconds that the clocks differ, at least */
#define INDEX_KEEP	3600	/* seconds that a dead daemon stays in the index */

/* NAME.RANDOM, of characters that keys and tokens can hold. */
char *
heartbeat_instance(const char *name)
{
	char unique[11];
	char *instance, *p;

	random_name(unique, sizeof(unique));
	instance = xasprintf("%.64s.%s", name, unique);
	for (p = instance; *p != '\0'; p++) {
		if (!isalnum((unsigned char)*p) && *p != '.' && *p != '-')
			*p = '_';
	}
	return instance;
}

struct in_flight {
	json_t	*list;
	size_t	 most;
};

/*
 * Adds a delivery.  msg is NULL for a batch that goes on without messages: its entry
 * has no id.
 */
static void
in_flight_add(const struct message *msg, pid_t pid, const char *progress, usec_t age, void *arg)
{
	struct in_flight *in_flight = arg;
	json_t *o;

	if (json_array_size(in_flight->list) >= in_flight->most)
		return;
	o = json_set(json_object(), "pid:i age:f", (int64_t)pid, (double)(age / MSEC) / 1e3);
	if (msg != NULL)
		json_set(o, "attempt:i id:s tag:s", (int64_t)msg->attempts + 1, msg->id, msg->tag);
	if (progress != NULL)
		json_set(o, "progress:s", progress);
	json_array_append_new(in_flight->list, o);
}

/* A state other than the consumer's own, why, and since when (mono). */
static void
set_state(json_t *q, enum queue_state state, const char *why, usec_t since)
{
	double began = clock_seconds(clock_wall() - (clock_mono() - since));

	json_set(q, "state:s reason:s since:f", fleet_state_name(state), why, began);
}

/*
 * Adds the keys of the queue in Redis, besides its own, and all that rqctl must know of the
 * queue if no configuration is at hand.
 */
static void
add_keys(json_t *q, const struct queue_config *cfg)
{
	if (config_pops_left(cfg))
		json_set(q, "pop:s", "left");
	if (strcmp(cfg->id, "id") != 0)
		json_set(q, "id:s", cfg->id);
	if (cfg->dead_key != NULL)
		json_set(q, "dead_key:s dead_tell:s", cfg->dead_key, cfg->dead_tell);
	if (kind_has(cfg->kind, TRAIT_CONSUMER_GROUP))
		json_set(q, "consumer_group:s", cfg->consumer_group);
	if (cfg->delayed_key[0] != '\0')
		json_set(q, "delayed_key:s", cfg->delayed_key);
	if (config_is_sharded(cfg))
		json_set(q, "shards:i", (int64_t)config_key_count(cfg) - 1);
	if (cfg->group_by[0] != '\0')
		json_set(q, "group_by:s group_concurrency:i", cfg->group_by,
		    (int64_t)cfg->group_concurrency);
	if (cfg->memory_max > 0 && cgroup_lacks(CGROUP_MEMORY) != NULL)
		json_set(q, "no_limits:s", cgroup_lacks(CGROUP_MEMORY));
	else if (cfg->pids_max > 0 && cgroup_lacks(CGROUP_PIDS) != NULL)
		json_set(q, "no_limits:s", cgroup_lacks(CGROUP_PIDS));
}

/* Adds settings that readers compare between daemons. */
static void
add_settings(json_t *q, const struct queue_config *cfg)
{
	char text[COMMAND_MAX + 1];
	struct buf b = BUF_INIT;

	for (char *const *word = cfg->command; word != NULL && *word != NULL; word++)
		buf_printf(&b, "%s%s", b.len > 0 ? " " : "", *word);
	utf8_copy_visible(text, COMMAND_MAX, buf_str(&b), b.len);
	buf_done(&b);
	json_set(q, "command:s", text);
	json_set(q, "time_limit:f", clock_seconds(cfg->time_limit));
	if (kind_has(cfg->kind, TRAIT_LEASES))
		json_set(q, "max_attempts:i", (int64_t)cfg->max_attempts);
}

/* The last errors of messages that wait for another try. */
static json_t *
errors_json(const struct consumer *c, size_t most)
{
	const struct last_errors *errors = consumer_last_errors(c);
	const struct last_error *e;
	json_t *list = json_array();

	for (size_t i = 0; i < most && (e = last_errors_at(errors, i)) != NULL; i++)
		json_array_append_new(list, json_set(json_object(),
		    "tag:s attempts:i error:s", e->tag, (int64_t)e->attempts, e->text));
	return list;
}

static json_t *
queue_json(const struct consumer *c, size_t most, size_t errors)
{
	const struct queue_config *cfg = consumer_config(c);
	enum consumer_block block = consumer_block(c);
	const struct suspension *why = consumer_suspension(c);
	const struct stats *stats = consumer_stats(c);
	struct in_flight in_flight = { json_array(), most };
	int64_t taken;
	double waited = consumer_waited(c, &taken), waits;
	json_t *q = json_set(json_object(), "key:s kind:s running:i concurrency:i", cfg->key,
	    kind_name(cfg->kind), (int64_t)consumer_in_flight(c), (int64_t)config_most(cfg));

	if (kind_has(cfg->kind, TRAIT_LEASES))
		json_set(q, "lease:f", clock_seconds(cfg->lease));
	json_set(q, "config:s state:s blocked:s", cfg->hash, consumer_state_name(c),
	    consumer_block_name(block));
	add_keys(q, cfg);
	add_settings(q, cfg);
	if (block == BLOCK_SUSPENDED) {
		set_state(q, QUEUE_SUSPENDED, reason_name(why->reason), why->since);
		if (errors > 0 && why->cause[0] != '\0')
			json_set(q, "cause:s", why->cause);
		if (why->reason == REASON_FAILING && why->nrow > 0)
			json_set(q, "failed:i", (int64_t)why->nrow);
		waits = suspension_waits(why);
		if (waits >= 0)
			json_set(q, "waits:f", (double)(int64_t)(waits * 1e3) / 1e3);
	} else if (block == BLOCK_REFUSED)
		set_state(q, QUEUE_REFUSED, why->refused, why->refused_since);
	else if (block == BLOCK_PAUSED)
		json_set(q, "state:s", fleet_state_name(QUEUE_PAUSED));
	else if (block == BLOCK_REDIS)	/* up: other nodes of the cluster take the heartbeat */
		json_set(q, "state:s", fleet_state_name(kind_has(cfg->kind, TRAIT_SUBSCRIBES) ||
		    kind_has(cfg->kind, TRAIT_KEY_EVENTS) ? QUEUE_UNSUBSCRIBED :
		    QUEUE_NO_REDIS));
	if (waited >= 0)	/* by `taken` readers see whether the same message still waits */
		json_set(q, "latency:f taken:i", (double)(int64_t)(waited * 1e3) / 1e3, taken);
	if (stats->duration.count >= USUAL_RUNS)
		json_set(q, "usual:f", clock_seconds(stats->usual));
	if (stats->cpu > 0)
		json_set(q, "cpu:f maxrss:i", clock_seconds(stats->cpu), stats_maxrss(stats));
	if (errors > 0)
		json_set(q, "errors:j", errors_json(c, errors));
	consumer_each(c, in_flight_add, &in_flight);
	return json_set(q, "in_hand:j", in_flight.list);
}

/*
 * now: Redis' time, > 0 if it is known; most: deliveries listed per queue; errors: last errors
 * listed per queue; 0: without the causes of suspensions, too
 */
static char *
heartbeat_text(const struct heartbeat *h, const struct config *config,
    double now, struct consumer *const *consumers, size_t n, size_t most,
    size_t errors)
{
	double ahead = clock_seconds(clock_wall()) - now;
	json_t *queues = json_object();
	json_t *root;
	char *text;

	for (size_t i = 0; i < n; i++)
		json_object_set_new(queues, consumer_config(consumers[i])->name,
		    queue_json(consumers[i], most, errors));
	root = json_set(json_object(), "instance:s name:s version:s pid:i started:f config:s "
	    "max_handlers:i queues:j", h->instance, config->name, PACKAGE_VERSION,
	    (int64_t)getpid(), clock_seconds(h->started), config->hash,
	    (int64_t)config->max_handlers, queues);
	if (now > 0 && fabs(ahead) >= CLOCK_TOLD)
		json_set(root, "clock:f", (double)(int64_t)(ahead * 1e3) / 1e3);
	if (log_failure() != NULL)
		json_set(root, "log_error:s", log_failure());
	if (h->reload_error[0] != '\0')
		json_set(root, "reload_error:s", h->reload_error);
	text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return text;
}

static void
saw_fleet(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct heartbeat *h = arg;

	if (answer == CONN_REPLY)
		h->fleet = (unsigned)reply_int(reply, 0);
}

/* Takes the answer; ignores errors while a cluster moves the key, or a server loads. */
static void
answered(struct heartbeat *h, enum beat_write write, const struct redisReply *reply)
{
	const char *before = heartbeat_refused(h), *after;
	enum reply_error error = reply_error(reply);
	bool was = before != NULL;

	if (reply_is_redirection(reply) || error == REPLY_TRANSIENT)
		return;
	h->refused[write][0] = '\0';
	if (error != REPLY_OK)
		reply_cause(reply, h->refused[write], sizeof(h->refused[write]));
	after = heartbeat_refused(h);
	if (!was && after != NULL)
		log_event(LOG_LV_WARN, "redis_warning", NULL, LF_STR("error", after),
		    LF_STR("hint", reply_hint(after)),
		    LF_STR("warning", "Redis refuses heartbeats: rqctl and other daemons do not "
		    "see this one"));
	else if (was && after == NULL)
		log_event(LOG_LV_INFO, "redis_warning", NULL,
		    LF_STR("warning", "Redis takes heartbeats again"));
}

static void
beat_answered(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	if (answer == CONN_REPLY)
		answered(arg, BEAT_KEY, reply);
}

static void
index_answered(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	if (answer == CONN_REPLY)
		answered(arg, BEAT_INDEX, reply);
}

const char *
heartbeat_refused(const struct heartbeat *h)
{
	for (int i = 0; i < BEAT_WRITES; i++)
		if (h->refused[i][0] != '\0')
			return h->refused[i];
	return NULL;
}

/*
 * Writes the queues of this daemon to an index, so that rqctl finds queues that no
 * configuration names any more.  It does so now and then, after a change of the
 * configuration, and after Redis may have lost it.
 */
static void
send_queues(struct heartbeat *h, struct nodes *nodes, const struct config *config,
    struct consumer *const *consumers, size_t n, const char *now)
{
	struct conn *conn = nodes_conn(nodes, KEYS_QUEUES);
	const struct queue_config *cfg;
	struct words w = { 0 };
	char *member, last[16];
	json_t *o;

	if (h->indexed != 0 && clock_mono() - h->indexed < QUEUES_EVERY &&
	    h->generation == conn_generation(conn) && strcmp(h->hash, config->hash) == 0)
		return;
	words_add(&w, "ZADD");
	words_add(&w, KEYS_QUEUES);
	for (size_t i = 0; i < n; i++) {
		cfg = consumer_config(consumers[i]);
		if (!kind_waits(cfg->kind))
			continue;
		o = json_set(json_object(), "key:s kind:s", cfg->key, kind_name(cfg->kind));
		add_keys(o, cfg);
		member = json_dumps(o, JSON_COMPACT);
		json_decref(o);
		if (member == NULL)
			continue;
		words_add(&w, now);
		words_fmt(&w, "%s", member);	/* a copy */
		free(member);
	}
	h->indexed = clock_mono();
	h->generation = conn_generation(conn);
	snprintf(h->hash, sizeof(h->hash), "%s", config->hash);
	snprintf(last, sizeof(last), "%d", -QUEUES_KEEP - 1);
	if (w.n > 2) {
		conn_command(conn, NULL, NULL, &w);
		conn_words(conn, NULL, NULL, "ZREMRANGEBYRANK", KEYS_QUEUES, "0", last, NULL);
	}
	words_done(&w);
}

void
heartbeat_write(const struct heartbeat *h, const struct config *config, double now,
    struct consumer *const *consumers, size_t n, struct buf *b)
{
	size_t most = n * IN_HAND_MAX > IN_HAND_ALL ? IN_HAND_ALL / n : IN_HAND_MAX;
	size_t errors = ERRORS_ALL / (n + 1) + 1;	/* a queue has LAST_ERRORS at most */
	char *text = heartbeat_text(h, config, now, consumers, n, most, errors);

	if (text != NULL && fleet_weight(text, strlen(text)) > BEAT_WEIGHT_MAX) {
		free(text);	/* readers would not accept it */
		text = heartbeat_text(h, config, now, consumers, n, 0, 0);
	}
	if (text != NULL)
		buf_puts(b, text);
	free(text);
}

void
heartbeat_send(struct heartbeat *h, struct nodes *nodes, const struct config *config,
    struct consumer *const *consumers, size_t n)
{
	char *key = xasprintf("%s%s", KEYS_DAEMON_PREFIX, h->instance);
	struct buf b = BUF_INIT;
	char *text;
	struct conn *index = nodes_conn(nodes, KEYS_DAEMONS);
	double now = conn_redis_time(index);
	double alive = now - clock_seconds(3 * HEARTBEAT_EVERY);
	char score[32], ttl[16], old[32], ahead[32], since[32];

	log_flush();	/* a full disk that has room again: an idle daemon writes nothing else */
	heartbeat_write(h, config, now, consumers, n, &b);
	text = buf_str(&b);
	if (b.len > 0 && now > 0) {
		snprintf(score, sizeof(score), "%.3f", now);
		snprintf(old, sizeof(old), "%.3f", now - INDEX_KEEP);
		snprintf(ahead, sizeof(ahead), "%.3f", now + INDEX_KEEP);
		snprintf(ttl, sizeof(ttl), "%d", (int)(3 * HEARTBEAT_EVERY / SEC));
		conn_words(nodes_conn(nodes, key), beat_answered, h, "SET", key, text, "EX", ttl,
		    NULL);
		conn_words(index, index_answered, h, "ZADD", KEYS_DAEMONS, score, h->instance,
		    NULL);
		conn_words(index, NULL, NULL, "ZREMRANGEBYSCORE", KEYS_DAEMONS, "-inf", old,
		    NULL);
		/* Redis' clock was ahead, and the daemon that wrote it may be dead. */
		conn_words(index, NULL, NULL, "ZREMRANGEBYSCORE", KEYS_DAEMONS, ahead, "+inf",
		    NULL);
		snprintf(since, sizeof(since), "%.3f", alive);
		conn_words(index, saw_fleet, h, "ZCOUNT", KEYS_DAEMONS, since, "+inf", NULL);
		send_queues(h, nodes, config, consumers, n, score);
	}
	buf_done(&b);
	free(key);
}

void
heartbeat_end(const struct heartbeat *h, struct nodes *nodes)
{
	char *key = xasprintf("%s%s", KEYS_DAEMON_PREFIX, h->instance);

	conn_words(nodes_conn(nodes, key), NULL, NULL, "DEL", key, NULL);
	conn_words(nodes_conn(nodes, KEYS_DAEMONS), NULL, NULL, "ZREM", KEYS_DAEMONS, h->instance,
	    NULL);
	free(key);
}
