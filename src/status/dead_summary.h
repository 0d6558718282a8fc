/*
 * A summary of a queue's dead letters: the latest 200 by reason, and the last error.
 *
 * A reader asks Redis for one queue after the other, and pauses between them.  So a
 * client that asks in a tight loop costs Redis little.  A summary is bounded, whatever
 * the letters hold.
 */
#pragma once

#include <jansson.h>

#include "loop/loop.h"
#include "redis/nodes.h"

struct dead_reader;

struct dead_reader *dead_reader_new(struct loop *, struct nodes *);
/* Any time but from a function of dead_reader_ask().  These functions get NULL. */
void	dead_reader_free(struct dead_reader *);

/*
 * key: QDEAD, copied.  fn gets an object, borrowed, or NULL where Redis did not answer; never
 * from inside this call, always exactly once:
 *
 *	"total"		letters in the queue
 *	"looked"	the latest, which were counted
 *	"reasons"	[{"reason", "count", "last" (seconds since 1970)}], the most first
 *	"newest"	{"id", "died", "reason", "status", "host", "attempts", "answer",
 *			"error"}, or null
 */
void	dead_reader_ask(struct dead_reader *, const char *key,
	    void (*fn)(const json_t *, void *), void *arg);

/* Adds the summary of another shard to that of a queue. */
void	dead_summary_add(json_t *, const json_t *other);
