/*
 * Checks options against each other: names and keys of queues, limits that belong
 * together, hand-over, schedules and their queues.  It also parses the cron of each
 * schedule.
 *
 * The daemon and rqctl both run these checks.  Only the check of timezones depends on this
 * machine, and rqctl leaves it out: the daemons may run elsewhere.
 */
#include "config/draft.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/utf8.h"
#include "policy/message.h"
#include "policy/shard_keys.h"
#include "policy/zone.h"
#include "queue/keys.h"

#define TIME_LEN	21	/* "@2026-11-21T08:00:00Z" behind a schedule's name makes an id */

/* -- names ------------------------------------------------------------------------- */

/* Sorted by name or key, and by order where those are equal. */
static int
by_name(const void *va, const void *vb)
{
	const struct draft_section *const *a = va, *const *b = vb;
	int d = strcmp((*a)->name, (*b)->name);

	return d != 0 ? d : *a < *b ? -1 : 1;
}

static int
by_key(const void *va, const void *vb)
{
	const struct draft_section *const *a = va, *const *b = vb;
	int d = strcmp((*a)->queue->key, (*b)->queue->key);

	return d != 0 ? d : *a < *b ? -1 : 1;
}

static int
key_compare(const void *key, const void *v)
{
	const struct draft_section *const *s = v;

	return strcmp(key, (*s)->queue->key);
}

/* The sections whose titles could be read; the caller frees the array. */
static const struct draft_section **
named_sections(const struct draft_sections *all, size_t *n)
{
	const struct draft_section **named = xcalloc(all->n + 1, sizeof(*named));

	for (size_t i = *n = 0; i < all->n; i++) {
		if (all->list[i].named)
			named[(*n)++] = &all->list[i];
	}
	return named;
}

static void
check_title(struct draft *d, const struct draft_section *s)
{
	int max = s->section == SECTION_QUEUE ? MESSAGE_ID_MAX : MESSAGE_ID_MAX - TIME_LEN;
	size_t len = strlen(s->name);

	if (!message_id_ok(s->name, len) || len > (size_t)max || !utf8_is_valid(s->name, len))
		finding_error(&d->findings, &s->at, "%s \"%.40s\": a name has 1 to %d bytes of "
		    "UTF-8 and no control characters", section_name(s->section), s->name, max);
}

/* The titles of all queues, or of all schedules. */
static void
check_names(struct draft *d, const struct draft_sections *all)
{
	const struct draft_section **sorted, *before = NULL;
	char place[PLACE_TEXT_MAX];
	size_t i, n;

	sorted = named_sections(all, &n);
	qsort(sorted, n, sizeof(*sorted), by_name);
	for (i = 0; i < n; before = sorted[i++]) {
		check_title(d, sorted[i]);
		if (before == NULL || strcmp(before->name, sorted[i]->name) != 0)
			continue;
		finding_error(&d->findings, &sorted[i]->at, "%s \"%s\" is defined twice (first at "
		    "%s)", section_name(before->section), before->name,
		    place_text(&before->at, place));
		findings_share(&d->findings, &before->at);
	}
	free(sorted);
}

/* -- keys -------------------------------------------------------------------------- */

/* Reports one key under two names; a name that is given twice was reported before. */
static void
check_equal_keys(struct draft *d, const struct draft_section **sorted, size_t n)
{
	char first[PLACE_TEXT_MAX];

	for (size_t i = 1; i < n; i++) {
		const struct draft_section *a = sorted[i - 1], *b = sorted[i];

		if (strcmp(a->queue->key, b->queue->key) != 0 || strcmp(a->name, b->name) == 0)
			continue;
		draft_error(d, b, "key", "queue \"%s\" has the same key as queue \"%s\" (%s): "
		    "\"%s\"", b->name, a->name, place_text(&a->at, first), b->queue->key);
		findings_share(&d->findings, &a->at);
	}
}

/* Whether another queue's key is one that rqd derives from q, a key of this one. */
static void
check_derived_keys(struct draft *d, const struct draft_section *s, const char *q,
    const struct draft_section **sorted, size_t n)
{
	char place[PLACE_TEXT_MAX];
	bool own = strcmp(q, s->queue->key) == 0;

	for (enum key k = own ? KEY_QUEUE + 1 : KEY_QUEUE; k < KEY_MAX; k++) {
		char *key = xasprintf("%s%s", q, keys_suffix(k));
		const struct draft_section *const *at = bsearch(key, sorted, n, sizeof(*sorted),
		    key_compare);

		if (at != NULL) {
			draft_error(d, *at, "key", "the key \"%s\" of queue \"%s\" is one that "
			    "queue \"%s\" (%s) uses: give it another name or key", key, (*at)->name,
			    s->name, place_text(&s->at, place));
			findings_share(&d->findings, &s->at);
		}
		free(key);
	}
}

static void
check_reserved_key(struct draft *d, const struct draft_section *s)
{
	const char *key = s->queue->key;

	if (strcmp(key, KEYS_DAEMONS) == 0 || strcmp(key, KEYS_QUEUES) == 0 ||
	    strncmp(key, KEYS_DAEMON_PREFIX, strlen(KEYS_DAEMON_PREFIX)) == 0)
		draft_error(d, s, "key", "the key \"%s\" is one that daemons use for themselves: "
		    "give the queue another one", key);
}

static void
check_keys(struct draft *d)
{
	size_t i, n;
	const struct draft_section **sorted = named_sections(&d->queues, &n);

	qsort(sorted, n, sizeof(*sorted), by_key);
	check_equal_keys(d, sorted, n);
	for (i = 0; i < n; i++) {
		if (i > 0 && strcmp(sorted[i - 1]->queue->key, sorted[i]->queue->key) == 0)
			continue;
		for (size_t k = 0; k < config_key_count(sorted[i]->queue); k++)
			check_derived_keys(d, sorted[i], config_key_at(sorted[i]->queue, k),
			    sorted, n);
		check_reserved_key(d, sorted[i]);
	}
	free(sorted);
}

/* -- shards ------------------------------------------------------------------------ */

static void
check_count(struct draft *d, const struct draft_section *s, const char *option, int n)
{
	int below = 1;

	if (shard_keys_count_ok(n) || !draft_is_sound(s, option))
		return;
	while (below * 2 <= n)
		below *= 2;
	draft_error(d, s, option, "%s %d is not a power of two: write %d or %d", option, n, below,
	    below * 2);
}

static void
check_shards(struct draft *d, const struct draft_section *s)
{
	const struct queue_config *q = s->queue;
	const char *given = draft_setting(s, "key") != NULL ? "key" : "shards";

	check_count(d, s, "shards", q->shards);
	check_count(d, s, "shards_drain", q->shards_drain);
	if (!config_is_sharded(q))
		return;
	if (q->shards_drain > 1 && q->shards_drain <= q->shards)
		draft_error(d, s, "shards_drain", "shards_drain %d is not above shards %d: write "
		    "the number of shards that there were before, or leave it out", q->shards_drain,
		    q->shards);
	if (strpbrk(q->keys[0], "{}") != NULL)
		draft_error(d, s, given, "the key \"%s\" of a queue with shards has a brace: rqd "
		    "writes {KEY.0}, {KEY.1} ...; give it a key without braces", q->keys[0]);
	if (q->rate[0] != '\0')
		draft_error(d, s, "rate", "rate cannot be used with shards: no key knows what the "
		    "others deliver; write shards = 1");
	if (q->fleet_concurrency > 0)
		draft_error(d, s, "fleet_concurrency", "fleet_concurrency cannot be used with "
		    "shards: no key knows what the others deliver; write shards = 1");
}

/*
 * Checks several channels or patterns: if one is given twice, rqd would get each
 * message twice.
 */
static void
check_channels(struct draft *d, const struct draft_section *s)
{
	const struct queue_config *q = s->queue;
	size_t i, k;

	if (q->keys[1] != NULL && !kind_has(q->kind, TRAIT_SUBSCRIBES)) {
		draft_error(d, s, "key", "key takes one value with kind \"%s\"",
		    kind_name(q->kind));
		return;
	}
	for (i = 1; q->keys[0] != NULL && q->keys[i] != NULL; i++) {
		for (k = 0; k < i && strcmp(q->keys[k], q->keys[i]) != 0; k++)
			continue;
		if (k < i)
			draft_error(d, s, "key", "key names \"%s\" twice", q->keys[i]);
	}
}

/* -- limits ------------------------------------------------------------------------ */

static void
check_backoff(struct draft *d, const struct draft_section *s)
{
	const struct queue_config *q = s->queue;
	const char *given = draft_setting(s, "backoff") != NULL ? "backoff" : "backoff_max";
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];

	if (q->backoff > q->backoff_max && draft_is_sound(s, "backoff") &&
	    draft_is_sound(s, "backoff_max"))
		draft_error(d, s, given, "backoff %s is longer than backoff_max %s",
		    units_duration(q->backoff, a), units_duration(q->backoff_max, b));
}

static void
check_lease(struct draft *d, const struct draft_section *s)
{
	usec_t lease = s->queue->lease, timeout = d->config->redis.timeout;
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];

	if (lease <= timeout && draft_setting(s, "lease") != NULL && draft_is_sound(s, "lease"))
		draft_warn(d, s, "lease", "lease %s is not longer than redis.timeout %s: a slow "
		    "answer may cost the lease", units_duration(lease, a),
		    units_duration(timeout, b));
}

/* -- hand-over ---------------------------------------------------------------------- */

/*
 * Whether handlers can push to the queue: by lines of standard output, or by its name
 * in a statement.
 */
static void
check_can_push(struct draft *d, const struct draft_section *s, const char *name)
{
	const struct queue_config *q = s->queue;
	const char *output = config_output_queue(q);

	if (output != NULL && strcmp(output, name) == 0)
		return;
	if (strchr(name, ' ') != NULL)
		draft_error(d, s, "pushes", "pushes names \"%s\", and no handler can: in \"push "
		    "NAME MESSAGE\" the name ends at the first blank; give the queue a name "
		    "without blanks, and key = \"%s\" if its key in Redis must stay", name,
		    config_queue(d->config, name)->key);
	else if (q->mode == MODE_EXEC && !q->verdicts)
		draft_error(d, s, "pushes", "pushes names \"%s\", and no handler can push to it: "
		    "verdicts = false closes descriptor 3; write verdicts = true or output = "
		    "\"push:%s\"", name, name);
}

static void
check_push(struct draft *d, const struct draft_section *s, const char *name)
{
	const struct queue_config *to = config_queue(d->config, name);

	if (to == NULL)
		draft_error(d, s, "pushes", "pushes names \"%.60s\", and there is no queue of this "
		    "name: add queue \"%.60s\" { concurrency = 0 } if others consume it", name,
		    name);
	else if (!kind_has(to->kind, TRAIT_TAKES_PUSHES))
		draft_error(d, s, "pushes", "pushes names \"%s\", a queue of kind \"%s\": handlers "
		    "can push to queues of kind \"ack\" only", name, kind_name(to->kind));
	else if (to == s->queue)
		draft_warn(d, s, "pushes", "queue \"%s\" pushes to itself: its messages may never "
		    "end", name);
	if (to != NULL)
		check_can_push(d, s, name);
}

static void
check_pushes(struct draft *d, const struct draft_section *s)
{
	const struct queue_config *q = s->queue;
	const char *output = config_output_queue(q);

	if (output != NULL && q->mode == MODE_PERSISTENT)
		draft_error(d, s, "output", "output = \"%s\" has no meaning with mode "
		    "\"persistent\", whose standard output has answers: let the handler write \"N "
		    "push %s MESSAGE\"", q->output, output);
	else if (output != NULL && !kind_has(q->kind, TRAIT_LEASES))
		draft_error(d, s, "output", "output = \"%s\" has no meaning with kind \"%s\", "
		    "which does not keep its messages", q->output, kind_name(q->kind));
	else if (output != NULL && draft_is_sound(s, "pushes") &&
	    !util_has(q->pushes, SIZE_MAX, output))
		draft_error(d, s, "output", "output = \"%s\", and pushes does not list \"%s\": "
		    "write pushes = {\"%s\"}", q->output, output, output);
	if (!kind_has(q->kind, TRAIT_LEASES) || !draft_is_sound(s, "pushes"))
		return;
	for (size_t i = 0; q->pushes[i] != NULL; i++)
		check_push(d, s, q->pushes[i]);
}

/* -- a queue ------------------------------------------------------------------------ */

static void
check_has_command(struct draft *d, const struct draft_section *s)
{
	if (!s->named || s->open || !config_consumes(s->queue))
		return;
	if (draft_setting(s, "command") == NULL)
		finding_error(&d->findings, &s->at, "queue \"%s\" has no command: write "
		    "command = {\"/path/to/command\"}", s->name);
	else if (s->queue->command[0] == NULL && draft_is_sound(s, "command"))
		draft_error(d, s, "command", "the command is empty: write {\"/path/to/command\", "
		    "\"argument\"}");
}

/* Checks batch above 1, and framing if it is given. */
static void
check_batch(struct draft *d, const struct draft_section *s)
{
	const struct queue_config *q = s->queue;
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];

	if (q->mode == MODE_PERSISTENT && q->framing == FRAMING_RAW)
		draft_error(d, s, "framing", "framing \"raw\" has no meaning with mode "
		    "\"persistent\": write \"length\" or \"line\"");
	if (!config_has_batches(q))
		return;
	if (config_output_queue(q) != NULL)
		draft_error(d, s, "output", "output = \"%s\" cannot be used with batch %d: a line "
		    "belongs to no single message; write batch = 1", q->output, q->batch);
	if (q->fleet_concurrency > 0)
		draft_error(d, s, "fleet_concurrency", "fleet_concurrency cannot be used with "
		    "batch %d: it counts messages, and batches would share what it allows; write "
		    "batch = 1", q->batch);
	if (q->batch_wait > q->lease / 3)
		draft_error(d, s, "batch_wait", "batch_wait %s is longer than a third of the lease "
		    "%s: the messages have begun their lease; write %s or less",
		    units_duration(q->batch_wait, a), units_duration(q->lease, b),
		    units_duration(q->lease / 3, (char[UNITS_TEXT_MAX]){ 0 }));
}

static void
check_queue(struct draft *d, const struct draft_section *s)
{
	check_channels(d, s);
	check_shards(d, s);
	check_has_command(d, s);
	check_backoff(d, s);
	check_lease(d, s);
	check_pushes(d, s);
	check_batch(d, s);
}

/* -- schedules --------------------------------------------------------------------- */

/* A message for a queue of kind "unique" must be an id. */
static void
check_message(struct draft *d, const struct draft_section *s, const struct queue_config *q)
{
	const char *message = s->schedule->message;
	size_t len = strlen(message);

	if (kind_source(q->kind) == SOURCE_IDS && len > 0 && !message_id_ok(message, len))
		draft_error(d, s, "message", "the messages of queue \"%s\" are ids: 1 to %d bytes "
		    "without control characters", q->name, MESSAGE_ID_MAX);
	else if (len > q->message_max)
		draft_error(d, s, "message", "the message is longer than message_max of queue "
		    "\"%s\"", q->name);
}

static void
check_target(struct draft *d, const struct draft_section *s)
{
	const char *name = s->schedule->queue;
	const struct queue_config *q = config_queue(d->config, name);

	if (name[0] == '\0') {
		if (!s->open && draft_is_sound(s, "queue"))
			draft_error(d, s, "queue", "schedule \"%s\" has no queue: write queue = "
			    "\"NAME\"", s->name);
	} else if (q == NULL) {
		draft_error(d, s, "queue", "there is no queue \"%s\"", name);
	} else if (!kind_waits(q->kind)) {
		draft_error(d, s, "queue", "queue \"%s\" is of kind %s, which holds no messages: "
		    "nothing can be pushed to it", name, kind_name(q->kind));
	} else {
		check_message(d, s, q);
	}
}

/* Reports a schedule with neither every nor cron. */
static void
check_never(struct draft *d, const struct draft_section *s)
{
	if (!draft_is_sound(s, "every") || !draft_is_sound(s, "cron"))
		return;
	if (draft_setting(s, "every") != NULL)
		draft_error(d, s, "every", "schedule \"%s\": every is 0, and there is no cron: "
		    "write every = 1h or cron = \"0 3 * * *\"", s->name);
	else if (!s->open)
		finding_error(&d->findings, &s->at, "schedule \"%s\" does not say when: write "
		    "every = 1h or cron = \"0 * * * *\"", s->name);
}

static void
check_times(struct draft *d, const struct draft_section *s)
{
	struct schedule_config *c = s->schedule;
	char *cause = NULL;

	if (c->every != 0 && c->cron[0] != '\0')
		draft_error(d, s, "cron", "schedule \"%s\" has both every and cron: write one of "
		    "them", s->name);
	else if (c->every == 0 && c->cron[0] == '\0')
		check_never(d, s);
	if (c->every % SEC != 0)
		draft_error(d, s, "every", "every is a whole number of seconds");
	if (c->cron[0] != '\0' && cron_parse(c->cron, &c->times, &cause) == -1)
		fatalx("cron of schedule %s: %s", s->name, cause);
}

/* rqctl may not be on the machine that the daemon runs on. */
static void
check_zone(struct draft *d, const struct draft_section *s)
{
	const struct schedule_config *c = s->schedule;
	char *cause = NULL;

	if (c->cron[0] == '\0' && strcmp(c->timezone, ZONE_UTC) != 0 && draft_is_sound(s, "cron"))
		draft_error(d, s, "timezone", "timezone has a meaning with cron only");
	else if (!d->source->client && zone_check(c->timezone, &cause) == -1)
		draft_error(d, s, "timezone", "%s", cause);
	free(cause);
}

/* -- all --------------------------------------------------------------------------- */

static void
check_tls(struct draft *d)
{
	const struct redis_options *r = &d->config->redis;

	if ((r->tls_cert[0] == '\0') != (r->tls_key[0] == '\0'))
		finding_error(&d->findings, draft_global_place(d, SECTION_REDIS,
		    r->tls_cert[0] != '\0' ? "tls_cert" : "tls_key"),
		    "tls_cert and tls_key go together: give both or none");
}

void
consistency_check(struct draft *d)
{
	check_tls(d);
	check_names(d, &d->queues);
	check_names(d, &d->schedules);
	check_keys(d);
	hash_tags_check(d);
	for (size_t i = 0; i < d->queues.n; i++)
		check_queue(d, &d->queues.list[i]);
	for (size_t i = 0; i < d->schedules.n; i++) {
		check_target(d, &d->schedules.list[i]);
		check_times(d, &d->schedules.list[i]);
		check_zone(d, &d->schedules.list[i]);
	}
}
