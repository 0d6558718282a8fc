/*
 * For every file: allocation that cannot fail, attributes, minima, parts of texts, fatal
 * errors, causes, similar words, names of signals, and randomness.
 *
 * A failed allocation ends the process.  The supervisor restarts the daemon, and
 * every message in flight is redelivered when its lease ends.  No code in rqd tries
 * to continue without memory.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUSTCHECK	__attribute__((__warn_unused_result__))
#define NORETURN	__attribute__((__noreturn__))
#define PRINTF(f, a)	__attribute__((__format__(__printf__, f, a)))
#define UNUSED		__attribute__((__unused__))
/* Continues with the next case of a switch. */
#define FALLTHROUGH	__attribute__((__fallthrough__))
#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))
/* Calls it again as long as a signal interrupts it; the caller includes errno.h. */
#define RETRY(call) ({							\
	__typeof__(call) result_;					\
	do								\
		result_ = (call);					\
	while (result_ == -1 && errno == EINTR);			\
	result_;							\
})

/* Minima and maxima: of sizes, and of numbers such as usec_t. */
static inline size_t
size_min(size_t a, size_t b)
{
	if (a < b)
		return a;
	return b;
}

static inline size_t
size_max(size_t a, size_t b)
{
	if (a > b)
		return a;
	return b;
}

static inline int64_t
int64_min(int64_t a, int64_t b)
{
	if (a < b)
		return a;
	return b;
}

static inline int64_t
int64_max(int64_t a, int64_t b)
{
	if (a > b)
		return a;
	return b;
}

/* Parts of a text: "%lld message%s", n, plural(n). */
static inline const char *
plural(int64_t n)
{
	if (n == 1)
		return "";
	return "s";
}

/* The text, or "" if the condition is false; it may be a separator. */
static inline const char *
text_if(bool condition, const char *text)
{
	if (condition)
		return text;
	return "";
}

/* The text; "" instead of NULL. */
static inline const char *
or_empty(const char *text)
{
	return text_if(text != NULL, text);
}

/* The object whose member ptr points at. */
#define CONTAINER_OF(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/*
 * Makes room for one more element at the end of an allocated array, counts it, and
 * returns its address.  It may move the array each time: for a few thousand at most.
 */
#define APPEND(list, n)	((list) = xreallocarray((list), (n) + 1, sizeof(*(list))), &(list)[(n)++])

/* As their namesakes, but never NULL: on failure the process ends. */
void	*xmalloc(size_t);
void	*xcalloc(size_t, size_t);
void	*xrealloc(void *, size_t);
void	*xreallocarray(void *, size_t, size_t);
void	*xmemdup(const void *, size_t);
/* A new struct with these members; the others are 0. */
#define NEW(type, ...)	((type *)xmemdup(&(type){ __VA_ARGS__ }, sizeof(type)))
char	*xstrdup(const char *);
char	*xstrndup(const char *, size_t);
/* Frees *s, and puts a copy of the text there, which may be a part of it; NULL: none. */
void	 xreplace(char **s, const char *text);
char	*xasprintf(const char *, ...) PRINTF(1, 2);
char	*xvasprintf(const char *, va_list) PRINTF(1, 0);

/*
 * Both end the process with a line on stderr.  fatalx() is for broken invariants
 * and calls abort(); fatal_os() is for refusals of the operating system and exits
 * with status 71 (EX_OSERR).
 */
void	 fatalx(const char *, ...) PRINTF(1, 2) NORETURN;
void	 fatal_os(const char *, ...) PRINTF(1, 2) NORETURN;

/*
 * Sets *cause, where cause is not NULL, to a new sentence that the caller
 * frees, and returns -1: `return util_cause(cause, "...")`.
 */
int	 util_cause(char **, const char *, ...) PRINTF(2, 3);

/* Frees the strings of a list, up to NULL, and the list itself, which may be NULL. */
void	 util_free_list(char **);

/* Whether the word is among the first n of a list, and before NULL; list NULL: it is not. */
bool	 util_has(char *const *list, size_t n, const char *word);

/* Edit distance (Levenshtein) in bytes; 64 if a text has more than 64 bytes. */
unsigned util_distance(const char *, const char *);

/*
 * The word that was probably meant.  Call util_nearest() for each possible word: best is
 * then the one with the least distance.  A word counts only if its distance is less than its
 * length, and less than `within` was at first.
 */
struct nearest {
	const char	*typed;
	unsigned	 within;
	const char	*best;		/* NULL: none */
};
void	 util_nearest(struct nearest *, const char *word);

/* Writes "SIGKILL", or "SIG42" for a signal without a name, to buf; returns buf. */
#define UTIL_SIGNAL_MAX	24
const char *util_signal(int signo, char buf[UTIL_SIGNAL_MAX]);

/* This machine's name, read at the first call; "localhost" if it has none. */
const char *util_hostname(void);

/* Random numbers from the kernel.  Do not use them in a forked child: see util.c. */
uint64_t random_u64(void);
double	 random_unit(void);		/* uniform in [0, 1) */

/* Fills buf with n - 1 random characters of [0-9a-z] and a NUL. */
void	 random_name(char *, size_t);
