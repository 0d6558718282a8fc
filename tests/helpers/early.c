/*
 * Put in front of libc (LD_PRELOAD): the program gets SIGHUP, SIGUSR1 and SIGUSR2 as soon as
 * it looks at its arguments.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <signal.h>
#include <stddef.h>

int
getopt_long(int argc, char *const *argv, const char *shorts, const struct option *longs, int *i)
{
	static int (*next)(int, char *const *, const char *, const struct option *, int *);

	if (next == NULL) {
		*(void **)&next = dlsym(RTLD_NEXT, "getopt_long");
		(void)raise(SIGHUP);
		(void)raise(SIGUSR1);
		(void)raise(SIGUSR2);
	}
	return next(argc, argv, shorts, longs, i);
}
