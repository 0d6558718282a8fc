/*
 * Checks the configuration against this machine: users, commands, folders, and the files
 * that rqd itself opens.  The rows of the configuration (handler/rows.h) have its users.
 *
 * A thing that can never work is an error.  A thing that may yet come (a command, a user, a
 * file) is a warning.  rqctl does not look at this: the daemons may be on another machine.
 */
#include "config/draft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/trust.h"
#include "handler/cgroup.h"
#include "handler/privilege.h"
#include "handler/rows.h"
#include "handler/start_error.h"

/* A user who opens a file or runs a handler. */
struct user {
	uid_t		 uid;
	gid_t		 gid;
	const gid_t	*groups;
	size_t		 ngroups;
};

/* The process that runs handlers. */
struct runner {
	bool		 held;		/* this process has privileges */
	bool		 privileged;	/* and rqd would keep them */
	struct user	 own;		/* of the main process; unless privileged, of all */
	struct rows	 rows;
};

static bool
is_in_group(const struct user *user, gid_t gid)
{
	for (size_t i = 0; i < user->ngroups; i++) {
		if (user->groups[i] == gid)
			return true;
	}
	return user->gid == gid;
}

/*
 * Whether another user may execute (S_IXUSR) or write (S_IWUSR) the file; root asks for
 * that user.  It does not look at the folders on the way.
 */
static bool
may_use(const struct stat *st, const struct user *user, mode_t owner_bit)
{
	if (st->st_uid == user->uid)
		return (st->st_mode & owner_bit) != 0;
	if (is_in_group(user, st->st_gid))
		return (st->st_mode & owner_bit >> 3) != 0;
	return (st->st_mode & owner_bit >> 6) != 0;
}

/* -- who runs a queue's handlers ------------------------------------------------------ */

/* Reports what only root can do; name: of the user or group. */
static void
only_root(struct draft *d, const struct draft_section *s, const struct runner *r,
    const char *option, const char *what, const char *name, const char *advice)
{
	if (r->held)
		draft_error(d, s, option, "%s \"%s\": with privileged = false all handlers run as "
		    "user \"" PRIVILEGE_USER "\": leave it out, or set privileged = true", what,
		    name);
	else
		draft_error(d, s, option, "%s \"%s\": %s", what, name, advice);
}

/* Without privileges handlers run as rqd's own user.  missing: what was not found, or 0. */
static bool
check_own_identity(struct draft *d, const struct draft_section *s, const struct runner *r,
    const struct user *u, enum spawn_step missing)
{
	const char *user = s->queue->user, *group = s->queue->group;
	bool user_ok = user[0] == '\0' || missing == STEP_GROUP ||
	    (missing == STEP_NONE && u->uid == r->own.uid);
	bool group_ok = group[0] == '\0' || missing == STEP_USER ||
	    (missing == STEP_NONE && u->gid == r->own.gid);

	if (!user_ok)
		only_root(d, s, r, "user", "only root can run handlers as user", user,
		    "run rqd as root or that user, or leave user out");
	if (!group_ok)
		only_root(d, s, r, "group", "only root can run handlers as group", group,
		    "leave group out");
	return user_ok && group_ok;
}

/* As root every queue must name its user: a forgotten `user` must not run handlers as root. */
static bool
check_root_identity(struct draft *d, const struct draft_section *s, const struct runner *r,
    const struct user *u)
{
	const char *user = s->queue->user;

	if (!draft_is_sound(s, "user"))
		return true;
	if (user[0] == '\0' && s->at.line != 0)
		return draft_error(d, s, "user", "queue \"%s\" does not say its user, and rqd "
		    "runs as root: write user = \"NAME\", also if it is \"root\"", s->name);
	/* The main process' own user could end it, or take its place. */
	if (user[0] != '\0' && u->uid == r->own.uid)
		return draft_error(d, s, "user", "user = \"%s\": rqd itself runs as that user, so "
		    "no handler may: give handlers a user of their own", user);
	return true;
}

static bool
check_identity(struct draft *d, const struct draft_section *s,
    const struct runner *r, const struct user *u, enum spawn_step missing)
{
	if (r->privileged)
		return check_root_identity(d, s, r, u);
	return check_own_identity(d, s, r, u, missing);
}

/* -- what a queue needs --------------------------------------------------------------- */

/* Whether the queue's user may; only root asks for another user. */
static bool
may_execute(const char *path, const struct stat *st, const struct user *user)
{
	if (geteuid() != 0)
		return access(path, X_OK) == 0;
	return may_use(st, user, S_IXUSR);
}

static void
check_command_file(struct draft *d, const struct draft_section *s, const struct user *user)
{
	const char *path = s->queue->command[0];
	const char *why = NULL;
	char *first_line = NULL;
	struct stat st;

	if (path == NULL || !draft_is_sound(s, "command"))
		return;
	if (stat(path, &st) == -1)
		why = strerror(errno);
	else if (S_ISDIR(st.st_mode))
		why = "is a directory";
	else if (!may_execute(path, &st, user))
		why = "is not executable for the queue's user: chmod 755 it";
	else if (geteuid() != 0)	/* root would read any file that a user has linked there */
		why = first_line = start_error_first_line(path);
	if (why != NULL)
		draft_warn(d, s, "command", "command %s: %s", path, why);
	free(first_line);
}

static void
check_file(struct draft *d, const struct place *at, const char *option, const char *path,
    bool directory)
{
	struct stat st;

	if (path[0] == '\0')
		return;
	if (stat(path, &st) == -1)
		finding_warn(&d->findings, at, "%s %s: %s", option, path, strerror(errno));
	else if (directory && !S_ISDIR(st.st_mode))
		finding_warn(&d->findings, at, "%s %s is not a directory",
		    option, path);
	else if (!directory && S_ISDIR(st.st_mode))
		finding_warn(&d->findings, at, "%s %s is a directory", option,
		    path);
	else if (!directory && access(path, R_OK) == -1)
		finding_warn(&d->findings, at, "%s %s: %s", option, path, strerror(errno));
	else if (S_ISREG(st.st_mode) && st.st_size == 0)
		finding_warn(&d->findings, at, "%s %s is empty", option, path);
}

static void
check_cgroup(struct draft *d, const struct draft_section *s, const struct runner *r,
    const char *option, enum cgroup_part part)
{
	const char *why;

	if (r->held && !r->privileged)
		why = "privileged is false";
	else
		why = cgroup_lacks(part);
	if (why != NULL)
		draft_warn(d, s, option, "%s has no effect here: %s", option, why);
}

/* Without privileges only the limit RLIMIT_NICE, of 20 - nice, permits a lower value. */
static void
check_nice(struct draft *d, const struct draft_section *s, const struct runner *r)
{
	int nice = s->queue->nice, own = getpriority(PRIO_PROCESS, 0);
	struct rlimit most = { 0, 0 };

	if (r->privileged || nice == CONFIG_NICE_INHERIT || nice >= own)
		return;
	(void)getrlimit(RLIMIT_NICE, &most);
	if (most.rlim_cur < (rlim_t)(20 - nice))
		draft_warn(d, s, "nice", "nice = %d: only root can start handlers with a "
		    "lower value than rqd's own, which is %d", nice, own);
}

/* Without a row nobody is named; who is named may be this process' user. */
static struct user
user_of_row(const struct spawn_row *row, const struct runner *r)
{
	struct user u;

	if (row == NULL)
		return r->own;
	u = (struct user){ geteuid(), getegid(), row->groups, row->ngroups };
	if (row->uid != (uid_t)-1)
		u.uid = row->uid;
	if (row->gid != (gid_t)-1)
		u.gid = row->gid;
	return u;
}

static enum spawn_step
failed_step(const struct spawn_row *row)
{
	if (row == NULL || row->error == 0)
		return STEP_NONE;
	return (enum spawn_step)row->step;
}

static void
check_queue(struct draft *d, const struct draft_section *s, const struct runner *r,
    const struct spawn_row *row)
{
	const struct queue_config *q = s->queue;
	struct user u = user_of_row(row, r);
	enum spawn_step failed = failed_step(row), missing = failed;
	bool of_file = failed == STEP_ENV_FILE || failed == STEP_ENVIRONMENT;
	const char *what = "group", *name = q->group, *option = "env";
	char *why;

	if (of_file)
		missing = STEP_NONE;
	if (missing == STEP_USER) {
		what = "user";
		name = q->user;
	}
	if (!config_consumes(q) || !check_identity(d, s, r, &u, missing))
		return;
	if (missing == STEP_NONE)
		check_command_file(d, s, &u);
	else if (row->error == ENOENT)
		draft_warn(d, s, what, "there is no %s \"%s\"", what, name);
	else
		draft_warn(d, s, what, "%s \"%s\" cannot be looked up: %s",
		    what, name, strerror(row->error));
	check_nice(d, s, r);
	if (q->memory_max > 0)
		check_cgroup(d, s, r, "memory_max", CGROUP_MEMORY);
	if (q->pids_max > 0)
		check_cgroup(d, s, r, "pids_max", CGROUP_PIDS);
	check_file(d, draft_place(s, "directory"), "directory", q->directory, true);
	if (of_file) {
		why = start_error_text(q, spawn_step_name(failed), row->error);
		if (q->env_file[0] != '\0')
			option = "env_file";
		draft_warn(d, s, option, "%s", why);
		free(why);
	}
}

/* -- the log -------------------------------------------------------------------------- */

/* Whether the process that will open the log may write here; errno where not. */
static bool
may_write(const char *path, const struct stat *st, const struct runner *r)
{
	if (!r->held || r->privileged)	/* root opens it for the main process */
		return access(path, W_OK) == 0;
	errno = EACCES;
	return may_use(st, &r->own, S_IWUSR);
}

/* Of an absolute path; the caller frees it. */
static char *
folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == path)
		return xstrdup("/");
	return xstrndup(path, (size_t)(slash - path));
}

/* Why a file that is there cannot be the log; NULL: it can. */
static const char *
log_file_trouble(const char *path, const struct stat *st,
    const struct runner *r)
{
	if (S_ISLNK(st->st_mode))
		return "is a symbolic link, which is not followed";
	if (S_ISDIR(st->st_mode))
		return "is a directory, not a file";
	if (!may_write(path, st, r))
		return "cannot be written by rqd";
	return NULL;
}

/* Why the log cannot be created in the folder; NULL: it can. */
static const char *
log_folder_trouble(const char *folder, const struct runner *r)
{
	struct stat st;

	if (stat(folder, &st) == -1)
		return strerror(errno);
	if (!S_ISDIR(st.st_mode))
		return strerror(ENOTDIR);
	if (!may_write(folder, &st, r))
		return strerror(errno);
	return NULL;
}

/*
 * Warns of a log that the daemon will not be able to open or create.  Root does not open one
 * in a folder that another user may change.
 */
static void
check_log(struct draft *d, const struct runner *r)
{
	const char *path = d->config->log.target, *why;
	const struct place *at = draft_global_place(d, SECTION_LOG, "target");
	char *folder, *distrust = NULL;
	struct stat st;

	if (path[0] != '/' || strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0)
		return;
	folder = folder_of(path);
	if (lstat(path, &st) == 0) {
		why = log_file_trouble(path, &st, r);
		if (why != NULL)
			finding_warn(&d->findings, at, "target %s %s: until "
			    "that is corrected rqd logs to stderr", path, why);
	} else {
		why = log_folder_trouble(folder, r);
		if (why != NULL)
			finding_warn(&d->findings, at, "target %s: its "
			    "directory %s: %s: until that is corrected rqd "
			    "logs to stderr", path, folder, why);
	}
	if (r->held && trust_folders(path, r->own.uid, &distrust) == -1 && errno == EPERM)
		finding_warn(&d->findings, at, "target %s: %s, so others could replace the "
		    "file: use a directory of " PRIVILEGE_USER "'s, such as /var/log/rqd", path,
		    distrust);
	free(distrust);
	free(folder);
}

/* -- files of section redis ------------------------------------------------------------- */

static void
check_redis(struct draft *d, const struct runner *r)
{
	const struct redis_options *o = &d->config->redis;
	const struct { const char *option, *path; } files[] = {
		{ "password_file", o->password_file },
		{ "sentinel_password_file", o->sentinel_password_file }, { "tls_ca", o->tls_ca },
		{ "tls_cert", o->tls_cert }, { "tls_key", o->tls_key },
	};
	const char *option, *path;
	const struct place *at;
	struct stat st;
	char *why;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		option = files[i].option;
		path = files[i].path;
		at = draft_global_place(d, SECTION_REDIS, option);
		check_file(d, at, option, path, false);
		if (path[0] == '\0' || !r->privileged)
			continue;
		/*
		 * Root opens it for the main process, but follows no path that another user can
		 * change, because that user could then read any file.
		 */
		why = NULL;
		if (trust_folders(path, r->own.uid, &why) == -1 && errno == EPERM)
			finding_warn(&d->findings, at, "%s %s: %s, so root does not open it for "
			    "rqd: put it into a directory that only root may write to, "
			    "such as /etc", option, path, why);
		else if (why == NULL && trust_file(path, r->own.uid, &why) == -1 && errno == EPERM)
			finding_warn(&d->findings, at, "%s: %s: chown root %s; chmod go-w %s",
			    option, why, path, path);
		free(why);
	}
	if (o->password_file[0] != '\0' && stat(o->password_file, &st) == 0 &&
	    (st.st_mode & S_IROTH) != 0)
		finding_warn(&d->findings, draft_global_place(d, SECTION_REDIS, "password_file"),
		    "password_file %s can be read by everybody: chmod o-r %s", o->password_file,
		    o->password_file);
}

void
machine_check(struct draft *d)
{
	const struct config_source *source = d->source;
	const struct place at = { draft_source_name(source), 0 };
	struct runner r = { .held = privilege_held(), .own = { geteuid(), getegid(), NULL, 0 } };
	unsigned generation;
	int file;

	/*
	 * If root gives up its privileges, the checks are for the user that it becomes.  Where
	 * that user is missing, only `rqd -q` without -u goes on, as root: its handlers are root's.
	 */
	if (r.held && !privilege_user(&r.own.uid, &r.own.gid)) {
		if (source->queue == NULL || source->user != NULL) {
			finding_error(&d->findings, &at, "there is no user \"_rqd\", which "
			    "talks to Redis where root starts rqd: useradd --system --shell "
			    "/usr/sbin/nologin _rqd");
			return;
		}
		r.held = false;
	}
	r.privileged = r.held && d->config->privileged;
	check_log(d, &r);
	check_redis(d, &r);
	file = source->rows;
	if (file == 0)
		file = memfd_create("rqd-rows", MFD_CLOEXEC);
	load_rows(d->config, file, NULL, 0);
	generation = rows_add(&r.rows, file, -1);
	for (uint32_t i = 0; i < d->queues.n; i++)
		check_queue(d, &d->queues.list[i], &r, rows_find(&r.rows, generation, i));
	rows_retire(rows_generation(&r.rows, generation));
	if (source->rows == 0)
		(void)close(file);
}
