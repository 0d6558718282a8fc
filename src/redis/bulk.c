/*
 * The bulk connection.  Calls wait in a list; the first one is sent when the
 * connection is READY and no other is in flight.  Owners are called from the
 * connection's answers and from `wait_timer`, never from bulk_request().
 */
#include "redis/bulk.h"

#include <stdlib.h>

#include "loop/timer.h"
#include "redis/pending.h"

#define IDLE	MINUTE

struct bulk {
	struct loop	*loop;
	struct conn	*main;		/* the daemon's first connection; borrowed */
	struct conn	*conn;		/* NULL: not in use */
	const struct redis_options *opt;
	char		*name;
	size_t		 reply_max;	/* 0: not set */
	usec_t		 backoff_max;	/* 0: not set */
	struct pending_list waiting;
	struct pending	*sent;		/* in flight; NULL: none */
	conn_redirected_fn *redirected;	/* or NULL */
	void		*redirected_arg;
	char		*cause;		/* why the connection is down; owned */
	struct timer	 idle;		/* set: nothing to do */
	struct timer	 wait_timer;	/* set: calls wait, and the connection is down */
};

static void	bulk_send(struct bulk *);

/* Answers p, which is on no list, and frees it. */
static void
bulk_answer(struct pending *p, enum conn_answer answer, const struct redisReply *r)
{
	conn_answer_fn *fn = p->fn;
	void *arg = p->arg;

	pending_free(p);
	if (fn != NULL)
		fn(answer, r, arg);
}

static void
bulk_answered(enum conn_answer answer, const struct redisReply *r, void *arg)
{
	struct bulk *b = arg;
	struct pending *p = b->sent;

	b->sent = NULL;
	bulk_answer(p, answer, r);
	bulk_send(b);
}

/* Sends the first call.  The caller's words follow the three of EVALSHA; see pending.h. */
static void
bulk_send(struct bulk *b)
{
	struct pending *p = TAILQ_FIRST(&b->waiting);
	struct words w;

	if (b->conn == NULL || b->sent != NULL)
		return;
	if (p == NULL) {
		timer_set(&b->idle, IDLE);
		return;
	}
	if (!conn_is_ready(b->conn))
		return;
	if (!conn_is_one_server(conn_server(b->conn), conn_server(b->main))) {
		conn_reset(b->conn, "it reached another server than the first connection");
		return;
	}
	TAILQ_REMOVE(&b->waiting, p, entry);
	b->sent = p;
	w = p->words;
	w.v += 3;
	w.len += 3;
	w.n -= 3;
	conn_script(b->conn, false, p->script, bulk_answered, b, &w);
	free(p->words.v);
	p->words.v = NULL;
}

/* -- the connection ----------------------------------------------------------- */

static void
bulk_up(const struct conn_server *server UNUSED, void *arg)
{
	struct bulk *b = arg;

	timer_stop(&b->wait_timer);
	bulk_send(b);
}

static void
bulk_down(const char *cause, void *arg)
{
	struct bulk *b = arg;

	xreplace(&b->cause, cause);
	if (!TAILQ_EMPTY(&b->waiting) && !timer_is_set(&b->wait_timer))
		timer_set(&b->wait_timer, b->opt->timeout);
}

/* The calls have waited for too long: answers them, so that their owners decide. */
static void
bulk_give_up(void *arg)
{
	struct bulk *b = arg;
	struct pending_list late = TAILQ_HEAD_INITIALIZER(late);
	struct pending *p;

	TAILQ_CONCAT(&late, &b->waiting, entry);
	while ((p = TAILQ_TAKE(&late, entry)) != NULL)
		bulk_answer(p, CONN_NOT_SENT, NULL);
}

static void
bulk_close(void *arg)
{
	struct bulk *b = arg;

	conn_free(b->conn);
	b->conn = NULL;
}

static void
bulk_open(struct bulk *b)
{
	static const struct conn_events events = { bulk_up, bulk_down };

	b->conn = conn_new(b->loop, b->opt, b->name, 0, &events, b);
	bulk_set_limits(b, b->reply_max, b->backoff_max);
	conn_set_redirected(b->conn, b->redirected, b->redirected_arg);
	conn_start(b->conn);
}

/* -- life --------------------------------------------------------------------- */

void
bulk_request(struct bulk *b, struct request *r, const struct script *script, struct words *w)
{
	struct pending *p = pending_new(request_answered, r, false);

	pending_set_script(p, script, w);
	words_done(w);
	request_sent(r, p);
	TAILQ_INSERT_TAIL(&b->waiting, p, entry);
	timer_stop(&b->idle);
	if (b->conn == NULL)
		bulk_open(b);
	if (!conn_is_ready(b->conn) && !timer_is_set(&b->wait_timer))
		timer_set(&b->wait_timer, b->opt->timeout);
	bulk_send(b);
}

const char *
bulk_cause(const struct bulk *b)
{
	return b->cause != NULL ? b->cause : "";
}

void
bulk_set_limits(struct bulk *b, size_t reply_max, usec_t backoff_max)
{
	b->reply_max = reply_max;
	b->backoff_max = backoff_max;
	if (b->conn == NULL)
		return;
	if (reply_max > 0)
		conn_set_reply_max(b->conn, reply_max);
	if (backoff_max > 0)
		conn_set_backoff_max(b->conn, backoff_max);
}

void
bulk_set_redirected(struct bulk *b, conn_redirected_fn *fn, void *arg)
{
	b->redirected = fn;
	b->redirected_arg = arg;
}

struct bulk *
bulk_new(struct loop *loop, struct conn *conn, const struct redis_options *opt,
    const char *name)
{
	struct bulk *b = NEW(struct bulk, .loop = loop, .main = conn, .opt = opt,
	    .name = xasprintf("%s-bulk", name));

	TAILQ_INIT(&b->waiting);
	timer_init(&b->idle, loop, bulk_close, b);
	timer_init(&b->wait_timer, loop, bulk_give_up, b);
	return b;
}

void
bulk_free(struct bulk *b)
{
	if (b == NULL)
		return;
	bulk_give_up(b);
	conn_free(b->conn);
	timer_stop(&b->idle);
	timer_stop(&b->wait_timer);
	free(b->cause);
	free(b->name);
	free(b);
}
