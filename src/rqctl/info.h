/*
 * What Redis says of itself; nothing where it is not allowed to say it.
 */
#ifndef RQD_RQCTL_INFO_H
#define RQD_RQCTL_INFO_H

#include "rqctl/ctl.h"

/* A field of INFO, or a parameter of CONFIG; "" where denied. Caller frees. */
char	*info_field(struct ctl *, const char *section, const char *field);
char	*info_config(struct ctl *, const char *parameter);

#endif
