/*
 * The former names of redis/words.h, for files that are not converted yet.
 */
#ifndef RQD_QUEUE_SCRIPT_ARGS_H
#define RQD_QUEUE_SCRIPT_ARGS_H

#include "redis/words.h"

#define args		words
#define args_mem	words_mem
#define args_str	words_add
#define args_fmt	words_fmt
#define args_own	words_own
#define args_done	words_done

#endif
