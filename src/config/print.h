/* The configuration as text. */
#ifndef RQD_CONFIG_PRINT_H
#define RQD_CONFIG_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "policy/config.h"

struct option;	/* config/options.h */

/* -T: text that reads back to the same configuration. */
void	config_print(const struct config *, FILE *);

/* 16 hex digits into c->hash, of all but the daemon's name. */
void	config_print_hash(struct config *);

/* Whether both print the same. */
bool	config_same_queue(const struct queue_config *, const struct queue_config *);
bool	config_same_option(const struct option *, const struct config *, const struct config *);

#endif
