/*
 * Orders to the launcher: sent at once, or, while the socket is full, later and in
 * order.
 *
 * At most one start for each handler that may run waits.
 */
#pragma once

#include <stddef.h>

#include "base/list.h"
#include "base/util.h"
#include "loop/io.h"
#include "loop/loop.h"

struct waiting_order;

struct launch_queue {
	int		 fd;		/* owned; read only */
	struct loop	*loop;		/* NULL: orders cannot wait yet */
	struct io	 out;		/* on while orders wait */
	TAILQ_HEAD(, waiting_order)	 waiting;
};

void	launch_queue_init(struct launch_queue *, int fd);
void	launch_queue_attach(struct launch_queue *, struct loop *);	/* once */
/* Closes the socket.  Orders that wait are dropped. */
void	launch_queue_done(struct launch_queue *);

/*
 * Sends an order; copies bytes and descriptors if they must wait.  0, or -1 with errno:
 * the launcher has ended, the order is too large, or a descriptor cannot be copied.
 */
int	launch_queue_send(struct launch_queue *, const void *, size_t n, const int *fds,
	    size_t nfds) MUSTCHECK;
