/*
 * The limit of a process per message: a bare vfork(2) loop that writes stdin and reads
 * the output.
 *
 *	limit_spawn COUNT AT_ONCE COMMAND...
 *
 * Each process gets a message of 200 bytes on a pipe, written before it runs, and two
 * pipes for its output.  The loop reads these to their ends before it waits for the
 * process.  There is no session, no limit, no log, and no Redis: the difference to rqd
 * is the cost of these.
 */
#include <sys/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST	64
#define SIZE	200

struct process {
	pid_t	pid;		/* 0: none */
	int	open;		/* pipes that have not ended */
};

static struct process	process[MOST];
static struct pollfd	pfd[2 * MOST];	/* two for each process; fd -1: ended */
static char		message[SIZE];
extern char		**environ;

static void
must(int r, const char *what)
{
	if (r == -1) {
		perror(what);
		exit(71);
	}
}

static pid_t
spawn(char **argv, int in, int out, int err)
{
	pid_t pid = vfork();

	if (pid == 0) {
		(void)dup2(in, 0);
		(void)dup2(out, 1);
		(void)dup2(err, 2);
		(void)execve(argv[0], argv, environ);
		_exit(127);
	}
	must(pid, "vfork");
	return pid;
}

static void
start(int i, char **argv)
{
	int in[2], out[2], err[2];

	must(pipe2(in, O_CLOEXEC), "pipe2");
	must(pipe2(out, O_CLOEXEC), "pipe2");
	must(pipe2(err, O_CLOEXEC), "pipe2");
	must((int)write(in[1], message, SIZE), "write");
	process[i].pid = spawn(argv, in[0], out[1], err[1]);
	process[i].open = 2;
	(void)close(in[0]);
	(void)close(in[1]);
	(void)close(out[1]);
	(void)close(err[1]);
	pfd[2 * i] = (struct pollfd){ .fd = out[0], .events = POLLIN };
	pfd[2 * i + 1] = (struct pollfd){ .fd = err[0], .events = POLLIN };
}

/* Reads what has come; true if that ended the process' last pipe. */
static int
ended(int i, struct pollfd *p)
{
	char bytes[8192];

	if (p->fd == -1 || p->revents == 0 || read(p->fd, bytes, sizeof(bytes)) > 0)
		return 0;
	(void)close(p->fd);
	p->fd = -1;
	return --process[i].open == 0;
}

static void
reap(int i)
{
	int status;

	must(waitpid(process[i].pid, &status, 0), "waitpid");
	if (status != 0) {
		fprintf(stderr, "limit_spawn: the command failed\n");
		exit(1);
	}
	process[i].pid = 0;
}

int
main(int argc, char **argv)
{
	int count, at_once, started = 0, done = 0, i;

	if (argc < 4)
		return 64;
	count = atoi(argv[1]);
	at_once = atoi(argv[2]) < MOST ? atoi(argv[2]) : MOST;
	memset(message, 'x', sizeof(message));
	for (i = 0; i < 2 * MOST; i++)
		pfd[i].fd = -1;
	while (done < count) {
		for (i = 0; i < at_once && started < count; i++) {
			if (process[i].pid == 0) {
				start(i, argv + 3);
				started++;
			}
		}
		must(poll(pfd, 2 * (nfds_t)at_once, -1), "poll");
		for (i = 0; i < at_once; i++) {
			if (ended(i, &pfd[2 * i]) | ended(i, &pfd[2 * i + 1])) {
				reap(i);
				done++;
			}
		}
	}
	return 0;
}
