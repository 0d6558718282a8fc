/*
 * Lists whose links are in their elements, by the names of BSD's <sys/queue.h>, which musl
 * lacks: LIST, which only goes forward, and TAILQ, which goes both ways and has an end.  An
 * element may be on a list once for each LIST_ENTRY or TAILQ_ENTRY that it has.
 */
#pragma once

#include <stddef.h>

/* -- LIST ---------------------------------------------------------------------- */

#define LIST_HEAD(name, type)						\
	struct name {							\
		struct type *lh_first;					\
	}
#define LIST_ENTRY(type)						\
	struct {							\
		struct type *le_next;					\
		struct type **le_prev;	/* what points at this element */ \
	}

#define LIST_FIRST(head)	((head)->lh_first)
#define LIST_NEXT(elm, field)	((elm)->field.le_next)
#define LIST_FOREACH(var, head, field)					\
	for ((var) = LIST_FIRST(head); (var) != NULL; (var) = LIST_NEXT(var, field))

#define LIST_INSERT_HEAD(head, elm, field) do {				\
	(elm)->field.le_next = (head)->lh_first;			\
	(elm)->field.le_prev = &(head)->lh_first;			\
	if ((head)->lh_first != NULL)					\
		(head)->lh_first->field.le_prev = &(elm)->field.le_next; \
	(head)->lh_first = (elm);					\
} while (0)

#define LIST_REMOVE(elm, field) do {					\
	if ((elm)->field.le_next != NULL)				\
		(elm)->field.le_next->field.le_prev = (elm)->field.le_prev; \
	*(elm)->field.le_prev = (elm)->field.le_next;			\
} while (0)

/* -- TAILQ --------------------------------------------------------------------- */

#define TAILQ_HEAD(name, type)						\
	struct name {							\
		struct type *tqh_first;					\
		struct type **tqh_last;	/* the last element's next */	\
	}
#define TAILQ_HEAD_INITIALIZER(head)	{ NULL, &(head).tqh_first }
#define TAILQ_ENTRY(type)						\
	struct {							\
		struct type *tqe_next;					\
		struct type **tqe_prev;	/* what points at this element */ \
	}

#define TAILQ_INIT(head) do {						\
	(head)->tqh_first = NULL;					\
	(head)->tqh_last = &(head)->tqh_first;				\
} while (0)

#define TAILQ_EMPTY(head)	((head)->tqh_first == NULL)
#define TAILQ_FIRST(head)	((head)->tqh_first)
#define TAILQ_NEXT(elm, field)	((elm)->field.tqe_next)
/* A head and an entry begin with the same two pointers. */
#define TAILQ_LAST(head, name)	(*((struct name *)((head)->tqh_last))->tqh_last)
#define TAILQ_PREV(elm, name, field)					\
	(*((struct name *)((elm)->field.tqe_prev))->tqh_last)

#define TAILQ_FOREACH(var, head, field)					\
	for ((var) = TAILQ_FIRST(head); (var) != NULL; (var) = TAILQ_NEXT(var, field))
/* The body may remove var. */
#define TAILQ_FOREACH_SAFE(var, head, field, tvar)			\
	for ((var) = TAILQ_FIRST(head);					\
	    (var) != NULL && ((tvar) = TAILQ_NEXT(var, field), 1);	\
	    (var) = (tvar))
#define TAILQ_FOREACH_REVERSE(var, head, name, field)			\
	for ((var) = TAILQ_LAST(head, name); (var) != NULL;		\
	    (var) = TAILQ_PREV(var, name, field))

#define TAILQ_INSERT_HEAD(head, elm, field) do {			\
	(elm)->field.tqe_next = (head)->tqh_first;			\
	if ((head)->tqh_first != NULL)					\
		(head)->tqh_first->field.tqe_prev = &(elm)->field.tqe_next; \
	else								\
		(head)->tqh_last = &(elm)->field.tqe_next;		\
	(head)->tqh_first = (elm);					\
	(elm)->field.tqe_prev = &(head)->tqh_first;			\
} while (0)

#define TAILQ_INSERT_TAIL(head, elm, field) do {			\
	(elm)->field.tqe_next = NULL;					\
	(elm)->field.tqe_prev = (head)->tqh_last;			\
	*(head)->tqh_last = (elm);					\
	(head)->tqh_last = &(elm)->field.tqe_next;			\
} while (0)

#define TAILQ_INSERT_AFTER(head, at, elm, field) do {			\
	(elm)->field.tqe_next = (at)->field.tqe_next;			\
	if ((elm)->field.tqe_next != NULL)				\
		(elm)->field.tqe_next->field.tqe_prev = &(elm)->field.tqe_next; \
	else								\
		(head)->tqh_last = &(elm)->field.tqe_next;		\
	(at)->field.tqe_next = (elm);					\
	(elm)->field.tqe_prev = &(at)->field.tqe_next;			\
} while (0)

#define TAILQ_REMOVE(head, elm, field) do {				\
	if ((elm)->field.tqe_next != NULL)				\
		(elm)->field.tqe_next->field.tqe_prev = (elm)->field.tqe_prev; \
	else								\
		(head)->tqh_last = (elm)->field.tqe_prev;		\
	*(elm)->field.tqe_prev = (elm)->field.tqe_next;			\
} while (0)

/* Moves all elements of the second list to the end of the first. */
#define TAILQ_CONCAT(head1, head2, field) do {				\
	if (!TAILQ_EMPTY(head2)) {					\
		*(head1)->tqh_last = (head2)->tqh_first;		\
		(head2)->tqh_first->field.tqe_prev = (head1)->tqh_last;	\
		(head1)->tqh_last = (head2)->tqh_last;			\
		TAILQ_INIT(head2);					\
	}								\
} while (0)

/* Takes the first one off the list; NULL: it is empty. */
#define TAILQ_TAKE(head, field) ({					\
	__typeof__(TAILQ_FIRST(head)) first_ = TAILQ_FIRST(head);	\
	if (first_ != NULL)						\
		TAILQ_REMOVE(head, first_, field);			\
	first_;								\
})
