/*
 * How to reach Redis: a plain struct, filled by the configuration.  policy/config.c
 * frees the strings.
 */
#ifndef RQD_REDIS_REDIS_OPTIONS_H
#define RQD_REDIS_REDIS_OPTIONS_H

#include <stdbool.h>

#include "base/clock.h"

struct redis_options {
	char	**servers;	/* NULL-terminated; tried in order; owned */
	int	  database;
	char	 *username;	/* "": the default user */
	char	 *password_file;/* "": $CREDENTIALS_DIRECTORY/redis-password, if there */
	usec_t	  timeout;	/* connect, and each command; > 0 */
	bool	  tls;
	char	 *tls_ca;	/* "": the system's */
	char	 *tls_cert;
	char	 *tls_key;
	char	 *tls_name;	/* in the server's certificate; empty: its host */
};

#endif
