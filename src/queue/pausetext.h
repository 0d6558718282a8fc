/*
 * What QPAUSED holds: "WHO WHEN WHY...", as text that anybody may also write
 * by hand.
 */
#ifndef RQD_QUEUE_PAUSETEXT_H
#define RQD_QUEUE_PAUSETEXT_H

#include "base/clock.h"

/* Who is doing this: USER@HOST, the user behind sudo; caller frees. */
char	*pausetext_who(void);
char	*pausetext_make(const char *who, wall_t now, const char *why);	/* caller frees */

/* Pieces of such a text; of any other text all of it is why. */
struct pausetext {
	char		*who;		/* "" where it is not said; owned */
	char		*when;		/* "" likewise; owned */
	const char	*why;		/* borrowed */
};
void	pausetext_split(const char *, struct pausetext *);
void	pausetext_done(struct pausetext *);

#endif
