/*
 * The world of the benchmark: a directory, a Redis of its own on a unix socket without
 * persistence, and a configuration of rqd.
 *
 * It measures `rqd --until-empty` on a queue that was filled before, from its start to
 * its end, less the same on an empty queue.
 */
#include "bench.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char		 dir[] = "/tmp/rqd-bench.XXXXXX";
static redisContext	*ctx;
static pid_t		 redis_pid;

static const char *
joined(const char *a, const char *b)
{
	static char text[16][512];
	static unsigned next;
	char *s = text[next++ % 16];

	(void)snprintf(s, sizeof(text[0]), "%s/%s", a, b);
	return s;
}

const char *
world_file(const char *name)
{
	return joined(dir, name);
}

const char *
helper(const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "bench/%s", name);
	return joined(build_dir, path);
}

redisContext *
world_redis(void)
{
	redisContext *c = redisConnectUnix(world_file("redis.sock"));

	if (c == NULL)
		die("out of memory");
	return c;
}

redisContext *
world_use(redisContext *other)
{
	redisContext *before = ctx;

	ctx = other;
	return before;
}

pid_t
world_redis_pid(void)
{
	return redis_pid;
}

static void
start_redis(int port)
{
	char listen[16];
	const char *argv[] = { "/usr/bin/env", "redis-server", "--port", listen,
	    "--unixsocket", world_file("redis.sock"), "--unixsocketperm", "777", "--save", "",
	    "--dir", dir, NULL };
	double until = now() + 10;

	(void)snprintf(listen, sizeof(listen), "%d", port);
	redis_pid = start_command(argv, world_file("redis.log"));
	for (;;) {
		ctx = world_redis();
		if (ctx->err == 0)
			break;
		redisFree(ctx);
		if (now() > until)
			die("redis-server does not start; see %s", world_file("redis.log"));
		nap(0.02);
	}
}

static void
stop_redis(void)
{
	(void)kill(redis_pid, SIGTERM);
	(void)waitpid(redis_pid, NULL, 0);
}

void
world_redis_kill(void)
{
	redisFree(ctx);
	(void)kill(redis_pid, SIGKILL);
	(void)waitpid(redis_pid, NULL, 0);
}

void
world_redis_again(int port)
{
	start_redis(port);
}

/* After a failure the directory stays, so that you can look into it. */
void
world_start(void)
{
	/* The main process of a privileged rqd is an unprivileged user. */
	if (mkdtemp(dir) == NULL || chmod(dir, 01777) == -1)
		die("cannot make %s", dir);
	start_redis(0);
	(void)atexit(stop_redis);
}

void
world_stop(void)
{
	const char *argv[] = { "/bin/rm", "-r", dir, NULL };

	redisFree(ctx);
	(void)run_command(argv);
}

/* -- Redis -------------------------------------------------------------------------- */

static redisReply *
command(const char *format, va_list ap)
{
	redisReply *r = redisvCommand(ctx, format, ap);

	if (r == NULL)
		die("Redis: %s", ctx->errstr);
	if (r->type == REDIS_REPLY_ERROR)
		die("Redis: %s", r->str);
	return r;
}

redisReply *
redis(const char *format, ...)
{
	redisReply *r;
	va_list ap;

	va_start(ap, format);
	r = command(format, ap);
	va_end(ap);
	return r;
}

long long
redis_number(const char *format, ...)
{
	redisReply *r;
	long long n;
	va_list ap;

	va_start(ap, format);
	r = command(format, ap);
	va_end(ap);
	n = r->integer;
	freeReplyObject(r);
	return n;
}

void
flush(void)
{
	freeReplyObject(redis("FLUSHALL"));
	freeReplyObject(redis("CONFIG RESETSTAT"));
}

void
fill_like(const char *queue, long count, long size, const char *head, const char *end)
{
	static const char script[] =
	    "local t = {} "
	    "for i = 1, tonumber(ARGV[1]) do "
	    "  local s = string.format(ARGV[4], ARGV[2] + i) "
	    "  t[#t + 1] = s .. string.rep('x', ARGV[3] - #s - #ARGV[5]) .. ARGV[5] "
	    "  if #t == 1000 or i == tonumber(ARGV[1]) then "
	    "    redis.call('LPUSH', KEYS[1], unpack(t)) t = {} "
	    "  end "
	    "end";
	long from, n;

	for (from = 0; from < count; from += n) {
		n = count - from < 20000 ? count - from : 20000;
		freeReplyObject(redis("EVAL %s 1 %s %ld %ld %ld %s %s", script, queue, n,
		    from, size, head, end));
	}
}

/* JSON that begins with an id of 25 characters. */
void
fill_sized(const char *queue, long count, long size)
{
	fill_like(queue, count, size, "{\"id\":\"m%024d\",\"pad\":\"", "\"}");
}

void
fill(const char *queue, long count)
{
	fill_sized(queue, count, MESSAGE_SIZE);
}

static double
usec_of(const char *stats, const char *name, size_t len)
{
	char line[64];
	const char *p;

	(void)snprintf(line, sizeof(line), "cmdstat_%.*s:", (int)len, name);
	p = strstr(stats, line);
	if (p == NULL || (p = strstr(p, "usec=")) == NULL)
		return 0;
	return atof(p + 5);
}

double
command_usec(const char *names)
{
	redisReply *r = redis("INFO commandstats");
	double usec = 0;
	size_t len;

	for (; *names != '\0'; names += len + (names[len] != '\0')) {
		len = strcspn(names, " ");
		usec += usec_of(r->str, names, len);
	}
	freeReplyObject(r);
	return usec;
}

double
script_usec(void)
{
	return command_usec("evalsha");
}

double
redis_info(const char *section, const char *name)
{
	redisReply *r = redis("INFO %s", section);
	const char *p = strstr(r->str, name);
	double n = p != NULL ? atof(p + strlen(name)) : 0;

	freeReplyObject(r);
	return n;
}

/* Waits until Redis is idle: the kernel's figure is behind while a thread runs. */
double
redis_cpu(void)
{
	nap(0.003);
	return cpu_of(redis_pid);
}

bool world_launches = true;
const char *world_server, *world_redis_section;

/* -- rqd ------------------------------------------------------------------------------ */

void
configure(const char *queues, ...)
{
	FILE *f = fopen(world_file("rqd.conf"), "w");
	va_list ap;

	if (f == NULL)
		die("cannot write %s", world_file("rqd.conf"));
	if (world_redis_section != NULL)
		fprintf(f, "redis { %s }\n", world_redis_section);
	else
		fprintf(f, "redis { server = \"%s%s\" }\n", world_server != NULL ? "" : "unix:",
		    world_server != NULL ? world_server : world_file("redis.sock"));
	if (geteuid() == 0 && world_launches)
		fprintf(f, "defaults { user = \"root\" }\n");
	va_start(ap, queues);
	vfprintf(f, queues, ap);
	va_end(ap);
	if (fclose(f) != 0)
		die("cannot write %s", world_file("rqd.conf"));
}

static pid_t
start_rqd(const char *option)
{
	const char *argv[] = { "/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
	    "--clear-groups", joined(build_dir, "rqd"), "-c", world_file("rqd.conf"), option,
	    NULL };
	bool steps_down = geteuid() == 0 && !world_launches;

	return start_command(steps_down ? argv : argv + 4, world_file("rqd.out"));
}

/* Starts rqd, and waits for its first heartbeat. */
pid_t
rqd_start(void)
{
	long long before = redis_number("ZCARD rqd:daemons");
	double until = now() + 20;
	pid_t pid = start_rqd(NULL);

	while (redis_number("ZCARD rqd:daemons") == before) {
		if (now() > until)
			die("rqd does not start; see %s", world_file("rqd.out"));
		nap(0.01);
	}
	return pid;
}

void
rqd_stop(pid_t pid)
{
	(void)kill(pid, SIGTERM);
	(void)wait_command(pid, now());
}

static struct cost
run_rqd(void)
{
	double started = now();
	struct cost c = wait_command(start_rqd("--until-empty"), started);

	return c;
}

struct cost
rqd_start_cost(void)
{
	return run_rqd();
}

struct cost
rqd_drain(struct cost start)
{
	struct cost c = run_rqd();

	return (struct cost){ c.wall - start.wall, c.cpu - start.cpu };
}

void
rqd_measure(struct drained *d, long count)
{
	struct cost start, c;

	flush();
	start = rqd_start_cost();
	fill("q", count);
	freeReplyObject(redis("CONFIG RESETSTAT"));
	c = rqd_drain(start);
	series_add(&d->rate, (double)count / c.wall);
	series_add(&d->cpu, c.cpu * 1e6 / (double)count);
	series_add(&d->redis, script_usec() / (double)count);
}
