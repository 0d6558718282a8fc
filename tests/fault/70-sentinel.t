#!/bin/sh
# A server dies and Sentinel promotes its replica, which lacks the latest writes.  rqd
# knows both addresses.  Messages in flight that the new server knows come to their end.
# Those that had not reached it are forgotten: their handlers are ended, and they are stale.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

# shellcheck source=tests/fault/sentinel.sh
. "$SRCDIR/tests/fault/sentinel.sh"

A=$(free_port) B=$(free_port) S=$(free_port)

a() { $ASK -p "$A" "$@"; }
b() { $ASK -p "$B" "$@"; }

server a "$A"
server b "$B" --replicaof 127.0.0.1 "$A"
wait_for 20 'b info replication | grep -q master_link_status:up'
sentinel 1 "$S" "$A" 1
wait_for 30 '$ASK -p "$S" sentinel replicas m | grep -q "$B"'

# Each waits until it is told to go; "bad" ones fail at first, "dead" ones for good.
handler work <<'H'
echo "$RQD_ID $RQD_ATTEMPT" >>"$T/ran"
while [ -e "$T/hold" ]; do sleep 0.2; done
case $RQD_ID in
*bad*) [ "$RQD_ATTEMPT" -ge 2 ] ;;
*dead*) exit 65 ;;
esac
H
touch "$T/hold" "$T/ran"
rqd_start <<C
redis { server = {"127.0.0.1:$A", "127.0.0.1:$B"} timeout = 2s }
queue "q" { command = {"$T/work"} concurrency = 9 lease = 6s backoff = 100ms }
C
log_wait 30 event=redis_up
push() { for id in "$@"; do echo "lpush q '{\"id\":\"$id\"}'"; done | a >/dev/null; }

push known-good known-bad known-dead
wait_for 30 '[ "$(wc -l <"$T/ran")" -eq 3 ]'
wait_ok 30 '[ "$(b zcard qBACKUP)" -eq 3 ]' 'the replica knows of three in hand'
a acl setuser default -psync -sync >/dev/null	# and it will hear no more
a client kill type replica >/dev/null
push new-good new-bad new-dead shared shared shared
wait_for 30 '[ "$(wc -l <"$T/ran")" -eq 9 ]'
push waits1 waits2
is "$(a zcard qBACKUP) $(a llen q)" '9 2' 'six more in hand, and two that wait, it does not know'
kill -KILL "$PID_a"
wait_ok 90 'b role | grep -q master' 'Sentinel promotes it'
wait_ok 30 'log_lines event=redis_up | grep -q ":$B "' 'rqd finds the new server'
is "$(b llen q)" 0 'what waited is gone: nobody has it'

wait_ok 30 '[ "$(log_count event=stale)" -eq 6 ]' 'nor the six that were in hand: their handlers are ended'
like "$(log_lines event=stale)" 'id=new-bad' 'the log names them'

rm "$T/hold"
for id in known-good known-bad; do
	wait_ok 20 "log_count 'event=acked queue=q id=$id ' >/dev/null" "$id is handled"
done
wait_ok 20 "b xrange qDEAD - + | grep -q known-dead" 'known-dead is a dead letter'
wait_ok 20 '[ "$(b exists qBACKUP qRETRY qCONTEXT qDELIVERY)" -eq 0 ]' 'nothing is left'
is "$(sort "$T/ran" | tr '\n' ' ')" 'known-bad 1 known-bad 2 known-dead 1 known-good 1 new-bad 1 new-dead 1 new-good 1 shared 1 shared 1 shared 1 ' \
    'each ran as often as it had to'
is "$(b xlen qDEAD) $(log_count 'event=(acked|retry|dead).*id=(new|shared|waits)')" '1 0' 'and of the others nothing was written'

# The old server comes back and is a replica: rqd stays where it is.
b lpush q '{"id":"later"}' >/dev/null
wait_ok 20 'log_count "event=acked queue=q id=later " >/dev/null' 'work goes on'
