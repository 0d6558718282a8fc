/* <sys/queue.h> with the _SAFE walks that glibc lacks. */
#ifndef RQD_BASE_LIST_H
#define RQD_BASE_LIST_H

#include <sys/queue.h>

#ifndef TAILQ_FOREACH_SAFE
#define TAILQ_FOREACH_SAFE(var, head, field, tvar)			\
	for ((var) = TAILQ_FIRST(head);					\
	    (var) != NULL && ((tvar) = TAILQ_NEXT(var, field), 1);	\
	    (var) = (tvar))
#endif

#endif
