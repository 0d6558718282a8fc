/*
 * The configuration on its way from the spawner, which may read the files, to the main
 * process: text that reads back to the same, and what was found wrong.
 */
#pragma once

#include "config/load.h"
#include "handler/spawner.h"

/* For spawner_fork(); its arg is the struct config_source *, which must live as long. */
spawner_loader	launch_config_load;

/*
 * The configuration of the spawner's answer, whose descriptor it closes.  NULL: there are errors,
 * which are in the report.
 */
struct config	*launch_config_take(const struct config_source *, struct spawner *,
		    const struct spawner_loaded *, struct config_report *);
/*
 * Forks a spawner, which reads the configuration, and gives up this process' privileges, if it
 * has some, before it reads anything.  Without a user for that it stays what it is, and the
 * check of the configuration says whether rqd starts at all.  With privileged = false another
 * spawner takes over, which is the ordinary user that this process is by then.
 *
 * The source must live as long as the spawner.  NULL: *cause says why, or the report.
 */
struct config	*launch_config_start(const struct config_source *, struct spawner **,
		    struct config_report *, char **cause) MUSTCHECK;

/* Logs it: errors are those of a reload. */
void	launch_config_log(const struct config_report *);
