/*
 * /status: the daemon and its fleet as one JSON object.  /queue: one queue in full; an open row of
 * the page shows it.  Queues look as in `rqctl status --json`.  See rqd-http(7).
 */
#pragma once

#include "base/buf.h"
#include "status/history.h"
#include "status/view.h"
#include "status/survey.h"

/* Without a survey (Redis is down or slow) "queues" and "fleet" are null. */
void	status_text(const struct view *, const struct survey_result *, const struct history *,
	    struct buf *);

/* letter: the newest dead letter, borrowed; NULL: there is none, or it is not known. */
void	queue_text(const struct view *, const struct survey_result *, const struct survey_queue *,
	    json_t *letter, struct buf *);
/* Arguments of dead_list.lua for the newest letter; NULL at the end. */
extern const char *const queue_letter_words[];
/* A new object of the reply; NULL: it has no letter. */
json_t	*queue_letter(const struct redisReply *);
