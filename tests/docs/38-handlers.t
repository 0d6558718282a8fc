#!/bin/sh
# Every handler that a reader may copy, where something is wrong: an empty message, one that is
# not JSON, lines of others that look like result lines, a program that is missing or killed.
# handlers.py finds them.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

[ "$SLOW" -eq 1 ] || skip_all 'not with sanitizers: what is tested are handlers, not rqd'
command -v python3 >/dev/null || skip_all 'no python3'
command -v jq >/dev/null || skip_all 'no jq'
python3 "$SRCDIR/tests/docs/handlers.py" "$RQCTL" "$SRCDIR" "$T" >"$T/tap"
status=$?
grep -v '^1\.\.' "$T/tap"
TESTS_RUN=$(grep -cE '^(not )?ok ' "$T/tap")
TESTS_FAILED=$(grep -c '^not ok ' "$T/tap")
ok '[ "$status" -eq 0 ]' 'all of them'

# The bulk load of rqd-handler(7): no line hides another of its batch.
if command -v sqlite3 >/dev/null; then
	redis_start
	mkdir -m 777 "$T/clicks"
	sqlite3 "$T/clicks/clicks.db" 'CREATE TABLE clicks (id, place)'
	chmod 666 "$T/clicks/clicks.db"
	r lpush clicks '1,Bonn' '"2,Ulm' "3,'Rome" '\.' '5,"Kiel"' >/dev/null
	sed -n '/^\.Sh BATCHES/,/^\.Ed/p' "$SRCDIR/man/rqd-handler.7" | sed -n '/^queue "clicks"/,/^}/p' |
	    sed "s|/var/lib|$T|; /^    user /d; s|\\\\e|\\\\|g" >"$T/queue"
	rqd_start <<C
defaults { $AS }
$(cat "$T/queue")
C
	log_wait 20 'event=acked queue=clicks .*batch=5'
	is "$(sqlite3 "$T/clicks/clicks.db" 'SELECT group_concat(id) FROM clicks')" '1,"2,3,\.,5' 'a batch: a row for each message'
fi
