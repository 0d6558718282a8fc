/* A cgroup for each run; cgroup.h describes them. */
#include "handler/cgroup.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "handler/privilege.h"

#define PREFIX		"rqd.daemon."
#define NAMES_MAX	100		/* tried */
#define DEATH_TIME	(2 * SEC)	/* for what a dead rqd has left */
#define DEATH_PAUSE	MSEC
#define FREE_MAX	256		/* empty ones that are kept */
#define LOOKS		4		/* a start, at those that were not empty */
#define SPENT		16		/* the part of memory_max that a run may leave charged */
#define DEPTH_MAX	64		/* of cgroups that root looks at */
#define NAME_SIZE	48
#define TEXT_SIZE	4096

struct cgroup {
	TAILQ_ENTRY(cgroup) entry;	/* of free or busy; of none while it runs */
	unsigned	number;		/* its name */
	uid_t		uid;		/* of all of its runs */
	uint64_t	limits[CGROUP_PARTS];
	uint64_t	ooms;		/* as seen last */
	bool		killed;		/* Linux 6.18 kills all that starts in it later, too */
};
TAILQ_HEAD(cgroups, cgroup);

static int	runs = -1;		/* the directory; -1: none, or left to the spawner */
static int	killer = -1;		/* runs/cgroup.kill, locked, to be written */
static char	lacks[CGROUP_PARTS][512];	/* "": nothing; without runs there are no limits */
static unsigned	last;			/* number given */
static struct cgroups idle = TAILQ_HEAD_INITIALIZER(idle);
static struct cgroups busy = TAILQ_HEAD_INITIALIZER(busy);	/* with what a run has left */
static size_t	nidle;

/* -- their files ------------------------------------------------------------------------ */

/* Its beginning; "" if it cannot be read. */
static void
read_file(int dir, const char *name, char text[TEXT_SIZE])
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd != -1 ? read(fd, text, TEXT_SIZE - 1) : -1;

	text[n > 0 ? n : 0] = '\0';
	fd_close(&fd);
}

static int
write_file(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd != -1 ? write(fd, text, strlen(text)) : -1;

	fd_close(&fd);
	return n == -1 ? -1 : 0;
}

/* A file of the cgroup of this number. */
static const char *
file_of(unsigned number, const char *name, char path[NAME_SIZE])
{
	(void)snprintf(path, NAME_SIZE, "%u/%s", number, name);
	return path;
}

static bool
is_populated(int dir, const char *events)
{
	char text[TEXT_SIZE];

	errno = 0;
	read_file(dir, events, text);
	return strstr(text, "populated 0") == NULL && errno != ENOENT && errno != ENODEV;
}

static int
open_dir(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* -- the start ---------------------------------------------------------------------------- */

static void
lack(enum cgroup_part part, const char *what, const char *where, const char *why)
{
	(void)snprintf(lacks[part], sizeof(lacks[part]), "%s%.300s: %s", what, where, why);
}

void
cgroup_give_up(const char *why)
{
	(void)snprintf(lacks[CGROUP_RUNS], sizeof(lacks[CGROUP_RUNS]), "%s", why);
}

/* The directory of this process' cgroup; the caller frees it.  NULL: there is no cgroup v2. */
static char *
find_ours(void)
{
	char *line = NULL, *path = NULL, *root = NULL, *mount = NULL, *found = NULL;
	FILE *f = fopen("/proc/self/cgroup", "re");
	size_t size = 0, len;

	while (f != NULL && path == NULL && getline(&line, &size, f) > 0) {
		if (strncmp(line, "0::/", 4) == 0)
			path = xstrndup(line + 3, strcspn(line + 3, "\n"));
	}
	if (f != NULL)
		(void)fclose(f);
	f = path != NULL ? fopen("/proc/self/mountinfo", "re") : NULL;
	while (f != NULL && found == NULL && getline(&line, &size, f) > 0) {
		if (strstr(line, " - cgroup2 ") == NULL ||
		    sscanf(line, "%*s %*s %*s %ms %ms", &root, &mount) != 2)
			continue;
		/* In a container the mount may begin at a cgroup below the root. */
		len = strcmp(root, "/") != 0 ? strlen(root) : 0;
		if (strncmp(path, root, len) == 0 && (path[len] == '/' || path[len] == '\0'))
			found = xasprintf("%s%s", mount, path + len);
		free(root);
		free(mount);
	}
	if (f != NULL)
		(void)fclose(f);
	free(line);
	free(path);
	return found;
}

/* Calls remove(dir, name) for each directory whose name begins so. */
static void
each_below(int dir, const char *prefix, void (*remove)(int, const char *))
{
	int copy = open_dir(dir, ".");
	DIR *d = copy != -1 ? fdopendir(copy) : NULL;
	const struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
		    strncmp(e->d_name, prefix, strlen(prefix)) == 0)
			remove(dir, e->d_name);
	}
	if (d != NULL)
		(void)closedir(d);
}

static void
remove_empty(int dir, const char *name)
{
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}

/* A directory rqd.daemon.PID.N, as far as it is empty. */
static void
remove_tree(int dir, const char *name)
{
	int top = open_dir(dir, name), below = top != -1 ? open_dir(top, "runs") : -1;

	if (below != -1)
		each_below(below, "", remove_empty);
	if (top != -1)
		each_below(top, "", remove_empty);
	remove_empty(dir, name);
	fd_close(&below);
	fd_close(&top);
}

/*
 * An rqd that is alive, or kills and removes them itself, has the lock.  Without runs/ it has
 * just begun, or its end was interrupted: nothing runs there.
 */
static void
remove_dead(int dir, const char *name)
{
	const struct timespec pause = { .tv_nsec = DEATH_PAUSE * 1000 };
	usec_t until = clock_mono() + DEATH_TIME;
	char path[NAME_MAX + NAME_SIZE];
	int fd, top;

	(void)snprintf(path, sizeof(path), "%s/runs/cgroup.kill", name);
	fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
	if (fd == -1 ? errno != ENOENT : flock(fd, LOCK_EX | LOCK_NB) == -1) {
		fd_close(&fd);
		return;
	}
	top = fd != -1 ? open_dir(dir, name) : -1;
	if (top != -1) {
		(void)write_file(top, "cgroup.kill", "1");
		while (is_populated(top, "cgroup.events") && clock_mono() < until)
			(void)nanosleep(&pause, NULL);
	}
	remove_tree(dir, name);
	fd_close(&top);
	fd_close(&fd);
}

/* Other users cannot open cgroup.kill, and so not lock it. */
static int
make_tree(int dir, const char *name)
{
	int top = open_dir(dir, name), r = -1;

	if (top != -1 && mkdirat(top, "runs", 0755) == 0)
		runs = open_dir(top, "runs");
	if (runs != -1)
		killer = openat(runs, "cgroup.kill", O_WRONLY | O_CLOEXEC);
	if (runs != -1 && killer == -1 && errno == ENOENT && faccessat(top, "runs", F_OK, 0) == 0)
		errno = ENOSYS;			/* the kernel has no such file */
	/* In main/ an rqd that has removed all before the lock shows. */
	if (killer != -1 && flock(killer, LOCK_EX) == 0 && mkdirat(top, "main", 0755) == 0)
		r = write_file(top, "main/cgroup.procs", "0");
	if (r == -1) {
		fd_close(&killer);
		fd_close(&runs);
	}
	fd_close(&top);
	return r;
}

/*
 * Makes a tree with this process in its main/.  Another rqd may remove it before it is locked:
 * then the next.
 */
static int
enter_main(int dir)
{
	char name[NAME_SIZE];
	int error;

	for (int i = 0; i < NAMES_MAX; i++) {
		(void)snprintf(name, sizeof(name), PREFIX "%d.%d", (int)getpid(), i);
		if (mkdirat(dir, name, 0711) == -1) {
			if (errno != EEXIST)
				return -1;
			continue;
		}
		if (make_tree(dir, name) == 0)
			return 0;
		error = errno;
		remove_tree(dir, name);
		errno = error;
		if (error != ENOENT && error != ENODEV)
			break;
	}
	return -1;
}

/* In dir, and with enter in the two below it that lead to a run's. */
static void
enable(int dir, bool enter, enum cgroup_part part, const char *path)
{
	static const char *const names[] = { "", "memory", "pids" };
	char text[TEXT_SIZE], *word, *rest = text, on[NAME_SIZE];

	read_file(dir, "cgroup.controllers", text);
	while ((word = strsep(&rest, " \n")) != NULL && strcmp(word, names[part]) != 0)
		continue;
	(void)snprintf(on, sizeof(on), "+%s", names[part]);
	if (word == NULL)
		lack(part, "", path, part == CGROUP_MEMORY ? "there is no memory controller" :
		    "there is no pids controller");
	else if (enter && (write_file(dir, "cgroup.subtree_control", on) == -1 ||
	    write_file(runs, "../cgroup.subtree_control", on) == -1 ||
	    write_file(runs, "cgroup.subtree_control", on) == -1))
		lack(part, "", path, errno == EBUSY ? "other processes are in this cgroup" :
		    strerror(errno));
}

/* Whether systemd, which manages the cgroup, lets root make others in it. */
static bool
is_delegated(const char *path)
{
	const char *end = strrchr(path, '.');
	char value[8];

	return end == NULL || strcmp(end, ".service") != 0 || geteuid() != 0 ||
	    getxattr(path, "trusted.delegate", value, sizeof(value)) > 0 ||
	    getxattr(path, "user.delegate", value, sizeof(value)) > 0;
}

/*
 * Whether this cgroup, or one above it, is another user's: a process of that user could leave
 * the cgroup of its run.
 */
static bool
is_others(int dir, uid_t *owner)
{
	char path[DEPTH_MAX * 3 + NAME_SIZE] = ".", procs[sizeof(path) + NAME_SIZE];
	struct stat st, file;
	dev_t mount = 0;

	for (int i = 0; i < DEPTH_MAX && fstatat(dir, path, &st, 0) == 0; i++) {
		if (i > 0 && st.st_dev != mount)
			return false;
		mount = st.st_dev;
		(void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
		if (fstatat(dir, procs, &file, 0) == -1)
			file.st_uid = st.st_uid;
		*owner = st.st_uid != 0 ? st.st_uid : file.st_uid;
		if (*owner != 0)
			return true;
		strcat(path, "/..");
	}
	return false;
}

/*
 * A filter of system calls may hide clone3(2).  A spawner that only becomes root later has no
 * right to the directories of the user that it is now.
 */
void
cgroup_open(bool enter)
{
	static bool called;
	char *path = !called ? find_ours() : NULL;
	int dir = path != NULL ? open_dir(AT_FDCWD, path) : -1;
	char theirs[NAME_SIZE];
	uid_t owner;

	if (called)
		return;
	called = true;
	if (syscall(SYS_clone3, NULL, 0) == -1 && errno != EINVAL)
		cgroup_give_up("the system call clone3 is not available");
	else if (dir == -1)
		cgroup_give_up("there is no cgroup v2");
	else if (privilege_held() && geteuid() != 0)
		cgroup_give_up("rqd was started with capabilities and not as root");
	else if (!is_delegated(path))
		cgroup_give_up("the unit has no Delegate=");
	else if (faccessat(dir, ".", W_OK, AT_EACCESS) == -1)
		lack(CGROUP_RUNS, "cannot make cgroups in ", path, strerror(errno));
	else if (geteuid() == 0 && is_others(dir, &owner)) {
		(void)snprintf(theirs, sizeof(theirs), "belongs to user %u, not to root",
		    (unsigned)owner);
		lack(CGROUP_RUNS, "the cgroup ", path, theirs);
	}
	if (cgroup_lacks(CGROUP_RUNS) == NULL && enter) {
		each_below(dir, PREFIX, remove_dead);
		if (enter_main(dir) == -1 && errno == ENOSYS)
			cgroup_give_up("the kernel is older than Linux 5.14");
		else if (killer == -1)
			lack(CGROUP_RUNS, "cannot make cgroups in ", path, strerror(errno));
	}
	for (enum cgroup_part i = CGROUP_MEMORY; i < CGROUP_PARTS; i++) {
		if (cgroup_lacks(CGROUP_RUNS) == NULL)
			enable(dir, enter, i, path);
	}
	fd_close(&dir);
	free(path);
}

const char *
cgroup_lacks(enum cgroup_part part)
{
	if (lacks[CGROUP_RUNS][0] != '\0')
		part = CGROUP_RUNS;
	return lacks[part][0] != '\0' ? lacks[part] : NULL;
}

/* The lock stays with killer. */
void
cgroup_leave_to_spawner(void)
{
	fd_close(&runs);
}

void
cgroup_kill_runs(void)
{
	if (killer != -1)
		(void)!write(killer, "1", 1);
}

/* -- in the spawner ----------------------------------------------------------------------- */

void
cgroup_destroy(struct cgroup *c)
{
	char name[NAME_SIZE];

	remove_empty(runs, file_of(c->number, "", name));
	free(c);
}

/* The number behind a name at the beginning of a line. */
static uint64_t
number_of(const char *text, const char *name)
{
	size_t n = strlen(name);
	const char *p = text;

	while (strncmp(p, name, n) != 0 || p[n] != ' ') {
		if ((p = strchr(p, '\n')) == NULL)
			return 0;
		p++;
	}
	return strtoull(p + n, NULL, 10);
}

uint64_t
cgroup_unreclaimable(const char *current, const char *stat)
{
	uint64_t all = strtoull(current, NULL, 10), file = number_of(stat, "file");
	uint64_t shmem = number_of(stat, "shmem"), pages = file > shmem ? file - shmem : 0;

	return all > pages ? all - pages : 0;
}

/*
 * The limit of its next run would include what its runs have left.  memory.stat, which costs the
 * kernel more, is read only if it can tell.
 */
static bool
is_spent(const struct cgroup *c)
{
	uint64_t limit = c->limits[CGROUP_MEMORY] / SPENT;
	char current[TEXT_SIZE], stat[TEXT_SIZE], path[NAME_SIZE];

	if (c->limits[CGROUP_MEMORY] == 0)
		return false;
	read_file(runs, file_of(c->number, "memory.current", path), current);
	if (current[0] == '\0')
		return true;
	if (strtoull(current, NULL, 10) <= limit)
		return false;
	read_file(runs, file_of(c->number, "memory.stat", path), stat);
	return cgroup_unreclaimable(current, stat) > limit;
}

/* The latest is taken first; the oldest go. */
static void
set_idle(struct cgroup *c)
{
	struct cgroup *oldest;

	if (is_spent(c)) {
		cgroup_destroy(c);
		return;
	}
	TAILQ_INSERT_HEAD(&idle, c, entry);
	if (++nidle <= FREE_MAX)
		return;
	oldest = TAILQ_LAST(&idle, cgroups);
	TAILQ_REMOVE(&idle, oldest, entry);
	nidle--;
	cgroup_destroy(oldest);
}

/* If a run has used all of its memory, no process of it is spared. */
static int
set_limits(const struct cgroup *c)
{
	static const char *const names[] = { "", "memory.max", "pids.max" };
	char path[NAME_SIZE], value[NAME_SIZE];

	for (int i = CGROUP_MEMORY; i < CGROUP_PARTS; i++) {
		(void)snprintf(value, sizeof(value), "%" PRIu64, c->limits[i]);
		if (c->limits[i] != 0 &&
		    write_file(runs, file_of(c->number, names[i], path), value) == -1)
			return -1;
	}
	if (c->limits[CGROUP_MEMORY] == 0)
		return 0;
	/* Where the kernel has no swap, there is no such file. */
	(void)write_file(runs, file_of(c->number, "memory.swap.max", path), "0");
	return write_file(runs, file_of(c->number, "memory.oom.group", path), "1");
}

/* Whether processes were killed since the last look. */
static bool
had_oom(struct cgroup *c)
{
	char text[TEXT_SIZE], path[NAME_SIZE];
	uint64_t before = c->ooms;
	const char *p;

	read_file(runs, file_of(c->number, "memory.events", path), text);
	p = strstr(text, "oom_kill ");
	c->ooms = p != NULL ? strtoull(p + strlen("oom_kill "), NULL, 10) : 0;
	return c->ooms > before;
}

/* Looks at few of those that runs have left processes in, in turn. */
static void
look_at_busy(void)
{
	char path[NAME_SIZE];
	struct cgroup *c;

	for (int i = 0; i < LOOKS && (c = TAILQ_TAKE(&busy, entry)) != NULL; i++) {
		if (is_populated(runs, file_of(c->number, "cgroup.events", path))) {
			/* The first time there may have been no descriptor for it. */
			if (c->killed)
				(void)write_file(runs, file_of(c->number, "cgroup.kill", path),
				    "1");
			TAILQ_INSERT_TAIL(&busy, c, entry);
		} else if (c->killed) {
			cgroup_destroy(c);
		} else {
			(void)had_oom(c);	/* of what was left, not of the next run */
			set_idle(c);
		}
	}
}

/* What the kernel has charged to a user's runs, no other user's pay for. */
struct cgroup *
cgroup_take(uid_t uid, uint64_t memory_max, uint64_t pids_max, int *dir)
{
	struct cgroup new = { .uid = uid, .limits = { 0,
	    cgroup_lacks(CGROUP_MEMORY) == NULL ? memory_max : 0,
	    cgroup_lacks(CGROUP_PIDS) == NULL ? pids_max : 0 } };
	char name[NAME_SIZE];
	struct cgroup *c;
	int error;

	*dir = -1;
	errno = 0;
	if (runs == -1 || cgroup_lacks(CGROUP_RUNS) != NULL)
		return NULL;
	look_at_busy();
	TAILQ_FOREACH(c, &idle, entry) {
		if (c->uid == uid && memcmp(c->limits, new.limits, sizeof(new.limits)) == 0)
			break;
	}
	if (c != NULL) {
		TAILQ_REMOVE(&idle, c, entry);
		nidle--;
		*dir = openat(runs, file_of(c->number, "", name), O_PATH | O_CLOEXEC);
		if (*dir != -1)
			return c;
		cgroup_destroy(c);		/* somebody has removed it */
	}
	new.number = ++last;
	c = xmemdup(&new, sizeof(new));
	if (mkdirat(runs, file_of(c->number, "", name), 0755) == 0 && set_limits(c) == 0 &&
	    (*dir = openat(runs, name, O_PATH | O_CLOEXEC)) != -1)
		return c;
	error = errno;
	cgroup_destroy(c);
	errno = error;
	return NULL;
}

struct cgroup_end
cgroup_leave(struct cgroup *c, bool kills, bool failed)
{
	char text[TEXT_SIZE], path[NAME_SIZE];
	struct cgroup_end end = { .left = 0 };

	/* After each run, or its kills would be blamed on the next. */
	if (cgroup_lacks(CGROUP_MEMORY) == NULL)
		end.oom = had_oom(c) && failed;
	if (is_populated(runs, file_of(c->number, "cgroup.events", path))) {
		read_file(runs, file_of(c->number, "cgroup.procs", path), text);
		for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
			end.left++;
		c->killed = kills;
		if (kills)
			(void)write_file(runs, file_of(c->number, "cgroup.kill", path), "1");
		TAILQ_INSERT_TAIL(&busy, c, entry);
	} else {
		set_idle(c);
	}
	return end;
}

void
cgroup_close(void)
{
	if (runs != -1)
		each_below(runs, "", remove_empty);
}
