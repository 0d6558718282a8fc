#!/bin/sh
# rqctl lock on a Redis Cluster: it follows its key while slots move and masters fail.

# shellcheck source=tests/lib.sh disable=SC2016,SC2154
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

# shellcheck source=tests/fault/cluster.sh
. "$SRCDIR/tests/fault/cluster.sh"

cluster_start 3 1 --cluster-require-full-coverage no
RQD_SERVER=cluster://127.0.0.1:$PORT_n1,127.0.0.1:$PORT_n2,127.0.0.1:$PORT_n3
export RQD_SERVER

is "$("$RQCTL" lock job -- echo ran)" ran 'a command runs under a lock'
is "$(c exists Lock:job)" 0 'which is gone then'

# Each waits until it is told to go.
hold() {	# NAME [OPTION...]
	_lock=$1
	shift
	touch "$T/hold"
	"$RQCTL" lock "$_lock" "$@" -- sh -c "touch '$T/held'; while [ -e '$T/hold' ]; do sleep 0.2; done; echo done" \
	    >"$T/lock.out" 2>&1 &
	HOLDER=$!
	wait_for 30 '[ -e "$T/held" ]' || note "$(cat "$T/lock.out")"
	rm -f "$T/held"
}
released() {
	rm "$T/hold"
	wait "$HOLDER"
	is "$? $(cat "$T/lock.out")" '0 done' "$1"
}

hold job
"$RQCTL" lock job --wait 0 -- true 2>/dev/null
is $? 75 'held: another one gives up at once'
"$RQCTL" lock job --wait 60s -- echo next >"$T/next" 2>&1 &
NEXT=$!
at=$(owner_of Lock:job)
wait_ok 30 '[ "$(n "$at" client list | grep -c name=rqctl)" -ge 2 ]' 'another one waits'
released 'the first ends'
wait $NEXT
is $? 0 'the next one has it'
like "$(cat "$T/next")" '^next$' 'and runs'

# Renewed every two seconds: at the new master, too.
hold job --ttl 6s
token=$(c get Lock:job)
to=n1
[ "$(owner_of Lock:job)" != n1 ] || to=n2
slot_move Lock:job $to
left() { n "$1" pttl Lock:job; }
wait_for 30 '[ "$(left $to)" -gt 5000 ]'
wait_ok 30 '[ "$(left $to)" -gt 0 ] && [ "$(left $to)" -lt 5000 ]' 'the slot moves: the key is there'
wait_ok 30 '[ "$(left $to)" -gt 5000 ]' 'and is renewed there'
is "$(n $to get Lock:job)" "$token" 'by the same holder'
released 'the command ends'
is "$(c exists Lock:job)" 0 'the lock is released there'

# A slot that stays half moved: a key that is not there, or not any more, is the new master's.
to=n1
[ "$(owner_of Lock:half)" != n1 ] || to=n2
at_target() { printf 'asking\n%s\n' "$1" | n $to | tail -n 1; }
slot_open Lock:half $to
hold half --ttl 6s --wait 30s
is "$(at_target 'exists Lock:half')" 1 'a lock is taken at the new master of a slot that is half moved'
wait_for 30 '[ "$(at_target "pttl Lock:half")" -lt 5000 ]'
wait_ok 30 '[ "$(at_target "pttl Lock:half")" -gt 5000 ]' 'and is renewed there'
released 'the command ends'
is "$(at_target 'exists Lock:half')" 0 'the lock is released there'
slot_move Lock:half $to

hold half --ttl 6s --wait 30s
to=n3
slot_open Lock:half $to
n "$SLOT_FROM" migrate 127.0.0.1 "$(port_of $to)" Lock:half 0 5000 >/dev/null
wait_for 30 '[ "$(at_target "pttl Lock:half")" -lt 5000 ]'
wait_ok 30 '[ "$(at_target "pttl Lock:half")" -gt 5000 ]' 'a held lock whose key alone has moved is renewed'
released 'the command ends'
is "$(at_target 'exists Lock:half')" 0 'the lock is released'
slot_move Lock:half $to

# The replica has the key: written, and waited for.
hold other --ttl 30s
at=$(owner_of Lock:other)
wait_for 30 '[ "$(n "$at" wait 1 100)" -ge 1 ]'
node_kill "$at"
for n in $NODES; do [ "$n" = "$at" ] || { live=$n; break; }; done
ask_live() { redis-cli -c -p "$(port_of "$live")" "$@"; }
wait_ok 60 '[ "$(ask_live pttl Lock:other 2>/dev/null)" -gt 0 ] 2>/dev/null' 'a master dies: its replica has the lock'
# Renewed every ten seconds.
wait_for 60 '[ "$(ask_live pttl Lock:other 2>/dev/null)" -lt 25000 ] 2>/dev/null'
wait_ok 60 '[ "$(ask_live pttl Lock:other 2>/dev/null)" -gt 25000 ] 2>/dev/null' 'and it is renewed there'
released 'the command ends, and nothing was lost'
is "$(ask_live exists Lock:other)" 0 'the lock is released'
