/*
 * Writes the text of /metrics: metric families, each a row of a table, and their
 * samples.  The numbers come from the daemon, and from a survey of Redis.
 *
 * A value that is not known is left out, and never 0: the graph then has a gap.  Only
 * values that come from Redis (depths) can be unknown; all other series exist from the
 * first moment.
 */
#include "status/metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <config.h>

#include "base/log.h"
#include "base/utf8.h"
#include "base/util.h"
#include "status/judge.h"

/* The functions that put samples get this: the numbers, and each queue's `queue="name"`. */
struct page {
	const struct metrics	*m;
	char			**labels;
	struct buf		*out;
};

struct family {
	const char	*name;
	const char	*type;
	const char	*help;
	void		(*put)(const struct page *, const struct family *);
	size_t		 at;		/* offset of the double for put_value(), put_queues() */
};

/* -- text ---------------------------------------------------------------------- */

void
metrics_label(const char *s, struct buf *out)
{
	bool utf8 = utf8_is_valid(s, strlen(s));

	for (; *s != '\0'; s++) {
		if (*s == '\\' || *s == '"') {
			buf_addc(out, '\\');
			buf_addc(out, *s);
		} else if (*s == '\n') {
			buf_puts(out, "\\n");
		} else if (!utf8 && (*s & 0x80) != 0) {
			buf_printf(out, "\\\\x%02x", (unsigned char)*s);
		} else {
			buf_addc(out, *s);
		}
	}
}

static void
put_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Writes whole numbers without a fraction: most values are whole. */
static void
put_number(struct buf *out, double v)
{
	if (fabs(v) < 1e15 && v == (double)(int64_t)v)
		buf_printf(out, "%" PRId64 "\n", (int64_t)v);
	else
		buf_printf(out, "%.6f\n", v);
}

/* name{queue="..."[,more]} */
static void
put_series(const struct page *p, const char *name, size_t queue, const char *more)
{
	buf_printf(p->out, "%s{%s", name, p->labels[queue]);
	if (more != NULL)
		buf_printf(p->out, ",%s", more);
	buf_puts(p->out, "} ");
}

/* -- ways to put the samples of a family ------------------------------------------ */

/* NAN: not known, no sample. */
static void
put_value(const struct page *p, const struct family *f)
{
	double v = *(const double *)((const char *)p->m + f->at);

	if (isnan(v))
		return;
	buf_printf(p->out, "%s ", f->name);
	put_number(p->out, v);
}

/* NAN: not known, no sample. */
static void
put_queues(const struct page *p, const struct family *f)
{
	double v;

	for (size_t i = 0; i < p->m->nqueues; i++) {
		v = *(const double *)((const char *)&p->m->queues[i] + f->at);
		if (isnan(v))
			continue;
		put_series(p, f->name, i, NULL);
		put_number(p->out, v);
	}
}

/* A text of the daemon, as a label. */
static void
put_info(const struct page *p, const struct family *f)
{
	const char *name = "hash", *text = p->m->config_hash;

	if (f->at == offsetof(struct metrics, version)) {
		name = "version";
		text = p->m->version;
	}
	buf_printf(p->out, "%s{%s=\"", f->name, name);
	metrics_label(text, p->out);
	buf_puts(p->out, "\"} 1\n");
}

static void
put_state(const struct page *p, const struct family *f)
{
	static const char *const states[] = { "running", "quiet", "draining", "stopped" };

	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		buf_printf(p->out, "%s{state=\"%s\"} %d\n", f->name, states[i],
		    strcmp(states[i], p->m->state) == 0);
}

static void
put_messages(const struct page *p, const struct family *f)
{
	static const struct {
		const char	*label;
		size_t		 at;	/* of an int64_t in struct depth */
	} states[] = {
		{ "state=\"waiting\"", offsetof(struct depth, waiting) },
		{ "state=\"running\"", offsetof(struct depth, in_flight) },
		{ "state=\"held\"", offsetof(struct depth, held) },
		{ "state=\"retry\"", offsetof(struct depth, retry) },
		{ "state=\"delayed\"", offsetof(struct depth, delayed) },
		{ "state=\"dead\"", offsetof(struct depth, dead) },
	};
	const struct depth *d;
	int64_t n;

	for (size_t i = 0; i < p->m->nqueues; i++) {
		d = p->m->queues[i].depth;
		for (size_t k = 0; d != NULL && k < ARRAY_LEN(states); k++) {
			memcpy(&n, (const char *)d + states[k].at, sizeof(n));
			if (n < 0)
				continue;
			put_series(p, f->name, i, states[k].label);
			put_number(p->out, (double)n);
		}
	}
}

static void
put_blocked(const struct page *p, const struct family *f)
{
	char label[64];

	for (size_t i = 0; i < p->m->nqueues; i++)
		for (enum consumer_block b = BLOCK_NONE + 1; b <= BLOCK_REDIS; b++) {
			snprintf(label, sizeof(label), "reason=\"%s\"", consumer_block_name(b));
			put_series(p, f->name, i, label);
			put_number(p->out, p->m->queues[i].block == b);
		}
}

static void
put_durations(const struct page *p, const struct family *f UNUSED)
{
	static const char name[] = "rqd_handler_duration_seconds";
	const struct histogram *h;
	char label[64];
	uint64_t sum;
	size_t i, k;

	for (i = 0; i < p->m->nqueues; i++) {
		h = &p->m->queues[i].stats->duration;
		for (k = 0, sum = 0; k < STATS_BUCKETS; k++) {
			sum += h->bucket[k];
			snprintf(label, sizeof(label), "le=\"%g\"", stats_bounds[k]);
			put_series(p, "rqd_handler_duration_seconds_bucket", i, label);
			put_number(p->out, (double)sum);
		}
		put_series(p, "rqd_handler_duration_seconds_bucket", i, "le=\"+Inf\"");
		put_number(p->out, (double)h->count);
		buf_printf(p->out, "%s_sum{%s} %.6f\n", name, p->labels[i], h->sum);
		buf_printf(p->out, "%s_count{%s} %" PRIu64 "\n", name, p->labels[i], h->count);
	}
}

enum { SCHEDULE_LAST, SCHEDULE_NEXT, SCHEDULE_MISSED, SCHEDULE_RUNS };

/* NAN: not known. */
static double
schedule_figure(const struct schedule_state *s, size_t which)
{
	switch (which) {
	case SCHEDULE_LAST:
		if (s->last == TICK_NEVER)
			return NAN;
		return (double)s->last;
	case SCHEDULE_NEXT:
		if (s->next == TICK_NEVER)
			return NAN;
		return (double)s->next;
	case SCHEDULE_MISSED:
		if (s->missed == -1)
			return NAN;
		return s->missed;
	}
	return (double)s->runs;
}

static void
put_schedules(const struct page *p, const struct family *f)
{
	const struct schedule_state *s;
	double v;

	for (size_t i = 0; i < p->m->nschedules; i++) {
		s = &p->m->schedules[i];
		v = schedule_figure(s, f->at);
		if (isnan(v))		/* not known, no sample */
			continue;
		buf_printf(p->out, "%s{schedule=\"", f->name);
		metrics_label(s->cfg->name, p->out);
		buf_puts(p->out, "\",queue=\"");
		metrics_label(s->cfg->queue, p->out);
		buf_puts(p->out, "\"} ");
		put_number(p->out, v);
	}
}

#define DAEMON(member)	put_value, offsetof(struct metrics, member)
#define QUEUE(member)	put_queues, offsetof(struct metrics_queue, member)

static const struct family families[] = {
	{ "rqd_build_info", "gauge", "The version of this daemon; always 1.", put_info,
	    offsetof(struct metrics, version) },
	{ "rqd_config_info", "gauge", "The configuration in force, by its hash; always 1.",
	    put_info, offsetof(struct metrics, config_hash) },
	{ "rqd_config_last_reload_successful", "gauge",
	    "1 if the last reload of the file succeeded, 0 if it failed.", DAEMON(reload_ok) },
	{ "rqd_state", "gauge", "1 for the state this daemon is in.", put_state, 0 },
	{ "rqd_redis_up", "gauge", "Whether Redis answers.", DAEMON(redis_up) },
	{ "rqd_redis_writable", "gauge",
	    "Whether Redis takes writes, as of the last heartbeat.", DAEMON(redis_writable) },
	{ "rqd_redis_reconnects_total", "counter", "Connections to Redis after the first.",
	    DAEMON(reconnects) },
	{ "rqd_redis_outstanding_commands", "gauge", "Commands sent and not answered yet.",
	    DAEMON(outstanding) },
	{ "rqd_handlers_running", "gauge", "Handlers at work, all queues.", DAEMON(handlers) },
	{ "rqd_handlers_max", "gauge", "max_handlers.", DAEMON(max_handlers) },
	{ "rqd_log_dropped_total", "counter",
	    "Log records lost because the log's target did not accept them.", DAEMON(log_dropped) },
	{ "rqd_queue_messages", "gauge",
	    "Messages in Redis, whoever put or took them: the same from every "
	    "daemon, so take max, not sum.", put_messages, 0 },
	{ "rqd_queue_latency_seconds", "gauge",
	    "How long the message has waited that has waited longest; an estimate for lists.",
	    QUEUE(latency) },
	{ "rqd_queue_stalled_seconds", "gauge",
	    "How long messages have waited with none of them being taken by any daemon.",
	    QUEUE(stalled) },
	{ "rqd_queue_running", "gauge", "Messages in flight, this daemon.", QUEUE(running) },
	{ "rqd_queue_concurrency", "gauge", "Messages that may be in flight, this daemon.",
	    QUEUE(concurrency) },
	{ "rqd_queue_oldest_seconds", "gauge",
	    "Age of the oldest delivery in flight, this daemon.", QUEUE(oldest) },
	{ "rqd_queue_blocked", "gauge",
	    "1 for the reason why this daemon takes no message now.", put_blocked, 0 },
	{ "rqd_handler_duration_seconds", "histogram", "How long handlers ran.",
	    put_durations, 0 },
	{ "rqd_handler_cpu_seconds_total", "counter",
	    "CPU time that handlers of mode exec used.", QUEUE(cpu) },
	{ "rqd_handler_maxrss_bytes", "gauge",
	    "Largest memory of a handler of mode exec that ended in the last 5 to 10 minutes.",
	    QUEUE(maxrss) },
	{ "rqd_schedule_last_timestamp_seconds", "gauge",
	    "The time for which the schedule last ran, on any daemon.",
	    put_schedules, SCHEDULE_LAST },
	{ "rqd_schedule_next_timestamp_seconds", "gauge",
	    "The time for which the schedule runs next; in the past while its runs fail.",
	    put_schedules, SCHEDULE_NEXT },
	{ "rqd_schedule_missed", "gauge",
	    "1 while the last time of a schedule has passed without a run.",
	    put_schedules, SCHEDULE_MISSED },
	{ "rqd_schedule_runs_total", "counter", "Runs that this daemon made.",
	    put_schedules, SCHEDULE_RUNS },
	{ "process_cpu_seconds_total", "counter",
	    "CPU time of the daemon, handlers not counted.", DAEMON(process.cpu) },
	{ "process_resident_memory_bytes", "gauge", "Memory in use.",
	    DAEMON(process.resident) },
	{ "process_virtual_memory_bytes", "gauge", "Address space.", DAEMON(process.virtual) },
	{ "process_open_fds", "gauge", "Open file descriptors.", DAEMON(process.fds) },
	{ "process_max_fds", "gauge", "Limit of open file descriptors.",
	    DAEMON(process.max_fds) },
	{ "process_start_time_seconds", "gauge", "When the daemon started, since 1970.",
	    DAEMON(started) },
};

/* -- all of it ----------------------------------------------------------------- */

void
metrics_text(const struct metrics *m, struct buf *out)
{
	struct page p = { m, xcalloc(m->nqueues + 1, sizeof(char *)), out };
	struct buf label = BUF_INIT;
	char name[64];

	for (size_t i = 0; i < m->nqueues; i++) {
		buf_puts(&label, "queue=\"");
		metrics_label(m->queues[i].name, &label);
		buf_addc(&label, '"');
		p.labels[i] = buf_steal(&label);
	}
	for (const struct family *f = families; f < families + ARRAY_LEN(families); f++) {
		put_head(out, f->name, f->type, f->help);
		f->put(&p, f);
	}
	/* The counters of the table in stats.c. */
	for (enum stat s = 0; s < STAT_MAX; s++) {
		snprintf(name, sizeof(name), "rqd_queue_%s_total", stats_name(s));
		put_head(out, name, "counter", stats_help(s));
		for (size_t i = 0; i < m->nqueues; i++) {
			put_series(&p, name, i, NULL);
			buf_printf(out, "%" PRIu64 "\n", m->queues[i].stats->n[s]);
		}
	}
	for (size_t i = 0; i < m->nqueues; i++)
		free(p.labels[i]);
	free(p.labels);
}

/* -- the numbers --------------------------------------------------------------- */

/* The kernel's figures of this process. */
static void
look_at_process(struct own_usage *p)
{
	FILE *f = fopen("/proc/self/statm", "re");
	DIR *dir = opendir("/proc/self/fd");
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), size, resident;
	struct rusage usage;
	struct rlimit limit;

	if (getrusage(RUSAGE_SELF, &usage) == 0)
		p->cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		    (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / (double)SEC;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		p->max_fds = (double)limit.rlim_cur;
	if (f != NULL && fscanf(f, "%" SCNu64 " %" SCNu64, &size, &resident) == 2) {
		p->virtual = (double)(size * page);
		p->resident = (double)(resident * page);
	}
	if (f != NULL)
		fclose(f);
	while (dir != NULL && readdir(dir) != NULL)
		p->fds++;
	if (dir != NULL)
		closedir(dir);
	if (p->fds >= 3)
		p->fds -= 3;	/* . and .. and the directory itself */
}

static void
older(const struct message *msg, pid_t pid UNUSED, const char *progress UNUSED, usec_t age,
    void *arg)
{
	usec_t *oldest = arg;

	if (msg != NULL && age > *oldest)
		*oldest = age;
}

static struct metrics_queue
queue_metrics(struct consumer *c, const struct survey_result *r)
{
	const struct queue_config *cfg = consumer_config(c);
	const struct survey_queue *q = survey_find(r, cfg->key);
	struct metrics_queue m = {
		.name = cfg->name, .stats = consumer_stats(c),
		.block = consumer_block(c), .running = consumer_in_flight(c),
		.concurrency = config_most(cfg), .stalled = NAN, .latency = NAN,
		.cpu = clock_seconds(consumer_stats(c)->cpu),
		.maxrss = (double)stats_maxrss(consumer_stats(c)),
	};
	int64_t taken;
	double waited = consumer_waited(c, &taken);
	usec_t oldest = 0;

	consumer_each(c, older, &oldest);
	m.oldest = clock_seconds(oldest);
	if (q == NULL)
		return m;
	m.depth = &q->depth;
	m.stalled = clock_seconds(stall_length(consumer_stall(c), clock_mono()));
	waited = facts_latency_with(cfg->kind, &q->depth, waited,
	    suspension_waits(consumer_suspension(c)));
	if (waited >= 0)
		m.latency = waited;
	return m;
}

void
metrics_collect(const struct view *v, const struct survey_result *r,
    struct buf *out)
{
	struct metrics_queue *queues = xcalloc(v->nconsumers + 1, sizeof(*queues));
	const struct queue_config *cfg, *now;
	size_t i, nschedules = schedules_count(v->schedules);
	struct schedule_state *schedules = xcalloc(nschedules + 1, sizeof(*schedules));
	struct metrics all = {
		.version = PACKAGE_VERSION, .config_hash = v->config->hash, .state = v->state,
		.reload_ok = v->reload_error[0] == '\0', .redis_up = nodes_are_ready(v->nodes),
		.redis_writable = NAN,
		.reconnects = (double)nodes_reconnects(v->nodes),
		.outstanding = nodes_outstanding(v->nodes),
		.handlers = dispatcher_taken(v->dispatcher),
		.max_handlers = v->config->max_handlers, .log_dropped = (double)log_dropped(),
		.started = clock_seconds(v->started), .queues = queues,
		.schedules = schedules, .nschedules = nschedules,
	};

	if (nodes_are_ready(v->nodes))
		all.redis_writable = view_refuses(v) == NULL;
	look_at_process(&all.process);
	for (i = 0; i < v->nconsumers; i++) {
		/* After a change of its key a queue has two, until the old one is drained. */
		cfg = consumer_config(v->consumers[i]);
		now = config_queue(v->config, cfg->name);
		if (now == NULL || now == cfg)
			queues[all.nqueues++] = queue_metrics(v->consumers[i], r);
	}
	for (i = 0; i < nschedules; i++)
		schedules[i] = schedules_get(v->schedules, i);
	metrics_text(&all, out);
	free(schedules);
	free(queues);
}
