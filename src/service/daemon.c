/*
 * The daemon's life; see daemon.h.
 *
 *	start --> RUNNING <--SIGUSR2, rqctl, reload--> QUIET
 *	             | SIGTERM, --until-empty            |
 *	             v                                   |
 *	          drain (drain.c) <----------------------'
 *	             | over
 *	             v
 *	          the heartbeat is taken out of Redis --> stop
 *
 * A reload (reload.c) ends QUIET.
 */
#include "service/daemon.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include <config.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/util.h"
#include "config/launch_config.h"
#include "engine/dispatcher.h"
#include "engine/schedule.h"
#include "handler/guardian.h"
#include "handler/handler.h"
#include "handler/launcher.h"
#include "loop/child.h"
#include "loop/loop.h"
#include "loop/notify.h"
#include "loop/timer.h"
#include "queue/slot_route.h"
#include "redis/nodes.h"
#include "redis/reply.h"
#include "redis/sentinel.h"
#include "service/consumers.h"
#include "service/control.h"
#include "service/drain.h"
#include "service/heartbeat.h"
#include "service/redis_log.h"
#include "service/reload.h"
#include "service/settings.h"
#include "service/systemd.h"
#include "status/pages.h"

#define NEWS_AFTER	(250 * MSEC)	/* a heartbeat when a queue's state changed */
#define FAREWELL	(500 * MSEC)	/* for the heartbeat's end */

struct rqd {
	const struct daemon_options	*options;
	struct config	*boot;	/* reference; the first: redis and name are its */
	char	*instance;

	struct loop	*loop;
	struct guardian	*guardian;	/* NULL: the launcher has one */
	struct launcher	*launcher;	/* borrowed; NULL: not privileged */
	struct systemd	*systemd;
	struct redis_options	 redis;	/* boot's, and the Sentinels */
	struct nodes	*nodes;
	struct routes	*routes;
	struct control	*control;
	struct dispatcher	*dispatcher;
	struct queue_env	 queue_env;
	struct handler_env	 handler_env;
	struct consumers	*consumers;
	struct schedules	*schedules;
	struct heartbeat	 heartbeat;
	struct pages	*pages;
	struct buf	 redis_error;	/* of the last view */
	bool	 ready;			/* was logged */
	struct reload	*reload;
	struct drain	*drain;

	struct timer	 pulse;	/* ticks, heartbeat, probes: HEARTBEAT_EVERY */
	struct timer	 news;	/* set: a heartbeat out of turn */
};

/* -- the state, as systemd and HTTP show it ---------------------------------- */

static const char *
daemon_state(const struct rqd *d)
{
	const char *draining = drain_state_name(d->drain);

	if (draining != NULL)
		return draining;
	return consumers_are_quiet(d->consumers) ? "quiet" : "running";
}

static unsigned
daemon_blocked(const struct rqd *d)
{
	unsigned blocked = 0;
	enum consumer_block b;
	struct consumer *c;

	for (size_t i = 0; (c = consumers_at(d->consumers, i)) != NULL; i++) {
		b = consumer_block(c);
		blocked += b == BLOCK_SUSPENDED || b == BLOCK_PAUSED || b == BLOCK_REFUSED;
	}
	return blocked;
}

static void
daemon_line(char *line, size_t size, void *arg)
{
	const struct rqd *d = arg;
	size_t n;

	(void)consumers_all(d->consumers, &n);
	snprintf(line, size, "%s; Redis %s; queues: %zu, blocked: %u; messages in flight: %u",
	    daemon_state(d), nodes_are_ready(d->nodes) ? "up" :
	    nodes_is_one_ready(d->nodes) ? "up in part" : "down", n, daemon_blocked(d),
	    consumers_in_flight(d->consumers));
}

/* Fills the snapshot that the HTTP listener shows. */
static void
daemon_look(struct view *v, void *arg)
{
	struct rqd *d = arg;

	buf_clear(&d->redis_error);
	nodes_causes(d->nodes, &d->redis_error);
	*v = (struct view){
		.config = reload_config(d->reload), .instance = d->instance,
		.state = daemon_state(d), .started = d->heartbeat.started,
		.reload_error = reload_error(d->reload),
		.beat_refused = heartbeat_refused(&d->heartbeat),
		.nodes = d->nodes, .redis_error = buf_str(&d->redis_error),
		.dispatcher = d->dispatcher, .schedules = d->schedules,
	};
	v->consumers = consumers_all(d->consumers, &v->nconsumers);
}

/* -- Redis ------------------------------------------------------------------ */

static void
daemon_beat(struct rqd *d)
{
	size_t n;
	struct consumer *const *all = consumers_all(d->consumers, &n);

	d->heartbeat.reload_error = reload_error(d->reload);
	heartbeat_send(&d->heartbeat, d->nodes, reload_config(d->reload), all, n);
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
	control_conn_up(d->control);
	schedules_conn_up(d->schedules);
	daemon_beat(d);
	redis_log_server(info);
	if (!d->ready && nodes_are_ready(d->nodes)) {
		d->ready = true;
		log_event(LOG_LV_INFO, "ready", NULL, LF_STR("server", info->address));
	}
	systemd_update(d->systemd);
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
	systemd_update(d->systemd);
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
	systemd_update(d->systemd);
}

static void
daemon_redirected(struct node *node, unsigned slot, bool later, void *arg)
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

/* One timer serves all queues, so that an idle daemon wakes up rarely. */
static void
daemon_pulse(void *arg)
{
	struct rqd *d = arg;

	timer_set(&d->pulse, HEARTBEAT_EVERY);
	if (d->redis.sentinel != NULL)
		sentinel_probe(d->redis.sentinel);
	nodes_probe(d->nodes);
	if (nodes_is_one_ready(d->nodes)) {
		control_probe(d->control);
		consumers_tick(d->consumers);
		daemon_beat(d);
	}
	systemd_update(d->systemd);
}

static void
daemon_news(void *arg)
{
	struct rqd *d = arg;

	if (nodes_is_one_ready(d->nodes))
		daemon_beat(d);
	systemd_update(d->systemd);
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

static bool
daemon_is_draining(const struct rqd *d)
{
	return drain_state_name(d->drain) != NULL;
}

static void
daemon_quiet(bool quiet, void *arg)
{
	struct rqd *d = arg;

	if (daemon_is_draining(d) || consumers_are_quiet(d->consumers) == quiet)
		return;
	log_event(LOG_LV_INFO, quiet ? "quiet" : "quiet_ended", NULL,
	    LF_INT("running", consumers_in_flight(d->consumers)));
	consumers_set_quiet(d->consumers, quiet);
	systemd_update(d->systemd);
	daemon_news_soon(d);
}

static void
daemon_drain(struct rqd *d)
{
	reload_stop(d->reload);
	schedules_stop(d->schedules);
	drain_begin(d->drain, reload_config(d->reload)->drain_timeout);
	systemd_stopping(d->systemd);
}

static void
daemon_nodes_closed(void *arg)
{
	struct rqd *d = arg;

	loop_stop(d->loop);
}

/* Nothing is in flight: removes the heartbeat from Redis, and stops. */
static void
daemon_drained(bool all_closed, void *arg)
{
	struct rqd *d = arg;

	systemd_update(d->systemd);
	if (!all_closed) {
		loop_stop(d->loop);
		return;
	}
	if (nodes_is_one_ready(d->nodes))
		heartbeat_end(&d->heartbeat, d->nodes);
	nodes_close(d->nodes, FAREWELL, daemon_nodes_closed, d);
}

static void
daemon_consumer_closed(struct consumer *c, void *arg)
{
	struct rqd *d = arg;

	consumers_remove(d->consumers, c);
	drain_consumer_closed(d->drain);
}

/* --until-empty: every queue has found nothing and has nothing in flight. */
static void
daemon_consumer_idle(void *arg)
{
	struct rqd *d = arg;

	if (d->options->until_empty && !daemon_is_draining(d) &&
	    !consumers_are_quiet(d->consumers) && consumers_are_idle(d->consumers))
		daemon_drain(d);
}

/* -- requests: of rqctl, by signals, after a reload ---------------------------- */

static void
daemon_hint(const char *key, void (*fn)(struct consumer *), void *arg)
{
	struct rqd *d = arg;

	consumers_with_key(d->consumers, key, fn);
}

static void
daemon_reloaded(bool ok, void *arg)
{
	struct rqd *d = arg;

	if (ok)
		daemon_quiet(false, d);
	notify("READY=1");
	daemon_news_soon(d);
	systemd_update(d->systemd);
}

static void
daemon_terminate(struct rqd *d)
{
	if (!daemon_is_draining(d)) {
		daemon_drain(d);
		return;
	}
	drain_hasten(d->drain);
	systemd_update(d->systemd);
}

static void
daemon_signal(int signo, void *arg)
{
	struct rqd *d = arg;

	switch (signo) {
	case SIGTERM:
	case SIGINT:
		daemon_terminate(d);
		break;
	case SIGHUP:
		reload_begin(d->reload);
		break;
	case SIGUSR1:
		settings_log_reopen();
		break;
	case SIGUSR2:
		daemon_quiet(true, d);
		break;
	default:
		break;
	}
}

static void
daemon_watch_signals(struct rqd *d)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		loop_signal(d->loop, signals[i], daemon_signal, d);
}

/* -- start ------------------------------------------------------------------ */

/* The guardian kills all handlers if rqd dies; a launcher has one of its own. */
static void
daemon_start_guardian(struct rqd *d)
{
	d->launcher = d->options->launcher;
	if (d->launcher == NULL) {
		d->guardian = guardian_start(d->loop);
		return;
	}
	launcher_attach(d->launcher, d->loop, launch_config_lost, NULL);
	launcher_hold(d->launcher, d->boot->generation);
}

static void
daemon_start_redis(struct rqd *d)
{
	static const struct nodes_events events = {
		.up = daemon_node_up, .down = daemon_node_down, .watch = redis_log_watch,
		.gone = daemon_node_gone, .changed = daemon_slots_changed,
		.redirected = daemon_redirected, .no_table = daemon_no_table,
		.slots_refused = redis_log_slots
	};
	static const struct control_events control = {
		daemon_quiet, daemon_hint, daemon_news_soon
	};
	static const struct sentinel_events sentinel = { redis_log_sentinel };
	const struct redis_options *options = &d->redis;

	d->redis = d->boot->redis;
	if (d->redis.sentinels[0] != NULL)
		d->redis.sentinel = sentinel_new(d->loop, options, d->instance, &sentinel, d);
	d->nodes = nodes_new(d->loop, options, d->instance, &events, d);
	settings_limits(d->boot, d->nodes);
	d->control = control_new(d->loop, nodes_any(d->nodes), d->instance, &control, d);
}

static void
daemon_fill_envs(struct rqd *d)
{
	const struct config *config = d->boot;

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
	d->handler_env = handler_env_of(config);
	d->handler_env.loop = d->loop;
	d->handler_env.guardian = d->guardian;
	d->handler_env.launcher = d->launcher;
}

static void
daemon_start_queues(struct rqd *d)
{
	struct config *config = d->boot;
	struct consumer_env env = {
		.loop = d->loop, .handler = &d->handler_env, .closed = daemon_consumer_closed,
		.idle = daemon_consumer_idle, .blocked = daemon_news_soon, .arg = d,
	};

	d->dispatcher = dispatcher_new(d->loop, (unsigned)config->max_handlers);
	daemon_fill_envs(d);
	env.dispatcher = d->dispatcher;
	d->consumers = consumers_new(&env, d->routes);
	for (size_t i = 0; i < config->nqueues; i++) {
		if (config_consumes(config->queues[i]))
			consumers_add(d->consumers, config, config->queues[i]);
	}
	d->schedules = schedules_new(&d->queue_env, config);
	d->drain = drain_new(d->loop, d->consumers, daemon_drained, d);
}

static void
daemon_start_reload(struct rqd *d)
{
	const struct reload_env env = {
		.loop = d->loop, .source = d->options->source, .debug = d->options->debug,
		.launcher = d->launcher, .nodes = d->nodes, .pages = d->pages,
		.dispatcher = d->dispatcher, .consumers = d->consumers,
		.schedules = d->schedules, .ended = daemon_reloaded, .arg = d,
	};

	d->reload = reload_new(&env, d->boot);
}

/* Starts the timers with a random phase, so that a fleet does not beat together. */
static void
daemon_start_timers(struct rqd *d)
{
	timer_init(&d->pulse, d->loop, daemon_pulse, d);
	timer_init(&d->news, d->loop, daemon_news, d);
	timer_set(&d->pulse, (usec_t)((double)HEARTBEAT_EVERY * (0.5 + random_unit() / 2)));
}

static void
daemon_start(struct rqd *d)
{
	const struct config *config = d->boot;

	/* 1. The guardian, while the process is small. */
	d->loop = loop_new();
	child_init(d->loop);
	daemon_start_guardian(d);

	/* 2. Signals: from here on SIGTERM is a drain. */
	daemon_watch_signals(d);

	/* 3. All parts.  Nothing is sent to Redis before the loop runs. */
	d->systemd = systemd_new(d->loop, daemon_line, d);
	daemon_start_redis(d);
	daemon_start_queues(d);
	daemon_start_timers(d);
	d->pages = pages_new(d->loop, d->nodes, config->name, daemon_look, d);
	daemon_start_reload(d);

	/* 4. Go. */
	nodes_start(d->nodes);
	log_event(LOG_LV_INFO, "started", NULL, LF_STR("version", PACKAGE_VERSION),
	    LF_STR("instance", d->instance), LF_INT("pid", getpid()),
	    LF_INT("queues", (int64_t)config->nqueues), LF_STR("config", config->hash));
	if (config->nqueues == 0)
		log_event(LOG_LV_INFO, "idle", NULL, LF_STR("file", config->file));
	/*
	 * Before READY, so that the warnings are in the log for programs that wait for
	 * READY.
	 */
	launch_config_log(d->options->report);
	pages_listen(d->pages, config->http.listen);
	notify("READY=1");
	systemd_update(d->systemd);
}

/* -- stop ------------------------------------------------------------------- */

static void
daemon_stop(struct rqd *d)
{
	/* 0. The HTTP listener. */
	pages_stop(d->pages);

	/* 1. Schedules and queues. */
	schedules_free(d->schedules);
	drain_free(d->drain);
	consumers_free(d->consumers);
	dispatcher_free(d->dispatcher);

	/*
	 * 2.  Redis, after the objects that ask it: a lost answer may lead to the next
	 * question.
	 */
	pages_free(d->pages);
	control_free(d->control);
	routes_free(d->routes);
	nodes_free(d->nodes);
	sentinel_free(d->redis.sentinel);
	buf_done(&d->redis_error);

	/* 3. The guardian, which needs that no handler is left; then the loop. */
	timer_stop(&d->pulse);
	timer_stop(&d->news);
	systemd_free(d->systemd);
	launch_config_borrow(NULL, NULL);
	guardian_stop(d->guardian);
	child_done(d->loop);
	launcher_stop(d->launcher);
	reload_free(d->reload);
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
	d.instance = heartbeat_instance(config->name);
	launch_config_borrow(options->launcher, config);
	settings_log(&config->log, options->debug);
	daemon_start(&d);
	loop_run(d.loop);
	daemon_stop(&d);
	log_close();
	return EX_OK;
}
