/*
 * The JSON of /status; see status_json.h.
 */
#include "status/status_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <config.h>

#include "base/log.h"
#include "base/stats.h"
#include "base/util.h"
#include "status/json_bytes.h"
#include "status/state.h"

static void
set_text(json_t *o, const char *name, const char *text)
{
	json_set_bytes(o, name, text, strlen(text));
}

static json_t *
redis_json(const struct view *v)
{
	const struct conn_server *server = conn_server(v->conn);
	json_t *o = json_object();

	json_object_set_new(o, "up", json_boolean(conn_is_ready(v->conn)));
	set_text(o, "server", server != NULL ? server->address : "");
	set_text(o, "version", server != NULL ? server->version : "");
	set_text(o, "error", v->redis_error);
	return o;
}

/* This daemon, whatever Redis says. */
static json_t *
daemon_json(const struct view *v)
{
	json_t *o = json_object();

	set_text(o, "instance", v->instance);
	set_text(o, "name", v->config->name);
	set_text(o, "version", PACKAGE_VERSION);
	set_text(o, "state", v->state);
	set_text(o, "config", v->config->hash);
	json_object_set_new(o, "reload_failed", json_boolean(v->reload_failed));
	json_object_set_new(o, "pid", json_integer(getpid()));
	json_object_set_new(o, "started", json_real((double)(v->started / MSEC) / 1e3));
	json_object_set_new(o, "handlers", json_integer(dispatcher_taken(v->dispatcher)));
	json_object_set_new(o, "max_handlers", json_integer(v->config->max_handlers));
	if (log_failure() != NULL)
		set_text(o, "log_error", log_failure());
	json_object_set_new(o, "redis", redis_json(v));
	return o;
}

/* Of a heartbeat what a list of daemons shows; and its queues that do not just run. */
static json_t *
member_json(const struct daemon *d, double now)
{
	static const char *const copied[] = {
		"name", "version", "pid", "started", "config", "max_handlers", "log_error"
	};
	json_t *o = json_object(), *unusual = json_object(), *q;
	const char *name, *state;
	int64_t running = 0;
	size_t i, n = 0;

	set_text(o, "instance", d->instance);
	for (i = 0; i < ARRAY_LEN(copied); i++)
		json_object_set(o, copied[i], json_object_get(d->beat, copied[i]));
	json_object_foreach(json_object_get(d->beat, "queues"), name, q) {
		n++;
		running += fleet_count(q, "running");
		state = fleet_text(q, "state");
		if (state[0] != '\0' && strcmp(state, "running") != 0)
			json_object_set(unusual, name, json_object_get(q, "state"));
	}
	json_object_set_new(o, "queues", json_integer((json_int_t)n));
	json_object_set_new(o, "running", json_integer(running));
	json_object_set_new(o, "seen", json_real(now > d->seen ? now - d->seen : 0));
	json_object_set_new(o, "states", unusual);
	return o;
}

static json_t *
fleet_json(const struct view *v, const struct survey_result *r)
{
	json_t *list = json_array();
	double now = conn_redis_time(v->conn);
	size_t i;

	for (i = 0; i < r->fleet.n; i++)
		json_array_append_new(list, member_json(&r->fleet.daemons[i], now));
	return list;
}

static int
by_name(const void *va, const void *vb)
{
	const struct survey_queue *const *a = va, *const *b = vb;

	return strcmp((*a)->name, (*b)->name);
}

static json_t *
queue_json(const struct survey_queue *q, const struct survey_result *r)
{
	struct service service;
	struct facts facts = {
		.name = q->name, .keys = &q->keys, .kind = q->kind, .depth = &q->depth,
		.service = &service, .taken = r->taken,
	};
	json_t *o;

	fleet_service(&r->fleet, q->keys.name[KEY_QUEUE], &service);
	o = state_json(&facts);
	json_object_set_new(o, "own", json_boolean(q->own));
	return o;
}

static json_t *
queues_json(const struct survey_result *r)
{
	const struct survey_queue **sorted = xcalloc(r->n + 1, sizeof(*sorted));
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < r->n; i++)
		sorted[i] = &r->queues[i];
	qsort(sorted, r->n, sizeof(*sorted), by_name);
	for (i = 0; i < r->n; i++)
		json_array_append_new(list, queue_json(sorted[i], r));
	free(sorted);
	return list;
}

void
status_text(const struct view *v, const struct survey_result *r, struct buf *out)
{
	json_t *root = json_object();
	char when[CLOCK_TEXT_MAX], *text;

	set_text(root, "time", clock_text(r != NULL ? r->taken : clock_wall(), when));
	json_object_set_new(root, "daemon", daemon_json(v));
	json_object_set_new(root, "daemons", r != NULL ?
	    json_integer((json_int_t)r->fleet.n) : json_null());
	json_object_set_new(root, "ignored", json_integer(r != NULL ?
	    (json_int_t)r->fleet.ignored : 0));
	json_object_set_new(root, "fleet", r != NULL ? fleet_json(v, r) : json_null());
	json_object_set_new(root, "queues", r != NULL ? queues_json(r) : json_null());
	text = json_dumps(root, JSON_COMPACT);
	if (text == NULL)
		fatalx("cannot make JSON");
	buf_puts(out, text);
	buf_addc(out, '\n');
	free(text);
	json_decref(root);
}
