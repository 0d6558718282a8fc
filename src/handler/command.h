/*
 * How a queue's command is started, whatever the mode: its identity,
 * environment and limits, made when the handler is opened and kept.
 */
#ifndef RQD_HANDLER_COMMAND_H
#define RQD_HANDLER_COMMAND_H

#include "handler/handler.h"
#include "handler/spawn.h"

struct command;

/* Borrows both, which must live as long.  Never NULL, see command_spawn(). */
struct command	*command_new(const struct handler_env *, const struct queue_config *);
void		 command_free(struct command *);	/* NULL is fine */

/*
 * Starts it for msg (NULL: for many) with these descriptors, see struct spawn.
 * wait: spawn_run(), otherwise spawn_start(); spawn_exited() is due after both.
 * Returns the pid, or -1 with errno and *step: theirs, or that of a look-up
 * ("user", "group", "env_file"), which is tried again at each call.
 */
pid_t		 command_spawn(struct command *, const struct message *,
		    const int fd[3], volatile pid_t *slot, bool wait,
		    const char **step) MUSTCHECK;

#endif
