/*
 * A queue as JSON, for `rqctl status --json`, /status and /queue, which so cannot differ.
 */
#pragma once

#include <jansson.h>

#include "status/judge.h"

/* A new object.  Its state and its mood are those of the first finding. */
json_t	*state_json(const struct facts *, const struct judge_context *);
