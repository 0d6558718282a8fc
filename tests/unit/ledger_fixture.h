/*
 * A ledger under a simulated loop, and deliveries to put into it.
 */
#pragma once

#include "queue/ledger.h"

#define LEASE	(60 * SEC)

static struct loop *loop;
static struct config *config;
static struct queue_config cfg;
static struct ledger *ledger;

static void
ledger_setup(void (*renew)(void *))
{
	clock_fake(HOUR, 0);
	loop = loop_new_simulated();
	config = xcalloc(1, sizeof(*config));
	config->refs = 1000000;		/* so many that no message frees it */
	cfg.lease = LEASE;
	ledger = ledger_new(loop, LEASE, renew, NULL);
}

/* Fails if a message still holds its reference to the configuration. */
static void
ledger_teardown(void)
{
	loop_free(loop);
	assert_int_equal(config->refs, 1000000);
	free(config);
	clock_real(0);
}

static void
free_payload(char *payload)
{
	free(payload);
}

/* Adds a delivery of a message with the tag "tag" and the payload "payload". */
static struct delivery *
add(const char *token)
{
	struct message *m = message_new(config, &cfg);

	m->tag = xstrdup("tag");
	m->token = xstrdup(token);
	m->payload = xstrdup("payload");
	m->free_payload = free_payload;
	return ledger_add(ledger, m, 3, 9, clock_boot());
}
