/*
 * rqctl queues, daemons: what is configured, and who works.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "rqctl/ask.h"
#include "rqctl/ask_fleet.h"
#include "rqctl/groups.h"
#include "rqctl/out.h"
#include "rqctl/picture.h"
#include "rqctl/table.h"

static json_t *
queue_json(const struct target *t)
{
	const struct queue_config *q = t->cfg;
	json_t *o = json_object(), *argv;
	char *const *word;

	out_set_bytes(o, "name", t->name, strlen(t->name));
	out_set_bytes(o, "key", t->keys.name[KEY_QUEUE], t->keys.len[KEY_QUEUE]);
	json_object_set_new(o, "kind", json_string(kind_name(t->kind)));
	if (q == NULL)
		return o;
	if (kind_has(q->kind, TRAIT_SUBSCRIBES)) {
		argv = json_array();
		for (word = q->keys; *word != NULL; word++)
			json_array_append_new(argv, out_element("word", *word, strlen(*word)));
		json_object_set_new(o, "channels", argv);
	}
	json_object_set_new(o, "mode", json_string(config_mode_name(q->mode)));
	json_object_set_new(o, "concurrency", json_integer(q->concurrency));
	json_object_set_new(o, "lease", kind_has(q->kind, TRAIT_LEASES) ?
	    json_real((double)q->lease / 1e6) : json_null());
	json_object_set_new(o, "max_attempts", json_integer(q->max_attempts));
	argv = json_array();
	for (word = q->command; word != NULL && *word != NULL; word++)
		json_array_append_new(argv, out_element("word", *word, strlen(*word)));
	json_object_set_new(o, "command", argv);
	out_set_bytes(o, "file", q->file, strlen(q->file));
	json_object_set_new(o, "line", json_integer(q->line));
	return o;
}

/* Q, or what the queue subscribes to. */
static void
key_cell(struct table *t, const struct target *target)
{
	const struct queue_config *q = target->cfg;
	struct buf names = BUF_INIT;
	size_t i;

	if (q == NULL || !kind_has(q->kind, TRAIT_SUBSCRIBES)) {
		table_add(t, "%s", target->keys.name[KEY_QUEUE]);
		return;
	}
	for (i = 0; q->keys[i] != NULL; i++)
		buf_printf(&names, "%s%s", i > 0 ? " " : "", q->keys[i]);
	table_bytes(t, names.data, names.len);
	buf_done(&names);
}

static void
queue_row(struct table *t, const struct target *target)
{
	const struct queue_config *q = target->cfg;
	char text[UNITS_TEXT_MAX];
	struct buf command = BUF_INIT;
	char *const *word;

	table_add(t, "%s", target->name);
	table_add(t, "%s", kind_name(target->kind));
	key_cell(t, target);
	if (q != NULL) {
		table_number(t, q->concurrency);
		if (kind_has(q->kind, TRAIT_LEASES))
			table_add(t, "%s", units_duration(q->lease, text));
		else
			table_add(t, "-");
		table_number(t, q->max_attempts);
		for (word = q->command; word != NULL && *word != NULL; word++)
			buf_printf(&command, "%s%s", command.len > 0 ? " " : "", *word);
	} else {
		table_add(t, "-");
		table_add(t, "-");
		table_add(t, "-");
	}
	table_bytes(t, command.data, command.len);
	buf_done(&command);
}

static void
list_queues(const struct ctl *c, const struct target *targets, size_t n)
{
	json_t *array = json_array();
	struct table t;
	size_t i;

	table_init(&t, "<QUEUE", "<KIND", "<KEY", ">AT ONCE", ">LEASE", ">ATTEMPTS", "<COMMAND",
	    NULL);
	for (i = 0; i < n; i++) {
		if (ctl_given(c, OPT_NAMES))
			out_escaped_line(targets[i].name);
		else if (ctl_given(c, OPT_JSON))
			json_array_append_new(array, queue_json(&targets[i]));
		else
			queue_row(&t, &targets[i]);
	}
	if (ctl_given(c, OPT_JSON))
		out_json(json_incref(array));
	else if (table_rows(&t) > 0)
		table_show(&t);
	json_decref(array);
	table_done(&t);
}

/* Those of the file need no Redis; without a file the daemons know them. */
void
queues_run(struct ctl *c)
{
	struct target *targets;
	struct picture p;
	size_t n;

	if (ctl_has_file(c)) {
		if ((targets = ctl_targets(c, 0, &n)) == NULL)
			return;
		list_queues(c, targets, n);
		ctl_targets_free(targets, n);
	} else if (picture_take(c, &p) == 0) {
		list_queues(c, p.targets, p.n);
		picture_done(&p);
	}
}

/* "orders mail(suspended)" */
static void
served_text(const struct daemon *d, struct buf *b)
{
	const char *name, *state;
	json_t *q;

	json_object_foreach(json_object_get(d->beat, "queues"), name, q) {
		state = fleet_text(q, "state");
		buf_printf(b, "%s%s", b->len > 0 ? " " : "", name);
		if (state[0] != '\0' && strcmp(state, "running") != 0)
			buf_printf(b, "(%s)", state);
	}
}

static void
daemon_row(struct table *t, const struct daemon *d, double now)
{
	struct buf served = BUF_INIT;
	double started = fleet_number(d->beat, "started", -1);
	char text[32];

	table_add(t, "%s", d->instance);
	table_add(t, "%s", fleet_text(d->beat, "version"));
	table_add(t, "%lld", (long long)fleet_count(d->beat, "pid"));
	table_add(t, "%s", out_age(started >= 0 ? now - started : -1, text));
	table_add(t, "%s", out_age(now > d->seen ? now - d->seen : 0, text));
	table_add(t, "%.8s", fleet_text(d->beat, "config"));
	served_text(d, &served);
	table_bytes(t, served.data, served.len);
	buf_done(&served);
}

/* Each queue about whose lease daemons disagree, once. */
static void
list_differences(const struct fleet *f)
{
	struct service s;
	const char *name, *key;
	json_t *q;
	size_t i, k;
	char *line;

	for (i = 0; i < f->n; i++)
		json_object_foreach(json_object_get(f->daemons[i].beat, "queues"), name, q) {
			key = fleet_text(q, "key");
			key = key[0] != '\0' ? key : name;
			for (k = 0; k < i && fleet_queue(&f->daemons[k], key) == NULL; k++)
				continue;
			fleet_service(f, key, &s);
			if (k < i || !s.leases_differ)
				continue;
			line = xasprintf("warning: daemons disagree about the lease of %s", name);
			out_escaped_line(line);
			free(line);
		}
}

static void
say_ignored(const struct fleet *f)
{
	if (f->ignored > 0)
		fprintf(stderr, "rqctl: %zu heartbeat%s too large or no heartbeat%s: not shown\n",
		    f->ignored, f->ignored == 1 ? " is" : "s are", f->ignored == 1 ? "" : "s");
}

void
daemons_run(struct ctl *c)
{
	json_t *array = json_array();
	struct fleet f;
	struct table t;
	double now = ask_time(c);
	size_t i;

	table_init(&t, "<DAEMON", "<VERSION", ">PID", ">UP", ">SEEN", "<CONFIG", "<QUEUES", NULL);
	if (now >= 0 && fleet_read(c, &f) == 0) {
		for (i = 0; i < f.n; i++) {
			json_object_set_new(f.daemons[i].beat, "seen",
			    json_real(f.daemons[i].seen));
			json_array_append(array, f.daemons[i].beat);
			daemon_row(&t, &f.daemons[i], now);
		}
		if (ctl_given(c, OPT_JSON))
			out_json(json_incref(array));
		else if (f.n > 0) {
			table_show(&t);
			list_differences(&f);
			say_ignored(&f);
		} else
			ctl_note(c, "no daemon is alive on %s", client_address(c->client));
		fleet_done(&f);
	}
	json_decref(array);
	table_done(&t);
}
