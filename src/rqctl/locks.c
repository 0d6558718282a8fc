/*
 * rqctl locks, unlock, lock.
 *
 * locks lists the holders of locks; unlock breaks a lock.  Redis has no list of locks: each
 * key Lock:NAME is one.  So rqctl searches the names of all keys with SCAN, in steps that are
 * too short to block Redis.
 *
 * lock runs a command under a lock, as flock(1) does.  One loop serves the lock
 * (queue/lock.h) and the command, so neither waits for a Redis that hangs.  The command stays in
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

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
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
#include "queue/lock.h"
#include "rqctl/ask.h"
#include "rqctl/listing.h"

#define STEP		1000LL		/* keys per SCAN */
#define LOCKS_MAX	100000
#define VALUE_END	"511"		/* unlock.lua compares 512 bytes */
#define SHOWN		60		/* bytes of a value that another program has set */
#define ASKED		100		/* locks per round trip */

#define TTL_DEFAULT	(30 * SEC)
#define TTL_MIN		(1 * SEC)
#define TTL_MAX		(24 * HOUR)
#define GRACE_MAX	(5 * SEC)
#define KILL_AGAIN	(50 * MSEC)
#define KILLS_MAX	100

#define EX_LOST		76		/* EX_PROTOCOL */

/* -- holders ---------------------------------------------------------------------- */

/*
 * Describes the holder by a lock's value: "web3, process 4711, since
 * 2026-11-21T08:00:00.000Z", or the value itself if another program has set it.  The caller
 * frees it.
 */
static char *
holder_text(const char *value)
{
	char since[CLOCK_TEXT_MAX];
	struct lock_holder h;

	lock_holder(value, &h);
	if (h.host[0] == '\0')
		return xasprintf("another program: \"%.*s\"", SHOWN, value);
	return xasprintf("%s, process %ld, since %s", h.host, h.pid,
	    clock_text((wall_t)(h.since * (double)SEC), since));
}

/* -- names ------------------------------------------------------------------------ */

/* The key without "Lock:".  It may have any bytes. */
struct lock_name {
	char	*text;		/* owned */
	size_t	 len;
};

struct names {
	struct lock_name *list;
	size_t		 n;
};

static int
by_name(const void *va, const void *vb)
{
	const struct lock_name *a = va, *b = vb;
	int d = memcmp(a->text, b->text, a->len < b->len ? a->len : b->len);

	return d != 0 ? d : a->len < b->len ? -1 : a->len > b->len;
}

/* Sorts the names, and drops duplicates: SCAN may return a name twice. */
static void
names_sort(struct names *names)
{
	struct lock_name *list = names->list;
	size_t i, n = 0;

	if (names->n > 0)
		qsort(list, names->n, sizeof(list[0]), by_name);
	for (i = 0; i < names->n; i++)
		if (n > 0 && by_name(&list[n - 1], &list[i]) == 0)
			free(list[i].text);
		else
			list[n++] = list[i];
	names->n = n;
}

static void
take_names(struct names *names, const struct redisReply *keys)
{
	const size_t skip = strlen(KEYS_LOCK_PREFIX), n = reply_len(keys);
	const char *key;
	size_t i, len;

	names->list = xreallocarray(names->list, names->n + n, sizeof(names->list[0]));
	for (i = 0; i < n; i++)
		if ((key = reply_str(reply_at(keys, i), &len)) != NULL && len >= skip)
			names->list[names->n++] = (struct lock_name){
			    xmemdup(key + skip, len - skip), len - skip };
}

/* Adds the names of all locks on one master.  Returns 0, or -1 after an error was reported. */
static int
scan_names(struct ctl *c, struct names *names)
{
	int64_t total = ask_number(ask(c, "DBSIZE")), looked = 0;
	struct redisReply *step;
	char cursor[24] = "0";
	const char *next;

	do {
		step = ask(c, "SCAN %s MATCH " KEYS_LOCK_PREFIX "* COUNT %lld", cursor, STEP);
		if (step == NULL)
			return -1;
		next = reply_str(reply_at(step, 0), NULL);
		snprintf(cursor, sizeof(cursor), "%s", next != NULL ? next : "0");
		take_names(names, reply_at(step, 1));
		blocking_reply_free(step);
		looked += STEP;
		if (looked < total)
			out_progress("%d%% of %lld keys looked at", (int)(100 * looked / total),
			    (long long)total);
		if (ctl_interrupted())
			return ctl_error(c, EX_INTERRUPTED, "interrupted");
	} while (strcmp(cursor, "0") != 0 && names->n < LOCKS_MAX);
	out_progress_clear();
	if (strcmp(cursor, "0") != 0)
		ctl_note("stopped after %zu locks: there may be more", names->n);
	return 0;
}

static int
find_names(struct ctl *c, struct names *names)
{
	size_t n = ask_masters(c);
	int rc = n > 0 ? 0 : -1;

	ctl_catch_signals();
	for (size_t i = 0; i < n && rc == 0 && names->n < LOCKS_MAX; i++) {
		ask_master(c, i);
		rc = scan_names(c, names);
	}
	names_sort(names);
	return rc;
}

/* -- locks ------------------------------------------------------------------------ */

struct found {
	const struct lock_name *name;
	struct lock_holder holder;	/* host "": another program has set it */
	const char	*value;		/* its beginning; NULL: the key is no lock */
	size_t		 len;
	int64_t		 left;		/* ms until it expires; -1: it does not */
	double		 now;
};

static void
lock_json(json_t *o, const struct found *f)
{
	bool ours = f->holder.host[0] != '\0';
	struct buf key = BUF_INIT;

	buf_puts(&key, KEYS_LOCK_PREFIX);
	buf_add(&key, f->name->text, f->name->len);
	json_set(o, "name:b key:b value:b host:s pid:j since:f left:f", f->name->text, f->name->len,
	    key.data, key.len, f->value, f->len, ours ? f->holder.host : NULL,
	    ours ? json_integer(f->holder.pid) : NULL, ours ? f->holder.since : NAN,
	    f->left >= 0 ? (double)f->left / 1e3 : NAN);
	buf_done(&key);
}

static void
lock_row(struct listing *l, const struct found *f)
{
	const struct lock_holder *h = &f->holder;
	struct table *t = &l->table;
	json_t *o = listing_row(l);
	char text[UNITS_TEXT_MAX];

	if (o != NULL) {
		lock_json(o, f);
		return;
	}
	table_bytes(t, f->name->text, f->name->len);
	table_add(t, "%s", units_age((double)f->left / 1e3, text));
	if (f->left < 0)
		table_colour(t, COLOUR_RED);
	if (h->host[0] != '\0') {
		table_add(t, "%s", units_age(f->now > h->since ? f->now - h->since : 0, text));
		table_add(t, "%ld", h->pid);
		table_add(t, "%s", h->host);
	} else {
		table_add(t, "-");
		table_add(t, "-");
		table_bytes(t, f->value, f->len);
	}
}

/* Takes the two replies about a lock; skips it if it is gone, or no string. */
static int
take_lock(struct listing *l, struct found *f)
{
	struct redisReply *value = ask_next(l->ctl), *left;

	left = value != NULL ? ask_next(l->ctl) : NULL;
	f->value = reply_error(value) == REPLY_OK ? reply_str(value, &f->len) : NULL;
	f->left = reply_int(left, -2);
	if (f->value != NULL && f->left != -2) {
		lock_holder(f->value, &f->holder);
		lock_row(l, f);
	}
	blocking_reply_free(value);
	blocking_reply_free(left);
	return left == NULL ? -1 : 0;
}

/* Lists the n locks of these names. */
static int
list_some(struct listing *l, const struct lock_name *names, size_t n, double now)
{
	struct found f = { .now = now };

	for (size_t i = 0; i < n; i++)
		if (ask_append(l->ctl, "GETRANGE " KEYS_LOCK_PREFIX "%.*s 0 " VALUE_END,
		    (int)names[i].len, names[i].text) == -1 ||
		    ask_append(l->ctl, "PTTL " KEYS_LOCK_PREFIX "%.*s", (int)names[i].len,
		    names[i].text) == -1)
			return -1;
	for (size_t i = 0; i < n; i++) {
		f.name = &names[i];
		if (take_lock(l, &f) == -1)
			return -1;
	}
	return 0;
}

void
locks_run(struct ctl *c)
{
	struct names names = { .n = 0 };
	struct listing l;
	size_t i, n;
	double now;

	if (listing_init(&l, c, "LOCK|>LEFT|>HELD|>PID|HOLDER") == 0 &&
	    find_names(c, &names) == 0 && (now = ask_time(c)) >= 0) {
		n = (size_t)listing_room(&l, (long)names.n);
		l.more = n < names.n;
		for (i = 0; i < n; i += ASKED)
			if (list_some(&l, &names.list[i], n - i < ASKED ? n - i : ASKED, now) == -1)
				break;
	}
	listing_end(&l, (int64_t)names.n, "locks", "no lock is held on %s",
	    c->client != NULL ? masters_name(c->client) : "Redis");
	while (names.n > 0)
		free(names.list[--names.n].text);
	free(names.list);
}

/* -- unlock ----------------------------------------------------------------------- */

/* Breaks the lock only if its value is still the one that was shown. */
static void
unlock(struct ctl *c, const char *name, const char *value, size_t len)
{
	bool dry = ctl_given(c, OPT_DRY_RUN);
	char *holder = holder_text(value);
	int64_t n;

	if (!ctl_given(c, OPT_FORCE))
		ctl_error(c, EX_TEMPFAIL, "lock %s is held by %s; --force breaks it", name, holder);
	else if (dry || ctl_confirm(c, "break lock %s, held by %s", name, holder)) {
		n = dry ? 1 : ask_number(ask_script(c, "unlock", 1, "%s%s %.*s", KEYS_LOCK_PREFIX,
		    name, (int)len, value));
		if (n == 0)
			ctl_error(c, EX_NOTHING,
			    "lock %s has another holder now: nothing was done", name);
		else if (n > 0)
			ctl_result(c, json_set(json_object(), "name:s broken:i dry_run:t", name, n,
			    dry), "%s %s", dry ? "would break" : "broke", name);
	}
	free(holder);
}

void
unlock_run(struct ctl *c)
{
	const char *name = c->args.words[0], *text;
	int64_t there = ask_number(ask(c, "EXISTS %s%s", KEYS_LOCK_PREFIX, name));
	struct redisReply *value;
	size_t len = 0;

	if (there == 0)
		ctl_error(c, EX_NOTHING, "nobody holds lock %s", name);
	if (there <= 0)
		return;
	value = ask(c, "GETRANGE %s%s 0 " VALUE_END, KEYS_LOCK_PREFIX, name);
	text = reply_str(value, &len);
	if (value != NULL)
		unlock(c, name, text != NULL ? text : "", len);
	blocking_reply_free(value);
}

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
	r->status = x->signaled ? 128 + x->code : x->code;
	/* When the lock is lost, no process may continue. */
	if (!r->ending || proc_kill_below(SIGTERM) == 0)
		finish(r);
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
	holder = holder_text(value);
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
		holder = holder_text(text);
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
on_signals(int what UNUSED, void *arg)
{
	struct locked *r = arg;
	struct signalfd_siginfo si;

	while (read(r->signal_fd, &si, sizeof(si)) == sizeof(si))
		take_signal(r, &si);
}

/* signalfd does not receive ignored signals: under nohup rqctl still ignores SIGHUP. */
static void
watch_signals(struct locked *r)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
	    SIGALRM };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, &r->old_mask);
	r->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (r->signal_fd == -1)
		fatal_os("signalfd: %s", strerror(errno));
	io_init(&r->signals, r->loop, r->signal_fd, IO_READ, on_signals, r);
	io_start(&r->signals);
}

/* -- the verb ------------------------------------------------------------------- */

/* Returns "HOST PID" of this process, with "_" for characters that HOST must not have. */
static char *
self(void)
{
	char *text = xasprintf("%s %ld", util_hostname(), (long)getpid());
	char *end = strrchr(text, ' '), *p;

	for (p = text; p < end; p++)
		if (!isalnum((unsigned char)*p) && strchr("._-", *p) == NULL)
			*p = '_';
	return text;
}

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
	r.opt.who = who = self();
	r.loop = loop_new();
	watch_signals(&r);		/* first: its mask is the one for the command */
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
