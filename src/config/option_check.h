/*
 * Checks of options beyond type and range: the check members of the table.  Each checks
 * value i of n and returns 0, or -1 with *cause: what is wrong, and what to write
 * instead.  The caller puts the place in front.
 */
#ifndef RQD_CONFIG_OPTION_CHECK_H
#define RQD_CONFIG_OPTION_CHECK_H

#include "config/options.h"

option_check_fn	check_command, check_cron, check_env, check_group, check_key, check_listen,
		check_name, check_output, check_rate, check_servers, check_target, check_tls;
option_check_fn	check_path;		/* absolute, or "" */
option_check_fn	check_root;		/* absolute, never "" */
option_check_fn	check_timezone;		/* the form; see zone_check() for its existence */
option_check_fn	check_word;		/* no control characters */

#endif
