/* The JSON of /queue; see queue_json.h. */
#include "status/queue_json.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "status/advice.h"
#include "status/json_bytes.h"

/* A daemon that serves the queue, as its heartbeat has it. */
static json_t *
server_json(const struct daemon *d, const json_t *q)
{
	double since = fleet_number(q, "since", 0);
	const char *cause = fleet_text(q, "cause");

	return json_set(json_object(), "instance:s name:s version:s config:s running:i "
	    "concurrency:i lease:f state:s reason:s since:f cause:s", d->instance,
	    fleet_text(d->beat, "name"), fleet_text(d->beat, "version"),
	    fleet_text(d->beat, "config"), fleet_count(q, "running"),
	    fleet_count(q, "concurrency"), fleet_number(q, "lease", NAN), fleet_text(q, "state"),
	    fleet_text(q, "reason"), since > 0 ? since : NAN,
	    cause[0] != '\0' ? cause : NULL);
}

static int
by_instance(const void *a, const void *b)
{
	const struct daemon *const *x = a, *const *y = b;

	return strcmp((*x)->instance, (*y)->instance);
}

/* Sorted by name; the fleet is sorted by the latest heartbeat. */
static json_t *
servers_json(const struct survey_result *r, const char *key)
{
	const struct daemon **sorted = xcalloc(r->fleet.n + 1, sizeof(sorted[0]));
	json_t *list = json_array();
	size_t n = 0;

	for (size_t i = 0; i < r->fleet.n; i++)
		if (fleet_queue(&r->fleet.daemons[i], key) != NULL)
			sorted[n++] = &r->fleet.daemons[i];
	qsort(sorted, n, sizeof(sorted[0]), by_instance);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, server_json(sorted[i], fleet_queue(sorted[i], key)));
	free(sorted);
	return list;
}

/*
 * The command rqctl as one types it on this host, where it reads the default file by
 * itself.  For a queue that the file does not have it must run without a file.
 */
static void
add_rqctl(const struct view *v, bool named, struct buf *b)
{
	const char *server = nodes_is_cluster(v->nodes) ? v->config->redis.servers[0] :
	    nodes_server(v->nodes)->address;

	buf_puts(b, "rqctl");
	if (!named || v->config->file[0] == '\0') {
		buf_puts(b, " --server ");
		advice_word(b, server);
	} else if (strcmp(v->config->file, SYSCONFDIR "/rqd.conf") != 0) {
		buf_puts(b, " -c ");
		advice_word(b, v->config->file);
	}
}

/* An array of lines. */
static json_t *
lines_json(struct buf *text)
{
	json_t *list = json_array();
	char *rest = buf_str(text), *line;

	while ((line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0')
			json_array_append_new(list, json_string(line));
	return list;
}

/* The queue in this daemon's configuration; NULL: it has none with this name and key. */
static const struct queue_config *
config_of(const struct view *v, const struct survey_queue *q)
{
	const struct queue_config *cfg = config_queue(v->config, q->name);

	return cfg != NULL && strcmp(cfg->key, q->keys.name[KEY_QUEUE]) == 0 ? cfg : NULL;
}

static json_t *
commands_json(const struct view *v, const struct survey_queue *q, const struct facts *f,
    const json_t *dead)
{
	const struct queue_config *cfg = config_of(v, q);
	struct buf rqctl = BUF_INIT, text = BUF_INIT;
	struct advice advice = {
		.indent = "", .newest = fleet_text(json_object_get(dead, "newest"), "id"),
		.queue = cfg != NULL ? q->name : q->keys.name[KEY_QUEUE],
		.config = v->config, .cfg = cfg,
	};
	json_t *list;

	add_rqctl(v, cfg != NULL, &rqctl);
	advice.rqctl = buf_str(&rqctl);
	advice_commands(f, &advice, &text);
	list = lines_json(&text);
	buf_done(&rqctl);
	buf_done(&text);
	return list;
}

void
queue_text(const struct view *v, const struct survey_result *r, const struct survey_queue *q,
    const json_t *dead, struct buf *out)
{
	const char *key = q->keys.name[KEY_QUEUE];
	struct service service;
	struct facts f = survey_facts(q, r, &service);
	struct advice advice = { .config = v->config, .cfg = config_of(v, q) };
	char *hint = advice_hint(&f, &advice);
	json_t *o = state_json(&f);

	json_set(o, "hint:s servers:j commands:j letters:j", hint,
	    servers_json(r, key), commands_json(v, q, &f, dead),
	    json_incref((json_t *)(uintptr_t)dead));
	json_add_text(o, out);
	json_decref(o);
	free(hint);
}
