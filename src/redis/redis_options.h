/*
 * The options of connections to Redis: a plain struct, which the configuration fills.
 * policy/config.c frees the strings.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

struct sentinel;

struct redis_options {
	char	**servers;	/* NULL-terminated; tried in order; owned */
	char	**sentinels;	/* NULL-terminated; { NULL }: the servers above; with ports */
	char	 *master;	/* as the Sentinels call it */
	char	 *sentinel_username;
	char	 *sentinel_password_file;	/* "": no password */
	bool	  is_sentinel;	/* the servers are Sentinels */
	bool	  any_role;	/* a replica may be used, too */
	bool	  is_node;	/* the servers are nodes of a cluster */
	struct sentinel *sentinel;	/* set at run time: names the master; NULL: use servers */
	char	**clusters;	/* nodes of a cluster, to ask for all; NULL-terminated, with ports;
				 * NULL or { NULL }: no cluster; owned */
	int	  database;
	char	 *username;	/* "": the default user */
	char	 *password_file;/* "": $CREDENTIALS_DIRECTORY/redis-password, if there */
	usec_t	  timeout;	/* to connect, and of each command; > 0 */
	bool	  tls;
	char	 *tls_ca;	/* "": the system's */
	char	 *tls_cert;
	char	 *tls_key;
	char	 *tls_name;	/* in the server's certificate; empty: its host */
};
