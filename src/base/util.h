/*
 * Allocation that cannot fail, attributes, and randomness.
 *
 * Memory that cannot be had ends the process: a worker that is out of memory
 * is restarted by its supervisor, and every message in hand is redelivered
 * when its lease ends.  Nothing in rqd tries to carry on without memory.
 */
#ifndef RQD_BASE_UTIL_H
#define RQD_BASE_UTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUSTCHECK	__attribute__((__warn_unused_result__))
#define NORETURN	__attribute__((__noreturn__))
#define PRINTF(f, a)	__attribute__((__format__(__printf__, f, a)))
#define UNUSED		__attribute__((__unused__))
/* Goes on with the next case of a switch. */
#define FALLTHROUGH	__attribute__((__fallthrough__))
#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

/* The object whose member ptr points at. */
#define CONTAINER_OF(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* As their namesakes, but never NULL: on failure it is fatal_os(). */
void	*xmalloc(size_t);
void	*xcalloc(size_t, size_t);
void	*xrealloc(void *, size_t);
void	*xreallocarray(void *, size_t, size_t);
void	*xmemdup(const void *, size_t);
char	*xstrdup(const char *);
char	*xstrndup(const char *, size_t);
char	*xasprintf(const char *, ...) PRINTF(1, 2);
char	*xvasprintf(const char *, va_list) PRINTF(1, 0);

/*
 * End the process with a line on stderr: for what cannot happen, by abort(); and
 * for what the operating system refuses, with status 71 (EX_OSERR).
 */
void	 fatalx(const char *, ...) PRINTF(1, 2) NORETURN;
void	 fatal_os(const char *, ...) PRINTF(1, 2) NORETURN;

/*
 * Sets *cause, where cause is not NULL, to a new sentence that the caller
 * frees, and returns -1: `return util_cause(cause, "...")`.
 */
int	 util_cause(char **, const char *, ...) PRINTF(2, 3);

/* Bytes to insert, delete or change to make one text of the other; 64 for long ones. */
unsigned util_distance(const char *, const char *);

/* "SIGKILL"; "SIG42" where it has no name.  buf; the name is the same everywhere. */
#define UTIL_SIGNAL_MAX	24
const char *util_signal(int signo, char buf[UTIL_SIGNAL_MAX]);

/* From the kernel's generator; never fails. */
uint64_t random_u64(void);
double	 random_unit(void);		/* uniform in [0, 1) */

/* Fills buf with n - 1 random characters of [0-9a-z] and a NUL. */
void	 random_name(char *, size_t);

#endif
