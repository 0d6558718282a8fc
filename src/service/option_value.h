/*
 * Between options.c, which has the table, and option_value.c, which converts.
 */
#ifndef RQD_SERVICE_OPTION_VALUE_H
#define RQD_SERVICE_OPTION_VALUE_H

#include "service/options.h"

/* Whether this version lacks what the value asks for. */
bool	option_value_is_missing(const struct option *, const char *value);

#endif
