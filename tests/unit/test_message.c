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
