/*
 * rqctl lock: runs a command under a lock, as flock(1) does.
 *
 * One loop serves the lock (queue/lock.h) and the command, so a Redis that hangs stops
 * neither.  The command stays in rqctl's process group, with its terminal and descriptors.
 * A signal of the terminal reaches the command directly; rqctl passes on a signal that it
 * alone received.
 *
 * When the lock is lost or about to expire, the command and all that it has started get
 * SIGTERM, and SIGKILL a grace later.  rqctl finds processes that the command left behind
 * because they become its children (loop/descendants.h).  If rqctl is killed, the kernel
 * sends SIGTERM to the command.
 */
#include <sys/prctl.h>
#include <sys/signalfd.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "loop/child.h"
#include "loop/descendants.h"
#include "loop/io.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "queue/lock.h"
#include "rqctl/ask.h"
#include "rqctl/locks.h"

#define TTL_DEFAULT	(30 * SEC)
#define TTL_MIN		(1 * SEC)
#define TTL_MAX		(24 * HOUR)
#define GRACE_MAX	(5 * SEC)
#define KILL_AGAIN	(50 * MSEC)
#define KILLS_MAX	100

#define EX_LOST		76		/* EX_PROTOCOL */

struct locked {
	struct ctl	*ctl;
	struct loop	*loop;
	struct lock	*lock;
	struct lock_options opt;
	char *const	*argv;
	struct child	 child;
	bool		 exited;	/* the command has; status is valid */
	int		 status;
	bool		 ending;	/* the lock is lost: SIGTERM was sent */
	unsigned	 kills;		/* how often SIGKILL was sent */
	struct timer	 kill;
	int		 signal_fd;
	struct io	 signals;
	sigset_t	 old_mask;
};

/* -- the end ------------------------------------------------------------------- */

static void
released(enum lock_release how, void *arg)
{
	struct locked *r = arg;
	const char *name = r->opt.name;

	if (how == LOCK_LOST && r->ctl->status == 0)
		ctl_error(r->ctl, EX_LOST, "lock %s was lost before the command ended", name);
	else if (how == LOCK_LEFT && r->exited && !r->ending)
		ctl_note("lock %s: Redis does not answer; it expires by itself", name);
	if (r->ctl->status == 0)
		r->ctl->status = r->status;
	loop_stop(r->loop);
}

static void
finish(struct locked *r)
{
	timer_stop(&r->kill);
	lock_release(r->lock);
}

/* -- the command ---------------------------------------------------------------- */

/* Sends SIGKILL to all processes that are left, until there are none. */
static void
kill_all(void *arg)
{
	struct locked *r = arg;
	unsigned left = descendants_kill(SIGKILL);

	(void)child_kill(&r->child, SIGKILL);
	if (r->exited && (left == 0 || r->kills++ >= KILLS_MAX))
		finish(r);
	else
		timer_set(&r->kill, KILL_AGAIN);
}

static void
exited(struct child *child, const struct child_exit *x)
{
	struct locked *r = CONTAINER_OF(child, struct locked, child);

	r->exited = true;
	r->status = x->signaled ? 128 + x->code : x->code;
	/* When the lock is lost, no process may continue. */
	if (!r->ending || descendants_kill(SIGTERM) == 0)
		finish(r);
}

/* In the child. */
static void
NORETURN
become(const struct locked *r, pid_t parent, int report)
{
	int error;

	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EX_LOST);
	execvp(r->argv[0], r->argv);
	error = errno;
	(void)!write(report, &error, sizeof(error));
	_exit(error == ENOENT ? 127 : 126);
}

/* Reports why the command could not be executed; the child exits by itself. */
static void
say_failure(struct locked *r, int fd)
{
	int error;

	if (read(fd, &error, sizeof(error)) == sizeof(error))
		ctl_error(r->ctl, error == ENOENT ? 127 : 126, "%s: %s", r->argv[0],
		    strerror(error));
	close(fd);
}

static void
held(void *arg)
{
	struct locked *r = arg;
	pid_t parent = getpid(), pid = -1;
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) == 0) {
		if ((pid = fork()) == 0)
			become(r, parent, fd[1]);
		close(fd[1]);
	}
	if (pid == -1) {
		ctl_error(r->ctl, EX_OSERR, "%s: %s", r->argv[0], strerror(errno));
		finish(r);
		return;
	}
	r->child.exited = exited;
	child_watch(r->loop, &r->child, pid);
	say_failure(r, fd[0]);
}

/* -- the lock ------------------------------------------------------------------- */

/* Tells a user at a terminal why nothing happens. */
static void
waiting(const char *value, void *arg)
{
	struct locked *r = arg;
	char *holder;

	if (!isatty(STDERR_FILENO))
		return;
	holder = locks_holder(value, strlen(value));
	ctl_note("waiting for lock %s, held by %s", r->opt.name, holder);
	free(holder);
}

static void
refused(enum lock_refusal refusal, enum reply_error error, const char *text, void *arg)
{
	struct locked *r = arg;
	char *holder;

	switch (refusal) {
	case LOCK_BUSY:
		holder = locks_holder(text, strlen(text));
		ctl_error(r->ctl, EX_TEMPFAIL, "lock %s is held by %s", r->opt.name, holder);
		free(holder);
		break;
	case LOCK_DOWN:
		ctl_unreachable(r->ctl, text);
		break;
	case LOCK_REFUSED:
		ctl_error(r->ctl, ask_status(error), "lock %s: %s", r->opt.name, text);
		break;
	}
	loop_stop(r->loop);
}

static void
ending(const char *why, usec_t left, void *arg)
{
	struct locked *r = arg;

	ctl_error(r->ctl, EX_LOST, "lock %s is lost: %s; ending the command", r->opt.name, why);
	r->ending = true;
	(void)descendants_kill(SIGTERM);
	(void)child_kill(&r->child, SIGTERM);
	/* A stopped process would not act on SIGTERM. */
	(void)descendants_kill(SIGCONT);
	timer_set(&r->kill, left);
}

/* -- signals -------------------------------------------------------------------- */

/*
 * Before the command runs, a signal ends rqctl.  Later rqctl passes it on, unless it came
 * from the kernel: a terminal sends its signals to the command too.
 */
static void
take_signal(struct locked *r, const struct signalfd_siginfo *si)
{
	int signo = (int)si->ssi_signo;

	if (r->child.pid != 0) {
		if (si->ssi_code <= 0)
			(void)child_kill(&r->child, signo);
	} else if (!r->exited && r->ctl->status == 0) {
		r->ctl->status = 128 + signo;
		lock_release(r->lock);
	}
}

static void
on_signals(int what, void *arg)
{
	struct locked *r = arg;
	struct signalfd_siginfo si;

	(void)what;
	while (read(r->signal_fd, &si, sizeof(si)) == sizeof(si))
		take_signal(r, &si);
}

/* A signal that is ignored stays ignored: signalfd does not get it. */
static void
watch_signals(struct locked *r)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
	    SIGALRM };
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < ARRAY_LEN(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, &r->old_mask);
	r->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (r->signal_fd == -1)
		fatal_os("signalfd: %s", strerror(errno));
	io_init(&r->signals, r->loop, r->signal_fd, IO_READ, on_signals, r);
	io_start(&r->signals);
}

static void
unwatch_signals(struct locked *r)
{
	io_done(&r->signals);
	close(r->signal_fd);
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
}

/* -- the verb ------------------------------------------------------------------- */

static int
read_options(struct ctl *c, struct lock_options *o)
{
	*o = (struct lock_options){ .name = c->args.words[0], .ttl = TTL_DEFAULT, .wait = -1 };
	if (ctl_duration(c, OPT_LOCK_WAIT, &o->wait) == -1 ||
	    ctl_duration(c, OPT_TTL, &o->ttl) == -1)
		return -1;
	if (o->ttl < TTL_MIN || o->ttl > TTL_MAX)
		return ctl_error(c, EX_USAGE, "--ttl: \"%s\" is not from 1s to 1d",
		    ctl_value(c, OPT_TTL));
	if (o->name[0] == '\0')
		return ctl_error(c, EX_USAGE, "the name of the lock is empty");
	o->grace = o->ttl / 3 < GRACE_MAX ? o->ttl / 3 : GRACE_MAX;
	return 0;
}

void
lock_run(struct ctl *c)
{
	static const struct lock_events events = {
		.waiting = waiting, .held = held, .refused = refused, .ending = ending,
		.released = released
	};
	struct locked r = { .ctl = c, .argv = (char *const *)(uintptr_t)(c->args.words + 1) };
	char *who;

	if (read_options(c, &r.opt) == -1)
		return;
	r.opt.who = who = locks_self();
	r.loop = loop_new();
	watch_signals(&r);		/* first: its mask is the one for the command */
	child_init(r.loop);
	timer_init(&r.kill, r.loop, kill_all, &r);
	r.lock = lock_new(r.loop, &c->config->redis, &r.opt, &events, &r);
	loop_run(r.loop);
	lock_free(r.lock);
	unwatch_signals(&r);
	child_done(r.loop);
	loop_free(r.loop);
	free(who);
}
