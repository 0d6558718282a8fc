/*
 * A port on 127.0.0.1 that stays the caller's until the process ends.  The kernel gives
 * it to no process that asks for any port, and to no connection.  A server that sets
 * SO_REUSEADDR, as Redis does, can listen on it, any number of times.
 */
#pragma once

/* -1: no port, see errno. */
int	port_reserve(void);
