/* Checks of single options, apart from type and range; see option_check.h. */
#include "config/option_check.h"

#include <stdlib.h>
#include <string.h>

#include <config.h>

#include "base/listen_socket.h"
#include "base/units.h"
#include "base/utf8.h"
#include "policy/config.h"
#include "policy/cron.h"
#include "policy/message.h"
#include "policy/rate.h"
#include "policy/zone.h"
#include "redis/addr.h"

#define NAME_MAX_LEN	200
#define KEY_MAX_LEN	512

static bool
has_control(const char *s)
{
	for (; *s != '\0'; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	}
	return false;
}

/* Text that heartbeats, logs and metrics show: no control characters. */
static int
check_text(const char *s, char **cause)
{
	if (!utf8_is_valid(s, strlen(s)))
		return util_cause(cause, "\"%.60s\" is not UTF-8", s);
	if (has_control(s))
		return util_cause(cause, "\"%.60s\" has control characters", s);
	return 0;
}

int
check_word(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	if (has_control(value))
		return util_cause(cause, "\"%.60s\" has control characters", value);
	return 0;
}

int
check_name(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	if (strlen(value) > NAME_MAX_LEN)
		return util_cause(cause, "the name is longer than %d bytes", NAME_MAX_LEN);
	return check_text(value, cause);
}

int
check_key(const char *value, size_t i UNUSED, size_t n, char **cause)
{
	if (strlen(value) > KEY_MAX_LEN)
		return util_cause(cause, "the key is longer than %d bytes", KEY_MAX_LEN);
	if (n > 1 && value[0] == '\0')
		return util_cause(cause, "one of several keys is empty");
	return check_text(value, cause);
}

int
check_group(const char *value, size_t i, size_t n, char **cause)
{
	if (value[0] == '\0')
		return util_cause(cause, "a consumer group must have a name, such as \"rqd\"");
	return check_key(value, i, n, cause);
}

int
check_path(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	if (value[0] == '\0' || value[0] == '/')
		return 0;
	return util_cause(cause, "\"%.200s\" is not an absolute path: begin it with /", value);
}

int
check_root(const char *value, size_t i, size_t n, char **cause)
{
	if (value[0] == '\0')
		return util_cause(cause, "an empty path: write \"/\" or another absolute path");
	return check_path(value, i, n, cause);
}

int
check_command(const char *value, size_t i, size_t n, char **cause)
{
	if (i > 0 || value[0] == '/')
		return 0;
	return util_cause(cause, "the command \"%.200s\" is not an absolute path: "
	    "write {\"/path/to/%s\"%s}, or let a shell find it: "
	    "{\"/bin/sh\", \"-c\", '...'}", value,
	    value[0] == '\0' ? "command" : value, n > 1 ? ", ..." : "");
}

static bool
is_variable_name(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (s[i] == '_' || (s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= 'a' && s[i] <= 'z'))
			continue;
		if (i == 0 || s[i] < '0' || s[i] > '9')
			return false;
	}
	return len > 0;
}

int
check_env(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	size_t len = strcspn(value, "=");

	if (value[len] == '\0' || !is_variable_name(value, len))
		return util_cause(cause, "\"%.60s\" in env: write \"NAME=value\"", value);
	if (strncmp(value, "RQD_", 4) == 0)
		return util_cause(cause,
		    "%.*s in env: names that begin with RQD_ are set by rqd itself",
		    (int)len, value);
	return 0;
}

int
check_servers(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	struct addr addr;

	if (addr_parse(value, &addr, cause) == -1)
		return -1;
	addr_done(&addr);
	return 0;
}

int
check_listen(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	return value[0] == '\0' ? 0 : listen_socket_check(value, cause);
}

int
check_target(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	if (value[0] == '/' || strcmp(value, "stderr") == 0 || strcmp(value, "syslog") == 0)
		return 0;
	return util_cause(cause, "target \"%.60s\": write \"stderr\", \"syslog\", "
	    "or the absolute path of a file", value);
}

/* "log", "none", "push:QUEUE". */
int
check_output(const char *value, size_t i, size_t n, char **cause)
{
	size_t push = strlen(CONFIG_OUTPUT_PUSH);

	if (strcmp(value, "log") == 0 || strcmp(value, "none") == 0)
		return 0;
	if (strncmp(value, CONFIG_OUTPUT_PUSH, push) == 0 && value[push] != '\0')
		return check_word(value, i, n, cause);
	return util_cause(cause, "output \"%.60s\": write \"log\", \"none\", or "
	    "\"push:QUEUE\" with the name of a queue", value);
}

/* "100/s", "5/m", "1000/h", "1/d"; "" for none. */
int
check_rate(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	double gap;

	return rate_parse(value, &gap, cause);
}

/* Times of a crontab; "" for none. */
int
check_cron(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	char *why = NULL;
	struct cron c;
	int rc;

	if (value[0] == '\0')
		return 0;
	if ((rc = cron_parse(value, &c, &why)) == -1)
		(void)util_cause(cause, "cron \"%.60s\": %s", value, why);
	free(why);
	return rc;
}

int
check_timezone(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
	return zone_check_name(value, cause);
}

int
check_tls(const char *value, size_t i UNUSED, size_t n UNUSED, char **cause)
{
#ifdef HAVE_HIREDIS_SSL
	(void)value, (void)cause;
	return 0;
#else
	if (strcasecmp(value, "true") != 0 && strcasecmp(value, "yes") != 0 &&
	    strcasecmp(value, "on") != 0)
		return 0;
	return util_cause(cause, "tls: this rqd was built without TLS (its hiredis has none): "
	    "use a tunnel such as stunnel(8), or a build with hiredis_ssl");
#endif
}
