#!/bin/sh
# QPAUSED stops deliveries everywhere, at once, with or without a TTL.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
handler work <<'H'
echo "$RQD_ID" >>"$T/began"
while [ -e "$T/hold" ]; do sleep 0.2; done
echo "$RQD_ID" >>"$T/ran"
H
rqd_start <<C
queue "q" { command = {"$T/work"} }
C

# One that is running goes on.
touch "$T/hold"
r lpush q '{"id":1}' >/dev/null
wait_for 10 '[ -s "$T/began" ]'
r set qPAUSED 'me: maintenance' >/dev/null
r lpush q '{"id":2}' >/dev/null
rm "$T/hold"
ok 'log_wait 10 "event=acked queue=q id=1 "' 'a running handler finishes in a paused queue'
ok 'log_wait 15 "event=paused queue=q"' 'the log says paused'
sleep 1
is "$(cat "$T/began")" 1 'nothing is delivered while paused'
is "$(r llen q)" 1 'the message waits in its list'
r del qPAUSED >/dev/null
ok 'log_wait 10 "event=acked queue=q id=2 "' 'it runs when the key is gone'
ok 'log_wait 10 "event=unpaused queue=q"' 'the log says unpaused'

start=$(msec)
r set qPAUSED x px 1500 >/dev/null
r lpush q '{"id":3}' >/dev/null
ok 'log_wait 15 "event=acked queue=q id=3 "' 'the TTL ends it'
took=$(($(msec) - start))
ok "[ $took -ge 1300 ]" "and not before ($took ms)"

ctl pause q --reason tea >"$T/ctl.out" 2>&1
is "$?" 0 'rqctl pause'
like "$(r get qPAUSED)" tea 'the key holds the reason'
r lpush q '{"id":4}' >/dev/null
sleep 0.5
ok '! log_lines "id=4 " >/dev/null' 'paused'
ctl resume q >"$T/ctl.out" 2>&1
is "$?" 0 'rqctl resume'
ok 'log_wait 10 "event=acked queue=q id=4 "' 'and resumed'
