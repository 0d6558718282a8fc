/*
 * /queue: one queue in full, as JSON; rqd(8), HTTP.  An open row of the page shows it.
 */
#pragma once

#include "base/buf.h"
#include "status/view.h"
#include "status/survey.h"

/* dead: as dead_summary.h has it, borrowed; NULL: no letters, or they are not known. */
void	queue_text(const struct view *, const struct survey_result *, const struct survey_queue *,
	    const json_t *dead, struct buf *);
