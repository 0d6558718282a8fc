/*
 * Reads a configuration file, whole, after checking what kind of file it is.
 *
 * The file is opened without blocking and then checked by its descriptor: libconfuse
 * exits on a directory, and a FIFO would hang a reload for ever.  As root, the file's
 * owner and mode are checked too: only root may decide what root runs.
 */
#include "config/config_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NULL, or why root must not follow this file. */
static const char *
distrust(const struct stat *st)
{
	if (geteuid() != 0)
		return NULL;
	if (st->st_uid != 0 && st->st_uid != getuid())
		return "does not belong to root, who runs this: chown it to root";
	if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return "can be written by others, and root runs this: chmod go-w it";
	return NULL;
}

/* NULL, or why the file is refused. */
static const char *
refuse(const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return "is a directory";
	if (!S_ISREG(st->st_mode))
		return "is not a regular file";
	if (st->st_size > CONFIG_FILE_MAX)
		return "is larger than 16M";
	return distrust(st);
}

/* Returns all bytes and a NUL, or NULL with errno; EFBIG where the file is too long. */
static char *
read_all(int fd, size_t *len)
{
	struct buf b = BUF_INIT;

	if (buf_read(&b, fd, CONFIG_FILE_MAX) == -1) {
		buf_done(&b);
		return NULL;
	}
	*len = b.len;
	(void)buf_str(&b);
	return buf_steal(&b);
}

/* Reports a NUL byte, which would end the text early, or a known binary format. */
static bool
is_text(const char *bytes, size_t len, const char *file, struct findings *f)
{
	const char *nul = memchr(bytes, '\0', len), *p;
	struct place at = { file, 1 };

	if (len >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0)) {
		finding_error(f, &at, "the file is UTF-16: save it as UTF-8");
		return false;
	}
	if (nul == NULL)
		return true;
	for (p = bytes; p < nul; p++)
		at.line += *p == '\n';
	finding_error(f, &at, "there is a NUL byte: this is not text");
	return false;
}

char *
config_text_read(const char *path, const struct place *from, size_t *len,
    struct stat *st, struct findings *f)
{
	struct place at = { findings_file(f, path), 0 };
	const char *why = NULL;
	char *bytes = NULL;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int errno_open = errno;

	if (fd == -1 || fstat(fd, st) == -1)
		why = strerror(errno);
	else if ((why = refuse(st)) == NULL && (bytes = read_all(fd, len)) == NULL)
		why = strerror(errno);
	if (fd != -1)
		close(fd);
	if (why != NULL && from != NULL) {
		finding_error(f, from, "%s: %s", path, why);
		findings_blame(f, path);
	} else if (why != NULL) {
		finding_error(f, &at, "%s%s", why, fd == -1 && errno_open == ENOENT ?
		    "; write it, or name another one by -c FILE" : "");
	} else if (!is_text(bytes, *len, at.file, f)) {
		free(bytes);
		bytes = NULL;
	}
	return bytes;
}
