/*
 * Checks of single options, apart from type and range.
 *
 * A cause says what is wrong and what to write instead; the caller puts the
 * place in front.
 */
#include "config/option_check.h"

#include <stdlib.h>
#include <string.h>

#include <config.h>

#include "base/listen_socket.h"
#include "base/units.h"
#include "base/utf8.h"
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
check_word(char *const *values, size_t n, size_t *bad, char **cause)
{
	*bad = 0;
	if (n > 0 && has_control(values[0]))
		return util_cause(cause, "\"%.60s\" has control characters", values[0]);
	return 0;
}

int
check_name(char *const *values, size_t n, size_t *bad, char **cause)
{
	*bad = 0;
	if (n > 0 && strlen(values[0]) > NAME_MAX_LEN)
		return util_cause(cause, "the name is longer than %d bytes", NAME_MAX_LEN);
	return n > 0 ? check_text(values[0], cause) : 0;
}

int
check_key(char *const *values, size_t n, size_t *bad, char **cause)
{
	for (*bad = 0; *bad < n; (*bad)++) {
		if (strlen(values[*bad]) > KEY_MAX_LEN)
			return util_cause(cause, "the key is longer than %d bytes", KEY_MAX_LEN);
		if (n > 1 && values[*bad][0] == '\0')
			return util_cause(cause, "one of several keys is empty");
		if (check_text(values[*bad], cause) == -1)
			return -1;
	}
	return 0;
}

int
check_group(char *const *values, size_t n, size_t *bad, char **cause)
{
	*bad = 0;
	if (n > 0 && values[0][0] == '\0')
		return util_cause(cause, "a consumer group must have a name, such as \"rqd\"");
	return check_key(values, n, bad, cause);
}

int
check_path(char *const *values, size_t n, size_t *bad, char **cause)
{
	*bad = 0;
	if (n == 0 || values[0][0] == '\0' || values[0][0] == '/')
		return 0;
	return util_cause(cause, "\"%.200s\" is not an absolute path: begin it with /", values[0]);
}

int
check_root(char *const *values, size_t n, size_t *bad, char **cause)
{
	*bad = 0;
	if (n > 0 && values[0][0] == '\0')
		return util_cause(cause, "an empty path: write \"/\" or another absolute path");
	return check_path(values, n, bad, cause);
}

int
check_command(char *const *values, size_t n, size_t *bad, char **cause)
{
	*bad = 0;
	if (n == 0)
		return util_cause(cause,
		    "the command is empty: write {\"/path/to/command\", \"argument\"}");
	if (values[0][0] == '/')
		return 0;
	return util_cause(cause, "the command \"%.200s\" is not an absolute path: "
	    "write {\"/path/to/%s\"%s}, or let a shell find it: "
	    "{\"/bin/sh\", \"-c\", '...'}", values[0],
	    values[0][0] == '\0' ? "command" : values[0], n > 1 ? ", ..." : "");
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
check_env(char *const *values, size_t n, size_t *bad, char **cause)
{
	size_t len;

	for (*bad = 0; *bad < n; (*bad)++) {
		const char *s = values[*bad];

		len = strcspn(s, "=");
		if (s[len] == '\0' || !is_variable_name(s, len))
			return util_cause(cause, "\"%.60s\" in env: write \"NAME=value\"", s);
		if (strncmp(s, "RQD_", 4) == 0)
			return util_cause(cause,
			    "%.*s in env: names that begin with RQD_ are set by rqd itself",
			    (int)len, s);
	}
	return 0;
}

int
check_servers(char *const *values, size_t n, size_t *bad, char **cause)
{
	struct addr addr;

	*bad = 0;
	if (n == 0)
		return util_cause(cause, "no server: write host:port or unix:/path");
	for (; *bad < n; (*bad)++) {
		if (addr_parse(values[*bad], &addr, cause) == -1)
			return -1;
		addr_done(&addr);
	}
	return 0;
}

int
check_listen(char *const *values, size_t n, size_t *bad, char **cause)
{
	*bad = 0;
	return n == 0 || values[0][0] == '\0' ? 0 : listen_socket_check(values[0], cause);
}

int
check_target(char *const *values, size_t n, size_t *bad, char **cause)
{
	*bad = 0;
	if (n == 0 || values[0][0] == '/' || strcmp(values[0], "stderr") == 0 ||
	    strcmp(values[0], "syslog") == 0)
		return 0;
	return util_cause(cause, "target \"%.60s\": write \"stderr\", \"syslog\", "
	    "or the absolute path of a file", values[0]);
}

/* "100/s", "5/m", "1000/h", "1/d"; "" for none. */
int
check_rate(char *const *values, size_t n, size_t *bad, char **cause)
{
	double gap;

	*bad = 0;
	return n == 0 ? 0 : rate_parse(values[0], &gap, cause);
}

/* Times of a crontab; "" for none. */
int
check_cron(char *const *values, size_t n, size_t *bad, char **cause)
{
	char *why = NULL;
	struct cron c;
	int rc;

	*bad = 0;
	if (n == 0 || values[0][0] == '\0')
		return 0;
	if ((rc = cron_parse(values[0], &c, &why)) == -1)
		(void)util_cause(cause, "cron \"%.60s\": %s", values[0], why);
	free(why);
	return rc;
}

int
check_timezone(char *const *values, size_t n, size_t *bad, char **cause)
{
	*bad = 0;
	return n == 0 ? 0 : zone_check_name(values[0], cause);
}

int
check_tls(char *const *values, size_t n, size_t *bad, char **cause)
{
	*bad = 0;
#ifdef HAVE_HIREDIS_SSL
	(void)values, (void)n, (void)cause;
#else
	if (n > 0 && strcasecmp(values[0], "true") != 0 && strcasecmp(values[0], "yes") != 0 &&
	    strcasecmp(values[0], "on") != 0)
		return 0;
	return util_cause(cause, "tls: this rqd was built without TLS (its hiredis has none): "
	    "use a tunnel such as stunnel(8), or a build with hiredis_ssl");
#endif
	return 0;
}
