/*
 * rqctl show: the place of one message, and its history.
 *
 * Redis has no index by id, and rqctl does not search without bound.  It looks up the id as a
 * tag.  It searches for further messages with this id (tags id#...) in the heartbeats and the
 * next retries, then the next waiting messages, then the latest dead letters.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "policy/message.h"
#include "rqctl/letters.h"
#include "rqctl/out.h"
#include "rqctl/picture.h"
#include "rqctl/waiting.h"

#define NEXT		1000		/* waiting messages and retries to search */
#define LATEST		10000		/* dead letters to search */

struct show {
	struct ctl	*ctl;
	const char	*id;
	struct fleet	 fleet;
	double		 now;
	json_t		*places;	/* with --json */
	int		 found;
	bool		 older;		/* there are older dead letters, not searched */
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
		out_escape(&b, data, len < 4096 ? len : 4096);
		printf("    %s%s\n", buf_str(&b), len > 4096 ? "..." : "");
	}
	json_decref(facts);
	buf_done(&b);
}

/* "tag 42#x, attempt 2 (1 crash)" */
static void
describe(struct buf *b, json_t *facts, const char *tag, const struct delivery_info *d)
{
	buf_printf(b, "tag %s", tag);
	json_set(facts, "tag:s", tag);
	if (!d->ours) {
		buf_puts(b, ", delivered to a foreign consumer");
		return;
	}
	buf_printf(b, ", attempt %ld", d->attempts + 1);
	if (d->crashes > 0)
		buf_printf(b, " (%ld crash%s)", d->crashes, d->crashes == 1 ? "" : "es");
	json_set(facts, "attempt:i crashes:i", (int64_t)d->attempts + 1, (int64_t)d->crashes);
}

/* Adds since when it runs, or when it is due. */
static void
describe_time(const struct show *s, struct buf *b, json_t *facts, const struct delivery_info *d,
    double in_backup, double in_retry)
{
	double since = d->ours && d->time > 0 ? d->time : in_backup;
	char text[UNITS_TEXT_MAX];

	if (d->cancelled) {
		buf_printf(b, ", cancelled%s%s", d->by[0] != '\0' ? " by " : "", d->by);
		json_set(facts, "cancelled:t cancelled_by:s", true,
		    d->by[0] != '\0' ? d->by : NULL);
	}
	if (in_backup >= 0) {
		buf_printf(b, ", for %s", units_age(s->now > since ? s->now - since : 0, text));
		json_set(facts, "age:f", s->now - since);
		return;
	}
	if (in_retry > s->now)
		buf_printf(b, ", due in %s", units_age(in_retry - s->now, text));
	else
		buf_puts(b, ", due now");
	if (d->owned)
		buf_puts(b, ", its lease ended while it ran");
	json_set(facts, "due:f", in_retry);
}

/* Adds the last progress that the handler has reported. */
static void
describe_progress(const struct show *s, struct buf *b, json_t *facts, const char *tag)
{
	const json_t *entry;
	const char *text;

	(void)picture_holder(&s->fleet, &s->ctl->target, tag, strlen(tag), &entry);
	text = fleet_text(entry, "progress");
	if (text[0] == '\0')
		return;
	buf_printf(b, ", progress: %s", text);
	json_set(facts, "progress:s", text);
}

/* Shows a tag that is in flight or a retry.  0, also if it is neither; -1 after an error. */
static int
show_tag(struct show *s, const char *tag)
{
	char *const *key = s->ctl->target.keys.name;
	struct redisReply *r[4] = { NULL };
	struct buf b = BUF_INIT;
	struct delivery_info d;
	double in_backup, in_retry;
	const char *data;
	json_t *facts;
	size_t len, i;

	if (ask_append(s->ctl, "ZSCORE %s %s", key[KEY_BACKUP], tag) == -1 ||
	    ask_append(s->ctl, "ZSCORE %s %s", key[KEY_RETRY], tag) == -1 ||
	    ask_append(s->ctl, "HGET %s %s", key[KEY_DELIVERY], tag) == -1 ||
	    ask_append(s->ctl, "HGET %s %s", key[KEY_CONTEXT], tag) == -1)
		return -1;
	for (i = 0; i < ARRAY_LEN(r); i++)
		if ((r[i] = ask_next(s->ctl)) == NULL)
			break;
		else if (reply_error(r[i]) != REPLY_OK)
			ask_refused(s->ctl, r[i]);
	in_backup = reply_double(r[0], -1);
	in_retry = reply_double(r[1], -1);
	if (s->ctl->status == 0 && (in_backup >= 0 || in_retry >= 0)) {
		facts = json_object();
		delivery_parse(reply_str(r[2], NULL), &d);
		if ((data = reply_str(r[3], &len)) == NULL)
			data = "", len = 0;
		describe(&b, facts, tag, &d);
		describe_time(s, &b, facts, &d, in_backup, in_retry);
		describe_progress(s, &b, facts, tag);
		place(s, in_backup >= 0 ? "running" : "retry", facts, buf_str(&b), data, len);
	}
	for (i = 0; i < ARRAY_LEN(r); i++)
		blocking_reply_free(r[i]);
	buf_done(&b);
	return s->ctl->status == 0 ? 0 : -1;
}

/* "42#x" is a further delivery of "42". */
static bool
is_further(const char *tag, const char *id)
{
	size_t n = strlen(id);

	return strncmp(tag, id, n) == 0 && tag[n] == '#';
}

/* Shows further deliveries that heartbeats list. */
static int
show_in_flight(struct show *s)
{
	const json_t *list;
	const char *tag;

	for (size_t i = 0; i < s->fleet.n; i++) {
		list = json_object_get(fleet_queue(&s->fleet.daemons[i],
		    s->ctl->target.key), "in_hand");
		for (size_t k = 0; k < json_array_size(list); k++) {
			tag = fleet_text(json_array_get(list, k), "tag");
			if (is_further(tag, s->id) && show_tag(s, tag) == -1)
				return -1;
		}
	}
	return 0;
}

/* Shows further deliveries among the next retries. */
static int
show_retries(struct show *s)
{
	struct redisReply *tags;
	const char *tag;
	int rc = 0;

	tags = ask(s->ctl, "ZRANGE %s 0 %lld", s->ctl->target.keys.name[KEY_RETRY], NEXT - 1LL);
	if (tags == NULL)
		return -1;
	for (size_t i = 0; i < reply_len(tags) && rc == 0; i++) {
		tag = reply_str_at(tags, i);
		if (tag != NULL && is_further(tag, s->id))
			rc = show_tag(s, tag);
	}
	blocking_reply_free(tags);
	return rc;
}

/* Shows an id that waits in the zset of kind "unique". */
static void
show_id(struct show *s, const struct waiting *m)
{
	double due = waiting_due(m);
	char line[64], text[WAITING_DUE_MAX];

	snprintf(line, sizeof(line), isinf(due) && due > 0 ? "%s due" : "due %s",
	    waiting_due_text(due, s->now, text));
	place(s, "waiting", json_set(json_object(), "due:f", due), line, m->data, m->len);
}

/* Shows an id that is not among the next ones: a zset finds it by itself. */
static int
show_far_id(struct show *s)
{
	struct redisReply *reply = ask(s->ctl, "ZSCORE %s %s",
	    s->ctl->target.keys.name[KEY_QUEUE], s->id);
	struct waiting m = { .data = s->id, .len = strlen(s->id) };

	if (reply == NULL)
		return -1;
	if (reply_str(reply, NULL) != NULL) {
		m.score = reply_double(reply, 0);
		show_id(s, &m);
	}
	blocking_reply_free(reply);
	return 0;
}

/* Searches a page of waiting messages from offset on.  Returns how many it had, or -1. */
static int64_t
show_waiting_page(struct show *s, int64_t offset)
{
	struct redisReply *page = waiting_page(s->ctl, &s->ctl->target, KEY_QUEUE, "", offset,
	    NEXT - (long)offset, WAITING_CUT);
	char id[MESSAGE_ID_MAX + 1], line[64];
	int64_t number = offset;
	struct waiting m;
	size_t i, n;

	if (page == NULL)
		return -1;
	n = waiting_len(page);
	for (i = 0; i < n; i++) {
		waiting_get(page, i, &m);
		number++;
		if (strcmp(waiting_id(s->ctl->target.kind, &m, id), s->id) != 0)
			continue;
		if (s->ctl->target.source == SOURCE_IDS) {
			show_id(s, &m);
			continue;
		}
		snprintf(line, sizeof(line), "number %lld in line", (long long)number);
		place(s, "waiting", json_set(json_object(), "number:i", number), line, m.data,
		    m.len);
	}
	blocking_reply_free(page);
	return (int64_t)n;
}

static int
show_waiting(struct show *s)
{
	int64_t offset = 0, n;
	int found = s->found;

	if (s->ctl->target.source == SOURCE_STREAM)
		return 0;
	do {
		if ((n = show_waiting_page(s, offset)) == -1)
			return -1;
		offset += n;
	} while (n > 0 && offset < NEXT);
	return s->ctl->target.source == SOURCE_IDS && s->found == found ? show_far_id(s) : 0;
}

static void
show_letter(struct show *s, const struct letter *l)
{
	const struct bytes *reason = &l->field[FIELD_REASON], *message = &l->field[FIELD_MESSAGE];
	const struct bytes *attempts = &l->field[FIELD_ATTEMPTS];
	json_t *facts = json_set(json_object(), "letter:b age:f", l->name.data, l->name.len,
	    s->now - l->died);
	struct buf b = BUF_INIT;
	char age[UNITS_TEXT_MAX];

	buf_printf(&b, "letter %.*s, %s ago", (int)l->name.len, l->name.data,
	    units_age(s->now > l->died ? s->now - l->died : 0, age));
	if (reason->data != NULL) {
		buf_printf(&b, ", reason %.*s", (int)reason->len, reason->data);
		json_set(facts, "reason:b", reason->data, reason->len);
	}
	if (attempts->data != NULL) {
		buf_printf(&b, ", attempts %.*s", (int)attempts->len, attempts->data);
		json_set(facts, "attempts:i", (int64_t)atoll(attempts->data));
	}
	place(s, "dead", facts, buf_str(&b), message->data != NULL ? message->data : "",
	    message->len);
	buf_done(&b);
}

static int
show_letters(struct show *s)
{
	struct select select = { .ids = &s->id, .nids = 1, .reason = "", .match = "" };
	struct letters l;
	struct letter letter;
	int n, i;

	letters_init(&l, s->ctl, &select);
	l.newest = true;
	while (l.looked < LATEST && (n = letters_next(&l)) >= 0)
		for (i = 0; i < n; i++) {
			letters_get(&l, i, &letter);
			show_letter(s, &letter);
		}
	s->older = l.looked >= LATEST && l.total > l.looked;
	letters_done(&l);
	return s->ctl->status == 0 ? 0 : -1;
}

/* Returned by stream_show.lua. */
enum {
	SHOW_STATE, SHOW_MESSAGE, SHOW_CONSUMER, SHOW_IDLE, SHOW_DELIVERIES, SHOW_FIELDS
};

/* Shows an entry that rqd has not taken, with its state in the consumer group. */
static int
show_entry(struct show *s)
{
	const char *group = keys_group(&s->ctl->target.keys), *state, *data;
	char line[256] = "not delivered yet", text[UNITS_TEXT_MAX];
	double idle;
	size_t len;
	struct redisReply *reply = ask_script(s->ctl, "stream_show", 1, "%s %s %s",
	    s->ctl->target.keys.name[KEY_QUEUE], group, s->id);

	if (reply == NULL)
		return -1;
	state = reply_str_at(reply, SHOW_STATE);
	data = reply_str(reply_at(reply, SHOW_MESSAGE), &len);
	idle = reply_double_at(reply, SHOW_IDLE) / 1e3;
	if (strcmp(state, "pending") == 0)
		snprintf(line, sizeof(line), "for consumer %.150s, idle for %s, delivery %lld",
		    reply_str_at(reply, SHOW_CONSUMER), units_age(idle, text),
		    (long long)reply_int_at(reply, SHOW_DELIVERIES));
	else if (strcmp(state, "done") == 0)
		snprintf(line, sizeof(line), "in the stream, acknowledged");
	if (data != NULL)
		place(s, state, json_set(json_object(), "group:s", group), line, data, len);
	blocking_reply_free(reply);
	return 0;
}

/* 0, or -1 after an error. */
static int
look_at_keys(struct show *s)
{
	int rc = 0;

	EACH_KEY(i, &s->ctl->target)
		if (rc == 0 && (show_tag(s, s->id) == -1 || show_in_flight(s) == -1 ||
		    show_retries(s) == -1 || show_waiting(s) == -1))
			rc = -1;
	return rc;
}

static void
look(struct show *s)
{
	if (look_at_keys(s) == -1 || show_letters(s) == -1)
		return;
	if (s->ctl->target.source == SOURCE_STREAM && s->found == 0 && show_entry(s) == -1)
		return;
	if (s->found == 0)
		ctl_error(s->ctl, EX_NOTHING, s->older ?
		    "%s has no message %s: not in flight, no retry, not among the latest dead "
		    "letters, not among the next %d; finished messages are only in the log" :
		    "%s has no message %s: not in flight, no retry, not dead, "
		    "not among the next %d; finished messages are only in the log",
		    s->ctl->target.name, s->id, NEXT);
	else if (s->places != NULL)
		out_json(json_incref(s->places));
}

void
show_run(struct ctl *c)
{
	struct show s = { .ctl = c, .id = c->args.words[1] };

	if (picture_refresh(c) == -1 || (s.now = ask_time(c)) < 0 ||
	    picture_fleet(c, &s.fleet) == -1)
		return;
	s.places = ctl_given(c, OPT_JSON) ? json_array() : NULL;
	look(&s);
	json_decref(s.places);
	fleet_done(&s.fleet);
}
