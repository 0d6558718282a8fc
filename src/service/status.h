/*
 * /status: the daemon and its fleet as one JSON object; rqd(8), HTTP.  What is
 * said of queues is what `rqctl status --json` says.
 */
#ifndef RQD_SERVICE_STATUS_H
#define RQD_SERVICE_STATUS_H

#include "base/buf.h"
#include "service/survey.h"
#include "service/view.h"

/* Without a survey (Redis is down or slow) "queues" and "fleet" are null. */
void	status_text(const struct view *, const struct survey_result *, struct buf *);

#endif
