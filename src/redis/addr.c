/*
 * Addresses; see addr.h.
 */
#include "redis/addr.h"

#include <sys/un.h>

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define ADDR_PORT	6379

/* Takes "port" into a->port; -1 if it is none. */
static int
addr_parse_port(const char *text, struct addr *a)
{
	int64_t n;

	if (units_parse_int(text, &n) == -1 || n < 1 || n > 65535)
		return -1;
	a->port = (int)n;
	return 0;
}

/* "[v6]:port" or "[v6]". */
static int
addr_parse_v6(const char *text, struct addr *a, char **cause)
{
	const char *end = strchr(text, ']');
	struct in6_addr in6;
	char host[INET6_ADDRSTRLEN];

	if (end == NULL || (end[1] != '\0' && end[1] != ':') ||
	    (size_t)(end - text) > sizeof(host))
		return util_cause(cause, "\"%s\": write [v6]:port", text);
	snprintf(host, sizeof(host), "%.*s", (int)(end - text - 1), text + 1);
	if (inet_pton(AF_INET6, host, &in6) != 1)
		return util_cause(cause, "\"%s\": %s is not an IPv6 address", text, host);
	if (end[1] == ':' && addr_parse_port(end + 2, a) == -1)
		return util_cause(cause, "\"%s\": the port must be 1 to 65535", text);
	a->host = xstrdup(host);
	return 0;
}

/* "host:port" or "host". */
static int
addr_parse_host(const char *text, struct addr *a, char **cause)
{
	size_t len = strcspn(text, ":");

	if (len == 0)
		return util_cause(cause, "\"%s\": write host:port", text);
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)text[i]) && strchr(".-_", text[i]) == NULL)
			return util_cause(cause, "\"%s\" is not a host name: write host:port",
			    text);
	}
	if (len > 253)
		return util_cause(cause, "\"%.40s...\" is too long for a host name", text);
	if (text[len] == ':' && addr_parse_port(text + len + 1, a) == -1)
		return util_cause(cause, "\"%s\": the port must be 1 to 65535", text);
	a->host = xstrndup(text, len);
	return 0;
}

int
addr_parse(const char *text, struct addr *ret, char **cause)
{
	struct addr a = { NULL, NULL, ADDR_PORT };
	struct in6_addr in6;
	const char *path = text + 5;
	int rc;

	if (text[0] == '\0')
		return util_cause(cause, "an empty server: write host:port or unix:/path");
	if (text[0] == '/')
		return util_cause(cause, "\"%s\": write unix:%s", text, text);
	if (strstr(text, "://") != NULL)
		return util_cause(cause, "\"%s\" is a URL: write host:port, "
		    "and the password into password_file", text);
	if (inet_pton(AF_INET6, text, &in6) == 1)
		return util_cause(cause, "\"%s\": write [%s]:%d", text, text, ADDR_PORT);
	if (strncmp(text, "unix:", 5) != 0) {
		rc = text[0] == '[' ? addr_parse_v6(text, &a, cause) :
		    addr_parse_host(text, &a, cause);
	} else if (path[0] != '/') {
		rc = util_cause(cause, "\"%s\": write an absolute path: unix:/path", text);
	} else if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
		rc = util_cause(cause, "\"%s\": a socket's path has at most %zu bytes", text,
		    sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
	} else {
		a.path = xstrdup(path);
		rc = 0;
	}
	if (rc == 0)
		*ret = a;
	return rc;
}

void
addr_done(struct addr *a)
{
	free(a->host);
	free(a->path);
	*a = (struct addr){ NULL, NULL, 0 };
}

bool
addr_is_numeric(const struct addr *a)
{
	unsigned char in[sizeof(struct in6_addr)];

	return a->host != NULL && (inet_pton(AF_INET, a->host, in) == 1 ||
	    inet_pton(AF_INET6, a->host, in) == 1);
}
