/*
 * The conventions of plugins for Nagios, Icinga and other monitoring systems:
 * thresholds, and the output.  The first line is a status, then "|" and performance
 * data; more lines may follow.
 */
#pragma once

#include "rqctl/ctl.h"

/* The exit status of a plugin. */
enum { PLUGIN_OK, PLUGIN_WARNING, PLUGIN_CRITICAL, PLUGIN_UNKNOWN };

/* A value is a problem if it is above a limit, not if it is equal.  Seconds, or a count. */
struct threshold {
	double	 warning;	/* NAN: none */
	double	 critical;	/* NAN: none; else at least warning */
};

/*
 * Reads WARN, WARN:CRIT or :CRIT, each a duration or a count.  Without the option there is no
 * threshold.  Returns 0, or -1 after an error was reported.
 */
int	threshold_read(struct ctl *, enum opt, bool durations, struct threshold *ret) MUSTCHECK;
/* PLUGIN_OK, PLUGIN_WARNING or PLUGIN_CRITICAL; NAN is OK. */
int	threshold_judge(const struct threshold *, double value);

/*
 * Appends " 'orders_dead'=7;10;100;0" to performance data.  NAN is an unknown value.  The
 * queue's name may have any bytes; unit is "s", or "" for a count.
 */
void	plugin_add(struct buf *, const char *queue, const char *measure, double value,
	    const char *unit, const struct threshold *);

/* Prints the first line.  data: appended to by plugin_add(), or empty. */
void	plugin_line(int status, const char *text, struct buf *data);
/* Returns text with "|", which begins performance data, escaped; the caller frees it. */
char	*plugin_text(const char *);
