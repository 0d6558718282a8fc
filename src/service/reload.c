/*
 * Reloads; see reload.h.  reload_plan.c compares the two configurations.
 *
 *	IDLE --reload_begin()--> LOADING --reload_begin()--> AGAIN
 *	  ^                         |                          |
 *	  '-------- loaded ---------'<------ loaded -----------'   (it begins again)
 *
 *	any --reload_stop()--> STOPPED
 */
#include "service/reload.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/utf8.h"
#include "base/util.h"
#include "config/launch_config.h"
#include "loop/notify.h"
#include "service/reload_plan.h"
#include "service/settings.h"

#define RELOAD_ERROR_MAX	400	/* bytes */

enum reload_state { RELOAD_IDLE, RELOAD_LOADING, RELOAD_AGAIN, RELOAD_STOPPED };

struct reload {
	struct reload_env	 env;
	struct config		*config;	/* reference; the one in force */
	enum reload_state	 state;
	char			 error[RELOAD_ERROR_MAX + 1];	/* of the last one; "": none */
	struct defer		 load;		/* LOADING without a launcher */
};

static void
reload_set_state(struct reload *r, enum reload_state state)
{
	r->state = state;
}

static void
reload_step(struct reload *r, const struct reload_step *step)
{
	struct consumer *c;

	switch (step->op) {
	case RELOAD_REMOVE:
		if ((c = consumers_find(r->env.consumers, step->from)) != NULL)
			consumer_drain(c);
		break;
	case RELOAD_ADD:
		consumers_add(r->env.consumers, r->config, step->to);
		break;
	case RELOAD_KEEP:
	case RELOAD_CHANGE:
		if ((c = consumers_find(r->env.consumers, step->from)) != NULL)
			consumer_reconfigure(c, r->config, step->to,
			    step->op == RELOAD_KEEP);
		break;
	}
}

/*
 * Puts the new configuration into force.  Objects that still use the old one hold
 * references.
 */
static void
reload_apply(struct reload *r, struct config *new, const struct reload_plan *plan)
{
	const struct reload_env *env = &r->env;
	struct config *old = r->config;
	unsigned old_generation = old->generation;

	r->config = new;
	if (env->launcher != NULL) {
		launcher_hold(env->launcher, new->generation);
		launch_config_borrow(env->launcher, new);
	}
	if (plan->log)
		settings_log(&new->log, env->debug);
	if (plan->http)
		pages_listen(env->pages, new->http.listen);
	for (size_t i = 0; plan->restart[i] != NULL; i++)
		log_event(LOG_LV_WARN, "warning", NULL, LF_STR("section", plan->restart[i]),
		    LF_STR("warning", "changed, but needs a restart"));
	dispatcher_set_slots(env->dispatcher, (unsigned)new->max_handlers);
	settings_limits(new, env->nodes);
	for (size_t i = 0; i < plan->nsteps; i++)
		reload_step(r, &plan->steps[i]);
	schedules_reconfigure(env->schedules, new);
	config_unref(old);
	if (env->launcher != NULL)
		launcher_drop(env->launcher, old_generation);
}

/* Keeps the first error; the log has all. */
static void
set_error(struct reload *r, const struct config_report *report)
{
	char *text;

	r->error[0] = '\0';
	if (report->errors.n == 0)
		return;
	text = report->errors.n == 1 ? xstrdup(report->errors.v[0]) :
	    xasprintf("%zu errors, the first: %s", report->errors.n, report->errors.v[0]);
	utf8_copy_visible(r->error, RELOAD_ERROR_MAX, text, strlen(text));
	free(text);
}

/* new: NULL where the report has errors. */
static void
reload_take(struct reload *r, struct config *new, const struct config_report *report)
{
	struct reload_plan plan;

	launch_config_log(report);
	set_error(r, report);
	if (new != NULL) {
		reload_plan(&plan, r->config, new);
		reload_apply(r, new, &plan);
		reload_plan_done(&plan);
		log_event(LOG_LV_INFO, "reloaded", NULL,
		    LF_INT("queues", (int64_t)new->nqueues), LF_STR("config", new->hash));
	}
	r->env.ended(new != NULL, r->env.arg);
}

/* Ends a reload, unless a shutdown has begun. */
static void
reload_end(struct reload *r, struct config *new, const struct config_report *report)
{
	bool again = r->state == RELOAD_AGAIN;

	if (r->state == RELOAD_STOPPED) {
		config_unref(new);
		return;
	}
	reload_set_state(r, RELOAD_IDLE);
	reload_take(r, new, report);
	if (again)
		reload_begin(r);
}

/* The launcher has read the configuration. */
static void
reload_loaded(struct launcher_loaded *loaded, void *arg)
{
	struct reload *r = arg;
	struct config_report report = { 0 };
	struct config *new = launch_config_take(r->env.source, loaded, &report);
	unsigned generation = new != NULL ? new->generation : 0;

	if (generation != 0)
		launcher_hold(r->env.launcher, generation);
	reload_end(r, new, &report);
	/* Handlers hold it by now, and so does r->config. */
	if (generation != 0)
		launcher_drop(r->env.launcher, generation);
	config_report_done(&report);
}

static void
reload_load(void *arg)
{
	struct reload *r = arg;
	struct config_report report = { 0 };
	struct config *new = config_load(r->env.source, &report);

	reload_end(r, new, &report);
	config_report_done(&report);
}

void
reload_begin(struct reload *r)
{
	switch (r->state) {
	case RELOAD_IDLE:
		break;
	case RELOAD_LOADING:
		reload_set_state(r, RELOAD_AGAIN);
		return;
	case RELOAD_AGAIN:
	case RELOAD_STOPPED:
		return;
	}
	notify_reloading();
	reload_set_state(r, RELOAD_LOADING);
	if (r->env.launcher != NULL)
		launcher_load(r->env.launcher, reload_loaded, r);
	else
		loop_defer(r->env.loop, &r->load, reload_load, r);
}

void
reload_stop(struct reload *r)
{
	reload_set_state(r, RELOAD_STOPPED);
}

struct config *
reload_config(const struct reload *r)
{
	return r->config;
}

const char *
reload_error(const struct reload *r)
{
	return r->error;
}

struct reload *
reload_new(const struct reload_env *env, struct config *config)
{
	return NEW(struct reload, .env = *env, .config = config_ref(config));
}

void
reload_free(struct reload *r)
{
	if (r == NULL)
		return;
	loop_defer_cancel(r->env.loop, &r->load);
	config_unref(r->config);
	free(r);
}
