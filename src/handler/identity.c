/*
 * Looks up users and groups.
 *
 *	user	group	uid		gid		supplementary groups
 *	-	-	stays		stays		stay
 *	-	set	stays		that group	stay
 *	set	-	that user	the user's	the user's
 *	set	set	that user	that group	the user's, and that group
 *
 * Without root, nothing changes if the daemon already has the user and group, because it could
 * not change the groups.  Any other change fails, at the start of the handler, with EPERM.
 *
 * A number that is not a name means the id.  A user without a passwd entry needs a
 * group, and its home is "/".
 */
#include "handler/identity.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/units.h"
#include "handler/privilege.h"

/* A decimal number that can be a uid_t or gid_t: -1 is not one. */
static bool
parse_id(const char *s, uint32_t *ret)
{
	int64_t n;

	if (units_parse_int(s, &n) == -1 || n < 0 || n >= (int64_t)UINT32_MAX)
		return false;
	*ret = (uint32_t)n;
	return true;
}

/* "No such entry" has many errnos, 0 among them; see getpwnam(3). */
static int
lookup_error(void)
{
	switch (errno) {
	case 0:
	case ESRCH:
	case EBADF:
	case EPERM:
		return ENOENT;
	}
	return errno;
}

/* The entry of a name or number; NULL with errno.  *uid is set for any number. */
static struct passwd *
find_user(const char *user, uid_t *uid)
{
	struct passwd *pw;

	errno = 0;
	if ((pw = getpwnam(user)) != NULL)
		return pw;
	errno = lookup_error();
	if (errno != ENOENT || !parse_id(user, uid))
		return NULL;
	errno = 0;
	if ((pw = getpwuid(*uid)) == NULL)
		errno = lookup_error();
	return pw;
}

static int
find_group(const char *group, gid_t *ret)
{
	struct group *gr;

	errno = 0;
	if ((gr = getgrnam(group)) != NULL) {
		*ret = gr->gr_gid;
		return 0;
	}
	errno = lookup_error();
	return errno == ENOENT && parse_id(group, ret) ? 0 : -1;
}

/* Sets the user's groups.  getgrouplist(3) tells their number only by failing. */
static void
set_groups(struct identity *id)
{
	int n = 16, got;

	do {
		got = n;
		id->groups = xreallocarray(id->groups, (size_t)n, sizeof(*id->groups));
		if (getgrouplist(id->name, id->gid, id->groups, &got) != -1)
			break;
		n = got > n ? got : n * 2;
	} while (n <= 65536);
	id->ngroups = (size_t)(got < n ? got : n);
}

/* Whether this process has the identity already. */
static bool
is_already(const struct identity *id)
{
	uid_t u[3];
	gid_t g[3];

	return getresuid(&u[0], &u[1], &u[2]) == 0 && getresgid(&g[0], &g[1], &g[2]) == 0 &&
	    (id->uid == (uid_t)-1 || (u[0] == id->uid && u[1] == id->uid)) &&
	    g[0] == id->gid && g[1] == id->gid;
}

int
identity_find(const char *user, const char *group, struct identity *ret,
    const char **step)
{
	struct identity id = { .uid = (uid_t)-1, .gid = (gid_t)-1, .runs_as = geteuid() };
	bool named = user[0] != '\0';
	struct passwd *pw = named ? find_user(user, &id.uid) : getpwuid(id.runs_as);

	*step = "user";
	if (named && pw == NULL && (errno != ENOENT || id.uid == (uid_t)-1 || group[0] == '\0'))
		return -1;
	if (named && pw != NULL) {
		id.uid = pw->pw_uid;
		id.gid = pw->pw_gid;
	}
	if (named)
		id.runs_as = id.uid;
	/* The library owns pw: this copies it before the next look-up. */
	id.name = pw != NULL ? xstrdup(pw->pw_name) : xasprintf("%lu", (unsigned long)id.runs_as);
	id.home = xstrdup(pw != NULL && pw->pw_dir[0] != '\0' ? pw->pw_dir : "/");
	*step = "group";
	if (group[0] != '\0' && find_group(group, &id.gid) == -1) {
		identity_done(&id);	/* free(3) keeps errno */
		return -1;
	}
	if (named)
		set_groups(&id);
	if ((!named || !privilege_held()) && is_already(&id)) {
		id.uid = (uid_t)-1;
		id.gid = (gid_t)-1;
		id.ngroups = 0;
	}
	*ret = id;
	return 0;
}

void
identity_done(struct identity *id)
{
	free(id->groups);
	free(id->name);
	free(id->home);
	*id = (struct identity){ .groups = NULL };
}
