/*
 * What the kernel knows of this process.
 */
#ifndef RQD_STATUS_PROCESS_H
#define RQD_STATUS_PROCESS_H

#include <stdint.h>

/* 0 where it could not be learned. */
struct process {
	double		cpu;		/* seconds, user and system; children not counted */
	uint64_t	resident;	/* bytes */
	uint64_t	virtual;
	uint64_t	fds;
	uint64_t	max_fds;
};

void	process_look(struct process *);

#endif
