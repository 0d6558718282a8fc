/*
 * systemd's notification protocol (sd_notify(3)).  Without $NOTIFY_SOCKET all
 * functions do nothing.  None of them fails, or waits longer than 0.1 s.
 */
#ifndef RQD_LOOP_NOTIFY_H
#define RQD_LOOP_NOTIFY_H

#include "base/clock.h"
#include "base/util.h"

void	notify_ready(void);
void	notify_reloading(void);		/* with MONOTONIC_USEC, for notify-reload */
void	notify_stopping(void);
void	notify_status(const char *, ...) PRINTF(1, 2);
void	notify_extend(usec_t);		/* EXTEND_TIMEOUT_USEC, from now */
void	notify_watchdog(void);		/* WATCHDOG=1 */
usec_t	notify_watchdog_interval(void);	/* half of WatchdogSec; 0: none asked for */

#endif
