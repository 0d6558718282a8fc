/*
 * What the kernel knows of this process.
 */
#ifndef RQD_STATUS_OWN_USAGE_H
#define RQD_STATUS_OWN_USAGE_H

#include <stdint.h>

/* 0 where it could not be learned. */
struct own_usage {
	double		cpu;		/* seconds, user and system; children not counted */
	double		resident;	/* bytes */
	double		virtual;
	double		fds;
	double		max_fds;
};

void	own_usage_look(struct own_usage *);

#endif
