/*
 * The slow link: one process, poll(2), and a buffer each way of each connection.
 */
#include "link.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../unit/unit.h"

#define LINKS_MAX	16
#define BUFFER		65536

struct way {
	int	 from, to;
	size_t	 limit;		/* bytes in a period; 0: no limit */
	size_t	 left;		/* bytes left in this period */
	size_t	 len;
	char	 buf[BUFFER];
};

static struct way ways[2 * LINKS_MAX];
static unsigned nways;

static int
link_socket(const char *path, struct sockaddr_un *sun)
{
	int small = 16384, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*sun = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(sun->sun_path, sizeof(sun->sun_path), "%s", path);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	return fd;
}

static void
link_accept(int listener, const char *upstream, size_t up, size_t down)
{
	struct sockaddr_un sun;
	int fd = accept(listener, NULL, NULL), to = link_socket(upstream, &sun);

	if (fd == -1 || nways == 2 * LINKS_MAX ||
	    connect(to, (struct sockaddr *)&sun, sizeof(sun)) == -1) {
		close(fd);
		close(to);
		return;
	}
	ways[nways++] = (struct way){ .from = fd, .to = to, .limit = up, .left = up };
	ways[nways++] = (struct way){ .from = to, .to = fd, .limit = down, .left = down };
}

static void
link_close(unsigned i)
{
	i &= ~1u;
	close(ways[i].from);
	close(ways[i].to);
	nways -= 2;
	ways[i] = ways[nways];
	ways[i + 1] = ways[nways + 1];
}

/* Returns false if the connection has ended. */
static bool
link_write(struct way *w)
{
	size_t n = w->limit == 0 || w->len < w->left ? w->len : w->left;
	ssize_t rc;

	if (n == 0)
		return true;
	if ((rc = send(w->to, w->buf, n, MSG_DONTWAIT | MSG_NOSIGNAL)) <= 0)
		return rc == -1;
	w->len -= (size_t)rc;
	w->left -= w->limit > 0 ? (size_t)rc : 0;
	memmove(w->buf, w->buf + rc, w->len);
	return true;
}

static bool
link_read(struct way *w)
{
	ssize_t rc = recv(w->from, w->buf + w->len, sizeof(w->buf) - w->len, MSG_DONTWAIT);

	if (rc > 0)
		w->len += (size_t)rc;
	return rc > 0;
}

static long long
link_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static void
link_run(int listener, const char *upstream, size_t up, size_t down, int every)
{
	long long period = link_now() + every;
	struct pollfd fds[1 + 2 * LINKS_MAX];

	for (;;) {
		fds[0] = (struct pollfd){ .fd = listener, .events = POLLIN };
		for (unsigned i = 0; i < nways; i++)
			fds[i + 1] = (struct pollfd){ .events = POLLIN,
				.fd = ways[i].len < BUFFER ? ways[i].from : -1 };
		(void)poll(fds, nways + 1, 5);
		for (unsigned i = nways; i-- > 0; ) {
			if ((fds[i + 1].revents == 0 || link_read(&ways[i])) &&
			    link_write(&ways[i]))
				continue;
			link_close(i);
			i &= ~1u;
		}
		if (fds[0].revents != 0)
			link_accept(listener, upstream, up, down);
		if (link_now() < period)
			continue;
		period = link_now() + every;
		for (unsigned i = 0; i < nways; i++)
			ways[i].left = ways[i].limit;
	}
}

void
link_start(struct link *l, const char *path, size_t up, size_t down, int every)
{
	struct sockaddr_un sun;
	int fd;

	snprintf(l->path, sizeof(l->path), "%s.link", path);
	snprintf(l->uri, sizeof(l->uri), "unix:%s", l->path);
	unlink(l->path);
	fd = link_socket(l->path, &sun);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(fd, 16), 0);
	if ((l->pid = fork()) == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		link_run(fd, path, up, down, every);
		_exit(0);
	}
	assert_true(l->pid > 0);
	close(fd);
}

void
link_stop(struct link *l)
{
	if (l->pid > 0) {
		kill(l->pid, SIGKILL);
		waitpid(l->pid, NULL, 0);
	}
	unlink(l->path);
	l->pid = 0;
}
