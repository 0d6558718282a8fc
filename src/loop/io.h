/* Readiness of a descriptor.  Level-triggered; fn may stop or free its io. */
#pragma once

#include <stdbool.h>

#include "loop/loop.h"

enum { IO_READ = 1, IO_WRITE = 2 };

struct event;

struct io {
	struct loop	 *loop;
	struct event	 *event;	/* owned */
	int		  fd;		/* borrowed */
	void		(*fn)(int what, void *arg);
	void		 *arg;
	bool		  on;
};

void	io_init(struct io *, struct loop *, int fd, int what,
	    void (*fn)(int, void *), void *arg);	/* off until io_start() */
void	io_start(struct io *);
void	io_stop(struct io *);
void	io_done(struct io *);		/* stops and frees; does not close the fd */
