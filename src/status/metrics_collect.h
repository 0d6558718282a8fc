/*
 * Gathers the numbers of /metrics; metrics.c makes text of them.
 */
#pragma once

#include "base/buf.h"
#include "status/stall.h"
#include "status/survey.h"
#include "status/view.h"

/* survey: NULL: Redis did not answer; its numbers are NaN. */
void	metrics_collect(const struct view *, struct stalls *, const struct survey_result *survey,
	    struct buf *out);
