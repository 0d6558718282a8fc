/*
 * Help and completion, made from the tables of verbs.c.
 */
#ifndef RQD_RQCTL_HELP_H
#define RQD_RQCTL_HELP_H

struct verb;

void	help_print(const struct verb *);	/* NULL: all verbs */
void	help_bash(void);
void	help_zsh(void);

#endif
