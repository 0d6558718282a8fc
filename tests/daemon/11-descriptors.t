#!/bin/sh
# Standard descriptors that are closed at the start: no file or socket of rqd takes their place.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
QUEUES=q
handler work <<'H'
[ "$(cat)" = message ] && echo out && echo error >&2 && echo "$RQD_ID" >>"$T/ran"
H

# Runs the command with these of the descriptors 0, 1 and 2 closed; its status is in STATUS.
without() {	# DESCRIPTORS COMMAND...
	_closed=$1
	shift
	STATUS=0
	(
		case $_closed in *0*) exec 0<&- ;; *) exec </dev/null ;; esac
		case $_closed in *1*) exec 1>&- ;; *) exec >"$T/1" ;; esac
		case $_closed in *2*) exec 2>&- ;; *) exec 2>>"$T/2.log" ;; esac
		exec timeout 60 "$@"
	) || STATUS=$?
}

# The log cannot be written to /dev/full, and standard error is told.  valgrind itself needs
# the standard descriptors.
for closed in '' 0 1 2 01 02 12 012; do
	for target in stderr /dev/full; do
		rm -f "$T/ran"
		r lpush q message >/dev/null
		without "$closed" "$RQD" -o "redis.server=unix:$SOCK" \
		    -o "log.target=$target" -q q --until-empty -- "$T/work"
		is "$STATUS $(wc -l <"$T/ran")" '0 1' "rqd without \"$closed\", log $target: handles a message"
	done

	# A command that cannot print or read has failed, and says so where it can.
	want=0
	case $closed in *1*) want=74 ;; esac
	without "$closed" "$RQCTL" --server "unix:$SOCK" ping
	is "$STATUS" $want "rqctl ping without \"$closed\": status $want"
	want=0
	case $closed in *0*) want=74 ;; esac
	without "$closed" "$RQCTL" --server "unix:$SOCK" push --lines q
	is "$STATUS" $want "rqctl push without \"$closed\": status $want"
done
is "$(r llen q)" 0 'and has pushed nothing'
like "$(cat "$T/2.log")" 'reason=log_failed target=/dev/full error="No space left' 'standard error is told'
check_keys
check_logs
