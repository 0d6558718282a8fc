/*
 * Reading one heartbeat: the JSON that a daemon wrote to rqd:daemon:INSTANCE.
 *
 * Anybody who may write to Redis can write one.  So the reader first bounds its size, its
 * depth, and the memory that parsing takes.  Then it keeps only the members that
 * service/heartbeat.c writes, and only in the type that heartbeat.c gives them.
 */
#ifndef RQD_STATUS_BEAT_H
#define RQD_STATUS_BEAT_H

#include <jansson.h>
#include <stddef.h>

#define BEAT_MAX	((size_t)1 << 20)	/* bytes of one heartbeat */
#define BEAT_WEIGHT_MAX	((size_t)8 << 20)	/* of one heartbeat, see beat_weight() */
#define BEAT_TEXT_MAX	1024			/* bytes of one string in it */

/*
 * About how many bytes of memory a parser takes for this text; more than BEAT_WEIGHT_MAX
 * where it is longer than BEAT_MAX, or nested deeper than a heartbeat is.
 */
size_t	beat_weight(const char *, size_t);

/* A new object with the known members; NULL: not a heartbeat, or one that is too large. */
json_t	*beat_read(const char *, size_t);

#endif
