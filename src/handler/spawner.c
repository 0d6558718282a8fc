/*
 * The main process' side of the spawner; spawner.h describes both.
 *
 * Orders are sent at once, or, while the socket is full, later and in order.  At most one
 * start for each handler that may run waits.
 *
 * A slot is ours from the start until the spawner says that there is no process (any more),
 * so a signal never meets another process.
 */
#include "handler/spawner.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/trust.h"
#include "handler/privilege.h"
#include "handler/spawner_wire.h"
#include "loop/child.h"
#include "loop/io.h"

#define SOCKET_BUFFER	(1024 * 1024)
#define PATIENCE	(2 * SEC)	/* to wait for an answer with a descriptor */

/* An order that waits for room in the socket. */
struct waiting_order {
	TAILQ_ENTRY(waiting_order)	 entry;
	char			*bytes;
	size_t			 n;
	int			 fd[SPAWNER_FDS];	/* copies */
	size_t			 nfds;
};

struct spawner {
	pid_t			 pid;
	bool			 privileged;
	int			 orders;
	int			 files;
	uint32_t		 asked;		/* number of the last order there */
	TAILQ_HEAD(, waiting_order)	 waiting;
	struct subprocess	*owners[SPAWNER_SLOTS];	/* by slot; NULL: nobody wants to know */
	char			 taken[SPAWNER_SLOTS];	/* 1: the slot is in use */
	void			(*loaded)(const struct spawner_loaded *, void *);
	void			*loaded_arg;	/* loaded is NULL: there is no load */
	/* from spawner_attach() on: */
	struct loop		*loop;		/* NULL: not attached */
	struct child		 child;
	struct io		 in;
	struct io		 out;		/* on while orders wait */
	void			(*died)(void *);
	void			*died_arg;
};

/* -- orders -------------------------------------------------------------------------- */

static void
waiting_free(struct waiting_order *w)
{
	fd_close_all(w->fd, w->nfds);
	free(w->bytes);
	free(w);
}

static void	take_reply(struct spawner *, const struct spawner_reply *, int config);

/*
 * The socket may be full, too many descriptors on their way, or the kernel short of memory: all
 * of that ends.  Only an order that is too large for this socket never goes: a start.
 */
static void
has_room(int what UNUSED, void *arg)
{
	struct spawner_reply r = { .answer = SPAWNER_EXITED, .error = E2BIG,
	    .step = STEP_SPAWNER };
	struct spawner *s = arg;
	struct waiting_order *w;
	bool sent;

	while ((w = TAILQ_FIRST(&s->waiting)) != NULL) {
		sent = spawner_send(s->orders, w->bytes, w->n, w->fd, w->nfds, MSG_DONTWAIT) == 0;
		if (!sent && errno != EMSGSIZE)
			return;
		r.slot = ((struct spawner_order *)(void *)w->bytes)->slot;
		TAILQ_REMOVE(&s->waiting, w, entry);
		waiting_free(w);
		if (!sent)
			take_reply(s, &r, -1);
	}
	io_stop(&s->out);
}

/*
 * Sends an order; copies bytes and descriptors if they must wait.  0, or -1 with errno:
 * the order is too large, or a descriptor cannot be copied.
 */
static int
order(struct spawner *s, const void *p, size_t n, const int *fds, size_t nfds)
{
	struct waiting_order *w;

	if (TAILQ_EMPTY(&s->waiting)) {
		if (spawner_send(s->orders, p, n, fds, nfds, MSG_DONTWAIT) == 0)
			return 0;
		if (errno == EMSGSIZE || s->loop == NULL)
			return -1;
	}
	w = NEW(struct waiting_order, .n = n);
	for (; w->nfds < nfds; w->nfds++) {
		w->fd[w->nfds] = fcntl(fds[w->nfds], F_DUPFD_CLOEXEC, 3);
		if (w->fd[w->nfds] == -1) {
			waiting_free(w);
			return -1;
		}
	}
	w->bytes = xmemdup(p, n);
	TAILQ_INSERT_TAIL(&s->waiting, w, entry);
	io_start(&s->out);
	return 0;
}

/* If the spawner has ended, exited() reports it. */
static void
say(struct spawner *s, const struct spawner_order *o)
{
	(void)!order(s, o, sizeof(*o), NULL, 0);
}

/* -- replies ------------------------------------------------------------------------- */

/* config: the descriptor beside the answer to a load; or -1. */
static void
take_reply(struct spawner *s, const struct spawner_reply *r, int config)
{
	struct subprocess *p = s->owners[r->slot];
	void (*loaded)(const struct spawner_loaded *, void *) = s->loaded;

	switch ((enum spawner_answer)r->answer) {
	case SPAWNER_STARTED:
		if (p == NULL)
			break;
		p->pid = r->pid;
		p->events->started(p);
		break;
	case SPAWNER_EXITED:
		s->owners[r->slot] = NULL;
		s->taken[r->slot] = 0;
		if (p == NULL)
			break;
		p->spawner = NULL;
		p->events->exited(p, &(struct spawner_exit){
			.signaled = WIFSIGNALED(r->status),
			.code = WIFSIGNALED(r->status) ? WTERMSIG(r->status) :
			    WEXITSTATUS(r->status),
			.leftovers = r->leftovers != 0, .oom = r->oom != 0,
			.error = r->error, .usage = r->usage,
			.step = spawn_step_name((enum spawn_step)r->step) });
		break;
	case SPAWNER_LOADED:
		s->loaded = NULL;
		loaded(&(struct spawner_loaded){ r->generation, config, r->error },
		    s->loaded_arg);
		break;
	case SPAWNER_OPENED:
		break;
	}
}

/* Takes one datagram, so that a turn of the loop has a limit; -1: there is none. */
static int
read_replies(struct spawner *s, int flags)
{
	struct spawner_reply r[SPAWNER_REPLIES];
	int fds[SPAWNER_FDS];
	size_t nfds;
	ssize_t n = spawner_receive(s->orders, r, sizeof(r), fds, &nfds, flags);

	if (n <= 0) {
		errno = n == 0 ? EPIPE : errno;
		return -1;
	}
	for (size_t i = 0; i < (size_t)n / sizeof(*r); i++)
		take_reply(s, &r[i], nfds > 0 ? fds[0] : -1);
	return 0;
}

static void
readable(int what UNUSED, void *arg)
{
	struct spawner *s = arg;

	if (read_replies(s, MSG_DONTWAIT) == -1 && errno != EAGAIN)
		io_stop(&s->in);	/* it has ended; exited() comes */
}

/* -- handlers ------------------------------------------------------------------------ */

int
subprocess_start(struct subprocess *p, struct spawner *s, const struct config *config,
    const struct queue_config *q, const struct message *msg, unsigned batch,
    const int fd[SPAWN_FDS], const struct subprocess_events *events)
{
	struct spawner_order head = { .op = SPAWNER_START, .generation = config->generation,
	    .batch = batch, .saved = msg != NULL && msg->saved != NULL,
	    .members = msg != NULL && msg->members.len > 0 ? config_members(q) : 0,
	    .attempt = msg != NULL ? msg->attempts + 1 : 0,
	    .max_attempts = (uint32_t)(msg != NULL ? msg->cfg : q)->max_attempts };
	const char *free_slot = memchr(s->taken, 0, sizeof(s->taken)), *text;
	struct buf b = BUF_INIT;
	int fds[SPAWN_FDS], r = -1;
	size_t nfds = 0;

	*p = (struct subprocess){ .events = events };
	errno = EAGAIN;
	if (free_slot == NULL)
		return -1;
	head.slot = p->slot = (uint32_t)(free_slot - s->taken);
	while (config->queues[head.queue] != q)
		head.queue++;
	for (int i = 0; i < SPAWN_FDS; i++) {
		if (fd[i] == -1)
			continue;
		head.value |= 1U << i;
		fds[nfds++] = fd[i];
		/*
		 * Lets a handler of another user open /dev/stderr: the pipes are ours.  Other
		 * processes cannot reach them.
		 */
		if (s->privileged)
			(void)fchmod(fd[i], 0666);
	}
	/* Rounded down: the handler must not count on more time than it has. */
	if (q->mode == MODE_EXEC && q->time_limit > 0)
		head.deadline = (uint32_t)((clock_wall() + q->time_limit) / SEC);
	buf_add(&b, &head, sizeof(head));
	if (msg != NULL)
		buf_add(&b, msg->id, strlen(msg->id) + 1);
	if (msg != NULL && (text = head.saved ? msg->saved : msg->channel) != NULL)
		buf_add(&b, text, strlen(text) + 1);
	if (head.members > 0)
		buf_add(&b, msg->members.data, msg->members.len);
	((struct spawner_order *)(void *)b.data)->size = (uint32_t)(b.len - sizeof(head));
	errno = EMSGSIZE;
	if (b.len <= sizeof(head) + SPAWNER_BYTES)
		r = order(s, b.data, b.len, fds, nfds);
	buf_done(&b);		/* free(3) keeps errno */
	if (r == -1) {
		errno = errno == EMSGSIZE ? E2BIG : errno;
		return -1;
	}
	s->taken[p->slot] = 1;
	s->owners[p->slot] = p;
	p->spawner = s;
	return 0;
}

static void
send_signal(struct subprocess *p, int signo)
{
	struct spawner_order o = { .op = SPAWNER_SIGNAL, .slot = p->slot,
	    .value = (uint32_t)signo };

	if (p->spawner != NULL)
		say(p->spawner, &o);
}

void
subprocess_stop(struct subprocess *p)
{
	send_signal(p, SIGTERM);
	send_signal(p, SIGCONT);
}

void
subprocess_kill(struct subprocess *p)
{
	send_signal(p, SIGKILL);
}

void
subprocess_done(struct subprocess *p)
{
	if (p->spawner != NULL)
		p->spawner->owners[p->slot] = NULL;
	p->spawner = NULL;
}

/* -- configurations ------------------------------------------------------------------ */

void
spawner_load(struct spawner *s, void (*loaded)(const struct spawner_loaded *, void *), void *arg)
{
	struct spawner_order o = { .op = SPAWNER_LOAD };

	s->loaded = loaded;
	s->loaded_arg = arg;
	say(s, &o);
}

static void
keep_loaded(const struct spawner_loaded *loaded, void *arg)
{
	*(struct spawner_loaded *)arg = *loaded;
}

int
spawner_load_now(struct spawner *s, struct spawner_loaded *loaded)
{
	spawner_load(s, keep_loaded, loaded);
	while (s->loaded != NULL) {
		if (read_replies(s, 0) == -1)
			return -1;
	}
	return 0;
}

void
spawner_retire(struct spawner *s, unsigned generation)
{
	struct spawner_order o = { .op = SPAWNER_RETIRE, .generation = generation };

	say(s, &o);
}

void
spawner_hold(struct spawner *s, struct config *config)
{
	if (s != NULL)
		config->held++;
}

void
spawner_drop(struct spawner *s, struct config *config)
{
	if (s != NULL && --config->held == 0)
		spawner_retire(s, config->generation);
}

/* -- files --------------------------------------------------------------------------- */

/* A lender for trust_lend().  An answer to an order that was given up may come before ours. */
static int
lend(enum lend how, const char *path, void *arg)
{
	struct spawner *s = arg;
	struct spawner_order o = { .op = SPAWNER_OPEN, .slot = ++s->asked };
	struct pollfd wait = { .fd = s->files, .events = POLLIN };
	usec_t until = clock_mono() + PATIENCE, left;
	int fds[SPAWNER_FDS];
	struct buf b = BUF_INIT;
	struct spawner_reply r;
	size_t nfds;
	int sent;

	errno = EACCES;
	if (path[0] != '/' || strlen(path) + 1 >= SPAWNER_PATH)
		return -1;
	o.size = (uint32_t)strlen(path) + 1;
	buf_add(&b, &o, sizeof(o));
	buf_addc(&b, (char)how);
	buf_puts(&b, path);
	sent = spawner_send(s->files, b.data, b.len, NULL, 0, MSG_DONTWAIT);
	buf_done(&b);
	while (sent == 0 && (left = until - clock_mono()) > 0) {
		if (poll(&wait, 1, (int)(left / MSEC) + 1) != 1)
			continue;
		errno = EPIPE;
		if (spawner_receive(s->files, &r, sizeof(r), fds, &nfds, 0) != sizeof(r))
			return -1;
		if (r.slot == s->asked && nfds == 1)
			return fds[0];
		fd_close_all(fds, nfds);
		errno = r.error != 0 ? r.error : EMFILE;
		if (r.slot == s->asked)
			return -1;
	}
	errno = sent == 0 ? ETIMEDOUT : errno;
	return -1;
}

/* -- its life ------------------------------------------------------------------------ */

/* Makes a pair of close-on-exec sockets; [0] is for this process. */
static void
make_pair(int fd[2])
{
	const int size = SOCKET_BUFFER;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) == -1)
		fatal_os("cannot make a socket: %s", strerror(errno));
	for (int i = 0; i < 2; i++)
		(void)setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

struct spawner *
spawner_fork(spawner_loader *load, void *arg)
{
	struct spawner *s = xcalloc(1, sizeof(*s));	/* most of it is never touched */
	int orders[2], files[2];
	pid_t self = getpid();
	sigset_t all, old;

	s->privileged = privilege_held();
	make_pair(orders);
	make_pair(files);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	s->pid = fork();
	if (s->pid == 0) {
		(void)close(orders[0]);
		(void)close(files[0]);
		free(s);
		spawner_serve(self, orders[1], files[1], load, arg);
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	(void)close(orders[1]);
	(void)close(files[1]);
	if (s->pid == -1)
		fatal_os("cannot fork the spawner: %s", strerror(errno));
	s->orders = orders[0];
	s->files = files[0];
	trust_set_lender(s->privileged ? lend : NULL, s);
	TAILQ_INIT(&s->waiting);
	return s;
}

static void
exited(struct child *child, const struct child_exit *x UNUSED)
{
	struct spawner *s = CONTAINER_OF(child, struct spawner, child);

	s->died(s->died_arg);
}

void
spawner_attach(struct spawner *s, struct loop *loop, void (*died)(void *), void *arg)
{
	s->loop = loop;
	s->died = died;
	s->died_arg = arg;
	s->child.exited = exited;
	child_watch(&s->child, s->pid);
	io_init(&s->in, loop, s->orders, IO_READ, readable, s);
	io_init(&s->out, loop, s->orders, IO_WRITE, has_room, s);
	io_start(&s->in);
}

/* Orders that still wait are of no use: it ends all handlers. */
void
spawner_stop(struct spawner *s)
{
	struct waiting_order *w;

	if (s == NULL)
		return;
	if (s->loop != NULL) {
		io_done(&s->in);
		io_done(&s->out);
		child_forget(&s->child);
	}
	while ((w = TAILQ_TAKE(&s->waiting, entry)) != NULL)
		waiting_free(w);
	trust_set_lender(NULL, NULL);
	(void)close(s->orders);
	(void)close(s->files);
	(void)kill(s->pid, SIGCONT);		/* if somebody has stopped it */
	(void)RETRY(waitpid(s->pid, NULL, 0));
	free(s);
}
