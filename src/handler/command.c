/*
 * A queue's command.
 *
 * Look-ups that may fail are made when the handler is opened, and again at
 * each start until they succeed, so that a queue whose user or env_file is
 * missing resumes by itself.  An env_file that has changed is read again.
 */
#include "handler/command.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "handler/environment.h"
#include "handler/identity.h"

#define LIMITS	6

struct command {
	const struct handler_env  *env;
	const struct queue_config *cfg;
	struct identity		   identity;	/* valid while known */
	bool			   known;
	struct environment	  *environment;	/* NULL: to be made; needs the identity */
	struct spawn_limit	   limits[LIMITS];
	size_t			   nlimits;
};

/* At RLIMIT_CPU's hard limit comes SIGKILL; one second before it, SIGXCPU tells why. */
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

static int
find_identity(struct command *c, const char **step)
{
	if (c->known)
		return 0;
	if (identity_find(c->cfg->user, c->cfg->group, &c->identity, step) == -1)
		return -1;
	c->known = true;
	return 0;
}

static int
make_environment(struct command *c, const char **step)
{
	if (c->environment != NULL && !environment_is_stale(c->environment))
		return 0;
	environment_free(c->environment);
	c->environment = NULL;
	*step = "env_file";
	return environment_new(c->env, c->cfg, &c->identity, &c->environment);
}

static int
prepare(struct command *c, const char **step)
{
	if (find_identity(c, step) == -1)
		return -1;
	return make_environment(c, step);
}

struct command *
command_new(const struct handler_env *env, const struct queue_config *cfg)
{
	struct command *c = xcalloc(1, sizeof(*c));
	const char *step;

	c->env = env;
	c->cfg = cfg;
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
	environment_free(c->environment);
	identity_done(&c->identity);
	free(c);
}

pid_t
command_spawn(struct command *c, const struct message *msg, const int fd[3],
    volatile pid_t *slot, bool wait, const char **step)
{
	struct spawn s;

	if (prepare(c, step) == -1)
		return -1;
	s = (struct spawn){
		.argv = c->cfg->command,
		.envp = environment_for(c->environment, msg),
		.fd = { fd[0], fd[1], fd[2] },
		.directory = c->cfg->directory,
		.uid = c->identity.uid,
		.gid = c->identity.gid,
		.groups = c->identity.groups,
		.ngroups = c->identity.ngroups,
		.umask = c->cfg->umask,
		.nice = c->cfg->nice,
		.limits = c->limits,
		.nlimits = c->nlimits,
		.slot = slot
	};
	return wait ? spawn_run(&s, step) : spawn_start(&s, step);
}
