/*
 * systemd's notification protocol (sd_notify(3)).  Without $NOTIFY_SOCKET, or if it is no
 * Unix socket, all functions do nothing.  None of them fails, or waits longer than 0.1 s.
 */
#pragma once

#include "base/clock.h"
#include "base/util.h"

/* Sends assignments: "READY=1", "STATUS=..."; a newline stands between two of them. */
void	notify(const char *, ...) PRINTF(1, 2);
void	notify_reloading(void);		/* with MONOTONIC_USEC, for notify-reload */
usec_t	notify_watchdog_interval(void);	/* half of WatchdogSec; 0: none asked for */
