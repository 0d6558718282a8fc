#!/bin/sh
# A key of the wrong type suspends only its queue, loses nothing, and is reported.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
handler fine <<'H'
echo "$RQD_QUEUE $RQD_ID" >>"$T/ran"
H
for k in aBACKUP bCONTEXT cDELIVERY dRETRY; do r set $k x >/dev/null; done
r lpush e '{"id":"before"}' >/dev/null
rqd_start <<C
queue "a" { command = {"$T/fine"} }
queue "b" { command = {"$T/fine"} }
queue "c" { command = {"$T/fine"} }
queue "d" { command = {"$T/fine"} }
queue "e" { command = {"$T/fine"} }
C
for q in a b c d e; do r lpush $q "{\"id\":\"$q\"}" >/dev/null; done
ok 'log_wait 10 "event=acked queue=e id=e "' 'a queue in order goes on'
for q in a b c d; do
	ok "log_wait 15 'event=suspended queue=$q '" "queue $q is suspended"
	is "$(r llen $q)" 1 'its message is where it was'
done
like "$(log_lines 'queue=a ' | grep -v debug)" 'WRONGTYPE|aBACKUP|type' 'the log says what is wrong'
sleep 1
ok '[ "$(log_count "queue=a .*(WRONGTYPE|type)")" -lt 5 ]' 'and does not repeat it'
r del aBACKUP bCONTEXT cDELIVERY dRETRY >/dev/null
for q in a b c d; do
	ok "log_wait 70 'event=acked queue=$q id=$q '" "queue $q goes on when it is put right"
done

# -- a string where the list should be -------------------------------------------------
r set e x >/dev/null
ok 'log_wait 20 "event=suspended queue=e "' 'the queue itself of a wrong type'
r del e >/dev/null
r lpush e '{"id":"again"}' >/dev/null
ok 'log_wait 70 "event=acked queue=e id=again "' 'goes on too'

# -- a dead letter that cannot be written ------------------------------------------------
handler bad <<'H'
exit 65
H
config_write rqd <<C
queue "f" { command = {"$T/bad"} }
C
rqd_signal HUP
log_wait 10 event=reloaded
r set fDEAD x >/dev/null
before=$(date +%s)
r lpush f '{"id":"kept"}' >/dev/null
wait_for 15 '[ "$(r zcard fRETRY)" -eq 1 ]'
is "$(r zcard fRETRY)" 1 'a dead letter that cannot be written waits in RETRY'
due=$(r --raw zrange fRETRY 0 0 withscores | sed -n 2p | cut -d . -f 1)
ok "[ $((due - before)) -ge 59 ] && [ $((due - $(date +%s))) -le 61 ]" "due in a minute ($((due - before)) s)"
is "$(r --raw hvals fCONTEXT)" '{"id":"kept"}' 'whole'

# -- the end: what cannot be reclaimed now is due when its lease ends -----------------------
r set fBACKUP x >/dev/null
r lpush f '{"id":"later"}' >/dev/null
log_wait 20 "event=suspended queue=f "
begun=$(msec)
rqd_stop
took=$(($(msec) - begun))
ok "[ $took -lt 15000 ]" "a stop with nothing in flight does not wait for drain_timeout ($took ms)"
is "$(log_lines 'event=draining' | wc -l) $(sed -n '/event=draining/,$p' "$T/rqd.log" | grep 'level=warn' | grep -vc 'warning="tick: ')" '1 0' 'and warns of nothing but the type'
r del fDEAD fBACKUP >/dev/null
rqd_start <<C
queue "f" { command = {"$T/fine"} }
C
ok 'log_wait 20 "event=acked queue=f id=later "' 'the message is there'
rqd_stop
