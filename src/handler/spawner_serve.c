/*
 * The spawner's own process; spawner.h describes it.
 *
 * It waits for orders, for its children, and for the loader.  That looks at files and asks name
 * services, which may take any time; handlers are started meanwhile.  Where it has not found a
 * user or an env_file, the starts of the row fail, and the first of them begins another look-up
 * of what this generation lacks, at most one at a time, and each later than the one before.
 *
 * It trusts nothing from the main process.  An order can only name things that the
 * spawner has: a row of a generation, a slot, a file of the configuration.  Replies that
 * the main process does not read wait, and the spawner with them: it takes no more orders
 * and reaps nobody, but still notices the end of the main process.
 *
 * While other handlers run, a report waits a moment for others.  Then the main process has
 * fewer turns, and one call to Redis the results of several handlers.
 *
 * Handlers are its children.  waitid(WNOWAIT) shows a zombie; until it is reaped the kernel
 * does not reuse its number, so its group is killed safely.  The kernel shows the oldest child
 * first, and a handler may leave thousands, or some that fork and exit for ever.  So where a
 * turn meets more than a few such orphans, it asks for each handler by its number, and reaps
 * orphans for a moment only.
 *
 * Leftovers.  Processes in the group of a finished leader are killed at once.  All
 * others are, too, where the run has a cgroup (cgroup.h).  Where it has none, those in
 * another group of its session are found later: the session's number stays in a table for
 * some seconds.  When a parent dies, its children become those of the spawner, a subreaper.
 * A sweep looks at all children, and kills the ones of such a session.  A sweep follows the
 * exit of a leader and the exit of any orphan, whose own children come to us only then.
 * There are at most ten a second, and one at once where a handler was ended, or has failed:
 * its message may soon run elsewhere.
 */
#include "handler/spawner_wire.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/capability.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/listen_socket.h"
#include "base/log.h"
#include "base/trust.h"
#include "handler/cgroup.h"
#include "handler/privilege.h"
#include "handler/rows.h"
#include "loop/proc.h"

#define LOAD_PATIENCE	MINUTE
#define OPEN_PATIENCE	5		/* seconds */
#define FILE_COPY_MAX	((size_t)1024 * 1024)
#define LOOK_PAUSE_MIN	SEC
#define LOOK_PAUSE_MAX	MINUTE
#define TURN		64		/* orders, and zombies, before all other work */
#define ORPHANS		8		/* that a turn reaps before it looks for handlers */
#define ORPHANS_TIME	(5 * MSEC)	/* and for others, after that */
#define CHAINS		1024
#define GATHER		MSEC		/* an exit's report waits for others so long */
#define SWEEP_INTERVAL	(100 * MSEC)
#define LAST_SWEEPS	(5 * SEC)
#define LAST_PAUSE	MSEC
#define SESSIONS	32768U		/* more pids than a machine uses in SESSION_LIFE */
#define SESSION_LIFE	(10 * SEC)

struct slot {
	pid_t		 pid;		/* 0: free */
	bool		 keeps;		/* leftovers of its session */
	bool		 signalled;	/* by an order: it has no right to leftovers */
	struct cgroup	*cgroup;	/* NULL: none */
	LIST_ENTRY(slot) entry;		/* valid unless free */
};
LIST_HEAD(slot_list, slot);

/* A session whose leader has finished, and whose leftovers must be killed. */
struct session {
	pid_t	id;		/* 0: free */
	usec_t	until;		/* mono */
};

struct server {
	spawner_loader		*load;
	void			*arg;
	int			 main_fd;	/* readable when it has ended; -1: old kernel */
	int			 orders;
	int			 files;
	int			 signals;	/* SIGCHLD */
	struct rows		 rows;
	struct slot		*slots;		/* SPAWNER_SLOTS of them */
	size_t			 used;		/* those at and above were never used */
	struct slot_list	 by_pid[CHAINS];
	struct spawn_report	*reports;	/* by slot, shared with children */
	bool			 zombies;	/* there may be some, whatever SIGCHLD says */
	struct spawner_reply	 replies[SPAWNER_REPLIES];	/* to be sent */
	size_t			 nreplies;
	usec_t			 flush_at;	/* mono; valid unless there are none */
	unsigned		 running;	/* handlers */
	/* The load. */
	pid_t			 loader;	/* 0: none; -1: it could not be forked */
	usec_t			 loader_until;
	int			 loader_error;	/* why it could not be forked; ETIMEDOUT */
	int			 config;	/* the loader's file; -1: none */
	int			 file;		/* for the rows */
	unsigned		 looks_for;	/* the generation; 0: it is a load */
	usec_t			 look_at;	/* mono: the next is not before */
	usec_t			 look_pause;
	int			 loaded;	/* the descriptor beside the replies; -1: none */
	/* The sweep. */
	bool			 hurry;		/* in reap_some(): before the replies are sent */
	usec_t			 sweep_at;	/* mono; 0: none */
	usec_t			 swept_at;
	usec_t			 finished_until;	/* of the last session remembered */
};

static struct server s;
static struct session sessions[SESSIONS];	/* by the remainder of the id */
static _Alignas(8) char	 datagram[sizeof(struct spawner_order) + SPAWNER_BYTES + 1];

/* -- what it may do ------------------------------------------------------------------ */

/*
 * Of other users' children, which have none.  The others stay permitted: the kernel would not
 * kill root's handlers with us if execve(2) gave them more than we have.
 */
static const uint32_t capabilities = 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_KILL |
    1U << CAP_DAC_READ_SEARCH | 1U << CAP_SYS_RESOURCE | 1U << CAP_SYS_NICE;

/* -- files ---------------------------------------------------------------------------- */

/*
 * A copy for the main process, or -1 with errno: it may write to that, and no server of files
 * can stop it.
 */
static int
copy_file(int from, size_t max)
{
	struct buf b = BUF_INIT;
	int to = -1;

	if (from != -1 && buf_read(&b, from, max) == 0)
		to = memfd_create("rqd-file", MFD_CLOEXEC);
	if (to != -1 && fd_write_at(to, b.data, b.len, 0) == -1)
		fd_close(&to);
	buf_done(&b);
	return to;
}

/* As root, for the main process.  A descriptor, or -1 with errno; LEND_REMOVE has none: 0. */
static int
open_path(enum lend how, const char *path)
{
	struct listen_socket l;
	char *where;
	int r;

	if (trust_folders(path, 0, NULL) == -1)
		return -1;
	switch (how) {
	case LEND_CONNECT:
		/* Does not wait: a server whose backlog is full refuses.  It sees root. */
		return fd_connect(SOCK_STREAM, path);
	case LEND_LOG:
		return log_open_file(path);
	case LEND_LISTEN:
		where = xasprintf("unix:%s", path);
		r = listen_socket_open(&l, where, NULL);
		free(where);
		return r == 0 ? l.fd : -1;
	case LEND_REMOVE:
		return listen_socket_remove(path);
	case LEND_READ:
		break;
	}
	return copy_file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), FILE_COPY_MAX);
}

/* -- the end ------------------------------------------------------------------------- */

/*
 * The main process has ended: kills everything below, and ends.  Who loses a parent comes to
 * us, so it repeats that until nobody is left.
 */
static NORETURN void
end(void)
{
	const struct timespec pause = { .tv_nsec = LAST_PAUSE * 1000 };
	usec_t until = clock_mono() + LAST_SWEEPS;
	pid_t pid;

	cgroup_kill_runs();
	for (size_t i = 0; i < s.used; i++) {
		if (s.slots[i].pid != 0)
			(void)kill(-s.slots[i].pid, SIGKILL);
	}
	/* A chain of forks may show no living child for a moment: ECHILD alone says the end. */
	do {
		if (proc_kill_below(SIGKILL) == 0)
			(void)nanosleep(&pause, NULL);
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			continue;
	} while (pid == 0 && clock_mono() < until);
	cgroup_close();
	_exit(EX_OK);
}

static NORETURN void
refuse(const char *what)
{
	fprintf(stderr, "rqd: spawner: %s: the main process breaks the protocol: the spawner "
	    "ends\n", what);
	end();
}

/* -- replies ------------------------------------------------------------------------- */

static bool
has_room(void)
{
	return s.nreplies < SPAWNER_REPLIES;
}

static void
flush(void)
{
	if (s.nreplies == 0 || (s.flush_at > clock_mono() && has_room()))
		return;
	if (spawner_send(s.orders, s.replies, s.nreplies * sizeof(*s.replies), &s.loaded,
	    s.loaded != -1, MSG_DONTWAIT) == -1) {
		if (errno == EPIPE || errno == ECONNRESET)
			end();
		return;		/* it is full, or the kernel short of memory */
	}
	s.nreplies = 0;
	fd_close(&s.loaded);
}

/* Callers have made sure that there is room. */
static void
reply(struct spawner_reply r)
{
	bool waits = s.running > 0 && (r.answer == SPAWNER_STARTED || r.answer == SPAWNER_EXITED);
	usec_t at = 0;

	if (waits && r.answer == SPAWNER_STARTED)
		at = clock_mono() + 10 * GATHER;
	else if (waits)
		at = clock_mono() + GATHER;
	if (s.nreplies == 0 || s.flush_at > at)
		s.flush_at = at;
	s.replies[s.nreplies++] = r;
}

/* -- configurations ------------------------------------------------------------------ */

/* Begins a load; or looks again for what the starts of a generation lack. */
static void
begin_load(unsigned generation)
{
	s.looks_for = generation;
	s.config = generation == 0 ? memfd_create("rqd-config", MFD_CLOEXEC) :
	    fcntl(rows_generation(&s.rows, generation)->text, F_DUPFD_CLOEXEC, 3);
	s.file = memfd_create("rqd-rows", MFD_CLOEXEC);
	s.loader = s.config != -1 && s.file != -1 ? fork() : -1;
	if (s.loader == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
		/* Held open, the sockets would hide the spawner's end from the main process. */
		(void)close(s.orders);
		(void)close(s.files);
		_exit(s.load(s.config, s.file, &s.rows, generation, s.arg) ? EX_OK : EX_CONFIG);
	}
	s.loader_error = s.loader == -1 ? errno : ETIMEDOUT;
	s.loader_until = s.loader == -1 ? 0 : clock_mono() + LOAD_PATIENCE;
}

/* Callers have made sure that there is room for a reply. */
static void
end_load(bool good, int error)
{
	struct spawner_reply r = { .answer = SPAWNER_LOADED, .error = error };
	struct generation *g = rows_generation(&s.rows, s.looks_for);

	s.loader = 0;
	if (s.looks_for != 0) {
		if (good && g != NULL)
			(void)!rows_update(g, s.file);
		if (s.look_pause == 0)
			s.look_pause = LOOK_PAUSE_MIN;
		else
			s.look_pause = int64_min(s.look_pause * 2,
			    LOOK_PAUSE_MAX);
		s.look_at = clock_mono() + s.look_pause;
	} else {
		s.look_at = s.look_pause = 0;
		/* A later look-up reads ours as root. */
		s.loaded = lseek(s.config, 0, SEEK_SET) == 0 ? copy_file(s.config, SIZE_MAX) : -1;
		if (good && s.loaded == -1) {
			r.error = errno;
		} else if (good) {
			r.generation = rows_add(&s.rows, s.file, s.config);
			r.error = r.generation == 0 ? EINVAL : 0;
			s.config = -1;
		}
		reply(r);
	}
	fd_close(&s.config);
	fd_close(&s.file);
}

/* A look-up gives way to a load; it is reaped like any other orphan. */
static void
order_load(void)
{
	if (s.loaded != -1 || (s.loader != 0 && s.looks_for == 0))
		refuse("a load during a load");
	if (s.loader > 0)
		(void)kill(s.loader, SIGKILL);
	fd_close(&s.config);
	fd_close(&s.file);
	begin_load(0);
}

static void
check_load(void)
{
	if (s.loader == 0 || clock_mono() < s.loader_until || !has_room())
		return;
	/* It is reaped like any other: if it hangs in the kernel, nobody waits for it. */
	if (s.loader > 0)
		(void)kill(s.loader, SIGKILL);
	end_load(false, s.loader_error);
}

/* A child opens it, because that may take any time; the main process waits for the child. */
static void
open_file(const struct spawner_order *o)
{
	struct spawner_reply r = { .answer = SPAWNER_OPENED, .slot = o->slot, .error = EACCES };
	char *file = xstrndup(o->bytes, o->size);
	bool named = rows_name_file(&s.rows, file);
	pid_t pid = named ? fork() : -1;
	enum lend how = (enum lend)file[0];
	sigset_t set;
	int fd = -1;

	if (pid == -1 && named)
		r.error = errno;
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)close(s.orders);
		/* SIGXFSZ stays blocked: a file that may not be so large is an error. */
		(void)sigemptyset(&set);
		(void)sigaddset(&set, SIGALRM);
		(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
		(void)alarm(OPEN_PATIENCE);
		fd = open_path(how, file + 1);
		r.error = fd == -1 ? errno : 0;
	}
	if (pid <= 0)
		(void)!spawner_send(s.files, &r, sizeof(r), &fd,
		    fd != -1 && how != LEND_REMOVE, MSG_DONTWAIT);
	if (pid == 0)
		_exit(EX_OK);
	free(file);
}

/* -- the sweep ----------------------------------------------------------------------- */

static struct slot *
find(pid_t pid)
{
	struct slot *slot;

	LIST_FOREACH(slot, &s.by_pid[(unsigned)pid % CHAINS], entry) {
		if (slot->pid == pid)
			return slot;
	}
	return NULL;
}

/* The place of a session, which it may share with a later one. */
static struct session *
session_of(pid_t id)
{
	return &sessions[(unsigned)id % SESSIONS];
}

/*
 * Kills the children of finished sessions, with their groups, which belong to the same
 * session.  A child cannot vanish between getsid() and kill(), because only we reap it.
 */
static void
sweep(void)
{
	usec_t now = clock_mono();
	const struct session *session;
	struct buf b = BUF_INIT;
	char *p, *rest;
	pid_t pid, id, group;

	s.sweep_at = 0;
	s.swept_at = now;
	if (s.finished_until <= now)
		return;
	proc_children(getpid(), &b);
	for (p = buf_str(&b); (pid = (pid_t)strtol(p, &rest, 10)) > 0; p = rest) {
		id = getsid(pid);
		session = session_of(id);
		if (id <= 0 || session->id != id || session->until <= now || find(pid) != NULL)
			continue;
		group = getpgid(pid);
		(void)kill(group > 1 ? -group : pid, SIGKILL);
	}
	buf_done(&b);
}

static void
want_sweep(void)
{
	usec_t now = clock_mono();

	if (s.sweep_at == 0 && s.finished_until > now)
		s.sweep_at = s.swept_at + SWEEP_INTERVAL > now ? s.swept_at + SWEEP_INTERVAL : now;
}

/* -- handlers ------------------------------------------------------------------------ */

static void
refuse_start(const struct spawner_order *o, int error, enum spawn_step step)
{
	reply((struct spawner_reply){ .answer = SPAWNER_EXITED, .slot = o->slot,
	    .error = error, .step = (int32_t)step });
}

static void
start(const struct spawner_order *o, const int *fds)
{
	const struct spawn_row *row = rows_find(&s.rows, o->generation, o->queue);
	struct slot *slot = &s.slots[o->slot];
	static struct buf words;
	struct cgroup *cgroup;
	int fd[SPAWN_FDS];		/* by the child's numbers */
	int dir;
	pid_t pid;

	if (slot->pid != 0 || row == NULL || (row->error == 0 && row->members != o->members)) {
		refuse_start(o, EINVAL, STEP_SPAWNER);
		return;
	}
	if (row->error != 0) {
		refuse_start(o, row->error, (enum spawn_step)row->step);
		if (s.loader == 0 && s.look_at <= clock_mono())
			begin_load(o->generation);
		return;
	}
	for (int i = 0; i < SPAWN_FDS; i++)
		fd[i] = (o->value & 1U << i) != 0 ? *fds++ : -1;
	buf_clear(&words);
	spawner_words(o, o->members > 0 ? rows_members(row) : NULL, &words);
	cgroup = cgroup_take(row->uid, row->memory_max, row->pids_max, &dir);
	if (cgroup == NULL && errno != 0 && (row->memory_max != 0 || row->pids_max != 0)) {
		refuse_start(o, errno, STEP_CGROUP);
		return;
	}
	pid = spawn_start(row, words.data, words.len, fd, dir, &s.reports[o->slot]);
	fd_close(&dir);
	if (pid == -1) {
		refuse_start(o, errno, STEP_CLONE);
		if (cgroup != NULL)
			cgroup_destroy(cgroup);
		return;
	}
	if (session_of(pid)->id == pid)		/* its number is this leader's now */
		session_of(pid)->id = 0;
	*slot = (struct slot){ .pid = pid, .keeps = row->keeps != 0, .cgroup = cgroup };
	LIST_INSERT_HEAD(&s.by_pid[(unsigned)pid % CHAINS], slot, entry);
	s.running++;
	if (o->slot >= s.used)
		s.used = o->slot + 1;
	reply((struct spawner_reply){ .answer = SPAWNER_STARTED, .slot = o->slot, .pid = pid });
	if (row->prompt != 0)
		s.flush_at = 0;
}

static void
send_signal(const struct spawner_order *o)
{
	struct slot *slot = &s.slots[o->slot];
	int signo = (int)o->value;

	if (slot->pid == 0)
		return;
	slot->signalled = true;
	/* The group may not exist yet: the child makes it. */
	if (kill(-slot->pid, signo) == -1)
		(void)kill(slot->pid, signo);
}

/* A zombie, not reaped yet; 0: there is none. */
static pid_t
next_zombie(idtype_t type, pid_t id)
{
	siginfo_t si = { .si_signo = 0 };

	return RETRY(waitid(type, (id_t)id, &si, WEXITED | WNOHANG | WNOWAIT)) == 0 ?
	    si.si_pid : 0;
}

static int
reap(pid_t pid, struct rusage *usage)
{
	int status = 0;

	(void)RETRY(wait4(pid, &status, 0, usage));
	return status;
}

/*
 * Processes of a finished leader's group that the kill has ended, and whether there are more
 * in it.  Processes that had finished before the kill do not count; they are reaped first.  The
 * signal that ended a process tells the two apart.
 */
static unsigned
count_killed(pid_t group, bool *more)
{
	unsigned found = 0;
	int status;
	pid_t pid;

	for (int i = 0; (*more = kill(-group, 0) == 0 || errno != ESRCH) && i < TURN; i++) {
		if ((pid = next_zombie(P_PGID, group)) == 0)
			break;
		status = reap(pid, NULL);
		found += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	}
	return found;
}

/* The handler's leader has become a zombie. */
static void
handler_over(struct slot *slot)
{
	const struct spawn_report *report = &s.reports[slot - s.slots];
	struct spawner_reply r = { .answer = SPAWNER_EXITED, .slot = (uint32_t)(slot - s.slots) };
	bool kills = !slot->keeps || slot->signalled, more;
	struct cgroup_end end = { .left = 0 };
	unsigned killed;
	struct rusage u = { .ru_maxrss = 0 };

	if (kills)
		(void)kill(-slot->pid, SIGKILL);
	r.status = reap(slot->pid, &u);
	r.usage.cpu = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * SEC + u.ru_utime.tv_usec +
	    u.ru_stime.tv_usec;
	r.usage.maxrss = (int64_t)u.ru_maxrss * 1024;
	killed = count_killed(slot->pid, &more);
	if (report->step != STEP_NONE) {
		r.error = report->error;
		r.step = report->step;
	}
	if (slot->cgroup != NULL) {
		end = cgroup_leave(slot->cgroup, kills, r.status != 0);
		r.oom = end.oom;
	} else if (kills) {
		s.finished_until = clock_mono() + SESSION_LIFE;
		*session_of(slot->pid) = (struct session){ slot->pid, s.finished_until };
	}
	r.leftovers = (uint16_t)((kills ? killed : 0) + end.left);
	if (more && end.left == 0)
		r.leftovers++;
	s.hurry |= slot->signalled || r.status != 0;
	LIST_REMOVE(slot, entry);
	s.running--;
	*slot = (struct slot){ 0 };
	reply(r);
}

/* Reaps handlers that have ended, wherever the kernel has them in its list. */
static void
reap_handlers(void)
{
	for (size_t i = 0; i < s.used && has_room(); i++) {
		if (s.slots[i].pid != 0 && next_zombie(P_PID, s.slots[i].pid) != 0)
			handler_over(&s.slots[i]);
	}
}

static void
reap_orphan(pid_t pid)
{
	int status = reap(pid, NULL);

	if (pid == s.loader)
		end_load(WIFEXITED(status) && WEXITSTATUS(status) == EX_OK,
		    WIFEXITED(status) ? 0 : EIO);
}

static void
reap_some(void)
{
	struct signalfd_siginfo si;
	usec_t until = USEC_MAX;
	unsigned orphans = 0;
	struct slot *slot;
	bool any = false;
	pid_t pid;

	(void)!read(s.signals, &si, sizeof(si));
	s.zombies = true;
	while (has_room() && (orphans < ORPHANS || clock_mono() < until)) {
		if ((pid = next_zombie(P_ALL, 0)) == 0) {
			s.zombies = false;
			break;
		}
		any = true;
		if ((slot = find(pid)) != NULL) {
			handler_over(slot);
			continue;
		}
		reap_orphan(pid);
		if (++orphans == ORPHANS) {
			reap_handlers();
			until = clock_mono() + ORPHANS_TIME;
		}
	}
	if (s.hurry)
		sweep();
	s.hurry = false;
	if (any)
		want_sweep();
}

/* -- orders -------------------------------------------------------------------------- */

/*
 * Whether all are pipes or files in memory, such as memfds.  The close(2) of others may wait:
 * of a socket for its peer, of a file for its server.  So may fstat(2); these calls ask nobody.
 */
static bool
are_plain(const int *fds, size_t nfds)
{
	for (size_t i = 0; i < nfds; i++) {
		if (fcntl(fds[i], F_GETPIPE_SZ) == -1 && fcntl(fds[i], F_GET_SEALS) == -1)
			return false;
	}
	return true;
}

/* Takes one order; false: there is none now, or the kernel is short of memory. */
static bool
take_order(int fd)
{
	const struct spawner_order *o = (const void *)datagram;
	int fds[SPAWNER_FDS];
	bool lost = false;
	size_t nfds;
	ssize_t n;

	n = spawner_receive(fd, datagram, sizeof(datagram), fds, &nfds, &lost, MSG_DONTWAIT);
	if (n == -1 && (errno == EAGAIN || errno == ENOMEM || errno == ENOBUFS))
		return false;
	if (n == 0 || (n == -1 && errno == ECONNRESET))
		end();
	if (n == -1)
		refuse(strerror(errno));
	/* Nothing is closed before: the end of a process does not wait. */
	if (!are_plain(fds, nfds))
		refuse("a descriptor that is neither a pipe nor in memory");
	/* What was lost counts as what it names. */
	if (!spawner_is_order(o, (size_t)n,
	    lost ? (size_t)__builtin_popcount(o->value) : nfds) ||
	    (o->op == SPAWNER_OPEN) != (fd == s.files) || (lost && o->op != SPAWNER_START))
		refuse("a wrong order");
	switch ((enum spawner_op)o->op) {
	case SPAWNER_START:
		if (lost)
			refuse_start(o, EMFILE, STEP_SPAWNER);
		else
			start(o, fds);
		break;
	case SPAWNER_SIGNAL:
		send_signal(o);
		break;
	case SPAWNER_LOAD:
		order_load();
		break;
	case SPAWNER_RETIRE:
		rows_retire(rows_generation(&s.rows, o->generation));
		break;
	case SPAWNER_OPEN:
		open_file(o);
		break;
	}
	fd_close_all(fds, nfds);
	return true;
}

static void
turn(void)
{
	struct pollfd p[] = {
		{ .fd = s.main_fd, .events = POLLIN }, { .fd = s.files, .events = POLLIN },
		{ .fd = s.orders, .events = POLLIN }, { .fd = s.signals, .events = POLLIN },
	};
	struct timespec ts;
	usec_t until = USEC_MAX, left;
	bool full;

	flush();
	full = s.nreplies > 0 && (s.flush_at <= clock_mono() || !has_room());
	if (full) {
		p[2].events = POLLOUT;
		p[1].fd = p[3].fd = -1;
	} else {		/* when to go on, whatever happens */
		if (s.loader != 0)
			until = s.loader_until;
		if (s.sweep_at != 0 && s.sweep_at < until)
			until = s.sweep_at;
		if (s.nreplies > 0 && s.flush_at < until)
			until = s.flush_at;
		if (s.zombies)
			until = 0;
	}
	left = until - clock_mono();
	if (left < 0)
		left = 0;
	ts = (struct timespec){ .tv_sec = left / SEC, .tv_nsec = left % SEC * 1000 };
	/* It needs as many descriptors as it looks at, and memory: without, we look at all. */
	if (ppoll(p, ARRAY_LEN(p), until != USEC_MAX ? &ts : NULL, NULL) == -1) {
		(void)nanosleep(&(struct timespec){ .tv_nsec = LAST_PAUSE * 1000 }, NULL);
		for (size_t i = 1; i < ARRAY_LEN(p); i++)
			p[i].revents = p[i].events;
	}
	/* If the main process was taken over, another process may still hold its sockets. */
	if (p[0].revents != 0)
		end();
	if (full)
		return;
	if (p[1].revents != 0)
		(void)take_order(s.files);
	if (p[3].revents != 0 || s.zombies)
		reap_some();
	for (int i = 0; p[2].revents != 0 && i < TURN && has_room() && take_order(s.orders); i++)
		continue;
	check_load();
	if (s.sweep_at != 0 && s.sweep_at <= clock_mono())
		sweep();
}

/*
 * Becomes root where it may: only root can send signals to a process of root.  Only SIGKILL
 * ends it early, since spawn_init() blocks all signals.
 */
void
spawner_serve(pid_t main, int orders, int files, spawner_loader *load, void *arg)
{
	sigset_t set;

	s = (struct server){ .load = load, .arg = arg, .orders = orders, .files = files,
	    .config = -1, .file = -1, .loaded = -1 };
	(void)setsid();
	(void)prctl(PR_SET_NAME, "rqd-spawner");
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	spawn_init(privilege_held());
	if (privilege_held()) {
		if (geteuid() != 0 && setresuid(0, 0, 0) == -1)
			fatal_os("the spawner cannot become root: %s", strerror(errno));
		if (privilege_limit(capabilities) == -1)
			fatal_os("capset: %s", strerror(errno));
	}
#ifndef RQD_SANITIZERS
	(void)prctl(PR_SET_DUMPABLE, 0);
#endif
	s.main_fd = (int)syscall(SYS_pidfd_open, main, 0);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	s.signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (s.signals == -1)
		fatal_os("the spawner cannot watch its children: %s", strerror(errno));
	s.slots = xcalloc(SPAWNER_SLOTS, sizeof(*s.slots));
	s.reports = mmap(NULL, SPAWNER_SLOTS * sizeof(*s.reports), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s.reports == MAP_FAILED)
		fatal_os("cannot map shared memory: %s", strerror(errno));
	for (;;)
		turn();
}
