/*
 * Pops of unknown outcome: when to ask the script "mine" about each, and when the next pop
 * may be sent.
 */
#include "unit.h"

#include "queue/pop.h"

#define TIMEOUT		(10 * SEC)
#define BACKOFF		(5 * SEC)

static struct loop	*loop;
static struct pops	*p;
static unsigned		 asks;
static char		 text[300];

static void
ask(void *arg)
{
	(void)arg;
	asks++;
}

static int
setup(void **state)
{
	(void)state;
	asks = 0;
	clock_fake(1000 * SEC, 0);
	loop = loop_new_simulated();
	p = pops_new(loop, "host-1", 0, ask, NULL);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	pops_free(p);
	loop_free(loop);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, setup, teardown)

/* The words, separated by blanks; frees them. */
static const char *
joined(struct words *w)
{
	int i;

	text[0] = '\0';
	for (i = 0; i < w->n; i++) {
		strcat(text, i > 0 ? " " : "");
		strcat(text, w->v[i]);
	}
	words_done(w);
	return text;
}

/* Returns the word of a pop that gives turn, room and batch to the script; static. */
static const char *
batch_words(enum turn turn, unsigned room)
{
	const struct pop_terms terms = {
		.n = 10, .turn = turn, .batch = turn == TURN_SHARE ? 10 : 0, .room = room,
		.timeout = TIMEOUT,
	};
	static char word[40];
	struct words w = { 0 };

	pops_begin(p, &terms, &w);
	snprintf(word, sizeof(word), "%s", w.v[8]);
	words_done(&w);
	pops_replied(p, false);
	return word;
}

static void
begin_turn(enum turn turn, unsigned n)
{
	const struct pop_terms terms = {
		.n = n, .turn = turn, .inline_max = 77, .fleet_concurrency = 3,
		.gap = 0.5, .timeout = TIMEOUT, .redis_now = 5000,
	};
	struct words w = { 0 };

	pops_begin(p, &terms, &w);
	joined(&w);
	assert_true(pops_is_sent(p));
	assert_false(pops_is_idle(p));
}

static void
begin(void)
{
	begin_turn(TURN_OLDEST, 1);
}

/* Asks mine about a pop; the words of the question are in `text`. */
static struct pop_call *
question(struct pop_call *pop)
{
	struct words w = { 0 };

	assert_non_null(pop);
	pops_add_question(p, pop, 77, &w);
	joined(&w);
	return pop;
}

static struct pop_call *
lose_and_ask(void)
{
	begin();
	pops_ended(p, true);
	return question(pops_to_ask(p));
}

#define LAST	.from = ""	/* no page follows */
#define TOLD(pop, ...)	\
	pops_mine_page(p, pop, &(struct mine_page){ __VA_ARGS__ })

static void
assert_ends(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	if (n < m || strcmp(s + n - m, end) != 0)
		fail_msg("\"%s\" does not end with \"%s\"", s, end);
}

/* -- a pop ------------------------------------------------------------------ */

static uint64_t
last_number(void)
{
	struct words w = { .n = 0 };
	uint64_t n;

	pops_add_last(p, &w);
	n = strtoull(strrchr(w.v[0], '.') + 1, NULL, 10);
	words_done(&w);
	return n;
}

FIXTURE_TEST(test_words)
{
	char expected[200];
	uint64_t first = last_number();

	begin();
	snprintf(expected, sizeof(expected), "1 262144 77 host-1-%llu.%llu 5010.000000 3 "
	    "0.500000000 0.100000000 new %llu", (unsigned long long)first,
	    (unsigned long long)first + 1, (unsigned long long)first);
	assert_string_equal(text, expected);
	pops_replied(p, false);
	assert_true(pops_is_idle(p));
	assert_false(pops_is_noted(p));
	assert_int_equal(last_number(), first);
	begin();
	pops_replied(p, true);
	assert_true(pops_is_noted(p));
	assert_int_equal(last_number(), first + 2);
	pops_saw_number(p, first);
	assert_int_equal(last_number(), first + 2);
	pops_set_noted(p, false);
	assert_false(pops_is_noted(p));
}

/* Returns the word for the turn, which is the last but one. */
static const char *
turn_of(enum turn turn, unsigned n)
{
	begin_turn(turn, n);
	pops_replied(p, false);
	*strrchr(text, ' ') = '\0';
	return strrchr(text, ' ') + 1;
}

FIXTURE_TEST(test_turns)
{
	assert_string_equal(turn_of(TURN_OLDEST, 1), "new");
	assert_string_equal(turn_of(TURN_NEWEST, 1), "newest");
	assert_string_equal(turn_of(TURN_FEWEST, 1), "fewest");
	assert_string_equal(turn_of(TURN_LONGEST, 1), "retry");
	assert_string_equal(turn_of(TURN_SHARE, 1), "retry");
	assert_string_equal(turn_of(TURN_SHARE, 1), "new");
	assert_string_equal(turn_of(TURN_SHARE, 1), "retry");
	pops_free(p);
	p = pops_new(loop, "host-1", 3, ask, NULL);
	assert_string_equal(turn_of(TURN_SHARE, 2), "due");
	assert_string_equal(turn_of(TURN_SHARE, 9), "due");
	assert_string_equal(turn_of(TURN_SHARE, 9), "retry");
}

/* -- unknown outcomes ------------------------------------------------------- */

/* A pop that was not sent has no unknown outcome. */
FIXTURE_TEST(test_not_sent)
{
	begin();
	pops_ended(p, false);
	assert_true(pops_is_idle(p));
	assert_null(pops_to_ask(p));
}

/* The lost pop has run: mine finds what it took. */
FIXTURE_TEST(test_found)
{
	struct pop_call *pop = lose_and_ask();

	assert_ends(text, " 4999.000000 0 77 1000");
	assert_true(pops_is_unsure(p));
	assert_null(pops_to_ask(p));
	TOLD(pop, LAST, .found = true);
	assert_true(pops_is_idle(p));
	assert_false(pops_is_unsure(p));
	assert_true(pops_is_noted(p));
}

/* The lost pop has not run yet: pops go on, and mine is asked again after its deadline. */
FIXTURE_TEST(test_not_found)
{
	struct pop_call *pop = lose_and_ask();

	TOLD(pop, LAST);
	assert_false(pops_is_unsure(p));
	assert_false(pops_is_idle(p));
	assert_null(pops_to_ask(p));
	loop_run_for(loop, TIMEOUT + 100 * MSEC - 1);
	assert_int_equal(asks, 0);
	assert_null(pops_to_ask(p));
	loop_run_for(loop, 1);
	assert_int_equal(asks, 1);
	assert_ptr_equal(question(pops_to_ask(p)), pop);
	assert_false(pops_is_unsure(p));
	assert_null(pops_to_ask(p));
	/* The answer of mine is lost: it is asked once more. */
	pops_mine_lost(pop);
	assert_false(pops_is_unsure(p));
	assert_ptr_equal(question(pops_to_ask(p)), pop);
	TOLD(pop, LAST);
	assert_true(pops_is_idle(p));
	assert_false(pops_is_noted(p));
}

/* Each page is asked for in turn; after a lost answer mine begins with the first page. */
FIXTURE_TEST(test_pages)
{
	struct pop_call *pop = lose_and_ask();

	TOLD(pop, .from = "5001.5", .offset = 9, .found = true);
	assert_true(pops_is_unsure(p));
	assert_ptr_equal(question(pops_to_ask(p)), pop);
	assert_ends(text, " 5001.5 9 77 1000");
	pops_mine_lost(pop);
	assert_ptr_equal(question(pops_to_ask(p)), pop);
	assert_ends(text, " 4999.000000 0 77 1000");
	TOLD(pop, .from = "5001.5", .offset = 9);
	pops_up(p);
	assert_ptr_equal(question(pops_to_ask(p)), pop);
	assert_ends(text, " 4999.000000 0 77 1000");
	/* An earlier page had the messages. */
	TOLD(pop, LAST);
	assert_true(pops_is_idle(p));
}

/* The pop took messages that mine does not find: Redis' clock was set back. */
FIXTURE_TEST(test_clock_back)
{
	struct pop_call *pop = lose_and_ask();

	TOLD(pop, LAST, .took = true);
	assert_true(pops_is_unsure(p));
	assert_ptr_equal(question(pops_to_ask(p)), pop);
	assert_ends(text, " 0.000000 0 77 1000");
	TOLD(pop, LAST, .took = true);
	assert_true(pops_is_idle(p));
	assert_true(pops_is_noted(p));
}

/* Redis refuses mine: it is asked again after a backoff. */
FIXTURE_TEST(test_mine_refused)
{
	struct pop_call *pop = lose_and_ask();
	unsigned i;

	for (i = 1; i <= 10; i++) {
		pops_mine_refused(p, pop, BACKOFF);
		assert_true(pops_is_unsure(p));
		loop_run_for(loop, 50 * MSEC - 1);
		assert_int_equal(asks, i - 1);
		loop_run_for(loop, BACKOFF);
		assert_int_equal(asks, i);
		assert_ptr_equal(question(pops_to_ask(p)), pop);
	}
	pops_mine_refused(p, pop, BACKOFF);
	loop_run_for(loop, BACKOFF / 2 - 1);
	assert_int_equal(asks, 10);
	pops_up(p);
	question(pops_to_ask(p));
	pops_mine_refused(p, pop, BACKOFF);
	loop_run_for(loop, 100 * MSEC);
	assert_int_equal(asks, 11);
}

/* After an error that may follow a write, mine is asked; after an earlier one it is not. */
FIXTURE_TEST(test_errors)
{
	static const struct { enum reply_error e; bool early; } table[] = {
		{ REPLY_NOSCRIPT, true }, { REPLY_TRANSIENT, true }, { REPLY_ELSEWHERE, true },
		{ REPLY_REFUSED, true }, { REPLY_DENIED, false }, { REPLY_WRONGTYPE, false },
		{ REPLY_OTHER, false }, { REPLY_OK, false },
	};
	struct pop_call *pop;
	size_t i;

	for (i = 0; i < ARRAY_LEN(table); i++) {
		begin();
		pops_refused(p, table[i].e, "why");
		assert_string_equal(pops_error(p), "why");
		assert_int_equal(pops_is_unsure(p), !table[i].early);
		if (table[i].early) {
			assert_true(pops_is_idle(p));
			begin();
			pops_refused(p, table[i].e, NULL);
			assert_string_equal(pops_error(p), "why");
			begin();
			pops_replied(p, false);
		} else {
			pop = question(pops_to_ask(p));
			TOLD(pop, LAST);
		}
		assert_null(pops_error(p));
		assert_true(pops_is_idle(p));
	}
}

/* -- leases ----------------------------------------------------------------- */

/* Returns the words about pops that are late. */
static const char *
late_words(void)
{
	struct words w = { 0 };

	pops_add_late(p, 10 * SEC, &w);
	return joined(&w);
}

FIXTURE_TEST(test_late)
{
	struct pop_call *pop;

	assert_false(pops_is_late(p, 10 * SEC));
	begin();
	assert_false(pops_is_late(p, 10 * SEC));
	assert_string_equal(late_words(), "0");
	loop_run_for(loop, 5 * SEC);
	assert_true(pops_is_late(p, 10 * SEC));
	assert_memory_equal(late_words(), "1 host-1-", 9);
	assert_ends(text, " 4999.000000");
	pops_ended(p, true);
	assert_true(pops_is_late(p, HOUR));
	assert_memory_equal(late_words(), "1 host-1-", 9);
	pop = question(pops_to_ask(p));
	TOLD(pop, LAST);
	begin();
	loop_run_for(loop, 5 * SEC);
	assert_memory_equal(late_words(), "2 host-1-", 9);
	pops_replied(p, true);
	assert_memory_equal(late_words(), "1 host-1-", 9);
}

/* Two pops of unknown outcome: mine is asked about each at its own time. */
FIXTURE_TEST(test_several)
{
	struct pop_call *first = lose_and_ask(), *second;

	TOLD(first, LAST);
	loop_run_for(loop, SEC);
	second = lose_and_ask();
	assert_ptr_not_equal(first, second);
	TOLD(second, LAST);
	assert_null(pops_to_ask(p));
	loop_run_for(loop, TIMEOUT - SEC + 100 * MSEC);
	assert_ptr_equal(question(pops_to_ask(p)), first);
	TOLD(first, LAST, .took = true, .found = true);
	assert_null(pops_to_ask(p));
	assert_false(pops_is_idle(p));
	loop_run_for(loop, SEC);
	assert_int_equal(asks, 2);
	assert_ptr_equal(question(pops_to_ask(p)), second);
	TOLD(second, LAST);
	assert_true(pops_is_idle(p));
}

/*
 * Pops with room for a message that has failed before take turns between retries and new
 * messages; pops that only fill a batch leave the turn as it is.
 */
FIXTURE_TEST(test_batch_turns)
{
	int i;

	for (i = 0; i < 3; i++) {
		assert_string_equal(batch_words(TURN_SHARE, 20), "retry 20 10");
		assert_string_equal(batch_words(TURN_SHARE, 9), "retry 9 10");
		assert_string_equal(batch_words(TURN_SHARE, 10), "new 10 10");
		assert_string_equal(batch_words(TURN_SHARE, 1), "new 1 10");
		assert_string_equal(batch_words(TURN_SHARE, 2), "new 2 10");
	}
	assert_string_equal(batch_words(TURN_FEWEST, 1), "fewest");
}
