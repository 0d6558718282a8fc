/*
 * A persistent handler in C, for tests: notes the id and attempt of each message
 * in a file, and answers ok.
 *
 *	persist FILE
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	char header[512], note[512], *message = NULL;
	unsigned long n, attempt, len;
	int fd, at;

	if (argc != 2 || (fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0644)) == -1)
		return 2;
	while (fgets(header, sizeof(header), stdin) != NULL) {
		if (sscanf(header, "%lu %lu %lu %n", &n, &attempt, &len, &at) != 3)
			return 9;
		header[strcspn(header, "\n")] = '\0';
		message = realloc(message, len + 1);
		if (fread(message, 1, len + 1, stdin) != len + 1 || message[len] != '\n')
			return 9;
		snprintf(note, sizeof(note), "%s %lu\n", header + at, attempt);
		if (write(fd, note, strlen(note)) == -1)
			return 9;
		printf("%lu ok\n", n);
		fflush(stdout);
	}
	free(message);
	return 0;
}
