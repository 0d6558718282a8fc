/*
 * The daemon's life; see server.h.
 *
 *	RUNNING <--SIGUSR2, rqctl--> QUIET
 *	   | SIGTERM, --until-empty    | SIGTERM
 *	   v                           |
 *	DRAINING <---------------------'    handlers finish, for drain_timeout
 *	   | drain_timeout has passed, or a second SIGTERM
 *	   v
 *	ENDING      handlers get SIGTERM, after kill_grace SIGKILL; then results
 *	   |        reach Redis, within 1.5 s (GIVE_UP); another SIGTERM: SIGKILL now
 *	   v
 *	STOPPED
 *
 * DRAINING and ENDING lead to STOPPED as soon as all queues are closed.  A reload ends QUIET.
 */
#include "service/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <config.h>

#include "base/log.h"
#include "base/util.h"
#include "config/launch_config.h"
#include "engine/consumer.h"
#include "engine/dispatcher.h"
#include "engine/schedule.h"
#include "handler/guardian.h"
#include "handler/handler.h"
#include "handler/launcher.h"
#include "loop/child.h"
#include "loop/loop.h"
#include "loop/notify.h"
#include "loop/timer.h"
#include "queue/queue.h"
#include "redis/conn.h"
#include "redis/watch.h"
#include "service/control.h"
#include "service/heartbeat.h"
#include "service/redis_log.h"
#include "service/reload.h"
#include "service/settings.h"
#include "status/monitor.h"

#define GIVE_UP		(1500 * MSEC)	/* for the last results, after the last handler */
#define NEWS_AFTER	(250 * MSEC)	/* a heartbeat when a queue's state changed */
#define FAREWELL	(500 * MSEC)	/* for the heartbeat's end */
#define EXTEND_BY	(15 * SEC)	/* asked of systemd again and again while draining */

enum server_state {
	SERVER_RUNNING, SERVER_QUIET, SERVER_DRAINING, SERVER_ENDING, SERVER_STOPPED
};

struct server {
	const struct server_options	*options;
	struct config	*config;	/* reference; the one in force */
	struct config	*boot;	/* reference; the first: redis and name are its */
	enum server_state	 state;
	char	*instance;

	struct loop	*loop;
	struct guardian	*guardian;	/* NULL: the launcher has one */
	struct launcher	*launcher;	/* NULL: not privileged */
	bool	 loading;	/* the launcher reads the configuration */
	bool	 load_again;	/* SIGHUP came meanwhile */
	struct conn	*conn;
	struct watch	*watch;
	struct control		*control;
	struct bulk	*bulk;
	struct dispatcher	*dispatcher;
	struct queue_env	 queue_env;
	struct handler_env	 handler_env;
	struct consumer_env	 consumer_env;
	struct consumer	**consumers;	/* those not CLOSED */
	size_t	 nconsumers;
	struct schedules	*schedules;
	struct heartbeat	 heartbeat;
	struct monitor	*monitor;
	struct redis_log	 redis_log;
	bool	 reload_failed;	/* the last one */

	struct timer	 pulse;	/* ticks, heartbeat, probes: HEARTBEAT_EVERY */
	struct timer	 news;	/* set: a heartbeat out of turn */
	struct timer	 watchdog;
	struct timer	 deadline;	/* from DRAINING on: the state's end at the latest */
	struct timer	 extend;	/* from DRAINING on: tell systemd that we live */
	char	 status[160];	/* as systemd was told last */
};

static void	server_drain(struct server *);

/* -- the state, as systemd and HTTP show it ---------------------------------- */

static const char *const state_names[] = {
	[SERVER_RUNNING] = "running", [SERVER_QUIET] = "quiet",
	[SERVER_DRAINING] = "draining", [SERVER_ENDING] = "draining",
	[SERVER_STOPPED] = "stopped",
};

static void
server_status(struct server *s)
{
	char text[sizeof(s->status)];
	unsigned in_flight = 0, blocked = 0;
	enum consumer_block b;
	size_t i;

	for (i = 0; i < s->nconsumers; i++) {
		b = consumer_block(s->consumers[i]);
		in_flight += consumer_in_flight(s->consumers[i]);
		blocked += b == BLOCK_SUSPENDED || b == BLOCK_PAUSED;
	}
	snprintf(text, sizeof(text), "%s; Redis %s; queues: %zu, blocked: %u; "
	    "messages in flight: %u", state_names[s->state],
	    conn_is_ready(s->conn) ? "up" : "down", s->nconsumers, blocked, in_flight);
	if (strcmp(text, s->status) == 0)
		return;
	memcpy(s->status, text, sizeof(text));
	notify("STATUS=%s", text);
}

static void
server_set_state(struct server *s, enum server_state state)
{
	s->state = state;
	server_status(s);
}

/* Fills the snapshot that the HTTP listener shows. */
static void
server_look(struct view *v, void *arg)
{
	struct server *s = arg;

	*v = (struct view){
		.config = s->config, .instance = s->instance, .state = state_names[s->state],
		.started = s->heartbeat.started, .reload_failed = s->reload_failed,
		.conn = s->conn, .redis_error = redis_log_error(&s->redis_log),
		.dispatcher = s->dispatcher, .schedules = s->schedules,
		.consumers = s->consumers, .nconsumers = s->nconsumers,
	};
}

/* -- Redis ------------------------------------------------------------------ */

static void
server_beat(struct server *s)
{
	heartbeat_send(&s->heartbeat, s->conn, s->config, s->consumers, s->nconsumers);
}

static void
server_conn_up(const struct conn_server *info, void *arg)
{
	struct server *s = arg;
	size_t i;

	redis_log_up(&s->redis_log, info);
	for (i = 0; i < s->nconsumers; i++)
		consumer_conn_up(s->consumers[i], info);
	watch_conn_up(s->watch);
	control_conn_up(s->control);
	schedules_conn_up(s->schedules);
	server_beat(s);
	redis_log_server(info);
	if (info->first)
		log_event(LOG_LV_INFO, "ready", NULL, LF_STR("server", info->address));
	server_status(s);
}

static void
server_conn_down(const char *cause, void *arg)
{
	struct server *s = arg;
	size_t i;

	redis_log_down(&s->redis_log, cause);
	watch_conn_down(s->watch);
	schedules_conn_down(s->schedules);
	for (i = 0; i < s->nconsumers; i++)
		consumer_conn_down(s->consumers[i]);
	server_status(s);
}

/* -- periodic work ---------------------------------------------------------- */

/* One timer serves all queues, so that an idle daemon wakes up rarely. */
static void
server_pulse(void *arg)
{
	struct server *s = arg;
	size_t i;

	timer_set(&s->pulse, HEARTBEAT_EVERY);
	if (conn_is_ready(s->conn)) {
		conn_probe(s->conn);
		watch_probe(s->watch);
		control_probe(s->control);
		for (i = 0; i < s->nconsumers; i++)
			consumer_tick(s->consumers[i]);
		server_beat(s);
	}
	server_status(s);
}

static void
server_news(void *arg)
{
	struct server *s = arg;

	if (conn_is_ready(s->conn))
		server_beat(s);
	server_status(s);
}

/* Sends a heartbeat early, so that rqctl shows the change.  Changes within NEWS_AFTER share it. */
static void
server_news_soon(void *arg)
{
	struct server *s = arg;

	if (!timer_is_set(&s->news))
		timer_set(&s->news, NEWS_AFTER);
}

static void
server_watchdog(void *arg)
{
	struct server *s = arg;

	notify("WATCHDOG=1");
	timer_set(&s->watchdog, notify_watchdog_interval());
}

static void
server_extend(void *arg)
{
	struct server *s = arg;

	notify("EXTEND_TIMEOUT_USEC=%lld", (long long)EXTEND_BY);
	timer_set(&s->extend, EXTEND_BY / 3);
	server_status(s);
}

/* -- consumers -------------------------------------------------------------- */

static void
server_add_consumer(struct server *s, const struct queue_config *cfg)
{
	struct consumer *c = consumer_new(&s->consumer_env, s->config, cfg,
	    queue_ops(cfg->kind));

	s->consumers = xreallocarray(s->consumers, s->nconsumers + 1,
	    sizeof(struct consumer *));
	s->consumers[s->nconsumers++] = c;
	if (conn_is_ready(s->conn))
		consumer_conn_up(c, conn_server(s->conn));
	if (s->state == SERVER_QUIET)
		consumer_set_quiet(c, true);
}

static struct consumer *
server_find_consumer(const struct server *s, const struct queue_config *cfg)
{
	size_t i;

	for (i = 0; i < s->nconsumers; i++) {
		if (consumer_config(s->consumers[i]) == cfg)
			return s->consumers[i];
	}
	return NULL;
}

static unsigned
server_in_flight(const struct server *s)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < s->nconsumers; i++)
		n += consumer_in_flight(s->consumers[i]);
	return n;
}

static void
server_closed_conn(void *arg)
{
	struct server *s = arg;

	loop_stop(s->loop);
}

/* The last consumer is closed: remove the heartbeat from Redis, and stop. */
static void
server_finish(struct server *s)
{
	server_set_state(s, SERVER_STOPPED);
	timer_stop(&s->deadline);
	if (conn_is_ready(s->conn))
		heartbeat_end(&s->heartbeat, s->conn);
	conn_close(s->conn, FAREWELL, server_closed_conn, s);
}

static void
server_consumer_closed(struct consumer *c, void *arg)
{
	struct server *s = arg;
	size_t i;

	for (i = 0; s->consumers[i] != c; i++)
		continue;
	/* Keeps the order: of two with one name, after a change of the key, the newer is last. */
	memmove(&s->consumers[i], &s->consumers[i + 1],
	    (--s->nconsumers - i) * sizeof(struct consumer *));
	consumer_free(c);
	if ((s->state == SERVER_DRAINING || s->state == SERVER_ENDING) && s->nconsumers == 0)
		server_finish(s);
}

/* --until-empty: every queue has found nothing and has nothing in flight. */
static void
server_consumer_idle(void *arg)
{
	struct server *s = arg;
	size_t i;

	if (!s->options->until_empty || s->state != SERVER_RUNNING)
		return;
	for (i = 0; i < s->nconsumers; i++) {
		if (!consumer_is_idle(s->consumers[i]))
			return;
	}
	server_drain(s);
}

/* -- drain ------------------------------------------------------------------ */

static usec_t
server_longest_grace(const struct server *s)
{
	usec_t longest = 0;
	size_t i;

	for (i = 0; i < s->nconsumers; i++) {
		usec_t grace = consumer_config(s->consumers[i])->kill_grace;
		if (grace > longest)
			longest = grace;
	}
	return longest;
}

/* Ends the handlers that still run; their messages are returned.  Again: by SIGKILL. */
static void
server_end_handlers(struct server *s)
{
	bool again = s->state == SERVER_ENDING;
	size_t i;

	server_set_state(s, SERVER_ENDING);
	for (i = 0; i < s->nconsumers; i++)
		consumer_stop_handlers(s->consumers[i], again);
	if (!again)
		timer_set(&s->deadline, server_longest_grace(s) + GIVE_UP);
}

static bool
server_is_confirmed(const struct server *s)
{
	size_t i;

	for (i = 0; i < s->nconsumers; i++) {
		if (!consumer_is_confirmed(s->consumers[i]))
			return false;
	}
	return true;
}

/* The deadline of a state has passed.  Idle processes that are left are killed at the exit. */
static void
server_deadline(void *arg)
{
	struct server *s = arg;

	if (s->state == SERVER_DRAINING && server_in_flight(s) > 0) {
		server_end_handlers(s);
		return;
	}
	if (s->state == SERVER_DRAINING && !server_is_confirmed(s)) {
		server_set_state(s, SERVER_ENDING);
		timer_set(&s->deadline, GIVE_UP);
		return;
	}
	if (!server_is_confirmed(s))
		log_event(LOG_LV_WARN, "warning", NULL,
		    LF_STR("warning", "gave up waiting for Redis: "
		    "messages whose results are not confirmed run again when their leases end"));
	server_set_state(s, SERVER_STOPPED);
	loop_stop(s->loop);
}

static void
server_drain(struct server *s)
{
	size_t i;

	log_event(LOG_LV_INFO, "draining", NULL, LF_INT("running", server_in_flight(s)),
	    LF_USEC("timeout", s->config->drain_timeout));
	server_set_state(s, SERVER_DRAINING);
	notify("STOPPING=1");
	server_extend(s);
	timer_set(&s->deadline, s->config->drain_timeout);
	schedules_stop(s->schedules);
	if (s->nconsumers == 0)
		server_finish(s);
	for (i = 0; i < s->nconsumers; i++)
		consumer_drain(s->consumers[i]);
}

/* -- reload ----------------------------------------------------------------- */

static void
server_apply_step(struct server *s, const struct reload_step *step)
{
	struct consumer *c;

	switch (step->op) {
	case RELOAD_REMOVE:
		if ((c = server_find_consumer(s, step->from)) != NULL)
			consumer_drain(c);
		break;
	case RELOAD_ADD:
		server_add_consumer(s, step->to);
		break;
	case RELOAD_KEEP:
	case RELOAD_CHANGE:
		if ((c = server_find_consumer(s, step->from)) != NULL)
			consumer_reconfigure(c, s->config, step->to);
		break;
	}
}

/* Puts the new configuration into force.  What still uses the old one holds it. */
static void
server_apply(struct server *s, struct config *new, const struct reload_plan *plan)
{
	struct config *old = s->config;
	unsigned old_generation = old->generation;
	size_t i;

	s->config = new;
	if (s->launcher != NULL) {
		launcher_hold(s->launcher, new->generation);
		launch_config_borrow(s->launcher, new);
	}
	if (plan->log)
		settings_log(&s->config->log, s->options->debug);
	if (plan->http)
		monitor_listen(s->monitor, new->http.listen);
	for (i = 0; plan->restart[i] != NULL; i++)
		log_event(LOG_LV_WARN, "warning", NULL, LF_STR("section", plan->restart[i]),
		    LF_STR("warning", "changed, but needs a restart"));
	dispatcher_set_slots(s->dispatcher, (unsigned)new->max_handlers);
	settings_limits(new, s->conn, s->bulk);
	for (i = 0; i < plan->nsteps; i++)
		server_apply_step(s, &plan->steps[i]);
	schedules_reconfigure(s->schedules, new);
	config_unref(old);
	if (s->launcher != NULL)
		launcher_drop(s->launcher, old_generation);
}

static void
server_quiet(struct server *s, bool quiet)
{
	size_t i;

	log_event(LOG_LV_INFO, quiet ? "quiet" : "quiet_ended", NULL,
	    LF_INT("running", server_in_flight(s)));
	server_set_state(s, quiet ? SERVER_QUIET : SERVER_RUNNING);
	for (i = 0; i < s->nconsumers; i++)
		consumer_set_quiet(s->consumers[i], quiet);
	server_news_soon(s);
}

/* new: NULL where the report has errors. */
static void
server_take_config(struct server *s, struct config *new, const struct config_report *report)
{
	struct reload_plan plan;

	launch_config_log(report);
	s->reload_failed = new == NULL;
	if (new != NULL) {
		reload_plan(&plan, s->config, new);
		server_apply(s, new, &plan);
		reload_plan_done(&plan);
		log_event(LOG_LV_INFO, "reloaded", NULL,
		    LF_INT("queues", (int64_t)new->nqueues), LF_STR("config", new->hash));
		if (s->state == SERVER_QUIET)
			server_quiet(s, false);
	}
	notify("READY=1");
	server_news_soon(s);
	server_status(s);
}

static void	server_reload(struct server *);

/* The launcher has read it.  A shutdown may have begun. */
static void
server_loaded(struct launcher_loaded *loaded, void *arg)
{
	struct server *s = arg;
	struct config_report report = { 0 };
	struct config *new = launch_config_take(s->options->source, loaded, &report);
	unsigned generation = new != NULL ? new->generation : 0;
	bool again = s->load_again;

	s->loading = s->load_again = false;
	if (generation != 0)
		launcher_hold(s->launcher, generation);
	if (s->state == SERVER_RUNNING || s->state == SERVER_QUIET) {
		server_take_config(s, new, &report);
		if (again)
			server_reload(s);
	} else {
		config_unref(new);
	}
	/* Handlers hold it by now, and so does s->config. */
	if (generation != 0)
		launcher_drop(s->launcher, generation);
	config_report_done(&report);
}

static void
server_reload(struct server *s)
{
	struct config_report report = { 0 };
	struct config *new;

	if (s->loading) {
		s->load_again = true;
		return;
	}
	notify_reloading();
	if (s->launcher != NULL) {
		s->loading = true;
		launcher_load(s->launcher, server_loaded, s);
		return;
	}
	new = config_load(s->options->source, &report);
	server_take_config(s, new, &report);
	config_report_done(&report);
}

/* -- requests of rqctl -------------------------------------------------------- */

static void
server_on_quiet(bool quiet, void *arg)
{
	struct server *s = arg;

	if (s->state == (quiet ? SERVER_RUNNING : SERVER_QUIET))
		server_quiet(s, quiet);
}

/* Two consumers have one key while a reload drains one of them. */
static void
server_on_hint(const char *key, void (*fn)(struct consumer *), void *arg)
{
	struct server *s = arg;
	size_t i;

	for (i = 0; i < s->nconsumers; i++)
		if (strcmp(consumer_config(s->consumers[i])->key, key) == 0)
			fn(s->consumers[i]);
}

/* -- signals ---------------------------------------------------------------- */

static void
server_signal(int signo, void *arg)
{
	struct server *s = arg;

	switch (signo) {
	case SIGTERM:
	case SIGINT:
		if (s->state == SERVER_DRAINING || s->state == SERVER_ENDING)
			server_end_handlers(s);
		else if (s->state != SERVER_STOPPED)
			server_drain(s);
		break;
	case SIGHUP:
		if (s->state == SERVER_RUNNING || s->state == SERVER_QUIET)
			server_reload(s);
		break;
	case SIGUSR1:
		settings_log_reopen();
		break;
	case SIGUSR2:
		if (s->state == SERVER_RUNNING)
			server_quiet(s, true);
		break;
	default:
		break;
	}
}

static void
server_watch_signals(struct server *s)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(signals); i++)
		loop_signal(s->loop, signals[i], server_signal, s);
}

/* -- start and stop --------------------------------------------------------- */

static void
server_fill_envs(struct server *s)
{
	const struct config *config = s->boot;

	s->queue_env = (struct queue_env){
		.loop = s->loop, .conn = s->conn, .watch = s->watch,
		.bulk = s->bulk, .redis = &config->redis, .fleet = &s->heartbeat.fleet,
		.instance = s->instance, .host = config->name,
	};
	s->handler_env = handler_env_of(config);
	s->handler_env.loop = s->loop;
	s->handler_env.guardian = s->guardian;
	s->handler_env.launcher = s->launcher;
	s->consumer_env = (struct consumer_env){
		.loop = s->loop, .dispatcher = s->dispatcher, .queue = &s->queue_env,
		.handler = &s->handler_env, .closed = server_consumer_closed,
		.idle = server_consumer_idle, .blocked = server_news_soon, .arg = s,
	};
	s->heartbeat = (struct heartbeat){ .instance = s->instance, .started = clock_wall() };
}

/* The guardian kills all handlers if rqd dies; a launcher has one of its own. */
static void
server_start_guardian(struct server *s)
{
	s->launcher = s->options->launcher;
	if (s->launcher == NULL) {
		s->guardian = guardian_start(s->loop);
		return;
	}
	launcher_attach(s->launcher, s->loop, launch_config_lost, NULL);
	launcher_hold(s->launcher, s->config->generation);
}

static void
server_start(struct server *s)
{
	static const struct conn_events events = { server_conn_up, server_conn_down };
	static const struct control_events control = {
		server_on_quiet, server_on_hint, server_news_soon
	};
	struct config *config = s->config;
	size_t i;

	/* 1. The guardian, while the process is small. */
	s->loop = loop_new();
	child_init(s->loop);
	server_start_guardian(s);

	/* 2. Signals: from here on SIGTERM is a drain. */
	server_watch_signals(s);

	/* 3. Redis: nothing is sent before the loop runs. */
	redis_log_init(&s->redis_log, s->loop);
	s->conn = conn_new(s->loop, &config->redis, s->instance, 0, &events, s);
	s->bulk = bulk_new(s->loop, s->conn, &config->redis, s->instance);
	settings_limits(config, s->conn, s->bulk);
	s->watch = watch_new(s->loop, s->conn, &config->redis, s->instance,
	    redis_log_watch, s);
	s->control = control_new(s->loop, &config->redis, s->instance, &control, s);

	/* 4. Queues, handlers, schedules. */
	s->dispatcher = dispatcher_new(s->loop, (unsigned)config->max_handlers);
	server_fill_envs(s);
	for (i = 0; i < config->nqueues; i++) {
		if (config_consumes(config->queues[i]))
			server_add_consumer(s, config->queues[i]);
	}
	s->schedules = schedules_new(&s->queue_env, config);

	/* 5. Timers, with a random phase so that a fleet does not beat together. */
	timer_init(&s->pulse, s->loop, server_pulse, s);
	timer_init(&s->news, s->loop, server_news, s);
	timer_init(&s->deadline, s->loop, server_deadline, s);
	timer_init(&s->extend, s->loop, server_extend, s);
	timer_init(&s->watchdog, s->loop, server_watchdog, s);
	timer_set(&s->pulse, (usec_t)((double)HEARTBEAT_EVERY * (0.5 + random_unit() / 2)));
	if (notify_watchdog_interval() > 0)
		server_watchdog(s);

	/* 6. The HTTP listener. */
	s->monitor = monitor_new(s->loop, s->conn, config->name, server_look, s);

	/* 7. Go. */
	conn_start(s->conn);
	watch_start(s->watch);
	log_event(LOG_LV_INFO, "started", NULL, LF_STR("version", PACKAGE_VERSION),
	    LF_STR("instance", s->instance), LF_INT("pid", getpid()),
	    LF_INT("queues", (int64_t)config->nqueues), LF_STR("config", config->hash));
	if (config->nqueues == 0)
		log_event(LOG_LV_INFO, "idle", NULL, LF_STR("file", config->file));
	monitor_listen(s->monitor, config->http.listen);
	notify("READY=1");
	server_status(s);
}

static void
server_stop(struct server *s)
{
	size_t i;

	/* 0. The HTTP listener. */
	monitor_stop(s->monitor);

	/* 1. Schedules and queues. */
	schedules_free(s->schedules);
	for (i = 0; i < s->nconsumers; i++)
		consumer_free(s->consumers[i]);
	free(s->consumers);
	dispatcher_free(s->dispatcher);

	/* 2. Redis. */
	control_free(s->control);
	watch_free(s->watch);
	bulk_free(s->bulk);
	conn_free(s->conn);
	redis_log_done(&s->redis_log);
	monitor_free(s->monitor);

	/* 3. The guardian, which needs that no handler is left; then the loop. */
	timer_stop(&s->pulse);
	timer_stop(&s->news);
	timer_stop(&s->deadline);
	timer_stop(&s->extend);
	timer_stop(&s->watchdog);
	launch_config_borrow(NULL, NULL);
	guardian_stop(s->guardian);
	child_done(s->loop);
	launcher_stop(s->launcher);
	loop_free(s->loop);
	log_event(LOG_LV_INFO, "stopped", NULL, LF_STR("instance", s->instance));
	free(s->instance);
	config_unref(s->config);
	config_unref(s->boot);
}

int
server_run(const struct server_options *options, struct config *config)
{
	struct server s = { .options = options };

	s.config = config_ref(config);
	s.boot = config_ref(config);
	s.instance = heartbeat_instance(config->name);
	launch_config_borrow(options->launcher, s.config);
	settings_log(&s.config->log, options->debug);
	server_start(&s);
	launch_config_log(options->report);
	loop_run(s.loop);
	server_stop(&s);
	log_close();
	return EX_OK;
}
