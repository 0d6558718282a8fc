/*
 * The table of rqctl status, which status -w shows, too: a line for each queue.  `rates` and
 * a history add columns with rates.
 */
#pragma once

#include "base/units.h"
#include "rqctl/listing.h"
#include "rqctl/picture.h"
#include "status/history.h"

/* By enum mood. */
extern const enum colour status_colours[];

/* ">12m", "3s" or "-" into text, which holds STATUS_LATENCY_MAX bytes; returns it. */
#define STATUS_LATENCY_MAX	(UNITS_TEXT_MAX + 1)
char	*status_latency(const struct facts *, char *text);

/* Begins a table; columns: of the terminal, which decide what it shows; 0: it shows all. */
void	status_table(struct table *, bool rates, size_t columns);
void	status_row(struct table *, const struct picture *, size_t i, const struct history *,
	    size_t columns);

/* See state_trouble(). */
int	status_trouble(const struct picture *, size_t i, const struct history *);

/* "redis 127.0.0.1:6379, 3 daemons" */
void	status_headline(const struct ctl *, const struct picture *, struct buf *);
/* A full Redis, and problems of daemons, one per line; rqctl check reports the same. */
void	status_warnings(const struct picture *, struct buf *);
/* A line that says why there are no queues. */
const char *status_none(const struct ctl *);

/* Warnings and the table with all columns, by trouble; history NULL: without rates. */
void	status_print(const struct ctl *, const struct picture *, const struct history *,
	    struct buf *);
