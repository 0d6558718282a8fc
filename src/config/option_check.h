/*
 * Checks of options beyond type and range: the check members of the table.  Each checks
 * value i of n and returns 0, or -1 with *cause: what is wrong, and what to write
 * instead.  The caller puts the place in front.
 */
#ifndef RQD_CONFIG_OPTION_CHECK_H
#define RQD_CONFIG_OPTION_CHECK_H

#include <stddef.h>

#include "base/util.h"

#define OPTION_CHECK(name) \
	int name(const char *value, size_t i, size_t n, char **cause) MUSTCHECK

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
OPTION_CHECK(check_timezone);	/* the form of the name; see zone_check() for its existence */
OPTION_CHECK(check_tls);
OPTION_CHECK(check_word);	/* no control characters */

#endif
