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

#include "base/util.h"
#include "handler/spawn.h"

#define SPAWNER_SLOTS	65536U			/* handlers at once */
#define SPAWNER_BYTES	((size_t)144 * 1024)	/* of an order, after its head */
#define SPAWNER_PATH	((size_t)4096)
#define SPAWNER_FDS	4			/* beside an order */
#define SPAWNER_REPLIES	64			/* in one datagram */

/* Descriptors of a start, bits of value: the child's 0, 1, 2 and 3. */
#define SPAWNER_FD_MASK	15U

enum spawner_op {
	SPAWNER_START = 1,	/* slot, generation, queue, value: descriptors; bytes: words */
	SPAWNER_SIGNAL,		/* slot, value: the signal */
	SPAWNER_LOAD,
	SPAWNER_RETIRE,		/* generation */
	SPAWNER_OPEN		/* slot: for the answer; bytes: an enum lend, and the path */
};

/* The order of the socket for files; all others use the other socket. */
#define SPAWNER_IS_FOR_FILES(op)	((op) == SPAWNER_OPEN)

struct spawner_head {
	uint32_t	op;
	uint32_t	slot;
	uint32_t	generation;
	uint32_t	queue;		/* its place in the configuration, from 0 */
	uint32_t	value;
	uint32_t	size;		/* bytes that follow */
};

struct spawner_order {
	struct spawner_head	 head;
	const char		*bytes;	/* head.size of them, in the datagram */
};

/*
 * Parses a datagram of n bytes that came with nfds descriptors.  Returns 0 if the order
 * is right in itself, else -1.  It checks the op, sizes, a slot below SPAWNER_SLOTS, the
 * number of descriptors, words RQD_NAME=... and values that a message may have, a signal that
 * ends or continues, an absolute path.
 */
int	spawner_parse(const void *p, size_t n, size_t nfds, struct spawner_order *) MUSTCHECK;

enum spawner_answer {
	SPAWNER_STARTED = 1,	/* slot, pid */
	SPAWNER_FAILED,		/* slot, error, step: there was no process */
	SPAWNER_EXITED,		/* slot, status and all below; error and step if not executed */
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
	uint32_t	leftovers;	/* 0 or 1 */
};

/*
 * sendmsg(2) and recvmsg(2): 0, or the bytes received; -1 with errno.  Descriptors for which
 * this process has no room are lost: *nfds is 0 then.
 */
int	spawner_send(int fd, const void *p, size_t n, const int *fds, size_t nfds, int flags)
	    MUSTCHECK;
ssize_t	spawner_receive(int fd, void *p, size_t size, int *fds, size_t *nfds, int flags) MUSTCHECK;
