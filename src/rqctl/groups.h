/*
 * The functions of the verbs, for verbs.c.
 */
#ifndef RQD_RQCTL_GROUPS_H
#define RQD_RQCTL_GROUPS_H

struct ctl;

void	status_run(struct ctl *);
void	queues_run(struct ctl *);
void	daemons_run(struct ctl *);
void	running_run(struct ctl *);
void	show_run(struct ctl *);
void	peek_run(struct ctl *);
void	push_run(struct ctl *);
/* What push_run() does with its arguments; text NULL: standard input. */
void	push_text(struct ctl *, const char *queue, const char *text);
void	try_run(struct ctl *);
void	dead_list(struct ctl *);
void	dead_show(struct ctl *);
void	dead_retry(struct ctl *);
void	dead_drop(struct ctl *);
void	dead_export(struct ctl *);
void	dead_import(struct ctl *);
void	dead_move(struct ctl *);
void	retry_list(struct ctl *);
void	retry_now(struct ctl *);
void	delayed_list(struct ctl *);
void	delayed_cancel(struct ctl *);
void	delayed_now(struct ctl *);
void	bury_run(struct ctl *);
void	purge_run(struct ctl *);
void	pause_run(struct ctl *);
void	pause_resume(struct ctl *);
void	schedules_run(struct ctl *);
void	schedules_push(struct ctl *);
void	forget_run(struct ctl *);
void	quiet_run(struct ctl *);
void	probe_run(struct ctl *);
void	lock_run(struct ctl *);
void	locks_run(struct ctl *);
void	unlock_run(struct ctl *);
void	check_run(struct ctl *);
/* The exit status of check: 0 to 3, from one of check_run() or of <sysexits.h>. */
int	check_status(int);
void	ping_run(struct ctl *);
void	help_run(struct ctl *);

#endif
