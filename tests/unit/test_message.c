/*
 * Messages, and the ids in payloads.  Each id in the table is the one that ident() of
 * pop.lua gives for the payload.  That was checked once on a server, together with 80,000
 * random payloads.
 */
#include "unit.h"

#include "policy/message.h"

#define K10	"kkkkkkkkkk"
#define K100	K10 K10 K10 K10 K10 K10 K10 K10 K10 K10
#define D10	"1234567890"
#define D100	D10 D10 D10 D10 D10 D10 D10 D10 D10 D10

static const struct {
	const char	*payload;
	const char	*id;		/* NULL: none */
} cases[] = {
	{ "{\"id\":7}", "7" },
	{ "{\"id\":\"7\"}", "7" },
	{ " \t\r\n{ \"id\" : 7 } \n", "7" },
	{ "{\"id\":-7}", "-7" }, { "{\"id\":0}", "0" }, { "{\"id\":-0}", "-0" },
	{ "{\"id\":9007199254740993}", "9007199254740993" },
	{ "{\"id\":123456789012345678901234567890}",
	    "123456789012345678901234567890" },
	{ "{\"id\":" D100 D100 "}", D100 D100 },
	{ "{\"id\":" D100 D100 "1}", NULL },
	{ "{\"id\":\"" K100 K100 "\"}", K100 K100 },
	{ "{\"id\":\"" K100 K100 "k\"}", NULL },
	{ "{\"id\":\"" K100 K100 K100 "\",\"id\":1}", "1" },

	/* Not integers. */
	{ "{\"id\":1.0}", NULL }, { "{\"id\":1e3}", NULL }, { "{\"id\":1E3}", NULL },
	{ "{\"id\":01}", NULL }, { "{\"id\":-01}", NULL }, { "{\"id\":+1}", NULL },
	{ "{\"id\":0x10}", NULL }, { "{\"id\":nan}", NULL },
	{ "{\"id\":Infinity}", NULL }, { "{\"id\":-inf}", NULL },
	{ "{\"id\":.5}", NULL }, { "{\"id\":1.}", NULL }, { "{\"id\":-}", NULL },
	{ "{\"id\":true}", NULL }, { "{\"id\":null}", NULL },
	{ "{\"id\":[7]}", NULL }, { "{\"id\":{\"id\":7}}", NULL },
	{ "{\"id\":{}}", NULL },

	/* Text is decoded. */
	{ "{\"id\":\"a\\u0041\\/\\\"\\\\\"}", "aA/\"\\" },
	{ "{\"id\":\"\\u00e9\\u20ac\\ud83d\\ude00\"}", "é€😀" },
	{ "{\"id\":\"\xff\xfe\"}", "\xff\xfe" },
	{ "{\"id\":\"\"}", NULL }, { "{\"id\":\" \"}", " " },
	{ "{\"id\":\"a\\nb\"}", NULL }, { "{\"id\":\"a\\u0000b\"}", NULL },
	{ "{\"id\":\"\\u0000\"}", NULL }, { "{\"id\":\"\\u001f\"}", NULL },
	{ "{\"id\":\"\\u007f\"}", NULL }, { "{\"id\":\"\x7f\"}", NULL },
	{ "{\"id\":\"\\u0080\"}", "\xc2\x80" },
	{ "{\"id\":\"\x01\"}", NULL }, { "{\"id\":\"a\tb\"}", NULL },
	{ "{\"id\":\"\\ud800\"}", NULL }, { "{\"id\":\"\\udc00\"}", NULL },
	{ "{\"id\":\"\\ud800x\"}", NULL },
	{ "{\"id\":\"\\ud800\\u0041\"}", NULL },
	{ "{\"a\":0,\"id\":7,\"x\":\"\\ud800\"}", NULL },
	{ "{\"id\":\"\\x\"}", NULL }, { "{\"id\":\"\\u12\"}", NULL },
	{ "{\"id\":\"\\", NULL }, { "{\"id\":\"\\u", NULL }, { "{\"id\":\"", NULL },

	/* Ids of inner objects do not count; of several in the outermost one, the last does. */
	{ "{\"x\":{\"id\":1},\"id\":2}", "2" }, { "{\"x\":{\"id\":1}}", NULL },
	{ "{\"id\":2,\"x\":{\"id\":1}}", "2" }, { "{\"x\":[{\"id\":1}]}", NULL },
	{ "{\"a\":0,\"id\":1,\"id\":2}", "2" }, { "{\"a\":0,\"id\":\"a\",\"id\":\"b\"}", "b" },
	{ "{\"a\":0,\"id\":1,\"id\":\"b\"}", "b" }, { "{\"a\":0,\"id\":\"a\",\"id\":2}", "2" },
	{ "{\"a\":0,\"id\":1,\"id\":null}", NULL }, { "{\"a\":0,\"id\":1,\"id\":1.5}", NULL },
	{ "{\"a\":0,\"id\":1,\"id\":{}}", NULL }, { "{\"a\":0,\"id\":1,\"id\":[1]}", NULL },
	{ "{\"id\":null,\"id\":1}", "1" },
	{ "{\"i\\u0064\":5}", "5" }, { "{\"\\u0069\\u0064\":\"x\"}", "x" },
	{ "{\"i\\u0064\":5,\"id\":6}", "6" }, { "{\"a\":0,\"id\":6,\"i\\u0064\":5}", "5" },
	{ "{\"id\\u0000\":5}", NULL }, { "{\"ID\":5}", NULL }, { "{\"id \":5}", NULL },
	{ "{\"x\":\"\\\"id\\\":9\",\"id\":3}", "3" },
	{ "{\"x\":\"id\",\"y\":9}", NULL }, { "{\"x\":\"}\",\"id\":3}", "3" },

	/* Not an object, not JSON. */
	{ "", NULL }, { " ", NULL }, { "7", NULL }, { "\"id\"", NULL },
	{ "[{\"id\":7}]", NULL }, { "null", NULL }, { "id", NULL }, { "{", NULL },
	{ "{}", NULL }, { "{\"id\":7", NULL }, { "{\"a\":0,\"id\":7}}", NULL },
	{ "{\"a\":0,\"id\":7}x", NULL }, { "{\"a\":0,\"id\":7,}", NULL }, { "{,\"id\":7}", NULL },
	{ "{\"id\" 7}", NULL }, { "{\"id\":}", NULL }, { "{id:7}", NULL },
	{ "{'id':7}", NULL }, { "{\"id\":7]", NULL }, { "{\"a\":0,\"id\":7,\"x\":[1,]}", NULL },
	{ "{\"id\":7 8}", NULL }, { "{\"id\":tru}", NULL },
	{ "{\"a\":0,\"id\":7,\"x\":truee}", NULL },
	{ "\xef\xbb\xbf{\"id\":7}", NULL }, { "{\"a\":0,\"id\":7}//", NULL },
	{ "\v{\"id\":7}", NULL }, { "{\"id\":\v7}", NULL },

	/* An id that is the first member is taken without reading the rest. */
	{ "{\"id\":1,\"id\":2}", "1" }, { "{\"id\":\"a\",\"id\":{}}", "a" },
	{ "{\"id\":7}x", "7" }, { "{ \n\"id\"\t:\r-7 ,", "-7" }, { "{\"id\":\"a\" }", "a" },
	{ "{\"id\":7", NULL }, { "{\"id\":07}", NULL }, { "{\"id\":1.0}", NULL },
	{ "{\"id\":\"a\nb\"}", NULL }, { "{\"id\":\"\",\"id\":3}", "3" },

	/* Values that cjson accepts though they are not JSON. */
	{ "{\"id\":7,\"x\":\"\x01\n\"}", "7" }, { "{\"id\":7,\"x\":0x1F}", "7" },
	{ "{\"id\":7,\"x\":nan}", "7" }, { "{\"id\":7,\"x\":1e400}", "7" },
	{ "{\"id\":7,\"x\":\"\xff\"}", "7" }, { "{\"a\":0,\"id\":7,\"x\":0x.}", NULL },
};

static char	*members_of(const char *, size_t, const char *const *, char **);

TEST(test_ids)
{
	char id[MESSAGE_ID_MAX + 1];
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		size_t len = strlen(cases[i].payload);
		char *copy = xmemdup(cases[i].payload, len);
		int got;

		strcpy(id, "untouched");
		got = message_id("id", copy, len, id);
		if ((got == 0) != (cases[i].id != NULL))
			print_message("# %s\n", cases[i].payload);
		if (cases[i].id != NULL) {
			assert_int_equal(got, 0);
			assert_string_equal(id, cases[i].id);
		} else {
			assert_int_equal(got, -1);
			assert_string_equal(id, "untouched");
		}
		free(copy);
	}
}

/* {"id":5,"x":"yyy..."} of n bytes */
static char *
padded(size_t n)
{
	char *p = xmalloc(n + 1);

	memset(p, 'y', n);
	memcpy(p, "{\"id\":5,\"x\":\"", 13);
	memcpy(p + n - 2, "\"}", 3);
	return p;
}

TEST(test_size)
{
	static const struct { size_t n; int ret; } sizes[] = {
		{ 100, 0 }, { 65535, 0 }, { 65536, 0 }, { 65537, -1 }, { 1 << 20, -1 },
	};
	char id[MESSAGE_ID_MAX + 1];
	size_t i;

	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		char *p = padded(sizes[i].n);

		assert_int_equal(message_id("id", p, sizes[i].n, id), sizes[i].ret);
		free(p);
	}
}

TEST(test_nul)
{
	static const char a[] = "{\"x\":\"a\0b\",\"id\":7}", b[] = "{\"x\":0,\"id\":7}\0";
	static const char c[] = "{\"id\":7,\"x\":\"a\0b\"}", d[] = "{\"id\":\"a\0b\"}";
	char id[MESSAGE_ID_MAX + 1];

	assert_int_equal(message_id("id", a, sizeof(a) - 1, id), -1);
	assert_int_equal(message_id("id", b, sizeof(b) - 1, id), -1);
	assert_int_equal(message_id("id", b, sizeof(b) - 2, id), 0);
	assert_int_equal(message_id("id", c, sizeof(c) - 1, id), 0);
	assert_int_equal(message_id("id", d, sizeof(d) - 1, id), -1);
}

static int
nested(unsigned depth, bool object)
{
	const char *open = object ? "{\"id\":" : "[";
	char id[MESSAGE_ID_MAX + 1], *p = xmalloc(depth * 7 + 40), *q;
	unsigned i;
	int ret;

	q = stpcpy(p, "{\"a\":0,\"id\":5,\"x\":");
	for (i = 1; i < depth; i++)
		q = stpcpy(q, open);
	*q++ = '1';
	for (i = 1; i < depth; i++)
		*q++ = object ? '}' : ']';
	*q++ = '}';
	ret = message_id("id", p, (size_t)(q - p), id);
	free(p);
	return ret;
}

TEST(test_depth)
{
	assert_int_equal(nested(1000, false), 0);
	assert_int_equal(nested(1001, false), -1);
	assert_int_equal(nested(1000, true), 0);
	assert_int_equal(nested(1001, true), -1);
	assert_int_equal(nested(9000, true), -1);
	assert_int_equal(nested(30000, false), -1);
}

/* Payloads cut and changed at random: an id that is found is a good one. */
TEST(test_random)
{
	static const char bytes[] = "{}[]\":,\\ud8id07-.eExnull\n\x7f\xff ";
	static const char *const names[] = { "A=id", "B=a", NULL };
	char id[MESSAGE_ID_MAX + 1];
	int i;

	for (i = 0; i < 100000; i++) {
		const char *from = cases[unit_below(ARRAY_LEN(cases))].payload;
		size_t len = strlen(from);
		size_t n = len == 0 ? 0 : unit_below(len + 1);
		char *p = xmemdup(from, n);
		uint64_t changes = unit_below(4);

		while (n > 0 && changes-- > 0)
			p[unit_below(n)] = bytes[unit_below(sizeof(bytes))];
		if (message_id("id", p, n, id) == 0)
			assert_true(message_id_ok(id, strlen(id)));
		assert_non_null(strchr(members_of(p, n, names, NULL), '|'));
		free(p);
	}
}

TEST(test_id_ok)
{
	char text[MESSAGE_ID_MAX + 2];
	int c;

	memset(text, 'x', sizeof(text));
	assert_false(message_id_ok(text, 0));
	assert_true(message_id_ok(text, 1));
	assert_true(message_id_ok(text, MESSAGE_ID_MAX));
	assert_false(message_id_ok(text, MESSAGE_ID_MAX + 1));
	for (c = 0; c < 256; c++) {
		text[2] = (char)c;
		assert_int_equal(message_id_ok(text, 5), c >= 0x20 && c != 0x7f);
	}
}

/* A message keeps its configuration alive. */
TEST(test_memory)
{
	struct config *c = config_new();
	struct queue_config q = { 0 };
	struct message *m = message_new(c, &q);

	assert_int_equal(c->refs, 2);
	assert_ptr_equal(m->cfg, &q);
	m->payload = xstrdup("x");
	m->tag = xstrdup("t");
	m->id = xstrdup("t");
	m->token = xstrdup("");
	message_free(m);
	assert_int_equal(c->refs, 1);
	message_free(message_new(c, &q));
	message_free(NULL);
	config_unref(c);
	config_unref(NULL);
}

/* -- members --------------------------------------------------------------------- */

#define P32	"4bf92f3577b34da6a3ce929d0e0e4736"
#define P16	"00f067aa0ba902b7"
#define Z16	"0000000000000000"
#define K1000	K100 K100 K100 K100 K100 K100 K100 K100 K100 K100
#define K4096	K1000 K1000 K1000 K1000 K10 K10 K10 K10 K10 K10 K10 K10 K10 "kkkkkk"

/* What message_read() makes of a payload: the values with "|" between, "-" if not set. */
static char *
members_of(const char *payload, size_t len, const char *const *names, char **trace)
{
	static struct buf b;
	struct queue_config cfg = { .env_message = (char **)(uintptr_t)names };
	struct message m = { .payload = payload != NULL ? xmemdup(payload, len) : NULL,
		.len = len };
	const char *p;

	message_read(&m, &cfg);
	message_read(&m, &cfg);		/* the second time counts */
	buf_clear(&b);
	for (p = m.members.data; p < m.members.data + m.members.len; p += strlen(p) + 1) {
		assert_true(*p == '\0' || *p == '=');
		buf_printf(&b, "%s%s", p > m.members.data ? "|" : "", *p == '=' ? p + 1 : "-");
	}
	buf_done(&m.members);
	free(m.payload);
	if (trace != NULL)
		*trace = m.trace;
	else
		free(m.trace);
	return buf_str(&b);
}

TEST(test_members)
{
	static const char *const names[] = { "A=a", "B=b", "C=id", NULL };
	static const struct {
		const char	*payload;
		const char	*want;
	} rows[] = {
		{ "{\"a\":\"x\",\"b\":\"\",\"id\":\"y\"}", "x||y" },
		{ " { \"b\" : \"2\" , \"a\" : \"1\" } ", "1|2|-" },
		{ "{\"a\":\"it's \\\"q\\\" $x `y`\",\"b\":\"l\\nm\",\"id\":\"a=b\"}",
		    "it's \"q\" $x `y`|l\nm|a=b" },
		{ "{\"a\":\"\\u00e9\\u20ac\\ud83d\\ude00\",\"\\u0062\":\"\\b\\f\\r\\t\\/\"}",
		    "é€😀|\b\f\r\t/|-" },
		/* Numbers keep their text. */
		{ "{\"a\":1e400,\"b\":12345678901234567890,\"id\":-0}",
		    "1e400|12345678901234567890|-0" },
		{ "{\"a\":1.50,\"b\":-0.0E+01,\"id\":7}", "1.50|-0.0E+01|7" },
		{ "{\"a\":nan,\"b\":0x1F,\"id\":-Infinity}", "-|-|-" },
		{ "{\"a\":true,\"b\":false,\"id\":null}", "true|false|-" },
		{ "{\"a\":{\"b\":1},\"b\":[1],\"id\":{}}", "-|-|-" },
		{ "{\"x\":{\"a\":1},\"y\":[{\"b\":2}]}", "-|-|-" },
		/* Of several the last counts, whatever it is. */
		{ "{\"a\":1,\"a\":\"2\",\"b\":1,\"b\":null,\"id\":1,\"id\":2}", "2|-|2" },
		{ "{\"a\":\"x\\u0000y\",\"b\":\"\\u0000\",\"id\":1}", "-|-|1" },
		{ "{\"a\\u0000\":1,\"A\":2,\"a \":3,\"\":4}", "-|-|-" },
		{ "{\"a\":\"\xff\x01\",\"b\":\"\\ud83d\"}", "-|-|-" },
		{ "{\"a\":\"\xff\x01\",\"b\":\"\x7f\"}", "\xff\x01|\x7f|-" },
		{ "{\"a\":\"" K4096 "\",\"b\":\"" K4096 "k\"}", K4096 "|-|-" },
		{ "{\"a\":1,\"" K4096 "b\":2,\"b\":3}", "1|3|-" },
		/* Not an object as a whole. */
		{ "{\"a\":1,\"id\":7", "-|-|-" }, { "{\"a\":1}x", "-|-|-" }, { "", "-|-|-" },
		{ "[{\"a\":1}]", "-|-|-" }, { "a", "-|-|-" }, { "{\"id\":7,\"a\":01x}", "-|-|-" },
		{ "{\"id\":7}", "-|-|7" }, { "{\"id\":7,}", "-|-|-" },
	};
	static const char nul[] = "{\"a\":1}\0";
	char *large = padded(65536);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(members_of(rows[i].payload, strlen(rows[i].payload), names,
		    NULL), rows[i].want);
	assert_string_equal(members_of(nul, sizeof(nul) - 1, names, NULL), "-|-|-");
	assert_string_equal(members_of(NULL, 7, names, NULL), "-|-|-");
	assert_string_equal(members_of(large, 65536, names, NULL), "-|-|5");
	free(large);
	large = padded(65537);
	assert_string_equal(members_of(large, 65537, names, NULL), "-|-|-");
	free(large);
}

TEST(test_member_names)
{
	static const char *const odd[] = { "A==", "B=a b", "C=a", "D=a", "E=\xc3\xa9", NULL };
	static const char p[] = "{\"=\":1,\"a b\":2,\"a\":3,\"\\u00e9\":4}";
	const char *most[CONFIG_MEMBERS_MAX + 1] = { NULL };
	struct queue_config none = { .mode = MODE_PERSISTENT,
		.env_message = (char **)(uintptr_t)odd };

	assert_string_equal(members_of(p, sizeof(p) - 1, odd, NULL), "1|2|3|3|4");
	for (size_t i = 0; i < CONFIG_MEMBERS_MAX; i++)
		most[i] = "A=a";
	assert_int_equal(strlen(members_of(p, sizeof(p) - 1, most, NULL)),
	    2 * CONFIG_MEMBERS_MAX - 1);
	assert_int_equal(config_members(&none), 0);
	none.mode = MODE_EXEC;
	assert_int_equal(config_members(&none), 5);
	none.batch = 2;
	assert_int_equal(config_members(&none), 0);
}

TEST(test_trace)
{
	static const char *const names[] = { "A=a", "T=traceparent", NULL };
	static const struct {
		const char	*parent;
		bool		 valid;
	} rows[] = {
		{ "00-" P32 "-" P16 "-01", true }, { "00-" P32 "-" P16 "-ff", true },
		{ "01-" P32 "-" P16 "-01", true }, { "01-" P32 "-" P16 "-01-more", true },
		{ "00-" P32 "-" P16 "-01-more", false }, { "01-" P32 "-" P16 "-01x", false },
		{ "ff-" P32 "-" P16 "-01", false }, { "00-" Z16 Z16 "-" P16 "-01", false },
		{ "00-" P32 "-" Z16 "-01", false }, { "00-" Z16 P16 "-" P16 "-01", true },
		{ "00-4BF92F3577B34DA6A3CE929D0E0E4736-" P16 "-01", false },
		{ "00-" P32 "-" P16 "-0", false }, { "00-" P32 "-" P16 "-", false },
		{ "00-" P32 "-" P16, false }, { "", false }, { "00", false },
		{ "00_" P32 "-" P16 "-01", false }, { "0g-" P32 "-" P16 "-01", false },
		{ "00-" P32 "-" P16 "-0\x01", false }, { " 00-" P32 "-" P16 "-01", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *p = xasprintf("{\"traceparent\":\"%s\"}", rows[i].parent), *trace, *want;

		want = xasprintf("-|%s", rows[i].parent);
		assert_string_equal(members_of(p, strlen(p), names, &trace), want);
		assert_int_equal(trace != NULL, rows[i].valid);
		if (trace != NULL)
			assert_memory_equal(trace, rows[i].parent + 3, 33 - 1);
		free(trace);
		free(want);
		free(p);
	}
}
