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

/* letters: see queue_letters(), borrowed; NULL: none were read. */
void	queue_text(const struct view *, const struct survey_result *, const struct survey_queue *,
	    json_t *letters, struct buf *);
/* Adds the arguments of dead_list.lua after its key, for the newest letters. */
struct words;
void	queue_letters_words(struct words *);
/*
 * Adds the letters of one key to an object: the newest of all, and how many
 * have each reason, of those that the script has looked at.
 */
void	queue_letters(json_t *letters, const struct redisReply *);
