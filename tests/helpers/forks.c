/*
 * A handler that leaves as many processes as it may: some that idle, each in a session of
 * its own, and chains, in which each process forks the next one and exits.
 *
 *	forks IDLE CHAINS END
 *
 * It exits when the file END is there.  All others end with it, also if it is killed.
 */
#include <err.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

static int	alive[2];	/* open for writing only in the first process */

static int
first_lives(int timeout)
{
	struct pollfd p = { .fd = alive[0] };

	return poll(&p, 1, timeout) == 0;
}

/* Tries until it may: other processes of the user may be about to end. */
static pid_t
try_fork(void)
{
	pid_t pid;

	while ((pid = fork()) == -1)
		(void)usleep(1000);
	return pid;
}

static void
idle(void)
{
	(void)setsid();
	while (first_lives(-1))
		continue;
	_exit(0);
}

static void
chain(void)
{
	(void)setsid();
	while (first_lives(0)) {
		if (fork() > 0)
			_exit(0);
	}
	_exit(0);
}

int
main(int argc, char **argv)
{
	if (argc != 4 || pipe(alive) == -1)
		errx(64, "usage: forks IDLE CHAINS END");
	if (fork() == 0) {
		(void)close(alive[1]);
		for (int i = atoi(argv[1]); i > 0; i--) {
			if (try_fork() == 0)
				idle();
		}
		for (int i = atoi(argv[2]); i > 0; i--) {
			if (try_fork() == 0)
				chain();
		}
		_exit(0);	/* all others are orphans now */
	}
	while (access(argv[3], F_OK) == -1)
		(void)usleep(20000);
	return 0;
}
