/*
 * Put in front of libc (LD_PRELOAD): a name service that hangs for a minute when it is asked
 * for the user "hanging", and a server of files that hangs for a minute when the file FILE is
 * opened while there is a FILE.hangs.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct passwd *
getpwnam(const char *name)
{
	struct passwd *(*real)(const char *);

	if (strcmp(name, "hanging") == 0)
		(void)sleep(60);
	*(void **)&real = dlsym(RTLD_NEXT, "getpwnam");
	return real(name);
}

static int
open_slowly(const char *function, const char *path, int flags, mode_t mode)
{
	int (*real)(const char *, int, ...);
	char flag[4096];

	(void)snprintf(flag, sizeof(flag), "%s.hangs", path);
	if (access(flag, F_OK) == 0)
		(void)sleep(60);
	*(void **)&real = dlsym(RTLD_NEXT, function);
	return real(path, flags, mode);
}

#define OPEN(name)						\
int								\
name(const char *path, int flags, ...)				\
{								\
	va_list ap;						\
	mode_t mode;						\
								\
	va_start(ap, flags);					\
	mode = (flags & O_CREAT) != 0 ? va_arg(ap, mode_t) : 0;	\
	va_end(ap);						\
	return open_slowly(#name, path, flags, mode);		\
}

OPEN(open)
OPEN(open64)
