/*
 * mode = "exec": one process per message.  All else is handler.h.
 */
#ifndef RQD_HANDLER_EXEC_H
#define RQD_HANDLER_EXEC_H

#include "handler/handler.h"

extern const struct handler_ops handler_exec;

#endif
