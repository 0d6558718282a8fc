/*
 * Orders for shim.c: a file of these bytes, which the test and the daemon both map.
 */
#pragma once

struct shim {
	volatile int		fork_error;	/* errno of fork(2) and clone(2); 0: they work */
	volatile int		exec_error;	/* the same of execve(2) */
	volatile int		disk_full;	/* 1: under the log, from the next record on */
	volatile long		clock_offset;	/* of the calendar, in seconds */
	/*
	 * A spawner that shares its memory with children makes the system call itself, so that
	 * neither clone(2) nor execve(2) can be made to fail.  0: it may not share.
	 */
	volatile int		shares;
	volatile unsigned	forks_failed, execs_failed, writes_failed;	/* so often */
	volatile int		mono_offset;	/* of the monotonic clock, in seconds */
};
