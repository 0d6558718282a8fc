/* <sys/queue.h> with what glibc lacks. */
#pragma once

#include <sys/queue.h>

#ifndef TAILQ_FOREACH_SAFE
#define TAILQ_FOREACH_SAFE(var, head, field, tvar)			\
	for ((var) = TAILQ_FIRST(head);					\
	    (var) != NULL && ((tvar) = TAILQ_NEXT(var, field), 1);	\
	    (var) = (tvar))
#endif

/* Takes the first one off the list; NULL: it is empty. */
#define TAILQ_TAKE(head, field) ({					\
	__typeof__(TAILQ_FIRST(head)) first_ = TAILQ_FIRST(head);	\
	if (first_ != NULL)						\
		TAILQ_REMOVE(head, first_, field);			\
	first_;								\
})
