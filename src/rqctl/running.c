/*
 * rqctl running: lists the deliveries in QBACKUP, the oldest leases first, with their fields of
 * QDELIVERY and their entries in heartbeats.  Before them it lists the batches whose messages
 * are all settled and whose processes still run; only heartbeats have those.
 */
#include <limits.h>
#include <string.h>

#include "base/units.h"
#include "rqctl/ask.h"
#include "rqctl/delivery.h"
#include "rqctl/listing.h"
#include "rqctl/picture.h"

struct running {
	struct listing	 list;
	struct picture	 picture;
	double		 now;
	int64_t		 unlisted;	/* messages in flight that no heartbeat lists */
};

/* One delivery, as far as it is known. */
struct entry {
	const char		*queue, *tag;
	size_t			 taglen, idlen;
	struct delivery_info		 delivery;	/* ours false: of a foreign consumer */
	const char		*daemon;	/* NULL: not known */
	int64_t			 pid;		/* 0: not known */
	const char		*progress;	/* "": none */
	double			 age;
};

static void
add_row(struct listing *l, const struct entry *e)
{
	const struct delivery_info *d = &e->delivery;
	json_t *o = listing_row(l);
	struct table *t = &l->table;
	char text[UNITS_TEXT_MAX];

	if (o != NULL) {
		json_set(o, "queue:s id:b tag:b attempt:j age:f daemon:s pid:j foreign:t", e->queue,
		    e->tag, e->idlen, e->tag, e->taglen,
		    d->ours ? json_integer(d->attempts + 1) : NULL, e->age, e->daemon,
		    e->pid > 0 ? json_integer(e->pid) : NULL, !d->ours);
		json_set(o, "progress:s cancelled:t", e->progress[0] != '\0' ? e->progress : NULL,
		    d->cancelled);
		return;
	}
	table_add(t, "%s", e->queue);
	table_bytes(t, e->tag, e->idlen);
	table_number(t, d->ours ? d->attempts + 1 : -1);
	table_add(t, "%s", units_age(e->age, text));
	if (e->pid > 0)
		table_add(t, "%lld", (long long)e->pid);
	else
		table_add(t, "-");
	table_add(t, "%s", e->daemon != NULL ? e->daemon : d->ours ? "?" : "(foreign)");
	table_add(t, "%s", e->progress[0] == '\0' && d->cancelled ? "(cancelled)" : e->progress);
}

/* score: that of the tag in QBACKUP; of a foreign delivery rqctl knows nothing else. */
static void
add_entry(struct running *r, const struct target *t, const char *tag, size_t len, double score,
    const struct delivery_info *d)
{
	struct entry e = {
		.queue = t->name, .tag = tag, .taglen = len, .delivery = *d,
		.idlen = d->ours && d->idlen <= len ? d->idlen : len
	};
	const struct daemon *by = NULL;
	const json_t *entry = NULL;

	if (d->ours)
		by = picture_holder(&r->picture.fleet, t, tag, len, &entry);
	e.daemon = by != NULL ? by->instance : d->instance[0] != '\0' ? d->instance : NULL;
	e.pid = fleet_count(entry, "pid");
	e.progress = fleet_text(entry, "progress");
	e.age = r->now - (d->ours && d->time > 0 ? d->time : score);
	if (e.age < 0)
		e.age = 0;
	add_row(&r->list, &e);
}

/* Adds a batch that still runs without messages. */
static void
add_settled(struct listing *l, const struct target *t, const struct daemon *by,
    const json_t *entry, double now)
{
	double age = now - by->seen + fleet_number(entry, "age", 0);
	int64_t pid = fleet_count(entry, "pid");
	json_t *o = listing_row(l);
	char text[UNITS_TEXT_MAX];

	if (o != NULL) {
		json_set(o, "queue:s age:f daemon:s pid:i settled:t", t->name, age, by->instance,
		    pid, true);
		return;
	}
	table_add(&l->table, "%s", t->name);
	table_add(&l->table, "-");
	table_number(&l->table, -1);
	table_add(&l->table, "%s", units_age(age > 0 ? age : 0, text));
	table_add(&l->table, "%lld", (long long)pid);
	table_add(&l->table, "%s", by->instance);
	table_add(&l->table, "(all settled, runs on)");
}

/* Lists the batches that still run without messages; returns how many there are. */
static int64_t
list_settled(struct running *r, const struct target *t)
{
	const struct fleet *f = &r->picture.fleet;
	const json_t *list, *entry;
	int64_t n = 0;
	size_t i, k;

	for (i = 0; i < f->n; i++) {
		list = json_object_get(fleet_queue(&f->daemons[i], t->key), "in_hand");
		json_array_foreach(list, k, entry)
		{
			if (fleet_is_delivery(entry))
				continue;
			n++;
			if (!listing_is_full(&r->list))
				add_settled(&r->list, t, &f->daemons[i], entry, r->now);
		}
	}
	return n;
}

/* Lists the oldest leases of one key.  Returns 0, or -1 after an error was reported. */
static int
list_leases(struct running *r, const struct target *t)
{
	struct ctl *c = r->list.ctl;
	struct redisReply *tags, *values;
	struct delivery_info d;
	const char *tag;
	size_t i, len;

	tags = ask(c, "ZRANGE %s 0 %lld WITHSCORES", t->keys.name[KEY_BACKUP],
	    (long long)listing_room(&r->list, LONG_MAX) - 1);
	values = reply_len(tags) > 0 ? delivery_fields(c, t, tags, 2) : NULL;
	for (i = 0; i < reply_len(values); i++) {
		delivery_parse(reply_str(reply_at(values, i), NULL), &d);
		tag = reply_str(reply_at(tags, 2 * i), &len);
		add_entry(r, t, tag != NULL ? tag : "", tag != NULL ? len : 0,
		    reply_double(reply_at(tags, 2 * i + 1), 0), &d);
	}
	blocking_reply_free(values);
	blocking_reply_free(tags);
	return c->status == 0 ? 0 : -1;
}

/* Lists the messages in flight of a kind without leases: only heartbeats have them. */
static void
list_beats(struct running *r, const struct target *t)
{
	const struct fleet *f = &r->picture.fleet;
	struct delivery_info d = { .ours = true };
	const json_t *queue, *list, *entry;
	const char *id;
	size_t i, k;

	for (i = 0; i < f->n; i++) {
		queue = fleet_queue(&f->daemons[i], t->key);
		list = json_object_get(queue, "in_hand");
		json_array_foreach(list, k, entry)
		{
			if (listing_is_full(&r->list))
				return;
			id = fleet_text(entry, "id");
			if (id[0] == '\0')
				id = fleet_text(entry, "id_base64");
			d.idlen = strlen(id);
			d.time = f->daemons[i].seen - fleet_number(entry, "age", 0);
			add_entry(r, t, id, strlen(id), d.time, &d);
		}
		if (fleet_count(queue, "running") > (int64_t)json_array_size(list))
			r->unlisted += fleet_count(queue, "running") -
			    (int64_t)json_array_size(list);
	}
}

static int
list_shards(struct running *r, struct target *t)
{
	int rc = 0;

	EACH_KEY(i, t)
		if (rc == 0 && !listing_is_full(&r->list))
			rc = list_leases(r, t);
	return rc;
}

/* Returns how many are in flight. */
static int64_t
list_all(struct running *r)
{
	const struct picture *p = &r->picture;
	int64_t total = 0;

	for (size_t i = 0; i < p->n && r->list.ctl->status == 0; i++) {
		total += p->depths[i].in_flight > 0 ? p->depths[i].in_flight : 0;
		total += list_settled(r, &p->targets[i]);
		if (listing_is_full(&r->list))
			continue;
		if (!kind_has(p->targets[i].kind, TRAIT_LEASES))
			list_beats(r, &p->targets[i]);
		else if (p->depths[i].in_flight > 0 && list_shards(r, &p->targets[i]) == -1)
			break;
	}
	return total;
}

void
running_run(struct ctl *c)
{
	struct running r = { .unlisted = 0 };
	int64_t total = 0;
	int rc;

	rc = listing_init(&r.list, c, "QUEUE|ID|>ATTEMPT|>AGE|>PID|DAEMON|PROGRESS");
	if (rc == 0 && picture_refresh(c) == 0 && (r.now = ask_time(c)) >= 0 &&
	    picture_take(c, &r.picture) == 0) {
		total = list_all(&r);
		picture_done(&r.picture);
	}
	listing_end(&r.list, total, "messages", "no message is in flight");
	if (r.unlisted > 0)
		ctl_note("%lld more are in flight: heartbeats do not list all of a queue without "
		    "leases", (long long)r.unlisted);
}
