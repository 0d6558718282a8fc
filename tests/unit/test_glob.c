/*
 * Globs: a table; tests/redis/test_expired.c compares with Redis itself.
 */
#include "unit.h"

#include "base/glob.h"

TEST(test_table)
{
	static const struct { const char *pattern, *s; bool is; } table[] = {
		{ "", "", true }, { "", "a", false }, { "a", "", false }, { "*", "", true },
		{ "*", "abc", true }, { "**", "abc", true }, { "a*", "a", true },
		{ "a*c", "abc", true }, { "a*c", "abcd", false }, { "*b*", "abc", true },
		{ "?", "a", true }, { "?", "", false }, { "a?c", "abc", true },
		{ "a?c", "ac", false }, { "[abc]", "b", true }, { "[abc]", "d", false },
		{ "[a-c]x", "bx", true }, { "[c-a]x", "bx", true }, { "[^a]", "b", true },
		{ "[^a]", "a", false }, { "[]", "a", false }, { "[^]", "a", true },
		{ "[a", "a", true }, { "[a", "b", false }, { "[\\]]", "]", true },
		{ "[\\-x]", "-", true }, { "[a-]", "-", false }, { "[a-]", "_", true },
		{ "\\*", "*", true },
		{ "\\*", "a", false }, { "\\", "\\", true }, { "a\\", "a\\", true },
		{ "h[ae]llo*", "hello world", true }, { "*a*b*c*", "xxaxxbxxcxx", true },
		{ "*a*b*c*", "xxaxxcxxbxx", false }, { "user:*:ttl", "user:7:ttl", true },
		{ "\xff*", "\xff\xfe", true }, { "[\x80-\xff]", "\x90", true },
		{ "[\x80-\xff]", "a", false },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(table); i++) {
		if (glob_match(table[i].pattern, table[i].s, strlen(table[i].s)) != table[i].is)
			fail_msg("\"%s\" and \"%s\": not %d", table[i].pattern, table[i].s,
			    table[i].is);
	}
	assert_true(glob_match("a*c", "a\0b\0c", 5));
	assert_false(glob_match("a", "a\0b", 3));
}

/* A matcher that tries all ways would not finish with this pattern. */
TEST(test_bomb)
{
	char s[10001], pattern[201];
	size_t i;

	memset(s, 'a', sizeof(s));
	for (i = 0; i + 1 < sizeof(pattern); i += 2)
		memcpy(pattern + i, "*a", 2);
	pattern[200] = '\0';
	assert_true(glob_match(pattern, s, sizeof(s) - 1));
	pattern[199] = 'b';
	assert_false(glob_match(pattern, s, sizeof(s) - 1));
}
