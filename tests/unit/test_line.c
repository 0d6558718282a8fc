/* Bytes to lines: the lines are the same, however the bytes are split. */
#include "unit.h"

#include "loop/line.h"

/* Appends each line to a buffer as "text|"; a line that was cut as "text>". */
static void
collect(const char *p, size_t n, bool cut, void *arg)
{
	struct buf *b = arg;

	buf_add(b, p, n);
	buf_addc(b, cut ? '>' : '|');
}

static void
check(const char *in, size_t max, const char *want)
{
	struct buf out = BUF_INIT;
	struct line l;
	size_t i, n = strlen(in);

	line_init(&l, max, collect, &out);
	line_feed(&l, in, n);
	line_end(&l);
	assert_string_equal(buf_str(&out), want);
	buf_clear(&out);
	for (i = 0; i < n; i++)
		line_feed(&l, in + i, 1);
	line_end(&l);
	line_end(&l);
	assert_string_equal(buf_str(&out), want);
	line_done(&l);
	buf_done(&out);
}

TEST(test_lines)
{
	check("", 4, "");
	check("\n", 4, "|");
	check("\n\n", 4, "||");
	check("a\nbc\n", 4, "a|bc|");
	check("a\nbc", 4, "a|bc|");
	check("abcd\n", 4, "abcd|");
	check("abcd", 4, "abcd|");
	check("abcde\n", 4, "abcd>e|");
	check("abcdefgh\n", 4, "abcd>efgh|");
	check("abcdefghi", 4, "abcd>efgh>i|");
	check("abcdefgh\nxy\n\nz", 4, "abcd>efgh|xy||z|");
	check("abc\n", 1, "a>b>c|");
}

/* A line that arrives whole is passed on without a copy. */
static const char *feed_at;

static void
in_place(const char *p, size_t n UNUSED, bool cut UNUSED, void *arg)
{
	int *count = arg;

	if (++*count == 1)
		assert_ptr_equal(p, feed_at);
	if (*count == 2)
		assert_ptr_equal(p, feed_at + 4);
}

TEST(test_no_copy)
{
	struct line l;
	int count = 0;

	feed_at = "one\ntwo\nthree";
	line_init(&l, 100, in_place, &count);
	line_feed(&l, feed_at, 13);
	assert_int_equal(count, 2);
	assert_int_equal(l.partial.len, 5);
	line_done(&l);
}

TEST(test_random_splits)
{
	char in[2000];
	struct buf a = BUF_INIT, b = BUF_INIT;
	struct line one, many;
	size_t n, i, piece, max, p, start;
	int round;

	for (round = 0; round < 3000; round++) {
		n = unit_below(sizeof(in));
		max = 1 + unit_below(unit_below(2) == 0 ? 8 : 500);
		for (i = 0; i < n; i++)
			in[i] = "ab\n\0"[unit_below(16) > 2 ? unit_below(2) :
			    unit_below(4)];
		buf_clear(&a);
		buf_clear(&b);
		line_init(&one, max, collect, &a);
		line_init(&many, max, collect, &b);
		line_feed(&one, in, n);
		line_end(&one);
		for (i = 0; i < n; i += piece) {
			piece = unit_below(n - i + 1);
			if (unit_below(2) == 0 && piece > 10)
				piece = unit_below(10);
			line_feed(&many, in + i, piece);
			assert_true(many.partial.len <= max);
		}
		line_end(&many);
		assert_int_equal(a.len, b.len);
		if (a.len > 0)
			assert_memory_equal(a.data, b.data, a.len);

		/* The lines are the bytes that went in, and no piece is longer than max. */
		for (p = start = i = 0; p < a.len; p++) {
			if (a.data[p] != '>' && a.data[p] != '|') {
				assert_int_equal(a.data[p], in[i++]);
				continue;
			}
			assert_true(p - start <= max);
			if (a.data[p] == '>')
				assert_int_equal(p - start, max);
			else if (i < n)
				assert_int_equal(in[i++], '\n');
			start = p + 1;
		}
		assert_int_equal(i, n);
		line_done(&one);
		line_done(&many);
	}
	buf_done(&a);
	buf_done(&b);
}
