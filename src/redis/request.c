/*
 * Requests.  While one is in flight it points to the connection's record of the
 * command, which outlives it if it is cancelled.
 */
#include "redis/request.h"

void
request_init(struct request *r, conn_answer_fn *fn, void *arg)
{
	*r = (struct request){ .fn = fn, .arg = arg };
}

bool
request_is_sent(const struct request *r)
{
	return r->pending != NULL;
}

void
request_cancel(struct request *r)
{
	if (r->pending != NULL)
		conn_drop_answer(r->pending);
	r->pending = NULL;
}

static void
request_answered(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct request *r = arg;

	r->pending = NULL;
	r->fn(answer, reply, r->arg);
}

static void
request_sent(struct request *r, struct pending *p)
{
	request_cancel(r);	/* only the last request is answered */
	r->pending = p;
	r->sent_at = clock_boot();
}

void
request_command(struct request *r, struct conn *c, struct words *w)
{
	request_sent(r, conn_command(c, request_answered, r, w));
	words_done(w);
}

void
request_call(struct request *r, struct conn *c, bool caching, const struct script *script,
    struct words *w)
{
	request_sent(r, conn_script(c, caching, script, request_answered, r, w));
	words_done(w);
}

void
request_script(struct request *r, struct conn *c, const struct script *script,
    struct words *w)
{
	request_call(r, c, false, script, w);
}

void
request_words(struct request *r, struct conn *c, ...)
{
	struct words w = { .n = 0 };
	va_list ap;

	va_start(ap, c);
	words_list(&w, ap);
	va_end(ap);
	request_command(r, c, &w);
}
