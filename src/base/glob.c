/*
 * Matching without recursion.  Only the last * can need another try, so the
 * matcher remembers one place to go back to.
 *
 * Odd patterns mean what they mean to Redis: the end of the pattern closes an open
 * class, [z-a] is [a-z], [] matches nothing, and a final backslash matches itself.
 */
#include "base/glob.h"

#include <string.h>

/* Matches c against the class at p, after its "[".  Returns the pattern after the class. */
static const char *
glob_class(const char *p, unsigned char c, bool *matches)
{
	bool not = *p == '^', found = false;
	unsigned char low, high;

	for (p += not; *p != '\0' && *p != ']'; p++) {
		if (*p == '\\' && p[1] != '\0') {
			p++;
			low = high = (unsigned char)*p;
		} else if (p[1] == '-' && p[2] != '\0') {
			low = (unsigned char)p[0];
			high = (unsigned char)p[2];
			p += 2;
		} else {
			low = high = (unsigned char)*p;
		}
		if (low <= high ? c >= low && c <= high : c >= high && c <= low)
			found = true;
	}
	*matches = found != not;
	return *p == ']' ? p + 1 : p;
}

/* Matches one byte against the pattern element at p, not a *.  Returns the pattern after it. */
static const char *
glob_one(const char *p, char c, bool *matches)
{
	if (*p == '[')
		return glob_class(p + 1, (unsigned char)c, matches);
	if (*p == '\\' && p[1] != '\0')
		p++;
	else if (*p == '?') {
		*matches = true;
		return p + 1;
	}
	*matches = *p == c;
	return p + 1;
}

bool
glob_match(const char *p, const char *s, size_t len)
{
	const char *star = NULL, *end = s + len, *from = s, *next;
	bool matches;

	while (s < end) {
		if (*p == '*') {
			star = ++p;
			from = s;
			continue;
		}
		matches = false;
		next = *p != '\0' ? glob_one(p, *s, &matches) : p;
		if (matches) {
			p = next;
			s++;
		} else if (star != NULL) {
			p = star;
			s = ++from;
		} else {
			return false;
		}
	}
	return p[strspn(p, "*")] == '\0';
}
