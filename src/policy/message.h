/*
 * One delivery of one message.
 *
 * A queue makes it and delivers it to the engine.  The engine gives it back by
 * queue_settle(), and the queue frees it when Redis has confirmed the result.  Handlers
 * read it and never change it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/util.h"
#include "policy/config.h"

/* The reason why rqd signalled a handler.  It is stored before the signal is sent. */
enum stop {
	STOP_NONE,
	STOP_TIME_LIMIT,
	STOP_DRAIN,		/* shutdown: give the message back */
	STOP_LOST,		/* another delivery has begun: write nothing */
	STOP_CANCEL,		/* rqctl cancel: see message.cancel */
	STOP_PEER		/* persistent: its process ended because of another message */
};

/* How far the consumer is with it. */
enum stage {
	STAGE_NONE,		/* the queue has it */
	STAGE_WAITING,		/* for a batch, or for a slot */
	STAGE_RUNNING,
	STAGE_DONE		/* it has a result */
};

struct flight;
struct consumer_source;

/* rqctl cancel has asked for this; see queue/lua/part/mark.lua. */
enum cancel { CANCEL_NONE, CANCEL_DROP, CANCEL_DEAD, CANCEL_RETRY };

struct message {
	const struct queue_config *cfg;		/* in force at the pop */
	struct config		*config;	/* reference held: keeps cfg alive */

	char			*tag;		/* name in Redis; owned, NUL-terminated */
	/* RQD_ID: 1 to MESSAGE_ID_MAX bytes, no control characters; owned. */
	char			*id;
	char			*channel;	/* RQD_CHANNEL; owned; NULL: the kind has none */
	char			*token;		/* of this delivery; owned; "": none */
	/* RQD_SAVED, which an earlier delivery has saved; no newline; owned; NULL: none. */
	char			*saved;
	char			*payload;	/* len bytes; owned; NULL: too large, or taken */
	size_t			 len;		/* of the message, even if payload is NULL */
	/* For each variable of env_message "=VALUE" or "", and a NUL; see message_read(). */
	struct buf		 members;
	char			*trace;		/* a trace id, 32 hex digits; owned; NULL: none */
	bool			 too_large;	/* len > message_max: payload was not fetched */

	unsigned		 attempts;	/* failures before this delivery */
	unsigned		 crashes;	/* leases that ended without a result */
	enum cancel		 cancel;	/* may be set, or changed, while it runs */
	char			*cancelled_by;	/* owned; NULL: nobody, or unknown */
	usec_t			 delivered;	/* mono: when the pop was answered */
	/* When the last call was sent whose answer proves the lease; 0: it has none. */
	boot_t			 ours_at;

	void			*queue_data;	/* the kind's own */

	/* The consumer's own: */
	struct consumer_source	*source;	/* that delivered it */
	enum stage		 stage;
	TAILQ_ENTRY(message)	 entry;		/* WAITING, RUNNING: of such messages */
	/* RUNNING: its run; DONE: of a batch, until the result is confirmed; else NULL. */
	struct flight		*flight;
	enum stop		 stop;	/* RUNNING: why its result does not count */
};

struct message	*message_new(struct config *, const struct queue_config *);
void		 message_free(struct message *);	/* NULL is fine */

/*
 * Whether an attempt has failed, or its lease has expired.  It then runs alone, so that
 * it makes no others fail twice.
 */
bool		 message_has_failed(const struct message *);

/*
 * Whether its lease surely holds.  If not, because the daemon was stopped for so long,
 * another daemon may have finished the message.
 */
bool		 message_is_sure(const struct message *);

/* Whether its payload holds no newline and no NUL: it can be framed as a line. */
bool		 message_is_line(const struct message *);

#define MESSAGE_ID_MAX	200
#define MESSAGE_MEMBER_MAX	4096	/* bytes of a value that env_message takes */
#define MESSAGE_SAVED_MAX	((size_t)4 * 1024)	/* bytes of a text that handlers save */

/*
 * Writes the id that the pop script would give this payload to ret (MESSAGE_ID_MAX + 1
 * bytes).  Returns 0, or -1 if the payload has no id.  member: that is the id, queue_config.id.
 */
int		 message_id(const char *member, const char *payload, size_t len,
		    char *ret) MUSTCHECK;

/* The same for a kind; the message may be its own id (TRAIT_ID_ONLY). */
int		 message_id_of(enum kind, const char *member, const char *payload, size_t len,
		    char *ret) MUSTCHECK;

/*
 * Sets `members` and `trace` for a handler of this queue, which must have config_members().
 * See rqd.conf(5), env_message.
 */
void		 message_read(struct message *, const struct queue_config *);

/* Whether these bytes are a valid id. */
bool		 message_id_ok(const char *, size_t);
