/*
 * rqctl push: a producer.
 *
 * rqctl pushes messages byte for byte: to a list with LPUSH, many lines in one command,
 * bounded by count and by bytes.  So a file of any size needs little memory.  For kind
 * "unique" it adds ids to the sorted set, for kind "stream" entries.  To a channel it
 * publishes messages, and counts the subscribers.
 *
 * push.lua adds a delayed message to QRETRY, under a tag of its own: two equal messages stay
 * two.
 *
 * rqctl prints an id only after Redis has confirmed its message.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "policy/message.h"
#include "policy/shard_keys.h"
#include "rqctl/ask.h"
#include "rqctl/out.h"

#define BATCH		1000		/* messages per command */
#define BATCH_BYTES	(1 << 20)

struct pushing {
	struct ctl	*ctl;
	struct target	*target;
	const char	*at;		/* when they are due, in Redis seconds; "": after delay */
	const char	*delay;		/* seconds; NULL: now */
	char		 text[32];	/* holds at or delay */
	struct words	 batch;		/* messages that are not pushed yet */
	long long	 pushed;
	int64_t		 least, most;	/* published: subscribers of one message */
	json_t		*ids;		/* with --json */
};

/* Reads --delay and --at.  Returns 0, or -1 after an error was reported. */
static int
parse_due(struct pushing *p)
{
	struct ctl *c = p->ctl;
	char *cause;
	usec_t delay = 0;
	wall_t at;

	if (ctl_given(c, OPT_DELAY) && ctl_given(c, OPT_AT))
		return ctl_error(c, EX_USAGE, "--delay and --at do not go together");
	if (ctl_duration(c, OPT_DELAY, &delay) == -1)
		return -1;
	if (ctl_given(c, OPT_DELAY)) {
		snprintf(p->text, sizeof(p->text), "%.6f", (double)delay / 1e6);
		p->at = "";
		p->delay = p->text;
	} else if (ctl_given(c, OPT_AT)) {
		if (units_parse_time(ctl_value(c, OPT_AT), &at, &cause) == -1)
			return ctl_wrong(c, OPT_AT, cause);
		snprintf(p->text, sizeof(p->text), "%.6f", (double)at / 1e6);
		p->at = p->text;
		p->delay = "0";
	}
	return 0;
}

static void
print_id(struct pushing *p, const char *id)
{
	if (p->ids != NULL)
		json_array_append_new(p->ids, strcmp(id, "-") == 0 ? json_null() :
		    out_bytes("id", id, strlen(id)));
	else
		out_line(NULL, "%s", id);
}

/* Reports message i as pushed, with its id if it has one. */
static void
pushed(struct pushing *p, int i)
{
	char id[MESSAGE_ID_MAX + 1];

	print_id(p, message_id_of(p->target->kind, p->batch.v[i], p->batch.len[i], id) == 0 ?
	    id : "-");
	p->pushed++;
}

/* Adds all messages of the batch to a command, sends it and reports the messages. */
static int
push_all(struct pushing *p, struct words *w, const char *script)
{
	struct redisReply *reply;

	for (int i = 0; i < p->batch.n; i++)
		words_mem(w, p->batch.v[i], p->batch.len[i]);
	reply = script != NULL ? ask_script_words(p->ctl, script, 1, w) : ask_words(p->ctl, w);
	for (int i = 0; reply != NULL && i < p->batch.n; i++)
		pushed(p, i);
	blocking_reply_free(reply);
	return reply == NULL ? -1 : 0;
}

/* Pushes a batch to one list, or ids of kind "unique", whether due now or later. */
static int
push_batch(struct pushing *p)
{
	const struct target *t = p->target;
	const char *key = t->keys.name[KEY_QUEUE];
	struct words w = { .n = 0 };

	if (t->source != SOURCE_IDS) {
		ask_add(&w, "%s %s", t->cfg != NULL ? config_push_command(t->cfg) : "LPUSH", key);
		return push_all(p, &w, NULL);
	}
	ask_add(&w, "%s %s %s", key, p->delay != NULL ? p->at : "",
	    p->delay != NULL ? p->delay : "0");
	return push_all(p, &w, "unique_push");
}

/* Whether rqctl must choose a shard for each message. */
static bool
has_shards(const struct pushing *p)
{
	return p->target->cfg != NULL && p->target->cfg->shards > 1;
}

static void
select_shard(struct pushing *p, const char *text, size_t len)
{
	if (has_shards(p))
		target_select(p->target, shard_keys_pick(p->target->cfg, text, len));
}

static int
append_push(struct pushing *p, const char *text, int len)
{
	const char *key;

	if (p->target->source == SOURCE_CHANNEL)
		return ask_append(p->ctl, "PUBLISH %s %.*s", p->target->cfg->keys[0], len, text);
	select_shard(p, text, (size_t)len);
	key = p->target->keys.name[KEY_QUEUE];
	return p->target->source == SOURCE_LIST ?
	    ask_append(p->ctl, "LPUSH %s %.*s", key, len, text) :
	    ask_append(p->ctl, "XADD %s * message %.*s", key, len, text);
}

/*
 * Sends a command for each message of the batch, in one round trip: PUBLISH to the first
 * channel, LPUSH to a shard, or XADD to a stream, which gives the id.
 */
static int
push_each(struct pushing *p)
{
	bool channel = p->target->source == SOURCE_CHANNEL;
	struct redisReply *reply;
	int64_t heard;
	const char *text;
	int i, rc = 0;

	for (i = 0; i < p->batch.n && rc == 0; i++)
		rc = append_push(p, p->batch.v[i], (int)p->batch.len[i]);
	/* After a refusal, the other replies are read, but not reported. */
	for (i = 0; i < p->batch.n && rc == 0 && (reply = ask_next(p->ctl)) != NULL; i++) {
		if (p->ctl->status == 0 && reply_error(reply) != REPLY_OK)
			ask_refused(p->ctl, reply);
		else if (p->ctl->status == 0 && channel) {
			heard = reply_int(reply, 0);
			p->least = p->pushed == 0 || heard < p->least ? heard : p->least;
			p->most = heard > p->most ? heard : p->most;
			pushed(p, i);
		} else if (p->ctl->status == 0 && has_shards(p)) {
			pushed(p, i);
		} else if (p->ctl->status == 0 && (text = reply_str(reply, NULL)) != NULL) {
			print_id(p, text);
			p->pushed++;
		}
		blocking_reply_free(reply);
	}
	return rc == 0 && p->ctl->status == 0 ? 0 : -1;
}

static void
report_subscribers(const struct pushing *p)
{
	const char *channel = p->target->cfg->keys[0];

	fflush(stdout);
	/* On a cluster PUBLISH counts the subscribers of one node only. */
	if (ctl_is_cluster(p->ctl))
		return;
	if (p->least == 0)
		ctl_error(p->ctl, EX_NOTHING, "no subscriber to %s: %s", channel, p->most == 0 ?
		    "the messages are lost" : "some messages are lost");
	else if (p->least == p->most)
		ctl_note("published to %lld subscriber%s", (long long)p->most,
		    p->most == 1 ? "" : "s");
	else
		ctl_note("published to %lld to %lld subscribers", (long long)p->least,
		    (long long)p->most);
}

/* Pushes one message that is due later.  The script may be sent twice: the tag is the same. */
static int
push_later(struct pushing *p, const char *text, size_t len)
{
	char tag[MESSAGE_ID_MAX + 32], id[MESSAGE_ID_MAX + 1], unique[17];
	char *const *k = p->target->keys.name;
	struct redisReply *reply;

	select_shard(p, text, len);
	random_name(unique, sizeof(unique));
	if (message_id_of(p->target->kind, text, len, id) == 0)
		snprintf(tag, sizeof(tag), "%s#%s", id, unique);
	else {
		snprintf(id, sizeof(id), "~%s", unique);
		snprintf(tag, sizeof(tag), "%s", id);
	}
	reply = ask_script(p->ctl, "push", 4, "%s %s %s %s %s %lld %s %s %.*s", k[KEY_BACKUP],
	    k[KEY_CONTEXT], k[KEY_RETRY], k[KEY_DELIVERY], tag, (long long)strlen(id), p->at,
	    p->delay, (int)len, text);
	if (reply == NULL)
		return -1;
	blocking_reply_free(reply);
	print_id(p, id);
	p->pushed++;
	return 0;
}

static int
flush(struct pushing *p)
{
	int i, rc = 0;

	if (p->batch.n == 0)
		return 0;
	if (ctl_given(p->ctl, OPT_LINES))
		snprintf(p->ctl->note, sizeof(p->ctl->note),
		    "; %lld lines were pushed before, and perhaps some of the next %d",
		    p->pushed, p->batch.n);
	if (p->target->source == SOURCE_CHANNEL || (p->delay == NULL && has_shards(p)) ||
	    (p->delay == NULL && p->target->source == SOURCE_STREAM))
		rc = push_each(p);
	else if (p->delay == NULL || p->target->source == SOURCE_IDS)
		rc = push_batch(p);
	else
		for (i = 0; i < p->batch.n && rc == 0; i++)
			rc = push_later(p, p->batch.v[i], p->batch.len[i]);
	words_done(&p->batch);
	return rc;
}

/* Refuses a message that rqd would make a dead letter for its size. */
static int
check_size(const struct pushing *p, size_t len)
{
	const struct queue_config *cfg = p->target->cfg;
	char max[UNITS_TEXT_MAX];

	if (cfg == NULL || len <= cfg->message_max)
		return 0;
	return ctl_error(p->ctl, EX_DATAERR, "a message of %zu bytes is larger than "
	    "message_max of %s, %s", len, p->target->name,
	    units_size(cfg->message_max, max));
}

static int
add_message(struct pushing *p, const char *data, size_t len)
{
	if (check_size(p, len) == -1)
		return -1;
	words_own(&p->batch, xmemdup(data, len), len);
	return p->batch.n == BATCH || p->batch.bytes >= BATCH_BYTES ? flush(p) : 0;
}

static int
read_failed(struct pushing *p)
{
	return ctl_error(p->ctl, EX_IOERR, "standard input: %s", strerror(errno));
}

/* Appends input to the buffer; returns what read(2) does. */
static ssize_t
read_some(struct buf *in)
{
	ssize_t n;

	buf_reserve(in, 65536);
	n = TEMP_FAILURE_RETRY(read(STDIN_FILENO, in->data + in->len, 65536));
	in->len += n > 0 ? (size_t)n : 0;
	return n;
}

/* All of standard input is one message. */
static int
push_stdin(struct pushing *p)
{
	bool typed = isatty(STDIN_FILENO);
	struct buf in = BUF_INIT;
	ssize_t n;
	int rc;

	if (typed)
		ctl_note("type the message; Control-D ends it");
	/* A terminal hands out lines: one without a newline was ended by Control-D. */
	do
		n = read_some(&in);
	while (n > 0 && (!typed || in.data[in.len - 1] == '\n'));
	rc = n == -1 ? read_failed(p) : add_message(p, in.data, in.len);
	buf_done(&in);
	return rc;
}

/* Adds the complete lines of `in`, and drops them from it. */
static int
take_lines(struct pushing *p, struct buf *in)
{
	const char *from = in->data, *end = in->data + in->len, *nl;
	int rc = 0;

	while (rc == 0 && (nl = memchr(from, '\n', (size_t)(end - from))) != NULL) {
		rc = add_message(p, from, (size_t)(nl - from));
		from = nl + 1;
	}
	buf_drain(in, (size_t)(from - in->data));
	return rc;
}

/*
 * Pushes each line as a message, without its newline; the last line may have none.  Pushes the
 * lines so far whenever no input is ready, so a slow producer's lines are not delayed.
 */
static int
push_lines(struct pushing *p)
{
	struct pollfd more = { .fd = STDIN_FILENO, .events = POLLIN };
	struct buf in = BUF_INIT;
	ssize_t n = 0;
	int rc = 0;

	while (rc == 0 && (n = read_some(&in)) > 0) {
		rc = take_lines(p, &in);
		if (rc == 0 && poll(&more, 1, 0) != 1)
			rc = flush(p);
	}
	if (rc == 0 && n == -1)
		rc = read_failed(p);
	else if (rc == 0 && in.len > 0)
		rc = add_message(p, in.data, in.len);
	buf_done(&in);
	return rc;
}

static int
push_input(struct pushing *p, const char *text)
{
	int rc;

	if (ctl_given(p->ctl, OPT_LINES))
		rc = push_lines(p);
	else if (text == NULL || strcmp(text, "-") == 0)
		rc = push_stdin(p);
	else
		rc = add_message(p, text, strlen(text));
	rc = rc == 0 ? flush(p) : rc;
	if (rc == 0 && p->target->source == SOURCE_CHANNEL && p->pushed > 0)
		report_subscribers(p);
	return rc;
}

void
push_text(struct ctl *c, const char *text)
{
	struct pushing push = { .ctl = c, .target = &c->target }, *p = &push;

	if (ctl_given(c, OPT_LINES) && text != NULL)
		ctl_error(c, EX_USAGE, "--lines reads standard input; it takes no MESSAGE");
	else if (parse_due(p) == 0 && p->delay != NULL && !kind_has(p->target->kind, TRAIT_LEASES))
		ctl_error(c, EX_USAGE, "queues of kind %s, as %s is, have no delayed messages",
		    kind_name(p->target->kind), p->target->name);
	p->ids = ctl_given(c, OPT_JSON) ? json_array() : NULL;
	/* Connects before it reads input: nobody should type a message that cannot be pushed. */
	if (c->status == 0 && ctl_connect(c) == 0)
		(void)push_input(p, text);
	if (p->ids != NULL && c->status != EX_USAGE)
		out_json(json_incref(p->ids));
	json_decref(p->ids);
	words_done(&p->batch);
}

void
push_run(struct ctl *c)
{
	push_text(c, c->args.words[1]);
}
