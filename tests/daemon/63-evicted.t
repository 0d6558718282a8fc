#!/bin/sh
# If Redis evicts the keys that idle queues armed (tracking-table-max-keys), no daemon
# spins: it polls the queues, logs that once, and stops polling when the cause is over.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start --appendonly no --tracking-table-max-keys 2
handler fine <<'H'
exit 0
H
rqd_start <<C
queue "a" { command = {"$T/fine"} }
queue "b" { command = {"$T/fine"} kind = "list" }
queue "c" { command = {"$T/fine"} kind = "unique" key = "c" }
queue "d" { command = {"$T/fine"} kind = "channel" }
C
scripts() { r info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p'; }
in_two_seconds() {	# on a busy machine it may be more
	_before=$(scripts) _begin=$(msec)
	sleep 2
	echo $((($(scripts) - _before) * 2000 / ($(msec) - _begin - 200)))
}

ok 'log_wait 30 "event=warning .*tracking-table-max-keys"' 'the log says what to change'
sent=$(in_two_seconds)
note "$sent scripts in 2 s"
ok '[ "$sent" -le 100 ]' 'idle queues are polled, not spun upon'
r lpush a '{"id":"a1"}' >/dev/null
r lpush b b1 >/dev/null
r zadd c 0 c1 >/dev/null
for q in a b c; do ok "log_wait 30 'event=acked queue=$q '" "a message is found ($q)"; done
r set aPAUSED x >/dev/null
ok 'log_wait 30 "event=paused queue=a"' 'and so is a pause'
r del aPAUSED >/dev/null
ok 'log_wait 30 "event=unpaused queue=a"' 'and its end'
sent=$(in_two_seconds)
ok '[ "$sent" -le 100 ]' 'also afterwards'
is "$(log_count 'event=warning .*tracking-table-max-keys')" 1 'it is said once'

r config set tracking-table-max-keys 0 >/dev/null
polls() { [ "$(in_two_seconds)" -gt 1 ]; }
wait_ok 60 '! polls' 'nobody polls when Redis keeps the keys again'
