/*
 * Running the command for messages: one process per message (exec), or
 * processes that are fed many (persistent), or a fake for simulation.
 *
 * A handler serves one queue.  It knows nothing of Redis.
 */
#ifndef RQD_HANDLER_HANDLER_H
#define RQD_HANDLER_HANDLER_H

#include <stdbool.h>

#include "base/list.h"
#include "loop/loop.h"
#include "policy/config.h"
#include "policy/message.h"
#include "policy/outcome.h"

struct handler;
struct run;			/* one message at a handler */

/* Shared by all handlers of a daemon; borrowed. */
struct handler_env {
	struct loop	*loop;
	const char	*config_file;	/* RQD_CONFIG, absolute; NULL: none */
	const char	*server;	/* RQD_SERVER; NULL: none */
	struct guardian	*guardian;	/* NULL: none (tests, rqctl try) */
};

struct handler_events {
	/*
	 * Exactly once per handler_start() that returned a run; never from inside
	 * it.  The handler takes no interest in msg after it.  What result owns is
	 * the callee's.
	 */
	void	(*done)(struct message *, struct result *, void *arg);
	/* One line of output; fd is 1 or 2; cut: the line goes on. Default (NULL): log it. */
	void	(*output)(const struct message *, pid_t, int fd, const char *, size_t, bool cut,
		    void *arg);
};

struct handler_ops {
	const char	 *name;		/* as in mode = "..." */
	struct handler	*(*open)(const struct handler_env *, struct config *,
			    const struct queue_config *, const struct handler_events *, void *arg);
	struct run	*(*start)(struct handler *, struct message *);
	void		(*stop)(struct run *, enum stop);
	void		(*kill)(struct run *);
	void		(*close)(struct handler *, void (*done)(void *), void *);
	void		(*free)(struct handler *);
};

/* Every mode's struct begins with this. */
struct handler {
	const struct handler_ops	*ops;
	const struct handler_events	*events;
	void				*arg;
};

const struct handler_ops *handler_ops(enum mode);
void		 handler_check_ops(void);

struct handler	*handler_open(const struct handler_env *, struct config *,
		    const struct queue_config *, const struct handler_events *, void *arg);

/*
 * Starts msg, which must outlive the run.  Never fails: what cannot be started
 * is done() with END_NOT_STARTED, from the loop.
 */
struct run	*handler_start(struct handler *, struct message *);

/*
 * SIGTERM and SIGCONT to its group now, SIGKILL after kill_grace.  The first
 * reason counts; a second call with STOP_DRAIN or STOP_LOST hastens nothing.
 */
void		 handler_stop(struct run *, enum stop);
void		 handler_kill(struct run *);	/* SIGKILL at once, after a handler_stop() */

/* done() when no process is left (persistent ones are ended); no runs may be live. */
void		 handler_close(struct handler *, void (*done)(void *), void *);
void		 handler_free(struct handler *);

#endif
