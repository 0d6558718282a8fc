/*
 * The datagrams between the main process and its launcher; launcher.h describes their
 * meaning.  Each order and each reply is one datagram of a SOCK_SEQPACKET pair, and may
 * carry descriptors.  The launcher trusts no byte of an order.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/util.h"
#include "handler/spawn.h"

#define LAUNCH_SLOTS	65536U			/* handlers at once */
#define LAUNCH_BYTES	((size_t)144 * 1024)	/* of an order, after its head */
#define LAUNCH_PATH	((size_t)4096)
#define LAUNCH_FDS	4			/* beside an order */

/* Descriptors of a start, bits of value: the child's 0, 1, 2 and 3. */
#define LAUNCH_FD_MASK	15U

enum launch_op {
	LAUNCH_START = 1,	/* slot, generation, queue, value: descriptors; bytes: words */
	LAUNCH_SIGNAL,		/* slot, value: the signal */
	LAUNCH_END,		/* value: a pid */
	LAUNCH_LOAD,
	LAUNCH_RETIRE,		/* generation */
	LAUNCH_FILE,		/* bytes: the path */
	LAUNCH_LOG,		/* generation */
	LAUNCH_LISTEN,		/* generation */
	LAUNCH_UNLISTEN
};

/* The orders of the socket for files; all others use the other socket. */
#define LAUNCH_IS_FOR_FILES(op)	((op) >= LAUNCH_FILE && (op) <= LAUNCH_UNLISTEN)

struct launch_head {
	uint32_t	op;
	uint32_t	slot;
	uint32_t	generation;
	uint32_t	queue;		/* its place in the configuration, from 0 */
	uint32_t	value;
	uint32_t	size;		/* bytes that follow */
};

struct launch_order {
	struct launch_head	 head;
	const char		*bytes;	/* head.size of them, in the datagram */
};

/*
 * Parses a datagram of n bytes that came with nfds descriptors.  Returns 0 if the order
 * is right in itself, else -1.  It checks the op, sizes, a slot below LAUNCH_SLOTS, the
 * number of descriptors, words RQD_NAME=... that a message may have, a signal that ends
 * or continues, an absolute path.
 */
int	launch_parse(const void *p, size_t n, size_t nfds, struct launch_order *) MUSTCHECK;

enum launch_answer { LAUNCH_STARTED = 1, LAUNCH_FAILED, LAUNCH_LOADED, LAUNCH_OPENED };

struct launch_reply {
	uint32_t	answer;
	uint32_t	slot;		/* STARTED, FAILED */
	uint32_t	generation;	/* LOADED; 0: the configuration has errors */
	int32_t		error;		/* FAILED, OPENED, LOADED; 0: none */
	int32_t		step;		/* FAILED: enum spawn_step */
	pid_t		pid;		/* STARTED: the child writes it itself */
};

/*
 * A handler's place, in memory that both processes share.  The main process may write
 * anything to it, so the launcher reads only `done`: no process of the handler is left.
 */
struct launch_slot {
	volatile uint32_t	done;
	struct spawn_report	report;
};

/* sendmsg(2) and recvmsg(2): 0, or the bytes received; -1 with errno. */
int	launch_send(int fd, const void *p, size_t n, const int *fds, size_t nfds, int flags)
	    MUSTCHECK;
ssize_t	launch_receive(int fd, void *p, size_t size, int *fds, size_t *nfds, int flags) MUSTCHECK;
