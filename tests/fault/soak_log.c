/*
 * Reads the daemons' logs while they are written, and the times when their connections
 * ended.
 *
 * A record "acked" or "dead" means that Redis has confirmed a result.  After a lost
 * connection it may mean less: the result is sent again, and the answer that another
 * delivery has the message counts as success, because the first call may have acted.
 * The proxies tell the times of lost connections; the log may omit them.
 *
 * The time of a record is that at which it is read here, because the daemons' clocks
 * are wrong.
 */
#include "soak.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct log {
	int	 fd;		/* 0: not open yet */
	char	*buf;
	size_t	 len, room;
	double	*ends;		/* of connections, in order; read at the end */
	size_t	 nends;
	bool	 suspended;
} logs[DAEMONS];

static struct settled *settled;
static size_t nsettled;

static void
settled_add(unsigned slot, const char *line)
{
	const char *pid = strstr(line, " pid="), *attempt = strstr(line, " attempt=");
	const char *child = strstr(line, " queue=b id=");

	if (pid == NULL || attempt == NULL)
		return;
	if ((nsettled & (nsettled - 1)) == 0) {
		settled = realloc(settled, (2 * nsettled + 1) * sizeof(*settled));
		if (settled == NULL)
			abort();
	}
	settled[nsettled++] = (struct settled){
		.slot = slot, .pid = (pid_t)atol(pid + 5), .attempt = atoi(attempt + 9),
		.n = child != NULL ? atol(child + strlen(" queue=b id=")) : 0, .at = now(),
	};
}

static bool
is_event(const char *event, const char *name)
{
	size_t len = strlen(name);

	return strncmp(event, name, len) == 0 && (event[len] == ' ' || event[len] == '\0');
}

static void
log_line(unsigned slot, const char *line)
{
	const char *event = strstr(line, " event=");
	struct log *l = &logs[slot];

	if (event == NULL)
		return;
	event += 7;
	if (is_event(event, "acked") || is_event(event, "dead"))
		settled_add(slot, line);
	else if (is_event(event, "suspended"))
		l->suspended = true;
	else if (is_event(event, "resumed") || is_event(event, "started"))
		l->suspended = false;
}

/* Reads records; false: there are no more now. */
static bool
log_read(unsigned slot)
{
	struct log *l = &logs[slot];
	char *from, *to;
	ssize_t n;

	if (l->room - l->len < 65536) {
		l->room += 131072;
		if ((l->buf = realloc(l->buf, l->room)) == NULL)
			abort();
	}
	if ((n = read(l->fd, l->buf + l->len, l->room - l->len)) <= 0)
		return false;
	l->len += (size_t)n;
	for (from = l->buf; (to = memchr(from, '\n', l->len - (size_t)(from - l->buf))) != NULL;
	    from = to + 1) {
		*to = '\0';
		log_line(slot, from);
	}
	l->len -= (size_t)(from - l->buf);
	memmove(l->buf, from, l->len);
	return true;
}

void
log_poll(void)
{
	char path[256];

	for (unsigned i = 0; i < DAEMONS; i++) {
		if (logs[i].fd <= 0) {
			snprintf(path, sizeof(path), "%s/rqd%u.log", soak_dir, i);
			logs[i].fd = open(path, O_RDONLY | O_CLOEXEC);
		}
		while (logs[i].fd > 0 && log_read(i))
			;
	}
}

bool
log_is_suspended(void)
{
	for (unsigned i = 0; i < DAEMONS; i++) {
		if (logs[i].suspended)
			return true;
	}
	return false;
}

static void
ends_read(unsigned slot)
{
	struct log *l = &logs[slot];
	char path[256];
	size_t room = 0;
	double at;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proxy%u.ends", soak_dir, slot);
	if ((f = fopen(path, "r")) == NULL)
		return;
	while (fscanf(f, "%lf", &at) == 1) {
		if (l->nends == room) {
			room = 2 * room + 1024;
			if ((l->ends = realloc(l->ends, room * sizeof(*l->ends))) == NULL)
				abort();
		}
		l->ends[l->nends++] = at;
	}
	fclose(f);
}

bool
log_was_cut(unsigned slot, double from, double to)
{
	struct log *l = &logs[slot];
	size_t low = 0, high;

	if (l->ends == NULL)
		ends_read(slot);
	for (high = l->nends; low < high;) {
		size_t middle = (low + high) / 2;

		if (l->ends[middle] < from)
			low = middle + 1;
		else
			high = middle;
	}
	return low < l->nends && l->ends[low] <= to;
}

const struct settled *
log_settled(size_t *n)
{
	*n = nsettled;
	return settled;
}

void
log_done(void)
{
	for (unsigned i = 0; i < DAEMONS; i++) {
		if (logs[i].fd > 0)
			close(logs[i].fd);
		free(logs[i].buf);
		free(logs[i].ends);
	}
	memset(logs, 0, sizeof(logs));
	free(settled);
	settled = NULL;
	nsettled = 0;
}
