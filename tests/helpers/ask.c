/*
 * redis-cli for tests: asks once and prints the reply as redis-cli does into a pipe, but
 * starts in a quarter of its time.  Tests ask some thousand times.
 *
 *	ask [-h HOST] [-p PORT] [-s SOCKET] [--raw] [-x] WORD...
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

struct options {
	const char *host, *path;
	int port;
	bool last_is_stdin;
};

/* Returns the first word that is no option, or NULL where an option is redis-cli's only. */
static char **
parse_options(char **arg, struct options *o)
{
	for (; *arg != NULL && (*arg)[0] == '-'; arg++) {
		if (strcmp(*arg, "-x") == 0)
			o->last_is_stdin = true;
		else if (strcmp(*arg, "-s") == 0 && arg[1] != NULL)
			o->path = *++arg;
		else if (strcmp(*arg, "-h") == 0 && arg[1] != NULL)
			o->host = *++arg;
		else if (strcmp(*arg, "-p") == 0 && arg[1] != NULL)
			o->port = atoi(*++arg);
		else if (strcmp(*arg, "--raw") != 0)
			return NULL;
	}
	return arg;
}

static bool
is_for_redis_cli(char **words)
{
	static const char *const names[] = {
		"subscribe", "psubscribe", "monitor", "shutdown", "debug", "latency", "memory"
	};
	size_t i;

	if (words == NULL || words[0] == NULL || getenv("REDISCLI_AUTH") != NULL)
		return true;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(words[0], names[i]) == 0)
			return true;
	}
	return false;
}

/* Redis replies with lines of text. */
static bool
is_text(const char **words, int n)
{
	static const char *const names[] = {
		"cluster info", "cluster nodes", "client info", "client list"
	};
	char name[32];
	size_t i;

	if (strcasecmp(words[0], "info") == 0)
		return true;
	if (n < 2)
		return false;
	snprintf(name, sizeof(name), "%s %s", words[0], words[1]);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(name, names[i]) == 0)
			return true;
	}
	return false;
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
ask(const struct options *o, int n, const char **words, const size_t *lens)
{
	redisContext *c = o->path != NULL ? redisConnectUnix(o->path) :
	    redisConnect(o->host, o->port);
	redisReply *reply;

	if (c == NULL || c->err != 0)
		errx(1, "%s: %s", o->path != NULL ? o->path : o->host,
		    c == NULL ? "no memory" : c->errstr);
	if ((reply = redisCommandArgv(c, n, words, lens)) == NULL)
		errx(1, "%s", c->errstr);
	print_reply(reply);
	if (!is_text(words, n))
		putchar('\n');
	if (fflush(stdout) != 0)
		err(1, "standard output");
	freeReplyObject(reply);
	redisFree(c);
}

int
main(int argc, char **argv)
{
	struct options options = { .host = "127.0.0.1", .port = 6379 };
	const char *words[WORDS];
	size_t lens[WORDS];
	char **arg = parse_options(argv + 1, &options), *last = NULL;
	int n;

	if (is_for_redis_cli(arg) || argc > WORDS || isatty(STDOUT_FILENO)) {
		execvp("redis-cli", argv);
		err(127, "redis-cli");
	}
	for (n = 0; *arg != NULL; arg++, n++) {
		words[n] = *arg;
		lens[n] = strlen(*arg);
	}
	if (options.last_is_stdin) {
		words[n] = last = read_all(&lens[n]);
		n++;
	}
	ask(&options, n, words, lens);
	free(last);
	return 0;
}
