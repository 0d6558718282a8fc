/* Reserves ports; see port.h.  The descriptor stays open, which keeps the port. */
#include <sys/socket.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include "tests/sim/port.h"

int
port_reserve(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd != -1 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, (struct sockaddr *)&sin, len) == 0 &&
	    getsockname(fd, (struct sockaddr *)&sin, &len) == 0)
		return ntohs(sin.sin_port);	/* bound while the process lives */
	if (fd != -1)
		close(fd);
	return -1;
}
