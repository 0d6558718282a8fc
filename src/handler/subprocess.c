/*
 * A handler's process: what is the same whether the daemon starts it or the launcher.
 *
 * child.c kills and reaps the group before it calls exited().  So the guardian's
 * slot is given back there: the number may then belong to another process.
 */
#include "handler/subprocess.h"

#include <errno.h>
#include <signal.h>

#include "handler/guardian.h"

static void
release(struct subprocess *p)
{
	guardian_release(p->env->guardian, p->slot);
	p->slot = NULL;
}

static void
exited(struct child *child, const struct child_exit *x)
{
	struct subprocess *p = CONTAINER_OF(child, struct subprocess, child);
	const char *step;
	int error = command_exited(&p->start, p->pid, &step);

	release(p);
	launcher_finish(&p->start);
	p->events->exited(p, x, error, step);
}

static void
watch(struct subprocess *p, pid_t pid)
{
	p->pid = pid;
	child_watch(p->env->loop, &p->child, pid);
}

/* The launcher's. */
static void
started(struct start *start, pid_t pid)
{
	struct subprocess *p = CONTAINER_OF(start, struct subprocess, start);

	watch(p, pid);
	p->events->started(p);
}

/* The launcher's: there was no process. */
static void
failed(struct start *start, int error, enum spawn_step step)
{
	struct subprocess *p = CONTAINER_OF(start, struct subprocess, start);

	p->events->failed(p, error, spawn_step_name(step));
}

/* child.c's: the launcher signals the processes that it started. */
static void
kill_by_launcher(struct child *child, int signo)
{
	launcher_signal(&CONTAINER_OF(child, struct subprocess, child)->start, signo);
}

int
subprocess_start(struct subprocess *p, const struct handler_env *env, struct command *command,
    const struct message *msg, unsigned batch, const int fd[SPAWN_FDS],
    bool kill_leftovers, const struct subprocess_events *events, const char **step)
{
	enum spawn_step what;
	int error;
	pid_t pid;

	*p = (struct subprocess){ .env = env, .events = events,
	    .start = { .started = started, .failed = failed },
	    .child = { .exited = exited, .leader = true, .kill_leftovers = kill_leftovers } };
	p->slot = guardian_slot(env->guardian);
	pid = command_start(command, msg, batch, fd, p->slot, &p->start, &what);
	if (pid == -1) {
		*step = spawn_step_name(what);
		error = errno;
		release(p);
		errno = error;
		return -1;
	}
	if (p->start.launcher != NULL)
		p->child.kill = kill_by_launcher;
	else
		watch(p, pid);
	return 0;
}

void
subprocess_stop(struct subprocess *p)
{
	p->child.kill_leftovers = true;
	(void)child_kill(&p->child, SIGTERM);
	(void)child_kill(&p->child, SIGCONT);
}

void
subprocess_kill(struct subprocess *p)
{
	(void)child_kill(&p->child, SIGKILL);
}

void
subprocess_done(struct subprocess *p)
{
	if (p->env == NULL)
		return;
	child_forget(p->env->loop, &p->child);
	release(p);
	launcher_forget(&p->start);
}
