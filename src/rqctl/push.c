/*
 * rqctl push: a producer.
 *
 * What is due now is LPUSHed, byte for byte, many lines in one command, bounded
 * by count and by bytes, so that a file of any size is pushed with little
 * memory.  What is due later goes through push.lua into QRETRY under a tag of its
 * own: two equal messages stay two.  Of kind "unique" all are ids, in one zset.
 *
 * To a channel they are published, one by one, and who listened is counted.
 *
 * An id is printed when Redis has confirmed its message, not before.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "policy/message.h"
#include "redis/reply.h"
#include "rqctl/ask.h"
#include "rqctl/groups.h"
#include "rqctl/out.h"
#include "rqctl/when.h"

#define BATCH		1000		/* messages per command */
#define BATCH_BYTES	(1 << 20)

struct push {
	struct ctl	*ctl;
	struct target	 target;
	const char	*at;		/* Redis seconds; "": after delay */
	const char	*delay;		/* seconds; NULL: now */
	char		 text[32];	/* of one of these */
	struct buf	 bytes;		/* the messages of this batch, one after the other */
	size_t		 end[BATCH];	/* where each of them ends in bytes */
	int		 n;
	long long	 pushed;
	int64_t		 least, most;	/* published: subscribers of one message */
	json_t		*ids;		/* with --json */
};

/* When the messages are due. */
static int
parse_due(struct push *p)
{
	struct ctl *c = p->ctl;
	char *cause = NULL;
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
		if (when_parse(ctl_value(c, OPT_AT), &at, &cause) == -1) {
			ctl_error(c, EX_USAGE, "--at: %s", cause);
			free(cause);
			return -1;
		}
		snprintf(p->text, sizeof(p->text), "%.6f", (double)at / 1e6);
		p->at = p->text;
		p->delay = "0";
	}
	return 0;
}

/* The ith message of the batch. */
static const char *
message(const struct push *p, int i, size_t *len)
{
	size_t begin = i > 0 ? p->end[i - 1] : 0;

	*len = p->end[i] - begin;
	return p->bytes.data != NULL ? p->bytes.data + begin : "";
}

static void
say_id(struct push *p, const char *id)
{
	if (p->ids != NULL)
		json_array_append_new(p->ids, strcmp(id, "-") == 0 ? json_null() :
		    out_element("id", id, strlen(id)));
	else
		out_escaped_line(id);
}

/* All of the batch, in order, by one LPUSH. */
static int
push_now(struct push *p)
{
	char id[MESSAGE_ID_MAX + 1];
	struct redisReply *reply;
	struct words w = { 0 };
	const char *text;
	size_t len;
	int i;

	words_add(&w, p->target.cfg != NULL ? config_push_command(p->target.cfg) : "LPUSH");
	words_add(&w, p->target.keys.name[KEY_QUEUE]);
	for (i = 0; i < p->n; i++) {
		text = message(p, i, &len);
		words_mem(&w, text, len);
	}
	reply = ask_words(p->ctl, &w);
	words_done(&w);
	if (reply == NULL)
		return -1;
	client_reply_free(reply);
	for (i = 0; i < p->n; i++) {
		text = message(p, i, &len);
		say_id(p, message_id_of(p->target.kind, text, len, id) == 0 ? id : "-");
	}
	p->pushed += p->n;
	return 0;
}

/* All of the batch, in order, in one round trip: how many heard each. */
static int
publish(struct push *p)
{
	char id[MESSAGE_ID_MAX + 1];
	struct redisReply *reply;
	struct words w = { 0 };
	int64_t heard;
	const char *text;
	size_t len;
	int i, rc = 0;

	for (i = 0; i < p->n && rc == 0; i++) {
		text = message(p, i, &len);
		words_clear(&w);
		words_add(&w, "PUBLISH");
		words_add(&w, p->target.cfg->keys[0]);
		words_mem(&w, text, len);
		rc = ask_append_words(p->ctl, &w);
	}
	words_done(&w);
	for (i = 0; i < p->n && rc == 0; i++) {
		if ((reply = ask_next(p->ctl)) == NULL)
			return -1;
		heard = reply_int(reply, -1);
		if (heard < 0)
			rc = ask_refused(p->ctl, reply);
		client_reply_free(reply);
		if (rc == -1)
			break;
		p->least = p->pushed == 0 || heard < p->least ? heard : p->least;
		p->most = heard > p->most ? heard : p->most;
		text = message(p, i, &len);
		say_id(p, message_id(text, len, id) == 0 ? id : "-");
		p->pushed++;
	}
	return rc;
}

static void
say_heard(const struct push *p)
{
	const char *channel = p->target.cfg->keys[0];

	fflush(stdout);
	if (p->least == 0)
		ctl_error(p->ctl, EX_NOTHING, "no subscriber to %s: %s", channel, p->most == 0 ?
		    "the messages are lost" : "some messages are lost");
	else if (p->least == p->most)
		fprintf(stderr, "rqctl: heard by %lld subscriber%s\n", (long long)p->most,
		    p->most == 1 ? "" : "s");
	else
		fprintf(stderr, "rqctl: heard by %lld to %lld subscribers\n",
		    (long long)p->least, (long long)p->most);
}

/* All of the batch, in order, as entries of a stream, which gives them their ids. */
static int
push_entries(struct push *p)
{
	struct redisReply *reply;
	struct words w = { 0 };
	const char *text;
	size_t len;
	int i, rc = 0;

	for (i = 0; i < p->n && rc == 0; i++) {
		words_clear(&w);
		words_add(&w, "XADD");
		words_add(&w, p->target.keys.name[KEY_QUEUE]);
		words_add(&w, "*");
		words_add(&w, "message");
		text = message(p, i, &len);
		words_mem(&w, text, len);
		rc = ask_append_words(p->ctl, &w);
	}
	words_done(&w);
	/* After a refusal the rest is read, but not said. */
	for (i = 0; i < p->n && rc == 0 && (reply = ask_next(p->ctl)) != NULL; i++) {
		if (p->ctl->status == 0 && (text = reply_str(reply, NULL)) != NULL) {
			say_id(p, text);
			p->pushed++;
		} else if (p->ctl->status == 0)
			ask_refused(p->ctl, reply);
		client_reply_free(reply);
	}
	return rc == 0 && p->ctl->status == 0 ? 0 : -1;
}

/* One that is due later.  Sent again with the same tag it would change nothing. */
static int
push_later_one(struct push *p, const char *text, size_t len)
{
	char tag[MESSAGE_ID_MAX + 32], id[MESSAGE_ID_MAX + 1], unique[17], idlen[16];
	static const enum key keys[] = { KEY_BACKUP, KEY_CONTEXT, KEY_RETRY, KEY_DELIVERY };
	struct words w = { 0 };
	struct redisReply *reply;
	size_t k;

	random_name(unique, sizeof(unique));
	if (message_id_of(p->target.kind, text, len, id) == 0)
		snprintf(tag, sizeof(tag), "%s#%s", id, unique);
	else {
		snprintf(id, sizeof(id), "~%s", unique);
		snprintf(tag, sizeof(tag), "%s", id);
	}
	snprintf(idlen, sizeof(idlen), "%zu", strlen(id));
	for (k = 0; k < ARRAY_LEN(keys); k++)
		words_add(&w, p->target.keys.name[keys[k]]);
	words_add(&w, tag);
	words_add(&w, idlen);
	words_add(&w, p->at);
	words_add(&w, p->delay);
	words_mem(&w, text, len);
	reply = ask_script(p->ctl, "push", ARRAY_LEN(keys), &w);
	words_done(&w);
	if (reply == NULL)
		return -1;
	client_reply_free(reply);
	say_id(p, id);
	p->pushed++;
	return 0;
}

/* All of the batch into the zset of kind "unique", where an id is only once. */
static int
push_ids(struct push *p)
{
	char id[MESSAGE_ID_MAX + 1];
	struct words w = { 0 };
	struct redisReply *reply;
	const char *text;
	size_t len;
	int i;

	words_add(&w, p->target.keys.name[KEY_QUEUE]);
	words_add(&w, p->delay != NULL ? p->at : "");
	words_add(&w, p->delay != NULL ? p->delay : "0");
	for (i = 0; i < p->n; i++) {
		text = message(p, i, &len);
		words_mem(&w, text, len);
	}
	reply = ask_script(p->ctl, "unique_push", 1, &w);
	words_done(&w);
	if (reply == NULL)
		return -1;
	client_reply_free(reply);
	for (i = 0; i < p->n; i++) {
		text = message(p, i, &len);
		snprintf(id, sizeof(id), "%.*s", (int)(len < sizeof(id) ? len : 0), text);
		say_id(p, message_id_ok(text, len) ? id : "-");
	}
	p->pushed += p->n;
	return 0;
}

static int
flush(struct push *p)
{
	enum source source = kind_source(p->target.kind);
	const char *text;
	size_t len;
	int i, rc = 0;

	if (p->n == 0)
		return 0;
	if (ctl_given(p->ctl, OPT_LINES))
		snprintf(p->ctl->note, sizeof(p->ctl->note),
		    "; %lld lines were pushed before, and perhaps some of the next %d",
		    p->pushed, p->n);
	if (source == SOURCE_IDS)
		rc = push_ids(p);
	else if (source == SOURCE_CHANNEL)
		rc = publish(p);
	else if (p->delay == NULL)
		rc = source == SOURCE_STREAM ? push_entries(p) : push_now(p);
	else
		for (i = 0; i < p->n && rc == 0; i++) {
			text = message(p, i, &len);
			rc = push_later_one(p, text, len);
		}
	p->n = 0;
	buf_clear(&p->bytes);
	return rc;
}

/* Refuses what rqd would only make a dead letter of. */
static int
check_size(const struct push *p, size_t len)
{
	const struct queue_config *cfg = p->target.cfg;
	char size[UNITS_TEXT_MAX], max[UNITS_TEXT_MAX];

	if (cfg == NULL || len <= cfg->message_max)
		return 0;
	return ctl_error(p->ctl, EX_DATAERR, "a message of %s bytes is larger than "
	    "message_max of %s, %s", units_size(len, size), p->target.name,
	    units_size(cfg->message_max, max));
}

/* The message whose bytes were added since the last one. */
static int
end_message(struct push *p)
{
	size_t begin = p->n > 0 ? p->end[p->n - 1] : 0;

	if (check_size(p, p->bytes.len - begin) == -1)
		return -1;
	p->end[p->n++] = p->bytes.len;
	return p->n == BATCH || p->bytes.len >= BATCH_BYTES ? flush(p) : 0;
}

static int
read_failed(struct push *p)
{
	return ctl_error(p->ctl, EX_IOERR, "standard input: %s", strerror(errno));
}

/* All of standard input is one message. */
static int
push_stdin(struct push *p)
{
	bool typed = isatty(STDIN_FILENO);
	ssize_t n;

	if (typed)
		ctl_note(p->ctl, "type the message; Control-D ends it");
	do {
		buf_reserve(&p->bytes, 65536);
		n = read(STDIN_FILENO, p->bytes.data + p->bytes.len, 65536);
		if (n > 0)
			p->bytes.len += (size_t)n;
		/* A terminal hands out lines: what ends without one was ended by Control-D. */
		if (n > 0 && typed && p->bytes.data[p->bytes.len - 1] != '\n')
			break;
	} while (n > 0 || (n == -1 && errno == EINTR));
	return n == -1 ? read_failed(p) : end_message(p);
}

/* Adds the complete lines of `in`, and drops them from it. */
static int
take_lines(struct push *p, struct buf *in)
{
	const char *from = in->data, *end = in->data + in->len, *nl;
	int rc = 0;

	while (rc == 0 && (nl = memchr(from, '\n', (size_t)(end - from))) != NULL) {
		buf_add(&p->bytes, from, (size_t)(nl - from));
		from = nl + 1;
		rc = end_message(p);
	}
	buf_drain(in, (size_t)(from - in->data));
	return rc;
}

static bool
more_is_there(void)
{
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

/*
 * Each line is one, without its newline; the last one may have none.  Lines are
 * pushed when there is no more to read at the moment, so that a slow producer's
 * are not held back.
 */
static int
push_lines(struct push *p)
{
	struct buf in = BUF_INIT;
	ssize_t n = 0;
	int rc = 0;

	while (rc == 0) {
		buf_reserve(&in, 65536);
		n = read(STDIN_FILENO, in.data + in.len, 65536);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		in.len += (size_t)n;
		rc = take_lines(p, &in);
		if (rc == 0 && !more_is_there())
			rc = flush(p);
	}
	if (rc == 0 && n == -1)
		rc = read_failed(p);
	else if (rc == 0 && in.len > 0) {
		buf_add(&p->bytes, in.data, in.len);
		rc = end_message(p);
	}
	buf_done(&in);
	return rc;
}

static int
push(struct push *p, const char *text)
{
	int rc;

	if (ctl_given(p->ctl, OPT_LINES))
		rc = push_lines(p);
	else if (text == NULL || strcmp(text, "-") == 0)
		rc = push_stdin(p);
	else {
		buf_puts(&p->bytes, text);
		rc = end_message(p);
	}
	rc = rc == 0 ? flush(p) : rc;
	if (rc == 0 && kind_source(p->target.kind) == SOURCE_CHANNEL && p->pushed > 0)
		say_heard(p);
	return rc;
}

void
push_text(struct ctl *c, const char *queue, const char *text)
{
	struct push *p = xcalloc(1, sizeof(*p));

	p->ctl = c;
	if (ctl_given(c, OPT_LINES) && text != NULL)
		ctl_error(c, EX_USAGE, "--lines reads standard input; it takes no MESSAGE");
	else if (parse_due(p) == 0 &&
	    ctl_push_target(c, queue, &p->target) == 0) {
		if (p->delay != NULL && !kind_has(p->target.kind, TRAIT_LEASES))
			ctl_error(c, EX_USAGE, "queues of kind %s, as %s is, have no delayed "
			    "messages", kind_name(p->target.kind), p->target.name);
		p->ids = ctl_given(c, OPT_JSON) ? json_array() : NULL;
		/* Before standard input is read: nobody types a message for nothing. */
		if (c->status == 0 && ctl_connect(c) == 0)
			(void)push(p, text);
		if (p->ids != NULL && c->status != EX_USAGE)
			out_json(json_incref(p->ids));
		json_decref(p->ids);
		ctl_target_done(&p->target);
	}
	buf_done(&p->bytes);
	free(p);
}

void
push_run(struct ctl *c)
{
	push_text(c, c->args.words[0], c->args.words[1]);
}
