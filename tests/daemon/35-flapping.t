#!/bin/sh
# A connection that keeps ending: the log reports it in a bounded number of records, and
# has the final state.  rqd does not ask a server that refuses writes ten times a
# second.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
touch "$T/ran"
handler work <<'H'
echo "$RQD_ID" >>"$T/ran"
H
r acl setuser worker on nopass '~*' '&*' +@all -info -role >/dev/null
rqd_start <<C
redis { server = "unix:$SOCK" username = "worker" timeout = 2s }
queue "q" { command = {"$T/work"} lease = 3s }
C
log_wait 10 event=redis_up
connections() { r info stats | sed -n 's/^total_connections_received:\([0-9]*\).*/\1/p'; }
records() { log_count 'event=redis_(up|down|warning)'; }

# Ten seconds of a replica that cannot be told from a master.
r replicaof 127.0.0.1 1 >/dev/null
r config set replica-serve-stale-data yes >/dev/null
log_wait 10 'event=redis_down.*READONLY'
begin=$(connections) start=$(msec)
sleep 10
# One connection is redis-cli's of this line; the daemon's second one may be made anew, too.
made=$(($(connections) - begin))
passed=$(($(msec) - start))
note "$made connections in $passed ms"
ok "[ $made -le $((45 * passed / 10000)) ]" 'attempts are paced'
r replicaof no one >/dev/null
r lpush q '{"id":1}' >/dev/null
ok 'wait_for 10 "grep -q 1 \"\$T/ran\""' 'and work goes on when it is a master again'

# Fifteen seconds in which every connection is ended at once.
end=$(($(msec) + 15000))
while [ "$(msec)" -lt $end ]; do
	r client kill user worker >/dev/null
	sleep 0.05
done
# 30 at once, and then one in 15 s.
note "$(records) records"
ok "[ $(records) -le $((36 + ($(msec) - start) / 15000)) ]" 'the log stays short'
ok 'log_wait 30 "event=redis_up.* changes=[0-9]"' 'and says in the end what is true'
r lpush q '{"id":2}' >/dev/null
ok 'wait_for 10 "grep -q 2 \"\$T/ran\""' 'as work does'
like "$(grep -E 'event=redis_(up|down)' "$T/rqd.log" | tail -n 1)" 'event=redis_up' 'the last record is right'
