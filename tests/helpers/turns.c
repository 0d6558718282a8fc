/*
 * Put in front of libc (LD_PRELOAD): how long the turns of rqd's loop take.
 *
 * A turn begins when epoll_wait(2) returns and ends when it is called again.  What the
 * machine makes the process wait for a processor is no part of it: that says nothing about
 * the program.  So a turn in which the process has not slept took its processor time, and
 * any other one all of its time but that in the run queue.  Results are in the file that
 * RQD_TURNS names, of the size of struct turns; rqd opens it before it gives up privileges.
 */
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SLOW	20000		/* microseconds */

/* In microseconds. */
struct turns {
	volatile long	count;
	volatile long	longest;
	volatile long	longest_with_waits;	/* for a processor, too */
	volatile long	slow;			/* how many took SLOW or more */
};

static struct turns	*turns;
static int		(*real_epoll_wait)(int, struct epoll_event *, int, int);
static int		 schedstat = -1;	/* its second number: nanoseconds in a run queue */
static long		 began;			/* 0: no turn */
static long		 waited, ran, slept;	/* by then */

static void __attribute__((__constructor__))
turns_open(void)
{
	const char *path = getenv("RQD_TURNS");
	int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p;

	*(void **)&real_epoll_wait = dlsym(RTLD_NEXT, "epoll_wait");
	if (fd == -1)
		return;
	p = mmap(NULL, sizeof(*turns), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		turns = p;
	close(fd);
	schedstat = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
}

static long
now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000L + ts.tv_nsec / 1000;
}

static long
waits(void)
{
	char text[128];
	ssize_t n = pread(schedstat, text, sizeof(text) - 1, 0);
	unsigned long long on, queued;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return sscanf(text, "%llu %llu", &on, &queued) == 2 ? (long)(queued / 1000) : 0;
}

/* How often the process has waited for something. */
static long
sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

static void
note(void)
{
	long took = now(CLOCK_MONOTONIC) - began, least = took - (waits() - waited);

	if (sleeps() == slept)
		least = now(CLOCK_THREAD_CPUTIME_ID) - ran;
	turns->count++;
	if (took > turns->longest_with_waits)
		turns->longest_with_waits = took;
	if (least > turns->longest)
		turns->longest = least;
	if (least >= SLOW)
		turns->slow++;
}

int
epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	int n;

	if (turns != NULL && began != 0)
		note();
	n = real_epoll_wait(fd, events, max, timeout);
	if (turns != NULL) {
		waited = waits();
		slept = sleeps();
		ran = now(CLOCK_THREAD_CPUTIME_ID);
		began = now(CLOCK_MONOTONIC);
	}
	return n;
}
