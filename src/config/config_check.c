/*
 * What no option can say alone: names and keys of queues against each other,
 * limits that belong together, who runs what, and what this machine lacks.
 *
 * Errors are what can never work; what may yet come (a command, a user, a
 * file) is a warning.  rqctl reads the file for other daemons, perhaps on
 * another machine and as another user: only the errors that do not depend on
 * those are looked for then.
 */
#include "config/config_load.h"

#include <errno.h>
#include <pwd.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/trust.h"
#include "base/units.h"
#include "base/utf8.h"
#include "handler/explain.h"
#include "handler/identity.h"
#include "handler/privilege.h"
#include "policy/message.h"
#include "queue/keys.h"

static struct setting *
draft_setting(const struct draft *d, const char *option)
{
	return d->given[option_index(option_find(SECTION_QUEUE, option))];
}

/* Whether its value counts: given without fault, or not given at all. */
static bool
is_sound(const struct draft *d, const char *option)
{
	const struct setting *s = draft_setting(d, option);

	return s == NULL || !s->bad;
}

/* Where the option was given; the queue's place where it was not. */
static const struct place *
draft_place(const struct draft *d, const char *option)
{
	const struct setting *s = draft_setting(d, option);

	return s != NULL ? &s->at : &d->at;
}

/* -- names and keys -------------------------------------------------------------------- */

/* Sorted by name or key, and by order where those are equal. */
static int
by_name(const void *va, const void *vb)
{
	const struct draft *const *a = va, *const *b = vb;
	int d = strcmp((*a)->queue->name, (*b)->queue->name);

	return d != 0 ? d : *a < *b ? -1 : 1;
}

static int
by_key(const void *va, const void *vb)
{
	const struct draft *const *a = va, *const *b = vb;
	int d = strcmp((*a)->queue->key, (*b)->queue->key);

	return d != 0 ? d : *a < *b ? -1 : 1;
}

static int
key_compare(const void *key, const void *v)
{
	const struct draft *const *d = v;

	return strcmp(key, (*d)->queue->key);
}

static void
check_names(struct loader *l, const struct draft **sorted, size_t n)
{
	char first[PLACE_TEXT_MAX];
	size_t i;

	qsort(sorted, n, sizeof(*sorted), by_name);
	for (i = 1; i < n; i++) {
		if (strcmp(sorted[i - 1]->queue->name, sorted[i]->queue->name) != 0)
			continue;
		finding_error(&l->findings, &sorted[i]->at,
		    "queue \"%s\" is defined twice (first at %s)", sorted[i]->queue->name,
		    place_text(&sorted[i - 1]->at, first));
		findings_share(&l->findings, &sorted[i - 1]->at);
	}
}

/* One key under two names; one name twice has been said. */
static void
check_equal_keys(struct loader *l, const struct draft **sorted, size_t n)
{
	char first[PLACE_TEXT_MAX];
	size_t i;

	for (i = 1; i < n; i++) {
		const struct draft *a = sorted[i - 1], *b = sorted[i];

		if (strcmp(a->queue->key, b->queue->key) != 0 ||
		    strcmp(a->queue->name, b->queue->name) == 0)
			continue;
		finding_error(&l->findings, draft_place(b, "key"), "queue \"%s\" has the same "
		    "key as queue \"%s\" (%s): \"%s\"", b->queue->name, a->queue->name,
		    place_text(&a->at, first), b->queue->key);
		findings_share(&l->findings, &a->at);
	}
}

/* Whether another queue's key is one that rqd derives from this one's. */
static void
check_derived_keys(struct loader *l, const struct draft *d, const struct draft **sorted,
    size_t n)
{
	char place[PLACE_TEXT_MAX];
	enum key k;

	for (k = KEY_QUEUE + 1; k < KEY_MAX; k++) {
		char *key = xasprintf("%s%s", d->queue->key, keys_suffix(k));
		const struct draft *const *at = bsearch(key, sorted, n, sizeof(*sorted), key_compare);

		if (at != NULL) {
			finding_error(&l->findings, draft_place(*at, "key"), "the key \"%s\" of "
			    "queue \"%s\" is one that queue \"%s\" (%s) uses: give it another name "
			    "or key", key, (*at)->queue->name, d->queue->name,
			    place_text(&d->at, place));
			findings_share(&l->findings, &d->at);
		}
		free(key);
	}
}

static void
check_reserved_key(struct loader *l, const struct draft *d)
{
	const char *key = d->queue->key;

	if (strcmp(key, KEYS_DAEMONS) == 0 ||
	    strncmp(key, KEYS_DAEMON_PREFIX, strlen(KEYS_DAEMON_PREFIX)) == 0)
		finding_error(&l->findings, draft_place(d, "key"), "the key \"%s\" is one that "
		    "daemons use for themselves: give the queue another one", key);
}

static void
check_keys(struct loader *l)
{
	const struct draft **sorted = xcalloc(l->ndrafts + 1, sizeof(*sorted));
	size_t i, n = 0;

	for (i = 0; i < l->ndrafts; i++) {
		if (l->drafts[i].named)
			sorted[n++] = &l->drafts[i];
	}
	check_names(l, sorted, n);
	qsort(sorted, n, sizeof(*sorted), by_key);
	check_equal_keys(l, sorted, n);
	for (i = 0; i < n; i++) {
		if (i > 0 && strcmp(sorted[i - 1]->queue->key, sorted[i]->queue->key) == 0)
			continue;
		check_derived_keys(l, sorted[i], sorted, n);
		check_reserved_key(l, sorted[i]);
	}
	free(sorted);
}

/* -- one queue ---------------------------------------------------------------------------- */

static void
check_title(struct loader *l, const struct draft *d)
{
	const char *name = d->queue->name;

	if (d->named && (!message_id_ok(name, strlen(name)) || !utf8_is_valid(name, strlen(name))))
		finding_error(&l->findings, &d->at, "queue \"%.40s\": a name has 1 to %d bytes of "
		    "UTF-8 and no control characters", name, MESSAGE_ID_MAX);
}

/* Several channels or patterns; the same one twice would be heard twice. */
static void
check_several(struct loader *l, const struct draft *d)
{
	const struct queue_config *q = d->queue;
	size_t i, k;

	if (q->keys[1] != NULL && !kind_has(q->kind, TRAIT_SUBSCRIBES)) {
		finding_error(&l->findings, draft_place(d, "key"), "key takes one value with kind "
		    "\"%s\"", kind_name(q->kind));
		return;
	}
	for (i = 1; q->keys[0] != NULL && q->keys[i] != NULL; i++) {
		for (k = 0; k < i && strcmp(q->keys[k], q->keys[i]) != 0; k++)
			continue;
		if (k < i)
			finding_error(&l->findings, draft_place(d, "key"), "key names \"%s\" twice",
			    q->keys[i]);
	}
}

static void
check_together(struct loader *l, const struct draft *d)
{
	const struct queue_config *q = d->queue;
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];

	if (d->named && !d->open && draft_setting(d, "command") == NULL)
		finding_error(&l->findings, &d->at, "queue \"%s\" has no command: write "
		    "command = {\"/path/to/command\"}", q->name);
	if (q->backoff > q->backoff_max && is_sound(d, "backoff") && is_sound(d, "backoff_max"))
		finding_error(&l->findings, draft_setting(d, "backoff") != NULL ?
		    draft_place(d, "backoff") : draft_place(d, "backoff_max"),
		    "backoff %s is longer than backoff_max %s", units_duration(q->backoff, a),
		    units_duration(q->backoff_max, b));
	if (q->lease <= l->config->redis.timeout && draft_setting(d, "lease") != NULL &&
	    is_sound(d, "lease"))
		finding_warn(&l->findings, draft_place(d, "lease"), "lease %s is not longer than "
		    "redis.timeout %s: a slow answer may cost the lease", units_duration(q->lease, a),
		    units_duration(l->config->redis.timeout, b));
}

/* -- who runs it ------------------------------------------------------------------------------ */

static bool
user_number(const char *user, uid_t *ret)
{
	const struct passwd *pw = getpwnam(user);
	int64_t n;

	if (pw != NULL)
		*ret = pw->pw_uid;
	else if (units_parse_int(user, &n) == 0 && n >= 0 && n < UINT32_MAX)
		*ret = (uid_t)n;
	else
		return false;
	return true;
}

static bool
group_number(const char *group, gid_t *ret)
{
	const struct group *gr = getgrnam(group);
	int64_t n;

	if (gr != NULL)
		*ret = gr->gr_gid;
	else if (units_parse_int(group, &n) == 0 && n >= 0 && n < UINT32_MAX)
		*ret = (gid_t)n;
	else
		return false;
	return true;
}

/* Who runs handlers, and as whom. */
struct runner {
	bool		 held;		/* this process has privileges */
	bool		 privileged;	/* and rqd would keep them */
	struct privilege_user main;	/* valid while held */
	uid_t		 uid;		/* of all handlers; valid unless privileged */
	gid_t		 gid;
};

/* Root that gives up its privileges is judged as the user that it becomes. */
static struct runner
find_runner(const struct loader *l)
{
	struct runner r = { .held = privilege_held() };

	r.privileged = r.held && l->config->privileged;
	if (r.held)
		r.main = privilege_user();
	r.uid = r.held ? r.main.uid : geteuid();
	r.gid = r.held ? r.main.gid : getegid();
	return r;
}

#define NOT_PRIVILEGED	"with privileged = false all handlers run as user \"%s\": leave it out, or " \
	"set privileged = true"

/* Without privileges only what one is already can be asked for. */
static bool
check_own_user(struct loader *l, const struct draft *d, const struct runner *r)
{
	const char *user = d->queue->user;
	uid_t uid;

	if (user[0] == '\0' || (user_number(user, &uid) && uid == r->uid))
		return true;
	if (r->held)
		finding_error(&l->findings, draft_place(d, "user"), "only root can run handlers as "
		    "user \"%s\": " NOT_PRIVILEGED, user, r->main.name);
	else
		finding_error(&l->findings, draft_place(d, "user"), "only root can run handlers as "
		    "user \"%s\": leave user out, or start rqd as that user", user);
	return false;
}

static bool
check_own_group(struct loader *l, const struct draft *d, const struct runner *r)
{
	const char *group = d->queue->group;
	gid_t gid;

	if (group[0] == '\0' || (group_number(group, &gid) && gid == r->gid))
		return true;
	if (r->held)
		finding_error(&l->findings, draft_place(d, "group"), "only root can run handlers as "
		    "group \"%s\": " NOT_PRIVILEGED, group, r->main.name);
	else
		finding_error(&l->findings, draft_place(d, "group"), "only root can run handlers as "
		    "group \"%s\": leave group out", group);
	return false;
}

static bool
check_own_identity(struct loader *l, const struct draft *d, const struct runner *r)
{
	bool user = check_own_user(l, d, r);

	return check_own_group(l, d, r) && user;
}

/* The main process' own user could end it, or take its place. */
static bool
check_not_ours(struct loader *l, const struct draft *d, const struct runner *r)
{
	const char *user = d->queue->user;
	uid_t uid;

	if (strcmp(r->main.name, "_rqd") != 0 || !user_number(user, &uid) || uid != r->main.uid)
		return true;
	finding_error(&l->findings, draft_place(d, "user"), "user = \"%s\": rqd itself runs as that "
	    "user, so no handler may: give handlers a user of their own", user);
	return false;
}

/* Root says for whom: a forgotten `user` must not run everything as root. */
static bool
check_root_identity(struct loader *l, const struct draft *d, const struct runner *r)
{
	if (d->queue->user[0] != '\0' && is_sound(d, "user"))
		return check_not_ours(l, d, r);
	if (d->queue->user[0] != '\0' || d->at.line == 0 || d->open || !is_sound(d, "user"))
		return true;
	finding_error(&l->findings, draft_place(d, "user"), "queue \"%s\" does not say its user, "
	    "and root runs this: write user = \"NAME\", also if it is \"root\"", d->queue->name);
	return false;
}

/* -- what this machine lacks --------------------------------------------------------------------- */

static bool
is_in_groups(const struct identity *id, gid_t gid)
{
	size_t i;

	for (i = 0; i < id->ngroups; i++) {
		if (id->groups[i] == gid)
			return true;
	}
	return id->gid == gid;
}

/*
 * Whether somebody else may execute (S_IXUSR) or write it (S_IWUSR): root asks this for
 * a queue's user.  Folders on the way are not looked at.
 */
static bool
may_use(const struct stat *st, const struct identity *id, mode_t owner_bit)
{
	if (st->st_uid == id->runs_as)
		return (st->st_mode & owner_bit) != 0;
	if (is_in_groups(id, st->st_gid))
		return (st->st_mode & owner_bit >> 3) != 0;
	return (st->st_mode & owner_bit >> 6) != 0;
}

static void
check_command_file(struct loader *l, const struct draft *d, const struct identity *id)
{
	const char *path = d->queue->command[0];
	const char *why = NULL;
	char *first_line = NULL;
	struct stat st;

	if (path == NULL || draft_setting(d, "command")->bad)
		return;
	if (stat(path, &st) == -1)
		why = strerror(errno);
	else if (S_ISDIR(st.st_mode))
		why = "is a directory";
	else if (geteuid() != 0 ? access(path, X_OK) == -1 : !may_use(&st, id, S_IXUSR))
		why = "is not executable for the queue's user: chmod 755 it";
	else
		why = first_line = explain_first_line(path);
	if (why != NULL)
		finding_warn(&l->findings, draft_place(d, "command"), "command %s: %s", path, why);
	free(first_line);
}

static void
check_file(struct loader *l, const struct place *at, const char *option, const char *path,
    bool directory)
{
	struct stat st;

	if (path[0] == '\0')
		return;
	if (stat(path, &st) == -1)
		finding_warn(&l->findings, at, "%s %s: %s", option, path, strerror(errno));
	else if (directory != S_ISDIR(st.st_mode))
		finding_warn(&l->findings, at, "%s %s is %s directory", option, path,
		    directory ? "not a" : "a");
}

/* Names looked up last: queues in a row mostly have the same user. */
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
check_machine(struct loader *l, const struct draft *d, struct lookup *k, const struct runner *r)
{
	const struct queue_config *q = d->queue;
	bool user;

	if (!(r->privileged ? check_root_identity(l, d, r) : check_own_identity(l, d, r)))
		return;
	find_identity(k, q, r);
	if (k->step != NULL) {
		user = strcmp(k->step, "user") == 0;
		finding_warn(&l->findings, draft_place(d, user ? "user" : "group"),
		    "there is no %s \"%s\"", k->step, user ? q->user : q->group);
	} else {
		check_command_file(l, d, &k->id);
	}
	check_file(l, draft_place(d, "directory"), "directory", q->directory, true);
	check_file(l, draft_place(d, "env_file"), "env_file", q->env_file, false);
}

/* -- outside of queues ------------------------------------------------------------------------------- */

static const struct place *
given_place(const struct loader *l, enum section section, const char *option)
{
	static const struct place nowhere = { "", 0 };
	const struct setting *s = l->given[option_index(option_find(section, option))];

	return s != NULL ? &s->at : &nowhere;
}

static void
check_redis(struct loader *l)
{
	const struct redis_options *r = &l->config->redis;
	static const char *const names[] = { "password_file", "tls_ca", "tls_cert", "tls_key" };
	const char *paths[] = { r->password_file, r->tls_ca, r->tls_cert, r->tls_key };
	size_t i;

	if ((r->tls_cert[0] == '\0') != (r->tls_key[0] == '\0'))
		finding_error(&l->findings, given_place(l, SECTION_REDIS,
		    r->tls_cert[0] != '\0' ? "tls_cert" : "tls_key"),
		    "tls_cert and tls_key go together: give both or none");
	for (i = 0; i < ARRAY_LEN(names) && !l->source->client; i++)
		check_file(l, given_place(l, SECTION_REDIS, names[i]), names[i], paths[i], false);
}

/* Without a launcher the main process writes it, or nobody does. */
static bool
check_log_owner(struct loader *l, const struct runner *r, const struct place *at)
{
	const char *path = l->config->log.target;
	struct stat st;

	if (r->privileged || lstat(path, &st) == -1 || st.st_uid == r->main.uid)
		return true;
	finding_warn(&l->findings, at, "target %s does not belong to %s, who writes it: "
	    "chown %s %s", path, r->main.name, r->main.name, path);
	return false;
}

/* Whether the process that will open the log may write here; errno where not. */
static bool
may_write(const char *path, const struct stat *st, const struct runner *r)
{
	struct identity id = { .gid = r->gid, .runs_as = r->uid };
	const char *step;
	bool may;

	if (!r->held || r->privileged)
		return access(path, W_OK) == 0;
	if (identity_find(r->main.name, "", &id, &step) == -1)
		id = (struct identity){ .gid = r->gid, .runs_as = r->uid };
	may = may_use(st, &id, S_IWUSR);
	identity_done(&id);
	errno = EACCES;
	return may;
}

#define LOG_FALLBACK	": until that is corrected rqd logs to stderr"

/* A log that does not exist yet is created in its folder. */
static void
check_log_folder(struct loader *l, const struct runner *r, const struct place *at)
{
	const char *path = l->config->log.target;
	size_t n = (size_t)(strrchr(path, '/') - path);
	char *folder = xstrndup(path, n > 0 ? n : 1);
	struct stat st;
	int error = 0;

	if (stat(folder, &st) == -1)
		error = errno;
	else if (!S_ISDIR(st.st_mode))
		error = ENOTDIR;
	if (error != 0)
		finding_warn(&l->findings, at, "target %s: its folder %s: %s" LOG_FALLBACK, path,
		    folder, strerror(error));
	else if (!may_write(folder, &st, r))
		finding_warn(&l->findings, at, "target %s: rqd cannot write to its folder %s: %s"
		    LOG_FALLBACK, path, folder, strerror(errno));
	free(folder);
}

/* Where the daemon cannot open the file it logs to stderr. */
static void
check_log_writable(struct loader *l, const struct runner *r, const struct place *at)
{
	const char *path = l->config->log.target;
	const char *why = NULL;
	struct stat st;

	if (lstat(path, &st) == -1)
		check_log_folder(l, r, at);
	else if (S_ISLNK(st.st_mode))
		why = "is a symbolic link, which is not followed";
	else if (S_ISDIR(st.st_mode))
		why = "is a directory, not a file";
	else if (!may_write(path, &st, r))
		why = "cannot be written by rqd";
	if (why != NULL)
		finding_warn(&l->findings, at, "target %s %s" LOG_FALLBACK, path, why);
}

/* Whoever may change the folder decides what the file is: root opens nothing there. */
static void
check_log_file(struct loader *l, const struct runner *r)
{
	const char *path = l->config->log.target;
	const struct place *at = given_place(l, SECTION_LOG, "target");
	char *why = NULL;

	if (path[0] != '/' || (r->held && !check_log_owner(l, r, at)))
		return;
	check_log_writable(l, r, at);
	if (r->held && trust_folders(path, r->main.uid, &why) == -1 && errno == EPERM)
		finding_warn(&l->findings, at, "target %s: %s, so others could put another file "
		    "there: take a folder of %s's, such as /var/log/rqd", path, why, r->main.name);
	free(why);
}

/*
 * Files that the launcher opens for the main process.  It follows no path that another
 * user can change: that would give any file away.
 */
static void
check_secret(struct loader *l, const struct runner *r, const char *option, const char *path)
{
	const struct place *at = given_place(l, SECTION_REDIS, option);
	char *why = NULL;

	if (path[0] == '\0' || !r->privileged)
		return;
	if (trust_folders(path, r->main.uid, &why) == -1 && errno == EPERM)
		finding_warn(&l->findings, at, "%s %s: %s, so root does not open it for rqd: put it "
		    "into a folder that only root may write to, such as /etc", option, path, why);
	else if (why == NULL && trust_file(path, r->main.uid, &why) == -1 && errno == EPERM)
		finding_warn(&l->findings, at, "%s: %s: chown root %s; chmod go-w %s", option, why,
		    path, path);
	free(why);
}

static void
check_password_file(struct loader *l)
{
	const char *path = l->config->redis.password_file;
	struct stat st;

	if (path[0] != '\0' && stat(path, &st) == 0 && (st.st_mode & S_IROTH) != 0)
		finding_warn(&l->findings, given_place(l, SECTION_REDIS, "password_file"),
		    "password_file %s can be read by everybody: chmod o-r %s", path, path);
}

static void
check_secrets(struct loader *l, const struct runner *r)
{
	const struct redis_options *o = &l->config->redis;

	check_password_file(l);
	check_secret(l, r, "password_file", o->password_file);
	check_secret(l, r, "tls_ca", o->tls_ca);
	check_secret(l, r, "tls_cert", o->tls_cert);
	check_secret(l, r, "tls_key", o->tls_key);
}

void
config_check(struct loader *l)
{
	struct lookup k = { .user = NULL };
	struct runner r = { .held = false };
	size_t i;

	check_redis(l);
	check_keys(l);
	if (!l->source->client) {
		r = find_runner(l);
		check_log_file(l, &r);
		check_secrets(l, &r);
	}
	for (i = 0; i < l->ndrafts; i++) {
		check_title(l, &l->drafts[i]);
		check_several(l, &l->drafts[i]);
		check_together(l, &l->drafts[i]);
		if (!l->source->client)
			check_machine(l, &l->drafts[i], &k, &r);
	}
	identity_done(&k.id);
}
