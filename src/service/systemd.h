/*
 * Reports to systemd from time to time (loop/notify.h): the line in "systemctl status",
 * a watchdog ping (WatchdogSec), and, while the daemon stops, that it needs more time.
 */
#pragma once

#include <stddef.h>

#include "loop/loop.h"

struct systemd;

/* Writes the line, of size bytes at most. */
typedef void	systemd_line(char *line, size_t size, void *arg);

/* The watchdog begins at once.  line() is called inside of the functions below, and by timers. */
struct systemd	*systemd_new(struct loop *, systemd_line *line, void *arg);
void		 systemd_free(struct systemd *);	/* NULL is fine */

/* Sends the line, if it has changed. */
void		 systemd_update(struct systemd *);
/* The daemon stops: asks for more time from now on, until systemd_free(). */
void		 systemd_stopping(struct systemd *);
