/*
 * Reserves a port on 127.0.0.1 until the process ends.  The kernel gives it to no other
 * process that asks for a free port, and to no connection.  A server that sets
 * SO_REUSEADDR, as Redis does, can listen on it, any number of times.
 */
#pragma once

/* Returns the port, or -1 with errno. */
int	port_reserve(void);
