/*
 * rqctl lock: runs a command under a lock, as flock(1) does.  One loop serves the lock
 * (rqctl/lock.h) and the command, so neither waits for a Redis that hangs.  The command stays in
 * rqctl's process group, with its terminal and descriptors.  The terminal sends its signals to
 * the command, too; rqctl passes on a signal that was sent to rqctl alone.
 *
 * When the lock is lost or about to expire, the command and all that it has started get
 * SIGTERM, and SIGKILL a grace later.  rqctl finds processes that the command left behind
 * because they become its children (loop/proc.h).  If rqctl is killed, the kernel
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
#include "loop/proc.h"
#include "loop/io.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "rqctl/ask.h"
#include "rqctl/lock.h"


#define TTL_DEFAULT	(30 * SEC)
#define TTL_MIN		(1 * SEC)
#define TTL_MAX		(24 * HOUR)
#define GRACE_MAX	(5 * SEC)
#define KILL_AGAIN	(50 * MSEC)
#define KILLS_MAX	100

#define EX_LOST		76		/* EX_PROTOCOL */

/* -- lock ------------------------------------------------------------------------- */

struct locked {
	struct ctl	*ctl;
	struct loop	*loop;
	struct lock	*lock;
	struct lock_options opt;
	char *const	*argv;
	struct child	 child;
	bool		 exited;	/* the command has exited; status is valid */
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

/* Sends SIGKILL to all processes of the command; repeats it until none is left. */
static void
kill_all(void *arg)
{
	struct locked *r = arg;
	unsigned left = proc_kill_below(SIGKILL);

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
	r->status = x->code;
	if (x->signaled)
		r->status += 128;
	/* When the lock is lost, no process may continue. */
	if (!r->ending || proc_kill_below(SIGTERM) == 0)
		finish(r);
}

/* The exit status when a command cannot be executed, as of a shell. */
static int
unexecuted_status(int error)
{
	if (error == ENOENT)
		return 127;
	return 126;
}

/* Runs in the child: executes the command, or writes errno to `report`. */
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
	_exit(unexecuted_status(error));
}

static void
held(void *arg)
{
	struct locked *r = arg;
	pid_t parent = getpid(), pid = -1;
	int fd[2], error;

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
	child_watch(&r->child, pid);
	/* Why the command could not be executed, if so; the child exits by itself. */
	if (read(fd[0], &error, sizeof(error)) == sizeof(error))
		ctl_error(r->ctl, unexecuted_status(error), "%s: %s",
		    r->argv[0], strerror(error));
	close(fd[0]);
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
	holder = lock_holder_text(value);
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
		holder = lock_holder_text(text);
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
	(void)proc_kill_below(SIGTERM);
	(void)child_kill(&r->child, SIGTERM);
	/* A stopped process would not act on SIGTERM. */
	(void)proc_kill_below(SIGCONT);
	timer_set(&r->kill, left);
}

/* -- signals -------------------------------------------------------------------- */

/*
 * Before the command runs, a signal ends rqctl.  Later rqctl passes it on, unless it came
 * from the kernel: a terminal sends its signals to the command too.
 */
static void
on_signals(int what UNUSED, void *arg)
{
	struct locked *r = arg;
	struct signalfd_siginfo si;

	while (read(r->signal_fd, &si, sizeof(si)) == sizeof(si))
		if (r->child.pid != 0) {
			if (si.ssi_code <= 0)
				(void)child_kill(&r->child, (int)si.ssi_signo);
		} else if (!r->exited && r->ctl->status == 0) {
			r->ctl->status = 128 + (int)si.ssi_signo;
			lock_release(r->lock);
		}
}

/* -- the verb ------------------------------------------------------------------- */

static void
lock_run(struct ctl *c)
{
	static const struct lock_events events = {
		.waiting = waiting, .held = held, .refused = refused, .ending = ending,
		.released = released
	};
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
	    SIGALRM };
	struct locked r = { .ctl = c, .argv = (char *const *)(uintptr_t)(c->args.words + 1),
		.opt = { .name = c->args.words[0], .ttl = TTL_DEFAULT, .wait = -1 } };
	char *host, *who;
	sigset_t set;

	if (ctl_duration(c, OPT_LOCK_WAIT, &r.opt.wait) == -1 ||
	    ctl_duration(c, OPT_TTL, &r.opt.ttl) == -1)
		return;
	if (r.opt.ttl < TTL_MIN || r.opt.ttl > TTL_MAX)
		ctl_error(c, EX_USAGE, "--ttl: \"%s\" is not from 1s to 1d",
		    ctl_value(c, OPT_TTL));
	else if (r.opt.name[0] == '\0')
		ctl_error(c, EX_USAGE, "the name of the lock is empty");
	if (c->status != 0)
		return;
	r.opt.grace = int64_min(r.opt.ttl / 3, GRACE_MAX);
	host = xstrdup(util_hostname());
	ctl_make_plain(host, "._-");
	r.opt.who = who = xasprintf("%s %ld", host, (long)getpid());
	free(host);
	r.loop = loop_new();
	/*
	 * First, because the old mask is the one for the command.  signalfd does not receive
	 * ignored signals: under nohup rqctl still ignores SIGHUP.
	 */
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, &r.old_mask);
	r.signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (r.signal_fd == -1)
		fatal_os("signalfd: %s", strerror(errno));
	io_init(&r.signals, r.loop, r.signal_fd, IO_READ, on_signals, &r);
	io_start(&r.signals);
	child_init(r.loop);
	timer_init(&r.kill, r.loop, kill_all, &r);
	r.lock = lock_new(r.loop, &c->config->redis, &r.opt, &events, &r);
	loop_run(r.loop);
	lock_free(r.lock);
	io_done(&r.signals);
	close(r.signal_fd);
	sigprocmask(SIG_SETMASK, &r.old_mask, NULL);
	child_done(r.loop);
	loop_free(r.loop);
	free(who);
}

const struct verb verb_lock = {
	.name = "lock",
	.args = "NAME -- COMMAND...",
	.help = "run a command while holding a lock in Redis",
	.more = "Waits until the lock is free. Exits with the command's "
	    "status; with 75 if the lock was not free in time; with 76 if "
	    "the lock was lost while the command ran, which rqctl then "
	    "terminates.",
	.options = OPT(LOCK_WAIT) | OPT(TTL),
	.min_args = 2,
	.max_args = -1,
	.run = lock_run,
};
