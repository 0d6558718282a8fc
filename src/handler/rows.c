/*
 * The rows of a generation come from the loader's file; those of users that it has not found
 * are replaced later, one by one.
 */
#include "handler/rows.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#define FILE_MAX	((size_t)1024 * 1024 * 1024)

/* Takes the row at p; false: it is broken. */
static bool
take_row(struct generation *g, const char *p, size_t left)
{
	const struct spawn_row *r = (const void *)p;
	const char *string, *end;
	size_t at, n;

	if (left < sizeof(*r) || r->size > left || r->size % 8 != 0)
		return false;
	end = p + r->size;
	n = (size_t)r->argc + r->envc + r->members + 1;
	for (string = (const char *)(r->groups + r->ngroups); string < end && n > 0; string++)
		n -= *string == '\0';
	if (n > 0)
		return false;
	at = (uint32_t)(r->queue + 1);		/* that of files is the first */
	while (g->nrows <= at)
		*APPEND(g->rows, g->nrows) = NULL;
	free(g->rows[at]);
	g->rows[at] = xmemdup(p, r->size);
	return true;
}

int
rows_update(struct generation *g, int file)
{
	struct buf b = BUF_INIT;
	size_t at = 0;
	int ret = -1;

	if (lseek(file, 0, SEEK_SET) != -1 && buf_read(&b, file, FILE_MAX) != -1) {
		while (at < b.len && take_row(g, b.data + at, b.len - at))
			at += ((const struct spawn_row *)(const void *)(b.data + at))->size;
		ret = at == b.len ? 0 : -1;
	}
	buf_done(&b);
	return ret;
}

unsigned
rows_add(struct rows *all, int file, int text)
{
	struct generation *g = NEW(struct generation, .number = all->last + 1, .text = text);

	LIST_INSERT_HEAD(&all->list, g, entry);
	if (rows_update(g, file) == 0 && g->nrows > 0 && g->rows[0] != NULL)
		return all->last = g->number;
	rows_retire(g);
	return 0;
}

void
rows_retire(struct generation *g)
{
	if (g == NULL)
		return;
	LIST_REMOVE(g, entry);
	for (size_t i = 0; i < g->nrows; i++)
		free(g->rows[i]);
	free(g->rows);
	fd_close(&g->text);
	free(g);
}

struct generation *
rows_generation(const struct rows *all, unsigned number)
{
	struct generation *g;

	LIST_FOREACH(g, &all->list, entry) {
		if (g->number == number)
			break;
	}
	return g;
}

const struct spawn_row *
rows_find(const struct rows *all, unsigned generation, uint32_t queue)
{
	const struct generation *g = rows_generation(all, generation);

	return g != NULL && queue < g->nrows - 1 ? g->rows[queue + 1] : NULL;
}

const char *
rows_members(const struct spawn_row *r)
{
	const char *p = (const char *)(r->groups + r->ngroups);

	for (size_t n = (size_t)r->argc + r->envc + 1; n > 0; n--)
		p += strlen(p) + 1;
	return p;
}

bool
rows_name_file(const struct rows *all, const char *file)
{
	const struct generation *g;
	const char *p;

	LIST_FOREACH(g, &all->list, entry) {
		p = (const char *)g->rows[0]->groups + 1;	/* there is no directory */
		for (uint32_t k = 0; k < g->rows[0]->argc; k++, p += strlen(p) + 1) {
			if (strcmp(p, file) == 0)
				return true;
		}
	}
	return false;
}
