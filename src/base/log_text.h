/*
 * Records to text: logfmt and JSON.  Private to log.c and its tests.
 */
#ifndef RQD_BASE_LOG_TEXT_H
#define RQD_BASE_LOG_TEXT_H

#include "base/buf.h"
#include "base/log.h"

/*
 * Appends one record without newline.  ctx may be NULL.  The text is valid
 * UTF-8 and holds no control character, whatever bytes the values have.
 */
void	log_text(struct buf *, enum log_format, bool with_ts, enum log_level,
	    const char *event, const struct log_ctx *, const struct log_field *);

/* Appends the value of a LOG_T_INT or LOG_T_USEC field, as log_text() writes it. */
void	log_number(struct buf *, const struct log_field *);

#endif
