/*
 * Help and completion, made from the tables of verbs.c.
 */
#ifndef RQD_RQCTL_HELP_H
#define RQD_RQCTL_HELP_H

struct verb;

void	help_print(const struct verb *);	/* NULL: all verbs */

/* The templates, completion/bash and completion/zsh. */
extern const char completion_bash[];
extern const char completion_zsh[];

#endif
