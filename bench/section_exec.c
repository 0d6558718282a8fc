/*
 * A process per message: rqd against the bare vfork loop of limit_spawn.c, with the
 * same commands, eight at once.  "as root": root starts rqd, whose main process then
 * is another user.
 */
#include "bench.h"

#include <stdio.h>
#include <string.h>

struct kind {
	const char	*name;
	const char	*file;		/* the command, absolute or one of the helpers */
	int		 count;		/* messages a round */
	bool		 launched;
	const char	*options;	/* of the queue; NULL: none */
	struct series	 limit_rate, limit_cpu, rate, cpu, redis;
};

static struct kind kinds[] = {
	{ .name = "/bin/true", .file = "/bin/true", .count = 2000 },
	{ .name = "the same, as root", .file = "/bin/true", .count = 2000, .launched = true },
	{ .name = "true, no verdicts", .file = "/bin/true", .count = 2000,
	    .options = "verdicts = false" },
	{ .name = "C, reads all", .file = "hello", .count = 2000 },
	{ .name = "the same, as root", .file = "hello", .count = 2000, .launched = true },
	{ .name = "sh, reads a line", .file = "hello.sh", .count = 1500 },
	{ .name = "python3, reads all", .file = "hello.py", .count = 60 },
};
#define KINDS	(sizeof(kinds) / sizeof(kinds[0]))

static const char *
path_of(const struct kind *k)
{
	return k->file[0] == '/' ? k->file : helper(k->file);
}

static void
run_limit(struct kind *k)
{
	char count[16], program[512], command[512];
	const char *argv[] = { program, count, "8", command, NULL };
	struct cost c;

	(void)snprintf(program, sizeof(program), "%s", helper("limit_spawn"));
	(void)snprintf(command, sizeof(command), "%s", path_of(k));
	(void)snprintf(count, sizeof(count), "%d", k->count);
	c = run_command(argv);
	series_add(&k->limit_rate, k->count / c.wall);
	series_add(&k->limit_cpu, c.cpu * 1e6 / k->count);
}

static void
run_rqd(struct kind *k)
{
	struct cost start, c;
	double before;

	flush();
	world_launches = k->launched;
	configure("queue \"q\" { command = {\"%s\"} concurrency = 8 %s }\n", path_of(k),
	    k->options != NULL ? k->options : "");
	start = rqd_start_cost();
	fill("q", k->count);
	before = cpu_of(world_redis_pid());
	c = rqd_drain(start);
	series_add(&k->redis, (cpu_of(world_redis_pid()) - before) * 1e6 / k->count);
	series_add(&k->rate, k->count / c.wall);
	series_add(&k->cpu, c.cpu * 1e6 / k->count);
	world_launches = true;
}

static void
print(const struct kind *k)
{
	say("| %-18s | %6.0f | %6.0f | %5.2f | %6.0f | %6.0f | %5.2f | %5.0f |\n", k->name,
	    series_median(&k->limit_cpu), series_median(&k->cpu),
	    series_ratio(&k->cpu, &k->limit_cpu), series_median(&k->limit_rate),
	    series_median(&k->rate), series_ratio(&k->rate, &k->limit_rate),
	    series_median(&k->redis));
}

static void
run(void)
{
	size_t i;
	int r;

	for (r = 0; r < rounds; r++) {
		for (i = 0; i < KINDS; i++) {
			run_limit(&kinds[i]);
			run_rqd(&kinds[i]);
		}
	}
	say("CPU is in µs a message, of the program and its children; limit is the bare "
	    "loop.\n\n");
	say("| command            | limit  | rqd    | ratio | limit/s| rqd/s  | ratio | Redis |\n");
	say("| ------------------ | -----: | -----: | ----: | -----: | -----: | ----: | ----: |\n");
	for (i = 0; i < KINDS; i++)
		print(&kinds[i]);
}

const struct section section_exec = { "exec", "a process per message, 8 at once", run };
