/*
 * A growing byte buffer.  data is NULL until bytes are added, and a C string only
 * after buf_str().  Plain struct: zero it to start, buf_done() to end.
 */
#pragma once

#include <stddef.h>

#include "base/util.h"

struct buf {
	char	*data;		/* owned; NOT NUL-terminated until buf_str() */
	size_t	 len;
	size_t	 cap;
};

#define BUF_INIT	{ NULL, 0, 0 }

void	 buf_done(struct buf *);
void	 buf_reserve(struct buf *, size_t more);
void	 buf_add(struct buf *, const void *, size_t);
void	 buf_addc(struct buf *, char);
void	 buf_puts(struct buf *, const char *);
void	 buf_printf(struct buf *, const char *, ...) PRINTF(2, 3);
void	 buf_drain(struct buf *, size_t);	/* drops the first n bytes */
void	 buf_clear(struct buf *);		/* keeps the memory */
/*
 * Reads fd, a blocking descriptor, to its end and appends the bytes.  Returns 0, or -1
 * with errno: EFBIG as soon as the buffer has more than max bytes.
 */
int	 buf_read(struct buf *, int fd, size_t max) MUSTCHECK;
char	*buf_str(struct buf *);			/* NUL-terminated view; still owned by buf */
char	*buf_steal(struct buf *);		/* caller frees; buf is empty after */
