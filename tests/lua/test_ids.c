/*
 * The id in a payload: pop.lua and message_id() must find the same, in a table of odd
 * payloads and in random JSON, some of it broken.
 */
#include "script_test.h"

#include "base/buf.h"
#include "policy/message.h"

static unsigned		calls;

/* Copies the id that the pop finds; "" if it finds none. */
static void
lua_id(const char *payload, size_t len, char *id)
{
	struct popped p;
	char call[24], made[32];

	rig_do(&rig, "LPUSH %s %b", rig_key(&rig, KEY_QUEUE), payload, len);
	snprintf(call, sizeof(call), "i.%u", ++calls);
	assert_int_equal(rig_pop(&rig, 1, 1 << 20, 1 << 24, call, 0, &p, NULL), 1);
	assert_int_equal(p.idlen, p.taglen);
	assert_int_equal(p.len, len);
	assert_memory_equal(p.payload, payload, len);
	assert_in_range(p.taglen, 1, MESSAGE_ID_MAX);
	memcpy(id, p.tag, p.taglen + 1);
	snprintf(made, sizeof(made), "~%s", p.token);
	if (strcmp(id, made) == 0)
		id[0] = '\0';
	assert_string_equal(rig_settle(&rig, "ack", &p, NULL), "ok");
	rig_popped_done(&p, 1);
}

static void
check_as(const char *member, const char *payload, size_t len, const char *want)
{
	char lua[MESSAGE_ID_MAX + 1], c[MESSAGE_ID_MAX + 1];

	rig.id = member;
	lua_id(payload, len, lua);
	rig.id = NULL;
	if (message_id(member, payload, len, c) == -1)
		c[0] = '\0';
	if (want != NULL && strcmp(lua, want) != 0)
		fail_msg("%.*s: pop.lua says '%s', not '%s'", (int)len, payload, lua, want);
	if (strcmp(lua, c) != 0)
		fail_msg("%.*s: pop.lua says '%s', message_id() '%s'", (int)len, payload, lua, c);
}

/* Also with another member in place of "id"; its point must not stand for any character. */
static void
check(const char *payload, size_t len, const char *want)
{
	static const char *const other[][2] = {
		{ "\"id", "\"J.d" }, { "\"\\u0069", "\"\\u004A." }, { "\"i\\u0064", "\"J.\\u0064" },
	};
	struct buf b = BUF_INIT;
	size_t i, k, n;

	check_as("id", payload, len, want);
	for (i = 0; i < len; i++) {
		for (k = 0; k < ARRAY_LEN(other); k++) {
			n = strlen(other[k][0]);
			if (len - i >= n && memcmp(payload + i, other[k][0], n) == 0)
				break;
		}
		if (k == ARRAY_LEN(other)) {
			buf_addc(&b, payload[i]);
			continue;
		}
		buf_puts(&b, other[k][1]);
		i += n - 1;
	}
	if (b.len <= 65536)
		check_as("J.d", b.len > 0 ? b.data : "", b.len, want);
	check_as("Jid", payload, len, NULL);
	buf_done(&b);
}

TEST(test_table)
{
#define S(payload, id) { payload, sizeof(payload) - 1, id }
	static const struct {
		const char *payload; size_t len; const char *id;
	} table[] = {
		S("", ""), S("x", ""), S("{}", ""), S("{", ""), S("[]", ""), S("null", ""),
		S("\"id\"", ""), S("[\"id\",7]", ""), S("[{\"id\":7}]", ""), S("{\"id\":7}", "7"),
		S("{\"id\":\"7\"}", "7"), S(" \t\r\n{\"id\" : 7 } \n", "7"), S("\f{\"id\":7}", ""),
		S("\xef\xbb\xbf{\"id\":7}", ""), S("{\"id\":0}", "0"), S("{\"id\":-0}", "-0"),
		S("{\"id\":-5}", "-5"), S("{\"id\":9007199254740993}", "9007199254740993"),
		S("{\"id\":123456789012345678901234567890}", "123456789012345678901234567890"),
		S("{\"id\":1.0}", ""), S("{\"id\":1e3}", ""), S("{\"id\":1E400}", ""),
		S("{\"id\":-1.5}", ""), S("{\"id\":007}", ""), S("{\"id\":+7}", ""),
		S("{\"id\":0x10}", ""), S("{\"id\":.5}", ""), S("{\"id\":nan}", ""),
		S("{\"id\":inf}", ""), S("{\"id\":-inf}", ""), S("{\"id\":1.}", ""),
		S("{\"id\":true}", ""), S("{\"id\":null}", ""), S("{\"id\":[7]}", ""),
		S("{\"id\":{\"id\":7}}", ""), S("{\"id\":\"\"}", ""), S("{\"id\":\"a b\"}", "a b"),
		S("{\"id\":\"a\\nb\"}", ""), S("{\"id\":\"a\nb\"}", ""),
		S("{\"id\":\"a\\u0000b\"}", ""), S("{\"id\":\"a\\u001fb\"}", ""),
		S("{\"id\":\"\x7f\"}", ""), S("{\"id\":\"\\u007f\"}", ""),
		S("{\"id\":\"\\u00e9\"}", "\xc3\xa9"),
		S("{\"id\":\"\\ud83d\\ude00\"}", "\xf0\x9f\x98\x80"),
		S("{\"id\":\"\\ud83d\"}", ""), S("{\"id\":\"\\ude00\"}", ""),
		S("{\"id\":\"\\uD83Dx\"}", ""), S("{\"id\":\"\xff\xfe\"}", "\xff\xfe"),
		S("{\"id\":\"\\/\\\\\\\"\"}", "/\\\""), S("{\"id\":\"\\x\"}", ""),
		S("{\"\\u0069d\":7}", "7"), S("{\"\\u0069\\u0064\":\"a\"}", "a"),
		S("{\"i\\u0064\":1.0}", ""), S("{\"id\":1,\"id\":2}", "1"),
		S("{\"id\":1,\"id\":\"b\"}", "1"), S("{\"id\":\"a\",\"id\":3}", "a"),
		S("{\"id\":1,\"id\":null}", "1"), S("{\"id\":1,\"id\":[]}", "1"),
		S("{\"id\":1,\"\\u0069d\":2}", "1"), S("{\"\\u0069d\":2,\"id\":1}", "1"),
		S("{\"id\":1,\"id\":1.0}", "1"), S("{\"id\":1.0,\"id\":1}", "1"),
		S("{\"x\":{\"id\":1}}", ""), S("{\"x\":{\"id\":1},\"id\":2}", "2"),
		S("{\"id\":2,\"x\":{\"id\":1}}", "2"),
		S("{\"x\":[{\"id\":1},{\"id\":3}],\"id\":2,\"y\":\"\\\"id\\\":9\"}", "2"),
		S("{\"x\":\"\\\\\",\"id\":2,\"y\":\"id\"}", "2"),
		S("{\"x\":\"\\\"id\",\"id\":2}", "2"),
		S("{\"x\":\"{\\\"id\\\":3}\",\"id\":2,\"id\":4}", "4"),
		S("{\"y\":\"id\",\"id\":4}", "4"), S("{\"id\":7}x", "7"), S("{\"id\":7}\0", "7"),
		S("{\"id\":7}\0x", "7"), S("{\"id\":7,\"x\":\"\0\"}", "7"), S("{\"id\":7,}", "7"),
		S("{,\"id\":7}", ""), S("{\"id\":7 \"x\":1}", ""), S("{'id':7}", ""),
		S("{id:7}", ""), S("{\"id\" 7}", ""), S("{\"id\":7", ""), S("{\"id\":\"7}", ""),
		S("{\"ID\":7}", ""), S("{\"id \":7}", ""), S("{\"xid\":7}", ""),
		S("{\"id\":7,\"x\":0x1F}", "7"), S("{\"id\":7,\"x\":nan,\"y\":-Infinity}", "7"),
		S("{\"id\":7,\"x\":01}", "7"), S("{\"id\":7,\"x\":tru}", "7"),
		S("{\"id\":7,\"x\":\"a\tb\"}", "7"), S("{\"id\":7} {\"id\":8}", "7"),
		S("{\"id\":7/*c*/}", ""), S("{\"id\":7\f}", ""), S("{\"id\":\v7}", ""),
		S("{\"id\"\v:7}", ""), S("{\"id\":7\v,\"x\":1}", ""),
		S("{\"id\":\"~x.1.1\"}", "~x.1.1"), S("{\"id\":\"a#b\"}", "a#b"),
		/* Not at the beginning: the last "id" counts, decoded. */
		S("{\"x\":0,\"id\":1,\"id\":2}", "2"), S("{\"x\":0,\"id\":1,\"id\":\"b\"}", "b"),
		S("{\"x\":0,\"id\":\"a\",\"id\":3}", "3"), S("{\"x\":0,\"id\":1,\"id\":null}", ""),
		S("{\"x\":0,\"id\":1,\"\\u0069d\":2}", "2"), S("{\"x\":0,\"id\":1,\"id\":1.0}", ""),
		S("{\"x\":0,\"id\":1,\"id\":007}", ""),
		S("{\"x\":0,\"id\":1,\"id\":\"007\"}", "007"),
		S("{\"x\":0,\"id\":1,\"id\":9007199254740993}", "9007199254740993"),
		S("{\"x\":0,\"id\":7}x", ""), S("{\"x\":0,\"id\":7}\0", ""),
		S("{\"x\":0,\"id\":7,}", ""),
		S("{\"x\":\"\\\"id\":5,\"id\":6,\"y\":{\"id\":7}}", ""),
		S("{\"x\\\"id\":5,\"id\":6,\"y\":{\"id\":7}}", "6"),
		S("{\"\":\"\\\\u0069d\",\"id\":\"\\\\u0069d\"}", "\\u0069d"),
		S("{\"x\":\"\\\"\\u0069d\",\"id\":6}", "6"),
		/* The first "id" is not valid: the one counts that cjson finds. */
		S("{\"id\":1.0,\"id\":2}", "2"), S("{\"id\":\"\",\"id\":2}", "2"),
		S("{\"id\":\"a\\n\",\"id\":\"b\"}", "b"), S("{\"id\":7 8,\"id\":9}", ""),
		/* Blanks at the beginning. */
		S("{ \t\r\n\"id\" \n:\t7\r,", "7"), S("{\"id\":\"a\" \n}", "a"),
		S("{\"id\":\"a\"\f}", ""),
		S(" {\"id\":7,\"id\":8}", "8"), S("{\"id\":7", ""), S("{\"id\":\"7\"", ""),
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(table); i++)
		check(table[i].payload, table[i].len, table[i].id);
}

static void
check_filled(const char *head, size_t fill, char c, const char *tail, bool has_id)
{
	struct buf b = BUF_INIT;
	char id[MESSAGE_ID_MAX + 1];
	size_t i;

	buf_puts(&b, head);
	for (i = 0; i < fill; i++)
		buf_addc(&b, c);
	buf_puts(&b, tail);
	check(b.data, b.len, has_id ? NULL : "");
	assert_int_equal(message_id("id", b.data, b.len, id) == 0, has_id);
	buf_done(&b);
}

TEST(test_bounds)
{
	check_filled("{\"id\":\"", 200, 'a', "\"}", true);
	check_filled("{\"id\":\"", 201, 'a', "\"}", false);
	check_filled("{\"id\":", 200, '1', "}", true);
	check_filled("{\"id\":", 201, '1', "}", false);
	check_filled("{\"id\":1,\"x\":\"", 65536 - 15, 'a', "\"}", true);
	check_filled("{\"id\":1,\"x\":\"", 65537 - 15, 'a', "\"}", false);
	check_filled("{\"x\":0,\"id\":1,\"y\":", 999, '[', "", false);
	check_filled("{\"id\":1", 65536 - 8, ' ', "}", true);
	check_filled("", 65536, '[', "", false);
	check_filled("{\"id\":1,\"x\":[1", 0, ' ', "]}", true);
	check_filled("{\"id\":1,\"x\":", 65536 - 12, '[', "", true);
	check_filled("{", 65536 - 8, ' ', "\"id\":1}", true);
	check_filled("{\"x\":0,\"id\":", 200, '1', "}", true);
	check_filled("{\"x\":0,\"id\":", 201, '1', "}", false);
}

TEST(test_depth)
{
	int depth;

	for (depth = 997; depth <= 1003; depth++) {
		struct buf b = BUF_INIT;
		int i;
		buf_puts(&b, "{\"x\":0,\"id\":1,\"y\":");
		for (i = 0; i < depth; i++)
			buf_addc(&b, '[');
		for (i = 0; i < depth; i++)
			buf_addc(&b, ']');
		buf_puts(&b, "}");
		check(b.data, b.len, NULL);
		buf_done(&b);
	}
}

/* -- random ------------------------------------------------------------------- */

static void
random_string(struct buf *b)
{
	static const char *const parts[] = {
		"id", "i", "d", "\\u0069", "\\u0064", "\\\"", "\\\\", "x", "\\n", "\\u0000",
		"\\ud83d\\ude00", "\\ud83d", "{", "}", "[", ",", ":", "7", " ", "\xc3\xa9", "\xff"
	};
	int n = (int)unit_below(4);

	buf_addc(b, '"');
	if (unit_below(2) == 0)
		buf_puts(b, "id");
	else
		while (n-- > 0)
			buf_puts(b, parts[unit_below(ARRAY_LEN(parts))]);
	buf_addc(b, '"');
}

static void
random_blank(struct buf *b)
{
	static const char blanks[] = " \t\r\n\f";

	if (unit_below(6) == 0)
		buf_addc(b, blanks[unit_below(unit_below(10) == 0 ? 5 : 4)]);
}

static void
random_value(struct buf *b, int depth)
{
	static const char *const words[] = {
		"7", "-7", "0", "-0", "12345678901234567890", "1.0", "1e3", "01", "0x1f", "0x",
		"0x.8p1",
		"nan", "NaN(1)", "inf", "-inf", "+1", "1.", ".5", "-", "true", "false", "null",
		"True", ""
	};
	int n, kind = (int)unit_below(depth > 4 ? 6 : 8);

	random_blank(b);
	if (kind < 2) {
		random_string(b);
	} else if (kind < 6) {
		buf_puts(b, words[unit_below(unit_below(3) == 0 ? ARRAY_LEN(words) : 5)]);
	} else if (kind == 6) {
		buf_addc(b, '[');
		for (n = (int)unit_below(3); n > 0; n--) {
			random_value(b, depth + 1);
			if (n > 1)
				buf_addc(b, ',');
		}
		random_blank(b);
		buf_addc(b, ']');
	} else {
		buf_addc(b, '{');
		for (n = (int)unit_below(4); n > 0; n--) {
			random_blank(b);
			random_string(b);
			random_blank(b);
			buf_addc(b, ':');
			random_value(b, depth + 1);
			random_blank(b);
			if (n > 1)
				buf_addc(b, ',');
		}
		random_blank(b);
		buf_addc(b, '}');
	}
	random_blank(b);
}

TEST(test_random)
{
	static const char junk[] = "{}[]\",:\\id7u \n\t0x.e-+";
	int i, k, members, with_id = 0;
	char id[MESSAGE_ID_MAX + 1];

	for (i = 0; i < unit_rounds(20000); i++) {
		struct buf b = BUF_INIT;
		buf_addc(&b, '{');
		for (members = 1 + (int)unit_below(3), k = 0; k < members; k++) {
			if (k > 0)
				buf_addc(&b, ',');
			random_blank(&b);
			random_string(&b);
			buf_addc(&b, ':');
			random_value(&b, 0);
		}
		buf_addc(&b, '}');
		if (unit_below(4) == 0)
			b.data[unit_below(b.len)] = junk[unit_below(sizeof(junk))];
		check(b.data, b.len, NULL);
		with_id += message_id("id", b.data, b.len, id) == 0;
		buf_done(&b);
	}
	print_message("# %d of %d had an id\n", with_id, i);
	assert_true(with_id > i / 10);
}
