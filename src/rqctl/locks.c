/*
 * rqctl locks, unlock: who holds what, and how to break it.
 *
 * There is no list of locks in Redis: whoever writes Lock:NAME has one.  So their
 * keys are searched for by SCAN, in steps that Redis does not notice.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/keys.h"
#include "queue/lock.h"
#include "redis/reply.h"
#include "rqctl/ask.h"
#include "rqctl/groups.h"
#include "rqctl/holder.h"
#include "rqctl/out.h"
#include "rqctl/table.h"

#define STEP		"1000"		/* keys per SCAN */
#define LOCKS_MAX	100000
#define VALUE_END	"511"		/* as unlock.lua compares */

struct name {
	char	*text;			/* without Lock:; owned */
	size_t	 len;
};

struct names {
	struct name	*at;
	size_t		 n;
};

static int
by_name(const void *va, const void *vb)
{
	const struct name *a = va, *b = vb;
	size_t n = a->len < b->len ? a->len : b->len;
	int d = memcmp(a->text, b->text, n);

	return d != 0 ? d : a->len < b->len ? -1 : a->len > b->len;
}

static void
names_done(struct names *names)
{
	size_t i;

	for (i = 0; i < names->n; i++)
		free(names->at[i].text);
	free(names->at);
}

/* SCAN may tell a name twice. */
static void
names_sort(struct names *names)
{
	size_t i, n = 0;

	if (names->n > 0)
		qsort(names->at, names->n, sizeof(names->at[0]), by_name);
	for (i = 0; i < names->n; i++) {
		if (n > 0 && by_name(&names->at[n - 1], &names->at[i]) == 0)
			free(names->at[i].text);
		else
			names->at[n++] = names->at[i];
	}
	names->n = n;
}

static void
take_names(struct names *names, const struct redisReply *keys)
{
	const size_t skip = strlen(KEYS_LOCK_PREFIX);
	const char *key;
	size_t i, len;

	names->at = xreallocarray(names->at, names->n + reply_len(keys) + 1,
	    sizeof(names->at[0]));
	for (i = 0; i < reply_len(keys); i++) {
		key = reply_str(reply_at(keys, i), &len);
		if (key == NULL || len < skip)
			continue;
		names->at[names->n].len = len - skip;
		names->at[names->n++].text = xmemdup(key + skip, len - skip + 1);
	}
}

/* All names, or -1 after an error. */
static int
find_names(struct ctl *c, struct names *names)
{
	struct redisReply *size = ask(c, "DBSIZE", NULL), *step;
	int64_t total = reply_int(size, 0), looked = 0;
	char cursor[24] = "0";

	client_reply_free(size);
	ctl_catch_signals();
	do {
		step = ask(c, "SCAN", cursor, "MATCH", KEYS_LOCK_PREFIX "*", "COUNT", STEP, NULL);
		if (step == NULL)
			return -1;
		snprintf(cursor, sizeof(cursor), "%" PRId64, reply_int(reply_at(step, 0), 0));
		take_names(names, reply_at(step, 1));
		client_reply_free(step);
		looked += 1000;
		if (looked < total)
			out_progress("%d%% of %lld keys looked at", (int)(100 * looked / total),
			    (long long)total);
		if (ctl_interrupted())
			return ctl_error(c, EX_INTERRUPTED, "interrupted");
	} while (strcmp(cursor, "0") != 0 && names->n < LOCKS_MAX);
	out_progress_clear();
	names_sort(names);
	return 0;
}

/* The key of the lock, and its length; the caller frees it.  A name may hold any bytes. */
static char *
lock_key(const struct name *name, size_t *len)
{
	size_t n = strlen(KEYS_LOCK_PREFIX);
	char *key = xmalloc(n + name->len);

	memcpy(key, KEYS_LOCK_PREFIX, n);
	memcpy(key + n, name->text, name->len);
	*len = n + name->len;
	return key;
}

/* -- one lock ------------------------------------------------------------------- */

struct found {
	const struct name *name;
	const char	*value;		/* cut; NULL: the key is no lock */
	size_t		 len;
	int64_t		 left;		/* ms; -1: for ever */
	double		 now;
};

static json_t *
lock_json(const struct found *f)
{
	json_t *o = json_object();
	size_t len;
	char *key = lock_key(f->name, &len);
	char *value = xstrndup(f->value, f->len);
	struct lock_holder h;

	lock_holder(value, &h);
	out_set_bytes(o, "name", f->name->text, f->name->len);
	out_set_bytes(o, "key", key, len);
	out_set_bytes(o, "value", f->value, f->len);
	if (h.host[0] != '\0')
		out_set_bytes(o, "host", h.host, strlen(h.host));
	else
		json_object_set_new(o, "host", json_null());
	json_object_set_new(o, "pid", h.host[0] != '\0' ? json_integer(h.pid) : json_null());
	json_object_set_new(o, "since", h.host[0] != '\0' ? json_real(h.since) : json_null());
	json_object_set_new(o, "left", f->left >= 0 ? json_real((double)f->left / 1e3) :
	    json_null());
	free(value);
	free(key);
	return o;
}

static void
lock_row(struct table *t, const struct found *f)
{
	char *value = xstrndup(f->value, f->len), text[32];
	struct lock_holder h;

	lock_holder(value, &h);
	table_bytes(t, f->name->text, f->name->len);
	table_add(t, "%s", f->left >= 0 ? out_age((double)f->left / 1e3, text) : "-");
	if (f->left < 0)
		table_colour(t, COLOUR_RED);
	if (h.host[0] != '\0') {
		table_add(t, "%s", out_age(f->now > h.since ? f->now - h.since : 0, text));
		table_add(t, "%ld", h.pid);
		table_add(t, "%s", h.host);
	} else {
		table_add(t, "-");
		table_add(t, "-");
		table_bytes(t, f->value, f->len);
	}
	free(value);
}

/* -- locks ---------------------------------------------------------------------- */

static int
ask_about(struct ctl *c, const struct name *name)
{
	struct words w = { 0 };
	size_t len;
	char *key = lock_key(name, &len);
	int rc;

	words_add(&w, "GETRANGE");
	words_mem(&w, key, len);
	words_add(&w, "0");
	words_add(&w, VALUE_END);
	rc = ask_append_words(c, &w);
	words_clear(&w);
	words_add(&w, "PTTL");
	words_mem(&w, key, len);
	if (rc == 0)
		rc = ask_append_words(c, &w);
	words_done(&w);
	free(key);
	return rc;
}

/* The answers about one; what is no string, or gone by now, is passed over. */
static int
show_one(struct ctl *c, const struct name *name, double now, struct table *t, json_t *array)
{
	struct redisReply *value = ask_next(c), *left = NULL;
	struct found f = { .name = name, .now = now };

	if (value != NULL)
		left = ask_next(c);
	if (left == NULL) {
		client_reply_free(value);
		return -1;
	}
	f.value = reply_error(value) == REPLY_OK ? reply_str(value, &f.len) : NULL;
	f.left = reply_int(left, -2);
	if (f.value != NULL && f.left != -2) {
		json_array_append_new(array, lock_json(&f));
		lock_row(t, &f);
	}
	client_reply_free(value);
	client_reply_free(left);
	return 0;
}

static int
show_all(struct ctl *c, const struct names *names, size_t most, struct table *t, json_t *array)
{
	double now = ask_time(c);
	size_t i, k, n = names->n < most ? names->n : most;

	if (now < 0)
		return -1;
	for (i = 0; i < n; i = k) {
		for (k = i; k < n && k < i + 100; k++) {
			if (ask_about(c, &names->at[k]) == -1)
				return -1;
		}
		for (k = i; k < n && k < i + 100; k++) {
			if (show_one(c, &names->at[k], now, t, array) == -1)
				return -1;
		}
	}
	return 0;
}

void
locks_run(struct ctl *c)
{
	struct names names = { NULL, 0 };
	json_t *array = json_array();
	long most = 1000;
	struct table t;

	table_init(&t, "<LOCK", ">LEFT", ">HELD", ">PID", "<HOLDER", NULL);
	if (ctl_list_count(c, &most) == 0 && find_names(c, &names) == 0 &&
	    show_all(c, &names, (size_t)most, &t, array) == 0) {
		if (ctl_given(c, OPT_JSON))
			out_json(json_incref(array));
		else if (table_rows(&t) > 0)
			table_show(&t);
		else
			ctl_note(c, "no lock is held on %s", client_address(c->client));
		if (names.n > (size_t)most)
			ctl_list_cut(c, most, (int64_t)names.n, "locks");
	}
	names_done(&names);
	json_decref(array);
	table_done(&t);
}

/* -- unlock --------------------------------------------------------------------- */

static void
tell(const struct ctl *c, const char *name, bool done)
{
	json_t *o;

	if (!ctl_given(c, OPT_JSON)) {
		printf("%s %s\n", done ? "broke" : "would break", name);
		return;
	}
	o = json_object();
	out_set_bytes(o, "name", name, strlen(name));
	json_object_set_new(o, "broken", json_integer(1));
	json_object_set_new(o, "dry_run", json_boolean(!done));
	out_json(o);
}

static void
break_lock(struct ctl *c, const char *key, const char *name, const char *value, size_t len)
{
	struct words w = { 0 };
	struct redisReply *reply;

	words_add(&w, key);
	words_mem(&w, value, len);
	reply = ask_script(c, "unlock", 1, &w);
	if (reply != NULL && reply_int(reply, 0) == 1)
		tell(c, name, true);
	else if (reply != NULL)
		ctl_error(c, EX_NOTHING, "lock %s: its holder has changed meanwhile", name);
	client_reply_free(reply);
	words_done(&w);
}

/* Only the holder that was shown is broken. */
static void
unlock(struct ctl *c, const char *key, const char *name, const struct redisReply *value)
{
	size_t len = 0;
	const char *text = reply_str(value, &len);
	char *holder = holder_text(text != NULL ? text : "", len);

	if (!ctl_given(c, OPT_FORCE))
		ctl_error(c, EX_TEMPFAIL, "lock %s is held by %s; --force breaks it", name, holder);
	else if (ctl_given(c, OPT_DRY_RUN))
		tell(c, name, false);
	else if (ctl_confirm(c, "break lock %s of %s", name, holder))
		break_lock(c, key, name, text != NULL ? text : "", len);
	free(holder);
}

void
unlock_run(struct ctl *c)
{
	const char *name = c->args.words[0];
	char *key = xasprintf("%s%s", KEYS_LOCK_PREFIX, name);
	struct redisReply *there = ask(c, "EXISTS", key, NULL), *value = NULL;

	if (there != NULL && reply_int(there, 0) == 0)
		ctl_error(c, EX_NOTHING, "nobody holds lock %s", name);
	else if (there != NULL &&
	    (value = ask(c, "GETRANGE", key, "0", VALUE_END, NULL)) != NULL)
		unlock(c, key, name, value);
	client_reply_free(value);
	client_reply_free(there);
	free(key);
}
