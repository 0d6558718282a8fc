/*
 * A persistent handler in C: answers each message with "N ok".
 *
 * It reads all that has come, answers every message in it, and writes the answers in
 * one call.  So each read and write has as many messages as the daemon has sent
 * together.  `answer each` writes each answer separately, like the handlers in
 * rqd-handler(7).
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char	in[256 * 1024], out[256 * 1024];
static size_t	have;		/* bytes in in */
static bool	each;

static void
put(size_t len)
{
	size_t at = 0;
	ssize_t n;

	for (; at < len; at += (size_t)n) {
		n = write(1, out + at, len - at);
		if (n <= 0)
			exit(1);
	}
}

/* The length of the message at p, with its header; 0: part of it is missing. */
static size_t
whole(const char *p, size_t n, unsigned long *number)
{
	const char *nl = memchr(p, '\n', n);
	char *end;
	size_t len;

	if (nl == NULL)
		return 0;
	*number = strtoul(p, &end, 10);
	(void)strtoul(end, &end, 10);		/* ATTEMPT */
	len = (size_t)(nl + 1 - p) + strtoul(end, NULL, 10) + 1;
	return len <= n ? len : 0;
}

static void
answer_all(void)
{
	size_t at = 0, len, said = 0;
	unsigned long number;

	while ((len = whole(in + at, have - at, &number)) > 0) {
		at += len;
		said += (size_t)sprintf(out + said, "%lu ok\n", number);
		if (each || said > sizeof(out) - 64) {
			put(said);
			said = 0;
		}
	}
	put(said);
	have -= at;
	memmove(in, in + at, have);
}

int
main(int argc, char **argv)
{
	ssize_t n;

	each = argc == 2 && strcmp(argv[1], "each") == 0;
	while ((n = read(0, in + have, sizeof(in) - have)) > 0) {
		have += (size_t)n;
		answer_all();
	}
	return 0;
}
