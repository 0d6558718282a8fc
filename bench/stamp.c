/*
 * A handler that measures its own delay.  It first reads the monotonic clock.  The
 * message begins with a time of that clock in nanoseconds.  The handler appends a line
 * to a file: the microseconds since then, and the present time.
 *
 *	stamp FILE
 *	stamp FILE persistent
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long
clock_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static int
note(const char *file, long long then, long long now)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%.1f %lld\n", (double)(now - then) / 1e3, now);
	int fd = open(file, O_WRONLY | O_APPEND | O_CREAT, 0644);
	int status = fd == -1 || write(fd, text, (size_t)n) != n;

	(void)close(fd);
	return status;
}

/* One message at a time: each read(2) brings one, header and all. */
static int
persist(const char *file)
{
	char text[512], *message;
	ssize_t n;

	while ((n = read(0, text, sizeof(text) - 1)) > 0) {
		long long now = clock_now();

		text[n] = '\0';
		message = strchr(text, '\n');
		if (message == NULL || note(file, atoll(message), now) != 0)
			return 1;
		n = snprintf(text, sizeof(text), "%ld ok\n", atol(text));
		if (write(1, text, (size_t)n) != n)
			return 1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	long long now = clock_now();
	char text[512] = "";

	if (argc == 3)
		return persist(argv[1]);
	if (argc != 2 || read(0, text, sizeof(text) - 1) <= 0)
		return 1;
	return note(argv[1], atoll(text), now);
}
