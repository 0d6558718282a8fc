/*
 * A fuzz target is a file with LLVMFuzzerTestOneInput().  Built with
 * --enable-fuzzing (clang) libFuzzer drives it:
 *
 *	tests/fuzz/fuzz_config -max_total_time=60 CORPUS
 *
 * Otherwise this main() feeds it the files of its corpus, and prints TAP.  An input for
 * which a fuzzer found a bug is kept there as a file.
 */
#pragma once

#include <config.h>

#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int	LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#ifndef RQD_FUZZING

/* Each prefix of a file is an input, too: text that ends early is common. */
static inline void
fuzz_file(const char *path)
{
	static uint8_t bytes[65536];
	FILE *fp = fopen(path, "r");
	size_t n, i, step;

	if (fp == NULL)
		exit(99);
	n = fread(bytes, 1, sizeof(bytes), fp);
	fclose(fp);
	step = n / 500 + 1;
	for (i = 0; i < n; i += step)
		(void)LLVMFuzzerTestOneInput(bytes, i);
	(void)LLVMFuzzerTestOneInput(bytes, n);
}

static inline int
fuzz_is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The corpus: tests/fuzz/corpus/NAME. */
static inline int
fuzz_main(const char *name)
{
	const char *srcdir = getenv("SRCDIR");
	char path[PATH_MAX];
	struct dirent **list;
	int i, n;

	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s",
	    srcdir != NULL ? srcdir : "..", name);
	n = scandir(path, &list, fuzz_is_file, alphasort);
	if (n <= 0) {
		printf("Bail out! no corpus in %s\n", path);
		return 99;
	}
	printf("1..%d\n", n);
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s/%s",
		    srcdir != NULL ? srcdir : "..", name, list[i]->d_name);
		fuzz_file(path);
		printf("ok %d - %s\n", i + 1, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return 0;
}

#define FUZZ_MAIN(name)							\
int									\
main(void)								\
{									\
	return fuzz_main(name);						\
}
#else
#define FUZZ_MAIN(name)
#endif
