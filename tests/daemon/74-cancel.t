#!/bin/sh
# rqctl cancel: a message ends wherever it is; a running one within a second.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
# Says that it began, and what it ended by.
handler hold <<'H'
trap 'echo term >> "$T/ends"; exit 0' TERM
echo "$RQD_ID" >> "$T/began"
until [ -e "$T/release" ]; do sleep 0.2; done
H
handler stubborn <<'H'
trap '' TERM
echo "$RQD_ID" >> "$T/ignores"
until [ -e "$T/release" ]; do sleep 0.2; done
H
handler fails <<'H'
exit 1
H
rqd_start one <<C
name = "web1"
log { level = "debug" }
queue "q" { command = {"$T/hold"} concurrency = 4 lease = 60s kill_grace = 60s }
queue "s" { command = {"$T/stubborn"} lease = 60s kill_grace = 8s }
queue "f" { command = {"$T/fails"} backoff = 1h }
queue "u" { kind = "unique" key = "u" command = {"$T/hold"} concurrency = 2 }
queue "e" { kind = "stream" command = {"$T/hold"} }
queue "l" { kind = "list" command = {"$T/hold"} }
C
log_wait 30 event=ready 1 one
INSTANCE=$(log_lines event=started one | log_field instance)
wait_for 30 '[ "$(r pubsub numsub "rqd:control:$INSTANCE" | tail -1)" = 1 ]'
ctl() { "$RQCTL" -c "$T/one.conf" "$@"; }
# Prints how many messages each key of a queue holds.
left() { echo "$(r llen "$1") $(r zcard "$1BACKUP") $(r hlen "$1CONTEXT") $(r zcard "$1RETRY") $(r xlen "$1DEAD")"; }
began() { n=$(grep -cx -e "$1" "$T/began" 2>/dev/null); [ "${n:-0}" -ge "${2:-1}" ]; }

# -- in flight -----------------------------------------------------------------------

r lpush q '{"id":42}' >/dev/null
wait_for 30 'began 42'
start=$(msec)
is "$(ctl cancel q 42)" "cancelled: 42 of q, running on $INSTANCE" 'in flight: it is said where'
wait_for 30 '[ -s "$T/ends" ]'
took=$(($(msec) - start))
# Without the hint it would take 10 s, until the next renewal.
ok "[ $took -lt 8000 ]" "its handler gets SIGTERM at once ($took ms)"
log_wait 30 'event=cancelled queue=q id=42 .*reason=cancelled' 1 one
is "$(left q)" '0 0 0 0 0' 'it is gone, whatever status its handler ended with'
is "$(log_count 'event=acked queue=q' one)" 0 'and is not acked'
is "$(ctl cancel q 42 2>&1; echo $?)" 'rqctl: q has no message 42
1' 'the second time it is not there'

r lpush q '{"id":43,"x":1}' >/dev/null
wait_for 30 'began 43'
is "$(ctl cancel q 43 --dead)" "cancelled as a dead letter: 43 of q, running on $INSTANCE" '--dead'
log_wait 30 'event=dead queue=q id=43 .*reason=cancelled' 1 one
like "$(log_lines 'event=dead queue=q id=43' one)" " by=[^ @]+@$(hostname)" 'the log says who did it'
is "$(left q)" '0 0 0 0 1' 'it is a dead letter'
is "$(ctl dead show q 43 --raw)" '{"id":43,"x":1}' 'the whole message'
like "$(r xrange qDEAD - +)" 'reason
cancelled
attempts
0' 'its reason; no attempt is counted'
like "$(r xrange qDEAD - +)" "error
cancelled by [^ @]+@$(hostname)" 'its letter says who did it'
is "$(ctl dead list q --reason cancelled --json | grep -c '"reason": "cancelled"')" 1 'and is found by that'

# A handler that goes on gets SIGKILL after kill_grace; cancelled twice meanwhile.
r lpush s '{"id":1}' >/dev/null
wait_for 30 '[ -s "$T/ignores" ]'
is "$(ctl cancel s 1 --dead --json)" '{"queue":"s","tag":"1","place":"running","daemon":"'"$INSTANCE"'","dead":true,"retry":false,"dry_run":false}' '--json'
like "$(ctl show s 1)" ", cancelled by [^ @]+@$(hostname)" 'rqctl show says who did it'
is "$(ctl cancel s 1 2>&1)" "cancelled: 1 of s, running on $INSTANCE" 'again during kill_grace'
log_wait 30 'event=cancelled queue=s id=1 .*signal=SIGKILL .*reason=cancelled by=' 1 one
is "$(left s)" '0 0 0 0 0' 'the later mode counts'

# Equal ids, and one of them by its tag.
r lpush q '{"id":7,"n":1}' '{"id":7,"n":2}' '{"id":7,"n":3}' >/dev/null
wait_for 30 'began 7 3'
TAG=$(r zrange qBACKUP 0 -1 | grep '#' | head -1)
is "$(ctl cancel q "$TAG")" "cancelled: $TAG of q, running on $INSTANCE" 'one of several, by its tag'
log_wait 30 'event=cancelled queue=q id=7' 1 one
is "$(left q | cut -c1-5)" '0 2 2' 'the others go on'
is "$(ctl cancel q 7 | grep -c running)" 2 'all others by their id'
log_wait 30 'event=cancelled queue=q id=7' 3 one

# A message of a queue, in line behind: -n changes nothing.
r lpush q '{"id":8}' >/dev/null
wait_for 30 'began 8'
is "$(ctl cancel q 8 -n)" "would be cancelled: 8 of q, running on $INSTANCE" 'a dry run'
is "$(r hget qDELIVERY 8 | grep -c '!')" 0 'marks nothing'
r lpush q '{"id":9}' >/dev/null
wait_for 30 'began 9'
is "$(ctl show q 9 | grep -c cancelled)" 0 'show, before'

# -- waiting, delayed, retries --------------------------------------------------------

ctl pause q --reason test >/dev/null
wait_for 30 'ctl status q | grep -q paused'
i=0
while [ $i -lt 30 ]; do printf '{"id":"w%d"}\n' $i; i=$((i + 1)); done | ctl push q --lines >/dev/null
is "$(ctl cancel q w5 w29)" 'cancelled: w5 of q, waiting
cancelled: w29 of q, waiting' 'waiting'
is "$(r llen q) $(r lrange q 0 -1 | grep -c -e w5 -e w29)" '28 0' 'these alone are gone'
is "$(ctl cancel q w28 --scan 10 2>&1; echo $?)" 'rqctl: q has no message w28 among the next 10 of 28 that wait; --scan N looks at more
1' 'beyond --scan'
is "$(ctl cancel q w28 --scan 0 2>&1; echo $?)" 'rqctl: --scan: "0" is not a number from 1 to 300000
64' '--scan has a range'
is "$(ctl cancel q w0 --dead)" 'cancelled as a dead letter: w0 of q, waiting' 'waiting, --dead'
like "$(r xrevrange qDEAD + - count 1)" 'reason
cancelled
attempts
0
status

error
cancelled by .*@' 'the letter says who did it'
r zadd qDELAYED 4000000000 '{"id":"d1"}' 4000000000 '{"id":"d2"}' >/dev/null
ctl push q --delay 1h '{"id":"p1"}' >/dev/null
TAG=$(r zrange qRETRY 0 -1)
is "$(ctl cancel q d1 p1 d1 2>&1)" "cancelled: d1 of q, delayed
cancelled: $TAG of q, retry" 'delayed, and by push --delay'
is "$(r zrange qDELAYED 0 -1)" '{"id":"d2"}' 'of QDELAYED'
r lpush f '{"id":3}' >/dev/null
log_wait 30 'event=retry queue=f' 1 one
is "$(ctl cancel f 3)" 'cancelled: 3 of f, retry' 'a retry'
is "$(left f)" '0 0 0 0 0' 'nothing is left of it'
is "$(ctl cancel q w1 nothing w2 2>&1; echo $?)" 'cancelled: w1 of q, waiting
cancelled: w2 of q, waiting
rqctl: q has no message nothing
1' 'one of three is not there'
r del q >/dev/null
is "$(ctl cancel q 8 9 | wc -l)" 2 'in flight on a paused queue'
log_wait 30 'event=cancelled queue=q id=9' 1 one
ctl resume q >/dev/null

# -- other kinds -------------------------------------------------------------------------

r zadd u 0 a 4000000000 later >/dev/null
wait_for 30 'began a'
r zadd u 0 a >/dev/null
is "$(ctl cancel u a later)" "cancelled: a of u, waiting
cancelled: later of u, waiting
cancelled: a of u, running on $INSTANCE" 'unique: in flight and enqueued again'
log_wait 30 'event=cancelled queue=u id=a' 1 one
is "$(r exists u uBACKUP uRETRY uCONTEXT)" 0 'unique: nothing is left'
r zadd u 0 a >/dev/null
wait_for 30 'began a 2'
is "$(ctl cancel u a)" "cancelled: a of u, running on $INSTANCE" 'unique: enqueued after that'
r zadd u 0 a >/dev/null
wait_for 30 'began a 3'
ctl cancel u a >/dev/null
log_wait 30 'event=cancelled queue=u id=a' 3 one

ENTRY=$(r xadd e '*' message m1)
SECOND=$(r xadd e '*' message m2)
wait_for 30 'began "$ENTRY"'
is "$(ctl cancel e "$SECOND" 2>&1; echo $?)" "rqctl: $SECOND of e cannot be cancelled: an entry of a stream that was never delivered stays there
1" 'stream: never delivered'
is "$(ctl cancel e 1-1 2>&1; echo $?)" 'rqctl: e has no message 1-1
1' 'stream: no such entry'
is "$(ctl cancel e "$ENTRY")" "cancelled: $ENTRY of e, running on $INSTANCE" 'stream: in flight'
wait_for 30 'began "$SECOND"'
is "$(r xpending e rqd | head -1)" 1 'stream: it is acknowledged'
is "$(ctl cancel e "$ENTRY" 2>&1; echo $?)" "rqctl: $ENTRY of e is done: it is acknowledged
1" 'stream: done'
ctl cancel e "$SECOND" >/dev/null
log_wait 30 'event=cancelled queue=e' 2 one
like "$(ctl cancel l 1 2>&1; echo $?)" '^rqctl: .*list.*
64$' 'a kind that keeps nothing: a clear error'

# -- another consumer's ------------------------------------------------------------------

r zadd qBACKUP "$(r time | head -1)" 77 >/dev/null
r hset qCONTEXT 77 '{"id":77}' >/dev/null
is "$(ctl cancel q 77 2>&1; echo $?)" 'rqctl: 77 of q cannot be cancelled: another consumer than rqd has it
1' "a foreign consumer's"
r zrem qBACKUP 77 >/dev/null
r hdel qCONTEXT 77 >/dev/null

r lpush q 'no id' >/dev/null
is "$(ctl cancel q '' 2>&1; echo $?)" 'rqctl: an id or a group is empty
64' 'an empty id is none, and not that of all messages without one'

# -- what nobody should send ---------------------------------------------------------------

r lpush q '{"id":50}' >/dev/null
wait_for 30 'began 50'
for hint in renew 'renew ' 'renew nothing' 'renew q' beat 'beat now'; do
	is "$(r publish "rqd:control:$INSTANCE" "$hint")" 1 "heard: $hint"
done
calls() { r info commandstats | tr -d '\r' | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p'; }
before=$(calls)
start=$(msec)
i=0
while [ $i -lt 3000 ]; do echo "publish rqd:control:$INSTANCE \"renew q\""; i=$((i + 1)); done | r >/dev/null
wait_for 30 '[ "$(calls)" -gt "$before" ]'
# One in 100 ms; ticks and the like go beside them.
took=$(($(msec) - start))
made=$(($(calls) - before))
ok "[ $made -lt $((40 + took / 50)) ]" "3000 hints are few renewals ($made calls in $took ms)"
is "$(log_count 'event=cancelled queue=q id=50' one)" 0 'a hint alone cancels nothing'
ctl cancel q 50 >/dev/null
log_wait 30 'event=cancelled queue=q id=50' 1 one
rqd_stop one
is "$(r hget qSTATS cancelled)" 8 'the fleet counts those that were delivered'
