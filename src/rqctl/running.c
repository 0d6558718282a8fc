/*
 * rqctl running: the deliveries in QBACKUP, the oldest leases first, with what
 * QDELIVERY and the heartbeats say of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/reply.h"
#include "rqctl/ask.h"
#include "rqctl/ask_fleet.h"
#include "rqctl/delivery.h"
#include "rqctl/groups.h"
#include "rqctl/out.h"
#include "rqctl/picture.h"
#include "rqctl/table.h"

/* Whether an entry has all members of `want`: the tag, in the way that JSON has it. */
static bool
has(const json_t *entry, json_t *want)
{
	const char *name;
	json_t *value;

	json_object_foreach(want, name, value) {
		if (!json_equal(json_object_get(entry, name), value))
			return false;
	}
	return true;
}

/* The daemon that has the tag in hand, as its heartbeat says, and its entry. */
static const struct daemon *
holder(const struct fleet *f, const char *key, json_t *tag, const json_t **ret)
{
	const json_t *list;
	size_t i, k;

	for (i = 0; i < f->n; i++) {
		list = json_object_get(fleet_queue(&f->daemons[i], key), "in_hand");
		for (k = 0; k < json_array_size(list); k++) {
			*ret = json_array_get(list, k);
			if (has(*ret, tag))
				return &f->daemons[i];
		}
	}
	*ret = NULL;
	return NULL;
}

struct running {
	struct table	 table;
	json_t		*array;
	struct fleet	 fleet;
	double		 now;
	long		 left;		/* rows that may still be shown */
};

/* One delivery, as far as it is known. */
struct hand {
	const char		*queue, *tag;
	size_t			 taglen, idlen;
	const struct delivery	*delivery;	/* not ours: a foreign consumer's */
	const struct daemon	*by;		/* NULL: no heartbeat has it (yet) */
	int64_t			 pid;		/* 0: not known */
	double			 age;
};

/* NULL: not known. */
static const char *
hand_daemon(const struct hand *h)
{
	if (h->by != NULL)
		return h->by->instance;
	return h->delivery->instance[0] != '\0' ? h->delivery->instance : NULL;
}

static json_t *
hand_json(const struct hand *h)
{
	json_t *o = json_object();

	out_set_bytes(o, "queue", h->queue, strlen(h->queue));
	out_set_bytes(o, "id", h->tag, h->idlen);
	out_set_bytes(o, "tag", h->tag, h->taglen);
	json_object_set_new(o, "attempt", h->delivery->ours ?
	    json_integer(h->delivery->attempts + 1) : json_null());
	json_object_set_new(o, "age", json_real(h->age));
	json_object_set_new(o, "daemon", hand_daemon(h) != NULL ?
	    json_string(hand_daemon(h)) : json_null());
	json_object_set_new(o, "pid", h->pid > 0 ? json_integer(h->pid) : json_null());
	json_object_set_new(o, "foreign", json_boolean(!h->delivery->ours));
	return o;
}

static void
hand_row(struct table *t, const struct hand *h)
{
	char text[32];

	table_add(t, "%s", h->queue);
	table_bytes(t, h->tag, h->idlen);
	if (h->delivery->ours)
		table_number(t, h->delivery->attempts + 1);
	else
		table_add(t, "-");
	table_add(t, "%s", out_age(h->age, text));
	if (h->pid > 0)
		table_add(t, "%lld", (long long)h->pid);
	else
		table_add(t, "-");
	table_add(t, "%s", hand_daemon(h) != NULL ? hand_daemon(h) :
	    h->delivery->ours ? "?" : "(foreign)");
}

/* score: of QBACKUP, all that is known of a foreign one. */
static void
running_add(struct running *r, const struct target *t, const char *tag, size_t len, double score,
    const struct delivery *d)
{
	json_t *want = json_object();
	const json_t *entry = NULL;
	struct hand h = {
		.queue = t->name, .tag = tag, .taglen = len, .delivery = d,
		.idlen = d->ours && d->idlen <= len ? d->idlen : len
	};

	out_set_bytes(want, "tag", tag, len);
	h.by = d->ours ? holder(&r->fleet, t->keys.name[KEY_QUEUE], want, &entry) : NULL;
	json_decref(want);
	h.pid = fleet_count(entry, "pid");
	h.age = r->now - (d->ours && d->time > 0 ? d->time : score);
	if (h.age < 0)
		h.age = 0;
	if (r->array != NULL)
		json_array_append_new(r->array, hand_json(&h));
	else
		hand_row(&r->table, &h);
}

/* The oldest leases of one queue, and what QDELIVERY says of them. */
static int
running_queue(struct ctl *c, struct running *r, const struct target *t)
{
	struct redisReply *tags, *values = NULL;
	struct words w = { 0 };
	struct delivery d;
	char last[24];
	const char *tag;
	size_t n, i, len;

	snprintf(last, sizeof(last), "%ld", r->left - 1);
	tags = ask(c, "ZRANGE", t->keys.name[KEY_BACKUP], "0", last, "WITHSCORES", NULL);
	if (tags == NULL)
		return -1;
	n = reply_len(tags) / 2;
	if (n > 0) {
		words_add(&w, "HMGET");
		words_add(&w, t->keys.name[KEY_DELIVERY]);
		for (i = 0; i < n; i++) {
			tag = reply_str(reply_at(tags, 2 * i), &len);
			words_mem(&w, tag != NULL ? tag : "", tag != NULL ? len : 0);
		}
		values = ask_words(c, &w);
	}
	for (i = 0; values != NULL && i < n; i++, r->left--) {
		delivery_parse(reply_str(reply_at(values, i), NULL), &d);
		running_add(r, t, w.v[i + 2], w.len[i + 2],
		    reply_double(reply_at(tags, 2 * i + 1), 0), &d);
	}
	words_done(&w);
	client_reply_free(values);
	client_reply_free(tags);
	return c->status == 0 ? 0 : -1;
}

/* Of kinds without leases: what daemons said in their last heartbeat. */
static void
running_told(struct running *r, const struct target *t)
{
	struct delivery d = { .ours = true };
	const json_t *entry;
	const char *id;
	size_t i, k;

	for (i = 0; i < r->fleet.n; i++) {
		const json_t *q = fleet_queue(&r->fleet.daemons[i], t->keys.name[KEY_QUEUE]);

		json_array_foreach(json_object_get(q, "in_hand"), k, entry) {
			if (r->left == 0)
				return;
			r->left--;
			id = fleet_text(entry, "id");
			if (id[0] == '\0')	/* better than nothing */
				id = fleet_text(entry, "id_base64");
			d.idlen = strlen(id);
			d.time = r->fleet.daemons[i].seen - fleet_number(entry, "age", 0);
			running_add(r, t, id, strlen(id), d.time, &d);
		}
	}
}

static void
running_show(struct ctl *c, struct running *r)
{
	if (c->status != 0)
		return;
	if (r->array != NULL)
		out_json(json_incref(r->array));
	else if (table_rows(&r->table) > 0)
		table_show(&r->table);
	else
		ctl_note(c, "nothing is running");
}

void
running_run(struct ctl *c)
{
	struct running r = { .left = 100 };
	int64_t running = 0;
	long most;
	struct picture p;
	size_t i;

	if (ctl_list_count(c, &r.left) == -1 || (r.now = ask_time(c)) < 0 ||
	    picture_take(c, &p) == -1)
		return;
	most = r.left;
	table_init(&r.table, "<QUEUE", "<ID", ">ATTEMPT", ">AGE", ">PID", "<DAEMON", NULL);
	r.array = ctl_given(c, OPT_JSON) ? json_array() : NULL;
	r.fleet = p.fleet;
	for (i = 0; i < p.n && r.left > 0; i++)
		if (!kind_has(p.targets[i].kind, TRAIT_LEASES))
			running_told(&r, &p.targets[i]);
		else if (p.depths[i].in_flight > 0 && running_queue(c, &r, &p.targets[i]) == -1)
			break;
	running_show(c, &r);
	for (i = 0; i < p.n; i++)
		running += p.depths[i].in_flight > 0 ? p.depths[i].in_flight : 0;
	if (c->status == 0 && r.left == 0)
		ctl_list_cut(c, most, running, "messages");
	json_decref(r.array);
	table_done(&r.table);
	picture_done(&p);
}
