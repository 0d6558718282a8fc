/*
 * rqctl acl: prints the command for redis-cli that makes the user of rqd, with the permissions
 * that rqd(8) describes for the queues of the configuration.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "rqctl/ctl.h"

/*
 * Appends " ~KEY*".  The key's own glob characters and quotes stand for themselves.  Redis refuses
 * a pattern with a space: "?" stands for it.
 */
static void
add_pattern(struct buf *b, const char *key)
{
	bool quoted = strpbrk(key, "\"'\\") != NULL;
	const char *begin = " ~", *escape = "\\", *end = "*";

	if (quoted) {
		begin = " \"~";
		escape = "\\\\";
		end = "*\"";
	}
	buf_puts(b, begin);
	for (; *key != '\0'; key++) {
		if (strchr("*?[]\\", *key) != NULL)
			buf_puts(b, escape);
		if (quoted && strchr("\"\\", *key) != NULL)
			buf_puts(b, "\\");
		if (isspace((unsigned char)*key))
			buf_addc(b, '?');
		else
			buf_addc(b, *key);
	}
	buf_puts(b, end);
}

static void
acl_run(struct ctl *c)
{
	const struct redis_options *redis = &c->config->redis;
	const char *user = "rqd";
	struct buf b = BUF_INIT;
	const struct queue_config *q;

	if (!ctl_has_file(c)) {
		ctl_error(c, EX_USAGE, "there is no configuration file with queues: use -c FILE");
		return;
	}
	if (redis->username[0] != '\0')
		user = redis->username;
	buf_printf(&b, "ACL SETUSER %s reset on >PASSWORD", user);
	for (size_t i = 0; i < c->config->nqueues; i++) {
		q = c->config->queues[i];
		for (size_t k = 0; k < config_key_count(q); k++)
			add_pattern(&b, config_key_at(q, k));
		if (q->delayed_key[0] != '\0')
			add_pattern(&b, q->delayed_key);
	}
	/*
	 * Not +config|get, which also reads the passwords of other users.  CLIENT and CLUSTER as a
	 * whole are @dangerous in Redis 6.2.
	 */
	buf_puts(&b, " ~rqd:* ~Lock:* &* +@all -@dangerous +info +role +client|id "
	    "+client|setname +client|tracking +client|caching");
	if (ctl_is_cluster(c))
		buf_puts(&b, " +cluster|slots +cluster|info");
	puts(buf_str(&b));
	buf_done(&b);
}

const struct verb verb_acl = {
	.name = "acl",
	.args = "",
	.help = "print the command that makes rqd's user in Redis",
	.more = "The user has access to the queues of the configuration. "
	    "Replace PASSWORD, and run the command with redis-cli on each "
	    "master.",
	.run = acl_run,
};
