/*
 * Paths that only root can change: owners, modes, sticky folders, links.
 */
#include "unit.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/trust.h"

#define OTHER	60371

static char	dir[64];

/* Returns the path of a file in the test's folder; valid for four calls. */
static const char *
in_dir(const char *name)
{
	static char path[4][256];
	static unsigned i;

	i = (i + 1) % 4;
	(void)snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);
	return path[i];
}

static int
set_up(void **state UNUSED)
{
	int fd;

	strcpy(dir, "/tmp/rqd-test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(mkdir(in_dir("a"), 0755), 0);
	assert_int_equal(mkdir(in_dir("a/b"), 0755), 0);
	fd = open(in_dir("a/b/file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd != -1);
	(void)close(fd);
	return 0;
}

static int
tear_down(void **state UNUSED)
{
	char *command = xasprintf("rm -r %s", dir);
	int r = system(command);

	free(command);
	return r;
}

#define FIXTURE_TEST(name)	ROOT_TEST_WITH(name, set_up, tear_down)

static void
good(const char *path)
{
	char *cause = NULL;

	assert_int_equal(trust_file(path, 0, &cause), 0);
	assert_int_equal(trust_folders(path, 0, &cause), 0);
	assert_null(cause);
}

static void
refused(int r, char *cause, const char *part)
{
	int error = errno;

	assert_int_equal(r, -1);
	assert_int_equal(error, EPERM);
	assert_non_null(strstr(cause, part));
	free(cause);
}

/*
 * Expects that all checks refuse the file.  A user who may change a folder can replace
 * a file in it, even one that is root's.
 */
static void
bad(const char *path, const char *part)
{
	char *cause = NULL;
	int r = trust_file(path, 0, &cause);

	refused(r, cause, part);
	cause = NULL;
	r = trust_folders(path, 0, &cause);
	refused(r, cause, part);
	assert_int_equal(trust_file(path, 0, NULL), -1);
}

FIXTURE_TEST(roots)
{
	good("/etc/passwd");
	good(in_dir("a/b/file"));
	good(in_dir("a//b/./../b/file"));
	good(in_dir("a/../../../../etc/passwd"));
}

FIXTURE_TEST(folders_of_others)
{
	assert_int_equal(chown(in_dir("a"), OTHER, 0), 0);
	bad(in_dir("a/b/file"), "/a belongs to user 60371");
	assert_int_equal(trust_file(in_dir("a/b/file"), OTHER, NULL), 0);
	assert_int_equal(chown(in_dir("a"), 0, 0), 0);
	assert_int_equal(chown(in_dir("a/b"), OTHER, 0), 0);
	bad(in_dir("a/b/file"), "/a/b belongs to user 60371");
	bad(in_dir("a/b/../../a/b/file"), "/a/b belongs to user 60371");
}

FIXTURE_TEST(modes)
{
	assert_int_equal(chmod(in_dir("a"), 0777), 0);
	bad(in_dir("a/b/file"), "others than root may write to ");
	assert_int_equal(chmod(in_dir("a"), 0775), 0);
	good(in_dir("a/b/file"));			/* only root's group may write */
	assert_int_equal(chown(in_dir("a"), 0, OTHER), 0);
	bad(in_dir("a/b/file"), "others than root may write to ");
}

/* As setfacl(1) makes it: u::rwx, u:OTHER:rwx, g::r-x, m::rwx, o::r-x. */
static const struct acl {
	uint32_t version;
	struct { uint16_t tag, permissions; uint32_t id; } entry[5];
} acl = { 2, { { 1, 7, UINT32_MAX }, { 2, 7, OTHER }, { 4, 5, UINT32_MAX }, { 16, 7, UINT32_MAX },
    { 32, 5, UINT32_MAX } } };

/* With a list the group's mode is not what root's group may do: it says what anybody may. */
FIXTURE_TEST(access_control_lists)
{
	if (setxattr(in_dir("a"), "system.posix_acl_access", &acl, sizeof(acl), 0) == -1) {
		assert_int_equal(errno, ENOTSUP);
		skip();
	}
	bad(in_dir("a/b/file"), "others than root may write to ");
	assert_int_equal(removexattr(in_dir("a"), "system.posix_acl_access"), 0);
	assert_int_equal(chmod(in_dir("a"), 0755), 0);
	good(in_dir("a/b/file"));
	assert_int_equal(setxattr(in_dir("a/b/file"), "system.posix_acl_access", &acl,
	    sizeof(acl), 0), 0);
	assert_int_equal(trust_file(in_dir("a/b/file"), 0, NULL), -1);
	assert_int_equal(errno, EPERM);
}

/* In a folder like /tmp, only files and links that belong to root are trusted. */
FIXTURE_TEST(sticky)
{
	assert_int_equal(chmod(in_dir("a/b"), 01777), 0);
	good(in_dir("a/b/file"));
	assert_int_equal(trust_folders(in_dir("a/b/missing"), 0, NULL), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(chown(in_dir("a/b/file"), OTHER, 0), 0);
	bad(in_dir("a/b/file"), "/a/b/file belongs to user 60371");
	assert_int_equal(symlink("/etc/passwd", in_dir("a/b/link")), 0);
	good(in_dir("a/b/link"));
	assert_int_equal(lchown(in_dir("a/b/link"), OTHER, 0), 0);
	bad(in_dir("a/b/link"), "/a/b/link belongs to user 60371");
}

/* trust_file() also checks the file itself; trust_folders() does not. */
FIXTURE_TEST(the_file)
{
	char *cause = NULL;
	int r;

	assert_int_equal(trust_folders(in_dir("a/b/missing"), 0, NULL), 0);
	assert_int_equal(trust_file(in_dir("a/b/missing"), 0, NULL), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(trust_folders(in_dir("a/missing/file"), 0, NULL), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(chown(in_dir("a/b/file"), OTHER, 0), 0);
	r = trust_file(in_dir("a/b/file"), 0, &cause);
	refused(r, cause, "/a/b/file belongs to user 60371");
	assert_int_equal(trust_folders(in_dir("a/b/file"), 0, NULL), 0);
	assert_int_equal(chown(in_dir("a/b/file"), 0, 0), 0);
	assert_int_equal(chmod(in_dir("a/b/file"), 0602), 0);
	cause = NULL;
	r = trust_file(in_dir("a/b/file"), 0, &cause);
	refused(r, cause, "others than root may write to ");
}

/* Links that root owns are followed, and each folder on the way is checked. */
FIXTURE_TEST(links)
{
	assert_int_equal(symlink("a/b", in_dir("short")), 0);
	good(in_dir("short/file"));
	assert_int_equal(symlink(in_dir("short/../../short"), in_dir("long")), 0);
	good(in_dir("long/file"));
	assert_int_equal(symlink("/etc", in_dir("a/etc")), 0);
	good(in_dir("a/etc/passwd"));
	assert_int_equal(chown(in_dir("a"), OTHER, 0), 0);
	bad(in_dir("short/file"), "/a belongs to user 60371");
	bad(in_dir("long/file"), "/a belongs to user 60371");
	bad(in_dir("a/etc/passwd"), "/a belongs to user 60371");
	assert_int_equal(symlink("loop", in_dir("loop")), 0);
	assert_int_equal(trust_folders(in_dir("loop/x"), 0, NULL), -1);
	assert_int_equal(errno, ELOOP);
}

FIXTURE_TEST(too_long)
{
	char path[5000];

	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(trust_folders(path, 0, NULL), -1);
	assert_int_equal(errno, ENAMETOOLONG);
}

/* A relative path is checked from the root on, too. */
FIXTURE_TEST(relative)
{
	assert_int_equal(chdir(in_dir("a")), 0);
	good("b/file");
	assert_int_equal(chown(dir, OTHER, 0), 0);
	bad("b/file", "belongs to user 60371");
	assert_int_equal(chown(dir, 0, 0), 0);
	assert_int_equal(chdir("/"), 0);
}
