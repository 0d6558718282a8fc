/*
 * The text of log records: order, quoting, and values that try to forge fields.
 */
#include "unit.h"

#include <jansson.h>

#include "base/buf.h"
#include "base/log.h"

static int
start_clean(void **state UNUSED)
{
	clock_fake(SEC, 1795232172345678);
	return 0;
}

#define FIXTURE_TEST(name)	TEST_WITH(name, start_clean, NULL)

static char *
text(enum log_format format, bool ts, const struct log_ctx *ctx,
    const struct log_field *fields)
{
	struct buf b = BUF_INIT;

	log_text(&b, format, ts, LOG_LV_INFO, "acked", ctx, fields);
	return buf_steal(&b);
}

FIXTURE_TEST(test_order)
{
	struct log_ctx ctx = { "orders", "7", 1, 812, "4bf9" };
	struct log_field fields[] = {
		LF_INT("status", 0), LF_USEC("duration", 12345),
		LF_STR("none", NULL), LF_STR("empty", ""),
		LF_MEM("mem", "a\0b", 3), LF_USEC("minus", -1500 * MSEC),
		LF_INT("big", INT64_MIN), LF_END
	};
	char *s = text(LOG_LOGFMT, true, &ctx, fields);

	assert_string_equal(s, "ts=2026-11-21T03:36:12.345Z level=info "
	    "event=acked queue=orders id=7 attempt=1 pid=812 trace=4bf9 status=0 "
	    "duration=0.012345 empty=\"\" mem=\"a\\x00b\" minus=-1.500 "
	    "big=-9223372036854775808");
	free(s);
	s = text(LOG_JSON, false, &ctx, fields);
	assert_string_equal(s, "{\"level\":\"info\",\"event\":\"acked\","
	    "\"queue\":\"orders\",\"id\":\"7\",\"attempt\":1,\"pid\":812,"
	    "\"trace\":\"4bf9\",\"status\":0,\"duration\":0.012345,\"empty\":\"\","
	    "\"mem\":\"a\\u0000b\",\"minus\":-1.500,"
	    "\"big\":-9223372036854775808}");
	free(s);
	s = text(LOG_LOGFMT, false, NULL, NULL);
	assert_string_equal(s, "level=info event=acked");
	free(s);
}

FIXTURE_TEST(test_quotes)
{
	static const struct {
		const char	*value, *logfmt, *json;
	} cases[] = {
		{ "plain", "plain", "\"plain\"" },
		{ "a b", "\"a b\"", "\"a b\"" },
		{ "a=b", "\"a=b\"", "\"a=b\"" },
		{ "a\"b", "\"a\\\"b\"", "\"a\\\"b\"" },
		{ "a\\b", "\"a\\\\b\"", "\"a\\\\b\"" },
		{ "/a/b:c,d", "/a/b:c,d", "\"/a/b:c,d\"" },
		{ "1\n2\t3\r", "\"1\\n2\\t3\\r\"", "\"1\\n2\\t3\\r\"" },
		{ "\033[31m", "\"\\x1b[31m\"", "\"\\u001b[31m\"" },
		{ "\x7f", "\"\\x7f\"", "\"\\u007f\"" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f",
		    "\"gr\xc3\xbc\xc3\x9f\"" },
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"" },
		/* bad UTF-8: a lone byte, overlong, surrogate, too large, cut short */
		{ "\xff", "\"\\xff\"", "\"\\\\xff\"" },
		{ "\xc0\xaf", "\"\\xc0\\xaf\"", "\"\\\\xc0\\\\xaf\"" },
		{ "\xe0\x80\xaf", "\"\\xe0\\x80\\xaf\"",
		    "\"\\\\xe0\\\\x80\\\\xaf\"" },
		{ "\xed\xa0\x80", "\"\\xed\\xa0\\x80\"",
		    "\"\\\\xed\\\\xa0\\\\x80\"" },
		{ "\xf4\x90\x80\x80", "\"\\xf4\\x90\\x80\\x80\"",
		    "\"\\\\xf4\\\\x90\\\\x80\\\\x80\"" },
		{ "\xe2\x82", "\"\\xe2\\x82\"", "\"\\\\xe2\\\\x82\"" },
		/* C1 control, line separator, right-to-left override */
		{ "\xc2\x9b", "\"\\xc2\\x9b\"", "\"\\u009b\"" },
		{ "\xe2\x80\xa8", "\"\\xe2\\x80\\xa8\"", "\"\\u2028\"" },
		{ "\xe2\x80\xae", "\"\\xe2\\x80\\xae\"", "\"\\u202e\"" },
		/* Arabic letter mark, zero width joiner, tag A, noncharacter */
		{ "\xd8\x9c", "\"\\xd8\\x9c\"", "\"\\u061c\"" },
		{ "\xe2\x80\x8d", "\"\\xe2\\x80\\x8d\"", "\"\\u200d\"" },
		{ "\xf3\xa0\x81\x81", "\"\\xf3\\xa0\\x81\\x81\"", "\"\\udb40\\udc41\"" },
		{ "\xf4\x8f\xbf\xbf", "\"\\xf4\\x8f\\xbf\\xbf\"", "\"\\udbff\\udfff\"" },
	};
	char *s, *want;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct log_field f[] = { LF_STR("v", cases[i].value), LF_END };

		s = text(LOG_LOGFMT, false, NULL, f);
		want = xasprintf("level=info event=acked v=%s", cases[i].logfmt);
		assert_string_equal(s, want);
		free(s);
		free(want);
		s = text(LOG_JSON, false, NULL, f);
		want = xasprintf("{\"level\":\"info\",\"event\":\"acked\",\"v\":%s}",
		    cases[i].json);
		assert_string_equal(s, want);
		free(s);
		free(want);
	}
}

/* No value can forge a field or a second record. */
FIXTURE_TEST(test_forged)
{
	struct log_ctx ctx = { "q\nlevel=error", "7 event=dead", 0, 0, NULL };
	struct log_field f[] = {
		LF_STR("output", "x\nts=2026-11-21T03:36:12.345Z level=error"),
		LF_STR("o", "\" event=dead \""), LF_END
	};
	char *s = text(LOG_LOGFMT, false, &ctx, f);

	assert_string_equal(s, "level=info event=acked "
	    "queue=\"q\\nlevel=error\" id=\"7 event=dead\" "
	    "output=\"x\\nts=2026-11-21T03:36:12.345Z level=error\" "
	    "o=\"\\\" event=dead \\\"\"");
	free(s);
}

/* Random bytes as a value always make one line of valid JSON, without control characters. */
FIXTURE_TEST(test_random_json)
{
	char value[64], *s, *p;
	json_error_t error;
	size_t n, i;
	json_t *j;
	int round;

	for (round = 0; round < 20000; round++) {
		n = unit_below(sizeof(value));
		for (i = 0; i < n; i++)
			value[i] = (char)(unit_below(3) == 0 ?
			    0x20 + unit_below(0x60) : unit_random());
		struct log_field f[] = { LF_MEM("v", value, n),
		    LF_USEC("d", (int64_t)unit_random()), LF_END };
		s = text(LOG_JSON, true, NULL, f);
		for (p = s; *p != '\0'; p++)
			assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
		j = json_loads(s, JSON_ALLOW_NUL, &error);
		assert_non_null(j);
		assert_true(json_is_string(json_object_get(j, "v")));
		json_decref(j);
		free(s);
		s = text(LOG_LOGFMT, true, NULL, f);
		for (p = s; *p != '\0'; p++)
			assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
		free(s);
	}
}
