/* A handler in C: reads the message, whole. */
#include <unistd.h>

int
main(void)
{
	char bytes[4096];

	while (read(0, bytes, sizeof(bytes)) > 0)
		continue;
	return 0;
}
