/*
 * The daemon's life; see daemon.h.
 *
 *	start --> RUNNING <--SIGUSR2, rqctl, reload--> QUIET
 *	             | SIGTERM and so on, --until-empty  |
 *	             v                                   |
 *	          FINISHING <----------------------------'
 *	             |       consumers take nothing new; handlers finish, for drain_timeout
 *	             | drain_timeout has passed, or a second SIGTERM
 *	             v
 *	          ENDING     handlers get SIGTERM, after kill_grace SIGKILL; then results reach
 *	             |       Redis, within 1.5 s (GIVE_UP); another SIGTERM: SIGKILL now
 *	             v
 *	          OVER       the heartbeat is taken out of Redis --> stop
 *
 * FINISHING and ENDING lead to OVER as soon as all consumers are closed.
 *
 * A reload reads the configuration again, and ends QUIET.  If it has errors they are logged, and
 * the old one stays.  reload_plan.c compares the two.
 *
 * rqctl sends hints to one daemon, on the channel rqd:control:INSTANCE: "quiet", "end_quiet",
 * "renew KEY", "beat", "removed".  Nothing depends on their arrival, and
 * unknown ones are ignored.  They come over a connection of their own, so that nothing
 * else fails if the server forbids the channel.
 */
#include "service/daemon.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <config.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/utf8.h"
#include "base/units.h"
#include "base/util.h"
#include "config/launch_config.h"
#include "engine/consumer.h"
#include "engine/dispatcher.h"
#include "engine/schedule.h"
#include "handler/cgroup.h"
#include "handler/handler.h"
#include "handler/spawner.h"
#include "loop/child.h"
#include "loop/loop.h"
#include "loop/notify.h"
#include "loop/proc.h"
#include "loop/timer.h"
#include "queue/keys.h"
#include "queue/slot_route.h"
#include "redis/nodes.h"
#include "redis/reply.h"
#include "redis/sentinel.h"
#include "service/heartbeat.h"
#include "service/redis_log.h"
#include "service/reload_plan.h"
#include "service/until_empty.h"
#include "status/pages.h"

#define SIGNAL_HALT	(SIGRTMIN + 3)	/* stops a container whose image expects systemd in it */
#define LOG_AGAIN	(55 * SEC)	/* each minute, because the pulse comes every 10 s */
#define NEWS_AFTER	(250 * MSEC)	/* a heartbeat when a queue's state changed */
#define GIVE_UP		(1500 * MSEC)	/* for the last results, after the last handler */
#define FAREWELL	(500 * MSEC)	/* for the heartbeat's end */
#define HINT_MAX	4096		/* bytes */
#define EXTEND_BY	(15 * SEC)	/* more time, asked for every third of it */
#define RENEW_MAX	(10 * SEC)	/* owners renew as often, or every third of the lease */
#define RENEW_SLACK	(500 * MSEC)	/* for a renewal to arrive */
#define REPLY_SHARE	((size_t)64 * 1024 * 1024)
#define RELOAD_ERROR_MAX	400	/* bytes */
#define LAST_KILLS	50
#define LAST_PAUSE	(2 * MSEC)

/* How the daemon finishes before it exits. */
enum drain { DRAIN_NONE, DRAIN_FINISHING, DRAIN_ENDING, DRAIN_OVER };

struct rqd {
	const struct daemon_options	*options;
	struct config	*boot;	/* reference; the first: redis and name are its */
	struct config	*config;	/* reference; in force */
	unsigned	 reloads;	/* 1: one is under way; 2: another follows it */
	/* The first of the last reload, "FILE:LINE: ...", in visible UTF-8; "": it had none. */
	char	 reload_error[RELOAD_ERROR_MAX + 1];
	char	*instance;

	struct loop	*loop;
	struct redis_options	 redis;	/* boot's, and the Sentinels */
	struct nodes	*nodes;
	struct routes	*routes;
	struct conn	*control;	/* subscribes to hints */
	bool	 control_forbidden;	/* Redis has said so, and so has the log */
	struct dispatcher	*dispatcher;
	struct queue_env	 queue_env;
	struct handler_env	 handler_env;
	struct consumer_env	 consumer_env;
	/*
	 * One for each queue that is served, until it is CLOSED.  While a reload drains a queue,
	 * there is one more for the queue that replaces it.
	 */
	struct consumer	**consumers;
	size_t	 nconsumers;
	bool	 quiet;		/* consumers that are added are, too */
	struct schedules	*schedules;
	struct heartbeat	 heartbeat;
	struct pages	*pages;
	struct buf	 redis_error;	/* of the last view */
	bool	 ready;			/* was logged */
	usec_t	 log_failed_at;	/* mono: the log could not be opened; 0: it could */

	enum drain	 drain;
	struct timer	 deadline;	/* when FINISHING or ENDING is over */
	char	 told[160];	/* the last line to systemd */
	struct timer	 watchdog;
	struct timer	 extend;	/* set: the daemon stops, and asks systemd for more time */
	struct timer	 pulse;	/* ticks, heartbeat, probes: HEARTBEAT_EVERY */
	struct timer	 news;	/* set: a heartbeat out of turn */

	struct until_empty	 until_empty;
	struct timer	 chance;	/* set: --until-empty; whether it still has one */
	int	 status;		/* of the exit */
};

/* -- consumers --------------------------------------------------------------- */

static void
daemon_add_consumer(struct rqd *d, const struct queue_config *cfg)
{
	struct consumer *c = consumer_new(&d->consumer_env, d->config, cfg, queue_ops(cfg->kind));

	*APPEND(d->consumers, d->nconsumers) = c;
	if (d->quiet)
		consumer_set_quiet(c, true);
}

/* The consumer with exactly this configuration, or NULL. */
static struct consumer *
daemon_find_consumer(const struct rqd *d, const struct queue_config *cfg)
{
	for (size_t i = 0; i < d->nconsumers; i++) {
		if (consumer_config(d->consumers[i]) == cfg)
			return d->consumers[i];
	}
	return NULL;
}

static unsigned
daemon_in_flight(const struct rqd *d)
{
	unsigned n = 0;

	for (size_t i = 0; i < d->nconsumers; i++)
		n += consumer_in_flight(d->consumers[i]);
	return n;
}

/* -- the state, as systemd and HTTP show it ---------------------------------- */

static const char *
daemon_state(const struct rqd *d)
{
	switch (d->drain) {
	case DRAIN_NONE:
		break;
	case DRAIN_FINISHING:
	case DRAIN_ENDING:
		return "draining";
	case DRAIN_OVER:
		return "stopped";
	}
	return d->quiet ? "quiet" : "running";
}

/* Tells systemd the line of "systemctl status", if it has changed. */
static void
daemon_update(struct rqd *d)
{
	char line[sizeof(d->told)];
	const char *redis = "down";
	unsigned blocked = 0;
	enum consumer_block b;

	if (nodes_are_ready(d->nodes))
		redis = "up";
	else if (nodes_is_one_ready(d->nodes))
		redis = "up in part";
	for (size_t i = 0; i < d->nconsumers; i++) {
		b = consumer_block(d->consumers[i]);
		blocked += b == BLOCK_SUSPENDED || b == BLOCK_PAUSED || b == BLOCK_REFUSED;
	}
	snprintf(line, sizeof(line),
	    "%s; Redis %s; queues: %zu, blocked: %u; messages in flight: %u",
	    daemon_state(d), redis, d->nconsumers, blocked,
	    daemon_in_flight(d));
	if (strcmp(line, d->told) == 0)
		return;
	memcpy(d->told, line, sizeof(line));
	notify("STATUS=%s", line);
}

static void
daemon_watchdog(void *arg)
{
	struct rqd *d = arg;

	notify("WATCHDOG=1");
	timer_set(&d->watchdog, notify_watchdog_interval());
}

static void
daemon_extend(void *arg)
{
	struct rqd *d = arg;

	notify("EXTEND_TIMEOUT_USEC=%lld", (long long)EXTEND_BY);
	timer_set(&d->extend, EXTEND_BY / 3);
	daemon_update(d);
}

/* Fills the snapshot that the HTTP listener shows. */
static void
daemon_look(struct view *v, void *arg)
{
	struct rqd *d = arg;

	buf_clear(&d->redis_error);
	nodes_causes(d->nodes, &d->redis_error);
	*v = (struct view){
		.config = d->config, .instance = d->instance,
		.state = daemon_state(d), .started = d->heartbeat.started,
		.reload_error = d->reload_error,
		.beat_refused = heartbeat_refused(&d->heartbeat),
		.nodes = d->nodes, .redis_error = buf_str(&d->redis_error),
		.dispatcher = d->dispatcher, .schedules = d->schedules,
		.consumers = d->consumers, .nconsumers = d->nconsumers,
	};
}

/* -- Redis ------------------------------------------------------------------ */

static void
daemon_beat(struct rqd *d)
{
	d->heartbeat.reload_error = d->reload_error;
	heartbeat_send(&d->heartbeat, d->nodes, d->config, d->consumers, d->nconsumers);
}

/* The heartbeat as it would be now, for the pages. */
static void
daemon_write_beat(struct buf *b, void *arg)
{
	struct rqd *d = arg;

	d->heartbeat.reload_error = d->reload_error;
	heartbeat_write(&d->heartbeat, d->config,
	    conn_redis_time(nodes_conn(d->nodes, KEYS_DAEMONS)), d->consumers,
	    d->nconsumers, b);
}

/* Each node has a log of its own. */
static struct redis_log *
daemon_log_of(struct rqd *d, struct node *node)
{
	if (node->data == NULL) {
		node->data = xcalloc(1, sizeof(struct redis_log));
		redis_log_init(node->data, d->loop);
	}
	return node->data;
}

static void
daemon_node_up(struct node *node, const struct conn_server *info, void *arg)
{
	struct rqd *d = arg;

	redis_log_up(daemon_log_of(d, node), info);
	routes_node_up(d->routes, node, info);
	watch_conn_up(node->watch);
	conn_start(d->control);
	schedules_conn_up(d->schedules);
	daemon_beat(d);
	redis_log_server(info);
	if (!d->ready && nodes_are_ready(d->nodes)) {
		d->ready = true;
		log_event(LOG_LV_INFO, "ready", NULL, LF_STR("server", info->address));
	}
	daemon_update(d);
}

static void
daemon_node_down(struct node *node, const char *cause, void *arg)
{
	struct rqd *d = arg;

	redis_log_down(daemon_log_of(d, node), cause);
	watch_conn_down(node->watch);
	if (!nodes_is_cluster(d->nodes))
		schedules_conn_down(d->schedules);
	routes_node_down(d->routes, node);
	daemon_update(d);
}

static void
daemon_node_gone(struct node *node, void *arg UNUSED)
{
	if (node->data != NULL)
		redis_log_done(node->data);
	free(node->data);
	node->data = NULL;
}

/* Sends a heartbeat, which makes the nodes that it needs. */
static void
daemon_slots_changed(unsigned masters, void *arg)
{
	struct rqd *d = arg;

	log_event(LOG_LV_INFO, "cluster", NULL, LF_INT("masters", masters));
	routes_changed(d->routes);
	schedules_conn_up(d->schedules);
	daemon_beat(d);
	daemon_update(d);
}

static void
daemon_redirected(struct node *node, const char *error UNUSED, unsigned slot, bool later, void *arg)
{
	struct rqd *d = arg;

	routes_redirected(d->routes, node, slot, later);
}

static void
daemon_no_table(const char *cause, void *arg UNUSED)
{
	if (cause != NULL)
		log_event(LOG_LV_ERROR, "redis_down", NULL, LF_STR("error", cause),
		    LF_STR("hint", reply_hint(cause)));
}

/* -- periodic work ---------------------------------------------------------- */

static void	daemon_open_log(struct rqd *);

/* One timer serves all queues, so that an idle daemon wakes up rarely. */
static void
daemon_pulse(void *arg)
{
	struct rqd *d = arg;

	timer_set(&d->pulse, HEARTBEAT_EVERY);
	if (d->log_failed_at != 0 && clock_mono() - d->log_failed_at >= LOG_AGAIN)
		daemon_open_log(d);
	if (d->redis.sentinel != NULL)
		sentinel_probe(d->redis.sentinel);
	nodes_probe(d->nodes);
	if (nodes_is_one_ready(d->nodes)) {
		conn_probe(d->control);
		for (size_t i = 0; i < d->nconsumers; i++)
			consumer_tick(d->consumers[i]);
		daemon_beat(d);
	}
	daemon_update(d);
}

static void
daemon_news(void *arg)
{
	struct rqd *d = arg;

	if (nodes_is_one_ready(d->nodes))
		daemon_beat(d);
	daemon_update(d);
}

/*
 * Sends a heartbeat early, so that rqctl shows the change.  Changes within NEWS_AFTER
 * share one.
 */
static void
daemon_news_soon(void *arg)
{
	struct rqd *d = arg;

	if (!timer_is_set(&d->news))
		timer_set(&d->news, NEWS_AFTER);
}

/* -- quiet and drain -------------------------------------------------------- */

static void
daemon_quiet(bool quiet, void *arg)
{
	struct rqd *d = arg;

	if (d->drain != DRAIN_NONE || d->quiet == quiet)
		return;
	log_event(LOG_LV_INFO, quiet ? "quiet" : "quiet_ended", NULL,
	    LF_INT("running", daemon_in_flight(d)));
	d->quiet = quiet;
	for (size_t i = 0; i < d->nconsumers; i++)
		consumer_set_quiet(d->consumers[i], quiet);
	daemon_update(d);
	daemon_news_soon(d);
}

/* The only place that changes the state of the drain.  within: until its deadline. */
static void
daemon_set_drain(struct rqd *d, enum drain drain, usec_t within)
{
	d->drain = drain;
	if (drain == DRAIN_OVER)
		timer_stop(&d->deadline);
	else
		timer_set(&d->deadline, within);
}

static void
daemon_nodes_closed(void *arg)
{
	struct rqd *d = arg;

	loop_stop(d->loop);
}

/* The drain is over: removes the heartbeat from Redis, and stops. */
static void
daemon_drained(struct rqd *d)
{
	daemon_set_drain(d, DRAIN_OVER, 0);
	daemon_update(d);
	if (!nodes_is_one_ready(d->nodes) && d->nconsumers > 0) {
		loop_stop(d->loop);
		return;
	}
	if (nodes_is_one_ready(d->nodes))
		heartbeat_end(&d->heartbeat, d->nodes);
	nodes_close(d->nodes, FAREWELL, daemon_nodes_closed, d);
}

/* error: why it cannot go on, or NULL. */
static void
daemon_drain(struct rqd *d, usec_t timeout, const char *error)
{
	enum log_level level = LOG_LV_INFO;

	if (error != NULL)
		level = LOG_LV_ERROR;
	schedules_stop(d->schedules);
	timer_stop(&d->chance);
	log_event(level, "draining", NULL,
	    LF_INT("running", daemon_in_flight(d)),
	    LF_USEC("timeout", timeout), LF_STR("error", error));
	daemon_set_drain(d, DRAIN_FINISHING, timeout);
	for (size_t i = 0; i < d->nconsumers; i++)
		consumer_drain(d->consumers[i]);
	daemon_update(d);
	notify("STOPPING=1");
	daemon_extend(d);
	if (d->nconsumers == 0)
		daemon_drained(d);
}

/* Ends the handlers that still run; their messages are returned.  Again: by SIGKILL. */
static void
daemon_end_handlers(struct rqd *d)
{
	bool again = d->drain == DRAIN_ENDING;
	usec_t grace = 0;
	struct consumer *c;

	for (size_t i = 0; i < d->nconsumers; i++) {
		c = d->consumers[i];
		consumer_stop_handlers(c, again);
		if (consumer_config(c)->kill_grace > grace)
			grace = consumer_config(c)->kill_grace;
	}
	if (!again)
		daemon_set_drain(d, DRAIN_ENDING, grace + GIVE_UP);
}

/* The deadline of a state has passed.  Idle processes that are left are killed at the exit. */
static void
daemon_deadline(void *arg)
{
	struct rqd *d = arg;
	bool confirmed = true;
	unsigned runs = 0;

	for (size_t i = 0; i < d->nconsumers; i++) {
		confirmed = confirmed && consumer_is_confirmed(d->consumers[i]);
		runs += consumer_runs(d->consumers[i]);
	}
	if (d->drain == DRAIN_FINISHING && runs > 0) {
		daemon_end_handlers(d);
		return;
	}
	if (d->drain == DRAIN_FINISHING && !confirmed) {
		daemon_set_drain(d, DRAIN_ENDING, GIVE_UP);
		return;
	}
	if (!confirmed)
		log_event(LOG_LV_WARN, "warning", NULL,
		    LF_STR("warning", "gave up waiting for Redis: "
		    "messages whose results are not confirmed run again when their leases end"));
	daemon_drained(d);
}

static void
daemon_consumer_closed(struct consumer *c, void *arg)
{
	struct rqd *d = arg;
	size_t i = 0;

	while (d->consumers[i] != c)
		i++;
	/*
	 * Keep the order: of two with one name, after a change of the key, the newer
	 * must be last.
	 */
	memmove(&d->consumers[i], &d->consumers[i + 1],
	    (--d->nconsumers - i) * sizeof(struct consumer *));
	consumer_free(c);
	if (d->nconsumers == 0 && (d->drain == DRAIN_FINISHING || d->drain == DRAIN_ENDING))
		daemon_drained(d);
}

/* --until-empty: every queue has found nothing and has nothing in flight. */
static void
daemon_consumer_idle(void *arg)
{
	struct rqd *d = arg;

	if (!d->options->until_empty || d->drain != DRAIN_NONE || d->quiet)
		return;
	for (size_t i = 0; i < d->nconsumers; i++)
		if (!consumer_is_idle(d->consumers[i]))
			return;
	daemon_drain(d, d->config->drain_timeout, NULL);
}

/* --until-empty: the queues are not empty, and perhaps never will be. */
static void
daemon_chance(void *arg)
{
	struct rqd *d = arg;

	if (d->nconsumers == 0) {
		daemon_drain(d, 0, NULL);
		return;
	}
	timer_set(&d->chance, SEC);
	buf_clear(&d->redis_error);
	if (!nodes_are_ready(d->nodes))
		nodes_causes(d->nodes, &d->redis_error);
	d->status = until_empty_judge(&d->until_empty, d->consumers,
	    d->nconsumers, d->quiet, buf_str(&d->redis_error));
	if (d->status != EX_OK)
		daemon_drain(d, 0, d->until_empty.cause);
}

/* -- requests of rqctl ----------------------------------------------------------- */

/*
 * Logs what rqctl has removed: "KEY\nWHO\nCOUNT\nWHAT".  Anybody who may publish can write
 * that; the log escapes it.
 */
static void
daemon_log_removed(const struct rqd *d, const char *text)
{
	char *copy = xstrdup(text), *rest = copy;
	const char *key = strsep(&rest, "\n"), *who = strsep(&rest, "\n");
	const char *count = strsep(&rest, "\n"), *name = key;
	int64_t n;

	for (size_t i = 0; i < d->nconsumers; i++)
		if (config_has_key(consumer_config(d->consumers[i]), key))
			name = consumer_config(d->consumers[i])->name;
	if (rest != NULL && units_parse_int(count, &n) == 0)
		log_event(LOG_LV_WARN, "removed", &(struct log_ctx){ .queue = name },
		    LF_STR("by", who), LF_INT("count", n), LF_STR("verb", rest));
	free(copy);
}

static void
daemon_hint(const char *channel UNUSED, size_t channel_len UNUSED,
    const struct redisReply *payload, void *arg)
{
	struct rqd *d = arg;
	size_t len = 0;
	const char *text = reply_str(payload, &len), *key;

	if (text == NULL || len > HINT_MAX || memchr(text, '\0', len) != NULL)
		return;
	if (strcmp(text, "quiet") == 0)
		daemon_quiet(true, d);
	else if (strcmp(text, "end_quiet") == 0)
		daemon_quiet(false, d);
	else if (strcmp(text, "beat") == 0)
		daemon_news_soon(d);
	else if (strncmp(text, "removed\n", 8) == 0)
		daemon_log_removed(d, text + 8);
	if (strncmp(text, "renew ", 6) != 0)
		return;
	/* There are two with this key while a reload drains one of them. */
	key = text + 6;
	for (size_t i = 0; i < d->nconsumers; i++) {
		/* After a cancel: the renewal tells which message was cancelled. */
		if (config_has_key(consumer_config(d->consumers[i]), key))
			consumer_renew(d->consumers[i]);
	}
}

static void
daemon_control_up(const struct conn_server *server UNUSED, void *arg)
{
	struct rqd *d = arg;

	d->control_forbidden = false;
}

/* Nothing to do: the sender of a hint sees that no daemon received it. */
static void
daemon_control_down(const char *cause, void *arg)
{
	struct rqd *d = arg;

	if (d->control_forbidden || strstr(cause, "NOPERM") == NULL)
		return;
	d->control_forbidden = true;
	log_event(LOG_LV_WARN, "warning", NULL, LF_STR("error", cause),
	    LF_STR("warning", "rqctl cannot reach this daemon: it may not subscribe to its "
	    "control channel"));
}

/* -- the configuration in force ------------------------------------------------ */

static void	daemon_reload(struct rqd *);

/*
 * A target that cannot be opened is logged, once, and the log stays where it is; the pulse
 * and reloads try again.
 */
static void
daemon_open_log(struct rqd *d)
{
	const char *target = d->config->log.target;
	bool failed = d->log_failed_at != 0;
	char *cause = NULL;

	d->log_failed_at = log_open(target, &cause) == -1 ? clock_mono() : 0;
	if (d->log_failed_at != 0 && !failed)
		log_event(LOG_LV_ERROR, "warning", NULL,
		    LF_STR("target", target), LF_STR("error", cause),
		    LF_STR("warning", "rqd keeps the old log target, and tries again every "
		    "minute"));
	free(cause);
}

static void
daemon_log(struct rqd *d)
{
	const struct log_config *config = &d->config->log;

	log_set_format(config->format);
	log_set_level(d->options->debug ? LOG_LV_DEBUG : config->level);
	daemon_open_log(d);
}

/*
 * Limits of connections to Redis.
 *
 * The largest reply: the largest message, and a call's bytes of others.
 *
 * The longest backoff: a third of the shortest lease.  After an outage other daemons wait for
 * two renewal intervals before they take expired leases.  This daemon must have reconnected
 * and renewed by then.
 *
 * The longest silence is how long Redis may have answered no daemon without harm.  A lease
 * that was renewed a third of it before holds for two thirds more, less the time of the next
 * renewal.
 */
static void
daemon_limits(struct rqd *d)
{
	const struct config *config = d->config;
	uint64_t message = 0;
	usec_t third = HOUR, interval;

	for (size_t i = 0; i < config->nqueues; i++) {
		if (config->queues[i]->message_max > message)
			message = config->queues[i]->message_max;
		if (config->queues[i]->lease / 3 < third)
			third = config->queues[i]->lease / 3;
	}
	interval = third < RENEW_MAX ? third : RENEW_MAX;
	nodes_set_limits(d->nodes, &(struct conn_limits){
	    .reply_max = REPLY_SHARE + (size_t)message, .backoff_max = third,
	    .silence_max = 2 * interval - RENEW_SLACK });
}

/*
 * Puts the new configuration into force.  Objects that still use the old one hold
 * references.
 */
static void
daemon_apply(struct rqd *d, struct config *new)
{
	struct config *old = d->config;
	const struct reload_step *step;
	struct reload_plan plan;
	struct consumer *c;

	reload_plan(&plan, old, new);
	d->config = new;
	spawner_hold(d->options->spawner, new);
	if (plan.log || d->log_failed_at != 0)
		daemon_log(d);
	if (plan.http)
		pages_listen(d->pages, new->http.listen);
	for (size_t i = 0; plan.restart[i] != NULL; i++)
		log_event(LOG_LV_WARN, "warning", NULL, LF_STR("section", plan.restart[i]),
		    LF_STR("warning", "changed, but needs a restart"));
	dispatcher_set_slots(d->dispatcher, (unsigned)new->max_handlers);
	daemon_limits(d);
	for (size_t i = 0; i < plan.nsteps; i++) {
		step = &plan.steps[i];
		if (step->op == RELOAD_ADD)
			daemon_add_consumer(d, step->to);
		else if ((c = daemon_find_consumer(d, step->from)) == NULL)
			continue;
		else if (step->op == RELOAD_REMOVE)
			consumer_drain(c);
		else
			consumer_reconfigure(c, new, step->to, step->op == RELOAD_KEEP);
	}
	schedules_reconfigure(d->schedules, new);
	reload_plan_done(&plan);
	spawner_drop(d->options->spawner, old);
	config_unref(old);
}

/* The spawner has read the configuration.  Ends the reload, unless a shutdown has begun. */
static void
daemon_loaded(const struct spawner_loaded *loaded, void *arg)
{
	struct rqd *d = arg;
	struct config_report report = { 0 };
	/* NULL: it has errors. */
	struct config *new = launch_config_take(d->options->source, d->options->spawner, loaded,
	    &report);
	bool again = d->reloads == 2;
	char *text;

	if (d->drain != DRAIN_NONE) {
		config_unref(new);	/* the spawner ends soon, too */
		config_report_done(&report);
		return;
	}
	d->reloads = 0;
	/* Keeps the first error; the log has all. */
	launch_config_log(&report);
	d->reload_error[0] = '\0';
	if (report.errors.n > 0) {
		text = report.errors.n == 1 ? xstrdup(report.errors.v[0]) :
		    xasprintf("%zu errors, the first: %s", report.errors.n, report.errors.v[0]);
		utf8_copy_visible(d->reload_error, RELOAD_ERROR_MAX, text, strlen(text));
		free(text);
	}
	config_report_done(&report);
	if (new != NULL) {
		daemon_apply(d, new);
		log_event(LOG_LV_INFO, "reloaded", NULL,
		    LF_INT("queues", (int64_t)new->nqueues), LF_STR("config", new->hash));
		daemon_quiet(false, d);
	}
	notify("READY=1");
	daemon_news_soon(d);
	daemon_update(d);
	if (again)
		daemon_reload(d);
}

/* If one is under way, another follows it. */
static void
daemon_reload(struct rqd *d)
{
	if (d->drain != DRAIN_NONE || d->reloads == 2 || d->reloads++ > 0)
		return;
	notify_reloading();
	spawner_load(d->options->spawner, daemon_loaded, d);
}

/* -- signals ---------------------------------------------------------------- */

static void
daemon_signal(int signo, void *arg)
{
	struct rqd *d = arg;

	if (signo == SIGNAL_HALT)
		signo = SIGTERM;
	switch (signo) {
	case SIGTERM:
	case SIGINT:
	case SIGQUIT:
	case SIGPWR:
		if (d->drain == DRAIN_NONE) {
			daemon_drain(d, d->config->drain_timeout, NULL);
			break;
		}
		if (d->drain != DRAIN_OVER)
			daemon_end_handlers(d);
		daemon_update(d);
		break;
	case SIGHUP:	/* -q: its terminal has closed, and nobody sees its output any more */
		if (d->options->source->queue == NULL)
			daemon_reload(d);
		else if (d->drain == DRAIN_NONE)
			daemon_drain(d, d->config->drain_timeout, NULL);
		break;
	case SIGUSR1:
		if (d->config->log.target[0] == '/')
			daemon_open_log(d);
		break;
	case SIGUSR2:
		daemon_quiet(true, d);
		break;
	default:
		break;
	}
}

/* -- start ------------------------------------------------------------------ */

/*
 * The spawner has ended, and the kernel ends the handlers: so does the daemon, to be started
 * again.  What the handlers have started comes to this process; it is killed where that is
 * possible, that is, unless another user's.
 */
static void
daemon_lost_spawner(void *arg UNUSED)
{
	log_event(LOG_LV_ERROR, "stopped", NULL,
	    LF_STR("error", "the spawner died: rqd cannot start handlers without it"));
	for (int i = 0; i < LAST_KILLS && proc_kill_below(SIGKILL) > 0; i++)
		(void)usleep((useconds_t)LAST_PAUSE);
	log_close();
	exit(EX_OSERR);
}

static void
daemon_start_redis(struct rqd *d)
{
	static const struct nodes_events events = {
		.up = daemon_node_up, .down = daemon_node_down, .watch = redis_log_watch,
		.gone = daemon_node_gone, .changed = daemon_slots_changed,
		.redirected = daemon_redirected, .no_table = daemon_no_table
	};
	static const struct conn_events control = {
		.up = daemon_control_up, .down = daemon_control_down
	};
	const struct redis_options *options = &d->redis;
	char *name = xasprintf("%s-control", d->instance);
	char *channel = xasprintf("%s%s", KEYS_CONTROL_PREFIX, d->instance);

	d->redis = d->boot->redis;
	if (d->redis.sentinels[0] != NULL)
		d->redis.sentinel = sentinel_new(d->loop, options, d->instance,
		    redis_log_sentinel);
	d->nodes = nodes_new(d->loop, options, d->instance, &events, d);
	daemon_limits(d);
	d->control = conn_new(d->loop, nodes_any(d->nodes), name, CONN_SUBSCRIBER, &control, d);
	conn_set_limits(d->control, &(struct conn_limits){ .reply_max = (size_t)16 * HINT_MAX });
	conn_subscribe(d->control, false, channel, daemon_hint, d);
	free(channel);
	free(name);
}

static void
daemon_start_queues(struct rqd *d)
{
	struct config *config = d->boot;

	d->dispatcher = dispatcher_new(d->loop, (unsigned)config->max_handlers);
	d->heartbeat = (struct heartbeat){ .instance = d->instance, .started = clock_wall() };
	d->queue_env = (struct queue_env){
		.loop = d->loop, .redis = nodes_any(d->nodes), .fleet = &d->heartbeat.fleet,
		.instance = d->instance, .host = config->name,
	};
	d->routes = routes_new(&d->queue_env, d->nodes);
	if (nodes_is_cluster(d->nodes))
		d->queue_env.routes = d->routes;
	else
		d->queue_env.conn = nodes_conn(d->nodes, "");
	d->handler_env = (struct handler_env){ .loop = d->loop, .spawner = d->options->spawner };
	d->consumer_env = (struct consumer_env){
		.loop = d->loop, .dispatcher = d->dispatcher, .routes = d->routes,
		.handler = &d->handler_env, .closed = daemon_consumer_closed,
		.idle = daemon_consumer_idle, .blocked = daemon_news_soon, .arg = d,
	};
	for (size_t i = 0; i < config->nqueues; i++) {
		if (config_consumes(config->queues[i]))
			daemon_add_consumer(d, config->queues[i]);
	}
	d->schedules = schedules_new(&d->queue_env, config);
}

static void
daemon_start(struct rqd *d)
{
	const int signals[] = { SIGTERM, SIGINT, SIGQUIT, SIGPWR, SIGNAL_HALT, SIGUSR1, SIGUSR2,
	    SIGHUP };
	const struct config *config = d->boot;
	const char *uncontained = NULL;

	/* 1. The spawner. */
	d->loop = loop_new();
	child_init(d->loop);
	spawner_attach(d->options->spawner, d->loop, daemon_lost_spawner, NULL);
	/* While it is in force; and for ever, because it names the files of section redis. */
	spawner_hold(d->options->spawner, d->boot);
	spawner_hold(d->options->spawner, d->boot);

	/* 2. Signals: from here on SIGTERM is a drain.  nohup(1) ignores SIGHUP. */
	for (size_t i = 0; i < ARRAY_LEN(signals) - d->options->ignores_hangup; i++)
		loop_signal(d->loop, signals[i], daemon_signal, d);

	/*
	 * 3. All parts.  Nothing is sent to Redis before the loop runs.  The pulse begins with
	 * a random phase, so that a fleet does not beat together.
	 */
	timer_init(&d->watchdog, d->loop, daemon_watchdog, d);
	timer_init(&d->extend, d->loop, daemon_extend, d);
	timer_init(&d->deadline, d->loop, daemon_deadline, d);
	if (notify_watchdog_interval() > 0)
		daemon_watchdog(d);
	daemon_start_redis(d);
	daemon_start_queues(d);
	timer_init(&d->pulse, d->loop, daemon_pulse, d);
	timer_init(&d->news, d->loop, daemon_news, d);
	timer_init(&d->chance, d->loop, daemon_chance, d);
	if (d->options->until_empty)
		timer_set(&d->chance, 0);
	timer_set(&d->pulse, (usec_t)((double)HEARTBEAT_EVERY * (0.5 + random_unit() / 2)));
	d->pages = pages_new(d->loop, d->nodes, config->name, daemon_look, d);
	pages_set_beat(d->pages, d->instance, daemon_write_beat, d);

	/* 4. Go.  Who types rqd -q has not asked for cgroups. */
	nodes_start(d->nodes);
	if (config->file[0] != '\0')
		uncontained = cgroup_lacks(CGROUP_RUNS);
	log_event(LOG_LV_INFO, "started", NULL, LF_STR("version", PACKAGE_VERSION),
	    LF_STR("instance", d->instance), LF_INT("pid", getpid()),
	    LF_INT("queues", (int64_t)config->nqueues), LF_STR("config", config->hash),
	    LF_STR("uncontained", uncontained));
	if (config->nqueues == 0)
		log_event(LOG_LV_INFO, "idle", NULL, LF_STR("file", config->file));
	/*
	 * Before READY, so that the warnings are in the log for programs that wait for
	 * READY.
	 */
	launch_config_log(d->options->report);
	pages_listen(d->pages, config->http.listen);
	notify("READY=1");
	daemon_update(d);
}

/* -- stop ------------------------------------------------------------------- */

static void
daemon_stop(struct rqd *d)
{
	/* 0. The HTTP listener. */
	pages_stop(d->pages);

	/* 1. Schedules and queues. */
	schedules_free(d->schedules);
	for (size_t i = 0; i < d->nconsumers; i++)
		consumer_free(d->consumers[i]);
	free(d->consumers);
	dispatcher_free(d->dispatcher);

	/*
	 * 2.  Redis, after the objects that ask it: a lost answer may lead to the next
	 * question.
	 */
	pages_free(d->pages);
	conn_free(d->control);
	routes_free(d->routes);
	nodes_free(d->nodes);
	sentinel_free(d->redis.sentinel);
	buf_done(&d->redis_error);

	/* 3. The spawner, with all that handlers have left; then the loop. */
	timer_stop(&d->pulse);
	timer_stop(&d->news);
	timer_stop(&d->chance);
	timer_stop(&d->watchdog);
	timer_stop(&d->extend);
	timer_stop(&d->deadline);
	spawner_stop(d->options->spawner);
	child_done(d->loop);
	config_unref(d->config);
	loop_free(d->loop);
	log_event(LOG_LV_INFO, "stopped", NULL, LF_STR("instance", d->instance));
	free(d->instance);
	config_unref(d->boot);
}

int
daemon_run(const struct daemon_options *options, struct config *config)
{
	struct rqd d = { .options = options };

	d.boot = config_ref(config);
	d.config = config_ref(config);
	d.instance = heartbeat_instance(config->name);
	daemon_log(&d);
	daemon_start(&d);
	loop_run(d.loop);
	daemon_stop(&d);
	log_close();
	if (d.until_empty.cause != NULL)
		fprintf(stderr, "rqd: --until-empty: %s\n",
		    d.until_empty.cause);
	free(d.until_empty.cause);
	return d.status;
}
