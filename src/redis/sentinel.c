/*
 * Finds the master's address; see sentinel.h.
 *
 * `query` carries the questions, `news` the subscription.  Both walk through the same
 * list, so that they usually talk to the same Sentinel.  When `news` is up again it may
 * have missed a switch: then `query` asks for the master, and its answer is compared
 * with the known one.
 *
 * The list is a ring; its first Sentinel is the one that answers.  A Sentinel that ends
 * the connection, or whose answer was stale, becomes the last.
 *
 * A Sentinel that was cut off, or came back with an old configuration, names an old
 * master.  So a new address counts only when `check` has connected to it, and its ROLE
 * says that it is a master.  Until then the known one is kept.  An address from
 * +switch-master counts at once.
 */
#include "redis/sentinel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "loop/timer.h"
#include "redis/conn.h"
#include "redis/reply.h"
#include "redis/request.h"

#define CHANNEL		"+switch-master"
#define EACH		SEC		/* for one Sentinel, or a tenth of the timeout */
#define FRESH		SEC		/* then news of +switch-master needs no question */

struct sentinel {
	struct loop		*loop;
	char			*name;		/* for CLIENT SETNAME */
	struct redis_options	 options;	/* of the Sentinels */
	char			**list;		/* options.servers: owned; strings borrowed */
	const char		*master;	/* the name */
	struct conn		*query, *news;
	struct request		 request;	/* the question that is on its way */
	struct redis_options	 data;		/* of `check` */
	struct conn		*check;		/* asks the candidate's ROLE; NULL: none */
	char			*candidate[2];	/* data.servers: an address, owned, and NULL */
	char			*known;		/* the last address; NULL: none yet */
	char			*source;	/* Sentinel that named it; NULL: +switch-master */
	usec_t			 switched_at;	/* mono; of the last +switch-master; 0: never */
	char			*cause;		/* why the last Sentinel did not answer */
	uint64_t		 round;		/* of questions */
	usec_t			 answer_within;	/* a question may pass several Sentinels */
	struct timer		 limit;		/* set: a client waits for an answer */
	void			(*forbidden)(const char *);	/* NULL: nobody asks */
	bool			 is_forbidden;	/* the subscription; the owner knows */
	TAILQ_HEAD(, sentinel_client) clients;
};

static char *
sentinel_join_address(const char *host, const char *port)
{
	return xasprintf(strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

/* -- the list ------------------------------------------------------------------------ */

/* Makes the first Sentinel the last. */
static void
sentinel_rotate(struct sentinel *s)
{
	char *first = s->list[0];
	size_t i;

	for (i = 0; s->list[i + 1] != NULL; i++)
		s->list[i] = s->list[i + 1];
	s->list[i] = first;
}

/* The connection to this Sentinel has ended: makes it the last, if it is the first. */
static void
sentinel_put_last(struct sentinel *s, const char *server)
{
	if (strcmp(s->list[0], server) == 0)
		sentinel_rotate(s);
}

/* -- what is known --------------------------------------------------------------------- */

static void
sentinel_learn(struct sentinel *s, const char *master, const char *source)
{
	bool first = s->known == NULL, same = !first && strcmp(s->known, master) == 0;
	struct sentinel_client *c, *next;

	xreplace(&s->source, source);
	if (same)
		return;
	xreplace(&s->known, master);
	TAILQ_FOREACH_SAFE(c, &s->clients, entry, next) {
		if (!first)
			c->switched(s->known, c->arg);
	}
}

/* Answers all questions of this round, with the last master if one is known. */
static void
sentinel_tell(struct sentinel *s, const char *cause)
{
	uint64_t round = s->round++;
	char *why = xasprintf("Sentinel: %s", cause);
	struct sentinel_client *c, *next;

	timer_stop(&s->limit);
	TAILQ_FOREACH_SAFE(c, &s->clients, entry, next) {
		if (c->asked != round)
			continue;
		c->asked = 0;
		c->told(s->known, s->known == NULL ? why : NULL, c->arg);
	}
	free(why);
}

/*
 * No Sentinel has answered in time: answers with the last master, whose own ROLE will
 * tell whether it is one.
 */
static void
sentinel_late(void *arg)
{
	struct sentinel *s = arg;

	sentinel_tell(s, s->cause != NULL ? s->cause : "no answer");
}

/* -- another address than the known one ---------------------------------------------------- */

static void
sentinel_check_end(struct sentinel *s)
{
	conn_free(s->check);
	s->check = NULL;
	xreplace(&s->candidate[0], NULL);
}

/* Asks another Sentinel next, once `query` has connected to it. */
static void
sentinel_ask_next(struct sentinel *s)
{
	if (!conn_is_ready(s->query))
		return;
	sentinel_put_last(s, conn_server(s->query)->address);
	conn_reset(s->query, "another Sentinel is asked");
}

static void
sentinel_check_up(const struct conn_server *server UNUSED, void *arg)
{
	struct sentinel *s = arg;
	char *master = xstrdup(s->candidate[0]);

	sentinel_check_end(s);
	sentinel_learn(s, master, conn_is_ready(s->query) ?
	    conn_server(s->query)->address : NULL);
	sentinel_tell(s, "");
	free(master);
}

static void
sentinel_check_down(const char *cause, void *arg)
{
	struct sentinel *s = arg;

	xreplace(&s->cause, cause);
	sentinel_check_end(s);
	sentinel_ask_next(s);
}

/* -- questions -------------------------------------------------------------------------- */

/* Asks, unless the question is on its way; without a connection, as soon as there is one. */
static void
sentinel_query(struct sentinel *s)
{
	if (request_is_sent(&s->request))
		return;
	if (conn_is_ready(s->query))
		request_words(&s->request, s->query, "SENTINEL", "get-master-addr-by-name",
		    s->master, NULL);
	else
		conn_start(s->query);
}

/* A Sentinel has named this master. */
static void
sentinel_named(struct sentinel *s, const char *master)
{
	static const struct conn_events events = {
		.up = sentinel_check_up, .down = sentinel_check_down
	};
	bool is_new = s->known != NULL && strcmp(s->known, master) != 0;

	if (is_new && s->check != NULL && strcmp(s->candidate[0], master) == 0)
		return;
	sentinel_check_end(s);
	if (is_new) {
		s->candidate[0] = xstrdup(master);
		s->check = conn_new(s->loop, &s->data, s->name, CONN_SUBSCRIBER, &events, s);
		conn_start(s->check);
		return;
	}
	sentinel_learn(s, master, conn_server(s->query)->address);
	sentinel_tell(s, "");
}

static void
sentinel_answered(enum conn_answer answer, const struct redisReply *reply, void *arg)
{
	struct sentinel *s = arg;
	char *address, cause[REPLY_CAUSE + ADDR_TEXT_MAX];

	if (answer != CONN_REPLY)
		return;		/* sentinel_up() asks again, sentinel_late() gives up */
	if (reply_len(reply) == 2 && reply_str(reply_at(reply, 0), NULL) != NULL &&
	    reply_str(reply_at(reply, 1), NULL) != NULL) {
		address = sentinel_join_address(reply_str_at(reply, 0), reply_str_at(reply, 1));
		sentinel_named(s, address);
		free(address);
		return;
	}
	if (reply_is_nil(reply))
		snprintf(cause, sizeof(cause), "%s does not know a master \"%.64s\"",
		    conn_server(s->query)->address, s->master);
	else if (reply_error(reply) != REPLY_OK)
		/* Without the advice of reply_cause(), which is for Redis. */
		snprintf(cause, sizeof(cause), "%.*s", REPLY_CAUSE - 1,
		    reply_text(reply));
	else
		(void)reply_cause(reply, cause, sizeof(cause));
	xreplace(&s->cause, cause);
	sentinel_ask_next(s);
	if (timer_is_set(&s->limit))
		sentinel_tell(s, cause);
}

void
sentinel_ask(struct sentinel *s, struct sentinel_client *c)
{
	usec_t limit = s->answer_within;

	c->asked = s->round;
	conn_start(s->news);
	if (s->switched_at != 0 && clock_mono() - s->switched_at < FRESH)
		limit = 0;
	else
		sentinel_query(s);
	if (!timer_is_set(&s->limit) || limit == 0)
		timer_set(&s->limit, limit);
}

void
sentinel_cancel(struct sentinel_client *c)
{
	c->asked = 0;
}

/*
 * Several connections may have used this answer, and fail one after the other.  So this
 * doubts only the Sentinel that named the master, not the one that is asked by now.
 */
void
sentinel_doubt(struct sentinel *s, const char *master)
{
	if (s->known != NULL && strcmp(s->known, master) == 0 && s->source != NULL &&
	    strcmp(s->source, conn_server(s->query)->address) == 0)
		sentinel_ask_next(s);
}

/* -- the connections ---------------------------------------------------------------------- */

static void
sentinel_up(const struct conn_server *server, void *arg)
{
	struct sentinel *s = arg;

	/* It becomes the first, and those that failed before it the last. */
	for (size_t i = 0; s->list[i] != NULL && strcmp(s->list[0], server->address) != 0; i++)
		sentinel_rotate(s);
	if (timer_is_set(&s->limit))
		sentinel_query(s);
}

static void
sentinel_down(const char *cause, void *arg)
{
	struct sentinel *s = arg;

	xreplace(&s->cause, cause);
	sentinel_put_last(s, conn_server(s->query)->address);
}

/* The subscription is up again, and may have missed a switch: asks. */
static void
sentinel_news_up(const struct conn_server *server UNUSED, void *arg)
{
	struct sentinel *s = arg;

	s->is_forbidden = false;
	sentinel_query(s);
}

static void
sentinel_news_down(const char *cause, void *arg)
{
	struct sentinel *s = arg;

	sentinel_put_last(s, conn_server(s->news)->address);
	if (s->is_forbidden || s->forbidden == NULL || strstr(cause, "NOPERM") == NULL)
		return;
	s->is_forbidden = true;
	s->forbidden(cause);
}

/* The payload is NAME OLD-HOST OLD-PORT NEW-HOST NEW-PORT. */
static void
sentinel_heard(const char *channel UNUSED, size_t len UNUSED, const struct redisReply *payload,
    void *arg)
{
	struct sentinel *s = arg;
	const char *text = reply_str(payload, NULL);
	char name[256], host[256], port[8], *address;

	if (text == NULL || sscanf(text, "%255s %*s %*s %255s %7s", name, host, port) != 3 ||
	    strcmp(name, s->master) != 0)
		return;
	address = sentinel_join_address(host, port);
	s->switched_at = clock_mono();
	sentinel_check_end(s);
	sentinel_learn(s, address, NULL);
	free(address);
}

void
sentinel_probe(struct sentinel *s)
{
	conn_probe(s->query);
	conn_probe(s->news);
}

/* -- life ---------------------------------------------------------------------------------- */

void
sentinel_join(struct sentinel *s, struct sentinel_client *c)
{
	c->asked = 0;
	TAILQ_INSERT_TAIL(&s->clients, c, entry);
}

void
sentinel_leave(struct sentinel *s, struct sentinel_client *c)
{
	TAILQ_REMOVE(&s->clients, c, entry);
}

struct sentinel *
sentinel_new(struct loop *loop, const struct redis_options *opt, const char *name,
    void (*forbidden)(const char *))
{
	static const struct conn_limits limits = { .backoff_max = SEC };
	static const struct conn_events query = { .up = sentinel_up, .down = sentinel_down };
	static const struct conn_events news = {
		.up = sentinel_news_up, .down = sentinel_news_down
	};
	struct sentinel *s = NEW(struct sentinel, .loop = loop, .name = xstrdup(name),
	    .master = opt->master, .data = *opt, .forbidden = forbidden);
	size_t n = 0;

	s->data.servers = s->candidate;
	s->data.sentinel = NULL;
	/* Its timeout is the time for one Sentinel. */
	s->options = *opt;
	s->options.sentinels = NULL;
	s->options.sentinel = NULL;
	s->options.is_sentinel = true;
	s->options.database = 0;
	s->options.username = opt->sentinel_username;
	s->options.password_file = opt->sentinel_password_file;
	if (opt->timeout > EACH)
		s->options.timeout = opt->timeout / 10 > EACH ? opt->timeout / 10 : EACH;
	s->answer_within = 2 * s->options.timeout < opt->timeout ? 2 * s->options.timeout :
	    opt->timeout;
	while (opt->sentinels[n] != NULL)
		n++;
	s->list = xmalloc((n + 1) * sizeof(*s->list));
	memcpy(s->list, opt->sentinels, (n + 1) * sizeof(*s->list));
	s->options.servers = s->list;
	s->round = 1;
	TAILQ_INIT(&s->clients);
	timer_init(&s->limit, loop, sentinel_late, s);
	request_init(&s->request, sentinel_answered, s);
	s->query = conn_new(loop, &s->options, name, 0, &query, s);
	s->news = conn_new(loop, &s->options, name, CONN_SUBSCRIBER, &news, s);
	conn_set_limits(s->query, &limits);
	conn_set_limits(s->news, &limits);
	conn_subscribe(s->news, false, CHANNEL, sentinel_heard, s);
	return s;
}

void
sentinel_free(struct sentinel *s)
{
	if (s == NULL)
		return;
	request_cancel(&s->request);
	timer_stop(&s->limit);
	sentinel_check_end(s);
	conn_free(s->query);
	conn_free(s->news);
	free(s->list);
	free(s->name);
	free(s->known);
	free(s->source);
	free(s->cause);
	free(s);
}
