/*
 * rqctl push: a producer.
 *
 * rqctl pushes messages byte for byte, many lines in one round trip, bounded by count and by
 * bytes.  So a file of any size needs little memory.  A message is an element of a list, an id in
 * the sorted set of kind "unique", or an entry of a stream.  To a channel it publishes
 * messages, and counts the subscribers.
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
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "policy/message.h"
#include "policy/shard_keys.h"
#include "rqctl/ask.h"
#include "rqctl/out.h"

#define BATCH		1000		/* messages per round trip */
#define BATCH_BYTES	(1 << 20)

struct pushing {
	struct ctl	*ctl;
	struct target	*target;
	const char	*at;		/* when they are due, in Redis seconds; "": after delay */
	wall_t		 next;		/* with at: of the next message, 1 us later each */
	const char	*delay;		/* seconds; NULL: now */
	char		 text[32];	/* holds at or delay */
	struct words	 batch;		/* messages that are not pushed yet */
	struct words	 delayed;	/* ids of the batch, if it is due later */
	long long	 pushed;
	int64_t		 least, most;	/* published: subscribers of one message */
	json_t		*ids;		/* with --json */
};

/*
 * Reads "8:00" or "08:00": today, or tomorrow if it has passed; local time.  Where the end of
 * daylight saving time repeats an hour, the first one that is still to come.  -1: another text.
 */
static int
parse_clock(const char *text, wall_t *ret)
{
	time_t now = (time_t)(clock_wall() / SEC), at = 0;
	unsigned hour, minute;
	struct tm today, tm;
	int n = 0;

	if (sscanf(text, "%2u:%2u%n", &hour, &minute, &n) != 2 || text[n] != '\0' || hour > 23 ||
	    minute > 59)
		return -1;
	localtime_r(&now, &today);
	/* Of each day first the daylight saving time. */
	for (int i = 0; at <= now && i < 4; i++) {
		tm = (struct tm){ .tm_year = today.tm_year, .tm_mon = today.tm_mon,
			.tm_isdst = -1, .tm_mday = today.tm_mday + i / 2,
			.tm_hour = (int)hour, .tm_min = (int)minute };
		if (i % 2 == 0)
			tm.tm_isdst = 1;
		at = mktime(&tm);
		if (i % 2 == 0 && tm.tm_isdst != 1)
			at = 0;		/* it has none then */
	}
	*ret = (wall_t)at * SEC;
	return 0;
}

/* Reads --delay and --at.  Returns 0, or -1 after an error was reported. */
static int
parse_due(struct pushing *p)
{
	struct ctl *c = p->ctl;
	char *cause;
	usec_t delay = 0;

	if (ctl_given(c, OPT_DELAY) && ctl_given(c, OPT_AT))
		return ctl_error(c, EX_USAGE, "--delay and --at do not go together");
	if (ctl_duration(c, OPT_DELAY, &delay) == -1)
		return -1;
	if (ctl_given(c, OPT_DELAY)) {
		snprintf(p->text, sizeof(p->text), "%.6f", (double)delay / 1e6);
		p->at = "";
		p->delay = p->text;
	} else if (ctl_given(c, OPT_AT)) {
		if (parse_clock(ctl_value(c, OPT_AT), &p->next) == -1 &&
		    units_parse_time(ctl_value(c, OPT_AT), &p->next, &cause) == -1)
			return ctl_wrong(c, OPT_AT, cause);
		p->at = p->text;
		p->delay = "0";
	}
	return 0;
}

/* The number of the key for a message: by its id, or at random. */
static size_t
pick_shard(const struct target *t, const char *message, size_t len)
{
	unsigned n = (unsigned)target_shards(t);
	char id[MESSAGE_ID_MAX + 1];

	if (t->cfg != NULL)
		return shard_keys_pick(t->cfg, message, len);
	if (message_id_of(t->kind, t->id, message, len, id) == 0)
		return shard_keys_part(id, strlen(id), n);
	return random_u64() % n;
}

/* Whether all messages of a batch go into one command: LPUSH. */
static bool
is_joint(const struct pushing *p)
{
	const struct target *t = p->target;

	return t->source == SOURCE_LIST && p->delay == NULL && target_shards(t) == 0;
}

/* Sends message i, or all together; a reply is due. */
static int
send_message(struct pushing *p, int i)
{
	struct target *t = p->target;
	const char *key, *script = NULL, *text = p->batch.v[i], *delay = "0";
	char tag[MESSAGE_ID_MAX + 32], id[MESSAGE_ID_MAX + 1], unique[17];
	size_t len = p->batch.len[i];
	struct words w = { .n = 0 };
	char *const *k;
	int nkeys = 1;

	if (target_shards(t) > 0)
		target_select(t, pick_shard(t, text, len));
	k = t->keys.name;
	key = k[KEY_QUEUE];
	if (p->at == p->text)
		snprintf(p->text, sizeof(p->text), "%.6f", (double)p->next++ / 1e6);
	if (t->source == SOURCE_CHANNEL) {
		ask_add(&w, "PUBLISH %s", t->cfg->keys[0]);
	} else if (t->source == SOURCE_IDS) {
		script = "unique_push";
		if (p->delay != NULL)
			delay = p->delay;
		ask_add(&w, "%s %s %s", key, p->at, delay);
	} else if (p->delay != NULL) {
		/* The script may be sent twice: the tag is the same. */
		random_name(unique, sizeof(unique));
		if (message_id_of(t->kind, t->id, text, len, id) == 0) {
			snprintf(tag, sizeof(tag), "%s#%s", id, unique);
		} else {
			snprintf(id, sizeof(id), "~%s", unique);
			strcpy(tag, id);
		}
		script = "push";
		nkeys = 4;
		ask_add(&w, "%s %s %s %s %s %s %s %lld", k[KEY_BACKUP], k[KEY_CONTEXT],
		    k[KEY_RETRY], k[KEY_DELIVERY], p->at, p->delay, tag, (long long)strlen(id));
		words_fmt(&p->delayed, "%s", id);
	} else if (t->source == SOURCE_LIST) {
		ask_add(&w, "%s %s", t->left ? "RPUSH" : "LPUSH", key);
	} else {
		ask_add(&w, "XADD %s * message", key);
	}
	do
		words_mem(&w, p->batch.v[i], p->batch.len[i]);
	while (is_joint(p) && ++i < p->batch.n);
	return ask_append_script(p->ctl, script, nkeys, &w);
}

/* Prints the id of message i, which Redis has confirmed. */
static void
pushed(struct pushing *p, int i, const struct redisReply *reply)
{
	const struct target *t = p->target;
	const char *id = NULL;
	int64_t heard = reply_int(reply, 0);
	char own[MESSAGE_ID_MAX + 1];

	if (p->delayed.n > 0)
		id = p->delayed.v[i];
	else if (t->source == SOURCE_STREAM)
		id = reply_str(reply, NULL);
	if (id == NULL && message_id_of(t->kind, t->id, p->batch.v[i],
	    p->batch.len[i], own) == 0)
		id = own;
	if (id == NULL)
		id = "-";
	if (p->ids == NULL)
		out_line(NULL, "%s", id);
	else if (strcmp(id, "-") == 0)
		json_array_append_new(p->ids, json_null());
	else
		json_array_append_new(p->ids, out_bytes("id", id, strlen(id)));
	if (p->pushed == 0 || heard < p->least)
		p->least = heard;
	p->most = int64_max(heard, p->most);
	p->pushed++;
}

static void
report_subscribers(const struct pushing *p)
{
	const char *channel = p->target->cfg->keys[0];
	const char *lost = "some messages are lost";

	if (p->most == 0)
		lost = "the messages are lost";
	fflush(stdout);
	/* On a cluster PUBLISH counts the subscribers of one node only. */
	if (ctl_is_cluster(p->ctl))
		return;
	if (p->least == 0)
		ctl_error(p->ctl, EX_NOTHING, "no subscriber to %s: %s",
		    channel, lost);
	else if (p->least == p->most)
		ctl_note("published to %lld subscriber%s", (long long)p->most,
		    plural(p->most));
	else
		ctl_note("published to %lld to %lld subscribers", (long long)p->least,
		    (long long)p->most);
}

/* Sends the batch in one round trip. */
static int
flush(struct pushing *p)
{
	struct redisReply *reply;
	int i, step = 1, rc = 0;

	if (p->batch.n == 0)
		return 0;
	if (is_joint(p))
		step = p->batch.n;
	if (ctl_given(p->ctl, OPT_LINES))
		snprintf(p->ctl->note, sizeof(p->ctl->note),
		    "; %lld lines were pushed before, and perhaps some of the next %d",
		    p->pushed, p->batch.n);
	for (i = 0; i < p->batch.n && rc == 0; i += step)
		rc = send_message(p, i);
	/* After a refusal, the other replies are read, but not reported. */
	for (i = 0; i < p->batch.n && rc == 0 && (reply = ask_next(p->ctl)) != NULL; i++) {
		if (p->ctl->status == 0 && reply_error(reply) != REPLY_OK)
			ask_refused(p->ctl, reply);
		do
			if (p->ctl->status == 0)
				pushed(p, i, reply);
		while (is_joint(p) && ++i < p->batch.n);
		reply_free(reply);
	}
	words_done(&p->batch);
	words_done(&p->delayed);
	if (rc != 0 || p->ctl->status != 0)
		return -1;
	return 0;
}

static int
add_message(struct pushing *p, const char *data, size_t len)
{
	const struct queue_config *cfg = p->target->cfg;
	char max[UNITS_TEXT_MAX];

	/* rqd would make it a dead letter. */
	if (cfg != NULL && len > cfg->message_max)
		return ctl_error(p->ctl, EX_DATAERR, "a message of %zu bytes is larger than "
		    "message_max of %s, %s", len, p->target->name,
		    units_size(cfg->message_max, max));
	words_own(&p->batch, xmemdup(data, len), len);
	if (p->batch.n == BATCH || p->batch.bytes >= BATCH_BYTES)
		return flush(p);
	return 0;
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
	n = RETRY(read(STDIN_FILENO, in->data + in->len, 65536));
	if (n > 0)
		in->len += (size_t)n;
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
	if (n == -1)
		rc = read_failed(p);
	else
		rc = add_message(p, in.data, in.len);
	buf_done(&in);
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
	const char *from, *nl;
	ssize_t n = 0;
	int rc = 0;

	while (rc == 0 && (n = read_some(&in)) > 0) {
		from = in.data;
		while (rc == 0 && (nl = memchr(from, '\n', in.len - (size_t)(from - in.data))) !=
		    NULL) {
			rc = add_message(p, from, (size_t)(nl - from));
			from = nl + 1;
		}
		buf_drain(&in, (size_t)(from - in.data));
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

void
push_text(struct ctl *c, const char *text)
{
	struct pushing push = { .ctl = c, .target = &c->target, .at = "" }, *p = &push;
	bool lines = ctl_given(c, OPT_LINES);
	int rc;

	if (lines && text != NULL)
		ctl_error(c, EX_USAGE, "--lines reads standard input; it takes no MESSAGE");
	else if (parse_due(p) == 0 && p->delay != NULL && !kind_has(p->target->kind, TRAIT_LEASES))
		ctl_error(c, EX_USAGE, "queues of kind %s, as %s is, have no delayed messages",
		    kind_name(p->target->kind), p->target->name);
	if (ctl_given(c, OPT_JSON))
		p->ids = json_array();
	/* Connects before it reads input: nobody should type a message that cannot be pushed. */
	if (c->status == 0 && ctl_connect(c) == 0) {
		if (lines)
			rc = push_lines(p);
		else if (text == NULL || strcmp(text, "-") == 0)
			rc = push_stdin(p);
		else
			rc = add_message(p, text, strlen(text));
		if (rc == 0)
			rc = flush(p);
		if (rc == 0 && p->target->source == SOURCE_CHANNEL && p->pushed > 0)
			report_subscribers(p);
	}
	if (p->ids != NULL && c->status != EX_USAGE)
		out_json(json_incref(p->ids), false);
	json_decref(p->ids);
	words_done(&p->batch);
}

static void
push_run(struct ctl *c)
{
	push_text(c, c->args.words[1]);
}

const struct verb verb_push = {
	.name = "push",
	.args = "QUEUE [MESSAGE]",
	.help = "put a message into a queue",
	.more = "Without MESSAGE, or if it is \"-\", standard input is the "
	    "message, byte for byte. Prints the id of each message, or "
	    "\"-\" if rqd will choose one. Exits with 65 if a message is "
	    "larger than message_max.",
	.options = OPT(LINES) | OPT(DELAY) | OPT(AT),
	.min_args = 1,
	.max_args = 2,
	.flags = VERB_JSON | VERB_PUSHES | VERB_ORDER,
	.run = push_run,
};
