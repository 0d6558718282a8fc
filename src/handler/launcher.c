/*
 * The main process' side of the launcher; launcher.h describes both.
 *
 * A child introduces itself before it can exit.  So before child.c reaps an unknown
 * process, it lets this file read the introductions that have come (introduce()).
 */
#include "handler/launcher.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "handler/launch_queue.h"
#include "handler/launch_wire.h"
#include "handler/launcher_serve.h"
#include "loop/child.h"
#include "loop/io.h"

#define SOCKET_BUFFER	(1024 * 1024)
#define PATIENCE	(5 * SEC)	/* to wait for an answer with a descriptor */

struct held_generation {
	unsigned	number;
	unsigned	held;
};

struct launcher {
	pid_t			 pid;
	struct launch_queue	 orders;
	int			 files;
	struct launch_slot	*slots;		/* shared; LAUNCH_SLOTS of them */
	struct start		*starts[LAUNCH_SLOTS];	/* by slot; NULL: none waits */
	uint32_t		*free;		/* slots below used that are free, a stack */
	size_t			 nfree;
	uint32_t		 used;
	struct held_generation	*generations;
	size_t			 ngenerations;
	struct buf		 order;		/* the last start */
	/* from launcher_attach() on: */
	struct loop		*loop;		/* NULL: not attached */
	struct child		 child;
	struct io		 in;
	void			(*died)(void *);
	void			*died_arg;
	void			(*loaded)(struct launcher_loaded *, void *);	/* NULL: no load */
	void			*loaded_arg;
};

/* Sends an order.  If the launcher has ended, exited() reports it. */
static void
say(struct launcher *l, const struct launch_head *head)
{
	(void)!launch_queue_send(&l->orders, head, sizeof(*head), NULL, 0);
}

/* -- replies ----------------------------------------------------------------------------- */

static void
take_loaded(const struct launch_reply *r, const int *fds, size_t nfds,
    struct launcher_loaded *ret)
{
	*ret = (struct launcher_loaded){ .generation = r->generation, .text = -1,
	    .report = nfds > 0 ? fds[0] : -1, .error = r->error };
	if (r->generation != 0 && nfds > 1)
		ret->text = fds[1];
}

static void
tell_loaded(struct launcher *l, const struct launch_reply *r, const int *fds, size_t nfds)
{
	void (*loaded)(struct launcher_loaded *, void *) = l->loaded;
	struct launcher_loaded got;

	take_loaded(r, fds, nfds, &got);
	l->loaded = NULL;
	if (loaded != NULL)
		loaded(&got, l->loaded_arg);
}

static void
take_reply(struct launcher *l, const struct launch_reply *r, int *fds, size_t nfds)
{
	struct start *s = r->slot < l->used ? l->starts[r->slot] : NULL;

	switch (r->answer) {
	case LAUNCH_STARTED:
		if (s != NULL)
			s->started(s, r->pid);
		break;
	case LAUNCH_FAILED:
		if (s == NULL)
			break;
		launcher_finish(s);
		s->failed(s, r->error, (enum spawn_step)r->step);
		break;
	case LAUNCH_LOADED:
		tell_loaded(l, r, fds, nfds);
		return;
	default:
		break;
	}
	fd_close_all(fds, nfds);
}

static bool
read_reply(struct launcher *l, int flags)
{
	int fds[LAUNCH_FDS];
	struct launch_reply r;
	size_t nfds;

	if (launch_receive(l->orders.fd, &r, sizeof(r), fds, &nfds, flags) != sizeof(r))
		return false;
	take_reply(l, &r, fds, nfds);
	return true;
}

static void
introduce(void *arg)
{
	struct launcher *l = arg;

	while (read_reply(l, MSG_DONTWAIT))
		continue;
}

static void
readable(int what UNUSED, void *arg)
{
	introduce(arg);
}

/* -- starts ------------------------------------------------------------------------------- */

static int
take_slot(struct launcher *l, struct start *s)
{
	if (l->nfree > 0) {
		s->slot = l->free[--l->nfree];
	} else if (l->used < LAUNCH_SLOTS) {
		s->slot = l->used++;
	} else {
		errno = EAGAIN;
		return -1;
	}
	l->slots[s->slot].report = (struct spawn_report){ STEP_NONE, 0 };
	l->starts[s->slot] = s;
	s->launcher = l;
	return 0;
}

static void
free_slot(struct launcher *l, uint32_t slot)
{
	l->slots[slot].done = 1;
	l->starts[slot] = NULL;
	if (l->free == NULL)
		l->free = xcalloc(LAUNCH_SLOTS, sizeof(*l->free));
	l->free[l->nfree++] = slot;
}

void
launcher_finish(struct start *s)
{
	if (s->launcher == NULL)
		return;
	free_slot(s->launcher, s->slot);
	s->launcher = NULL;
}

void
launcher_forget(struct start *s)
{
	if (s->launcher == NULL)
		return;
	s->launcher->starts[s->slot] = NULL;
	s->launcher = NULL;
}

int
launcher_start(struct launcher *l, struct start *s, unsigned generation, unsigned queue,
    const struct buf *words, const int fd[SPAWN_FDS])
{
	struct launch_head head = { .op = LAUNCH_START, .generation = generation,
	    .queue = queue, .size = (uint32_t)words->len };
	struct buf *b = &l->order;
	int fds[SPAWN_FDS], i, error;
	size_t nfds = 0;

	errno = E2BIG;
	if (words->len > LAUNCH_BYTES || take_slot(l, s) == -1)
		return -1;
	head.slot = s->slot;
	for (i = 0; i < SPAWN_FDS; i++) {
		if (fd[i] == -1)
			continue;
		head.value |= 1U << i;
		fds[nfds++] = fd[i];
	}
	buf_clear(b);
	buf_add(b, &head, sizeof(head));
	buf_add(b, words->data, words->len);
	if (launch_queue_send(&l->orders, b->data, b->len, fds, nfds) == 0)
		return 0;
	error = errno == EMSGSIZE ? E2BIG : errno;
	launcher_finish(s);
	errno = error;
	return -1;
}

void
launcher_signal(struct start *s, int signo)
{
	struct launch_head head = { .op = LAUNCH_SIGNAL, .slot = s->slot,
	    .value = (uint32_t)signo };

	if (s->launcher != NULL)
		say(s->launcher, &head);
}

int
launcher_exited(const struct start *s, enum spawn_step *step)
{
	const struct spawn_report *r = &s->launcher->slots[s->slot].report;

	*step = (enum spawn_step)r->step;
	return r->step == STEP_NONE ? 0 : r->error;
}

static void
end_child(pid_t pid, void *arg)
{
	struct launch_head head = { .op = LAUNCH_END, .value = (uint32_t)pid };

	say(arg, &head);
}

/* -- configurations -------------------------------------------------------------------------- */

void
launcher_hold(struct launcher *l, unsigned generation)
{
	for (size_t i = 0; i < l->ngenerations; i++) {
		if (l->generations[i].number == generation) {
			l->generations[i].held++;
			return;
		}
	}
	l->generations = xreallocarray(l->generations, l->ngenerations + 1,
	    sizeof(*l->generations));
	l->generations[l->ngenerations++] = (struct held_generation){ generation, 1 };
}

void
launcher_drop(struct launcher *l, unsigned generation)
{
	struct launch_head head = { .op = LAUNCH_RETIRE, .generation = generation };

	for (size_t i = 0; i < l->ngenerations; i++) {
		if (l->generations[i].number != generation || --l->generations[i].held > 0)
			continue;
		l->generations[i] = l->generations[--l->ngenerations];
		say(l, &head);
		return;
	}
}

void
launcher_load(struct launcher *l, void (*loaded)(struct launcher_loaded *, void *), void *arg)
{
	struct launch_head head = { .op = LAUNCH_LOAD };

	l->loaded = loaded;
	l->loaded_arg = arg;
	say(l, &head);
}

int
launcher_load_now(struct launcher *l, struct launcher_loaded *ret)
{
	struct launch_head head = { .op = LAUNCH_LOAD };
	int fds[LAUNCH_FDS];
	struct launch_reply r;
	size_t nfds;
	ssize_t n;

	if (launch_send(l->orders.fd, &head, sizeof(head), NULL, 0, 0) == -1)
		return -1;
	n = launch_receive(l->orders.fd, &r, sizeof(r), fds, &nfds, 0);
	if (n != sizeof(r)) {
		errno = n == -1 ? errno : EPIPE;
		return -1;
	}
	take_loaded(&r, fds, nfds, ret);
	return 0;
}

/* -- files ------------------------------------------------------------------------------- */

/* Drops late answers to orders that were given up. */
static void
drop_late_answers(int s)
{
	int fds[LAUNCH_FDS];
	struct launch_reply r;
	size_t nfds;

	while (launch_receive(s, &r, sizeof(r), fds, &nfds, MSG_DONTWAIT) > 0)
		fd_close_all(fds, nfds);
}

static int
receive_fd(int s)
{
	struct pollfd p = { .fd = s, .events = POLLIN };
	int fds[LAUNCH_FDS];
	struct launch_reply r;
	size_t nfds;

	errno = ETIMEDOUT;
	if (poll(&p, 1, (int)(PATIENCE / MSEC)) != 1)
		return -1;
	if (launch_receive(s, &r, sizeof(r), fds, &nfds, 0) != sizeof(r)) {
		errno = EPIPE;
		return -1;
	}
	if (nfds == 1 && r.error == 0)
		return fds[0];
	fd_close_all(fds, nfds);
	errno = r.error != 0 ? r.error : EPROTO;
	return -1;
}

/* Sends an order of n bytes and waits.  The descriptor, or -1 with errno. */
static int
ask_fd(struct launcher *l, const void *order, size_t n)
{
	drop_late_answers(l->files);
	if (launch_send(l->files, order, n, NULL, 0, MSG_DONTWAIT) == -1)
		return -1;
	return receive_fd(l->files);
}

int
launcher_open(struct launcher *l, const char *path)
{
	struct launch_head head = { .op = LAUNCH_FILE, .size = (uint32_t)strlen(path) };
	char bytes[sizeof(head) + LAUNCH_PATH];

	if (strlen(path) >= LAUNCH_PATH) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), path, head.size);
	return ask_fd(l, bytes, sizeof(head) + head.size);
}

int
launcher_open_log(struct launcher *l, unsigned generation)
{
	struct launch_head head = { .op = LAUNCH_LOG, .generation = generation };

	return ask_fd(l, &head, sizeof(head));
}

int
launcher_listen(struct launcher *l, unsigned generation)
{
	struct launch_head head = { .op = LAUNCH_LISTEN, .generation = generation };

	return ask_fd(l, &head, sizeof(head));
}

void
launcher_unlisten(struct launcher *l)
{
	struct launch_head head = { .op = LAUNCH_UNLISTEN };

	(void)!launch_send(l->files, &head, sizeof(head), NULL, 0, MSG_DONTWAIT);
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

struct launcher *
launcher_fork(const struct launcher_ops *ops, void *arg)
{
	struct launcher *l = xcalloc(1, sizeof(*l));
	struct launch_slot *slots;
	int orders[2], files[2];
	sigset_t all, old;

	l->slots = mmap(NULL, LAUNCH_SLOTS * sizeof(*l->slots), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (l->slots == MAP_FAILED)
		fatal_os("cannot map shared memory: %s", strerror(errno));
	make_pair(orders);
	make_pair(files);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	l->pid = fork();
	if (l->pid == 0) {
		(void)close(orders[0]);
		(void)close(files[0]);
		slots = l->slots;
		free(l);
		launcher_serve(orders[1], files[1], slots, ops, arg);
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	(void)close(orders[1]);
	(void)close(files[1]);
	if (l->pid == -1)
		fatal_os("cannot fork the launcher: %s", strerror(errno));
	launch_queue_init(&l->orders, orders[0]);
	l->files = files[0];
	return l;
}

static void
exited(struct child *child, const struct child_exit *x UNUSED)
{
	struct launcher *l = CONTAINER_OF(child, struct launcher, child);

	l->died(l->died_arg);
}

void
launcher_attach(struct launcher *l, struct loop *loop, void (*died)(void *), void *arg)
{
	l->loop = loop;
	l->died = died;
	l->died_arg = arg;
	l->child.exited = exited;
	child_watch(loop, &l->child, l->pid);
	child_set_proxy(loop, introduce, end_child, l);
	launch_queue_attach(&l->orders, loop);
	io_init(&l->in, loop, l->orders.fd, IO_READ, readable, l);
	io_start(&l->in);
}

/* Called after child_done(), which may still send orders to end leftovers. */
void
launcher_stop(struct launcher *l)
{
	if (l == NULL)
		return;
	if (l->loop != NULL) {
		io_done(&l->in);
		child_forget(l->loop, &l->child);
		child_set_proxy(l->loop, NULL, NULL, NULL);
	}
	launch_queue_done(&l->orders);
	(void)close(l->files);
	child_wait_pid(l->pid);
	(void)munmap(l->slots, LAUNCH_SLOTS * sizeof(*l->slots));
	buf_done(&l->order);
	free(l->generations);
	free(l->free);
	free(l);
}

