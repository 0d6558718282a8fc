/*
 * The words of a command or of a script's call: borrowed ones, and formatted
 * ones that it owns.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/util.h"

/* Zero it to start. */
struct words {
	const char	**v;
	size_t		 *len;
	char		**own;		/* of v: what must be freed, else NULL */
	int		  n;
	int		  cap;
	int		  nkeys;	/* a script's KEYS: the first words */
	size_t		  bytes;	/* of all words */
};

/* A script's KEYS come before all other words; borrowed. */
void	words_key(struct words *, const char *, size_t);
void	words_mem(struct words *, const void *, size_t);	/* borrowed */
void	words_add(struct words *, const char *);		/* borrowed */
/* All up to a NULL; borrowed. */
void	words_list(struct words *, va_list);
void	words_fmt(struct words *, const char *, ...) PRINTF(2, 3);
void	words_own(struct words *, char *, size_t);		/* taken: freed with the words */
void	words_clear(struct words *);	/* empty; the memory of the vectors is kept */
void	words_done(struct words *);	/* empty, and nothing is allocated */
