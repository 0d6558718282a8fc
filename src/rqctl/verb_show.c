/*
 * rqctl show: the place of one message, and its history.
 *
 * Redis has no index by id, and rqctl does not search without bound.  It looks up the id as a
 * tag.  It searches for further messages with this id (tags id#...) in the heartbeats, the
 * next retries and the next held messages, then the next waiting messages, then the latest
 * dead letters.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "policy/message.h"
#include "rqctl/letters.h"
#include "rqctl/out.h"
#include "rqctl/snapshot.h"
#include "rqctl/waiting.h"

#define NEXT		1000		/* waiting messages and retries to search */
#define LATEST		10000		/* dead letters to search */
#define SHOWN		4096		/* bytes of a message */

struct show {
	struct ctl	*ctl;
	const char	*id;
	struct fleet	 fleet;
	double		 now;
	json_t		*places;	/* with --json */
	int		 found;
};

/* Prints one place of the message: a line and the message itself, or JSON, or its bytes. */
static void
place(struct show *s, const char *name, json_t *facts, const char *line, const char *data,
    size_t len)
{
	struct buf b = BUF_INIT;

	s->found++;
	if (ctl_given(s->ctl, OPT_RAW)) {
		if (s->found == 1)
			fwrite(data, 1, len, stdout);
	} else if (s->places != NULL) {
		json_array_append(s->places, json_set(facts, "place:s message:b", name, data, len));
	} else {
		out_line(NULL, "%-8s %s", name, line);
		out_escape(&b, data, size_min(len, SHOWN));
		printf("    %s%s\n", buf_str(&b), text_if(len > SHOWN, "..."));
	}
	json_decref(facts);
	buf_done(&b);
}

/* Adds which message a held one waits behind: the first with a place (see groups.lua). */
static void
add_holder(struct show *s, const char *tag, struct buf *b, json_t *facts)
{
	char *const *key = s->ctl->target.keys.name;
	struct redisReply *group = ask(s->ctl, "HGET %s %s", key[KEY_GROUP], tag), *row;
	const char *name = reply_str(group, NULL), *text;
	struct buf from = BUF_INIT, to = BUF_INIT;
	struct delivery_info d;
	struct words w;
	size_t len;

	if (name == NULL || s->ctl->status != 0) {
		reply_free(group);
		return;
	}
	json_set(facts, "group:s", name);
	w = ask_format("ZRANGEBYLEX %s", key[KEY_ORDER]);
	buf_printf(&from, "[%s%c", name, '\0');
	buf_printf(&to, "(%s%c1", name, '\0');
	words_mem(&w, from.data, from.len);
	words_mem(&w, to.data, to.len);
	ask_add(&w, "LIMIT 0 1");
	row = ask_words(s->ctl, &w);
	buf_done(&from);
	buf_done(&to);
	text = reply_str(reply_at(row, 0), &len);
	if (text != NULL && len > strlen(name) + 3) {
		text += strlen(name) + 3;
		reply_free(group);
		group = ask(s->ctl, "HGET %s %s", key[KEY_DELIVERY], text);
		delivery_parse(reply_str(group, NULL), &d);
		len = strlen(text);
		if (d.ours)
			len = size_min(len, d.idlen);
		buf_printf(b, ", waits behind %.*s", (int)len, text);
		json_set(facts, "behind:b", text, len);
	}
	reply_free(row);
	reply_free(group);
}

/* Shows a tag that is in flight, a retry or held.  0, also if it is neither; -1 after an error. */
static int
show_tag(struct show *s, const char *tag)
{
	enum { IN_BACKUP, IN_RETRY, IN_HELD, IN_DELIVERY, IN_CONTEXT, SAVED, N };
	char *const *key = s->ctl->target.keys.name;
	const struct { const char *command; enum key key; } ask[SAVED] = {
		{ "ZSCORE", KEY_BACKUP }, { "ZSCORE", KEY_RETRY }, { "ZSCORE", KEY_HELD },
		{ "HGET", KEY_DELIVERY }, { "HGET", KEY_CONTEXT }
	};
	struct redisReply *r[N] = { NULL };
	struct buf b = BUF_INIT;
	struct delivery_info d;
	double in_backup, in_retry, in_held, since;
	const char *data, *error, *progress, *saved, *name;
	char text[UNITS_TEXT_MAX];
	const json_t *entry;
	json_t *facts;
	size_t len, savedlen, i;

	for (i = 0; i < SAVED; i++)
		if (ask_append(s->ctl, "%s %s %s", ask[i].command, key[ask[i].key], tag) == -1)
			return -1;
	buf_printf(&b, "%s%csaved", tag, '\0');
	if (ask_append(s->ctl, "HGET %s %.*s", key[KEY_CONTEXT], (int)b.len, b.data) == -1)
		return -1;
	buf_clear(&b);
	for (i = 0; i < N; i++)
		if ((r[i] = ask_next(s->ctl)) == NULL)
			break;
		else if (reply_error(r[i]) != REPLY_OK)
			ask_refused(s->ctl, r[i]);
	in_backup = reply_double(r[IN_BACKUP], -1);
	in_retry = reply_double(r[IN_RETRY], -1);
	in_held = reply_double(r[IN_HELD], -1);
	if (s->ctl->status != 0 || (in_backup < 0 && in_retry < 0 && in_held < 0))
		goto end;
	delivery_parse(reply_str(r[IN_DELIVERY], NULL), &d);
	if ((data = reply_str(r[IN_CONTEXT], &len)) == NULL)
		data = "", len = 0;

	/* "tag 42#x, attempt 2 (1 crash)" */
	facts = json_set(json_object(), "tag:s", tag);
	buf_printf(&b, "tag %s", tag);
	if (d.ours) {
		buf_printf(&b, ", attempt %ld", d.attempts + 1);
		if (d.crashes > 0)
			buf_printf(&b, " (%ld crash%s)", d.crashes,
			    text_if(d.crashes != 1, "es"));
		json_set(facts, "attempt:i crashes:i", (int64_t)d.attempts + 1,
		    (int64_t)d.crashes);
	} else
		buf_puts(&b, ", delivered to a foreign consumer");
	if (d.cancelled) {
		buf_printf(&b, ", cancelled%s%s",
		    text_if(d.by[0] != '\0', " by "), d.by);
		json_set(facts, "cancelled:t cancelled_by:s", true,
		    null_if_empty(d.by));
	}

	/* Since when it runs, or when it is due. */
	if (in_backup >= 0) {
		name = "running";
		since = in_backup;
		if (d.ours && d.time > 0)
			since = d.time;
		buf_printf(&b, ", for %s",
		    units_age(double_max(s->now - since, 0), text));
		json_set(facts, "age:f", s->now - since);
	} else if (in_retry < 0) {
		name = "held";
		buf_printf(&b, ", held for %s", units_age(s->now - in_held, text));
		json_set(facts, "age:f", s->now - in_held);
		add_holder(s, tag, &b, facts);
	} else {
		name = "retry";
		if (in_retry > s->now)
			buf_printf(&b, ", due in %s", units_age(in_retry - s->now, text));
		else
			buf_puts(&b, ", due now");
		if (d.owned)
			buf_puts(&b, ", its lease ended while it ran");
		json_set(facts, "due:f", in_retry);
	}

	(void)snapshot_holder(&s->fleet, &s->ctl->target, tag, strlen(tag), &entry);
	progress = fleet_text(entry, "progress");
	if (progress[0] != '\0') {
		buf_printf(&b, ", progress: %s", progress);
		json_set(facts, "progress:s", progress);
	}
	error = fleet_error(&s->fleet, s->ctl->target.key, tag, strlen(tag),
	    d.attempts);
	if (error[0] != '\0') {
		buf_puts(&b, ", last error: ");
		out_escape(&b, error, strlen(error));
		json_set(facts, "error:s", error);
	}
	if (d.saves && (saved = reply_str(r[SAVED], &savedlen)) != NULL) {
		buf_puts(&b, ", saved: ");
		out_escape(&b, saved, savedlen);
		json_set(facts, "saved:b", saved, savedlen);
	}
	place(s, name, facts, buf_str(&b), data, len);
end:
	for (i = 0; i < N; i++)
		reply_free(r[i]);
	buf_done(&b);
	if (s->ctl->status != 0)
		return -1;
	return 0;
}

/* "42#x" is a further delivery of "42". */
static bool
is_further(const char *tag, const char *id)
{
	size_t n = strlen(id);

	return strncmp(tag, id, n) == 0 && tag[n] == '#';
}

/* Shows the tag itself, and further deliveries that heartbeats list or that are due next. */
static int
show_deliveries(struct show *s)
{
	const struct target *t = &s->ctl->target;
	static const enum key keys[] = { KEY_RETRY, KEY_HELD };
	size_t i, k;
	const json_t *entry;
	struct waiting m;
	int rc = show_tag(s, s->id);

	for (i = 0; i < s->fleet.n; i++)
		json_array_foreach(json_object_get(fleet_queue(&s->fleet.daemons[i], t->key),
		    "in_hand"), k, entry)
			if (rc == 0 && is_further(fleet_text(entry, "tag"), s->id))
				rc = show_tag(s, fleet_text(entry, "tag"));
	for (size_t part = 0; part < ARRAY_LEN(keys); part++) {
		struct visit v = {
			.ctl = s->ctl, .target = t, .at = { .key = keys[part] },
			.most = NEXT
		};

		while (rc == 0 && visit_next(&v, &m))
			if (is_further(m.tag, s->id))
				rc = show_tag(s, m.tag);
		if (visit_end(&v) == -1)
			rc = -1;
	}
	return rc;
}

/* Shows an id that waits in the zset of kind "unique". */
static void
show_id(struct show *s, const struct waiting *m)
{
	double due = waiting_due(m);
	char line[64], text[WAITING_DUE_MAX];

	waiting_due_text(due, s->now, text);
	if (isinf(due) && due > 0)
		snprintf(line, sizeof(line), "%s due", text);
	else
		snprintf(line, sizeof(line), "due %s", text);
	place(s, "waiting", json_set(json_object(), "due:f", due), line, m->data, m->len);
}

static int
show_waiting(struct show *s)
{
	const struct target *t = &s->ctl->target;
	struct visit v = {
		.ctl = s->ctl, .target = t, .at = { .key = KEY_QUEUE },
		.cut = WAITING_CUT, .most = NEXT
	};
	char id[MESSAGE_ID_MAX + 1], line[64];
	int found = s->found;
	struct redisReply *reply;
	struct waiting m;

	while (t->source != SOURCE_STREAM && visit_next(&v, &m)) {
		if (strcmp(waiting_id(t, &m, id), s->id) != 0)
			continue;
		if (t->source == SOURCE_IDS) {
			show_id(s, &m);
			continue;
		}
		snprintf(line, sizeof(line), "number %lld in line", (long long)v.n);
		place(s, "waiting", json_set(json_object(), "number:i", v.n),
		    line, m.data, m.len);
	}
	if (visit_end(&v) == -1)
		return -1;
	if (t->source != SOURCE_IDS || s->found > found)
		return 0;
	/* It may be farther behind: a zset finds it by itself. */
	if ((reply = ask(s->ctl, "ZSCORE %s %s", t->keys.name[KEY_QUEUE], s->id)) == NULL)
		return -1;
	m = (struct waiting){ .data = s->id, .len = strlen(s->id),
		.score = reply_double(reply, 0) };
	if (reply_str(reply, NULL) != NULL)
		show_id(s, &m);
	reply_free(reply);
	return 0;
}

static int
show_letters(struct show *s)
{
	struct select select = { .ids = &s->id, .nids = 1, .reason = "", .match = "" };
	struct buf b = BUF_INIT, usage = BUF_INIT;
	struct letters l;
	struct letter letter;
	const struct bytes *message, *reason, *attempts;
	char text[UNITS_TEXT_MAX];
	json_t *facts;
	double age;
	int n, i;

	letters_init(&l, s->ctl, &select);
	l.newest = true;
	while (l.looked < LATEST && (n = letters_next(&l)) >= 0)
		for (i = 0; i < n; i++) {
			letters_get(&l, i, &letter);
			message = &letter.field[FIELD_MESSAGE];
			reason = &letter.field[FIELD_REASON];
			attempts = &letter.field[FIELD_ATTEMPTS];
			age = s->now - letter.died;
			facts = json_set(json_object(), "letter:b age:f",
			    letter.name.data, letter.name.len, age);
			buf_clear(&b);
			buf_printf(&b, "letter %.*s, %s ago", (int)letter.name.len,
			    letter.name.data,
			    units_age(double_max(age, 0), text));
			if (reason->data != NULL) {
				buf_printf(&b, ", reason %.*s", (int)reason->len, reason->data);
				json_set(facts, "reason:b", reason->data, reason->len);
			}
			if (attempts->data != NULL) {
				buf_printf(&b, ", attempts %.*s", (int)attempts->len,
				    attempts->data);
				json_set(facts, "attempts:i", (int64_t)atoll(attempts->data));
			}
			buf_clear(&usage);
			if (letter_usage(&letter, facts, &usage))
				buf_printf(&b, ", %s", buf_str(&usage));
			place(s, "dead", facts, buf_str(&b),
			    or_empty(message->data), message->len);
		}
	letters_done(&l);
	buf_done(&b);
	buf_done(&usage);
	if (s->ctl->status != 0)
		return -1;
	return 0;
}

/* Shows an entry that rqd has not taken, with its state in the consumer group. */
static int
show_entry(struct show *s)
{
	const char *group = keys_group(&s->ctl->target.keys), *state, *data;
	char line[256] = "not delivered yet", text[UNITS_TEXT_MAX];
	struct redisReply *reply = waiting_entry(s->ctl, s->id);
	size_t len;

	if (reply == NULL)
		return -1;
	state = reply_str_at(reply, ENTRY_STATE);
	data = reply_str(reply_at(reply, ENTRY_MESSAGE), &len);
	if (strcmp(state, "pending") == 0)
		snprintf(line, sizeof(line), "for consumer %.150s, idle for %s, delivery %lld",
		    reply_str_at(reply, ENTRY_CONSUMER),
		    units_age((double)reply_int_at(reply, ENTRY_IDLE) / 1e3, text),
		    (long long)reply_int_at(reply, ENTRY_DELIVERIES));
	else if (strcmp(state, "done") == 0)
		snprintf(line, sizeof(line), "in the stream, acknowledged");
	if (state[0] != '\0')
		place(s, state, json_set(json_object(), "group:s", group), line, data, len);
	reply_free(reply);
	return 0;
}

static void
show_run(struct ctl *c)
{
	struct show s = { .ctl = c, .id = c->args.words[1] };
	int rc = 0;

	if (snapshot_refresh(c) == -1 || snapshot_fleet(c, &s.fleet) == -1)
		return;
	if (ctl_given(c, OPT_JSON))
		s.places = json_array();
	EACH_KEY(i, &c->target) {
		if (rc == 0)
			s.now = ask_time_of(c, c->target.keys.name[KEY_QUEUE]);
		if (rc == 0 && (s.now < 0 || show_deliveries(&s) == -1 ||
		    show_waiting(&s) == -1))
			rc = -1;
	}
	if (rc == 0)
		rc = show_letters(&s);
	if (rc == 0 && c->target.source == SOURCE_STREAM && s.found == 0)
		rc = show_entry(&s);
	if (rc == 0 && s.found == 0)
		ctl_error(c, EX_NOTHING, "%s has no message %s", c->target.name, s.id);
	else if (rc == 0 && s.places != NULL)
		out_json(json_incref(s.places), false);
	json_decref(s.places);
	fleet_done(&s.fleet);
}

const struct verb verb_show = {
	.name = "show",
	.args = "QUEUE ID",
	.help = "show where a message is, and its attempts",
	.more = "ID is the message's id or its tag. Of the messages that wait "
	    "for their first delivery, rqctl searches the next thousand.",
	.options = OPT(RAW),
	.min_args = 2,
	.max_args = 2,
	.flags = VERB_JSON | VERB_KEEPING,
	.run = show_run,
};
