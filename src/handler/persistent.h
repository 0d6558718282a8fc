/*
 * mode = "persistent": processes that are fed many messages.  All else is
 * handler.h.
 */
#ifndef RQD_HANDLER_PERSISTENT_H
#define RQD_HANDLER_PERSISTENT_H

#include "handler/handler.h"

extern const struct handler_ops handler_persistent;

#endif
