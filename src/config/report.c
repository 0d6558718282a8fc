/*
 * The report of a load: lists of lines.
 */
#include "config/report.h"

#include <stdlib.h>

#include "base/util.h"

void
lines_add(struct lines *l, char *text)
{
	*APPEND(l->v, l->n) = text;
}

void
lines_done(struct lines *l)
{
	while (l->n > 0)
		free(l->v[--l->n]);
	free(l->v);
	l->v = NULL;
}

void
lines_move(struct lines *to, struct lines *from)
{
	for (size_t i = 0; i < from->n; i++)
		*APPEND(to->v, to->n) = from->v[i];
	from->n = 0;
	lines_done(from);
}

void
config_report_done(struct config_report *r)
{
	lines_done(&r->errors);
	lines_done(&r->warnings);
	lines_done(&r->left_out);
	lines_done(&r->files);
}
