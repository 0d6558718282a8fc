/*
 * How a queue's command is started, whatever the mode: its identity,
 * environment and limits, made when the handler is opened and kept.
 */
#ifndef RQD_HANDLER_COMMAND_H
#define RQD_HANDLER_COMMAND_H

#include "handler/handler.h"
#include "handler/launcher.h"
#include "handler/spawn.h"

struct command;

/* Borrows all, which must live as long.  Never NULL, see command_start(). */
struct command	*command_new(const struct handler_env *, const struct config *,
		    const struct queue_config *);
void		 command_free(struct command *);	/* NULL is fine */

/*
 * Starts it with these descriptors, see struct spawn; msg and batch as for
 * environment_words().
 * Returns the pid; or 0 where a launcher does it, and start's callbacks will say more;
 * or -1 with errno and *step: those of spawn_start(), or of a look-up ("user", "group",
 * "env_file"), which is tried again at each call.
 */
pid_t		 command_start(struct command *, const struct message *, unsigned batch,
		    const int fd[SPAWN_FDS],
		    volatile pid_t *slot, struct start *, enum spawn_step *step) MUSTCHECK;

/* For a launcher; words as environment_words() makes them. */
pid_t		 command_spawn(struct command *, char *words, size_t len, const int fd[SPAWN_FDS],
		    volatile pid_t *slot, const struct spawn_proxy *,
		    enum spawn_step *step) MUSTCHECK;

/* Once, at its exit: why it could not be executed, and *step; else 0. */
int		 command_exited(const struct start *, pid_t, const char **step);

#endif
