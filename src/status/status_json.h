/*
 * /status: the daemon and its fleet as one JSON object; rqd(8), HTTP.  Queues
 * look as in `rqctl status --json`.
 */
#pragma once

#include "base/buf.h"
#include "status/history.h"
#include "status/view.h"
#include "status/survey.h"

/* Without a survey (Redis is down or slow) "queues" and "fleet" are null. */
void	status_text(const struct view *, const struct survey_result *, const struct history *,
	    struct buf *);
