#!/bin/sh
# Stores the message as a row of a PostgreSQL database, once, by its id.  The
# message is a JSON object with an id.  It goes into SQL as a quoted variable.
#
#	CREATE TABLE orders (id text PRIMARY KEY, body jsonb NOT NULL);
#
#	queue "orders" {
#	    command  = {"/usr/local/bin/postgres.sh"}
#	    user     = "orders"
#	    env      = {"PGHOST=db.example.org", "PGDATABASE=shop"}
#	    env_file = "/etc/rqd/orders.env"	# PGPASSWORD=...
#	}

set -u

jq -es 'length == 1 and (.[0] | type == "object" and .id != null)' >/dev/null ||
    case $? in
    [1245]) echo 'not a JSON object with an id' >&2; exit 65 ;;
    *) exit ;;				# jq is missing or was killed
    esac

# Standard input is a file: opened again, it begins at its beginning.
exec 3</dev/stdin
psql --quiet --no-psqlrc --no-password --set ON_ERROR_STOP=1 <<'SQL'
\set message `cat <&3`
INSERT INTO orders (id, body)
SELECT (:'message'::jsonb)->>'id', :'message'::jsonb
ON CONFLICT (id) DO NOTHING;
SQL
case $? in
0) exit 0 ;;
126 | 127) exit 127 ;;
*) exit 75 ;;
esac
