/*
 * A generation's commands are made when the first start asks for them.
 *
 * The launcher opens paths as root.  So it follows a path only if root alone may write
 * to all folders on the way (base/trust.h).
 */
#include "handler/generations.h"

#include <sys/socket.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/trust.h"
#include "handler/command.h"

struct generation {
	unsigned	   number;
	struct config	  *config;	/* reference */
	struct handler_env env;		/* for the variables about rqd */
	struct command	 **commands;	/* one for each queue; NULL: not made yet */
};

unsigned
generations_add(struct generations *all, struct config *config)
{
	struct generation *g = NEW(struct generation, .number = ++all->last, .config = config,
	    .env = handler_env_of(config));

	g->commands = xcalloc(config->nqueues + 1, sizeof(*g->commands));
	*APPEND(all->list, all->n) = g;
	return g->number;
}

static void
generation_free(struct generation *g)
{
	for (size_t i = 0; i < g->config->nqueues; i++)
		command_free(g->commands[i]);
	free(g->commands);
	config_unref(g->config);
	free(g);
}

/* The index of a generation; all->n: none. */
static size_t
find(const struct generations *all, unsigned number)
{
	size_t i = 0;

	while (i < all->n && all->list[i]->number != number)
		i++;
	return i;
}

void
generations_retire(struct generations *all, unsigned number)
{
	size_t i = find(all, number);

	if (i == all->n)
		return;
	generation_free(all->list[i]);
	all->list[i] = all->list[--all->n];
}

const struct config *
generations_config(const struct generations *all, unsigned number)
{
	size_t i = find(all, number);

	return i < all->n ? all->list[i]->config : NULL;
}

struct command *
generations_command(const struct generations *all, unsigned number, unsigned queue)
{
	size_t i = find(all, number);
	struct generation *g;

	if (i == all->n || queue >= all->list[i]->config->nqueues)
		return NULL;
	g = all->list[i];
	if (g->commands[queue] == NULL)
		g->commands[queue] = command_new(&g->env, g->config, g->config->queues[queue]);
	return g->commands[queue];
}

/* -- files ------------------------------------------------------------------------- */

static bool
is_named(const struct config *c, const char *path)
{
	const char *const names[] = { c->redis.password_file, c->redis.tls_ca,
	    c->redis.tls_cert, c->redis.tls_key, c->redis.sentinel_password_file };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(names[i], path) == 0)
			return true;
	}
	return false;
}

/* Whether it is a file of systemd's LoadCredential=. */
static bool
is_credential(const char *path)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	size_t n = dir != NULL ? strlen(dir) : 0;

	return n > 0 && strncmp(path, dir, n) == 0 && strcmp(path + n, "/redis-password") == 0;
}

static bool
is_server(const struct config *c, const char *path)
{
	char *const *s;

	for (s = c->redis.servers; s != NULL && *s != NULL; s++) {
		if (strncmp(*s, "unix:", 5) == 0 && strcmp(*s + 5, path) == 0)
			return true;
	}
	return false;
}

int
generations_open(const struct generations *all, const char *path)
{
	bool credential = is_credential(path), known = credential;

	for (size_t i = 0; i < all->n && !known; i++) {
		/*
		 * This does not wait: a server whose backlog is full refuses.  The
		 * server sees root's credentials.
		 */
		if (is_server(all->list[i]->config, path))
			return trust_folders(path, 0, NULL) == -1 ? -1 :
			    fd_connect(SOCK_STREAM, path);
		known = is_named(all->list[i]->config, path);
	}
	if (!known) {
		errno = EACCES;
		return -1;
	}
	if (!credential && trust_folders(path, 0, NULL) == -1)
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}
