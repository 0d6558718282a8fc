/*
 * The datagrams between the main process and the spawner; spawner.h describes their
 * meaning.  Each order is one datagram of a SOCK_SEQPACKET pair, and may carry descriptors;
 * so is each answer about a file.  Other answers come up to SPAWNER_REPLIES at a time.
 * The spawner trusts no byte of an order.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "handler/spawner.h"

#define SPAWNER_SLOTS	65536U			/* handlers at once */
#define SPAWNER_BYTES	((size_t)144 * 1024)	/* of an order, after its head */
#define SPAWNER_PATH	((size_t)4096)
#define SPAWNER_FDS	4			/* beside an order */
#define SPAWNER_FDS_MAX	253			/* that the kernel lets pass: SCM_MAX_FD */
#define SPAWNER_REPLIES	64			/* in one datagram */

enum spawner_op {
	SPAWNER_START = 1,	/* slot, generation, queue, value: bits of descriptors, numbers */
	SPAWNER_SIGNAL,		/* slot, value: the signal */
	SPAWNER_LOAD,
	SPAWNER_RETIRE,		/* generation */
	/* By the socket for files: */
	SPAWNER_OPEN		/* slot: for the answer; bytes: an enum lend, and the path */
};

/*
 * Bytes follow a start for a message: its id, its channel or its saved text, if it has one, and
 * for each variable of env_message in the row "=VALUE" or "", each with a NUL.  Nobody can name a
 * variable, or have text in place of a number of rqd's, with which a shell that calculates may
 * execute it.
 */
struct spawner_order {
	uint32_t	op;
	uint32_t	slot;
	uint32_t	generation;
	uint32_t	queue;		/* its place in the configuration, from 0 */
	uint32_t	value;
	uint32_t	attempt;	/* of the message */
	uint32_t	batch;		/* messages; 0: it is none */
	uint32_t	max_attempts;
	uint32_t	deadline;	/* seconds since 1970; 0: none */
	uint32_t	members;	/* variables whose values follow */
	uint32_t	saved;		/* 0: the text after the id is the channel */
	uint32_t	size;		/* bytes that follow */
	char		bytes[];
};

/*
 * Whether n bytes that came with nfds descriptors are an order that is right in itself.  It
 * checks the op, sizes, a slot below SPAWNER_SLOTS, the number of descriptors, an id, a signal
 * that ends or continues, an absolute path.
 */
bool	spawner_is_order(const struct spawner_order *, size_t n, size_t nfds);

/*
 * Appends the variables of a start's message, "NAME=value" with a NUL after each.  members:
 * those of the row, as many as the order has.
 */
void	spawner_words(const struct spawner_order *, const char *members, struct buf *);

enum spawner_answer {
	SPAWNER_STARTED = 1,	/* slot, pid */
	SPAWNER_EXITED,		/* slot, status, leftovers, oom, usage; or error, step */
	SPAWNER_LOADED,		/* generation (0: the configuration has errors), error */
	SPAWNER_OPENED		/* slot: that of the order; error; 0: none */
};

struct spawner_reply {
	uint32_t	answer;
	uint32_t	slot;
	uint32_t	generation;
	pid_t		pid;
	int32_t		error;
	int32_t		step;		/* enum spawn_step */
	int32_t		status;		/* as of wait(2) */
	uint16_t	leftovers;	/* at least so many processes */
	uint16_t	oom;		/* 0 or 1 */
	struct usage	usage;		/* of the process, see spawner.h */
};

/* sendmsg(2): 0, or -1 with errno. */
int	spawner_send(int fd, const void *p, size_t n, const int *fds, size_t nfds, int flags)
	    MUSTCHECK;
/*
 * recvmsg(2): the bytes received, and at most SPAWNER_FDS descriptors.  *lost: this process had
 * no room for further ones (NULL: the caller does not ask).  -1 with errno: EMSGSIZE for too
 * many bytes, EPROTO for too many descriptors, which stay open: their close(2) may wait.
 */
ssize_t	spawner_receive(int fd, void *p, size_t size, int *fds, size_t *nfds, bool *lost,
	    int flags) MUSTCHECK;

/*
 * The spawner's own process: obeys the orders from the two sockets until the main process, our
 * parent, has ended.
 */
void	spawner_serve(pid_t main, int orders, int files, spawner_loader *, void *arg)
	    NORETURN;
