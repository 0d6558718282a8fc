/*
 * rqctl: the command line for operators and producers.
 *
 * main() reads the command line and the configuration, and calls the verb; verbs.c has
 * the table of verbs, ctl.h what the verbs share.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "rqctl/ctl.h"
#include "rqctl/out.h"

#include <config.h>

static void
run(struct ctl *c, int argc, char **argv)
{
	char *cause = NULL;

	if (args_parse(&c->args, argc, argv, &cause) == -1)
		ctl_error(c, EX_USAGE, "%s", cause);
	else if (ctl_given(c, OPT_VERSION))
		puts("rqctl " PACKAGE_VERSION);
	else if (c->args.group != NULL)
		help_print_group(c->args.group);
	else if (ctl_given(c, OPT_HELP))
		help_print(c->args.verb);
	else {
		if ((c->args.verb->flags & VERB_LOCAL) != 0 || ctl_configure(c) == 0)
			c->args.verb->run(c);
		ctl_note_unknown(c);
	}
	free(cause);
}

int
main(int argc, char **argv)
{
	struct ctl ctl = { .status = 0 };

	if (fd_open_standard() == -1)
		fatal_os("/dev/null: %s", strerror(errno));
	/* If the reader of our output exits, push must still push the rest. */
	signal(SIGPIPE, SIG_IGN);
	out_init();
	run(&ctl, argc, argv);
	if (out_end() == -1 && errno != EPIPE)
		ctl_error(&ctl, EX_IOERR, "standard output: %s", strerror(errno));
	if (ctl.args.verb == &verb_check)
		ctl.status = check_status(ctl.status);
	ctl_done(&ctl);
	return ctl.status;
}
