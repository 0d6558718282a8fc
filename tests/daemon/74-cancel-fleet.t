#!/bin/sh
# rqctl cancel, while the daemon receives no hints, dies, drains, or has a persistent
# handler.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
handler hold <<'H'
trap 'exit 0' TERM
echo "$RQD_ID" >> "$T/began"
until [ -e "$T/release" ]; do sleep 0.2; done
H
handler stubborn <<'H'
trap 'echo "$RQD_ID" >> "$T/terms"' TERM
echo "$RQD_ID" >> "$T/began"
until [ -e "$T/release" ]; do sleep 0.2; done
H
# Answers ok, but of p... only when it is told to.
handler answers <<'H'
trap 'exit 0' TERM
while read -r n attempt length id && IFS= read -r message; do
	echo "$id" >> "$T/began"
	case $id in p*) while sleep 0.2; do [ ! -e "$T/release" ] || break; done ;; esac
	echo "$n ok"
done
H
began() { n=$(grep -cx -e "$1" "$T/began" 2>/dev/null); [ "${n:-0}" -ge "${2:-1}" ]; }
ctl() { "$RQCTL" -c "$T/one.conf" "$@"; }
nothing() { [ "$(r exists "$1" "$1BACKUP" "$1RETRY" "$1CONTEXT")" = 0 ]; }
SECTIONS="queue \"q\" { command = {\"$T/hold\"} lease = 60s kill_grace = 1s }
queue \"s\" { command = {\"$T/stubborn\"} lease = 6s kill_grace = 60s }
queue \"p\" { command = {\"$T/answers\"} mode = \"persistent\" framing = \"line\" pipeline = 3 }"

# -- a daemon that may not subscribe to its channel ----------------------------------------

r acl setuser few on nopass '~*' +@all resetchannels '&__redis__:invalidate' >/dev/null
rqd_start one <<C
name = "web1"
redis { server = "unix:$SOCK" username = "few" }
$SECTIONS
C
log_wait 30 event=ready 1 one
log_wait 30 'event=warning .*NOPERM.*control channel' 1 one
r lpush q '{"id":1}' >/dev/null
wait_for 30 'began 1'
start=$(msec)
said=$("$RQCTL" --server "unix:$SOCK" cancel q 1 2>&1)
like "$(echo "$said" | tr '\n' ';')" '^cancelled: 1 of q, running on web1[^;]*;rqctl: web1[^;]* does not receive hints: it ends the handler within 10 s; if it is dead:;rqctl: 1: the next daemon that serves q drops it when its lease has ended;$' 'it is said'
log_wait 60 'event=cancelled queue=q id=1 ' 1 one
took=$(($(msec) - start))
ok "[ $took -lt 16000 ]" "the next renewal tells it ($took ms)"
ok 'nothing q' 'and it is gone'
is "$(log_count 'event=warning .*NOPERM' one)" 1 'the log says once that hints do not come'

# -- a drain ------------------------------------------------------------------------------

r lpush q '{"id":2}' >/dev/null
wait_for 30 'began 2'
"$RQCTL" --server "unix:$SOCK" cancel q 2 >/dev/null 2>&1
rqd_stop one
is "$(log_count 'event=cancelled queue=q id=2 .*reason=cancelled' one)" 1 'cancelled, then the daemon drains'
ok 'nothing q' 'it is not given back'

# -- it dies --------------------------------------------------------------------------------

rqd_start one <<C
name = "web1"
$SECTIONS
C
log_wait 30 event=ready 1 one
r lpush q '{"id":"k"}' >/dev/null
wait_for 30 'began k'
rqd_kill9 one
cancel_k() { ctl cancel q k 2>&1 | sed 's/web1[^ ]*/WEB1/;s/ends in [0-9.]*s;/ends in N s;/'; }
is "$(cancel_k)" 'cancelled: k of q, running on WEB1
rqctl: WEB1 does not receive hints: it ends the handler within 10 s; if it is dead:
rqctl: k: its lease ends in N s; the next daemon that serves q then drops it' 'a heartbeat outlives its daemon: both are said'
for k in $(r --raw keys 'rqd:daemon:*'); do r del "$k" >/dev/null; done
is "$(cancel_k)" 'cancelled: k of q, running on WEB1
rqctl: WEB1 has no heartbeat: it is dead, or Redis refuses it
rqctl: k: its lease ends in N s; the next daemon that serves q then drops it' 'no heartbeat'
for k in qBACKUP qCONTEXT qDELIVERY; do r del $k >/dev/null; done

# -- two daemons, one of which dies --------------------------------------------------------

rqd_start one <<C
name = "web1"
drain_timeout = 300ms
$SECTIONS
C
log_wait 30 event=ready 1 one
ONE=$(log_lines event=started one | tail -1 | log_field instance)
wait_for 30 '[ "$(r pubsub numsub "rqd:control:$ONE" | tail -1)" = 1 ]'
r lpush s '{"id":3}' '{"id":4}' >/dev/null
wait_for 30 'began 3'
rqd_start two <<C
name = "web2"
$SECTIONS
C
log_wait 30 event=ready 1 two
TWO=$(log_lines event=started two | tail -1 | log_field instance)
wait_for 30 '[ "$(r pubsub numsub "rqd:control:$TWO" | tail -1)" = 1 ]'
wait_for 30 'began 4'
r lpush q '{"id":5}' '{"id":6}' >/dev/null
wait_for 30 'began 5 && began 6'
start=$(msec)
is "$(ctl cancel q 5 6 2>&1 | sed 's/.*on \(web.\).*/\1/' | sort | tr '\n' ' ')" 'web1 web2 ' 'each on its host'
log_wait 30 'event=cancelled queue=q' 1 one
log_wait 30 'event=cancelled queue=q' 1 two
took=$(($(msec) - start))
# A hint that is lost takes 10 s, until the next renewal; 74-cancel.t measures the second.
ok "[ $took -lt 8000 ]" "both end soon ($took ms)"

OWNER=one OTHER=two
holder=$(ctl running s --json | tr -d ' \n' | sed 's/.*"id":"3",[^}]*"daemon":"\(web.\).*/\1/')
[ "$holder" = web1 ] || { OWNER=two OTHER=one; }
is "$(ctl cancel s 3 --dead 2>&1 | cut -d' ' -f1-9)" 'cancelled as a dead letter: 3 of s, running' 'cancelled'
rqd_signal KILL $OWNER
rqd_wait $OWNER
log_wait 30 "event=requeued queue=s" 1 $OTHER
# Its slot is taken by 4: it must end before the pop.
is "$(r zrange sRETRY 0 -1)" 3 'its daemon died before the handler had ended: it waits for a pop'
like "$(r hget sDELIVERY 3)" '^0 0 !dead:' 'with the mark'
is "$(ctl cancel s 3 --dead -n | cut -d, -f1-2)" 'would be cancelled as a dead letter: 3 of s, expired on '"$(eval "log_lines event=started $OWNER" | tail -1 | log_field instance)" 'its lease has ended'
like "$(ctl cancel s 3 --dead 2>&1)" '^rqctl: 3: its lease has ended, and the next daemon that serves s makes it a dead letter$' 'and what follows'
touch "$T/release"
log_wait 30 'event=dead queue=s id=3 .*reason=cancelled' 1 $OTHER
is "$(grep -cx 3 "$T/began")" 1 'it never runs again'
is "$(ctl dead show s 3 --raw)" '{"id":3}' 'it is a dead letter'
rm -f "$T/release"
rqd_stop $OTHER

# -- persistent ---------------------------------------------------------------------------

rqd_start one <<C
name = "web1"
$SECTIONS
C
log_wait 30 event=ready 1 one
ONE=$(log_lines event=started one | tail -1 | log_field instance)
wait_for 30 '[ "$(r pubsub numsub "rqd:control:$ONE" | tail -1)" = 1 ]'
r lpush p '{"id":"p1"}' '{"id":"p2"}' '{"id":"p3"}' >/dev/null
wait_for 30 'began p1'
wait_for 30 '[ "$(r zcard pBACKUP)" = 3 ]'
is "$(ctl cancel p p1)" "cancelled: p1 of p, running on $ONE" 'persistent'
log_wait 30 'event=cancelled queue=p id=p1 ' 1 one
log_wait 30 'event=returned queue=p id=p[23] ' 2 one
touch "$T/release"
log_wait 30 'event=acked queue=p id=p[23] .*' 2 one
is "$(log_count 'event=acked queue=p id=p. attempt=1' one)" 2 'its other messages are given back, no attempt is counted'
is "$(log_count 'event=(retry|dead) queue=p' one)" 0 'and none has failed'
rm -f "$T/release"
rqd_stop one

# -- a drain at the same time --------------------------------------------------------------

rqd_start one <<C
name = "web1"
drain_timeout = 200ms
queue "s" { command = {"$T/stubborn"} lease = 60s kill_grace = 60s }
C
log_wait 30 event=ready 1 one
r lpush s '{"id":7}' >/dev/null
wait_for 30 'began 7'
rqd_signal TERM one
log_wait 30 event=draining 1 one
wait_for 30 'grep -qx 7 "$T/terms"'
ctl cancel s 7 >/dev/null 2>&1
touch "$T/release"
rqd_wait one
is "$(log_count 'event=cancelled queue=s id=7' one) $(log_count 'event=returned queue=s' one)" '1 0' 'cancelled while the drain ends it: not given back'
ok 'nothing s' 'nothing is left'
