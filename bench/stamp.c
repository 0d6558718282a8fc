/*
 * A handler that says how late it is: the message begins with a time of the
 * monotonic clock in nanoseconds; a line is appended to a file, of the
 * microseconds since then and the time now.  The clock is read first.
 *
 *	stamp FILE
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	struct timespec ts;
	char text[512] = "";
	long long now;
	int fd, n;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	if (argc != 2 || read(0, text, sizeof(text) - 1) <= 0)
		return 1;
	now = ts.tv_sec * 1000000000LL + ts.tv_nsec;
	n = snprintf(text, sizeof(text), "%.1f %lld\n", (double)(now - atoll(text)) / 1e3,
	    now);
	fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0644);
	return fd == -1 || write(fd, text, (size_t)n) != n;
}
