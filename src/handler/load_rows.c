/*
 * Makes rows of a configuration (rows.h): looks users and groups up, and reads env_files.
 *
 * A name service or a server of files may hang.  So a child for each user does that, and
 * becomes that user before it reads.  Where a user is not found, or takes too long, the row
 * says so.
 */
#include "handler/rows.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/trust.h"
#include "handler/environment.h"
#include "handler/identity.h"
#include "handler/privilege.h"

#define PATIENCE	10000		/* milliseconds */

/* What is to be loaded; see load_rows(). */
struct load {
	const struct config *config;
	const struct rows *known;
	unsigned	 generation;
};

/*
 * As root, a queue that names no user is not run; only `rqd -q`, which has no file, may leave
 * it out: root has typed the command, and root is its user.
 */
static bool
is_wanted(const struct load *l, uint32_t queue)
{
	const struct queue_config *q = l->config->queues[queue];
	const struct spawn_row *row;

	if (l->generation != 0) {
		row = rows_find(l->known, l->generation, queue);
		return row != NULL && row->error != 0;
	}
	return config_consumes(q) &&
	    (!privilege_held() || q->user[0] != '\0' || l->config->file[0] == '\0');
}

/* Whether it is wanted, too, for the same user and group as the other queue. */
static bool
load_belongs(const struct load *l, uint32_t queue, uint32_t other)
{
	const struct queue_config *q = l->config->queues[queue], *o = l->config->queues[other];

	return strcmp(q->user, o->user) == 0 && strcmp(q->group, o->group) == 0 &&
	    is_wanted(l, queue);
}

/* -- rows ---------------------------------------------------------------------------- */

static uint32_t
add_strings(struct buf *b, char *const *list)
{
	uint32_t n = 0;

	for (; list != NULL && list[n] != NULL; n++)
		buf_add(b, list[n], strlen(list[n]) + 1);
	return n;
}

/* Adds the row that begins at `at` with the room for its head. */
static void
end_row(struct buf *b, size_t at, struct spawn_row *head)
{
	while ((b->len - at) % 8 != 0)
		buf_addc(b, '\0');
	head->size = (uint32_t)(b->len - at);
	memcpy(b->data + at, head, sizeof(*head));
}

static void
add_error(struct buf *b, uint32_t queue, int error, enum spawn_step step)
{
	struct spawn_row head = { .queue = queue, .error = error, .step = (int32_t)step,
	    .uid = (uid_t)-1, .gid = (gid_t)-1 };
	size_t at = b->len;

	buf_add(b, &head, sizeof(head));
	buf_addc(b, '\0');
	end_row(b, at, &head);
}

/* env_file: open, or -1: there is none, or, with an error, it cannot be opened. */
static void
add_row(struct buf *b, const struct config *config, uint32_t queue, const struct identity *id,
    int env_file, int error)
{
	const struct queue_config *q = config->queues[queue];
	struct spawn_row head = { .queue = queue, .keeps = q->leftovers == LEFTOVERS_KEEP,
	    .prompt = q->mode == MODE_PERSISTENT,
	    .uid = id->uid, .gid = id->gid, .umask = q->umask, .nice = q->nice,
	    .memory_max = q->memory_max, .pids_max = (uint64_t)q->pids_max,
	    .ngroups = (uint32_t)id->ngroups, .limits = { q->limit_nofile, q->limit_as,
	    q->limit_cpu, q->limit_fsize, q->limit_nproc, q->limit_core } };
	size_t at = b->len;
	int n = 0;

	buf_add(b, &head, sizeof(head));
	buf_add(b, id->groups, id->ngroups * sizeof(*id->groups));
	buf_add(b, q->directory, strlen(q->directory) + 1);
	head.argc = add_strings(b, q->command);
	if (error == 0 && (n = environment_make(config, q, id, env_file, b)) == -1)
		error = errno;
	if (error == 0) {
		head.members = (uint16_t)config_members(q);
		head.envc = (uint32_t)n - head.members;
	}
	head.error = error;
	head.step = STEP_NONE;
	if (error != 0)
		head.step = error == E2BIG ? STEP_ENVIRONMENT : STEP_ENV_FILE;
	end_row(b, at, &head);
}

/* Names a file that the main process may have opened, unless there is none. */
static void
add_file(struct buf *b, struct spawn_row *head, enum lend how, const char *path)
{
	if (path == NULL || path[0] != '/')
		return;
	buf_addc(b, (char)how);
	buf_add(b, path, strlen(path) + 1);
	head->argc++;
}

static void
add_files(struct buf *b, const struct config *c)
{
	const struct redis_options *r = &c->redis;
	const char *const read[] = { r->password_file, r->sentinel_password_file, r->tls_ca,
	    r->tls_cert, r->tls_key };
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	struct spawn_row head = { .queue = ROWS_FILES };
	char *credential = xasprintf("%s/redis-password", dir != NULL ? dir : "");
	size_t at = b->len;

	buf_add(b, &head, sizeof(head));
	buf_addc(b, '\0');
	for (size_t i = 0; i < ARRAY_LEN(read); i++)
		add_file(b, &head, LEND_READ, read[i]);
	if (dir != NULL)
		add_file(b, &head, LEND_READ, credential);
	for (char *const *s = r->servers; s != NULL && *s != NULL; s++) {
		if (strncmp(*s, "unix:", 5) == 0)
			add_file(b, &head, LEND_CONNECT, *s + 5);
	}
	add_file(b, &head, LEND_LOG, c->log.target);
	if (strncmp(c->http.listen, "unix:", 5) == 0) {
		add_file(b, &head, LEND_LISTEN, c->http.listen + 5);
		add_file(b, &head, LEND_REMOVE, c->http.listen + 5);
	}
	end_row(b, at, &head);
	free(credential);
}

/* -- in a child for each user --------------------------------------------------------- */

/* That user must not look into this process: no core of it is made, and nobody traces it. */
static int
load_become(const struct identity *id)
{
	struct rlimit core;

	/* 1, and not 0, which a program behind a pipe ignores; but sudo(8) may have set 0. */
	if (getrlimit(RLIMIT_CORE, &core) == -1)
		return -1;
	core.rlim_max = core.rlim_max < 1 ? core.rlim_max : 1;
	core.rlim_cur = core.rlim_max;
	if (setrlimit(RLIMIT_CORE, &core) == -1 ||
	    (id->ngroups > 0 && setgroups(id->ngroups, id->groups) == -1) ||
	    (id->gid != (gid_t)-1 && setresgid(id->gid, id->gid, id->gid) == -1) ||
	    (id->uid != (uid_t)-1 && setresuid(id->uid, id->uid, id->uid) == -1))
		return -1;
	return prctl(PR_SET_DUMPABLE, 0) == -1 || prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 ? -1 : 0;
}

/* Opens without blocking: a fifo would stop us before we can see that it is one. */
static int
open_env_file(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/*
 * Root opens an env_file if only root can have put it there; all others are opened as the
 * user.  0, or -1: the rows are not all in the file.
 */
static int
look_up(const struct load *l, uint32_t first, int file)
{
	const struct config *config = l->config;
	bool privileged = privilege_held();
	int *fds = xcalloc(config->nqueues, sizeof(*fds)), error = 0;
	struct identity id = { .uid = (uid_t)-1 };
	const struct queue_config *q = config->queues[first];
	enum spawn_step step = STEP_USER;
	const char *what;
	struct buf b = BUF_INIT;
	uid_t uid;
	gid_t gid;

	if (identity_find(q->user, q->group, &id, &what) == -1) {
		error = errno;
		step = what[0] == 'u' ? STEP_USER : STEP_GROUP;
	}
	/* A handler of that user could trace the main process.  The check of names is earlier. */
	if (error == 0 && privileged && config->privileged && privilege_user(&uid, &gid) &&
	    id.uid == uid)
		error = EPERM;
	for (uint32_t i = first; i < config->nqueues; i++) {
		q = config->queues[i];
		fds[i] = -1;
		if (privileged && error == 0 &&
		    load_belongs(l, i, first) && q->env_file[0] != '\0' &&
		    trust_file(q->env_file, 0, NULL) == 0)
			fds[i] = open_env_file(q->env_file);
	}
	if (privileged && error == 0 && load_become(&id) == -1)
		error = errno;
	for (uint32_t i = first; i < config->nqueues; i++) {
		q = config->queues[i];
		if (!load_belongs(l, i, first))
			continue;
		if (error != 0) {
			add_error(&b, i, error, step);
			continue;
		}
		if (q->env_file[0] != '\0' && fds[i] == -1)
			fds[i] = open_env_file(q->env_file);
		add_row(&b, config, i, &id, fds[i],
		    q->env_file[0] != '\0' && fds[i] == -1 ? errno : 0);
		fd_close(&fds[i]);
	}
	return fd_write_at(file, b.data, b.len, 0);
}

/* -- the loader ----------------------------------------------------------------------- */

/* A child that takes too long is killed at the end of this process. */
void
load_rows(const struct config *config, int file, const struct rows *known, unsigned generation)
{
	const struct load l = { config, known, generation };
	struct look { pid_t pid; int file; } *looks = xcalloc(config->nqueues + 1, sizeof(*looks));
	struct pollfd children = { .fd = -1 };
	struct buf b = BUF_INIT;
	size_t n = 0;
	uint32_t other;
	int end[2], status, hang;
	pid_t pid;

	if (pipe2(end, O_CLOEXEC) == -1)
		fatal_os("cannot look up users: %s", strerror(errno));
	if (generation == 0)
		add_files(&b, config);
	for (uint32_t i = 0; i < config->nqueues; i++) {
		if (!is_wanted(&l, i))
			continue;
		/* What a child writes comes behind it, and takes its place. */
		add_error(&b, i, ETIMEDOUT, STEP_USER);
		for (other = 0; other < i && !load_belongs(&l, other, i); other++)
			continue;
		if (other < i)
			continue;
		looks[n].file = memfd_create("rqd-rows", MFD_CLOEXEC);
		looks[n].pid = fork();
		if (looks[n].pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(look_up(&l, i, looks[n].file) == 0 ? 0 : 1);
		}
		n++;
	}
	/* Only the children have this end then: it hangs up when the last of them has ended. */
	(void)close(end[1]);
	children.fd = end[0];
	hang = poll(&children, 1, PATIENCE) == 1 ? 0 : WNOHANG;
	(void)close(end[0]);
	/* A child's user may kill it within its write: only its status says that all is there. */
	while ((pid = waitpid(-1, &status, hang)) > 0) {
		for (size_t k = 0; k < n; k++) {
			if (looks[k].pid == pid && status == 0 &&
			    lseek(looks[k].file, 0, SEEK_SET) != -1)
				(void)!buf_read(&b, looks[k].file, SIZE_MAX);
		}
	}
	if (fd_write_at(file, b.data, b.len, 0) == -1)
		fatal_os("cannot write rows: %s", strerror(errno));
	for (size_t k = 0; k < n; k++)
		fd_close(&looks[k].file);
	buf_done(&b);
	free(looks);
}
