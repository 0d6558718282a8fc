/*
 * The terminal; see screen.h.  Signal handlers only set flags.  The signals are blocked
 * while screen_key() looks at the flags, and ppoll(2) unblocks them, so none is lost
 * between the look and the wait.
 *
 * On SIGTSTP rqctl gives the terminal back before it stops.  It cannot catch SIGSTOP, and the
 * shell may then change the terminal: so on SIGCONT rqctl always takes the terminal over again.
 */
#include "rqctl/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "redis/blocking_conn.h"
#include "rqctl/out.h"

/* Enters the alternate screen, hides the cursor, and ends the wrapping of lines; and back. */
#define ENTER	"\033[?1049h\033[?25l\033[?7l"
#define LEAVE	"\033[?7h\033[?25h\033[H\033[J\033[?1049l"

#define ESCAPE_WAIT	50	/* ms to wait for the rest of a key's sequence */

static volatile sig_atomic_t ended;		/* a signal asked rqctl to end */
static volatile sig_atomic_t stopped;		/* SIGTSTP */
static volatile sig_atomic_t continued;		/* SIGCONT */
static volatile sig_atomic_t resized;		/* SIGWINCH */
static volatile sig_atomic_t asked;		/* ended or stopped was set since screen_key() */

static struct termios saved;
static char typed[64];			/* bytes that were read and are no key yet */
static size_t ntyped;

/* -- signals ---------------------------------------------------------------------- */

static void
on_end(int signo UNUSED)
{
	ended = 1;
	asked = 1;
}

static void
on_stop(int signo UNUSED)
{
	stopped = 1;
	asked = 1;
}

static void
on_continue(int signo UNUSED)
{
	continued = 1;
}

static void
on_resize(int signo UNUSED)
{
	resized = 1;
}

static const struct {
	int	 signo;
	void	(*caught)(int);
} signals[] = {
	{ SIGINT, on_end }, { SIGTERM, on_end }, { SIGQUIT, on_end }, { SIGHUP, on_end },
	{ SIGTSTP, on_stop }, { SIGCONT, on_continue }, { SIGWINCH, on_resize },
};

static void
catch_signals(void)
{
	struct sigaction sa = { .sa_flags = 0 };

	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		sa.sa_handler = signals[i].caught;
		sigaction(signals[i].signo, &sa, NULL);
	}
}

/* -- the terminal ----------------------------------------------------------------- */

/* Writes all of it; false: the terminal is gone. */
static bool
put(const char *data, size_t len)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
	ssize_t n;

	while (len > 0) {
		n = write(STDOUT_FILENO, data, len);
		if (n == -1 && errno == EAGAIN)
			(void)poll(&out, 1, -1);
		else if (n == -1 && errno != EINTR)
			return false;
		if (n == -1 && ended)
			return false;
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

static int
take_over(void)
{
	struct termios raw = saved;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	raw.c_oflag |= OPOST | ONLCR;
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) == -1)
		return -1;
	(void)put(ENTER, strlen(ENTER));
	return 0;
}

static void
give_back(void)
{
	(void)put(LEAVE, strlen(LEAVE));
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &saved);
}

bool
screen_is_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term != NULL &&
	    strcmp(term, "dumb") != 0 && term[0] != '\0';
}

int
screen_open(void)
{
	fflush(stdout);
	if (tcgetattr(STDIN_FILENO, &saved) == -1)
		return -1;
	catch_signals();
	blocking_interrupt(&asked);
	return take_over();
}

void
screen_close(void)
{
	give_back();
	blocking_interrupt(NULL);
}

/* Stops as SIGTSTP does, until SIGCONT. */
static void
stop(void)
{
	struct sigaction otherwise = { .sa_handler = SIG_DFL }, ours;
	sigset_t set, old;

	stopped = 0;
	give_back();
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigaction(SIGTSTP, &otherwise, &ours);
	(void)raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, &old);
	sigprocmask(SIG_SETMASK, &old, NULL);
	sigaction(SIGTSTP, &ours, NULL);
	continued = 1;
}

/* -- frames ----------------------------------------------------------------------- */

bool
screen_draw(const struct buf *text)
{
	const char *p = text->data, *end = text->data + text->len, *nl;
	size_t width = (size_t)out_width();
	int height = out_height(), i;
	struct buf b = BUF_INIT;
	bool ok;

	buf_puts(&b, "\033[H");
	for (i = 0; i < height && p < end; i++, p = nl + (nl < end)) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (nl == NULL)
			nl = end;
		if (i > 0)
			buf_addc(&b, '\n');
		if (out_wrap(&b, p, (size_t)(nl - p), width, false) > 0)
			buf_puts(&b, "\033[K");
	}
	if (i < height)
		buf_puts(&b, "\n\033[J");
	ok = put(b.data, b.len);
	buf_done(&b);
	return ok;
}

/* -- keys ------------------------------------------------------------------------- */

static const struct {
	const char	*bytes;
	int		 key;
} sequences[] = {
	{ "\033[A", SCREEN_UP }, { "\033OA", SCREEN_UP },
	{ "\033[B", SCREEN_DOWN }, { "\033OB", SCREEN_DOWN },
	{ "\033[C", SCREEN_RIGHT }, { "\033OC", SCREEN_RIGHT },
	{ "\033[D", SCREEN_LEFT }, { "\033OD", SCREEN_LEFT },
	{ "\033[5~", SCREEN_PAGE_UP }, { "\033[6~", SCREEN_PAGE_DOWN },
	{ "\033[H", SCREEN_HOME }, { "\033OH", SCREEN_HOME }, { "\033[1~", SCREEN_HOME },
	{ "\033[F", SCREEN_LAST }, { "\033OF", SCREEN_LAST }, { "\033[4~", SCREEN_LAST },
};

/* How many of the typed bytes are a sequence: ESC [ parameters letter, or ESC O letter. */
static size_t
sequence_length(void)
{
	size_t n = 2;

	if (ntyped < 2 || (typed[1] != '[' && typed[1] != 'O'))
		return 1;
	while (typed[1] == '[' && n < ntyped && typed[n] >= 0x20 && typed[n] < 0x40)
		n++;
	return n < ntyped ? n + 1 : n;
}

/* Takes the next key out of what was typed. */
static int
take_key(void)
{
	int key = (unsigned char)typed[0];
	size_t n = 1;

	if (key == '\033') {
		n = sequence_length();
		key = n == 1 ? SCREEN_ESCAPE : SCREEN_OTHER;
		for (size_t i = 0; n > 1 && i < ARRAY_LEN(sequences); i++)
			if (strlen(sequences[i].bytes) == n &&
			    memcmp(sequences[i].bytes, typed, n) == 0)
				key = sequences[i].key;
	} else if (key == '\n' || key == '\r')
		key = SCREEN_ENTER;
	else if (key == 0x7f || key == '\b')
		key = SCREEN_BACKSPACE;
	else if (key == 0)
		key = SCREEN_OTHER;
	ntyped -= n;
	memmove(typed, typed + n, ntyped);
	return key;
}

/* Reads the bytes that are ready; false: the terminal is gone. */
static bool
read_typed(void)
{
	ssize_t n = read(STDIN_FILENO, typed + ntyped, sizeof(typed) - ntyped);

	if (n > 0)
		ntyped += (size_t)n;
	return n > 0 || (n == -1 && (errno == EINTR || errno == EAGAIN));
}

/* Whether the sequence has more bytes to come.  After Escape alone it may have. */
static bool
is_incomplete(void)
{
	size_t n = sequence_length();

	if (typed[0] != '\033' || ntyped == sizeof(typed) || n < ntyped)
		return false;
	return n < 3 || (typed[n - 1] >= 0x20 && typed[n - 1] < 0x40);
}

/* Reads the rest of a sequence, which may come in pieces. */
static void
complete_sequence(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	while (is_incomplete())
		if (poll(&in, 1, ESCAPE_WAIT) != 1 || !read_typed())
			return;
}

/*
 * Returns what a signal has asked for, or 0, and clears it.  The signals are blocked
 * meanwhile.
 */
static int
take_signal(void)
{
	asked = 0;
	if (ended)
		return SCREEN_END;
	if (stopped)
		stop();
	if (continued && take_over() == -1)
		return SCREEN_END;
	if (!continued && !resized)
		return 0;
	continued = 0;
	resized = 0;
	return SCREEN_CHANGED;
}

/* Waits for input: 0, a SCREEN_ value, or -1 after a signal. */
static int
wait_typed(usec_t timeout, const sigset_t *open)
{
	struct timespec ts = { .tv_sec = (time_t)(timeout / SEC),
		.tv_nsec = (long)(timeout % SEC * 1000) };
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	int n = ppoll(&in, 1, &ts, open);

	if (n == 1)
		return read_typed() ? 0 : SCREEN_END;
	return n == 0 ? SCREEN_TIMEOUT : errno == EINTR ? -1 : SCREEN_END;
}

int
screen_key(usec_t timeout)
{
	sigset_t set, old;
	int key;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaddset(&set, signals[i].signo);
	sigprocmask(SIG_BLOCK, &set, &old);
	do {
		if ((key = take_signal()) == 0 && ntyped == 0)
			key = wait_typed(timeout, &old);
	} while (key == -1);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (key != 0)
		return key;
	complete_sequence();
	return take_key();
}

bool
screen_is_asked(void)
{
	return asked != 0;
}
