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
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "policy/message.h"
#include "queue/pausetext.h"
#include "rqctl/ask.h"
#include "rqctl/change.h"
#include "rqctl/out.h"
#include "rqctl/waiting.h"

#define SCAN		10000		/* default of --scan */
#define SCAN_MAX	300000		/* Redis searches them twice per message: 10 ms */
#define WINDOW		500		/* entries of the list that are read at once */

/* A message in flight that cancel.lua has marked. */
struct marked {
	char		*tag;		/* escaped; owned */
	const char	*daemon;	/* borrowed */
	double		 left;		/* seconds until its lease ends; NAN: not known */
};

struct canceller {
	struct ctl	*ctl;
	const char	*mode;		/* for cancel.lua: "look", "drop" or "dead" */
	char		*error;		/* of the dead letters */
	char		 who[DELIVERY_BY];	/* for cancel.lua, see set_who() */
	long		 scan;
	struct select	 select;	/* the ids */
	bool		*found;		/* for each id: a message has it */
	int64_t		 waiting;	/* messages in the list, or in the longest shard */
	struct words	 tags;		/* of this key, done: HSCAN may return a tag twice */
	struct words	 daemons;	/* that get a hint */
	struct marked	*marked;	/* owned */
	size_t		 nmarked;
};

/* -- one message -------------------------------------------------------------------- */

static bool
is_dry(const struct canceller *j)
{
	return ctl_given(j->ctl, OPT_DRY_RUN);
}

/* Adds a copy of the text.  Returns false if the list has it already. */
static bool
add_once(struct words *w, const char *text, size_t len)
{
	for (int i = 0; i < w->n; i++)
		if (w->len[i] == len && memcmp(w->v[i], text, len) == 0)
			return false;
	words_own(w, xmemdup(text, len), len);
	return true;
}

/* Marks the id as found, also where the arguments repeat it. */
static void
set_found(struct canceller *j, int which)
{
	for (int i = 0; i < j->select.nids; i++)
		if (strcmp(j->select.ids[i], j->select.ids[which]) == 0)
			j->found[i] = true;
}

/* place: where the message was.  daemon: the one that runs it, or NULL. */
static void
report(const struct canceller *j, const char *name, size_t len, const char *place,
    const char *daemon)
{
	bool dead = ctl_given(j->ctl, OPT_LETTER);
	struct buf b = BUF_INIT;
	json_t *o;

	out_escape(&b, name, len);
	o = json_set(json_object(), "queue:s tag:b place:s daemon:s dead:t dry_run:t",
	    j->ctl->target.name, name, len, place, daemon, dead, is_dry(j));
	ctl_result(j->ctl, o, "%scancelled%s: %s of %s, %s%s%s", is_dry(j) ? "would be " : "",
	    dead ? " as a dead letter" : "", buf_str(&b), j->ctl->target.name, place,
	    daemon != NULL ? " on " : "", daemon != NULL ? daemon : "");
	buf_done(&b);
}

/* -- waiting and delayed -------------------------------------------------------------- */

/* Returns the index of the id among those selected, or -1.  "": the message has no id. */
static int
which_id(const struct canceller *j, const char *id)
{
	for (int i = 0; id[0] != '\0' && i < j->select.nids; i++)
		if (strcmp(j->select.ids[i], id) == 0)
			return i;
	return -1;
}

/* Ends one message of a key.  Returns 1; 0 if it has left the key meanwhile; -1 after an error. */
static int
cancel_waiting(struct canceller *j, enum key key, int which, const char *data, size_t len)
{
	const struct target *t = &j->ctl->target;
	bool list = key == KEY_QUEUE && t->source == SOURCE_LIST;
	struct words w = { .n = 0 };
	struct redisReply *reply;
	const char *answer;
	int rc = -1;

	ask_add(&w, "%s %s %s %s %lld %s %s %lld %s", t->keys.name[key], t->keys.name[KEY_DEAD],
	    list ? "list" : "zset", j->mode, t->cfg != NULL ? (long long)t->cfg->dead_max : 0LL,
	    j->ctl->config->name, j->error, (long long)j->scan, j->select.ids[which]);
	words_mem(&w, data, len);
	reply = ask_script_words(j->ctl, "cancel_waiting", 2, &w);
	if ((answer = reply_str(reply, NULL)) != NULL)
		rc = strcmp(answer, "ok") == 0;
	if (rc == 1) {
		set_found(j, which);
		report(j, j->select.ids[which], strlen(j->select.ids[which]),
		    key == KEY_DELAYED ? "delayed" : "waiting", NULL);
	}
	blocking_reply_free(reply);
	return rc;
}

/* Searches entries lo to hi - 1 of the list or of QDELAYED; 0 is the next one. */
static int
cancel_window(struct canceller *j, enum key key, int64_t lo, int64_t hi)
{
	struct redisReply *page;
	char id[MESSAGE_ID_MAX + 1];
	struct waiting m;
	size_t i, n = 1;
	int which, rc = 0;

	for (; lo < hi && n > 0 && rc != -1; lo += (int64_t)n) {
		page = waiting_page(j->ctl, &j->ctl->target, key, "", lo, (long)(hi - lo),
		    WAITING_CUT);
		if (page == NULL)
			return -1;
		n = waiting_len(page);
		for (i = 0; i < waiting_len(page) && rc != -1; i++) {
			waiting_get(page, i, &m);
			which = which_id(j, waiting_id(j->ctl->target.kind, &m, id));
			if (which == -1 || (int64_t)m.len != m.size)
				continue;
			rc = cancel_waiting(j, key, which, m.data, m.len);
			lo -= rc == 1 && !is_dry(j);	/* what follows has moved up */
		}
		blocking_reply_free(page);
	}
	return rc == -1 ? -1 : 0;
}

/* total: how many entries the key has; -1: counting them failed.  Returns 0, or -1 to stop. */
static int
cancel_key(struct canceller *j, enum key key, int64_t total)
{
	int64_t lo, hi;

	for (hi = total < j->scan ? total : j->scan; hi > 0; hi = lo) {
		lo = hi > WINDOW ? hi - WINDOW : 0;
		if (ctl_interrupted() || cancel_window(j, key, lo, hi) == -1)
			return -1;
	}
	return total == -1 ? -1 : 0;
}

/* For kind "unique": Q is a set of ids, so no search is needed. */
static int
cancel_ids(struct canceller *j)
{
	for (int i = 0; i < j->select.nids; i++)
		if (cancel_waiting(j, KEY_QUEUE, i, j->select.ids[i],
		    strlen(j->select.ids[i])) == -1)
			return -1;
	return 0;
}

/* -- deliveries ------------------------------------------------------------------------- */

/* Seconds until the lease of a tag ends; < 0: it has ended.  NAN: the lease is not known. */
static double
lease_left(struct canceller *j, const char *tag, size_t len)
{
	const struct target *t = &j->ctl->target;
	struct redisReply *reply;
	double left = NAN;

	if (t->cfg == NULL)
		return NAN;
	reply = ask(j->ctl, "ZSCORE %s %.*s", t->keys.name[KEY_BACKUP], (int)len, tag);
	if (reply != NULL)
		left = reply_is_nil(reply) ? -1 : reply_double(reply, 0) +
		    clock_seconds(t->cfg->lease) - ask_time(j->ctl);
	blocking_reply_free(reply);
	return left;
}

/* Remembers the message, and its daemon for a hint. */
static void
add_marked(struct canceller *j, const char *daemon, const char *tag, size_t len)
{
	struct buf b = BUF_INIT;
	int i;

	(void)add_once(&j->daemons, daemon, strlen(daemon) + 1);
	for (i = 0; strcmp(j->daemons.v[i], daemon) != 0; i++)
		continue;
	out_escape(&b, tag, len);
	*APPEND(j->marked, j->nmarked) = (struct marked){ buf_steal(&b), j->daemons.v[i],
		is_dry(j) ? NAN : lease_left(j, tag, len) };
}

/* Takes cancel.lua's answer for one tag. */
static void
tag_done(struct canceller *j, int which, const char *tag, size_t len,
    const struct redisReply *reply)
{
	const char *state = reply_str_at(reply, 0), *token = reply_str_at(reply, 1);
	char daemon[DELIVERY_INSTANCE];

	if (strcmp(state, "unknown") == 0)
		return;
	set_found(j, which);
	if (strcmp(state, "foreign") == 0) {
		ctl_error(j->ctl, EX_NOTHING, "%.*s of %s cannot be cancelled: another consumer "
		    "than rqd has it", (int)len, tag, j->ctl->target.name);
		return;
	}
	delivery_instance(token, daemon);
	report(j, tag, len, strcmp(state, "waiting") == 0 ? "retry" : state,
	    daemon[0] != '\0' ? daemon : NULL);
	if (daemon[0] != '\0')
		add_marked(j, daemon, tag, len);
}

static int
cancel_tag(struct canceller *j, int which, const char *tag, size_t len)
{
	const struct target *t = &j->ctl->target;
	char *const *k = t->keys.name;
	struct redisReply *reply;

	if (!add_once(&j->tags, tag, len))
		return 0;
	reply = ask_script(j->ctl, "cancel", 5, "%s %s %s %s %s %s %lld %s %s %.*s",
	    k[KEY_BACKUP], k[KEY_CONTEXT], k[KEY_RETRY], k[KEY_DELIVERY], k[KEY_DEAD], j->mode,
	    t->cfg != NULL ? (long long)t->cfg->dead_max : 0LL, j->ctl->config->name, j->who,
	    (int)len, tag);
	if (reply == NULL)
		return -1;
	tag_done(j, which, tag, len, reply);
	blocking_reply_free(reply);
	return 0;
}

/* Cancels the tag of a QDELIVERY field if it is a further delivery, id#..., of a selected id. */
static int
cancel_field(struct canceller *j, const struct redisReply *tag, const struct redisReply *value)
{
	struct delivery_info d;
	const char *text;
	size_t len;

	delivery_parse(reply_str(value, NULL), &d);
	if ((text = reply_str(tag, &len)) == NULL || !d.ours || d.idlen >= len)
		return 0;
	for (int i = 0; i < j->select.nids; i++)
		if (strlen(j->select.ids[i]) == d.idlen &&
		    memcmp(j->select.ids[i], text, d.idlen) == 0)
			return cancel_tag(j, i, text, len);
	return 0;
}

/* A pattern for HSCAN that matches the further deliveries of all ids. */
static char *
further_pattern(const struct canceller *j)
{
	struct buf b = BUF_INIT;
	const char *p;

	if (j->select.nids > 1)
		buf_puts(&b, "*");
	for (p = j->select.ids[0]; j->select.nids == 1 && *p != '\0'; p++)
		buf_printf(&b, "%s%c", strchr("*?[]\\", *p) != NULL ? "\\" : "", *p);
	buf_puts(&b, "#*");
	return buf_steal(&b);
}

static int
cancel_further(struct canceller *j)
{
	char cursor[24] = "0", *pattern = further_pattern(j);
	struct redisReply *reply;
	const struct redisReply *page;
	int rc = 0;

	do {
		reply = ask(j->ctl, "HSCAN %s %s MATCH %s COUNT 1000",
		    j->ctl->target.keys.name[KEY_DELIVERY], cursor, pattern);
		page = reply_at(reply, 1);
		snprintf(cursor, sizeof(cursor), "%s", reply_str_at(reply, 0));
		for (size_t i = 0; i + 1 < reply_len(page) && rc == 0; i += 2)
			rc = cancel_field(j, reply_at(page, i), reply_at(page, i + 1));
		rc = reply == NULL || ctl_interrupted() ? -1 : rc;
		blocking_reply_free(reply);
	} while (rc == 0 && strcmp(cursor, "0") != 0);
	free(pattern);
	return rc;
}

static int
cancel_deliveries(struct canceller *j)
{
	for (int i = 0; i < j->select.nids; i++)
		if (cancel_tag(j, i, j->select.ids[i], strlen(j->select.ids[i])) == -1)
			return -1;
	return j->ctl->target.source == SOURCE_IDS ? 0 : cancel_further(j);
}

/* -- the end ------------------------------------------------------------------------------ */

/* Tells the user when a message ends if its daemon is dead. */
static void
note_left(const struct canceller *j, const struct marked *m)
{
	const char *what = ctl_given(j->ctl, OPT_LETTER) ? "makes it a dead letter" : "drops it";
	char age[UNITS_TEXT_MAX];

	if (isnan(m->left))
		ctl_note("%s: the next daemon that serves %s %s when its lease has ended", m->tag,
		    j->ctl->target.name, what);
	else if (m->left <= 0)
		ctl_note("%s: its lease has ended, and the next daemon that serves %s %s", m->tag,
		    j->ctl->target.name, what);
	else
		ctl_note("%s: its lease ends in %s; the next daemon that serves %s then %s", m->tag,
		    units_age(m->left, age), j->ctl->target.name, what);
}

/*
 * Reports a daemon that is not subscribed to its control channel.  Its heartbeat stays in Redis
 * for 30 seconds, so a daemon with a heartbeat may be dead, too.
 */
static void
note_unheard(struct canceller *j, const char *daemon)
{
	int64_t beats = ask_number(ask(j->ctl, "EXISTS %s%s", KEYS_DAEMON_PREFIX, daemon));

	if (beats > 0)
		ctl_note("%s does not receive hints: it ends the handler within 10 s; if it is "
		    "dead:", daemon);
	else
		ctl_note("%s has no heartbeat: it is dead, or Redis refuses it", daemon);
	for (size_t i = 0; i < j->nmarked; i++)
		if (strcmp(j->marked[i].daemon, daemon) == 0)
			note_left(j, &j->marked[i]);
}

/* Sends the hints.  Without one, a daemon sees the mark at its next renewal. */
static void
tell_daemons(struct canceller *j)
{
	const char *key = j->ctl->target.key;
	struct redisReply *reply;
	char *hint = xasprintf("renew %s", key);

	for (int i = 0; i < j->daemons.n && !is_dry(j); i++) {
		reply = ask_any(j->ctl, "PUBLISH %s%s %s", KEYS_CONTROL_PREFIX, j->daemons.v[i],
		    hint);
		if (reply != NULL && ask_heard(j->ctl, j->daemons.v[i], reply_int(reply, 0)) == 0)
			note_unheard(j, j->daemons.v[i]);
		blocking_reply_free(reply);
		if (reply == NULL)
			break;
	}
	free(hint);
}

/* Reports why an entry of a stream was not cancelled. */
static void
entry_not_found(struct canceller *j, const char *id)
{
	const struct target *t = &j->ctl->target;
	struct redisReply *reply = ask_script(j->ctl, "stream_show", 1, "%s %s %s",
	    t->keys.name[KEY_QUEUE], keys_group(&t->keys), id);
	const char *state = reply_str_at(reply, 0);

	if (reply == NULL)
		return;
	if (reply_str(reply_at(reply, 1), NULL) == NULL)
		ctl_error(j->ctl, EX_NOTHING, "%s has no message %s: not in flight, no retry, not "
		    "delayed, no entry of the stream", t->name, id);
	else if (strcmp(state, "pending") == 0)
		ctl_error(j->ctl, EX_NOTHING, "%s of %s cannot be cancelled: the consumer %s has "
		    "it", id, t->name, reply_str_at(reply, 2));
	else if (strcmp(state, "done") == 0)
		ctl_error(j->ctl, EX_NOTHING, "%s of %s is done: it is acknowledged", id, t->name);
	else
		ctl_error(j->ctl, EX_NOTHING, "%s of %s cannot be cancelled: an entry of a stream "
		    "that was never delivered stays there", id, t->name);
	blocking_reply_free(reply);
}

static void
not_found(struct canceller *j, const char *id)
{
	const struct target *t = &j->ctl->target;

	if (t->source == SOURCE_STREAM)
		entry_not_found(j, id);
	else if (j->waiting > j->scan)
		ctl_error(j->ctl, EX_NOTHING, "%s has no message %s: not in flight, no retry, not "
		    "delayed, not among the next %ld of %lld that wait; --scan N looks at more",
		    t->name, id, j->scan, (long long)j->waiting);
	else
		ctl_error(j->ctl, EX_NOTHING, "%s has no message %s: not in flight, no retry, not "
		    "delayed, not waiting; finished messages are only in the log", t->name, id);
}

/* Replaces the characters of "USER@HOST" that a mark must not have (see cancel.lua). */
static void
set_who(struct canceller *j, const char *who)
{
	snprintf(j->who, sizeof(j->who), "%s", who);
	for (char *p = j->who; *p != '\0'; p++)
		if (!isalnum((unsigned char)*p) && strchr("@._-", *p) == NULL)
			*p = '_';
}

static int
cancel_in_key(struct canceller *j)
{
	enum source source = j->ctl->target.source;
	char *const *k = j->ctl->target.keys.name;
	int64_t waiting;

	if (source == SOURCE_IDS ? cancel_ids(j) == -1 : cancel_key(j, KEY_DELAYED,
	    ask_number(ask(j->ctl, "ZCARD %s", k[KEY_DELAYED]))) == -1)
		return -1;
	if (source == SOURCE_LIST) {
		waiting = ask_number(ask(j->ctl, "LLEN %s", k[KEY_QUEUE]));
		j->waiting = waiting > j->waiting ? waiting : j->waiting;
		if (cancel_key(j, KEY_QUEUE, waiting) == -1)
			return -1;
	}
	return cancel_deliveries(j);
}

static int
cancel_everywhere(struct canceller *j)
{
	int rc = 0;

	EACH_KEY(i, &j->ctl->target) {
		words_done(&j->tags);
		rc = rc == 0 ? cancel_in_key(j) : rc;
	}
	return rc;
}

static void
run(struct canceller *j)
{
	int i, rc = cancel_everywhere(j);

	tell_daemons(j);	/* even after an error: some may be marked */
	for (i = 0; i < j->select.nids && rc == 0; i++)
		if (!j->found[i])
			not_found(j, j->select.ids[i]);
	if (ctl_interrupted() && j->ctl->status == 0)
		j->ctl->status = EX_INTERRUPTED;
}

void
cancel_run(struct ctl *c)
{
	struct canceller j = {
		.ctl = c, .scan = SCAN,
		.mode = ctl_given(c, OPT_DRY_RUN) ? "look" :
		    ctl_given(c, OPT_LETTER) ? "dead" : "drop"
	};
	char *who;

	if (ctl_count(c, OPT_SCAN, SCAN_MAX, &j.scan) == -1 ||
	    select_parse(c, &j.select) == -1)
		return;
	for (int i = 0; i < j.select.nids; i++)
		if (j.select.ids[i][0] == '\0') {
			ctl_error(c, EX_USAGE, "the id of a message is empty");
			return;
		}
	ctl_catch_signals();
	who = pausetext_who();
	j.error = xasprintf("cancelled by %s", who);
	set_who(&j, who);
	j.found = xcalloc((size_t)j.select.nids, sizeof(bool));
	run(&j);
	words_done(&j.tags);
	words_done(&j.daemons);
	while (j.nmarked > 0)
		free(j.marked[--j.nmarked].tag);
	free(j.marked);
	free(j.found);
	free(j.error);
	free(who);
}
