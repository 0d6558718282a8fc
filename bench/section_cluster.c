/*
 * The same queue on one server, on a Redis Cluster of three masters, and there with
 * shards: CPU a message of rqd's process and of Redis, by TCP.
 *
 * A round measures each side in turn.  The daemon starts while the queue is paused and
 * full, so that neither its start nor the pushes count.  The cost of an idle second is
 * subtracted, because the masters of a cluster talk to each other.
 */
#include "bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MASTERS		3
#define KEYS_MAX	64
#define SLOTS		16384
#define POLL		0.1
#define PATIENCE	120

static struct master {
	pid_t		 pid;
	int		 port;
	redisContext	*ctx;
} masters[MASTERS], one;

/* One side of a comparison. */
struct side {
	const char	*name;
	bool		 cluster;
	bool		 persistent;
	const char	*key;			/* or shards, as an option of the queue */
	long		 count;			/* messages a round */
	struct series	 rqd, redis, rate;	/* CPU in us a message; messages a second */
	struct side	*base;			/* to compare with; NULL: none */
};


static struct side sides[] = {
	{ .name = "persistent, one server", .persistent = true, .key = "key = \"{q}\"",
	    .count = 200000 },
	{ .name = "persistent, cluster", .cluster = true, .persistent = true,
	    .key = "key = \"{q}\"", .count = 200000, .base = &sides[0] },
	{ .name = "the same, 16 shards", .cluster = true, .persistent = true,
	    .key = "shards = 16", .count = 200000, .base = &sides[1] },
	{ .name = "a process each, one server", .key = "key = \"{q}\"", .count = 20000 },
	{ .name = "a process each, cluster", .cluster = true, .key = "key = \"{q}\"",
	    .count = 20000, .base = &sides[3] },
};
#define SIDES	(sizeof(sides) / sizeof(sides[0]))

/* -- servers ----------------------------------------------------------------------------- */

static redisReply *
ask(const struct master *m, const char *format, ...)
{
	redisReply *r;
	va_list ap;

	va_start(ap, format);
	r = redisvCommand(m->ctx, format, ap);
	va_end(ap);
	if (r == NULL)
		die("Redis on port %d: %s", m->port, m->ctx->errstr);
	return r;
}

static void
connect_master(struct master *m)
{
	double until = now() + 10;

	while ((m->ctx = redisConnect("127.0.0.1", m->port)) == NULL || m->ctx->err != 0) {
		if (now() > until)
			die("no Redis on port %d", m->port);
		redisFree(m->ctx);
		nap(0.02);
	}
}

static void
start_master(struct master *m, int i)
{
	char port[16], dir[512];
	const char *argv[] = { "/usr/bin/env", "redis-server", "--port", port, "--bind",
	    "127.0.0.1", "--save", "", "--dir", dir, "--cluster-enabled", "yes", NULL };

	m->port = 20000 + (int)(getpid() % 3000) * MASTERS + i;
	(void)snprintf(port, sizeof(port), "%d", m->port);
	(void)snprintf(dir, sizeof(dir), "%s%d", world_file("master"), i);
	if (mkdir(dir, 0700) == -1)
		die("cannot make %s", dir);
	m->pid = start_command(argv, world_file("masters.log"));
	connect_master(m);
	freeReplyObject(ask(m, "CLUSTER ADDSLOTSRANGE %d %d", SLOTS * i / MASTERS,
	    SLOTS * (i + 1) / MASTERS - 1));
}

static bool
is_whole(const struct master *m)
{
	redisReply *r = ask(m, "CLUSTER INFO");
	bool ok = strstr(r->str, "cluster_state:ok") != NULL &&
	    strstr(r->str, "cluster_known_nodes:3") != NULL;

	freeReplyObject(r);
	return ok;
}

static void
stop_masters(void)
{
	for (int i = 0; i < MASTERS; i++) {
		if (masters[i].pid == 0)
			continue;
		(void)kill(masters[i].pid, SIGKILL);
		(void)waitpid(masters[i].pid, NULL, 0);
		masters[i].pid = 0;
	}
}

static void
start_cluster(void)
{
	(void)atexit(stop_masters);
	for (int i = 0; i < MASTERS; i++)
		start_master(&masters[i], i);
	for (int i = 1; i < MASTERS; i++)
		freeReplyObject(ask(&masters[0], "CLUSTER MEET 127.0.0.1 %d", masters[i].port));
	for (int i = 0; i < MASTERS; i++) {
		for (double until = now() + 20; !is_whole(&masters[i]); nap(0.05)) {
			if (now() > until)
				die("the cluster is not made");
		}
	}
}

/* -- keys ------------------------------------------------------------------------------------ */

static char keys[KEYS_MAX][64];
static int nkeys;

static struct master *
master_of(const struct side *s, const char *key)
{
	for (int i = 0; s->cluster && i < MASTERS; i++) {
		redisReply *r = ask(&masters[i], "EXISTS %s", key);
		bool ok = r->type == REDIS_REPLY_INTEGER;

		freeReplyObject(r);
		if (ok)
			return &masters[i];
	}
	return &one;
}

/* Asks rqctl for the keys that producers push to. */
static void
find_keys(void)
{
	char command[1200];
	FILE *f;

	(void)snprintf(command, sizeof(command), "%s/rqctl -c %s queues --keys q", build_dir,
	    world_file("rqd.conf"));
	if ((f = popen(command, "r")) == NULL)
		die("cannot run rqctl");
	for (nkeys = 0; nkeys < KEYS_MAX && fscanf(f, "%63s", keys[nkeys]) == 1; nkeys++)
		continue;
	if (pclose(f) != 0 || nkeys == 0)
		die("no keys from: %s", command);
}

/* The number of messages that rqd has not handled yet. */
static long long
left(const struct side *s)
{
	static const char *const commands[] = { "LLEN %s", "ZCARD %sBACKUP" };
	long long sum = 0;

	for (int i = 0; i < nkeys; i++) {
		for (int k = 0; k < 2; k++) {
			redisReply *r = ask(master_of(s, keys[i]), commands[k], keys[i]);

			sum += r->integer;
			freeReplyObject(r);
		}
	}
	return sum;
}

static void
fill_and_pause(const struct side *s)
{
	for (int i = 0; i < nkeys; i++) {
		struct master *m = master_of(s, keys[i]);
		redisContext *before = world_use(m->ctx);

		fill(keys[i], s->count / nkeys);
		(void)world_use(before);
		freeReplyObject(ask(m, "SET %sPAUSED bench", keys[i]));
	}
}

static void
resume(const struct side *s)
{
	for (int i = 0; i < nkeys; i++)
		freeReplyObject(ask(master_of(s, keys[i]), "DEL %sPAUSED", keys[i]));
}

/* -- a round --------------------------------------------------------------------------- */

struct used {
	double at, rqd, redis;
};

static struct used
used(const struct side *s, pid_t rqd)
{
	struct used u = { now(), cpu_of(rqd), 0 };

	if (!s->cluster)
		u.redis = redis_cpu();
	for (int i = 0; s->cluster && i < MASTERS; i++)
		u.redis += cpu_of(masters[i].pid);
	return u;
}

static void
measure(struct side *s)
{
	long n = s->count / nkeys * nkeys;
	redisContext *before = world_use(master_of(s, "rqd:daemons")->ctx);
	pid_t rqd = rqd_start();
	struct used a, b, c;
	double idle;

	(void)world_use(before);
	nap(1);
	a = used(s, rqd);
	nap(1);
	b = used(s, rqd);
	resume(s);
	while (left(s) > 0) {
		if (now() > b.at + PATIENCE)
			die("%s: %lld messages are left", s->name, left(s));
		nap(POLL);
	}
	c = used(s, rqd);
	rqd_stop(rqd);
	idle = (c.at - b.at) / (b.at - a.at);
	series_add(&s->rate, (double)n / (c.at - b.at));
	series_add(&s->rqd, (c.rqd - b.rqd - idle * (b.rqd - a.rqd)) * 1e6 / (double)n);
	series_add(&s->redis,
	    (c.redis - b.redis - idle * (b.redis - a.redis)) * 1e6 / (double)n);
}

static void
run_side(struct side *s)
{
	char where[128];

	if (s->cluster)
		(void)snprintf(where, sizeof(where), "cluster = {\"127.0.0.1:%d\"}",
		    masters[0].port);
	else
		(void)snprintf(where, sizeof(where), "server = \"127.0.0.1:%d\"", one.port);
	world_redis_section = where;
	configure("queue \"q\" {\n\t%s\n\tcommand = {\"%s\"}\n\tmode = \"%s\"\n"
	    "\tconcurrency = 8\n}\n", s->key, s->persistent ? helper("answer") : "/bin/true",
	    s->persistent ? "persistent" : "exec");
	find_keys();
	for (int i = 0; s->cluster && i < MASTERS; i++)
		freeReplyObject(ask(&masters[i], "FLUSHALL"));
	if (!s->cluster)
		flush();
	fill_and_pause(s);
	measure(s);
	world_redis_section = NULL;
}

static void
print(const struct side *s)
{
	say("| %-26s | %5.1f | ", s->name, series_median(&s->rqd));
	if (s->base != NULL)
		say("%5.2f | %5.1f | %5.2f | %10.0f |\n", series_ratio(&s->rqd, &s->base->rqd),
		    series_median(&s->redis), series_ratio(&s->redis, &s->base->redis),
		    series_median(&s->rate));
	else
		say("      | %5.1f |       | %10.0f |\n", series_median(&s->redis),
		    series_median(&s->rate));
}

static void
run(void)
{
	world_launches = false;
	if ((one.port = wire_port()) == 0)
		die("Redis does not listen on a port");
	connect_master(&one);
	start_cluster();
	for (int r = 0; r < rounds; r++) {
		for (size_t i = 0; i < SIDES; i++)
			run_side(&sides[i]);
	}
	say("CPU in µs a message: of rqd's process without its handlers, and of Redis, all "
	    "masters\ntogether.  Each ratio is to one server; of shards, to the queue without "
	    "them.\n\n");
	say("| queue                      |   rqd | ratio | Redis | ratio | messages/s |\n");
	say("| -------------------------- | ----: | ----: | ----: | ----: | ---------: |\n");
	for (size_t i = 0; i < SIDES; i++)
		print(&sides[i]);
	world_launches = true;
	for (int i = 0; i < MASTERS; i++)
		redisFree(masters[i].ctx);
	redisFree(one.ctx);
	stop_masters();
}

const struct section section_cluster = { "cluster", "one server against a Redis Cluster", run };
