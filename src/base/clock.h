/*
 * Time, in microseconds, of three clocks that are never mixed.
 *
 * usec_t is monotonic: use it for deadlines and durations inside the process.  wall_t is
 * the calendar: use it only for times that people or Redis see.  boot_t goes on while the
 * machine sleeps: use it only for deadlines that also hold outside of this process, such
 * as the end of a lock.  Tests move all three by hand.
 */
#pragma once

#include <stdint.h>

typedef int64_t usec_t;		/* CLOCK_MONOTONIC, microseconds */
typedef int64_t wall_t;		/* CLOCK_REALTIME, microseconds since 1970 */
typedef int64_t boot_t;		/* CLOCK_BOOTTIME, microseconds */

#define USEC_MAX	INT64_MAX
#define MSEC		((usec_t)1000)
#define SEC		((usec_t)1000000)
#define MINUTE		(60 * SEC)
#define HOUR		(3600 * SEC)

usec_t	clock_mono(void);
wall_t	clock_wall(void);
usec_t	clock_after(usec_t);	/* clock_mono() plus this; USEC_MAX instead of an overflow */
boot_t	clock_boot(void);	/* while fake: the same as clock_mono() */

/*
 * Tests and simulation only.  Fake clocks stand still until clock_fake_advance() moves all
 * of them.  clock_real() ends that; the clocks are then `ahead` of the system's.
 */
void	clock_fake(usec_t mono, wall_t wall);
void	clock_fake_advance(usec_t);
void	clock_real(usec_t ahead);

double	clock_seconds(int64_t usec);

/* "2026-11-21T03:36:12.345Z" into buf, which holds CLOCK_TEXT_MAX bytes. */
#define CLOCK_TEXT_MAX	32
char	*clock_text(wall_t, char *buf);
