/*
 * The launcher's own process; launcher.h describes it.
 *
 * It waits for orders, for its guardian, and for the process that reads the
 * configuration.  Reading looks at files and asks name services, which may take any
 * time.  So a process of its own does it, and handlers are started meanwhile.
 *
 * It trusts nothing from the main process.  An order can only name things that the
 * launcher has: a queue of a generation, a slot, a file of the configuration, a child
 * of the main process.  A pid counts only after a look at its parent.
 */
#include "handler/launcher_serve.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/capability.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "handler/command.h"
#include "handler/generations.h"
#include "handler/guardian.h"
#include "handler/launch_wire.h"
#include "loop/proc.h"

#define LOAD_PATIENCE	MINUTE
#define RESTART_PAUSE	SEC
#define LOOKS		16		/* attempts, while members of a group come and go */
#define ANCESTORS	1000
#define TURN		64		/* orders in a row, before all other work */

struct launcher_process {
	const struct launcher_ops *ops;
	void			*arg;
	pid_t			 main;		/* our parent */
	int			 main_fd;	/* readable when it has ended; -1: old kernel */
	int			 orders;
	int			 files;
	int			 signals;	/* SIGCHLD */
	struct launch_slot	*slots;		/* it trusts only `done` */
	struct guardian_table	*table;
	pid_t			 guardian;	/* 0: none at this moment */
	int			 guardian_fd;
	usec_t			 guardian_started;
	struct generations	 generations;
	pid_t			 loader;	/* 0: no load */
	usec_t			 loader_until;
	int			 text;		/* of the load; valid while loader is not 0 */
	int			 report;
};

static char	 datagram[sizeof(struct launch_head) + LAUNCH_BYTES + 1];

/* -- what it may do ------------------------------------------------------------------------ */

#define CAP_BIT(cap)	((uint64_t)1 << (cap))

static const uint64_t capabilities = CAP_BIT(CAP_SETUID) | CAP_BIT(CAP_SETGID) |
    CAP_BIT(CAP_KILL) | CAP_BIT(CAP_DAC_READ_SEARCH) | CAP_BIT(CAP_SYS_RESOURCE) |
    CAP_BIT(CAP_SYS_NICE);

/* Keeps only the capabilities that the launcher needs; children of other users have none. */
static void
limit_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &head, data) == -1)
		fatal_os("capget: %s", strerror(errno));
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(capabilities >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &head, data) == -1)
		fatal_os("capset: %s", strerror(errno));
}

/* Becomes root: only root can send signals to a process of root. */
static void
settle_in(void)
{
	(void)setsid();
	(void)prctl(PR_SET_NAME, "rqd-launcher");
	if (geteuid() != 0 && setresuid(0, 0, 0) == -1)
		fatal_os("the launcher cannot become root: %s", strerror(errno));
	limit_capabilities();
	(void)prctl(PR_SET_DUMPABLE, 0);
}

/* -- the guardian ---------------------------------------------------------------------------- */

static void
start_guardian(struct launcher_process *l)
{
	pid_t pid = guardian_fork(l->table, &l->guardian_fd);

	l->guardian_started = clock_mono();
	if (pid != -1)
		l->guardian = pid;
}

/* The main process has ended: kills all sessions, and ends. */
static NORETURN void
end(struct launcher_process *l)
{
	if (l->loader != 0)
		(void)kill(l->loader, SIGKILL);
	l->ops->unlisten();
	if (l->guardian == 0)
		start_guardian(l);
	if (l->guardian != 0) {
		(void)close(l->guardian_fd);
		(void)TEMP_FAILURE_RETRY(waitpid(l->guardian, NULL, 0));
	}
	_exit(EX_OK);
}

static NORETURN void
refuse(struct launcher_process *l, const char *what)
{
	fprintf(stderr, "rqd: launcher: %s: the main process breaks the protocol: the launcher "
	    "ends\n", what);
	end(l);
}

/* -- replies ----------------------------------------------------------------------------------- */

/* Waits while the socket is full.  turn() notices if the main process has ended. */
static void
reply(int fd, struct launch_reply *r, const int *fds, size_t nfds)
{
	if (launch_send(fd, r, sizeof(*r), fds, nfds, 0) == -1 && errno == ENOBUFS)
		fputs("rqd: launcher: the kernel has no memory for a reply\n", stderr);
}

static void
fail_start(struct launcher_process *l, const struct launch_order *o, int error,
    enum spawn_step step)
{
	struct launch_reply r = { .answer = LAUNCH_FAILED, .slot = o->head.slot,
	    .error = error, .step = (int32_t)step };

	reply(l->orders, &r, NULL, 0);
}

/* -- configurations ------------------------------------------------------------------- */

/*
 * Closes the sockets first: held open, they would hide the launcher's end from the
 * other processes.
 */
static NORETURN void
run_load(struct launcher_process *l)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)close(l->orders);
	(void)close(l->files);
	if (l->guardian != 0)
		(void)close(l->guardian_fd);
	_exit(l->ops->load(l->text, l->report, l->arg) == 0 ? EX_OK : EX_CONFIG);
}

static void
begin_load(struct launcher_process *l)
{
	if (l->loader != 0)
		refuse(l, "a load during a load");
	l->text = memfd_create("rqd-config", MFD_CLOEXEC);
	l->report = memfd_create("rqd-report", MFD_CLOEXEC);
	l->loader = l->text != -1 && l->report != -1 ? fork() : -1;
	if (l->loader == 0)
		run_load(l);
	l->loader_until = clock_mono() + LOAD_PATIENCE;
	if (l->loader == -1)
		l->loader_until = 0;
}

static void
end_load(struct launcher_process *l, bool good, int error)
{
	struct launch_reply r = { .answer = LAUNCH_LOADED, .error = error };
	int fds[2] = { l->report, l->text };
	size_t nfds = l->report == -1 ? 0 : 1;
	struct config *config = good ? l->ops->read(l->text, l->arg) : NULL;

	l->loader = 0;
	if (good) {
		r.generation = config != NULL ? generations_add(&l->generations, config) : 0;
		r.error = r.generation == 0 ? EINVAL : 0;
		nfds = r.generation == 0 ? 1 : 2;
	}
	reply(l->orders, &r, fds, nfds);
	fd_close(&l->text);
	fd_close(&l->report);
}

static void
check_load(struct launcher_process *l)
{
	if (l->loader == 0 || clock_mono() < l->loader_until)
		return;
	if (l->loader > 0) {
		(void)kill(l->loader, SIGKILL);
		(void)TEMP_FAILURE_RETRY(waitpid(l->loader, NULL, 0));
	}
	end_load(l, false, l->loader > 0 ? ETIMEDOUT : EAGAIN);
}

/* -- files ---------------------------------------------------------------------------- */

/* Opens the file or socket that the configuration of that generation names. */
static int
open_configured(struct launcher_process *l, int (*open_it)(const struct config *),
    unsigned generation)
{
	const struct config *config = generations_config(&l->generations, generation);

	if (config != NULL)
		return open_it(config);
	errno = EINVAL;
	return -1;
}

static int
open_ordered(struct launcher_process *l, const struct launch_order *o, const char *path)
{
	if (o->head.op == LAUNCH_LOG)
		return open_configured(l, l->ops->open_log, o->head.generation);
	if (o->head.op == LAUNCH_LISTEN)
		return open_configured(l, l->ops->listen, o->head.generation);
	return generations_open(&l->generations, path);
}

static void
open_file(struct launcher_process *l, const struct launch_order *o)
{
	struct launch_reply r = { .answer = LAUNCH_OPENED };
	char *path = xstrndup(o->bytes, o->head.size);
	int fd = open_ordered(l, o, path);

	r.error = fd == -1 ? errno : 0;
	reply(l->files, &r, &fd, fd == -1 ? 0 : 1);
	fd_close(&fd);
	free(path);
}

/* -- processes ------------------------------------------------------------------------ */

enum descent { NO, YES, GONE };

/* The parent of a process; 0: there is no such process. */
static pid_t
parent_of(pid_t pid)
{
	struct proc_stat st;

	return proc_stat_read(pid, &st) ? st.parent : 0;
}

/* Whether pid descends from root; GONE: a process on the way has ended meanwhile. */
static enum descent
descends(pid_t root, pid_t pid)
{
	struct proc_stat st;

	for (int i = 0; pid > 0 && i < ANCESTORS; i++) {
		if (pid == root)
			return YES;
		if (!proc_stat_read(pid, &st))
			return GONE;
		pid = st.parent;
	}
	return NO;
}

/* The same for a group; GONE: no process of it lived long enough. */
static enum descent
look(pid_t root, pid_t group)
{
	DIR *dir = opendir("/proc");
	enum descent is = GONE;
	struct proc_stat st;
	struct dirent *d;
	pid_t pid;

	while (is == GONE && dir != NULL && (d = readdir(dir)) != NULL) {
		pid = atoi(d->d_name);
		if (pid > 0 && proc_stat_read(pid, &st) && st.group == group)
			is = descends(root, pid);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return is;
}

/*
 * Whether the processes of this group, whose leader is gone, descend from root.  A
 * group belongs to one session, so one of its processes is enough.  Also true if /proc
 * hides the processes.  If a process ends between two looks, the whole look is
 * repeated.
 */
static bool
has_group(pid_t root, pid_t group)
{
	enum descent is = GONE;

	for (int i = 0; is == GONE && i < LOOKS; i++) {
		if (kill(-group, 0) == -1)
			return false;
		is = look(root, group);
	}
	return is == YES || (is == GONE && parent_of(root) == 0);
}

/*
 * The leader of a session that the launcher started is a child of the main process.
 * After it was reaped, its number stays taken while its group has members.  When the
 * group has ended, too, the number may belong to another process.
 */
static void
send_signal(struct launcher_process *l, const struct launch_order *o)
{
	pid_t sid = *guardian_table_slot(l->table, o->head.slot), parent;
	int signo = (int)o->head.value;

	if (sid <= 1)
		return;
	parent = parent_of(sid);
	if (parent != 0 ? parent != l->main : !has_group(l->main, sid))
		return;
	/* The group may not exist yet: the child makes it. */
	if (kill(-sid, signo) == -1 && parent != 0)
		(void)kill(sid, signo);
}

/*
 * Kills the group of a leftover: a process that lost its parent, and so became a child
 * of the main process.
 */
static void
end_child(struct launcher_process *l, pid_t pid)
{
	pid_t group = getpgid(pid), session = getsid(pid);

	if (parent_of(pid) != l->main || pid == getpid() || session == getsid(0) ||
	    session == getsid(l->main) || group <= 1)
		return;
	(void)kill(-group, SIGKILL);
}

static void
start(struct launcher_process *l, const struct launch_order *o, const int *fds)
{
	struct command *c = generations_command(&l->generations, o->head.generation,
	    o->head.queue);
	volatile pid_t *slot = guardian_table_slot(l->table, o->head.slot);
	struct launch_slot *shared = &l->slots[o->head.slot];
	struct launch_reply hello = { .answer = LAUNCH_STARTED, .slot = o->head.slot };
	struct spawn_proxy proxy = { .socket = l->orders, .message = &hello,
	    .size = sizeof(hello), .pid_at = offsetof(struct launch_reply, pid),
	    .report = &shared->report };
	enum spawn_step step = STEP_LAUNCHER;
	int fd[SPAWN_FDS];		/* by the child's numbers */

	if (c == NULL || (*slot != 0 && shared->done == 0)) {
		fail_start(l, o, EINVAL, step);
		return;
	}
	*slot = 0;
	shared->done = 0;
	for (int i = 0; i < SPAWN_FDS; i++)
		fd[i] = (o->head.value & 1U << i) != 0 ? *fds++ : -1;
	guardian_table_note(l->table, o->head.slot);
	if (command_spawn(c, (char *)(uintptr_t)o->bytes, o->head.size, fd, slot, &proxy,
	    &step) == -1)
		fail_start(l, o, errno, step);
	guardian_table_note(l->table, o->head.slot);
}

/* -- orders --------------------------------------------------------------------------- */

static void
obey(struct launcher_process *l, const struct launch_order *o, const int *fds)
{
	switch ((enum launch_op)o->head.op) {
	case LAUNCH_START:
		start(l, o, fds);
		break;
	case LAUNCH_SIGNAL:
		send_signal(l, o);
		break;
	case LAUNCH_END:
		end_child(l, (pid_t)o->head.value);
		break;
	case LAUNCH_LOAD:
		begin_load(l);
		break;
	case LAUNCH_RETIRE:
		generations_retire(&l->generations, o->head.generation);
		break;
	case LAUNCH_FILE:
	case LAUNCH_LOG:
	case LAUNCH_LISTEN:
		open_file(l, o);
		break;
	case LAUNCH_UNLISTEN:
		l->ops->unlisten();
		break;
	}
}

/* Takes one order; false: there is none now. */
static bool
take_order(struct launcher_process *l, int fd)
{
	int fds[LAUNCH_FDS];
	struct launch_order o;
	size_t nfds;
	ssize_t n;

	n = launch_receive(fd, datagram, sizeof(datagram), fds, &nfds, MSG_DONTWAIT);
	if (n == -1 && errno == EAGAIN)
		return false;
	if (n == 0 || (n == -1 && errno == ECONNRESET))
		end(l);
	if (n == -1 || launch_parse(datagram, (size_t)n, nfds, &o) == -1 ||
	    LAUNCH_IS_FOR_FILES(o.head.op) != (fd == l->files))
		refuse(l, "a wrong order");
	obey(l, &o, fds);
	fd_close_all(fds, nfds);
	return true;
}

static void
reap(struct launcher_process *l)
{
	struct signalfd_siginfo si;
	int status;
	pid_t pid;

	(void)!read(l->signals, &si, sizeof(si));
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == l->guardian) {
			(void)close(l->guardian_fd);
			l->guardian = 0;
		} else if (pid == l->loader) {
			end_load(l, WIFEXITED(status) && WEXITSTATUS(status) == EX_OK,
			    WIFEXITED(status) ? 0 : EIO);
		}
	}
}

/* The timeout for poll(2), in milliseconds; -1: wait only for orders. */
static int
patience(const struct launcher_process *l)
{
	usec_t now = clock_mono(), until = 0;

	if (l->loader != 0)
		until = l->loader_until;
	if (l->guardian == 0 && (until == 0 || until > l->guardian_started + RESTART_PAUSE))
		until = l->guardian_started + RESTART_PAUSE;
	if (l->loader == 0 && l->guardian != 0)
		return -1;
	return until <= now ? 0 : (int)((until - now) / MSEC) + 1;
}

static void
turn(struct launcher_process *l)
{
	struct pollfd p[] = {
		{ .fd = l->files, .events = POLLIN }, { .fd = l->orders, .events = POLLIN },
		{ .fd = l->signals, .events = POLLIN }, { .fd = l->main_fd, .events = POLLIN },
	};

	if (poll(p, ARRAY_LEN(p), patience(l)) == -1)
		return;
	/* If the main process was taken over, another process may still hold its sockets. */
	if (p[3].revents != 0)
		end(l);
	if (p[0].revents != 0)
		(void)take_order(l, l->files);
	for (int i = 0; p[1].revents != 0 && i < TURN && take_order(l, l->orders); i++)
		continue;
	if (p[2].revents != 0)
		reap(l);
	check_load(l);
	if (l->guardian == 0 && clock_mono() >= l->guardian_started + RESTART_PAUSE)
		start_guardian(l);
}

static int
listen_to_children(void)
{
	sigset_t set;
	int fd;

	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd == -1)
		fatal_os("the launcher cannot watch its children: %s", strerror(errno));
	return fd;
}

/* All signals are blocked, and stay so: only SIGKILL ends the launcher early. */
void
launcher_serve(int orders, int files, struct launch_slot *slots, const struct launcher_ops *ops,
    void *arg)
{
	struct launcher_process l = { .ops = ops, .arg = arg, .main = getppid(),
	    .orders = orders, .files = files, .slots = slots };

	settle_in();
	l.main_fd = (int)syscall(SYS_pidfd_open, l.main, 0);
	l.signals = listen_to_children();
	l.table = guardian_table_new(slots);
	start_guardian(&l);
	for (;;)
		turn(&l);
}
