/*
 * Runs the command for messages: one process per message (exec), or processes that get
 * many messages (persistent).
 *
 * A handler serves one queue.  It knows nothing of Redis.
 */
#pragma once

#include <stdbool.h>

#include "base/log.h"
#include "loop/loop.h"
#include "policy/config.h"
#include "policy/message.h"
#include "policy/outcome.h"

struct handler;
struct run;
struct spawner;

/* Shared by all handlers of a daemon; borrowed. */
struct handler_env {
	struct loop	*loop;
	struct spawner	*spawner;	/* starts all processes */
};

struct handler_events {
	/*
	 * Comes exactly once per message that was started; never from inside a call.
	 * The handler does not use msg afterwards.  The callee takes what result owns.
	 */
	void	(*done)(struct message *, struct result *, void *arg);
	/*
	 * A batch has ended, and done() was called for each of its messages, for some
	 * perhaps long before.  The run is freed afterwards.  The result tells how the
	 * run ended; the handler keeps it.  NULL: the owner starts no batches.
	 */
	void	(*over)(struct run *, const struct result *, void *arg);
	/*
	 * One line of output.  It may come up to a second after done(), so there is no
	 * message.  fd is 1 or 2; cut: the line goes on.  NULL: the handler logs it, as
	 * event=output.  It must not close or free the handler.
	 */
	void	(*output)(const struct log_ctx *, int fd, const char *, size_t, bool cut,
		    void *arg);
	/*
	 * The handler saves this text for the next delivery of the message, which has no result
	 * yet.  It must not close or free the handler.
	 */
	void	(*saved)(struct message *, const char *, size_t, void *arg);
	/*
	 * Once per delivery, when the output exceeds output_limit.  NULL: the handler
	 * logs it, as event=output_cut.
	 */
	void	(*output_cut)(const struct log_ctx *, void *arg);
};

/* One message at a handler, or a batch of them. */
struct run {
	struct handler			*handler;
	pid_t				 pid;	/* of the process that has it; 0: none yet */
	char				*progress;	/* the last one; owned; or NULL */
	void				*owner;	/* the caller's own */
};

#define PROGRESS_MAX	200	/* bytes of progress that are kept, as visible UTF-8 */

/* Keeps references to the configuration.  Never NULL. */
struct handler	*handler_open(const struct handler_env *, struct config *,
		    const struct queue_config *, const struct handler_events *, void *arg);

/*
 * Starts msg, which must live until done(); done() also ends the run.  Never fails: if
 * msg cannot be started, done() comes with END_NOT_STARTED, from the loop.
 */
struct run	*handler_start(struct handler *, struct message *msg);

/*
 * Like handler_start(), for n messages of a queue with `batch` above 1, n >= 1.  One
 * process gets them all, framed as rqd-handler(7) says.  The array stays the caller's.
 */
struct run	*handler_start_batch(struct handler *, struct message *const *msgs, unsigned n);

/*
 * Sends SIGTERM and SIGCONT to its group now, SIGKILL after kill_grace.  The first
 * reason counts; a second call has no effect.
 */
void		 handler_stop(struct run *, enum stop reason);

/* SIGKILL at once, after a handler_stop(). */
void		 handler_kill(struct run *);

/*
 * Starts nothing more.  Persistent processes are ended, and messages that wait for one
 * are not run.  done() comes when no run and no process is left, and the output of
 * finished ones was read, which takes a second at most.
 */
void		 handler_close(struct handler *, void (*done)(void *), void *);

/*
 * At any moment, also inside done() and while closing: nothing is called any
 * more, output still unread is dropped, and what still runs is killed.
 */
void		 handler_free(struct handler *);	/* NULL is fine */
