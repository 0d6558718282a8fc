/*
 * Books amounts into a file: a persistent handler in C.  A message is a JSON object
 * with an account and an amount: {"id": 7, "account": "alice", "amount": 12.5}.
 *
 *	cc -O2 -Wall -o ledger ledger.c -ljansson
 *
 *	queue "ledger" {
 *	    command  = {"/usr/local/bin/ledger"}
 *	    user     = "ledger"
 *	    env      = {"LEDGER=/var/lib/ledger/book"}
 *	    mode     = "persistent"
 *	    pipeline = 64
 *	}
 *
 * Standard output is for answers only: stderr for all else.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum verdict { OK, RETRY, DEAD };

/* One write for one line: lines of several processes do not mix. */
static enum verdict
append(int ledger, const char *id, const char *account, double amount, const char **reason)
{
	char line[1024];
	int n = snprintf(line, sizeof(line), "%s %.500s %.2f\n", id, account, amount);

	if (write(ledger, line, (size_t)n) == n)
		return OK;
	*reason = strerror(errno);
	return RETRY;
}

static enum verdict
book(int ledger, const char *id, const char *message, size_t len, const char **reason)
{
	json_t *order = json_loadb(message, len, 0, NULL);
	json_t *amount = json_object_get(order, "amount");
	const char *account = json_string_value(json_object_get(order, "account"));
	enum verdict v = DEAD;

	*reason = "not an order";
	if (account != NULL && json_is_number(amount))
		v = append(ledger, id, account, json_number_value(amount), reason);
	json_decref(order);
	return v;
}

/*
 * Sends all answers together when there is nothing more to read: a program must
 * flush before it waits for input.
 */
static int
fill(char *buf, size_t size)
{
	return fflush(stdout) == 0 ? (int)read(0, buf, size) : -1;
}

/* Standard input, read in large pieces. */
static int
next_byte(void)
{
	static char buf[65536];
	static int at, n;

	if (at == n) {
		n = fill(buf, sizeof(buf));
		at = 0;
		if (n <= 0)
			return n = EOF;
	}
	return (unsigned char)buf[at++];
}

/* A header, without its newline; false at the end of input. */
static int
read_line(char *line, size_t size)
{
	size_t n = 0;
	int c;

	while ((c = next_byte()) != EOF && c != '\n') {
		if (n < size - 1)
			line[n++] = (char)c;
	}
	line[n] = '\0';
	return c != EOF;
}

/* The message and the newline after it. */
static char *
read_message(size_t len)
{
	char *message = malloc(len + 1);
	size_t i;
	int c;

	for (i = 0; message != NULL && i <= len; i++) {
		if ((c = next_byte()) == EOF)
			exit(1);
		message[i] = (char)c;
	}
	return message;
}

int
main(void)
{
	const char *path = getenv("LEDGER"), *reason = "";
	int ledger = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT, 0666), at;
	unsigned long number, attempt, len;
	char header[512], *message;

	if (ledger == -1) {
		perror(path != NULL ? path : "LEDGER");
		return 1;
	}
	while (read_line(header, sizeof(header))) {
		if (sscanf(header, "%lu %lu %lu %n", &number, &attempt, &len, &at) != 3 ||
		    (message = read_message(len)) == NULL)
			return 1;
		switch (book(ledger, header + at, message, len, &reason)) {
		case OK:
			printf("%lu ok\n", number);
			break;
		case RETRY:
			printf("%lu retry - %s\n", number, reason);
			break;
		case DEAD:
			printf("%lu dead %s\n", number, reason);
			break;
		}
		free(message);
	}
	return 0;
}
