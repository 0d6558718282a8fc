/*
 * Checks that only root decides where a path leads.
 *
 * When root opens a path, a user who may change a folder on the way can put a symbolic link
 * there, to a file that only root may open.  sshd(8) checks each folder, too (StrictModes).
 *
 * A folder must be root's, and nobody but root and root's group may write to it.  A sticky
 * folder, as /tmp is, may be open to others; the file that is taken from it must then be
 * root's.  Only root can have made a symbolic link that passes these checks: it is followed,
 * and its target is checked in the same way.
 */
#pragma once

#include <sys/types.h>

#include "base/util.h"

/*
 * Looks at all folders of an absolute path.  The last component may be missing; the
 * owner of the file itself matters only in a sticky folder.  What belongs to the user
 * `also` counts as root's; 0: no such user.
 *
 * Returns 0, or -1 with errno and *cause, a sentence that names the folder: EPERM where
 * somebody else decides, or why it cannot be looked at.
 */
int	trust_folders(const char *path, uid_t also, char **cause) MUSTCHECK;

/* The file, too: it must be there, be root's, and nobody else may write to it. */
int	trust_file(const char *path, uid_t also, char **cause) MUSTCHECK;
