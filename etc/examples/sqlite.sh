#!/bin/sh
# Stores the message as a row of an SQLite database, once, by its id.  The
# message is a JSON object with an id.  Nothing of it is pasted into SQL: SQLite
# reads it itself, from standard input, which is a file in memory.
#
#	CREATE TABLE orders (id TEXT PRIMARY KEY, body TEXT NOT NULL);
#
#	queue "orders" {
#	    command = {"/usr/local/bin/sqlite.sh"}
#	    user    = "orders"
#	    env     = {"DATABASE=/var/lib/orders/orders.db"}
#	}
#
# DATABASE	the file

set -u

ok=$(sqlite3 -batch :memory: "
    SELECT CASE WHEN json_valid(m) THEN json_extract(m, '\$.id') IS NOT NULL END
    FROM (SELECT CAST(readfile('/dev/stdin') AS TEXT) AS m);")
case $? in
0) ;;
126 | 127) exit 127 ;;
*) exit 75 ;;
esac
if [ "$ok" != 1 ]; then
	echo 'not a JSON object with an id' >&2
	exit 65
fi

# WHERE true keeps ON CONFLICT from being read as the ON of a join.
sqlite3 -batch -bail -cmd '.timeout 10000' "${DATABASE:?}" "
    INSERT INTO orders (id, body)
    SELECT json_extract(m, '\$.id'), m
    FROM (SELECT CAST(readfile('/dev/stdin') AS TEXT) AS m) WHERE true
    ON CONFLICT (id) DO NOTHING;" || exit 75
