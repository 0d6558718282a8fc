/*
 * The daemons, and a bad network between each of them and Redis.
 *
 * Orphans of a killed daemon become children of this process, which is a subreaper, so
 * that none is missed.
 */
#include "soak_private.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct daemon daemons[DAEMONS];
static struct life lives[DAEMONS * LIVES_MAX];
static size_t nlives;
static pid_t adopted;
static int adopted_status = -1;
static const char *rqd_path, *proxy_path, *shim_path;

void
nap(void)
{
	usleep(10000);
}

void
die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	world_stop();
	exit(99);
}

/* -- processes -------------------------------------------------------------- */

pid_t
start(const char *log, char *const argv[], char *const env[], int in, int out)
{
	char path[256];
	pid_t parent = getpid(), pid;
	int fd;

	fflush(NULL);
	if ((pid = fork()) == -1)
		die("fork");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(99);
	snprintf(path, sizeof(path), "%s/%s", soak_dir, log);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
	dup2(in != -1 ? in : open("/dev/null", O_RDONLY), 0);
	dup2(out != -1 ? out : fd, 1);
	dup2(fd, 2);
	for (fd = 3; fd < 100; fd++)
		close(fd);
	for (; env != NULL && *env != NULL; env++)
		putenv(*env);
	execvp(argv[0], argv);
	_exit(127);
}

static void
proxy_start(unsigned slot)
{
	char from[256], to[256], seed[24], ends[256];
	char *argv[] = { (char *)(uintptr_t)proxy_path, from, to, seed, ends, NULL };
	int in[2], out[2];
	char line[32];

	snprintf(from, sizeof(from), "%s/proxy%u.sock", soak_dir, slot);
	snprintf(to, sizeof(to), "%s/redis.sock", soak_dir);
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)soak_seed + slot);
	snprintf(ends, sizeof(ends), "%s/proxy%u.ends", soak_dir, slot);
	if (pipe2(in, O_CLOEXEC) == -1 || pipe2(out, O_CLOEXEC) == -1)
		die("pipe");
	daemons[slot].proxy = start("proxy.log", argv, NULL, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	daemons[slot].to_proxy = fdopen(in[1], "w");
	daemons[slot].from_proxy = fdopen(out[0], "r");
	if (fgets(line, sizeof(line), daemons[slot].from_proxy) == NULL)
		die("flakyproxy");
}

void
proxy_say(unsigned slot, const char *command)
{
	char line[32];

	fprintf(daemons[slot].to_proxy, "%s\n", command);
	fflush(daemons[slot].to_proxy);
	if (fgets(line, sizeof(line), daemons[slot].from_proxy) == NULL)
		die("flakyproxy");
}

/* Opens the file that the daemon's shim reads.  Each daemon's clock is wrong in its own way. */
static void
shim_open(unsigned slot)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/shim%u", soak_dir, slot);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd == -1 || ftruncate(fd, sizeof(struct shim)) == -1)
		die(path);
	daemons[slot].shim = mmap(NULL, sizeof(struct shim), PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	close(fd);
	if (daemons[slot].shim == MAP_FAILED)
		die("mmap");
	daemons[slot].shim->clock_offset = slot % 2 == 0 ? -86400 : 86400;
	daemons[slot].shim->shares = slot == 0;
}

/* Queue "b" gets the children, "end" the numbers. */
static void
pipe_configure(FILE *f)
{
	if (soak_pipe)
		fprintf(f, "queue \"b\" {\n\tcommand = {\"%s\", \"--batch\", \"%s\", \"%llu\"}\n"
		    "\tbatch = %d\n\tbatch_wait = 50ms\n\tpushes = {\"end\"}\n"
		    "\tconcurrency = 2\n\tlease = 3s\n\tmax_attempts = %d\n"
		    "\tbackoff = 100ms\n\tbackoff_max = 500ms\n\tkill_grace = 1s\n}\n"
		    "queue \"end\" {\n\tconcurrency = 0\n}\n", soak_self, soak_dir,
		    (unsigned long long)soak_seed, BATCH_MOST, MAX_ATTEMPTS);
}

static void
daemon_configure(unsigned slot)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/rqd%u.conf", soak_dir, slot);
	if ((f = fopen(path, "w")) == NULL)
		die(path);
	/* Use one process, not root, and handlers of the same user. */
	fprintf(f, "%sredis {\n\tserver = \"unix:%s/proxy%u.sock\"\n\ttimeout = 2s\n}\n"
	    "log {\n\tlevel = \"debug\"\n}\nname = \"host%u\"\ndrain_timeout = 1s\n"
	    "queue \"q\" {\n\tcommand = {\"%s\", \"%s\", \"%s\", \"%llu\"}\n%s%s"
	    "\tconcurrency = 8\n\tlease = 3s\n\tmax_attempts = %d\n"
	    "\tbackoff = 100ms\n\tbackoff_max = 500ms\n\tkill_grace = 1s\n}\n",
	    geteuid() == 0 ? "privileged = false\n" : "", soak_dir, slot, slot, soak_self,
	    soak_pipe ? "--hand-over" : "--handle", soak_dir, (unsigned long long)soak_seed,
	    soak_stream ? "\tkind = \"stream\"\n" : "",
	    soak_pipe ? "\toutput = \"push:b\"\n\tpushes = {\"b\", \"end\"}\n" : "",
	    MAX_ATTEMPTS);
	pipe_configure(f);
	fclose(f);
}

void
daemon_start(unsigned slot)
{
	char conf[256], log[32];
	char *argv[] = { (char *)(uintptr_t)rqd_path, (char *)"-c", conf, NULL };
	char preload[300], control[300], asan[300];
	char *env[] = { preload, control, asan, NULL };
	const char *options = getenv("ASAN_OPTIONS");

	if (nlives == DAEMONS * LIVES_MAX)
		return;
	snprintf(conf, sizeof(conf), "%s/rqd%u.conf", soak_dir, slot);
	snprintf(log, sizeof(log), "rqd%u.log", slot);
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", shim_path);
	snprintf(control, sizeof(control), "RQD_SHIM=%s/shim%u", soak_dir, slot);
	snprintf(asan, sizeof(asan), "ASAN_OPTIONS=%s%sverify_asan_link_order=0",
	    options != NULL ? options : "", options != NULL ? ":" : "");
	daemons[slot].expected = false;
	daemons[slot].pid = start(log, argv, env, -1, -1);
	daemons[slot].started = now();
	lives[nlives++] = (struct life){ daemons[slot].pid, slot };
}

pid_t
world_daemon(unsigned slot)
{
	return daemons[slot].pid;
}

const struct life *
world_life(pid_t pid)
{
	for (size_t i = nlives; i-- > 0;) {
		if (lives[i].pid == pid)
			return &lives[i];
	}
	return NULL;
}

unsigned
world_descriptors(unsigned slot)
{
	char path[64];
	unsigned n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)daemons[slot].pid);
	if ((d = opendir(path)) == NULL)
		return 0;
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n - 2;
}

/* A child of a process; 0: it has none, -1: nobody knows. */
static int
child_of(int pid)
{
	char path[64];
	int child = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	if ((f = fopen(path, "r")) == NULL)
		return -1;
	if (fscanf(f, "%d", &child) != 1)
		child = 0;
	fclose(f);
	return child;
}

/* Whether handlers run: children of the spawner, the daemon's only child. */
bool
world_is_busy(void)
{
	for (unsigned i = 0; i < DAEMONS; i++) {
		int spawner = child_of((int)daemons[i].pid);

		if (spawner <= 0 || child_of(spawner) != 0)
			return true;
	}
	return false;
}

void
world_adopt(pid_t pid)
{
	adopted = pid;
}

bool
world_adopted_ended(int *status)
{
	*status = adopted_status;
	return adopted_status != -1;
}

static bool
reaped_daemon(unsigned slot, int status)
{
	struct daemon *d = &daemons[slot];
	bool expected = d->expected;

	d->pid = 0;
	if (!expected || (!WIFSIGNALED(status) && WEXITSTATUS(status) != 0)) {
		printf("# daemon %u ended: wait status %#x\n", slot, status);
		expected = false;
	}
	return expected;
}

bool
world_reap(void)
{
	bool well = true;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (unsigned i = 0; i < DAEMONS; i++) {
			if (daemons[i].pid == pid && !reaped_daemon(i, status))
				well = false;
			if (daemons[i].proxy == pid)
				die("a proxy ended");
		}
		redis_reaped(pid);
		if (pid == adopted)
			adopted_status = status;
	}
	return well;
}

void
world_start(const char *rqd, const char *proxy, const char *preload)
{
	rqd_path = rqd;
	proxy_path = proxy;
	shim_path = preload;
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	redis_begin();
	for (unsigned i = 0; i < DAEMONS; i++) {
		proxy_start(i);
		daemon_configure(i);
		shim_open(i);
		daemon_start(i);
	}
}

/* Kills all descendants of this process. */
static void
kill_children(void)
{
	char path[64];
	pid_t self = getpid();
	int pid;
	FILE *f;

	for (int round = 0; round < 200; round++) {
		bool any = false;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)self, (int)self);
		if ((f = fopen(path, "r")) == NULL)
			return;
		while (fscanf(f, "%d", &pid) == 1) {
			kill(pid, SIGKILL);
			any = true;
		}
		fclose(f);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (!any)
			return;
		nap();
	}
}

void
world_stop(void)
{
	redis_end();
	for (unsigned i = 0; i < DAEMONS; i++) {
		if (daemons[i].to_proxy != NULL)
			fclose(daemons[i].to_proxy);
		if (daemons[i].from_proxy != NULL)
			fclose(daemons[i].from_proxy);
		daemons[i].to_proxy = daemons[i].from_proxy = NULL;
	}
	kill_children();
}

/* Counts children that this program did not start: spawners, and handlers without one. */
static unsigned
strangers(bool tell)
{
	char path[64], name[64];
	unsigned n = 0;
	int pid;
	FILE *f, *comm;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)getpid(), (int)getpid());
	if ((f = fopen(path, "r")) == NULL)
		return 0;
	while (fscanf(f, "%d", &pid) == 1) {
		if (redis_is(pid) || pid == daemons[0].proxy || pid == daemons[1].proxy)
			continue;
		n++;
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		if (tell && (comm = fopen(path, "r")) != NULL) {
			if (fgets(name, sizeof(name), comm) != NULL)
				printf("# left over: process %d, %s", pid, name);
			fclose(comm);
		}
	}
	fclose(f);
	return n;
}

bool
world_end_daemons(void)
{
	bool well = true;

	for (unsigned i = 0; i < DAEMONS; i++) {
		daemons[i].expected = true;
		if (daemons[i].pid > 0)
			kill(daemons[i].pid, SIGTERM);
	}
	for (int i = 0; i < 1500 && (daemons[0].pid > 0 || daemons[1].pid > 0); i++) {
		well = world_reap() && well;
		nap();
	}
	for (int i = 0; i < 200 && strangers(false) > 0; i++) {
		world_reap();
		nap();
	}
	return strangers(true) == 0 && well;
}
