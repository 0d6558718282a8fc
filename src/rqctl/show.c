/*
 * rqctl show: where one message is, and what happened to it.
 *
 * Redis has no index by id, and nothing is walked through that grows without
 * bound: a tag is looked up as it is; further deliveries of one id (tags
 * id#...) are looked for in what daemons say they have in hand and among the
 * next retries; a message that waits, among the next ones; a dead letter,
 * among the latest.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/message.h"
#include "redis/reply.h"
#include "rqctl/ask.h"
#include "rqctl/ask_fleet.h"
#include "rqctl/delivery.h"
#include "rqctl/groups.h"
#include "rqctl/letters.h"
#include "rqctl/out.h"
#include "rqctl/peek.h"

#define NEXT		1000		/* waiting messages and retries that are looked at */
#define LATEST		10000		/* dead letters likewise */

struct show {
	struct ctl	*ctl;
	struct target	 target;
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
		json_object_set_new(facts, "place", json_string(name));
		out_set_bytes(facts, "message", data, len);
		json_array_append(s->places, facts);
	} else {
		out_escape(&b, line, strlen(line));
		printf("%-8s %s\n", name, buf_str(&b));
		buf_clear(&b);
		out_escape(&b, data, len < 4096 ? len : 4096);
		printf("    %s%s\n", buf_str(&b), len > 4096 ? "..." : "");
	}
	json_decref(facts);
	buf_done(&b);
}

/* "tag 42#x, attempt 2 (1 crash)" */
static void
describe(struct buf *b, json_t *facts, const char *tag, const struct delivery *d)
{
	buf_printf(b, "tag %s", tag);
	out_set_bytes(facts, "tag", tag, strlen(tag));
	if (!d->ours) {
		buf_puts(b, ", delivered to a foreign consumer");
		return;
	}
	buf_printf(b, ", attempt %ld", d->attempts + 1);
	if (d->crashes > 0)
		buf_printf(b, " (%ld crash%s)", d->crashes, d->crashes == 1 ? "" : "es");
	json_object_set_new(facts, "attempt", json_integer(d->attempts + 1));
	json_object_set_new(facts, "crashes", json_integer(d->crashes));
}

/* Adds since when it runs, or when it is due. */
static void
describe_time(const struct show *s, struct buf *b, json_t *facts, const struct delivery *d,
    double in_backup, double in_retry)
{
	double since = d->ours && d->time > 0 ? d->time : in_backup;
	char text[32];

	if (in_backup >= 0) {
		buf_printf(b, ", for %s", out_age(s->now > since ? s->now - since : 0, text));
		json_object_set_new(facts, "age", json_real(s->now - since));
		return;
	}
	if (in_retry > s->now)
		buf_printf(b, ", due in %s", out_age(in_retry - s->now, text));
	else
		buf_puts(b, ", due now");
	if (d->owned)
		buf_puts(b, ", its lease ended while it ran");
	json_object_set_new(facts, "due", json_real(in_retry));
}

/* A live tag: 0, also where it does not live; -1 after an error. */
static int
show_tag(struct show *s, const char *tag)
{
	char *const *key = s->target.keys.name;
	struct redisReply *r[4] = { NULL };
	struct buf b = BUF_INIT;
	struct delivery d;
	double in_backup, in_retry;
	const char *data;
	json_t *facts;
	size_t len, i;

	if (ask_append(s->ctl, "ZSCORE", key[KEY_BACKUP], tag, NULL) == -1 ||
	    ask_append(s->ctl, "ZSCORE", key[KEY_RETRY], tag, NULL) == -1 ||
	    ask_append(s->ctl, "HGET", key[KEY_DELIVERY], tag, NULL) == -1 ||
	    ask_append(s->ctl, "HGET", key[KEY_CONTEXT], tag, NULL) == -1)
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
		place(s, in_backup >= 0 ? "running" : "retry", facts, buf_str(&b), data, len);
	}
	for (i = 0; i < ARRAY_LEN(r); i++)
		client_reply_free(r[i]);
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

/* Further deliveries that daemons have in hand. */
static int
show_in_hand(struct show *s)
{
	const json_t *list;
	const char *tag;
	size_t i, k;

	for (i = 0; i < s->fleet.n; i++) {
		list = json_object_get(fleet_queue(&s->fleet.daemons[i],
		    s->target.keys.name[KEY_QUEUE]), "in_hand");
		for (k = 0; k < json_array_size(list); k++) {
			tag = fleet_text(json_array_get(list, k), "tag");
			if (is_further(tag, s->id) && show_tag(s, tag) == -1)
				return -1;
		}
	}
	return 0;
}

/* Further deliveries among the next retries. */
static int
show_retries(struct show *s)
{
	struct redisReply *tags;
	char last[16], *tag;
	const char *text;
	size_t i, len;
	int rc = 0;

	snprintf(last, sizeof(last), "%d", NEXT - 1);
	tags = ask(s->ctl, "ZRANGE", s->target.keys.name[KEY_RETRY], "0", last, NULL);
	if (tags == NULL)
		return -1;
	for (i = 0; i < reply_len(tags) && rc == 0; i++) {
		if ((text = reply_str(reply_at(tags, i), &len)) == NULL)
			continue;
		tag = xstrndup(text, len);
		if (is_further(tag, s->id))
			rc = show_tag(s, tag);
		free(tag);
	}
	client_reply_free(tags);
	return rc;
}

/* An id that waits in the zset of kind "unique". */
static void
show_id(struct show *s, const struct peeked *m)
{
	double due = peek_due(m);
	json_t *facts = json_object();
	char line[64] = "due now", text[32];

	if (due > s->now && isinf(due))
		snprintf(line, sizeof(line), "never due");
	else if (due > s->now)
		snprintf(line, sizeof(line), "due in %s", out_age(due - s->now, text));
	json_object_set_new(facts, "due", isinf(due) ? json_null() : json_real(due));
	place(s, "waiting", facts, line, m->data, m->len);
}

/* One that is not among the next: a zset knows it by its name. */
static int
show_far_id(struct show *s)
{
	struct redisReply *reply = ask(s->ctl, "ZSCORE", s->target.keys.name[KEY_QUEUE], s->id,
	    NULL);
	struct peeked m = { .data = s->id, .len = strlen(s->id) };

	if (reply == NULL)
		return -1;
	if (reply_str(reply, NULL) != NULL) {
		m.score = reply_double(reply, 0);
		show_id(s, &m);
	}
	client_reply_free(reply);
	return 0;
}

/* One page of waiting messages from offset on; how many there were, or -1. */
static int64_t
show_waiting_page(struct show *s, int64_t offset)
{
	struct redisReply *page = peek_page(s->ctl, &s->target, KEY_QUEUE, "", offset,
	    NEXT - (long)offset, 65536);
	char id[MESSAGE_ID_MAX + 1], line[64];
	struct peeked m;
	json_t *facts;
	size_t i, n;

	if (page == NULL)
		return -1;
	n = peek_len(page);
	for (i = 0; i < n; i++) {
		peek_get(page, i, &m);
		if (strcmp(peek_id(s->target.kind, &m, id), s->id) != 0)
			continue;
		if (kind_source(s->target.kind) == SOURCE_IDS) {
			show_id(s, &m);
			continue;
		}
		snprintf(line, sizeof(line), "number %" PRId64 " in line",
		    offset + (int64_t)i + 1);
		facts = json_object();
		json_object_set_new(facts, "number", json_integer(offset + (int64_t)i + 1));
		place(s, "waiting", facts, line, m.data, m.len);
	}
	client_reply_free(page);
	return (int64_t)n;
}

static int
show_waiting(struct show *s)
{
	int64_t offset = 0, n;
	int found = s->found;

	if (kind_source(s->target.kind) == SOURCE_STREAM)
		return 0;
	do {
		if ((n = show_waiting_page(s, offset)) == -1)
			return -1;
		offset += n;
	} while (n > 0 && offset < NEXT);
	return kind_source(s->target.kind) == SOURCE_IDS && s->found == found ? show_far_id(s) : 0;
}

static void
show_letter(struct show *s, const struct letter *l)
{
	struct buf b = BUF_INIT;
	json_t *facts = json_object();
	char age[32];

	out_set_bytes(facts, "letter", l->name.data, l->name.len);
	json_object_set_new(facts, "age", json_real(s->now - l->died));
	buf_printf(&b, "letter %.*s, %s ago", (int)l->name.len, l->name.data,
	    out_age(s->now > l->died ? s->now - l->died : 0, age));
	if (l->reason.data != NULL) {
		buf_printf(&b, ", reason %.*s", (int)l->reason.len, l->reason.data);
		out_set_bytes(facts, "reason", l->reason.data, l->reason.len);
	}
	if (l->attempts.data != NULL) {
		buf_printf(&b, ", attempts %.*s", (int)l->attempts.len, l->attempts.data);
		json_object_set_new(facts, "attempts", json_integer(atoll(l->attempts.data)));
	}
	place(s, "dead", facts, buf_str(&b), l->message.data != NULL ? l->message.data : "",
	    l->message.len);
	buf_done(&b);
}

static int
show_letters(struct show *s)
{
	struct select select = {
		.ids = &s->id, .nids = 1, .reason = "", .match = ""
	};
	struct letters l;
	struct letter letter;
	int n, i;

	letters_init(&l, s->ctl, &s->target, &select);
	l.newest = true;
	while (l.looked < LATEST && (n = letters_next(&l)) >= 0)
		for (i = 0; i < n; i++) {
			letters_get(&l, i, &letter);
			show_letter(s, &letter);
		}
	letters_done(&l);
	return s->ctl->status == 0 ? 0 : -1;
}

/* What the stream and its group know of an entry that rqd does not have. */
static int
show_entry(struct show *s)
{
	struct words w = { 0 };
	struct redisReply *reply;
	const char *state, *data;
	char line[256] = "not delivered yet", text[32];
	double idle;
	size_t len;

	words_add(&w, s->target.keys.name[KEY_QUEUE]);
	words_add(&w, keys_group(&s->target.keys));
	words_add(&w, s->id);
	reply = ask_script(s->ctl, "stream_show", 1, &w);
	words_done(&w);
	if (reply == NULL)
		return -1;
	state = reply_str(reply_at(reply, 0), NULL);
	data = reply_str(reply_at(reply, 1), &len);
	idle = reply_double(reply_at(reply, 3), 0) / 1e3;
	if (strcmp(state, "pending") == 0)
		snprintf(line, sizeof(line), "for consumer %.150s, idle for %s, delivery %lld",
		    reply_str(reply_at(reply, 2), NULL), out_age(idle, text),
		    (long long)reply_int(reply_at(reply, 4), 0));
	else if (strcmp(state, "done") == 0)
		snprintf(line, sizeof(line), "in the stream, acknowledged");
	if (data != NULL)
		place(s, state, json_pack("{s:s}", "group", keys_group(&s->target.keys)), line,
		    data, len);
	client_reply_free(reply);
	return 0;
}

static void
look(struct show *s)
{
	if (show_tag(s, s->id) == -1 || show_in_hand(s) == -1 || show_retries(s) == -1 ||
	    show_waiting(s) == -1 || show_letters(s) == -1)
		return;
	if (kind_source(s->target.kind) == SOURCE_STREAM && s->found == 0 && show_entry(s) == -1)
		return;
	if (s->found == 0)
		ctl_error(s->ctl, EX_NOTHING, "there is no %s in %s: not running, not waiting "
		    "for a retry, not dead, nor among the next %d; what is done is only in the "
		    "log", s->id, s->target.name, NEXT);
	else if (s->places != NULL)
		out_json(json_incref(s->places));
}

void
show_run(struct ctl *c)
{
	struct show s = { .ctl = c, .id = c->args.words[1] };

	if (ctl_keeping_target(c, c->args.words[0], "show", &s.target) == -1)
		return;
	s.places = ctl_given(c, OPT_JSON) ? json_array() : NULL;
	if ((s.now = ask_time(c)) >= 0 && fleet_read(c, &s.fleet) == 0) {
		look(&s);
		fleet_done(&s.fleet);
	}
	json_decref(s.places);
	ctl_target_done(&s.target);
}
