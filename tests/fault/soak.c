/*
 * Runs two daemons, each behind a bad network, a Redis, a producer, and random faults.
 * Then it proves that no message was lost, and that a fault explains each duplicate.
 *
 *	soak RQD FLAKYPROXY SHIM
 *
 * From the environment: SEED (random unless given; printed), FAULTS (20),
 * MESSAGES (300), KINDS (names of faults, with commas; all), PACE (faults come so
 * many times slower; 1), STREAM (the queue is of kind "stream"), PIPE (it hands over to a
 * queue of batches and to a list, and Redis forgets nothing), SOAK_VERBOSE (each
 * fault is printed), PATIENCE (the machine may be so many times slower; 1), and
 * RQD_TEST_KEEP, which keeps the directory with all logs.
 * The output is TAP.
 *
 * Faults keep pace with the messages.  The last fault and the last message come
 * together, when few messages wait, so that only rqd's recovery drains the queue
 * afterwards.
 *
 * Faults begin one after the other, and several last at a time.  The seed determines
 * the faults, their durations, and the results of handlers; it does not determine
 * races.
 *
 *	soak.c		the scenario
 *	soak_world.c	the daemons and their network
 *	soak_redis.c	Redis and a replica, and what they forget
 *	soak_faults.c	the kinds of faults
 *	soak_work.c	producer and handler
 *	soak_log.c	what the daemons say in their logs
 *	soak_check.c	the proof
 */
#include "soak.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#define FAULTS_MAX	5000

const char *soak_dir, *soak_self;
uint64_t soak_seed;
long soak_messages;
double soak_patience;
bool soak_stream, soak_pipe;
volatile long *soak_pushed;

static struct fault faults[FAULTS_MAX];
static size_t nfaults, wanted_faults;
unsigned fault_slot;
static uint64_t rng;
static double last_fault;	/* its end */
static double caught_up_at;	/* the first time after it when nothing waited in the list */
static double drained_at;
static bool died;		/* a process ended by itself */
static unsigned tests, failed;
static volatile sig_atomic_t interrupted;

static bool
report(bool ok, const char *what)
{
	printf("%s %u - %s\n", ok ? "ok" : "not ok", ++tests, what);
	fflush(stdout);
	failed += !ok;
	return ok;
}

static long
number_of(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text != NULL && *text != '\0' ? atol(text) : otherwise;
}

static void
on_signal(int signo)
{
	(void)signo;
	interrupted = 1;
}

static void
step(void)
{
	if (interrupted) {
		world_stop();
		_exit(99);
	}
	if (!world_reap())
		died = true;
	log_poll();
	usleep(5000);
}

/* -- faults ----------------------------------------------------------------- */

static bool
is_wanted(const struct fault_kind *k)
{
	const char *kinds = getenv("KINDS"), *at;
	size_t len = strlen(k->name);

	if (soak_pipe && k->effect == EFFECT_FORGETS)
		return false;
	if (kinds == NULL || *kinds == '\0')
		return true;
	for (at = kinds; (at = strstr(at, k->name)) != NULL; at += len) {
		if ((at == kinds || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
			return true;
	}
	return false;
}

static const struct fault_kind *
draw_kind(void)
{
	const struct fault_kind *k;
	unsigned sum = 0, at;

	for (k = fault_kinds; k->name != NULL; k++)
		sum += is_wanted(k) ? k->weight : 0;
	at = sum > 0 ? draw(&rng, sum) : 0;
	for (k = fault_kinds; k->name != NULL; k++) {
		if (!is_wanted(k))
			continue;
		if (at < k->weight)
			return k;
		at -= k->weight;
	}
	return NULL;
}

static bool
is_under_way(const struct fault_kind *k, unsigned slot)
{
	for (size_t i = 0; i < nfaults; i++) {
		const struct fault *f = &faults[i];

		if (f->to == 0 && f->kind->end == k->end && (!k->of_daemon || f->slot == slot ||
		    k->effect == EFFECT_CHOOSES))
			return true;
	}
	return false;
}

bool
soak_redis_is_whole(void)
{
	for (size_t i = 0; i < nfaults; i++) {
		if (faults[i].to == 0 && !faults[i].kind->of_daemon)
			return false;
	}
	return !redis_away;
}

static bool
fault_begin(void)
{
	const struct fault_kind *k = draw_kind();
	struct fault *f = &faults[nfaults];
	unsigned slot = draw(&rng, DAEMONS);
	double lasts;

	if (k == NULL)
		return false;
	lasts = k->least + (k->most - k->least) * draw(&rng, 1000000) / 1e6;
	if ((k->asks_redis && (redis_away || redis_behind)) ||
	    (k->end != NULL && is_under_way(k, slot)))
		return false;
	fault_slot = slot;
	*f = (struct fault){ .kind = k, .from = now() };
	if (!k->begin(slot, lasts, f->detail, sizeof(f->detail)))
		return false;
	f->slot = slot = fault_slot;
	f->pid = world_daemon(slot);
	f->due = f->from + lasts;
	f->to = k->end == NULL ? now() : 0;
	nfaults++;
	if (getenv("SOAK_VERBOSE") != NULL)
		printf("# %.3f %s %s daemon %u, %.2f s\n", f->from, k->name, f->detail, slot,
		    lasts);
	return true;
}

/* Ends the faults that are due; true if none lasts. */
static bool
faults_end(void)
{
	bool none = true;

	for (size_t i = 0; i < nfaults; i++) {
		struct fault *f = &faults[i];

		if (f->to != 0)
			continue;
		if (now() >= f->due && f->kind->end(f->slot, f->detail))
			f->to = now();
		else
			none = false;
	}
	return none;
}

/* Whether another fault may begin: faults must not be ahead of the messages. */
static bool
is_time_for_one(void)
{
	double pushed = (double)*soak_pushed / (double)soak_messages;

	return (double)nfaults / (double)wanted_faults <= pushed + 0.005;
}

static void
let_it_break(void)
{
	double next = now() + 0.5, pace = (double)number_of("PACE", 1);

	while (nfaults < wanted_faults && nfaults < FAULTS_MAX) {
		faults_end();
		step();
		if (now() >= next && is_time_for_one() && fault_begin())
			next = now() + pace * (0.2 + draw(&rng, 1000000) / 1e6);
	}
	while (!faults_end())
		step();
	last_fault = now();
}

/* -- the end ---------------------------------------------------------------- */

static bool
await_drain(double patience)
{
	double start = now(), since = start;
	int status;

	while (now() - start < patience) {
		if (caught_up_at == 0 && world_adopted_ended(&status) && check_caught_up())
			caught_up_at = now();
		if (!world_adopted_ended(&status) || world_is_busy() || !check_drained())
			since = now();
		else if (now() - since > 0.3) {
			drained_at = since;
			return true;
		}
		step();
		usleep(50000);
	}
	printf("# in Redis after %.0f s:", patience);
	for (unsigned i = 0; i < 5; i++) {
		static const char *const commands[] = {
			"LLEN q", "ZCARD qBACKUP", "ZCARD qRETRY", "HLEN qCONTEXT", "HLEN qDELIVERY"
		};
		redisReply *r = ask(commands[i]);

		printf(" %s %lld", commands[i], r != NULL ? r->integer : -1);
	}
	printf("\n");
	return false;
}

/* Whether no daemon's log has a report of a sanitizer or a failed assertion. */
static bool
logs_are_clean(void)
{
	static const char *const bad[] = {
		"Sanitizer", "runtime error:", "ssertion", "LeakSanitizer"
	};
	static char line[65536];
	char path[256];
	bool clean = true;
	FILE *f;

	for (unsigned i = 0; i < DAEMONS; i++) {
		snprintf(path, sizeof(path), "%s/rqd%u.log", soak_dir, i);
		if ((f = fopen(path, "r")) == NULL)
			continue;
		while (fgets(line, sizeof(line), f) != NULL) {
			for (unsigned k = 0; k < 4; k++) {
				if (strstr(line, bad[k]) != NULL) {
					clean = false;
					printf("# rqd%u: %s", i, line);
				}
			}
		}
		fclose(f);
	}
	return clean;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static void
remove_dir(void)
{
	if (getenv("RQD_TEST_KEEP") != NULL) {
		printf("# kept: %s\n", soak_dir);
		return;
	}
	nftw(soak_dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static pid_t
start_producer(void)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	if ((pid = fork()) != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(99);
	_exit(work_produce(soak_messages,
	    0.7 * (double)wanted_faults * (double)number_of("PACE", 1)));
}

/*
 * Waits until each daemon has written its first heartbeat, which takes a while on a
 * busy machine.
 */
static bool
await_daemons(void)
{
	double limit = now() + 20;
	bool up = false;

	while (!up && now() < limit) {
		redisReply *r = ask("ZCARD rqd:daemons");

		up = r != NULL && r->type == REDIS_REPLY_INTEGER && r->integer >= DAEMONS;
		step();
	}
	return up;
}

static void
scenario(const char *rqd, const char *proxy, const char *shim)
{
	unsigned before[DAEMONS], after[DAEMONS];
	double start = now(), quiet, taken;
	bool leaks = false;

	world_start(rqd, proxy, shim);
	if (!await_daemons()) {
		report(false, "every daemon writes its heartbeat");
		return;
	}
	report(true, "every daemon writes its heartbeat");
	for (quiet = now() + 1; now() < quiet;)
		step();
	for (unsigned i = 0; i < DAEMONS; i++)
		before[i] = world_descriptors(i);
	world_adopt(start_producer());
	let_it_break();
	report(await_drain(60 + 30 * soak_patience), "the queue is drained after the last fault");
	for (quiet = now() + 2; now() < quiet;)
		step();
	for (unsigned i = 0; i < DAEMONS; i++) {
		after[i] = world_descriptors(i);
		/* The first large message makes one more connection. */
		if (after[i] > before[i] + 1)
			leaks = true;
	}
	report(!leaks, "no descriptor is left over");
	if (leaks)
		printf("# before: %u %u; after: %u %u\n", before[0], before[1], after[0],
		    after[1]);
	report(world_end_daemons(), "the daemons end with status 0, and leave no process");
	report(!died, "no daemon ended by itself");
	report(check_all(work_last(), faults, nfaults) == 0,
	    "nothing is lost, and every duplicate has a fault that explains it");
	taken = check_taken_up(caught_up_at);
	printf("# after the last fault: caught up in %.1f s, then all taken up within %.1f s, "
	    "drained in %.1f s\n", caught_up_at - last_fault, taken, drained_at - last_fault);
	report(caught_up_at > 0 && taken <= soak_patience * LEASE_AND_SLACK,
	    "once they have caught up, no message waits for longer than a lease");
	check_done();
	log_done();
	report(logs_are_clean(), "no sign of a bug in the logs");
	printf("# %.1f s\n", now() - start);
}

/*
 * Copies this program, which is the handler, because the handler's user may not be able
 * to enter the build folder.
 */
static int
copy_program(const char *to)
{
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	ssize_t n = -1;

	while (in != -1 && out != -1 && (n = sendfile(out, in, NULL, 1 << 20)) > 0)
		continue;
	if (in != -1)
		close(in);
	if (out != -1)
		close(out);
	return n == 0 ? 0 : -1;
}

int
main(int argc, char **argv)
{
	char dir[] = "/tmp/rqd-soak.XXXXXX", self[256];

	if (argc == 4 && strcmp(argv[1], "--batch") == 0)
		return work_handle_batch(argv[2], strtoull(argv[3], NULL, 10));
	if (argc == 4 && argv[1][0] == '-')
		return work_handle(argv[2], strtoull(argv[3], NULL, 10),
		    strcmp(argv[1], "--hand-over") == 0);
	if (argc != 4)
		return 64;
	soak_seed = (uint64_t)number_of("SEED", 0);
	if (soak_seed == 0)
		soak_seed = mix((uint64_t)(now() * 1e9) ^ (uint64_t)getpid()) % 1000000000 + 1;
	rng = soak_seed;
	soak_patience = (double)number_of("PATIENCE", 1);
	soak_stream = getenv("STREAM") != NULL;
	soak_pipe = getenv("PIPE") != NULL;
	wanted_faults = (size_t)number_of("FAULTS", 20);
	soak_messages = number_of("MESSAGES", 300);
	if ((soak_dir = mkdtemp(dir)) == NULL || chmod(soak_dir, 0755) == -1)
		return 99;
	/* Handlers write there, too.  rqd trusts no configuration beside what others may write. */
	snprintf(self, sizeof(self), "%s/out", soak_dir);
	if (mkdir(self, 0777) == -1 || chmod(self, 0777) == -1)
		return 99;
	snprintf(self, sizeof(self), "%s/soak", soak_dir);
	soak_self = self;
	if (copy_program(self) == -1)
		return 99;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	signal(SIGHUP, on_signal);
	printf("# SEED=%llu FAULTS=%zu MESSAGES=%ld KINDS='%s'%s%s PACE=%ld\n",
	    (unsigned long long)soak_seed, wanted_faults, soak_messages,
	    getenv("KINDS") != NULL ? getenv("KINDS") : "", soak_stream ? " STREAM=1" : "",
	    soak_pipe ? " PIPE=1" : "", number_of("PACE", 1));
	soak_pushed = mmap(NULL, sizeof(*soak_pushed), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (soak_pushed == MAP_FAILED)
		return 99;
	scenario(argv[1], argv[2], argv[3]);
	world_stop();
	remove_dir();
	printf("1..%u\n", tests);
	return failed > 0;
}
