/*
 * The value of QPAUSED: "WHO WHEN WHY...", text that people may also write by hand.
 */
#pragma once

#include "base/clock.h"

/* In front of HOST: who, if a handler there holds the queue. */
#define PAUSETEXT_HANDLER	"handler@"

/* USER@HOST of the person who runs this program; the user behind sudo.  The caller frees it. */
char	*pausetext_who(void);
char	*pausetext_make(const char *who, wall_t now, const char *why);	/* caller frees */

/*
 * The parts of such a text, borrowed.  Any other text has neither who nor when; all of
 * it is why.
 */
struct pausetext {
	const char	*who, *when, *why;
	int		 who_len, when_len;	/* 0: not said */
};
struct pausetext	pausetext_split(const char *);
