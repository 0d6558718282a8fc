/*
 * Forms batches; see collector.h.
 */
#include "engine/collector.h"

#define SLOT_WAIT	SEC
#define FETCH_WAIT	(100 * MSEC)	/* time that a due batch waits for a fetch */

static unsigned
batch_max(const struct collector *c)
{
	return suspension_is_on(c->suspension) ? 1 : (unsigned)c->cfg->batch;
}

unsigned
collector_count(const struct collector *c)
{
	return c->ntogether + c->nalone;
}

unsigned
collector_runs(const struct collector *c)
{
	unsigned most = batch_max(c);

	return c->nalone + (c->ntogether + most - 1) / most;
}

unsigned
collector_wants(const struct collector *c)
{
	unsigned most = c->slots * batch_max(c);
	unsigned have = c->ntogether + c->nalone * batch_max(c);
	size_t bytes = c->bytes + c->nalone * CONFIG_RUN_BYTES;

	return most > have && bytes < c->slots * CONFIG_RUN_BYTES ? most - have : 0;
}

bool
collector_is_filling(const struct collector *c)
{
	return c->slots > 0 && c->ntogether > 0 && !suspension_is_on(c->suspension);
}

/* Whether no more message could join the next batch. */
static bool
is_full(const struct collector *c)
{
	return c->ntogether >= batch_max(c) || c->bytes >= CONFIG_RUN_BYTES;
}

/* -- its messages ----------------------------------------------------------- */

static void
collector_unlink(struct collector *c, struct held *h)
{
	if (message_has_failed(h->msg)) {
		TAILQ_REMOVE(&c->alone, h, entry);
		c->nalone--;
	} else {
		TAILQ_REMOVE(&c->together, h, entry);
		c->ntogether--;
		c->bytes -= h->msg->len;
	}
}

void
collector_remove(struct collector *c, struct held *h)
{
	collector_unlink(c, h);
	h->msg->engine_data = NULL;
	held_free(h);
}

static void
collector_move(struct collector *c, struct held *h, struct held_list *to)
{
	collector_unlink(c, h);
	TAILQ_INSERT_TAIL(to, h, entry);
}

/*
 * The first message of a list whose lease surely holds; gives back those before it.
 * NULL: none.
 */
static struct held *
first_sure(struct collector *c, const struct held_list *list)
{
	struct message *msg;
	struct held *h;

	while ((h = TAILQ_FIRST(list)) != NULL && !message_is_sure(h->msg)) {
		msg = h->msg;
		collector_remove(c, h);
		c->events->give_back(msg, c->arg);
	}
	return h;
}

static unsigned
take_together(struct collector *c, struct held_list *to)
{
	unsigned most = batch_max(c), n = 0;
	size_t bytes = 0;
	struct held *h;

	while (n < most && (h = first_sure(c, &c->together)) != NULL) {
		bytes += h->msg->len;
		if (n > 0 && bytes > CONFIG_RUN_BYTES)
			break;
		collector_move(c, h, to);
		n++;
	}
	return n;
}

static unsigned
take_alone(struct collector *c, struct held_list *to)
{
	struct held *h = first_sure(c, &c->alone);

	if (h == NULL)
		return 0;
	collector_move(c, h, to);
	return 1;
}

/* Any collected message; NULL: none. */
static struct held *
first(const struct collector *c)
{
	struct held *h = TAILQ_FIRST(&c->together);

	return h != NULL ? h : TAILQ_FIRST(&c->alone);
}

/* -- slots ------------------------------------------------------------------ */

void
collector_release(struct collector *c)
{
	unsigned runs = collector_runs(c);
	unsigned unused = c->slots > runs ? c->slots - runs : 0;

	if (c->fetching || unused == 0)
		return;
	c->slots -= unused;
	dispatcher_release(c->dispatcher, unused);
	c->events->changed(c->arg);
}

/* Begins runs that have a slot and are full; due: also a batch that is not full. */
static void
collector_begin(struct collector *c, bool due)
{
	struct held_list list = TAILQ_HEAD_INITIALIZER(list);
	unsigned n;

	while (c->slots > 0) {
		n = c->alone_last ? 0 : take_alone(c, &list);
		c->alone_last = n > 0;
		if (n == 0 && (due || is_full(c)))
			n = take_together(c, &list);
		if (n == 0)
			c->alone_last = (n = take_alone(c, &list)) > 0;
		if (n == 0)
			return;
		c->slots--;
		c->events->start(&list, n, c->arg);
	}
}

void
collector_grant(struct collector *c, unsigned slots)
{
	c->slots += slots;
	collector_begin(c, false);
}

void
collector_add(struct collector *c, struct message *msg)
{
	struct held *h = held_new(msg);

	if (message_has_failed(msg)) {
		TAILQ_INSERT_TAIL(&c->alone, h, entry);
		c->nalone++;
		return;
	}
	TAILQ_INSERT_TAIL(&c->together, h, entry);
	c->ntogether++;
	c->bytes += msg->len;
	if (is_full(c))
		collector_begin(c, false);
}

void
collector_give_back(struct collector *c)
{
	struct message *msg;
	struct held *h;

	while ((h = first(c)) != NULL) {
		msg = h->msg;
		collector_remove(c, h);
		c->events->give_back(msg, c->arg);
	}
	collector_release(c);
}

/* -- time ------------------------------------------------------------------- */

/* The time at which the oldest message has waited for long enough (mono). */
static usec_t
deadline(const struct collector *c)
{
	const struct held *a = TAILQ_FIRST(&c->together), *b = TAILQ_FIRST(&c->alone);
	usec_t at;

	if (a == NULL || (b != NULL && b->msg->delivered < a->msg->delivered))
		a = b;
	at = a->msg->delivered;
	if (suspension_is_on(c->suspension))
		return at;
	at += c->cfg->batch_wait;
	if (c->slots == 0)
		return at + SLOT_WAIT;
	return c->fetching ? at + FETCH_WAIT : at;
}

/* Comes last in a turn, when the queue has said whether it has more. */
static void
launch(void *arg)
{
	struct collector *c = arg;
	bool due = collector_count(c) > 0 && clock_mono() >= deadline(c);

	timer_stop(&c->timer);
	if (due && c->slots == 0)
		collector_give_back(c);
	else
		collector_begin(c, due);
	collector_release(c);
	if (collector_count(c) > 0)
		timer_set_at(&c->timer, deadline(c));
	if (due)
		c->events->changed(c->arg);
}

static void
look(void *arg)
{
	struct collector *c = arg;

	loop_defer_last(c->loop, &c->launch, launch, c);
}

void
collector_look(struct collector *c)
{
	if (collector_count(c) > 0 || (c->slots > 0 && !c->fetching))
		look(c);
}

/* -- life ------------------------------------------------------------------- */

void
collector_init(struct collector *c, struct loop *loop, struct dispatcher *dispatcher,
    const struct suspension *suspension, const struct collector_events *events, void *arg)
{
	*c = (struct collector){ .loop = loop, .dispatcher = dispatcher,
	    .suspension = suspension, .events = events, .arg = arg };
	TAILQ_INIT(&c->together);
	TAILQ_INIT(&c->alone);
	timer_init(&c->timer, loop, look, c);
}

void
collector_done(struct collector *c)
{
	struct held *h;

	while ((h = first(c)) != NULL)
		collector_remove(c, h);
	timer_stop(&c->timer);
	loop_defer_cancel(c->loop, &c->launch);
}

void
collector_each(const struct collector *c,
    void (*fn)(const struct message *, pid_t, const char *, usec_t, void *), void *arg)
{
	usec_t now = clock_mono();
	const struct held *h;

	TAILQ_FOREACH(h, &c->together, entry)
		fn(h->msg, 0, NULL, now - h->msg->delivered, arg);
	TAILQ_FOREACH(h, &c->alone, entry)
		fn(h->msg, 0, NULL, now - h->msg->delivered, arg);
}
