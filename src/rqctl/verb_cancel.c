/*
 * rqctl cancel: ends messages wherever they are.
 *
 * A message moves from QDELAYED to the list, from there to a handler, and then to QRETRY.
 * rqctl searches these places in this order, so it does not miss a message that moves
 * meanwhile.  In QDELAYED and the list it searches the next --scan entries.  Entries move
 * towards the front, so rqctl begins with the last of them.
 *
 * A message in flight is only marked (cancel.lua).  Its daemon sees the mark when it renews the
 * lease; a hint on its control channel makes it renew now.  If the daemon is dead, the lease
 * ends, and the pop that would deliver the message again sees the mark.
 *
 * With --retry only messages in flight are marked; the other places are searched to report
 * where the message is.
 */
#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "policy/message.h"
#include "queue/pausetext.h"
#include "rqctl/ask.h"
#include "rqctl/out.h"
#include "rqctl/letters.h"
#include "rqctl/snapshot.h"
#include "rqctl/waiting.h"

#define SCAN		10000		/* default of --scan */
#define SCAN_MAX	300000		/* Redis searches them twice per message: 10 ms */

/* A message in flight that cancel.lua has marked. */
struct marked {
	char		*tag;		/* escaped; owned */
	char		*daemon;	/* gets a hint; owned */
	double		 left;		/* seconds until its lease ends; NAN: not known */
};

struct canceller {
	struct ctl	*ctl;
	const char	*mode;		/* for cancel.lua: "look", "drop", "dead" or "retry" */
	char		*error;		/* of the dead letters */
	char		 who[DELIVERY_BY];	/* for cancel.lua */
	bool		 dry, retry;
	long		 scan;
	const char	*group;		/* instead of ids: this is select's only one; or NULL */
	struct select	 select;	/* the ids */
	/* For each id: "" if a message has it; with --retry: where one is that does not run. */
	const char	**found;
	int64_t		 waiting;	/* messages in the list, or in the longest shard */
	/* With --group, what was not searched: beyond --scan, or cut by WAITING_CUT. */
	int64_t		 beyond, large;
	void		*tags;		/* tsearch: of this key, done; see add_once() */
	struct marked	*marked;	/* owned */
	size_t		 nmarked;
};

struct tag {
	size_t	len;
	char	text[];
};

static int
by_tag(const void *a, const void *b)
{
	const struct tag *x = a, *y = b;

	if (x->len < y->len)
		return -1;
	if (x->len > y->len)
		return 1;
	return memcmp(x->text, y->text, x->len);
}

/* Returns whether the tag is new for this key: HSCAN may return one twice. */
static bool
add_once(struct canceller *j, const char *text, size_t len)
{
	struct tag *tag = xmalloc(sizeof(*tag) + len);
	void *found;

	tag->len = len;
	memcpy(tag->text, text, len);
	if ((found = tsearch(tag, &j->tags, by_tag)) == NULL)
		fatalx("out of memory");
	if (*(struct tag **)found == tag)
		return true;
	free(tag);
	return false;
}

static void
forget_tags(struct canceller *j)
{
	tdestroy(j->tags, free);
	j->tags = NULL;
}

/* What was done with a message, besides that it was cancelled. */
static const char *
cancelled_how(const struct canceller *j)
{
	if (ctl_given(j->ctl, OPT_LETTER))
		return " as a dead letter";
	return text_if(j->retry, " and retried");
}

/*
 * Reports a message, and marks its id as found, also where the arguments repeat it.  place: where
 * the message was.  daemon: the one that runs it, or NULL.
 */
static void
report(const struct canceller *j, int which, const char *name, size_t len, const char *place,
    const char *daemon)
{
	bool dead = ctl_given(j->ctl, OPT_LETTER), idle = j->retry && place != NULL &&
	    strcmp(place, "running") != 0 && strcmp(place, "expired") != 0;
	struct buf b = BUF_INIT;
	json_t *o;

	for (int i = 0; i < j->select.nids; i++)
		if (strcmp(j->select.ids[i], j->select.ids[which]) == 0 &&
		    (!idle || j->found[i] == NULL))
			j->found[i] = text_if(idle, place);
	if (place == NULL || idle)
		return;
	out_escape(&b, name, len);
	o = json_set(json_object(), "queue:s tag:b place:s daemon:s dead:t retry:t dry_run:t",
	    j->ctl->target.name, name, len, place, daemon, dead, j->retry, j->dry);
	ctl_result(j->ctl, o, "%scancelled%s: %s of %s, %s%s%s",
	    text_if(j->dry, "would be "), cancelled_how(j), buf_str(&b),
	    j->ctl->target.name, place, text_if(daemon != NULL, " on "),
	    or_empty(daemon));
	buf_done(&b);
}

/* How many dead letters the queue keeps, for the scripts; 0: not known. */
static long long
dead_limit(const struct target *t)
{
	if (t->cfg == NULL)
		return 0;
	return (long long)t->cfg->dead_max;
}

/* -- waiting and delayed -------------------------------------------------------------- */

/* What cancel_waiting.lua searches: a zset, or a list with its next end. */
static const char *
searched_type(const struct target *t, enum key key)
{
	if (key != KEY_QUEUE || t->source != SOURCE_LIST)
		return "zset";
	if (t->left)
		return "left";
	return "list";
}

/* Ends one message of a key.  Returns 1; 0 if it has left the key meanwhile; -1 after an error. */
static int
cancel_waiting(struct canceller *j, enum key key, int which, const char *id, const char *data,
    size_t len)
{
	const struct target *t = &j->ctl->target;
	const char *answer, *mode = j->mode, *place = "waiting";
	struct words w = ask_format("%s %s", t->keys.name[key], t->keys.name[KEY_DEAD]);
	int nkeys = 2 + target_add_dead_key(t, &w);
	struct redisReply *reply;
	int rc = -1;

	if (j->retry)
		mode = "look";
	if (key == KEY_DELAYED)
		place = "delayed";
	ask_add(&w, "%s %s %lld %s %s %lld %s", searched_type(t, key), mode,
	    dead_limit(t), j->ctl->config->name, j->error, (long long)j->scan,
	    id);
	words_mem(&w, data, len);
	words_add(&w, t->dead_tell);
	reply = ask_script_words(j->ctl, "cancel_waiting", nkeys, &w);
	if ((answer = reply_str(reply, NULL)) != NULL)
		rc = strcmp(answer, "ok") == 0;
	if (rc == 1)
		report(j, which, id, strlen(id), place, NULL);
	reply_free(reply);
	return rc;
}

/* Which of the ids, or the group, selects a message that waits; -1: none. */
static int
selected(const struct canceller *j, const struct waiting *m, const char *id)
{
	const struct target *t = &j->ctl->target;
	char group[MESSAGE_ID_MAX + 1];

	if (j->group != NULL) {
		if (message_id_of(t->kind, t->group_by, m->data, m->len,
		    group) == 0 && strcmp(group, j->group) == 0)
			return 0;
		return -1;
	}
	for (int i = 0; i < j->select.nids; i++)
		if (id[0] != '\0' && strcmp(j->select.ids[i], id) == 0)
			return i;
	return -1;
}

/* Searches entries lo to hi - 1 of the list or of QDELAYED; 0 is the next one. */
static int
cancel_window(struct canceller *j, enum key key, int64_t lo, int64_t hi)
{
	struct visit v = {
		.ctl = j->ctl, .target = &j->ctl->target,
		.at = { .key = key, .passed = lo }, .cut = WAITING_CUT,
		.most = hi - lo
	};
	char id[MESSAGE_ID_MAX + 1];
	struct waiting m;
	int which, rc = 0;

	while (rc != -1 && visit_next(&v, &m)) {
		waiting_id(v.target, &m, id);
		which = selected(j, &m, id);
		j->large += (int64_t)m.len != m.size;
		if (which == -1 || (int64_t)m.len != m.size)
			continue;
		rc = cancel_waiting(j, key, which, id, m.data, m.len);
		if (rc == 1 && !j->dry && !j->retry)
			visit_gone(&v, &m);
	}
	if (visit_end(&v) == -1 || rc == -1)
		return -1;
	return 0;
}

/* total: how many entries the key has; -1: counting them failed.  Returns 0, or -1 to stop. */
static int
cancel_key(struct canceller *j, enum key key, int64_t total)
{
	int64_t lo, hi;

	if (total > j->scan)
		j->beyond += total - j->scan;
	for (hi = int64_min(total, j->scan); hi > 0; hi = lo) {
		lo = int64_max(hi - WAITING_PAGE, 0);
		if (ctl_interrupted() || cancel_window(j, key, lo, hi) == -1)
			return -1;
	}
	if (total == -1)
		return -1;
	return 0;
}

/* -- deliveries ------------------------------------------------------------------------- */

/* Remembers a message in flight, its lease, and its daemon for a hint. */
static void
add_marked(struct canceller *j, const char *daemon, const char *tag, size_t len)
{
	const struct target *t = &j->ctl->target;
	const char *backup = t->keys.name[KEY_BACKUP];
	struct redisReply *reply = NULL;
	struct buf b = BUF_INIT;
	double left = NAN;

	if (!j->dry && t->cfg != NULL)
		reply = ask(j->ctl, "ZSCORE %s %.*s", backup, (int)len, tag);
	if (reply != NULL && reply_is_nil(reply))
		left = -1;
	else if (reply != NULL)
		left = reply_double(reply, 0) + clock_seconds(t->cfg->lease) -
		    ask_time_of(j->ctl, backup);
	reply_free(reply);
	out_escape(&b, tag, len);
	*APPEND(j->marked, j->nmarked) = (struct marked){ buf_steal(&b), xstrdup(daemon), left };
}

/* Returned by cancel.lua. */
enum { CANCEL_STATE, CANCEL_TOKEN, CANCEL_FIELDS };

static int
cancel_tag(struct canceller *j, int which, const char *tag, size_t len)
{
	static const char form[] = {
		[CANCEL_STATE] = FIELD_STR, [CANCEL_TOKEN] = FIELD_STR, [CANCEL_FIELDS] = 0
	};
	const struct target *t = &j->ctl->target;
	char *const *k = t->keys.name, daemon[DELIVERY_INSTANCE];
	struct redisReply *reply;
	struct words w;
	const char *state, *place;
	int nkeys;

	if (!add_once(j, tag, len))
		return 0;
	w = ask_format("%s %s %s %s %s %s %s %s %s", k[KEY_BACKUP], k[KEY_CONTEXT], k[KEY_RETRY],
	    k[KEY_DELIVERY], k[KEY_DEAD], k[KEY_QUEUE], k[KEY_HELD], k[KEY_GROUP], k[KEY_ORDER]);
	nkeys = 9 + target_add_dead_key(t, &w);
	ask_add(&w, "%s %lld %s %s %.*s %s %s", j->mode, dead_limit(t),
	    j->ctl->config->name, j->who, (int)len, tag,
	    keys_group(&t->keys), t->dead_tell);
	reply = ask_script_words(j->ctl, "cancel", nkeys, &w);
	if ((reply = ask_check(j->ctl, reply, form)) == NULL)
		return -1;
	state = reply_str_at(reply, CANCEL_STATE);
	if (strcmp(state, "foreign") == 0) {
		report(j, which, tag, len, NULL, NULL);
		ctl_error(j->ctl, EX_NOTHING, "%.*s of %s cannot be cancelled: another consumer "
		    "than rqd has it", (int)len, tag, t->name);
	} else if (strcmp(state, "unknown") != 0) {
		delivery_instance(reply_str_at(reply, CANCEL_TOKEN), daemon);
		/* report() keeps the place of a message that does not run: no text of the reply. */
		if (strcmp(state, "waiting") == 0)
			place = "retry";
		else if (strcmp(state, "held") == 0)
			place = "held";
		else
			place = state;
		report(j, which, tag, len, place, null_if_empty(daemon));
		if (daemon[0] != '\0')
			add_marked(j, daemon, tag, len);
	}
	reply_free(reply);
	return 0;
}

/* Cancels further deliveries, with tags id#..., of the selected ids: it reads all of QDELIVERY. */
static int
cancel_further(struct canceller *j)
{
	static const char form[] = { FIELD_STR, 0 };
	struct buf pattern = BUF_INIT;
	char cursor[24] = "0";
	struct redisReply *reply;
	const struct redisReply *page;
	struct delivery_info d;
	const char *text, *p;
	size_t len;
	int rc = 0;

	if (j->select.nids > 1)
		buf_puts(&pattern, "*");
	for (p = j->select.ids[0]; j->select.nids == 1 && *p != '\0'; p++) {
		if (strchr("*?[]\\", *p) != NULL)
			buf_addc(&pattern, '\\');
		buf_addc(&pattern, *p);
	}
	buf_puts(&pattern, "#*");
	do {
		reply = ask_check(j->ctl, ask(j->ctl, "HSCAN %s %s MATCH %s COUNT 500",
		    j->ctl->target.keys.name[KEY_DELIVERY], cursor, buf_str(&pattern)), form);
		page = reply_at(reply, 1);
		for (size_t i = 0; i + 1 < reply_len(page); i += 2) {
			delivery_parse(reply_str(reply_at(page, i + 1), NULL), &d);
			text = reply_str(reply_at(page, i), &len);
			for (int k = 0; k < j->select.nids && rc == 0; k++)
				if (text != NULL && d.ours && d.idlen < len &&
				    strlen(j->select.ids[k]) == d.idlen &&
				    memcmp(j->select.ids[k], text, d.idlen) == 0) {
					rc = cancel_tag(j, k, text, len);
					break;
				}
		}
		if (reply == NULL || ctl_interrupted())
			rc = -1;
		if (rc == 0)
			snprintf(cursor, sizeof(cursor), "%s", reply_str_at(reply, 0));
		reply_free(reply);
	} while (rc == 0 && strcmp(cursor, "0") != 0);
	buf_done(&pattern);
	return rc;
}

/*
 * Cancels the group's messages that have been delivered or are held: those that QORDER lists.
 * The last one goes first, so that none becomes due meanwhile.
 */
static int
cancel_group(struct canceller *j)
{
	struct buf from = BUF_INIT, to = BUF_INIT;
	struct words w = ask_format("ZREVRANGEBYLEX %s",
	    j->ctl->target.keys.name[KEY_ORDER]);
	struct redisReply *rows;
	const char *row, *tag;
	size_t len, skip = strlen(j->group) + 1;
	int rc = 0;

	buf_printf(&from, "[%s%c", j->group, '\0');
	buf_printf(&to, "(%s\1", j->group);
	words_mem(&w, to.data, to.len);
	words_mem(&w, from.data, from.len);
	rows = ask_words(j->ctl, &w);
	buf_done(&from);
	buf_done(&to);
	if (rows == NULL)
		return -1;
	for (size_t i = 0; rc == 0 && i < reply_len(rows) && !ctl_interrupted(); i++) {
		row = reply_str(reply_at(rows, i), &len);
		tag = NULL;
		if (row != NULL && len > skip)
			tag = memchr(row + skip, '\0', len - skip);
		if (tag++ != NULL)
			rc = cancel_tag(j, 0, tag, len - (size_t)(tag - row));
	}
	reply_free(rows);
	if (ctl_interrupted())
		return -1;
	return rc;
}

/* -- the end ------------------------------------------------------------------------------ */

/* What the next daemon does with a message whose lease has ended. */
static const char *
end_of_marked(const struct canceller *j)
{
	if (ctl_given(j->ctl, OPT_LETTER))
		return "makes it a dead letter";
	if (j->retry)
		return "runs it again";
	return "drops it";
}

/*
 * Reports a daemon that is not subscribed to its control channel, and when its messages end if it
 * is dead.  Its heartbeat stays in Redis for 30 seconds, so a daemon with a heartbeat may be dead,
 * too.
 */
static void
note_unheard(struct canceller *j, const char *daemon)
{
	const char *what = end_of_marked(j), *queue = j->ctl->target.name;
	const struct marked *m;
	char age[UNITS_TEXT_MAX];

	if (ask_number(ask(j->ctl, "EXISTS %s%s", KEYS_DAEMON_PREFIX, daemon)) > 0)
		ctl_note("%s does not receive hints: it ends the handler within 10 s; if it is "
		    "dead:", daemon);
	else
		ctl_note("%s has no heartbeat: it is dead, or Redis refuses it", daemon);
	for (size_t k = 0; k < j->nmarked; k++) {
		m = &j->marked[k];
		if (strcmp(m->daemon, daemon) != 0)
			continue;
		if (isnan(m->left))
			ctl_note("%s: the next daemon that serves %s %s when its lease has ended",
			    m->tag, queue, what);
		else if (m->left <= 0)
			ctl_note("%s: its lease has ended, and the next daemon that serves %s %s",
			    m->tag, queue, what);
		else
			ctl_note("%s: its lease ends in %s; the next daemon that serves %s then %s",
			    m->tag, units_age(m->left, age), queue, what);
	}
}

/* Sends the hints.  Without one, a daemon sees the mark at its next renewal. */
static void
tell_daemons(struct canceller *j)
{
	struct redisReply *reply;
	const char *daemon;
	size_t k;

	for (size_t i = 0; i < j->nmarked && !j->dry; i++) {
		daemon = j->marked[i].daemon;
		for (k = 0; strcmp(j->marked[k].daemon, daemon) != 0; k++)
			continue;
		if (k < i)		/* it has had its hint */
			continue;
		struct words w = ask_format("PUBLISH %s%s", KEYS_CONTROL_PREFIX, daemon);

		words_fmt(&w, "renew %s", j->ctl->target.key);
		if ((reply = ask_any_words(j->ctl, &w)) == NULL)
			break;
		if (ask_heard(j->ctl, daemon, reply_int(reply, 0)) == 0)
			note_unheard(j, daemon);
		reply_free(reply);
	}
}

/* Reports why the message was not cancelled.  place: where it is, with --retry; NULL: nowhere. */
static void
not_found(struct canceller *j, const char *id, const char *place)
{
	const struct target *t = &j->ctl->target;
	struct redisReply *reply;
	const char *state, *does = "waits or runs";

	if (j->retry)
		does = "runs";
	if (j->group != NULL) {
		ctl_error(j->ctl, EX_NOTHING, "%s has no message of group %s "
		    "that %s", t->name, id, does);
		return;
	}
	if (place != NULL) {
		if (strcmp(place, "held") == 0)
			ctl_error(j->ctl, EX_NOTHING, "%s of %s is not in flight: it waits for "
			    "others of its group", id, t->name);
		else if (strcmp(place, "waiting") == 0)
			ctl_error(j->ctl, EX_NOTHING, "%s of %s is not in flight: it waits for its "
			    "first delivery", id, t->name);
		else
			ctl_error(j->ctl, EX_NOTHING, "%s of %s is not in flight: use rqctl %s now "
			    "%s %s", id, t->name, place, t->name, id);
		return;
	}
	if (t->source != SOURCE_STREAM) {
		if (j->waiting > j->scan)
			ctl_error(j->ctl, EX_NOTHING, "%s has no message %s among the next %ld of "
			    "%lld that wait; --scan N looks at more", t->name, id, j->scan,
			    (long long)j->waiting);
		else
			ctl_error(j->ctl, EX_NOTHING, "%s has no message %s", t->name, id);
		return;
	}
	if ((reply = waiting_entry(j->ctl, id)) == NULL)
		return;
	state = reply_str_at(reply, ENTRY_STATE);
	if (state[0] == '\0')
		ctl_error(j->ctl, EX_NOTHING, "%s has no message %s", t->name, id);
	else if (strcmp(state, "pending") == 0)
		ctl_error(j->ctl, EX_NOTHING, "%s of %s cannot be cancelled: the consumer %s has "
		    "it", id, t->name, reply_str_at(reply, ENTRY_CONSUMER));
	else if (strcmp(state, "done") == 0)
		ctl_error(j->ctl, EX_NOTHING, "%s of %s is done: it is acknowledged", id, t->name);
	else
		ctl_error(j->ctl, EX_NOTHING, "%s of %s cannot be cancelled: an entry of a stream "
		    "that was never delivered stays there", id, t->name);
	reply_free(reply);
}

/* Reports messages that may be of the group, and were not searched. */
static void
not_searched(struct canceller *j)
{
	struct ctl *c = j->ctl;
	const char *queue = c->target.name;
	struct depth d;

	if (j->beyond > 0)
		ctl_error(c, EX_NOTHING, "%lld more messages wait in %s that "
		    "were not searched; --scan N looks at more",
		    (long long)j->beyond, queue);
	if (j->large > 0)
		ctl_error(c, EX_NOTHING, "%lld of %s wait whose group was not "
		    "read: they are larger than 64K", (long long)j->large,
		    queue);
	if (c->target.source != SOURCE_STREAM ||
	    snapshot_depths(c, &c->target, 1, &d) == -1)
		return;
	if (d.waiting > 0)
		ctl_error(c, EX_NOTHING, "%lld entries of %s were never "
		    "delivered: they stay, whatever their group is",
		    (long long)d.waiting, queue);
	depth_done(&d);
}

/* Searches all places of the selected key.  Returns 0, or -1 to stop. */
static int
cancel_in_key(struct canceller *j)
{
	enum source source = j->ctl->target.source;
	char *const *k = j->ctl->target.keys.name;
	const char *const *id = j->select.ids;
	int64_t waiting;
	int i;

	/* Q of kind "unique" is a set of ids, so no search is needed. */
	for (i = 0; source == SOURCE_IDS && i < j->select.nids; i++)
		if (cancel_waiting(j, KEY_QUEUE, i, id[i], id[i], strlen(id[i])) == -1)
			return -1;
	if (source != SOURCE_IDS && cancel_key(j, KEY_DELAYED,
	    ask_number(ask(j->ctl, "ZCARD %s", k[KEY_DELAYED]))) == -1)
		return -1;
	if (source == SOURCE_LIST) {
		waiting = ask_number(ask(j->ctl, "LLEN %s", k[KEY_QUEUE]));
		j->waiting = int64_max(waiting, j->waiting);
		if (cancel_key(j, KEY_QUEUE, waiting) == -1)
			return -1;
	}
	forget_tags(j);
	if (j->group != NULL)
		return cancel_group(j);
	for (i = 0; i < j->select.nids; i++)
		if (cancel_tag(j, i, id[i], strlen(id[i])) == -1)
			return -1;
	if (source == SOURCE_IDS)
		return 0;
	return cancel_further(j);
}

/* What cancel.lua does with a message. */
static const char *
cancel_mode(const struct ctl *c)
{
	if (ctl_given(c, OPT_DRY_RUN))
		return "look";
	if (ctl_given(c, OPT_RERUN))
		return "retry";
	if (ctl_given(c, OPT_LETTER))
		return "dead";
	return "drop";
}

static void
cancel_run(struct ctl *c)
{
	struct canceller j = {
		.ctl = c, .scan = SCAN, .dry = ctl_given(c, OPT_DRY_RUN),
		.retry = ctl_given(c, OPT_RERUN), .mode = cancel_mode(c)
	};
	char *who;
	int i, rc = 0;

	if (ctl_count(c, OPT_SCAN, SCAN_MAX, &j.scan) == -1 ||
	    select_parse(c, &j.select) == -1)
		return;
	if (j.retry && ctl_given(c, OPT_LETTER)) {
		ctl_error(c, EX_USAGE, "--retry and --dead do not go together");
		return;
	}
	if (ctl_given(c, OPT_GROUP) == (j.select.nids > 0)) {
		ctl_error(c, EX_USAGE, "select messages: by id, or by --group GROUP");
		return;
	}
	if (ctl_given(c, OPT_GROUP) && c->target.group_by[0] == '\0') {
		ctl_error(c, EX_USAGE, "%s has no group_by, so no groups", c->target.name);
		return;
	}
	if (ctl_given(c, OPT_GROUP)) {
		j.group = ctl_value(c, OPT_GROUP);
		j.select.ids = &j.group;
		j.select.nids = 1;
	}
	for (i = 0; i < j.select.nids; i++)
		if (j.select.ids[i][0] == '\0') {
			ctl_error(c, EX_USAGE, "an id or a group is empty");
			return;
		}
	ctl_catch_signals();
	who = pausetext_who();
	j.error = xasprintf("cancelled by %s", who);
	/* A mark must not have other characters (see cancel.lua). */
	snprintf(j.who, sizeof(j.who), "%s", who);
	ctl_make_plain(j.who, "@._-");
	j.found = xcalloc((size_t)j.select.nids, sizeof(j.found[0]));

	EACH_KEY(k, &c->target)
		if (rc == 0)
			rc = cancel_in_key(&j);
	tell_daemons(&j);	/* even after an error: some may be marked */
	for (i = 0; i < j.select.nids && rc == 0; i++)
		if (j.found[i] == NULL || j.found[i][0] != '\0')
			not_found(&j, j.select.ids[i], j.found[i]);
	if (j.group != NULL && !j.retry && rc == 0)
		not_searched(&j);
	if (ctl_interrupted() && c->status == 0)
		c->status = EX_INTERRUPTED;
	forget_tags(&j);
	while (j.nmarked > 0) {
		free(j.marked[--j.nmarked].tag);
		free(j.marked[j.nmarked].daemon);
	}
	free(j.marked);
	free(j.found);
	free(j.error);
	free(who);
}

const struct verb verb_cancel = {
	.name = "cancel",
	.args = "QUEUE [ID...]",
	.help = "end messages that wait, are delayed, or run",
	.more = "A message that waits, is delayed, or waits for a retry is "
	    "deleted. The handler of one in flight gets SIGTERM, and "
	    "SIGKILL after kill_grace. It does not ask for confirmation. "
	    "ID is a message's id, which means all messages that have it, "
	    "or a tag. With --retry, a message in flight fails instead, "
	    "and is tried again.",
	.options = OPT(LETTER) | OPT(RERUN) | OPT(SCAN) | OPT(GROUP) |
	    OPT(DRY_RUN),
	.min_args = 1,
	.max_args = -1,
	.flags = VERB_JSON | VERB_KEEPING | VERB_LINES,
	.run = cancel_run,
};
