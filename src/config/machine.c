/*
 * Checks the configuration against this machine: users, commands, folders, and the files
 * that rqd itself opens.
 *
 * A thing that can never work is an error.  A thing that may yet come (a command, a user, a
 * file) is a warning.  rqctl does not look at this: the daemons may be on another machine.
 */
#include "config/draft.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/trust.h"
#include "base/units.h"
#include "handler/start_error.h"
#include "handler/identity.h"
#include "handler/privilege.h"

/* The process that runs handlers, and their user. */
struct runner {
	bool		 held;		/* this process has privileges */
	bool		 privileged;	/* and rqd would keep them */
	struct privilege_user main;	/* the main process'; valid while held */
	uid_t		 uid;		/* of all handlers; valid unless privileged */
	gid_t		 gid;
};

/* If root gives up its privileges, the checks are for the user that it becomes. */
static struct runner
find_runner(const struct config *c)
{
	struct runner r = { .held = privilege_held() };

	r.privileged = r.held && c->privileged;
	if (r.held)
		r.main = privilege_user();
	r.uid = r.held ? r.main.uid : geteuid();
	r.gid = r.held ? r.main.gid : getegid();
	return r;
}

/*
 * Whether another user may execute (S_IXUSR) or write (S_IWUSR) the file; root asks for
 * that user.  It does not look at the folders on the way.
 */
static bool
may_use(const struct stat *st, const struct identity *id, mode_t owner_bit)
{
	if (st->st_uid == id->runs_as)
		return (st->st_mode & owner_bit) != 0;
	if (st->st_gid == id->gid || identity_has_group(id->groups, id->ngroups, st->st_gid))
		return (st->st_mode & owner_bit >> 3) != 0;
	return (st->st_mode & owner_bit >> 6) != 0;
}

/* -- who runs a queue's handlers ------------------------------------------------------ */

static bool
is_number(const char *text, int64_t *n)
{
	return units_parse_int(text, n) == 0 && *n >= 0 && *n < UINT32_MAX;
}

static bool
is_user(const char *user, uid_t uid)
{
	const struct passwd *pw = getpwnam(user);
	int64_t n;

	return pw != NULL ? pw->pw_uid == uid : is_number(user, &n) && (uid_t)n == uid;
}

static bool
is_group(const char *group, gid_t gid)
{
	const struct group *gr = getgrnam(group);
	int64_t n;

	return gr != NULL ? gr->gr_gid == gid : is_number(group, &n) && (gid_t)n == gid;
}

/* Reports what only root can do; name: of the user or group. */
static void
only_root(struct draft *d, const struct draft_section *s, const struct runner *r,
    const char *option, const char *what, const char *name, const char *advice)
{
	if (r->held)
		draft_error(d, s, option, "%s \"%s\": with privileged = false all handlers run as "
		    "user \"%s\": leave it out, or set privileged = true", what, name,
		    r->main.name);
	else
		draft_error(d, s, option, "%s \"%s\": %s", what, name, advice);
}

/* Without privileges handlers run as rqd's own user. */
static bool
check_own_identity(struct draft *d, const struct draft_section *s, const struct runner *r)
{
	const char *user = s->queue->user, *group = s->queue->group;
	bool user_ok = user[0] == '\0' || is_user(user, r->uid);
	bool group_ok = group[0] == '\0' || is_group(group, r->gid);

	if (!user_ok)
		only_root(d, s, r, "user", "only root can run handlers as user", user,
		    "leave user out, or start rqd as that user");
	if (!group_ok)
		only_root(d, s, r, "group", "only root can run handlers as group", group,
		    "leave group out");
	return user_ok && group_ok;
}

/* As root every queue must name its user: a forgotten `user` must not run handlers as root. */
static bool
check_root_identity(struct draft *d, const struct draft_section *s, const struct runner *r)
{
	const char *user = s->queue->user;

	if (!draft_is_sound(s, "user"))
		return true;
	if (user[0] == '\0' && s->at.line != 0 && !s->open)
		return draft_error(d, s, "user", "queue \"%s\" does not say its user, and rqd "
		    "runs as root: write user = \"NAME\", also if it is \"root\"", s->name);
	/* The main process' own user could end it, or take its place. */
	if (strcmp(r->main.name, "_rqd") == 0 && user[0] != '\0' && is_user(user, r->main.uid))
		return draft_error(d, s, "user", "user = \"%s\": rqd itself runs as that user, so "
		    "no handler may: give handlers a user of their own", user);
	return true;
}

/* -- what a queue needs --------------------------------------------------------------- */

static void
check_command_file(struct draft *d, const struct draft_section *s, const struct identity *id)
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
	else if (geteuid() != 0 ? access(path, X_OK) == -1 : !may_use(&st, id, S_IXUSR))
		why = "is not executable for the queue's user: chmod 755 it";
	else
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
	else if (directory != S_ISDIR(st.st_mode))
		finding_warn(&d->findings, at, "%s %s is %s directory", option, path,
		    directory ? "not a" : "a");
}

/* The last look-up: queues in a row mostly have the same user. */
struct lookup {
	const char	*user, *group;	/* NULL: none yet */
	struct identity	 id;
	const char	*step;		/* of identity_find(); NULL: it was found */
};

static void
find_identity(struct lookup *k, const struct queue_config *q, const struct runner *r)
{
	const char *user = q->user;

	if (user[0] == '\0' && r->held && !r->privileged)
		user = r->main.name;
	if (k->user != NULL && strcmp(k->user, user) == 0 && strcmp(k->group, q->group) == 0)
		return;
	identity_done(&k->id);
	*k = (struct lookup){ .user = user, .group = q->group };
	if (identity_find(user, q->group, &k->id, &k->step) == 0)
		k->step = NULL;
}

static void
check_queue(struct draft *d, const struct draft_section *s, struct lookup *k,
    const struct runner *r)
{
	const struct queue_config *q = s->queue;

	if (!config_consumes(q))
		return;
	if (!(r->privileged ? check_root_identity(d, s, r) : check_own_identity(d, s, r)))
		return;
	find_identity(k, q, r);
	if (k->step != NULL)
		draft_warn(d, s, k->step, "there is no %s \"%s\"", k->step,
		    strcmp(k->step, "user") == 0 ? q->user : q->group);
	else
		check_command_file(d, s, &k->id);
	check_file(d, draft_place(s, "directory"), "directory", q->directory, true);
	check_file(d, draft_place(s, "env_file"), "env_file", q->env_file, false);
}

/* -- the log -------------------------------------------------------------------------- */

/* Whether the process that will open the log may write here; errno where not. */
static bool
may_write(const char *path, const struct stat *st, const struct runner *r)
{
	struct identity id;
	const char *step;
	bool may;

	if (!r->held || r->privileged)	/* root opens it for the main process */
		return access(path, W_OK) == 0;
	if (identity_find(r->main.name, "", &id, &step) == -1)
		return true;
	may = may_use(st, &id, S_IWUSR);
	identity_done(&id);
	errno = EACCES;
	return may;
}

#define LOG_FALLBACK	": until that is corrected rqd logs to stderr"

/* A log that does not exist yet is created in its folder. */
static void
check_log_folder(struct draft *d, const struct runner *r, const struct place *at)
{
	const char *path = d->config->log.target;
	size_t n = (size_t)(strrchr(path, '/') - path);
	char *folder = xstrndup(path, n > 0 ? n : 1);
	struct stat st;
	int error = 0;

	if (stat(folder, &st) == -1)
		error = errno;
	else if (!S_ISDIR(st.st_mode))
		error = ENOTDIR;
	if (error != 0)
		finding_warn(&d->findings, at, "target %s: its folder %s: %s" LOG_FALLBACK, path,
		    folder, strerror(error));
	else if (!may_write(folder, &st, r))
		finding_warn(&d->findings, at, "target %s: rqd cannot write to its folder %s: %s"
		    LOG_FALLBACK, path, folder, strerror(errno));
	free(folder);
}

/* Warns if the daemon cannot open the file, since it logs to stderr then. */
static void
check_log_writable(struct draft *d, const struct runner *r, const struct place *at)
{
	const char *path = d->config->log.target;
	const char *why = NULL;
	struct stat st;

	if (lstat(path, &st) == -1)
		check_log_folder(d, r, at);
	else if (S_ISLNK(st.st_mode))
		why = "is a symbolic link, which is not followed";
	else if (S_ISDIR(st.st_mode))
		why = "is a directory, not a file";
	else if (!may_write(path, &st, r))
		why = "cannot be written by rqd";
	if (why != NULL)
		finding_warn(&d->findings, at, "target %s %s" LOG_FALLBACK, path, why);
}

/* Without a launcher the main process itself must be able to write the log. */
static bool
check_log_owner(struct draft *d, const struct runner *r, const struct place *at)
{
	const char *path = d->config->log.target;
	struct stat st;

	if (!r->held || r->privileged || lstat(path, &st) == -1 || st.st_uid == r->main.uid)
		return true;
	return finding_warn(&d->findings, at, "target %s does not belong to %s, which writes it: "
	    "chown %s %s", path, r->main.name, r->main.name, path);
}

/* Root does not open a log in a folder that another user may change. */
static void
check_log_file(struct draft *d, const struct runner *r)
{
	const char *path = d->config->log.target;
	const struct place *at = draft_global_place(d, SECTION_LOG, "target");
	char *why = NULL;

	if (path[0] != '/' || !check_log_owner(d, r, at))
		return;
	check_log_writable(d, r, at);
	if (r->held && trust_folders(path, r->main.uid, &why) == -1 && errno == EPERM)
		finding_warn(&d->findings, at, "target %s: %s, so others could replace the "
		    "file: use a folder of %s's, such as /var/log/rqd", path, why, r->main.name);
	free(why);
}

/* -- files of section redis ------------------------------------------------------------- */

/*
 * The launcher opens these files for the main process.  It follows no path that another
 * user can change, because that user could then read any file.
 */
static void
check_trust(struct draft *d, const struct runner *r, const struct place *at,
    const char *option, const char *path)
{
	char *why = NULL;

	if (path[0] == '\0' || !r->privileged)
		return;
	if (trust_folders(path, r->main.uid, &why) == -1 && errno == EPERM)
		finding_warn(&d->findings, at,
		    "%s %s: %s, so root does not open it for rqd: put it "
		    "into a folder that only root may write to, such as /etc", option, path, why);
	else if (why == NULL && trust_file(path, r->main.uid, &why) == -1 && errno == EPERM)
		finding_warn(&d->findings, at, "%s: %s: chown root %s; chmod go-w %s", option, why,
		    path, path);
	free(why);
}

static void
check_redis(struct draft *d, const struct runner *r)
{
	const struct redis_options *o = &d->config->redis;
	const struct { const char *option, *path; } files[] = {
		{ "password_file", o->password_file },
		{ "sentinel_password_file", o->sentinel_password_file }, { "tls_ca", o->tls_ca },
		{ "tls_cert", o->tls_cert }, { "tls_key", o->tls_key },
	};
	const struct place *at;
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		at = draft_global_place(d, SECTION_REDIS, files[i].option);
		check_file(d, at, files[i].option, files[i].path, false);
		check_trust(d, r, at, files[i].option, files[i].path);
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
	struct runner r = find_runner(d->config);
	struct lookup k = { .user = NULL };

	check_log_file(d, &r);
	check_redis(d, &r);
	for (size_t i = 0; i < d->queues.n; i++)
		check_queue(d, &d->queues.list[i], &k, &r);
	identity_done(&k.id);
}
