/*
 * The configuration on its way from the launcher, which may read the files, to the main
 * process: text that reads back to the same, and a report.
 */
#pragma once

#include "config/load.h"
#include "handler/launcher.h"

/* For launcher_fork(); its arg is the struct config_source *, which must live as long. */
extern const struct launcher_ops launch_config_ops;

/*
 * Takes the launcher's answer, and closes its descriptors.  NULL: there are errors,
 * which are in the report.
 */
struct config	*launch_config_take(const struct config_source *, struct launcher_loaded *,
		    struct config_report *);

/* Logs it: errors are those of a reload. */
void	launch_config_log(const struct config_report *);

/*
 * From now on it opens what we may not: files that only root may read, and the log file
 * and the HTTP socket of this configuration, which must stay.  NULL: nobody does.
 */
void	launch_config_borrow(struct launcher *, const struct config *);

/* For launcher_attach(), of a daemon: logs it and exits. */
void	launch_config_lost(void *);
