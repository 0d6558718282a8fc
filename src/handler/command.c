/*
 * A queue's command; see command.h.
 *
 * Look-ups that may fail are made when the handler is opened, and again at each start
 * until they succeed.  So a queue whose user or env_file was missing resumes by itself.
 * An env_file that has changed is read again.
 *
 * If there is a launcher, it does all that; the daemon only names the queue and its
 * generation.
 */
#include "handler/command.h"

#include <sys/stat.h>
#include <stdlib.h>
#include <unistd.h>

#include "handler/environment.h"
#include "handler/identity.h"

#define LIMITS	6

struct command {
	const struct handler_env  *env;
	const struct queue_config *cfg;
	bool			   guarded;	/* this is a launcher */
	unsigned		   generation;	/* for the launcher; 0: this process starts it */
	unsigned		   number;	/* of the queue in it */
	struct identity		   identity;	/* valid while known */
	bool			   known;
	struct environment	  *environment;	/* NULL: to be made; needs the identity */
	struct spawn_limit	   limits[LIMITS];
	size_t			   nlimits;
};

/*
 * At the hard limit of RLIMIT_CPU the kernel sends SIGKILL; SIGXCPU, one second before
 * it, tells why.
 */
static void
add_limit(struct command *c, int resource, uint64_t value)
{
	struct spawn_limit *l = &c->limits[c->nlimits];

	if (value == CONFIG_LIMIT_INHERIT)
		return;
	l->resource = resource;
	l->value.rlim_cur = value;
	l->value.rlim_max = value + (resource == RLIMIT_CPU ? 1 : 0);
	c->nlimits++;
}

/* "user" or "group" */
static int
find_identity(struct command *c, enum spawn_step *step)
{
	const char *what;

	if (c->known)
		return 0;
	if (identity_find(c->cfg->user, c->cfg->group, &c->identity, &what) == 0) {
		c->known = true;
		return 0;
	}
	*step = what[0] == 'u' ? STEP_USER : STEP_GROUP;
	return -1;
}

static int
make_environment(struct command *c, enum spawn_step *step)
{
	if (c->environment != NULL && !environment_is_stale(c->environment))
		return 0;
	environment_free(c->environment);
	c->environment = NULL;
	*step = STEP_ENV_FILE;
	return environment_new(c->env, c->cfg, &c->identity, c->guarded, &c->environment);
}

static int
prepare(struct command *c, enum spawn_step *step)
{
	if (find_identity(c, step) == -1)
		return -1;
	return make_environment(c, step);
}

static unsigned
number_of(const struct config *config, const struct queue_config *cfg)
{
	unsigned i = 0;

	while (config->queues[i] != cfg)
		i++;
	return i;
}

struct command *
command_new(const struct handler_env *env, const struct config *config,
    const struct queue_config *cfg)
{
	struct command *c = NEW(struct command, .env = env, .cfg = cfg);
	enum spawn_step step;

	if (env->launcher != NULL) {
		c->generation = config->generation;
		c->number = number_of(config, cfg);
		launcher_hold(env->launcher, c->generation);
		return c;
	}
	c->guarded = env->loop == NULL;
	add_limit(c, RLIMIT_NOFILE, cfg->limit_nofile);
	add_limit(c, RLIMIT_AS, cfg->limit_as);
	add_limit(c, RLIMIT_CPU, cfg->limit_cpu);
	add_limit(c, RLIMIT_FSIZE, cfg->limit_fsize);
	add_limit(c, RLIMIT_NPROC, cfg->limit_nproc);
	add_limit(c, RLIMIT_CORE, cfg->limit_core);
	(void)prepare(c, &step);
	spawn_look_at_signals();
	return c;
}

void
command_free(struct command *c)
{
	if (c == NULL)
		return;
	if (c->generation != 0)
		launcher_drop(c->env->launcher, c->generation);
	environment_free(c->environment);
	identity_done(&c->identity);
	free(c);
}

pid_t
command_spawn(struct command *c, char *words, size_t len, const int fd[SPAWN_FDS],
    volatile pid_t *slot, const struct spawn_proxy *proxy, enum spawn_step *step)
{
	struct spawn s;

	if (prepare(c, step) == -1)
		return -1;
	s = (struct spawn){
		.argv = c->cfg->command,
		.envp = environment_with(c->environment, words, len),
		.fd = { fd[0], fd[1], fd[2], fd[3] },
		.directory = c->cfg->directory,
		.uid = c->identity.uid,
		.gid = c->identity.gid,
		.groups = c->identity.groups,
		.ngroups = c->identity.ngroups,
		.umask = c->cfg->umask,
		.nice = c->cfg->nice,
		.limits = c->limits,
		.nlimits = c->nlimits,
		.slot = slot,
		.proxy = proxy
	};
	s.env_file = environment_left_file(c->environment, &s.env_first, &s.env_weak);
	return spawn_start(&s, step);
}

/*
 * Lets the handler, which runs as another user, open /dev/stderr: the daemon owns the
 * pipes.  Other processes cannot reach them.
 */
static void
allow_opening(const int fd[SPAWN_FDS])
{
	for (int i = 0; i < SPAWN_FDS; i++) {
		if (fd[i] != -1)
			(void)fchmod(fd[i], 0666);
	}
}

pid_t
command_start(struct command *c, const struct message *msg, unsigned batch, const int fd[SPAWN_FDS],
    volatile pid_t *slot, struct start *start, enum spawn_step *step)
{
	struct buf words = BUF_INIT;
	pid_t pid;

	environment_words(&words, msg, batch, c->cfg);
	start->launcher = NULL;
	if (c->generation == 0) {
		pid = command_spawn(c, words.data, words.len, fd, slot, NULL, step);
	} else {
		*step = STEP_LAUNCHER;
		allow_opening(fd);
		pid = launcher_start(c->env->launcher, start, c->generation, c->number, &words, fd);
	}
	buf_done(&words);
	return pid;
}

int
command_exited(const struct start *start, pid_t pid, const char **step)
{
	enum spawn_step n = STEP_NONE;
	int error = start->launcher != NULL ? launcher_exited(start, &n) :
	    spawn_exited(pid, &n);

	*step = spawn_step_name(n);
	return error;
}
