/* Reads dead letters; see dead_summary.h. */
#include "status/dead_summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/util.h"
#include "loop/timer.h"
#include "redis/request.h"
#include "redis/script.h"
#include "status/json_bytes.h"

#define PAUSE		(20 * MSEC)
#define SHARE		10	/* it uses 1/SHARE of Redis' time: letters can be large */
#define LOOK		"200"		/* letters */
#define LOOK_BYTES	"262144"	/* of them */
#define CUT		"2000"		/* bytes of each text */
#define REASONS		"8"

/* A function that waits for the summary of one queue. */
struct dead_wait {
	TAILQ_ENTRY(dead_wait)	 entry;
	char	*key;		/* owned */
	void	(*fn)(const json_t *, void *);
	void	*arg;
};
TAILQ_HEAD(dead_list, dead_wait);

struct dead_reader {
	struct nodes	*nodes;
	struct dead_list waits;		/* the first one's request may be in flight */
	struct request	 request;
	usec_t		 asked_at;	/* mono; the last one was sent */
	struct timer	 next;		/* set while there are waits and no request */
};

/* Returned by dead_summary.lua. */
enum { SUMMARY_TOTAL, SUMMARY_LOOKED, SUMMARY_NEWEST, SUMMARY_FIELDS };
enum { REASON_NAME, REASON_COUNT, REASON_LAST, REASON_FIELDS };

/* -- JSON ------------------------------------------------------------------------- */

/* The id of a letter begins with the milliseconds of its death. */
static double
died(const char *letter)
{
	return letter != NULL ? strtod(letter, NULL) / 1e3 : 0;
}

static json_t *
newest_json(const struct redisReply *row)
{
	static const char *const names[] = {
		NULL, "id", "reason", "status", "host", "attempts", "answer", "error"
	};
	const char *text;
	json_t *o;
	size_t len;

	if (reply_len(row) < ARRAY_LEN(names))
		return NULL;
	o = json_set(json_object(), "died:f", died(reply_str(reply_at(row, 0), NULL)));
	for (size_t i = 1; i < ARRAY_LEN(names); i++)
		if ((text = reply_str(reply_at(row, i), &len)) != NULL)
			json_set_bytes(o, names[i], text, len);
	return o;
}

static int
more_letters_first(const void *a, const void *b)
{
	json_int_t x = json_integer_value(json_object_get(*(json_t *const *)a, "count"));
	json_int_t y = json_integer_value(json_object_get(*(json_t *const *)b, "count"));

	return (x < y) - (x > y);
}

static json_t *
reasons_json(const struct redisReply *reply)
{
	size_t n = (reply_len(reply) - SUMMARY_FIELDS) / REASON_FIELDS, i, at, len;
	json_t **sorted = xcalloc(n + 1, sizeof(sorted[0])), *list = json_array();
	const char *name;

	for (i = 0; i < n; i++) {
		at = SUMMARY_FIELDS + i * REASON_FIELDS;
		name = reply_str(reply_at(reply, at + REASON_NAME), &len);
		sorted[i] = json_set(json_object(), "reason:b count:i last:f",
		    name != NULL ? name : "", name != NULL ? len : 0,
		    reply_int(reply_at(reply, at + REASON_COUNT), 0),
		    died(reply_str(reply_at(reply, at + REASON_LAST), NULL)));
	}
	qsort(sorted, n, sizeof(sorted[0]), more_letters_first);
	for (i = 0; i < n; i++)
		json_array_append_new(list, sorted[i]);
	free(sorted);
	return list;
}

/* A new object; NULL: an error, or a reply that the script never gives. */
static json_t *
summary_json(const struct redisReply *reply)
{
	if (reply_error(reply) != REPLY_OK || reply_len(reply) < SUMMARY_FIELDS)
		return NULL;
	return json_set(json_object(), "total:i looked:i reasons:j newest:j",
	    reply_int(reply_at(reply, SUMMARY_TOTAL), 0),
	    reply_int(reply_at(reply, SUMMARY_LOOKED), 0), reasons_json(reply),
	    newest_json(reply_at(reply, SUMMARY_NEWEST)));
}

/* -- shards ----------------------------------------------------------------------- */

static void
add_integer(json_t *o, const char *name, const json_t *other)
{
	json_int_t n = json_integer_value(json_object_get(o, name)) +
	    json_integer_value(json_object_get(other, name));

	json_object_set_new(o, name, json_integer(n));
}

static bool
is_later(const json_t *o, const json_t *other, const char *name)
{
	return json_number_value(json_object_get(other, name)) >
	    json_number_value(json_object_get(o, name));
}

static void
add_reason(json_t *list, json_t *reason)
{
	json_t *known;
	size_t i;

	json_array_foreach(list, i, known) {
		if (!json_equal(json_object_get(known, "reason"),
		    json_object_get(reason, "reason")))
			continue;
		add_integer(known, "count", reason);
		if (is_later(known, reason, "last"))
			json_object_set(known, "last", json_object_get(reason, "last"));
		return;
	}
	json_array_append(list, reason);
}

void
dead_summary_add(json_t *o, const json_t *other)
{
	json_t *reason, *newest = json_object_get(other, "newest");
	size_t i;

	add_integer(o, "total", other);
	add_integer(o, "looked", other);
	json_array_foreach(json_object_get(other, "reasons"), i, reason)
		add_reason(json_object_get(o, "reasons"), reason);
	if (is_later(json_object_get(o, "newest"), newest, "died"))
		json_object_set(o, "newest", newest);
}

/* -- one after the other ---------------------------------------------------------- */

/* Answers the first waiter. */
static void
answer_first(struct dead_reader *r, const json_t *summary)
{
	struct dead_wait *w = TAILQ_FIRST(&r->waits);

	TAILQ_REMOVE(&r->waits, w, entry);
	w->fn(summary, w->arg);
	free(w->key);
	free(w);
}

static void
got_summary(enum conn_answer how, const struct redisReply *reply, void *arg)
{
	struct dead_reader *r = arg;
	json_t *summary = how == CONN_REPLY ? summary_json(reply) : NULL;

	answer_first(r, summary);
	json_decref(summary);
	if (!TAILQ_EMPTY(&r->waits))
		timer_set(&r->next, PAUSE + (SHARE - 1) * (clock_mono() - r->asked_at));
}

static void
ask_next(void *arg)
{
	struct dead_reader *r = arg;
	const struct dead_wait *w = TAILQ_FIRST(&r->waits);
	struct words words = { .n = 0 };

	r->asked_at = clock_mono();
	words_key(&words, w->key, strlen(w->key));
	words_add(&words, LOOK);
	words_add(&words, LOOK_BYTES);
	words_add(&words, CUT);
	words_add(&words, REASONS);
	request_script(&r->request, nodes_conn(r->nodes, w->key), script_find("dead_summary"),
	    &words);
}

void
dead_reader_ask(struct dead_reader *r, const char *key, void (*fn)(const json_t *, void *),
    void *arg)
{
	struct dead_wait *w = NEW(struct dead_wait, .key = xstrdup(key), .fn = fn, .arg = arg);

	TAILQ_INSERT_TAIL(&r->waits, w, entry);
	if (!request_is_sent(&r->request) && !timer_is_set(&r->next))
		timer_set(&r->next, PAUSE);
}

struct dead_reader *
dead_reader_new(struct loop *loop, struct nodes *nodes)
{
	struct dead_reader *r = NEW(struct dead_reader, .nodes = nodes);

	TAILQ_INIT(&r->waits);
	request_init(&r->request, got_summary, r);
	timer_init(&r->next, loop, ask_next, r);
	return r;
}

void
dead_reader_free(struct dead_reader *r)
{
	if (r == NULL)
		return;
	request_cancel(&r->request);
	timer_stop(&r->next);
	while (!TAILQ_EMPTY(&r->waits))
		answer_first(r, NULL);
	free(r);
}
