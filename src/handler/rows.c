/*
 * The rows of a generation come from the loader's file; those of users that it has not found
 * are replaced later, one by one.
 */
#include "handler/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define FILE_MAX	((size_t)1024 * 1024 * 1024)

struct generation {
	unsigned	   number;
	int		   text;	/* owned */
	struct spawn_row  *files;	/* owned */
	struct spawn_row **rows;	/* by number; owned, as each of them; NULL: there is none */
	size_t		   nrows;
};

/* The strings of a row. */
static const char *
strings_of(const struct spawn_row *r)
{
	return (const char *)(spawn_row_groups(r) + r->ngroups);
}

/* Takes the row at p; false: it is broken. */
static bool
take_row(struct generation *g, const char *p, size_t left)
{
	const struct spawn_row *r = (const void *)p;
	struct spawn_row **to = &g->files;
	const char *string, *end;
	size_t n;

	if (left < sizeof(*r) || r->size > left || r->size % 8 != 0)
		return false;
	end = p + r->size;
	n = (size_t)r->argc + r->envc + 1;
	for (string = strings_of(r); string < end && n > 0; string++)
		n -= *string == '\0';
	if (n > 0)
		return false;
	if (r->queue != ROWS_FILES && r->queue >= g->nrows) {
		g->rows = xreallocarray(g->rows, (size_t)r->queue + 1, sizeof(*g->rows));
		while (g->nrows <= r->queue)
			g->rows[g->nrows++] = NULL;
	}
	if (r->queue != ROWS_FILES)
		to = &g->rows[r->queue];
	free(*to);
	*to = xmemdup(p, r->size);
	return true;
}

static int
take_file(struct generation *g, int file)
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

static void
generation_free(struct generation *g)
{
	for (size_t i = 0; i < g->nrows; i++)
		free(g->rows[i]);
	free(g->rows);
	free(g->files);
	fd_close(&g->text);
	free(g);
}

/* The index of a generation; all->n: none. */
static size_t
find(const struct rows *all, unsigned number)
{
	size_t i = 0;

	while (i < all->n && all->list[i]->number != number)
		i++;
	return i;
}

unsigned
rows_add(struct rows *all, int file, int text)
{
	struct generation *g = NEW(struct generation, .number = all->last + 1, .text = text);

	if (take_file(g, file) == -1 || g->files == NULL) {
		generation_free(g);
		return 0;
	}
	*APPEND(all->list, all->n) = g;
	return all->last = g->number;
}

void
rows_update(struct rows *all, unsigned generation, int file)
{
	size_t i = find(all, generation);

	if (i < all->n)
		(void)take_file(all->list[i], file);
}

void
rows_retire(struct rows *all, unsigned generation)
{
	size_t i = find(all, generation);

	if (i == all->n)
		return;
	generation_free(all->list[i]);
	all->list[i] = all->list[--all->n];
}

int
rows_text(const struct rows *all, unsigned generation)
{
	size_t i = find(all, generation);

	return i < all->n ? all->list[i]->text : -1;
}

const struct spawn_row *
rows_find(const struct rows *all, unsigned generation, uint32_t queue)
{
	size_t i = find(all, generation);

	return i < all->n && queue < all->list[i]->nrows ? all->list[i]->rows[queue] : NULL;
}

bool
rows_name_file(const struct rows *all, const char *file)
{
	const struct spawn_row *files;
	const char *p;

	for (size_t i = 0; i < all->n; i++) {
		files = all->list[i]->files;
		p = strings_of(files) + 1;	/* there is no directory */
		for (uint32_t k = 0; k < files->argc; k++, p += strlen(p) + 1) {
			if (strcmp(p, file) == 0)
				return true;
		}
	}
	return false;
}
