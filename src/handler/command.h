/*
 * A queue's command, for all modes of handlers: its identity, environment and limits.
 * They are made when the handler is opened, and kept.
 */
#pragma once

#include "handler/handler.h"
#include "handler/launcher.h"
#include "handler/spawn.h"

struct command;

/* Borrows its arguments, which must live as long.  Never NULL, see command_start(). */
struct command	*command_new(const struct handler_env *, const struct config *,
		    const struct queue_config *);
void		 command_free(struct command *);	/* NULL is fine */

/*
 * Starts the command with these descriptors, see struct spawn; msg and batch as for
 * environment_words().  Returns the pid; or 0 if a launcher starts it, and start's
 * callbacks will follow; or -1 with errno and *step.  These are those of spawn_start(),
 * or of a look-up ("user", "group", "env_file"), which is tried again at each call.
 */
pid_t		 command_start(struct command *, const struct message *, unsigned batch,
		    const int fd[SPAWN_FDS],
		    volatile pid_t *slot, struct start *, enum spawn_step *step) MUSTCHECK;

/* For a launcher; words as environment_words() makes them. */
pid_t		 command_spawn(struct command *, char *words, size_t len, const int fd[SPAWN_FDS],
		    volatile pid_t *slot, const struct spawn_proxy *,
		    enum spawn_step *step) MUSTCHECK;

/*
 * Call it once, at the exit: returns the error number and *step if the command could
 * not be executed; else 0.
 */
int		 command_exited(const struct start *, pid_t, const char **step);
