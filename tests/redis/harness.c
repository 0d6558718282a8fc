/*
 * The recording connection.
 */
#include "harness.h"

#include "redis/script.h"

static unsigned answered;

static void
harness_up(const struct conn_server *s, void *arg)
{
	struct harness *h = arg;

	h->ups++;
	h->changed = s->changed;
	h->first = s->first;
	snprintf(h->run_id, sizeof(h->run_id), "%s", s->run_id);
	snprintf(h->address, sizeof(h->address), "%s", s->address);
	snprintf(h->version, sizeof(h->version), "%s", s->version);
	snprintf(h->policy, sizeof(h->policy), "%s", s->maxmemory_policy);
	if (h->on_up != NULL)
		h->on_up(h);
}

static void
harness_down(const char *cause, void *arg)
{
	struct harness *h = arg;

	h->downs++;
	snprintf(h->cause, sizeof(h->cause), "%s", cause);
	if (h->on_down != NULL)
		h->on_down(h);
}

void
harness_init(struct harness *h, const char *server, usec_t timeout)
{
	memset(h, 0, sizeof(*h));
	h->loop = loop_new();
	h->servers[0] = xstrdup(server);
	h->opt = (struct redis_options){ .servers = h->servers, .timeout = timeout,
		.username = h->username, .password_file = h->password_file };
}

void
harness_open(struct harness *h, unsigned flags)
{
	static const struct conn_events events = { .up = harness_up, .down = harness_down };

	h->conn = conn_new(h->loop, &h->opt, "rqd-test", flags, &events, h);
}

void
harness_done(struct harness *h)
{
	conn_free(h->conn);
	loop_free(h->loop);
	for (size_t i = 0; i < ARRAY_LEN(h->servers); i++)
		free(h->servers[i]);
}

void
harness_start(struct harness *h, struct server *s, usec_t timeout, unsigned flags)
{
	server_start(s, NULL);
	harness_init(h, s->uri, timeout);
	harness_open(h, flags);
}

void
harness_connect(struct harness *h)
{
	conn_start(h->conn);
	WAIT(h, h->ups == 1);
}

void
harness_turn(struct harness *h, usec_t span)
{
	usec_t end = clock_mono() + span;

	while (clock_mono() < end)
		loop_turn(h->loop, 10 * MSEC);
}

void
call_answered(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	struct call *c = arg;
	const char *s = reply_str(r, NULL);

	assert_int_equal(answer == CONN_REPLY, r != NULL);
	c->answers++;
	c->order = ++answered;
	c->answer = answer;
	c->error = reply_error(r);
	c->number = reply_int(r, -1);
	snprintf(c->text, sizeof(c->text), "%s", s != NULL ? s : reply_text(r));
	if (c->then != NULL)
		c->then(c);
}

struct words
words_of(int nkeys, int argc, const char *const *argv, const size_t *argvlen)
{
	struct words w = { .n = 0 };

	for (int i = 0; i < argc; i++)
		words_mem(&w, argv[i], argvlen[i]);
	w.nkeys = nkeys;
	return w;
}

void
call_command(struct conn *c, conn_answer_fn *fn, void *arg, int argc, const char *const *argv,
    const size_t *argvlen)
{
	struct words w = words_of(0, argc, argv, argvlen);

	conn_command(c, fn, arg, &w);
	words_done(&w);
}

void
call_script(struct conn *c, const struct script *s, conn_answer_fn *fn, void *arg, int nkeys,
    int argc, const char *const *argv, const size_t *argvlen)
{
	struct words w = words_of(nkeys, argc, argv, argvlen);

	conn_script(c, false, s, fn, arg, &w);
	words_done(&w);
}
