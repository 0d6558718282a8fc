/* Statements of handlers, line by line. */
#include "unit.h"

#include "policy/statement.h"

static int
parse(const char *line, enum statement_number number, struct statement *s)
{
	*s = (struct statement){ .number = 4711, .delay = 4711 };
	return statement_parse(line, strlen(line), number, s);
}

/* NULL: the statement has none. */
static void
assert_bytes(const char *p, size_t n, const char *expected)
{
	if (expected == NULL) {
		assert_null(p);
		assert_int_equal(n, 0);
		return;
	}
	assert_non_null(p);
	assert_int_equal(n, strlen(expected));
	assert_memory_equal(p, expected, n);
}

TEST(test_statements)
{
	static const struct {
		const char		*line;
		enum statement_word	 word;
		usec_t			 delay;
		const char		*text, *queue;
	} cases[] = {
		{ "ok", STATEMENT_OK, -1, NULL, NULL },
		{ "ok \t", STATEMENT_OK, -1, NULL, NULL },
		{ "retry", STATEMENT_RETRY, -1, NULL, NULL },
		{ "retry 5m carrier is down", STATEMENT_RETRY, 5 * MINUTE,
		    "carrier is down", NULL },
		{ "retry 300ms", STATEMENT_RETRY, 300 * MSEC, NULL, NULL },
		{ "retry 1.5h  x ", STATEMENT_RETRY, 90 * MINUTE, "x", NULL },
		{ "retry 0", STATEMENT_RETRY, 0, NULL, NULL },
		{ "retry 30", STATEMENT_RETRY, 30 * SEC, NULL, NULL },
		{ "retry 0.25 x", STATEMENT_RETRY, 250 * MSEC, "x", NULL },
		{ "retry 5 6 7", STATEMENT_RETRY, 5 * SEC, "6 7", NULL },
		{ "retry 400d", STATEMENT_RETRY, STATEMENT_DELAY_MAX, NULL, NULL },
		{ "retry 99999999999999999999999", STATEMENT_RETRY, STATEMENT_DELAY_MAX,
		    NULL, NULL },
		{ "retry - 404 from carrier", STATEMENT_RETRY, -1, "404 from carrier", NULL },
		{ "retry -", STATEMENT_RETRY, -1, NULL, NULL },
		{ "retry -- x", STATEMENT_RETRY, -1, "-- x", NULL },
		{ "retry - -", STATEMENT_RETRY, -1, "-", NULL },
		{ "retry\tsoon \xff", STATEMENT_RETRY, -1, "soon \xff", NULL },
		{ "defer 10m shop is closed", STATEMENT_DEFER, 10 * MINUTE, "shop is closed",
		    NULL },
		{ "defer 1", STATEMENT_DEFER, SEC, NULL, NULL },
		{ "defer 1000ms", STATEMENT_DEFER, SEC, NULL, NULL },
		{ "defer 0", STATEMENT_DEFER, SEC, NULL, NULL },
		{ "defer 0s x", STATEMENT_DEFER, SEC, "x", NULL },
		{ "defer 0.9", STATEMENT_DEFER, SEC, NULL, NULL },
		{ "defer 999ms", STATEMENT_DEFER, SEC, NULL, NULL },
		{ "hold 0 x", STATEMENT_HOLD, SEC, "x", NULL },
		{ "hold 300ms", STATEMENT_HOLD, SEC, NULL, NULL },
		{ "hold group 0", STATEMENT_HOLD, SEC, NULL, NULL },
		{ "ok\r", STATEMENT_OK, -1, NULL, NULL },
		{ "defer 1h\r", STATEMENT_DEFER, HOUR, NULL, NULL },
		{ "dead why\r", STATEMENT_DEAD, -1, "why", NULL },
		{ "save x\r", STATEMENT_SAVE, -1, "x", NULL },
		{ "save \r\r", STATEMENT_SAVE, -1, "\r", NULL },
		{ "push q x\r", STATEMENT_PUSH, -1, "x\r", "q" },
		{ "hold 30s 429 from carrier", STATEMENT_HOLD, 30 * SEC, "429 from carrier",
		    NULL },
		{ "hold 1", STATEMENT_HOLD, SEC, NULL, NULL },
		{ "hold 1 group", STATEMENT_HOLD, SEC, "group", NULL },
		{ "hold group 30s 429 from carrier", STATEMENT_HOLD, 30 * SEC, "429 from carrier",
		    NULL },
		{ "hold \t group\t1", STATEMENT_HOLD, SEC, NULL, NULL },
		{ "hold group 1h group", STATEMENT_HOLD, HOUR, "group", NULL },
		{ "defer 1 group", STATEMENT_DEFER, SEC, "group", NULL },
		{ "retry group", STATEMENT_RETRY, -1, "group", NULL },
		{ "save", STATEMENT_SAVE, -1, "", NULL },
		{ "save ", STATEMENT_SAVE, -1, "", NULL },
		{ "save step 2", STATEMENT_SAVE, -1, "step 2", NULL },
		{ "save\t  5m \xff ", STATEMENT_SAVE, -1, "  5m \xff ", NULL },
		{ "dead", STATEMENT_DEAD, -1, NULL, NULL },
		{ "dead 5m no delay here", STATEMENT_DEAD, -1, "5m no delay here", NULL },
		{ "progress", STATEMENT_PROGRESS, -1, NULL, NULL },
		{ "progress 40/100 pages", STATEMENT_PROGRESS, -1, "40/100 pages", NULL },
		{ "push items {\"id\":7}", STATEMENT_PUSH, -1, "{\"id\":7}", "items" },
		{ "push \t items  two blanks ", STATEMENT_PUSH, -1, " two blanks ", "items" },
		{ "push items  ", STATEMENT_PUSH, -1, " ", "items" },
	};
	struct statement s;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(parse(cases[i].line, STATEMENT_BARE, &s), 0);
		assert_int_equal(s.number, 0);
		assert_int_equal(s.word, cases[i].word);
		assert_int_equal(s.delay, cases[i].delay);
		assert_int_equal(s.group, s.word == STATEMENT_HOLD &&
		    cases[i].line[5 + strspn(cases[i].line + 5, " \t")] == 'g');
		assert_bytes(s.text, s.len, cases[i].text);
		assert_bytes(s.queue, s.queue_len, cases[i].queue);
	}
}

TEST(test_no_statements)
{
	static const char *const bad[] = {
		"", " ", " ok", "okay", "o", "OK", "ok x", "ok\r\r", "ok \rx", "retr", "retry: x",
		"retry 5x", "retry 404: not found", "retry 5m,", "retry 1e3", "retry 5.",
		"retry 0.0001ms", "retry 99999999999999999999d",
		"retry 1.00000000000000000000000000000000001s",
		"defer", "defer ", "defer -", "defer - x", "defer soon",
		"deadly", "defer group 1",
		"hold", "hold -", "hold - x", "hold soon",
		"hold group", "hold group - x",
		"hold groups 5", "hold group group 5",
		"push", "push items", "push items ", "push  items", "progressing",
		"#", "error: no such file",
	};
	struct statement s;
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(parse(bad[i], STATEMENT_BARE, &s), -1);
		assert_int_equal(s.number, 0);
		assert_int_equal(s.delay, 4711);
	}
}

TEST(test_numbers)
{
	static const struct {
		const char	*line;
		int		 bare, numbered, either;
		uint64_t	 number;	/* set even if the line is no statement */
	} cases[] = {
		{ "ok", 0, -1, 0, 0 },
		{ "1 ok", -1, 0, 0, 1 },
		{ "7\tdefer 1s x", -1, 0, 0, 7 },
		{ "9999999999999999999 dead", -1, 0, 0, 9999999999999999999u },
		{ "7 retyr", -1, -1, -1, 7 },
		{ "7 retry 5x", -1, -1, -1, 7 },
		{ "7", -1, -1, -1, 7 },
		{ "0 ok", -1, -1, -1, 0 },
		{ "01 ok", -1, -1, -1, 0 },
		{ "1x ok", -1, -1, -1, 0 },
		{ "-1 ok", -1, -1, -1, 0 },
		{ "99999999999999999999 ok", -1, -1, -1, 0 },
		{ "", -1, -1, -1, 0 },
	};
	struct statement s;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(parse(cases[i].line, STATEMENT_BARE, &s), cases[i].bare);
		assert_int_equal(s.number, 0);
		assert_int_equal(parse(cases[i].line, STATEMENT_NUMBERED, &s),
		    cases[i].numbered);
		assert_int_equal(s.number, cases[i].number);
		assert_int_equal(parse(cases[i].line, STATEMENT_EITHER, &s), cases[i].either);
		assert_int_equal(s.number, cases[i].number);
	}
}

/* A NUL is allowed only in the message of "push". */
TEST(test_nul)
{
	static const struct {
		const char	*line;
		size_t		 len;
		int		 ret;
	} cases[] = {
		{ "ok\0", 3, -1 }, { "retry 5\0 x", 10, -1 }, { "dead a\0b", 8, -1 },
		{ "progress \0", 10, -1 }, { "push it\0ems x", 13, -1 },
		{ "push items a\0b", 14, 0 },
	};
	struct statement s;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(statement_parse(cases[i].line, cases[i].len,
		    STATEMENT_BARE, &s), cases[i].ret);
	assert_int_equal(s.len, 3);
	assert_memory_equal(s.text, "a\0b", 3);
}
