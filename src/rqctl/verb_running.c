/*
 * rqctl running: lists the deliveries in QBACKUP, the oldest leases first, with their fields of
 * QDELIVERY and their entries in heartbeats.  Before them it lists the batches whose messages
 * are all settled and whose processes still run; only heartbeats have those.
 */
#include <string.h>

#include "rqctl/listing.h"
#include "rqctl/snapshot.h"
#include "rqctl/waiting.h"

struct running {
	struct listing	 list;
	struct snapshot	 snapshot;
	double		 now;		/* by the clock of those that are listed */
	int64_t		 unlisted;	/* messages in flight that no heartbeat lists */
};

/*
 * Lists one delivery, as far as it is known.  score: that of the tag in QBACKUP; of a foreign
 * delivery rqctl knows nothing else.  by: the daemon whose heartbeat has this entry, or NULL.
 */
static void
list_delivery(struct running *r, const struct target *t, const char *tag, size_t len,
    double score, const struct delivery_info *d, const struct daemon *by, const json_t *entry)
{
	const char *daemon = null_if_empty(d->instance), *shown = "(foreign)";
	const char *progress = fleet_text(entry, "progress");
	size_t idlen = len;
	double since = score;
	int64_t pid = fleet_count(entry, "pid");
	json_t *attempt = NULL, *process = NULL;
	struct buf note = BUF_INIT;

	if (by != NULL)
		daemon = by->instance;
	if (daemon != NULL)
		shown = daemon;
	else if (d->ours)
		shown = "?";
	if (d->ours && d->idlen <= len)
		idlen = d->idlen;
	if (d->ours && d->time > 0)
		since = d->time;
	if (d->ours)
		attempt = json_integer(d->attempts + 1);
	if (pid > 0)
		process = json_integer(pid);
	if (progress[0] == '\0' && d->cancelled)
		buf_puts(&note, "(cancelled)");
	else
		buf_puts(&note, progress);
	if (d->saved != NULL)
		buf_printf(&note, "%s(saved %s)", text_if(note.len > 0, " "),
		    d->saved);
	listing_row(&r->list, json_set(json_object(), "queue:s id:b tag:b "
	    "attempt:j age:f daemon:s pid:j foreign:t progress:s saved:s "
	    "cancelled:t .daemon:s .progress:b", t->name, tag, idlen, tag, len,
	    attempt, double_max(r->now - since, 0), daemon, process, !d->ours,
	    null_if_empty(progress), d->saved, d->cancelled, shown,
	    buf_str(&note), note.len));
	buf_done(&note);
}

/* Lists the leases of one key, the oldest first.  Returns 0, or -1 after an error was reported. */
static int
list_leases(struct running *r, const struct target *t)
{
	struct visit v = {
		.ctl = r->list.ctl, .target = t, .at = { .key = KEY_BACKUP }
	};
	json_t *tags = json_object();	/* that were listed */
	const struct daemon *by;
	const json_t *entry;
	struct buf tag = BUF_INIT;
	struct waiting m;

	while (!listing_is_full(&r->list) && visit_next(&v, &m)) {
		r->now = v.now;
		/* A renewal moves a lease to the end: it may be on a later page, too. */
		buf_clear(&tag);
		out_escape(&tag, m.tag, m.taglen);
		if (json_object_get(tags, buf_str(&tag)) != NULL)
			continue;
		json_object_set_new_nocheck(tags, buf_str(&tag), json_true());
		by = NULL;
		entry = NULL;
		if (m.delivery.ours)
			by = snapshot_holder(&r->snapshot.fleet, t, m.tag, m.taglen, &entry);
		list_delivery(r, t, m.tag, m.taglen, m.score, &m.delivery, by, entry);
	}
	buf_done(&tag);
	json_decref(tags);
	return visit_end(&v);
}

/*
 * Lists what only heartbeats have: batches that go on without messages, and the messages in
 * flight of a kind without leases.  Returns how many batches there are.
 */
static int64_t
list_beats(struct running *r, const struct target *t)
{
	const struct fleet *f = &r->snapshot.fleet;
	bool leases = kind_has(t->kind, TRAIT_LEASES), batch;
	struct delivery_info d = { .ours = true };
	const json_t *queue, *list, *entry;
	const char *id, *daemon;
	int64_t n = 0, running, listed;
	size_t i, k;
	double age;

	for (i = 0; i < f->n; i++) {
		daemon = f->daemons[i].instance;
		queue = fleet_queue(&f->daemons[i], t->key);
		list = json_object_get(queue, "in_hand");
		json_array_foreach(list, k, entry) {
			batch = !fleet_is_delivery(entry);
			n += batch;
			if (listing_is_full(&r->list) || (leases && !batch))
				continue;
			d.time = f->daemons[i].seen - fleet_number(entry, "age", 0);
			age = double_max(r->now - d.time, 0);
			id = fleet_text(entry, "id");
			if (id[0] == '\0')
				id = fleet_text(entry, "id_base64");
			d.idlen = strlen(id);
			if (!batch)
				list_delivery(r, t, id, d.idlen, d.time, &d, &f->daemons[i], entry);
			else
				listing_row(&r->list, json_set(json_object(), "queue:s age:f "
				    "daemon:s pid:i settled:t .daemon:s .progress:s", t->name, age,
				    daemon, fleet_count(entry, "pid"), true, daemon,
				    "(all settled, runs on)"));
		}
		running = fleet_count(queue, "running");
		listed = (int64_t)json_array_size(list);
		if (!leases)
			r->unlisted += int64_max(running - listed, 0);
	}
	return n;
}

static void
running_run(struct ctl *c)
{
	struct running r = { .unlisted = 0 };
	const struct snapshot *p = &r.snapshot;
	int64_t total = 0;
	double beats;		/* heartbeats have a master of their own */
	int rc;

	rc = listing_init(&r.list, c, "QUEUE=queue|ID=id|>ATTEMPT=attempt|>AGE=age|>PID=#pid|"
	    "DAEMON=.daemon|PROGRESS=.progress");
	if (rc == 0 && snapshot_refresh(c) == 0 &&
	    (beats = ask_time_of(c, KEYS_DAEMONS)) >= 0 &&
	    snapshot_take(c, &r.snapshot) == 0) {
		for (size_t i = 0; i < p->n && c->status == 0; i++) {
			r.now = beats;
			total += int64_max(p->depths[i].in_flight, 0);
			total += list_beats(&r, &p->targets[i]);
			EACH_KEY(k, &p->targets[i])
				if (rc == 0 && p->depths[i].in_flight != 0 &&
				    kind_has(p->targets[i].kind, TRAIT_LEASES))
					rc = list_leases(&r, &p->targets[i]);
		}
		snapshot_done(&r.snapshot);
	}
	listing_end(&r.list, total, "messages", "no message is in flight");
	if (r.unlisted > 0)
		ctl_note("%lld more are in flight: heartbeats do not list all of a queue without "
		    "leases", (long long)r.unlisted);
}

const struct verb verb_running = {
	.name = "running",
	.args = "[QUEUE...]",
	.help = "list messages in flight, and their progress",
	.options = OPTS_LIST,
	.max_args = -1,
	.flags = VERB_JSON | VERB_QUEUES,
	.run = running_run,
	.rows = 100,
};
