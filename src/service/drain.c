/*
 * The drain; see drain.h.
 *
 *	NONE
 *	   | drain_begin(): SIGTERM, --until-empty
 *	   v
 *	FINISHING   consumers take nothing new; handlers finish, for drain_timeout
 *	   | drain_timeout has passed, or drain_hasten(): a second SIGTERM
 *	   v
 *	ENDING      handlers get SIGTERM, after kill_grace SIGKILL; then results
 *	   |        reach Redis, within 1.5 s (GIVE_UP); another SIGTERM: SIGKILL now
 *	   v
 *	OVER
 *
 * FINISHING and ENDING lead to OVER as soon as all consumers are closed.
 */
#include "service/drain.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "engine/consumer.h"
#include "loop/timer.h"

#define GIVE_UP		(1500 * MSEC)	/* for the last results, after the last handler */

enum drain_state { DRAIN_NONE, DRAIN_FINISHING, DRAIN_ENDING, DRAIN_OVER };

struct drain {
	struct loop		*loop;
	struct consumers	*consumers;
	void			(*over)(bool, void *);
	void			*arg;
	enum drain_state	 state;
	struct timer		 deadline;	/* when FINISHING or ENDING is over */
	struct defer		 closed;	/* queued: no consumer is left */
};

static void
drain_set_state(struct drain *d, enum drain_state state)
{
	d->state = state;
}

const char *
drain_state_name(const struct drain *d)
{
	static const char *const names[] = {
		[DRAIN_NONE] = NULL, [DRAIN_FINISHING] = "draining",
		[DRAIN_ENDING] = "draining", [DRAIN_OVER] = "stopped",
	};

	return names[d->state];
}

static void
drain_stop(struct drain *d, bool all_closed)
{
	timer_stop(&d->deadline);
	drain_set_state(d, DRAIN_OVER);
	d->over(all_closed, d->arg);
}

static void
drain_all_closed(void *arg)
{
	drain_stop(arg, true);
}

void
drain_consumer_closed(struct drain *d)
{
	if (consumers_at(d->consumers, 0) == NULL &&
	    (d->state == DRAIN_FINISHING || d->state == DRAIN_ENDING))
		loop_defer(d->loop, &d->closed, drain_all_closed, d);
}

static usec_t
longest_grace(const struct consumers *consumers)
{
	usec_t longest = 0;
	struct consumer *c;

	for (size_t i = 0; (c = consumers_at(consumers, i)) != NULL; i++)
		if (consumer_config(c)->kill_grace > longest)
			longest = consumer_config(c)->kill_grace;
	return longest;
}

/* Ends the handlers that still run; their messages are returned.  Again: by SIGKILL. */
static void
drain_end_handlers(struct drain *d)
{
	bool again = d->state == DRAIN_ENDING;
	struct consumer *c;

	drain_set_state(d, DRAIN_ENDING);
	for (size_t i = 0; (c = consumers_at(d->consumers, i)) != NULL; i++)
		consumer_stop_handlers(c, again);
	if (!again)
		timer_set(&d->deadline, longest_grace(d->consumers) + GIVE_UP);
}

void
drain_hasten(struct drain *d)
{
	if (d->state == DRAIN_FINISHING || d->state == DRAIN_ENDING)
		drain_end_handlers(d);
}

static bool
are_confirmed(const struct consumers *consumers)
{
	struct consumer *c;

	for (size_t i = 0; (c = consumers_at(consumers, i)) != NULL; i++)
		if (!consumer_is_confirmed(c))
			return false;
	return true;
}

/* The deadline of a state has passed.  Idle processes that are left are killed at the exit. */
static void
drain_deadline(void *arg)
{
	struct drain *d = arg;
	bool confirmed;

	if (d->state == DRAIN_FINISHING && consumers_in_flight(d->consumers) > 0) {
		drain_end_handlers(d);
		return;
	}
	confirmed = are_confirmed(d->consumers);
	if (d->state == DRAIN_FINISHING && !confirmed) {
		drain_set_state(d, DRAIN_ENDING);
		timer_set(&d->deadline, GIVE_UP);
		return;
	}
	if (!confirmed)
		log_event(LOG_LV_WARN, "warning", NULL,
		    LF_STR("warning", "gave up waiting for Redis: "
		    "messages whose results are not confirmed run again when their leases end"));
	drain_stop(d, false);
}

void
drain_begin(struct drain *d, usec_t timeout)
{
	struct consumer *c;

	log_event(LOG_LV_INFO, "draining", NULL,
	    LF_INT("running", consumers_in_flight(d->consumers)), LF_USEC("timeout", timeout));
	drain_set_state(d, DRAIN_FINISHING);
	timer_set(&d->deadline, timeout);
	for (size_t i = 0; (c = consumers_at(d->consumers, i)) != NULL; i++)
		consumer_drain(c);
	drain_consumer_closed(d);	/* where there was none */
}

struct drain *
drain_new(struct loop *loop, struct consumers *consumers, void (*over)(bool, void *), void *arg)
{
	struct drain *d = xcalloc(1, sizeof(*d));

	*d = (struct drain){ .loop = loop, .consumers = consumers, .over = over, .arg = arg };
	timer_init(&d->deadline, loop, drain_deadline, d);
	return d;
}

void
drain_free(struct drain *d)
{
	if (d == NULL)
		return;
	timer_stop(&d->deadline);
	loop_defer_cancel(d->loop, &d->closed);
	free(d);
}
