#!/bin/sh
# rqctl unlock.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
RQD_SERVER=unix:$SOCK
export RQD_SERVER
fails() { # STATUS REGEX COMMAND...
	_want=$1 _re=$2
	shift 2
	_out=$("$@" 2>&1 </dev/null)
	_status=$?
	is "$_status" "$_want" "status of $*"
	like "$_out" "^rqctl: .*$_re" "words of $*"
}

# -- unlock -------------------------------------------------------------------------

fails 1 'nobody holds lock a' "$RQCTL" unlock a
fails 1 'nobody holds lock a' "$RQCTL" unlock --force -y a
# Values that only look like those of rqctl.
for v in 'abc h 1 nan' 'abc h 1 1e300' 'abc h 1 -5' 'abc h 1' 'abc h x 1' 'abc h 1 5 6' 'ABC h 1 5'; do
	r set Lock:odd "$v" px 60000 >/dev/null
	fails 75 "held by another program: \"$v\"" "$RQCTL" unlock odd
done
r del Lock:odd >/dev/null
r set Lock:a peer px 60000 >/dev/null
fails 75 'held by another program: "peer"; --force breaks it' "$RQCTL" unlock a
fails 64 'add -y' "$RQCTL" unlock --force a
is "$("$RQCTL" unlock --force -n a) $(r exists Lock:a)" 'would break a 1' 'dry run'
is "$("$RQCTL" unlock --force -y a) $(r exists Lock:a)" 'broke a 0' 'another program'
"$RQCTL" lock a --ttl 3s -- sleep 1000 2>/dev/null & holder=$!
wait_for 30 '[ "$(r exists Lock:a)" = 1 ]'
is "$("$RQCTL" unlock --force -y --json a | tr -d ' \n')" '{"name":"a","broken":1,"dry_run":false}' 'rqctl, JSON'
wait $holder
is $? 76 'its holder is told'
r lpush Lock:list x >/dev/null
fails 65 WRONGTYPE "$RQCTL" unlock list
