/*
 * The watcher: the effect of each event in each state, and the timers of a fleet, under
 * a simulated loop.
 */
#include "unit.h"

#include "queue/watcher.h"

static struct loop	*loop;
static struct watcher	*w;
static unsigned		 fleet, wakes, promotes, warnings;

static const struct watcher_found nothing_found = {
	.tracked = true, .pause_left = -1, .retry_in = -1, .delayed_in = -1
};

static void
wake(void *arg)
{
	(void)arg;
	wakes++;
}

static void
promote(void *arg)
{
	(void)arg;
	promotes++;
}

static void
warn(const char *text, void *arg)
{
	(void)arg;
	assert_non_null(text);
	warnings++;
}

static void
begin(unsigned daemons, bool ticks_promote)
{
	static const struct watcher_events events = {
		.wake = wake, .promote = promote, .warn = warn,
	};

	fleet = daemons;
	wakes = promotes = warnings = 0;
	clock_fake(1000 * SEC, 0);
	loop = loop_new_simulated();
	w = watcher_new(loop, &fleet, ticks_promote, &events, NULL);
	watcher_want(w, true);
}

static void
end(void)
{
	watcher_free(w);
	loop_free(loop);
}

static void
pop(struct watcher_popped p)
{
	(void)watcher_popped(w, &p);
}

#define POP(...)	pop((struct watcher_popped){ __VA_ARGS__ })

/* Answers the arm script: it found nothing, except for what the argument sets in `with`. */
#define FOUND(...) do {							\
	struct watcher_found with = nothing_found;			\
	__VA_ARGS__;							\
	(void)watcher_armed(w, &with);					\
} while (0)

/* Makes a watcher in this state; the engine wants messages, and it knows of no work. */
static void
reach(enum watcher_state state)
{
	begin(1, true);
	pop((struct watcher_popped){ 0 });
	if (state != WATCHER_IDLE)
		assert_int_equal(watcher_look(w, false), WATCHER_ARM);
	if (state == WATCHER_OUTDATED)
		watcher_key_changed(w, KEY_RETRY, 0);
	if (state == WATCHER_ARMED)
		FOUND();
	assert_int_equal(watcher_state(w), state);
	wakes = 0;
}

/* -- every event in every state --------------------------------------------- */

static void on_nothing(void)		{ }
static void on_push(void)		{ watcher_key_changed(w, KEY_QUEUE, 0); }
static void on_retry(void)		{ watcher_key_changed(w, KEY_RETRY, 0); }
static void on_delayed(void)		{ watcher_key_changed(w, KEY_DELAYED, 0); }
static void on_paused(void)		{ watcher_key_changed(w, KEY_PAUSED, 0); }
static void on_backup(void)		{ watcher_key_changed(w, KEY_BACKUP, 0); }
static void on_round(void)		{ watcher_round(w); }
static void on_up(void)			{ watcher_up(w); }
static void on_down(void)		{ watcher_down(w); }
static void on_reconfigure(void)	{ watcher_reconfigure(w); }
static void on_saw_work(void)		{ watcher_saw_work(w); }
static void on_unwanted(void)		{ watcher_want(w, false); }
static void on_wanted(void)		{ watcher_want(w, false); watcher_want(w, true); }
static void on_pop_none(void)		{ POP(.any = false); }
static void on_pop_all(void)		{ POP(.any = true); }
static void on_pop_more(void)		{ POP(.any = true, .waiting = true); }
static void on_pop_due(void)		{ POP(.any = true, .due = true); }
static void on_pop_late(void)		{ POP(.late = true); }
static void on_pop_full(void)		{ POP(.waiting = true, .full = true); }
static void on_pop_rate(void)		{ POP(.waiting = true, .rate_wait = SEC); }
static void on_pop_paused(void)		{ POP(.waiting = true, .paused = true); }
static void on_pop_refused(void)	{ watcher_pop_refused(w); }
static void on_no_room(void)		{ watcher_set_no_room(w, true); }
static void on_arm_none(void)		{ FOUND(); }
static void on_arm_waiting(void)	{ FOUND(with.waiting = true); }
static void on_arm_due(void)		{ FOUND(with.retry_in = 0); }
static void on_arm_later(void)		{ FOUND(with.retry_in = SEC); }
static void on_arm_full(void)		{ FOUND(with.waiting = with.full = true); }
static void on_arm_paused(void)		{ FOUND(with.waiting = with.paused = true); }
static void on_arm_lost(void)		{ watcher_arm_lost(w); }
static void on_arm_refused(void)	{ watcher_arm_refused(w, 10 * SEC); }

static void
on_retry_due(void)
{
	assert_false(watcher_saw_retry(w, SEC, false));
	loop_run_for(loop, SEC + MSEC);
}

static void
on_delayed_due(void)
{
	watcher_saw_delayed(w, SEC);
	loop_run_for(loop, SEC + MSEC);
	assert_int_equal(promotes, 1);
}

static void
on_poll_due(void)
{
	watcher_poll(w);
	loop_run_for(loop, SEC);
	assert_int_equal(wakes, 1);
}

static void
on_rate_due(void)
{
	on_pop_rate();
	loop_run_for(loop, SEC);
	assert_int_equal(wakes, 1);
}

#define I	WATCHER_IDLE
#define A	WATCHER_ARMING
#define O	WATCHER_OUTDATED
#define D	WATCHER_ARMED
#define ARM	WATCHER_ARM
#define WAIT	WATCHER_WAIT
#define FETCH	WATCHER_FETCH
#define NEVER	{ -1, 0 }	/* no such event in this state */
#define ROW(fn)	#fn, on_##fn

static const struct {
	const char	*name;
	void		(*fn)(void);
	/* For each state before: the state after the event, and the next look's advice. */
	struct { int state; enum watcher_advice advice; } then[4];
} table[] = {
	/*		     IDLE	 ARMING      OUTDATED	 ARMED */
	{ ROW(nothing),    { { I, ARM },   { A, WAIT },  { O, WAIT },  { D, WAIT } } },
	{ ROW(push),       { { I, FETCH }, { O, FETCH }, { O, FETCH }, { I, FETCH } } },
	{ ROW(retry),      { { I, ARM },   { O, WAIT },  { O, WAIT },  { I, ARM } } },
	{ ROW(delayed),    { { I, ARM },   { O, WAIT },  { O, WAIT },  { I, ARM } } },
	{ ROW(paused),     { { I, ARM },   { O, WAIT },  { O, WAIT },  { I, ARM } } },
	{ ROW(backup),     { { I, ARM },   { O, WAIT },  { O, WAIT },  { D, WAIT } } },
	{ ROW(round),      { { I, ARM },   { A, WAIT },  { O, WAIT },  { I, ARM } } },
	{ ROW(up),         { { I, FETCH }, { A, FETCH }, { O, FETCH }, { I, FETCH } } },
	{ ROW(down),       { { I, ARM },   { A, WAIT },  { O, WAIT },  { I, ARM } } },
	{ ROW(reconfigure), { { I, ARM },  { O, WAIT },  { O, WAIT },  { I, ARM } } },
	{ ROW(saw_work),   { { I, FETCH }, { A, FETCH }, { O, FETCH }, { D, FETCH } } },
	{ ROW(unwanted),   { { I, WAIT },  { A, WAIT },  { O, WAIT },  { D, WAIT } } },
	{ ROW(wanted),     { { I, FETCH }, { A, FETCH }, { O, FETCH }, { D, FETCH } } },
	{ ROW(pop_none),   { { I, ARM },   { A, WAIT },  { O, WAIT },  { D, WAIT } } },
	{ ROW(pop_all),    { { I, ARM },   { A, WAIT },  { O, WAIT },  { D, WAIT } } },
	{ ROW(pop_more),   { { I, FETCH }, { A, FETCH }, { O, FETCH }, { D, FETCH } } },
	{ ROW(pop_due),    { { I, FETCH }, { A, FETCH }, { O, FETCH }, { D, FETCH } } },
	{ ROW(pop_late),   { { I, FETCH }, { A, FETCH }, { O, FETCH }, { D, FETCH } } },
	{ ROW(pop_full),   { { I, ARM },   { A, WAIT },  { O, WAIT },  { I, ARM } } },
	{ ROW(pop_rate),   { { I, WAIT },  { A, WAIT },  { O, WAIT },  { D, WAIT } } },
	{ ROW(pop_paused), { { I, ARM },   { A, WAIT },  { O, WAIT },  { D, WAIT } } },
	{ ROW(pop_refused), { { D, WAIT }, { A, WAIT },  { O, WAIT },  { D, WAIT } } },
	{ ROW(no_room),    { { I, WAIT },  { A, WAIT },  { O, WAIT },  { D, WAIT } } },
	{ ROW(retry_due),  { { I, FETCH }, { A, FETCH }, { O, FETCH }, { I, FETCH } } },
	{ ROW(delayed_due), { { I, ARM },  { A, WAIT },  { O, WAIT },  { D, WAIT } } },
	{ ROW(poll_due),   { { I, ARM },   { A, WAIT },  { O, WAIT },  { I, ARM } } },
	{ ROW(rate_due),   { { I, FETCH }, { A, FETCH }, { O, FETCH }, { I, FETCH } } },
	{ ROW(arm_none),   { NEVER,	   { D, WAIT },  { I, ARM },   NEVER } },
	{ ROW(arm_waiting), { NEVER,	   { D, FETCH }, { I, FETCH }, NEVER } },
	{ ROW(arm_due),    { NEVER,	   { D, FETCH }, { I, FETCH }, NEVER } },
	{ ROW(arm_later),  { NEVER,	   { D, WAIT },  { I, ARM },   NEVER } },
	{ ROW(arm_full),   { NEVER,	   { D, WAIT },  { I, ARM },   NEVER } },
	{ ROW(arm_paused), { NEVER,	   { D, WAIT },  { I, ARM },   NEVER } },
	{ ROW(arm_lost),   { NEVER,	   { I, ARM },   { I, ARM },   NEVER } },
	{ ROW(arm_refused), { NEVER,	   { D, WAIT },  { D, WAIT },  NEVER } },
};

TEST(test_table)
{
	size_t i;
	int s;

	for (i = 0; i < ARRAY_LEN(table); i++) {
		for (s = WATCHER_IDLE; s <= WATCHER_ARMED; s++) {
			if (table[i].then[s].state < 0)
				continue;
			printf("# %s in state %d\n", table[i].name, s);
			reach((enum watcher_state)s);
			table[i].fn();
			assert_int_equal(watcher_state(w), table[i].then[s].state);
			assert_int_equal(watcher_look(w, false), table[i].then[s].advice);
			if (table[i].then[s].advice == ARM)
				assert_int_equal(watcher_state(w), WATCHER_ARMING);
			end();
		}
	}
}

/* -- the owner -------------------------------------------------------------- */

/* The advice to fetch comes once after each fetch and each watcher_want(). */
TEST(test_advises_once)
{
	reach(WATCHER_ARMED);
	watcher_saw_work(w);
	assert_true(watcher_will_fetch(w));
	assert_int_equal(watcher_look(w, false), FETCH);
	assert_int_equal(watcher_look(w, true), WAIT);
	watcher_fetching(w);
	assert_int_equal(watcher_look(w, false), FETCH);
	watcher_want(w, false);
	assert_false(watcher_will_fetch(w));
	assert_int_equal(watcher_look(w, true), WAIT);
	watcher_want(w, true);
	assert_int_equal(watcher_look(w, false), FETCH);
	end();
}

/* Messages that are here already are fetched although no pop may be sent. */
TEST(test_found)
{
	reach(WATCHER_ARMED);
	on_pop_rate();
	watcher_set_no_room(w, true);
	assert_int_equal(watcher_look(w, false), WAIT);
	assert_int_equal(watcher_look(w, true), FETCH);
	end();
}

TEST(test_empty)
{
	begin(1, true);
	assert_false(watcher_is_empty(w));
	on_pop_none();
	assert_true(watcher_is_empty(w));
	on_saw_work();
	assert_false(watcher_is_empty(w));
	on_pop_all();
	assert_false(watcher_is_empty(w));
	assert_int_equal(watcher_look(w, false), ARM);
	on_arm_none();
	assert_true(watcher_is_empty(w));
	on_wanted();
	assert_false(watcher_is_empty(w));
	on_pop_none();
	assert_true(watcher_is_empty(w));
	on_down();	/* somebody may push before it is up again */
	assert_false(watcher_is_empty(w));
	end();
}

/* Messages whose payloads load take all slots: no pop until one is ready, or for a second. */
TEST(test_no_room)
{
	reach(WATCHER_ARMED);
	watcher_set_no_room(w, true);
	watcher_set_no_room(w, false);
	assert_int_equal(watcher_look(w, false), FETCH);
	watcher_fetching(w);
	watcher_set_no_room(w, true);
	assert_int_equal(watcher_look(w, false), WAIT);
	loop_run_for(loop, SEC);
	assert_int_equal(wakes, 1);
	assert_int_equal(watcher_look(w, false), FETCH);
	end();
}

/* -- limits and errors ------------------------------------------------------ */

/* A pause's begin and end are each reported once; a late pop did not look at QPAUSED. */
TEST(test_pause)
{
	struct watcher_popped paused = { .paused = true }, late = { .late = true }, ok = { 0 };
	struct watcher_found f = nothing_found;

	reach(WATCHER_IDLE);
	assert_true(watcher_popped(w, &paused));
	assert_false(watcher_popped(w, &paused));
	assert_false(watcher_popped(w, &late));
	assert_true(watcher_popped(w, &ok));
	assert_int_equal(watcher_look(w, false), ARM);
	f.paused = true;
	f.pause_left = 5 * SEC;
	assert_true(watcher_armed(w, &f));
	/* Only QPAUSED matters, and the end of the pause. */
	on_push();
	on_retry();
	on_delayed();
	on_backup();
	assert_int_equal(watcher_state(w), WATCHER_ARMED);
	assert_int_equal(watcher_look(w, false), WAIT);
	loop_run_for(loop, 5 * SEC);
	assert_int_equal(watcher_state(w), WATCHER_ARMED);
	loop_run_for(loop, MSEC);
	assert_int_equal(watcher_look(w, false), ARM);
	assert_true(watcher_armed(w, &nothing_found));
	end();
}

/* While the fleet is full only QBACKUP and QPAUSED matter. */
TEST(test_full)
{
	reach(WATCHER_ARMING);
	FOUND(with.waiting = with.full = true);
	on_push();
	on_retry();
	on_delayed();
	assert_int_equal(watcher_state(w), WATCHER_ARMED);
	assert_int_equal(watcher_look(w, false), WAIT);
	on_backup();
	assert_int_equal(watcher_state(w), WATCHER_IDLE);
	assert_int_equal(watcher_look(w, false), FETCH);
	watcher_fetching(w);
	on_pop_full();
	on_push();
	assert_int_equal(watcher_look(w, false), ARM);
	on_arm_full();
	on_pop_none();		/* the fleet is no longer full, and the keys are not armed */
	assert_int_equal(watcher_look(w, false), ARM);
	end();
}

TEST(test_rate)
{
	static const usec_t wait[][2] = {
		{ 1, 10 * MSEC }, { SEC, SEC }, { HOUR, MINUTE }
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(wait); i++) {
		reach(WATCHER_ARMED);
		POP(.waiting = true, .rate_wait = wait[i][0]);
		loop_run_for(loop, wait[i][1] - 1);
		assert_int_equal(watcher_look(w, false), WAIT);
		loop_run_for(loop, 1);
		assert_int_equal(watcher_look(w, false), FETCH);
		end();
	}
}

/* After a reload the watcher forgets a rate limit and a full fleet. */
TEST(test_reload)
{
	reach(WATCHER_ARMED);
	on_pop_rate();
	watcher_reconfigure(w);
	assert_int_equal(watcher_look(w, false), ARM);
	FOUND(with.full = true);
	watcher_reconfigure(w);
	on_push();
	assert_int_equal(watcher_look(w, false), FETCH);
	end();
}

/* After each refused arm call the watcher waits longer; then a pop finds out the error. */
TEST(test_refused)
{
	reach(WATCHER_ARMING);
	on_arm_refused();
	assert_int_equal(watcher_look(w, false), WAIT);
	loop_run_for(loop, SEC);
	assert_int_equal(watcher_look(w, false), FETCH);
	watcher_fetching(w);
	on_pop_none();
	assert_int_equal(watcher_look(w, false), ARM);
	on_arm_refused();
	loop_run_for(loop, SEC - 1);
	assert_int_equal(watcher_look(w, false), WAIT);
	loop_run_for(loop, SEC + 1);
	assert_int_equal(watcher_look(w, false), FETCH);
	end();
}

/* After an answer or a new connection, a refusal is forgotten: a poll arms, and pops not. */
TEST(test_refusal_forgotten)
{
	reach(WATCHER_ARMING);
	on_arm_refused();
	loop_run_for(loop, SEC);
	watcher_fetching(w);
	on_pop_none();
	assert_int_equal(watcher_look(w, false), ARM);
	FOUND(with.tracked = false);
	loop_run_for(loop, SEC);
	assert_int_equal(watcher_look(w, false), ARM);
	on_arm_refused();
	watcher_up(w);
	on_pop_none();
	loop_run_for(loop, SEC);
	assert_int_equal(watcher_look(w, false), ARM);
	end();
}

/* After a refused pop the watcher does nothing for a second, although there may be work. */
TEST(test_pop_refused)
{
	reach(WATCHER_IDLE);
	on_saw_work();
	on_pop_refused();
	loop_run_for(loop, SEC - 1);
	assert_int_equal(watcher_look(w, false), WAIT);
	loop_run_for(loop, 1);
	assert_int_equal(watcher_look(w, false), ARM);
	end();
}

/* watcher_down() stops all timers; an answer of the arm script stops two of them. */
TEST(test_timers_stop)
{
	begin(1 << 30, true);
	on_pop_none();
	on_round();
	on_retry();
	watcher_poll(w);
	assert_int_equal(watcher_look(w, false), ARM);
	loop_run_for(loop, MINUTE);
	assert_int_equal(wakes, 0);
	on_arm_none();
	on_retry();
	on_round();
	loop_run_for(loop, MINUTE);
	assert_int_equal(wakes, 0);
	on_retry();
	watcher_key_changed(w, KEY_QUEUE, 1);
	(void)watcher_saw_retry(w, SEC, false);
	watcher_saw_delayed(w, SEC);
	on_pop_rate();
	watcher_poll(w);
	wakes = 0;
	watcher_down(w);
	loop_run_for(loop, MINUTE);
	assert_int_equal(wakes + promotes, 0);
	end();
}

/* An answer of the arm script replaces the timers of earlier answers. */
TEST(test_timers_move)
{
	reach(WATCHER_ARMING);
	FOUND(with.retry_in = SEC; with.delayed_in = SEC);
	on_retry();
	assert_int_equal(watcher_look(w, false), ARM);
	on_arm_none();
	loop_run_for(loop, MINUTE);
	assert_int_equal(watcher_look(w, false), WAIT);
	assert_int_equal(promotes, 0);
	watcher_saw_delayed(w, 0);
	loop_run_for(loop, MSEC);
	assert_int_equal(promotes, 1);
	on_retry();
	assert_int_equal(watcher_look(w, false), ARM);
	FOUND(with.delayed_in = 0);
	loop_run_for(loop, MSEC);
	assert_int_equal(promotes, 2);
	end();
}

/* If Redis does not track the keys, the watcher polls each second. */
TEST(test_polls)
{
	reach(WATCHER_ARMING);
	FOUND(with.tracked = false);
	loop_run_for(loop, SEC - 1);
	assert_int_equal(watcher_look(w, false), WAIT);
	loop_run_for(loop, 1);
	assert_int_equal(watcher_look(w, false), ARM);
	end();
}

/*
 * Redis reports QPAUSED as changed again and again, because it evicts keys from tracking.
 * The watcher warns once, and then polls.
 */
TEST(test_evicted)
{
	int i;

	reach(WATCHER_ARMED);
	for (i = 0; i < 8; i++)
		on_paused();
	assert_int_equal(warnings, 0);
	assert_int_equal(watcher_look(w, false), ARM);
	on_paused();
	assert_int_equal(warnings, 1);
	FOUND();
	assert_int_equal(watcher_state(w), WATCHER_ARMED);
	on_retry();
	on_paused();
	assert_int_equal(watcher_state(w), WATCHER_ARMED);
	loop_run_for(loop, SEC);
	assert_int_equal(watcher_look(w, false), ARM);
	/* A round without such a report ends that. */
	FOUND();
	on_round();
	on_round();
	assert_int_equal(watcher_look(w, false), ARM);
	FOUND();
	on_retry();
	assert_int_equal(watcher_state(w), WATCHER_IDLE);
	end();
}

/* -- the fleet -------------------------------------------------------------- */

/* A message that falls due in the source itself is found by a pop, not by a tick. */
TEST(test_not_promoted)
{
	begin(1, false);
	on_pop_none();
	assert_int_equal(watcher_look(w, false), ARM);
	FOUND(with.delayed_in = 0);	/* a due message would be reported as `waiting` */
	loop_run_for(loop, MINUTE);
	assert_int_equal(watcher_look(w, false), WAIT);
	watcher_saw_delayed(w, SEC);
	loop_run_for(loop, SEC + MSEC);
	assert_int_equal(promotes, 0);
	assert_int_equal(watcher_look(w, false), FETCH);
	watcher_fetching(w);
	on_pop_none();
	/* A push may be of a delayed message, so the watcher arms instead of popping. */
	on_push();
	assert_int_equal(watcher_look(w, false), ARM);
	end();
}

/* Wakes the watcher several times; each time the pop finds nothing. */
static void
miss(unsigned times)
{
	for (; times > 0; times--) {
		on_push();
		loop_run_for(loop, SEC);	/* the backoff is over */
		on_pop_none();
	}
}

/* After misses the watcher backs off, and then arms before it pops, until a pop takes work. */
TEST(test_misses)
{
	begin(0, true);
	on_pop_none();
	miss(1);
	on_push();
	assert_int_equal(watcher_look(w, false), WAIT);
	loop_run_for(loop, 2 * MSEC);
	assert_int_equal(watcher_look(w, false), FETCH);
	watcher_fetching(w);
	on_pop_none();
	miss(2);
	on_push();
	assert_int_equal(watcher_look(w, false), WAIT);
	loop_run_for(loop, 100 * MSEC);
	assert_int_equal(watcher_look(w, false), ARM);
	on_arm_waiting();
	assert_int_equal(watcher_look(w, false), FETCH);
	watcher_fetching(w);
	on_pop_all();
	on_push();
	assert_int_equal(watcher_look(w, false), FETCH);
	end();
}

/* A pop that finds work is no miss, nor is one that no push caused. */
TEST(test_no_miss)
{
	int i;

	begin(0, true);
	on_pop_none();
	for (i = 0; i < 9; i++) {
		on_push();
		assert_int_equal(watcher_look(w, false), FETCH);
		watcher_fetching(w);
		on_pop_all();
		on_pop_none();
	}
	on_push();
	assert_int_equal(watcher_look(w, false), FETCH);
	end();
}

/* After several misses, an arm script that finds nothing is a miss, too. */
TEST(test_arm_misses)
{
	unsigned late = 0;
	int i, look;

	for (i = 0; i < 50; i++) {
		begin(0, true);
		on_pop_none();
		miss(3);
		on_push();
		do	/* the backoff is random: wait until it is over */
			loop_run_for(loop, 8 * MSEC);
		while ((look = watcher_look(w, false)) == WAIT);
		assert_int_equal(look, ARM);
		on_arm_none();
		on_push();
		loop_run_for(loop, 8 * MSEC);
		late += watcher_look(w, false) == WAIT;
		end();
	}
	assert_in_range(late, 8, 42);
}

/* A daemon that is alone answers a wake-up at once, but still backs off after misses. */
TEST(test_alone)
{
	begin(1, true);
	on_pop_none();
	miss(2);
	loop_run_for(loop, SEC);
	watcher_key_changed(w, KEY_QUEUE, 1);
	assert_int_equal(watcher_look(w, false), FETCH);
	watcher_fetching(w);
	on_pop_none();
	on_push();
	assert_int_equal(watcher_look(w, false), WAIT);
	end();
}

/* When another daemon has promoted the delayed message, this one sends no tick for it. */
TEST(test_promoted_by_others)
{
	unsigned overdue = 0;
	int i;

	begin(1 << 30, true);
	on_pop_none();
	on_round();
	for (i = 0; i < 20; i++) {
		promotes = 0;
		watcher_saw_delayed(w, SEC);
		loop_run_for(loop, SEC - MSEC);
		on_delayed();		/* not due yet: the timer stays */
		loop_run_for(loop, 2 * MSEC);
		if (promotes > 0)
			continue;
		overdue++;
		on_delayed();
		loop_run_for(loop, 2 * SEC);
		assert_int_equal(promotes, 0);
	}
	assert_true(overdue > 10);
	watcher_saw_delayed(w, SEC);
	on_delayed();
	loop_run_for(loop, 4 * SEC);
	assert_int_equal(promotes, 1);
	end();
}

/* A busy daemon reacts to a push later, so that idle ones take the message. */
TEST(test_busy)
{
	begin(10, true);
	on_pop_none();
	watcher_key_changed(w, KEY_QUEUE, 0.5);
	assert_int_equal(watcher_look(w, false), WAIT);
	loop_run_for(loop, MSEC - 1);
	assert_int_equal(watcher_look(w, false), WAIT);
	loop_run_for(loop, 1);
	assert_int_equal(watcher_look(w, false), FETCH);
	end();
}

/* A daemon that is not prompt reacts to QRETRY later, and not to QDELAYED. */
TEST(test_not_prompt)
{
	begin(1 << 30, true);
	on_pop_none();
	assert_int_equal(watcher_look(w, false), ARM);
	on_arm_none();
	on_retry();
	assert_int_equal(watcher_state(w), WATCHER_IDLE);	/* it was prompt */
	on_round();
	assert_int_equal(watcher_look(w, false), ARM);
	on_arm_none();
	on_delayed();
	on_retry();
	assert_int_equal(watcher_state(w), WATCHER_ARMED);
	loop_run_for(loop, 2 * SEC);
	assert_int_equal(watcher_state(w), WATCHER_IDLE);
	end();
}

/*
 * A retry that this daemon must fetch itself is fetched when it is due.  For any other it
 * waits longer, and does not fetch when another daemon has taken it meanwhile.
 */
TEST(test_taken_by_others)
{
	unsigned ours = 0, taken = 0;
	int i;

	begin(1 << 30, true);
	on_pop_none();
	on_round();
	for (i = 0; i < 20; i++) {
		(void)watcher_saw_retry(w, 0, false);
		assert_false(watcher_saw_retry(w, SEC, true));
		loop_run_for(loop, SEC + 11 * MSEC);
		ours += watcher_will_fetch(w);
		on_pop_none();
		(void)watcher_saw_retry(w, SEC, false);
		loop_run_for(loop, SEC + MSEC);
		if (!watcher_will_fetch(w)) {
			on_retry();
			loop_run_for(loop, 2 * SEC);
			taken += !watcher_will_fetch(w);
		}
		on_pop_none();
	}
	assert_int_equal(ours, 20);
	assert_true(taken > 10);
	end();
}
