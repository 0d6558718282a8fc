/*
 * rqctl locks, unlock: the holders of locks, and how to break a lock.
 *
 * Redis has no list of locks: each key Lock:NAME is one.  So rqctl searches the names of
 * all keys by SCAN, in steps that do not block Redis.
 */
#include "rqctl/locks.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "queue/lock.h"
#include "rqctl/ask.h"
#include "rqctl/listing.h"

#define STEP		1000LL		/* keys per SCAN */
#define LOCKS_MAX	100000
#define VALUE_END	"511"		/* as unlock.lua compares */
#define SHOWN		60		/* bytes of another program's value */
#define ASKED		100		/* locks that are asked about at once */

/* -- holders ---------------------------------------------------------------------- */

/* The host's name becomes one word of harmless characters. */
char *
locks_self(void)
{
	char *text = xasprintf("%s %ld", util_hostname(), (long)getpid());
	char *end = strrchr(text, ' '), *p;

	for (p = text; p < end; p++)
		if (!isalnum((unsigned char)*p) && strchr("._-", *p) == NULL)
			*p = '_';
	return text;
}

char *
locks_holder(const char *value, size_t len)
{
	char *copy = xstrndup(value, len), *text;
	char since[CLOCK_TEXT_MAX];
	struct lock_holder h;

	lock_holder(copy, &h);
	if (h.host[0] != '\0')
		text = xasprintf("%s, process %ld, since %s", h.host, h.pid,
		    clock_text((wall_t)(h.since * (double)SEC), since));
	else
		text = xasprintf("another program: \"%.*s\"", SHOWN, copy);
	free(copy);
	return text;
}

/* -- names ------------------------------------------------------------------------ */

/* Without Lock:.  A name may hold any bytes. */
struct names {
	struct words	 found;		/* in the order of SCAN, which may return a name twice */
	int		*order;		/* n; sorted, each name once */
	int		 n;
};

static int
by_name(const void *va, const void *vb, void *arg)
{
	const struct words *w = arg;
	int a = *(const int *)va, b = *(const int *)vb;
	size_t alen = w->len[a], blen = w->len[b];
	int d = memcmp(w->v[a], w->v[b], alen < blen ? alen : blen);

	return d != 0 ? d : alen < blen ? -1 : alen > blen;
}

static void
names_sort(struct names *names)
{
	struct words *w = &names->found;
	int *order = names->order = xcalloc((size_t)w->n + 1, sizeof(order[0])), i;

	for (i = 0; i < w->n; i++)
		order[i] = i;
	qsort_r(order, (size_t)w->n, sizeof(order[0]), by_name, w);
	for (i = 0; i < w->n; i++)
		if (names->n == 0 || by_name(&order[names->n - 1], &order[i], w) != 0)
			order[names->n++] = order[i];
}

static void
take_names(struct names *names, const struct redisReply *keys)
{
	const size_t skip = strlen(KEYS_LOCK_PREFIX);
	const char *key;
	size_t i, len;

	for (i = 0; i < reply_len(keys); i++)
		if ((key = reply_str(reply_at(keys, i), &len)) != NULL && len >= skip)
			words_own(&names->found, xmemdup(key + skip, len - skip), len - skip);
}

/* All names: 0, or -1 after an error was reported. */
static int
find_names(struct ctl *c, struct names *names)
{
	int64_t total = ask_number(ask(c, "DBSIZE")), looked = 0;
	struct redisReply *step;
	char cursor[24] = "0";

	ctl_catch_signals();
	do {
		step = ask(c, "SCAN %s MATCH " KEYS_LOCK_PREFIX "* COUNT %lld", cursor, STEP);
		if (step == NULL)
			return -1;
		snprintf(cursor, sizeof(cursor), "%" PRId64, reply_int(reply_at(step, 0), 0));
		take_names(names, reply_at(step, 1));
		blocking_reply_free(step);
		looked += STEP;
		if (looked < total)
			out_progress("%d%% of %lld keys looked at", (int)(100 * looked / total),
			    (long long)total);
		if (ctl_interrupted())
			return ctl_error(c, EX_INTERRUPTED, "interrupted");
	} while (strcmp(cursor, "0") != 0 && names->found.n < LOCKS_MAX);
	out_progress_clear();
	names_sort(names);
	return 0;
}

/* -- locks ------------------------------------------------------------------------ */

struct found {
	const char	*name;
	size_t		 namelen;
	struct lock_holder holder;	/* host "": another program's */
	const char	*value;		/* its beginning; NULL: the key is no lock */
	size_t		 len;
	int64_t		 left;		/* ms; -1: for ever */
	double		 now;
};

static void
lock_json(json_t *o, const struct found *f)
{
	bool ours = f->holder.host[0] != '\0';
	struct buf key = BUF_INIT;

	buf_puts(&key, KEYS_LOCK_PREFIX);
	buf_add(&key, f->name, f->namelen);
	out_set(o, "name:b key:b value:b host:s pid:j since:f left:f", f->name, f->namelen,
	    key.data, key.len, f->value, f->len, ours ? f->holder.host : NULL,
	    ours ? json_integer(f->holder.pid) : NULL, ours ? f->holder.since : NAN,
	    f->left >= 0 ? (double)f->left / 1e3 : NAN);
	buf_done(&key);
}

static void
lock_row(struct listing *l, const struct found *f)
{
	const struct lock_holder *h = &f->holder;
	struct table *t = &l->table;
	json_t *o = listing_row(l);
	char text[UNITS_TEXT_MAX];

	if (o != NULL) {
		lock_json(o, f);
		return;
	}
	table_bytes(t, f->name, f->namelen);
	table_add(t, "%s", units_age((double)f->left / 1e3, text));
	if (f->left < 0)
		table_colour(t, COLOUR_RED);
	if (h->host[0] != '\0') {
		table_add(t, "%s", units_age(f->now > h->since ? f->now - h->since : 0, text));
		table_add(t, "%ld", h->pid);
		table_add(t, "%s", h->host);
	} else {
		table_add(t, "-");
		table_add(t, "-");
		table_bytes(t, f->value, f->len);
	}
}

/* Takes the two replies about a lock; skips it if it is gone, or no string. */
static int
take_lock(struct listing *l, struct found *f)
{
	struct redisReply *value = ask_next(l->ctl), *left;
	char *text;

	left = value != NULL ? ask_next(l->ctl) : NULL;
	f->value = reply_error(value) == REPLY_OK ? reply_str(value, &f->len) : NULL;
	f->left = reply_int(left, -2);
	if (f->value != NULL && f->left != -2) {
		text = xstrndup(f->value, f->len);
		lock_holder(text, &f->holder);
		lock_row(l, f);
		free(text);
	}
	blocking_reply_free(value);
	blocking_reply_free(left);
	return left == NULL ? -1 : 0;
}

/* Lists locks first to end - 1. */
static int
list_some(struct listing *l, const struct names *names, int first, int end, double now)
{
	struct found f = { .now = now };
	int i;

	for (i = first; i < end; i++) {
		f.name = names->found.v[names->order[i]];
		f.namelen = names->found.len[names->order[i]];
		if (ask_append(l->ctl, "GETRANGE %s%.*s 0 " VALUE_END, KEYS_LOCK_PREFIX,
			(int)f.namelen, f.name) == -1 ||
		    ask_append(l->ctl, "PTTL %s%.*s", KEYS_LOCK_PREFIX, (int)f.namelen,
		    f.name) == -1)
			return -1;
	}
	for (i = first; i < end; i++) {
		f.name = names->found.v[names->order[i]];
		f.namelen = names->found.len[names->order[i]];
		if (take_lock(l, &f) == -1)
			return -1;
	}
	return 0;
}

void
locks_run(struct ctl *c)
{
	struct names names = { .n = 0 };
	struct listing l;
	int i, n, end;
	double now;

	if (listing_init(&l, c, "LOCK|>LEFT|>HELD|>PID|HOLDER") == 0 &&
	    find_names(c, &names) == 0 && (now = ask_time(c)) >= 0) {
		n = (int)listing_room(&l, names.n);
		l.more = n < names.n;
		for (i = 0; i < n; i = end) {
			end = n - i > ASKED ? i + ASKED : n;
			if (list_some(&l, &names, i, end, now) == -1)
				break;
		}
	}
	listing_end(&l, names.n, "locks", "no lock is held on %s",
	    c->client != NULL ? blocking_address(c->client) : "Redis");
	words_done(&names.found);
	free(names.order);
}

/* -- unlock ----------------------------------------------------------------------- */

/* Breaks the lock only if its value is still the one that was shown. */
static void
unlock(struct ctl *c, const char *name, const char *value, size_t len)
{
	bool dry = ctl_given(c, OPT_DRY_RUN);
	char *holder = locks_holder(value, len);
	int64_t n;

	if (!ctl_given(c, OPT_FORCE))
		ctl_error(c, EX_TEMPFAIL, "lock %s is held by %s; --force breaks it", name, holder);
	else if (dry || ctl_confirm(c, "break lock %s, held by %s", name, holder)) {
		n = dry ? 1 : ask_number(ask_script(c, "unlock", 1, "%s%s %.*s", KEYS_LOCK_PREFIX,
		    name, (int)len, value));
		if (n == 0)
			ctl_error(c, EX_NOTHING,
			    "lock %s has another holder now: nothing was done", name);
		else if (n > 0)
			ctl_result(c, out_set(json_object(), "name:s broken:i dry_run:t", name, n,
			    dry), "%s %s", dry ? "would break" : "broke", name);
	}
	free(holder);
}

void
unlock_run(struct ctl *c)
{
	const char *name = c->args.words[0], *text;
	int64_t there = ask_number(ask(c, "EXISTS %s%s", KEYS_LOCK_PREFIX, name));
	struct redisReply *value;
	size_t len = 0;

	if (there == 0)
		ctl_error(c, EX_NOTHING, "nobody holds lock %s", name);
	if (there <= 0)
		return;
	value = ask(c, "GETRANGE %s%s 0 " VALUE_END, KEYS_LOCK_PREFIX, name);
	text = reply_str(value, &len);
	if (value != NULL)
		unlock(c, name, text != NULL ? text : "", len);
	blocking_reply_free(value);
}
