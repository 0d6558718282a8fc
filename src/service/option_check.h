/*
 * What options must be beyond their type: the check members of the table.
 * Each looks at all values, returns 0, or -1 with *bad and *cause.
 */
#ifndef RQD_SERVICE_OPTION_CHECK_H
#define RQD_SERVICE_OPTION_CHECK_H

#include <stddef.h>

#include "base/util.h"

#define OPTION_CHECK(name) \
	int name(char *const *values, size_t n, size_t *bad, char **cause) MUSTCHECK

OPTION_CHECK(check_command);
OPTION_CHECK(check_cron);
OPTION_CHECK(check_env);
OPTION_CHECK(check_group);
OPTION_CHECK(check_key);
OPTION_CHECK(check_listen);
OPTION_CHECK(check_name);
OPTION_CHECK(check_path);	/* absolute, or "" */
OPTION_CHECK(check_rate);
OPTION_CHECK(check_root);	/* absolute, never "" */
OPTION_CHECK(check_servers);
OPTION_CHECK(check_target);
OPTION_CHECK(check_timezone);	/* a name; whether it exists is for the machine to say */
OPTION_CHECK(check_tls);
OPTION_CHECK(check_word);	/* no control characters */

#endif
