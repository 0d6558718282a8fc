/*
 * Shared by the sections of the benchmark: a private world (directory, Redis,
 * configuration), runs and their cost, medians, and tables.
 */
#ifndef RQD_BENCH_BENCH_H
#define RQD_BENCH_BENCH_H

#include <stddef.h>
#include <stdbool.h>
#include <sys/types.h>

#include <hiredis/hiredis.h>

#define ROUNDS_MAX	99
#define MESSAGE_SIZE	200
#define CROWD_MAX	16

/* The time that a process and its children used, in seconds. */
struct cost {
	double	wall;
	double	cpu;
};

/* One value a round. */
struct series {
	double	v[ROUNDS_MAX];
	size_t	n;
};

struct section {
	const char	*name;
	const char	*what;
	void		(*run)(void);
};

extern const struct section section_exec, section_batch, section_persistent, section_redis,
    section_backlog, section_fleet, section_latency, section_herd, section_many,
    section_cluster, section_idle, section_group;

/* From the command line. */
extern int		 rounds;
extern const char	*build_dir;	/* absolute: rqd, and bench/ with the helpers */

/* -- bench.c ---------------------------------------------------------------------- */

void	die(const char *, ...) __attribute__((__format__(__printf__, 1, 2), __noreturn__));
/* Prints, and also writes to the report of -o. */
void	say(const char *, ...) __attribute__((__format__(__printf__, 1, 2)));
double	now(void);			/* seconds, monotonic */
void	nap(double);

/* -- measure.c ---------------------------------------------------------------------- */

void	series_add(struct series *, double);
double	series_median(const struct series *);
double	series_quantile(const struct series *, double);	/* 0 to 1 */
/* The median of a[i] / b[i]: rounds are paired. */
double	series_ratio(const struct series *a, const struct series *b);
double	quantile(double *, size_t, double);	/* sorts */

pid_t		start_command(const char *const *argv, const char *output);
struct cost	wait_command(pid_t, double started);
struct cost	run_command(const char *const *argv);
double		cpu_of(pid_t);		/* of a live process, without its children */
long		switches_of(pid_t);	/* its context switches */
long		memory_of(pid_t, const char *field);	/* kB, from /proc/PID/status */

/* -- world.c ------------------------------------------------------------------------ */

/* Whether root starts rqd; false: an ordinary user does. */
extern bool	 world_launches;
void		 world_start(void);
void		 world_stop(void);
redisContext	*world_redis(void);
/*
 * Sets the server that redis(), fill() and rqd_start() talk to from now on; returns the
 * one before.
 */
redisContext	*world_use(redisContext *);
pid_t		 world_redis_pid(void);
/* kill -9; redis() may be called again after world_redis_again(), which starts an empty one. */
void		 world_redis_kill(void);
void		 world_redis_again(int port);	/* on 127.0.0.1, too; 0: only the unix socket */
const char	*world_file(const char *name);	/* in the directory; 16 at a time */
const char	*helper(const char *name);	/* a program of bench/; likewise */
redisReply	*redis(const char *, ...);	/* dies of errors */
long long	 redis_number(const char *, ...);
void		 flush(void);
void		 fill(const char *queue, long count);
void		 fill_sized(const char *queue, long count, long size);
/* Each message begins with head, a format of its number, and ends with end. */
void		 fill_like(const char *queue, long count, long size, const char *head,
		    const char *end);
/* Sum of usec in INFO commandstats of these, with a blank between two. */
double		 command_usec(const char *names);
/* The time of EVALSHA, which includes all commands that scripts call. */
double		 script_usec(void);
/* The CPU seconds of Redis' main thread; waits until it is idle. */
double		 redis_cpu(void);
double		 redis_info(const char *section, const char *name);	/* 0: no such field */

extern const char *world_server;	/* redis.server of daemons; NULL: the unix socket */
extern const char *world_redis_section;	/* all of redis { }; NULL: the server above */
/* Writes a configuration with these queues; the text goes into the file as it is. */
void		 configure(const char *queues, ...)
		    __attribute__((__format__(__printf__, 1, 2)));
pid_t		 rqd_start(void);	/* connected */
void		 rqd_stop(pid_t);
/* The cost of emptying a filled queue, without that of start and end. */
struct cost	 rqd_drain(struct cost start);
struct cost	 rqd_start_cost(void);	/* of a run that finds no message */

/*
 * Messages a second; and the CPU a message of rqd with its children, and of Redis'
 * scripts, in us.
 */
struct drained {
	struct series	rate, cpu, redis;
};
/* Fills the queue q, as configured, with so many messages, and adds the cost of its drain. */
void		 rqd_measure(struct drained *, long count);

/* -- wire.c -------------------------------------------------------------------------- */

enum wire { WIRE_UNIX, WIRE_TCP, WIRE_TLS };

/* A connection; CROWD_MAX by TLS at most.  NULL: this Redis has no TLS. */
redisContext	*wire_open(enum wire);
void		 wire_close(redisContext *);	/* NULL: nothing */
int		 wire_port(void);		/* of WIRE_TCP; 0: Redis has none */

/* -- cycle.c ------------------------------------------------------------------------ */

/*
 * Pops and acks so many messages by rqd's own scripts, in batches, with `depth` batches
 * on their way at a time (16 at most); returns the seconds.
 */
double	cycle(const char *queue, long count, int batch, int depth);
/*
 * Like cycle(), on this connection.  op: "ack"; "hand over", an ack that pushes the
 * message to BENCH_TARGET; "retry", after which the messages come again at once; or ""
 * for none.
 */
#define BENCH_TARGET	"handed"
double	cycle_on(redisContext *, const char *op, const char *queue, long count, int batch,
	    int depth);
/*
 * Pops so many messages, a multiple of 64, and settles them in calls of this many, one call
 * at a time, with nothing else on its way; returns the CPU of Redis for the settling, in
 * seconds.  64 messages are in flight at most.
 */
double	settle_cpu(redisContext *, const char *op, const char *queue, long count, int batch);
/* Like cycle_on(), by several connections, each with a batch on its way all the time. */
double	cycle_crowd(redisContext *const *, int n, const char *op, const char *queue, long count,
	    int batch);
const char	*load_script(redisContext *, const char *name);	/* its SHA1 */

#endif
