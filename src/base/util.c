/*
 * Allocation that cannot fail, fatal errors, and the rest of util.h.
 *
 * A size of 0 is rounded up to 1, so that NULL always means "none".  Random numbers
 * come from the kernel by getrandom(2), which needs no seed.
 * random_u64() fetches a batch of them: do not use it in a forked child, which would
 * repeat the parent's numbers.
 */
#include "base/util.h"

#include <sys/random.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"

static void *
checked(void *p)
{
	if (p == NULL)
		fatal_os("out of memory");
	return p;
}

void *
xmalloc(size_t size)
{
	return checked(malloc(size == 0 ? 1 : size));
}

void *
xcalloc(size_t n, size_t size)
{
	return checked(n == 0 || size == 0 ? calloc(1, 1) : calloc(n, size));
}

void *
xrealloc(void *p, size_t size)
{
	return checked(realloc(p, size == 0 ? 1 : size));
}

void *
xreallocarray(void *p, size_t n, size_t size)
{
	if (n == 0 || size == 0)
		return xrealloc(p, 1);
	return checked(reallocarray(p, n, size));
}

void *
xmemdup(const void *src, size_t size)
{
	void *p = xmalloc(size);

	if (size > 0)
		memcpy(p, src, size);
	return p;
}

char *
xstrdup(const char *s)
{
	return xmemdup(s, strlen(s) + 1);
}

char *
xstrndup(const char *s, size_t max)
{
	return checked(strndup(s, max));
}

void
xreplace(char **s, const char *text)
{
	char *copy = text != NULL ? xstrdup(text) : NULL;

	free(*s);
	*s = copy;
}

char *
xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = xvasprintf(fmt, ap);
	va_end(ap);
	return s;
}

char *
xvasprintf(const char *fmt, va_list ap)
{
	char *s;

	if (vasprintf(&s, fmt, ap) < 0)
		fatalx("vasprintf: out of memory or bad format");
	return s;
}

/* Formats on the stack: it also reports failed allocations. */
static void PRINTF(1, 0)
last_words(const char *fmt, va_list ap)
{
	static bool dying;
	char line[512];
	int n = snprintf(line, sizeof(line), "rqd: ");
	ssize_t r;

	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	if (n < 0 || (size_t)n > sizeof(line) - 2)
		n = (int)strlen(line);
	line[n++] = '\n';
	if (!dying) {
		dying = true;
		log_release();		/* which may fail, and call this again */
	}
	r = write(STDERR_FILENO, line, (size_t)n);
	(void)r;
}

void
fatalx(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	last_words(fmt, ap);
	va_end(ap);
	abort();
}

void
fatal_os(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	last_words(fmt, ap);
	va_end(ap);
	_exit(EX_OSERR);
}

int
util_cause(char **cause, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (cause != NULL) {
		va_start(ap, fmt);
		*cause = xvasprintf(fmt, ap);
		va_end(ap);
	}
	errno = saved;
	return -1;
}

void
util_free_list(char **list)
{
	for (char **s = list; s != NULL && *s != NULL; s++)
		free(*s);
	free(list);
}

bool
util_has(char *const *list, size_t n, const char *word)
{
	for (size_t i = 0; list != NULL && i < n && list[i] != NULL; i++)
		if (strcmp(list[i], word) == 0)
			return true;
	return false;
}

/* Levenshtein's algorithm, one row at a time, in place. */
unsigned
util_distance(const char *a, const char *b)
{
	unsigned row[65], diagonal, above, best;
	size_t j, n = strlen(b);

	if (strlen(a) > 64 || n > 64)
		return 64;
	for (j = 0; j <= n; j++)
		row[j] = (unsigned)j;
	for (; *a != '\0'; a++) {
		diagonal = row[0]++;
		for (j = 1; j <= n; j++) {
			above = row[j];
			best = diagonal + (*a != b[j - 1]);
			best = best < above + 1 ? best : above + 1;
			row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
			diagonal = above;
		}
	}
	return row[n];
}

void
util_nearest(struct nearest *n, const char *word)
{
	unsigned d = util_distance(n->typed, word);

	if (d < n->within && d < strlen(word)) {
		n->within = d;
		n->best = word;
	}
}

/* The C library's own table is sigabbrev_np(3), which musl lacks, and glibc before 2.32. */
static const char *const signal_names[] = {
	[SIGHUP] = "HUP", [SIGINT] = "INT", [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
	[SIGTRAP] = "TRAP", [SIGABRT] = "ABRT", [SIGBUS] = "BUS", [SIGFPE] = "FPE",
	[SIGKILL] = "KILL", [SIGUSR1] = "USR1", [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
	[SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM", [SIGCHLD] = "CHLD",
	[SIGCONT] = "CONT", [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP", [SIGTTIN] = "TTIN",
	[SIGTTOU] = "TTOU", [SIGURG] = "URG", [SIGXCPU] = "XCPU", [SIGXFSZ] = "XFSZ",
	[SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH", [SIGPOLL] = "POLL",
	[SIGPWR] = "PWR", [SIGSYS] = "SYS",
#ifdef SIGSTKFLT
	[SIGSTKFLT] = "STKFLT",
#endif
};

const char *
util_signal(int signo, char buf[UTIL_SIGNAL_MAX])
{
	if (signo > 0 && (size_t)signo < ARRAY_LEN(signal_names) && signal_names[signo] != NULL)
		snprintf(buf, UTIL_SIGNAL_MAX, "SIG%s", signal_names[signo]);
	else
		snprintf(buf, UTIL_SIGNAL_MAX, "SIG%d", signo);
	return buf;
}

const char *
util_hostname(void)
{
	static char name[HOST_NAME_MAX + 1];

	if (name[0] == '\0' && gethostname(name, sizeof(name) - 1) == -1)
		name[0] = '\0';
	if (name[0] == '\0')
		strcpy(name, "localhost");
	return name;
}

static void
random_fill(void *buf, size_t n)
{
	char *p = buf;
	ssize_t r;

	while (n > 0) {
		r = getrandom(p, n, 0);
		if (r > 0) {
			p += r;
			n -= (size_t)r;
		} else if (errno != EINTR) {
			fatal_os("getrandom: %s", strerror(errno));
		}
	}
}

/* Fetches a batch from the kernel at once: every message needs some. */
uint64_t
random_u64(void)
{
	static uint64_t n[32];
	static size_t left;

	if (left == 0) {
		random_fill(n, sizeof(n));
		left = ARRAY_LEN(n);
	}
	return n[--left];
}

/* 53 bits are what a double's fraction holds: every value is as likely. */
double
random_unit(void)
{
	return (double)(random_u64() >> 11) * 0x1p-53;
}

void
random_name(char *buf, size_t n)
{
	static const char set[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	size_t i;

	if (n == 0)
		return;
	/* 2^64 is no multiple of 36, which favours some characters by 2^-58. */
	for (i = 0; i < n - 1; i++)
		buf[i] = set[random_u64() % (sizeof(set) - 1)];
	buf[i] = '\0';
}
