#!/bin/sh
# A daemon that was stopped for longer than the lease: another one runs its message.
# When it goes on, it ends its handler, and writes nothing for it, whatever its exit
# status is.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
# The first run waits to be ended, and says then that the message is no use.
handler work <<'H'
echo "$RQD_ID $RQD_ATTEMPT" >>"$T/ran"
trap 'echo told >"$T/told"; exit 65' TERM
if mkdir "$T/first" 2>/dev/null; then
	sleep 600 &
	wait
fi
while [ -e "$T/hold" ]; do sleep 0.2; done
H
touch "$T/hold"
conf() {
	cat <<C
queue "q" { command = {"$T/work"} lease = 3s max_attempts = 1 }
C
}
conf >"$T/start"
rqd_start one <"$T/start"
log_wait 10 event=redis_up 1 one
r lpush q '{"id":"m"}' >/dev/null
wait_for 10 '[ -d "$T/first" ]'
conf >"$T/start"
rqd_start two <"$T/start"
log_wait 10 event=redis_up 1 two
rqd_signal STOP one
wait_ok 40 '[ "$(wc -l <"$T/ran")" -eq 2 ]' 'another daemon runs what a stopped one has in hand'
rqd_signal CONT one
wait_ok 20 '[ -s "$T/told" ]' 'the stopped one goes on, and ends its handler'
ok 'log_wait 10 "level=warn event=stale queue=q id=m attempt=1 " 1 one' 'whose result is stale'
is "$(r exists qDEAD qRETRY) $(r zcard qBACKUP)" '0 1' 'and has not been written'
rm "$T/hold"
ok 'log_wait 10 "event=acked queue=q id=m " 1 two' 'the result of the other one is'
is "$(tr '\n' , <"$T/ran")" 'm 1,m 1,' 'no attempt was counted'
is "$(cat "$T/one.log" "$T/two.log" | grep -cE 'event=(acked|dead|retry|returned) ')" 1 'there is one outcome'
wait_ok 15 'no_keys' 'no key is left but QSTATS'
rqd_stop one
rqd_stop two
is "$(r hmget qSTATS acked stale dead requeued | tr '\n' ' ')" '1 1  1 ' 'the totals'
