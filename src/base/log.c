/*
 * The log: levels, the sink in use, and the report of what was lost.
 *
 * log_text.c makes the text and log_sink.c gets it out; this file joins them
 * and puts around the text what the sink wants (priority, syslog's head).
 * One record is put together in a buffer that is kept between calls, so that
 * a usual record costs one write(2) at most (log_hold()) and no allocation.
 */
#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log_private.h"

#define HELD_MAX	(32 * 1024)
#define RECORD_KEEP	(16 * 1024)	/* a larger buffer is not kept */
#define FAILURE_GAP	MINUTE		/* between two reports that the log cannot be written */

static enum log_level max_level = LOG_LV_INFO;
static enum log_format record_format = LOG_LOGFMT;
static struct log_sink *sink;		/* NULL: not opened yet */
static uint64_t reported;		/* records lost, and reported */
static struct buf record = BUF_INIT;
static bool failure_reported;		/* on stderr, for the sink in use */
static usec_t failure_at;		/* when one was last reported; 0: never */
static bool holding;
static struct buf held = BUF_INIT;	/* whole records, for a sink that takes bytes */

static void (*waiting_fn)(void *);
static void *waiting_arg;
static void (*test_fn)(void *, enum log_level, const char *, size_t);
static void *test_arg;

static const struct {
	const char	*name;
	int		 priority;	/* syslog's */
} levels[] = {
	[LOG_LV_ERROR] = { "error", LOG_ERR },
	[LOG_LV_WARN] = { "warn", LOG_WARNING },
	[LOG_LV_INFO] = { "info", LOG_INFO },
	[LOG_LV_DEBUG] = { "debug", LOG_DEBUG },
};

bool
log_is_on(enum log_level level)
{
	return level <= max_level;
}

void
log_set_level(enum log_level level)
{
	max_level = level;
}

void
log_set_format(enum log_format format)
{
	record_format = format;
}

const char *
log_level_name(enum log_level level)
{
	return levels[level].name;
}

/* -- records ------------------------------------------------------------------ */

/* "<30>Nov 21 03:36:12 rqd[812]: ", as syslog(3) would write it. */
static void
put_syslog_head(struct buf *b, enum log_level level)
{
	time_t now = (time_t)(clock_wall() / SEC);
	char text[32];
	struct tm tm;

	(void)localtime_r(&now, &tm);
	(void)strftime(text, sizeof(text), "%b %e %T", &tm);
	buf_printf(b, "<%d>%s %s[%ld]: ", LOG_DAEMON | levels[level].priority,
	    text, program_invocation_short_name, (long)getpid());
}

static void
build_record(enum log_level level, const char *event, const struct log_ctx *ctx,
    const struct log_field *fields)
{
	bool journal = sink != NULL && sink->journal && test_fn == NULL;

	buf_clear(&record);
	if (sink != NULL && sink->way == SINK_JOURNAL && test_fn == NULL) {
		log_journal(&record, record_format, levels[level].priority, level, event, ctx,
		    fields);
		return;
	}
	if (journal)
		buf_printf(&record, "<%d>", levels[level].priority);
	else if (sink != NULL && sink->way == SINK_DATAGRAM && test_fn == NULL)
		put_syslog_head(&record, level);
	log_text(&record, record_format, !journal, level, event, ctx, fields);
	buf_addc(&record, '\n');
}

static void
forget_record(void)
{
	if (record.cap > RECORD_KEEP)
		buf_done(&record);
}

/* Says how many records were lost, once there is room to say it. */
static void
report_lost(void)
{
	uint64_t n = log_sink_take_lost(sink);

	if (n == 0)
		return;
	build_record(LOG_LV_WARN, "warning", NULL, (const struct log_field[]){
	    LF_STR("reason", "log_dropped"), LF_INT("dropped", (int64_t)n),
	    LF_END });
	if (log_sink_write(sink, record.data, record.len))
		reported += n;
	else
		sink->lost += n - 1;	/* the report is not a record to report */
}

/* Writes a record to stderr, whatever the sink in use is. */
static void
write_to_stderr(enum log_level level, const struct log_field *fields)
{
	struct log_sink *mine = sink;

	sink = log_sink_open("stderr", NULL);
	if (sink != NULL) {
		build_record(level, "warning", NULL, fields);
		(void)log_sink_write(sink, record.data, record.len);
		log_sink_free(sink);
	}
	sink = mine;
}

/*
 * Reports on stderr that the log's file or syslog refuses records, and that it takes
 * them again: an operator who reads only that log would never know.  A disk that is
 * almost full takes short records and refuses long ones, so reports keep FAILURE_GAP.
 */
static void
report_failure(void)
{
	bool failed = sink->error != 0;

	if (failed == failure_reported || sink->path == NULL || sink->way == SINK_JOURNAL ||
	    (failed && failure_at != 0 && clock_mono() - failure_at < FAILURE_GAP))
		return;
	failure_reported = failed;
	if (failed) {
		failure_at = clock_mono();
		write_to_stderr(LOG_LV_ERROR, (const struct log_field[]){
		    LF_STR("reason", "log_failed"), LF_STR("target", sink->path),
		    LF_STR("error", strerror(sink->error)), LF_END });
	} else {
		write_to_stderr(LOG_LV_WARN, (const struct log_field[]){
		    LF_STR("reason", "log_resumed"), LF_STR("target", sink->path), LF_END });
	}
}

static void
tell_waiting(void)
{
	if (waiting_fn != NULL)
		waiting_fn(waiting_arg);
}

/* Errors, warnings and debug records are never held: they may explain a crash. */
static bool
may_be_held(enum log_level level)
{
	return holding && level == LOG_LV_INFO && max_level == LOG_LV_INFO &&
	    sink->way != SINK_DATAGRAM && sink->way != SINK_JOURNAL;
}

/* Writes the held records in one call; record by record if the sink cannot take all. */
static void
write_held(void)
{
	const char *p = held.data, *end = p + held.len, *nl;
	uint64_t lost = sink->lost;

	if (sink->backlog.len == 0 && log_sink_write(sink, p, held.len))
		return;
	sink->lost = lost;
	for (; p < end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(end - p));
		(void)log_sink_write(sink, p, (size_t)(nl + 1 - p));
	}
}

static void
write_record(enum log_level level, const char *event, const struct log_ctx *ctx,
    const struct log_field *fields)
{
	int waiting = log_waiting_fd();

	if (may_be_held(level)) {
		build_record(level, event, ctx, fields);
		buf_add(&held, record.data, record.len);
		if (held.len >= HELD_MAX)
			log_release();
		return;
	}
	log_release();
	report_lost();
	build_record(level, event, ctx, fields);
	(void)log_sink_write(sink, record.data, record.len);
	report_failure();
	if (log_waiting_fd() != waiting && log_waiting_fd() != -1)
		tell_waiting();
}

void
log_hold(bool on)
{
	holding = on;
	if (!on)
		log_release();
}

void
log_release(void)
{
	int waiting = log_waiting_fd(), saved = errno;

	if (held.len == 0 || sink == NULL)
		return;
	report_lost();
	write_held();
	report_failure();
	buf_clear(&held);
	if (log_waiting_fd() != waiting && log_waiting_fd() != -1)
		tell_waiting();
	errno = saved;
}

void
log_write(enum log_level level, const char *event, const struct log_ctx *ctx,
    const struct log_field *fields)
{
	int saved = errno;

	if (sink == NULL && test_fn == NULL)	/* nobody has chosen one */
		sink = log_sink_open("stderr", NULL);
	if (test_fn != NULL) {
		build_record(level, event, ctx, fields);
		test_fn(test_arg, level, buf_str(&record), record.len - 1);
	} else if (sink != NULL) {
		write_record(level, event, ctx, fields);
	}
	forget_record();
	errno = saved;
}

/* -- sinks -------------------------------------------------------------------- */

/*
 * Puts a new sink in the old one's place.  What the old one could not write is
 * lost, and the new one says so.  The watcher of the old descriptor is called
 * before it is closed.
 */
static void
replace_sink(struct log_sink *s)
{
	struct log_sink *old = sink;

	log_release();
	sink = s;
	failure_reported = false;
	if (old == NULL)
		return;
	log_sink_flush(old);
	log_sink_drop(old);
	if (s != NULL)
		s->lost += old->lost;
	tell_waiting();
	log_sink_free(old);
}

int
log_open(const char *target, char **cause)
{
	struct log_sink *s = log_sink_open(target, cause);

	if (s == NULL)
		return -1;
	replace_sink(s);
	return 0;
}

int
log_reopen(char **cause)
{
	if (sink == NULL || sink->path == NULL || sink->way == SINK_DATAGRAM ||
	    sink->way == SINK_JOURNAL)
		return 0;
	return log_open(sink->path, cause);
}

void
log_close(void)
{
	log_release();
	if (sink != NULL) {
		log_sink_flush(sink);
		report_lost();
	}
	replace_sink(NULL);
	buf_done(&record);
	buf_done(&held);
}

int
log_waiting_fd(void)
{
	return sink != NULL && sink->backlog.len > 0 ? sink->fd : -1;
}

void
log_flush(void)
{
	int saved = errno;

	if (sink != NULL) {
		log_sink_flush(sink);
		report_lost();
		report_failure();
		forget_record();
	}
	errno = saved;
}

const char *
log_failure(void)
{
	return sink != NULL && sink->error != 0 ? strerror(sink->error) : NULL;
}

uint64_t
log_dropped(void)
{
	return reported + (sink != NULL ? sink->lost : 0);
}

void
log_set_waiting_cb(void (*fn)(void *), void *arg)
{
	waiting_fn = fn;
	waiting_arg = arg;
}

void
log_set_sink(void (*fn)(void *, enum log_level, const char *, size_t), void *arg)
{
	test_fn = fn;
	test_arg = arg;
}
