/*
 * redis-cli for tests: asks once and prints the reply as redis-cli does into a pipe, but
 * starts in a quarter of its time.  Tests ask some thousand times.
 *
 *	ask /tmp/x/redis.sock [--raw] [-x] WORD...
 *
 * Hands over to redis-cli what it does not know: other options, a password, commands on
 * standard input, commands that go on replying or whose reply redis-cli prints otherwise.
 */
#include <hiredis/hiredis.h>

#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define WORDS	4096

static bool
is_for_redis_cli(char **words)
{
	static const char *const names[] = {
		"subscribe", "psubscribe", "monitor", "shutdown", "info", "client", "cluster",
		"debug", "latency", "memory"
	};
	size_t i;

	if (words[0] == NULL || words[0][0] == '-' || getenv("REDISCLI_AUTH") != NULL)
		return true;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(words[0], names[i]) == 0)
			return true;
	}
	return false;
}

static void
redis_cli(int n, char **arg, char *path)
{
	char **words = calloc((size_t)n + 4, sizeof(*words));

	if (words == NULL)
		err(71, NULL);
	words[0] = (char *)"redis-cli";
	words[1] = (char *)"-s";
	words[2] = path;
	memcpy(words + 3, arg, (size_t)n * sizeof(*words));
	execvp(words[0], words);
	err(127, "redis-cli");
}

/* The whole of standard input: the last word of -x. */
static char *
read_all(size_t *len)
{
	char *text = NULL;
	size_t n, size = 0;

	*len = 0;
	do {
		if (size - *len < 65536 && (text = realloc(text, size += 1 << 20)) == NULL)
			err(71, NULL);
		n = fread(text + *len, 1, size - *len, stdin);
		*len += n;
	} while (n > 0);
	return text;
}

static void
print_reply(const redisReply *reply)
{
	size_t i;

	switch (reply->type) {
	case REDIS_REPLY_INTEGER:
		printf("%lld", reply->integer);
		break;
	case REDIS_REPLY_ARRAY:
		for (i = 0; i < reply->elements; i++) {
			if (i > 0)
				putchar('\n');
			print_reply(reply->element[i]);
		}
		break;
	case REDIS_REPLY_NIL:
		break;
	case REDIS_REPLY_ERROR:
		printf("%s\n", reply->str);
		break;
	default:
		fwrite(reply->str, 1, reply->len, stdout);
	}
}

/* Sends the words, and prints the reply. */
static void
ask(const char *path, int n, const char **words, const size_t *lens)
{
	redisContext *c = redisConnectUnix(path);
	redisReply *reply;

	if (c == NULL || c->err != 0)
		errx(1, "%s: %s", path, c == NULL ? "no memory" : c->errstr);
	if ((reply = redisCommandArgv(c, n, words, lens)) == NULL)
		errx(1, "%s", c->errstr);
	print_reply(reply);
	putchar('\n');
	if (fflush(stdout) != 0)
		err(1, "standard output");
	freeReplyObject(reply);
	redisFree(c);
}

int
main(int argc, char **argv)
{
	const char *words[WORDS];
	size_t lens[WORDS];
	char **arg, *last = NULL;
	bool x = false;
	int n;

	if (argc < 2)
		errx(64, "usage: ask SOCKET [--raw] [-x] WORD...");
	for (arg = argv + 2; *arg != NULL; arg++) {
		if (strcmp(*arg, "-x") == 0)
			x = true;
		else if (strcmp(*arg, "--raw") != 0)
			break;
	}
	if (is_for_redis_cli(arg) || argc > WORDS || isatty(STDOUT_FILENO))
		redis_cli(argc - 2, argv + 2, argv[1]);
	for (n = 0; *arg != NULL; arg++, n++) {
		words[n] = *arg;
		lens[n] = strlen(*arg);
	}
	if (x) {
		words[n] = last = read_all(&lens[n]);
		n++;
	}
	ask(argv[1], n, words, lens);
	free(last);
	return 0;
}
