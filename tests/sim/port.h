/*
 * A port on 127.0.0.1 that stays the caller's: until the process ends, nobody gets it who asks
 * for any port, and no connection begins there.  A server that sets SO_REUSEADDR, as Redis does,
 * can listen on it, again and again.
 */
#ifndef SIM_PORT_H
#define SIM_PORT_H

/* -1: no port, see errno. */
int	port_reserve(void);

#endif
