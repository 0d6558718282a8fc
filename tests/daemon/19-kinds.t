#!/bin/sh
# Kinds list, channel, expired: reloads, and persistent handlers.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start --notify-keyspace-events Ex
handler work <<'H'
echo "$RQD_QUEUE $RQD_CHANNEL $(cat)" >>"$T/ran"
H
handler feed <<'H'
while read -r n attempt length id && IFS= read -r message; do
	echo "$RQD_QUEUE ${RQD_CHANNEL-none} $attempt $message" >>"$T/fed"
	case $message in
	fail*) echo "$n retry" ;;
	die*) exit 1 ;;
	*) echo "$n ok" ;;
	esac
done
H
ran() { wait_ok 15 "grep -qs '^$1\$' '$T/ran'" "$2"; }
reload() {	# configuration on stdin
	_n=$(log_count 'event=reloaded')
	config_write rqd
	rqd_signal HUP
	log_wait 15 'event=reloaded' $((_n + 1))
}
subscribers() { r pubsub numsub "$1" | tail -n 1; }

# -- reload ----------------------------------------------------------------------
rqd_start </dev/null
log_wait 10 'event=ready'
reload <<C
queue "c" { kind = "channel" key = "one" command = {"$T/work"} }
queue "l" { kind = "list" command = {"$T/work"} }
queue "e" { kind = "expired" match = "a*" command = {"$T/work"} skew = 1s }
C
log_wait 15 'event=subscribed queue=c$'
log_wait 15 'event=subscribed queue=e$'
r publish one x >/dev/null
ran 'c one x' 'a channel that was added'
r lpush l y >/dev/null
ran 'l  y' 'a list that was added'
r set a1 '' px 20 >/dev/null
ran 'e  a1' 'expired keys that were added'

reload <<C
queue "c" { kind = "channel" key = {"two", "three"} command = {"$T/work"} }
queue "l" { kind = "list" pop = "left" concurrency = 2 command = {"$T/work"} }
queue "e" { kind = "expired" match = "b*" command = {"$T/work"} skew = 1s }
C
log_wait 15 'event=subscribed queue=c$' 2
wait_ok 15 '[ "$(subscribers one)" -eq 0 ]' 'the old channel is left'
is "$(subscribers two) $(subscribers three)" '1 1' 'the new ones are heard'
r publish three z >/dev/null
ran 'c three z' 'a channel that was changed'
r set a2 '' px 20 >/dev/null
r set b2 '' px 20 >/dev/null
ran 'e  b2' 'another match'
is "$(grep -c 'e  a2' "$T/ran")" 0 'instead of the old one'
is "$(log_count 'event=subscribed queue=e$')" 1 'without subscribing anew'

reload <<C
queue "l" { kind = "list" command = {"$T/work"} }
C
wait_ok 15 '[ "$(subscribers two)" -eq 0 ] && [ "$(subscribers __keyevent@0__:expired)" -eq 0 ]' \
    'queues that were removed'

# -- several queues of one event, and another database -----------------------------
reload <<C
queue "e" { kind = "expired" match = "b*" command = {"$T/work"} skew = 1s }
queue "f" { kind = "expired" match = {"x", "b?"} key = "efs" command = {"$T/work"} skew = 1s }
queue "g" { kind = "expired" database = 5 command = {"$T/work"} skew = 1s }
C
for q in e f g; do log_wait 15 "event=subscribed queue=$q\$" "$([ $q = e ] && echo 2 || echo 1)"; done
r set b7 '' px 20 >/dev/null
ran 'e  b7' 'two queues wait for a key'
ran 'f  b7' 'and both get it'
r -n 5 set b8 '' px 20 >/dev/null
ran 'g  b8' 'a key of another database'
wait_for 15 '[ -z "$(r --raw keys "Lock:*")" ]'
is "$(grep -c 'b8' "$T/ran") $(grep -c 'g  b7' "$T/ran")" '1 0' 'each of its own'
MORE_KEYS=efs

# -- persistent handlers -----------------------------------------------------------
reload <<C
defaults { mode = "persistent" framing = "line" $AS command = {"$T/feed"} backoff = 50ms }
queue "c" { kind = "channel" key = "one" }
queue "l" { kind = "list" }
queue "e" { kind = "expired" match = "k*" skew = 1s }
C
log_wait 15 'event=subscribed queue=c$' 3
log_wait 15 'event=subscribed queue=e$' 2
fed() { wait_ok 15 "grep -qs '^$1\$' '$T/fed'" "$2"; }
r publish one p1 >/dev/null
fed 'c none 1 p1' 'a channel feeds a process'
r publish one fail >/dev/null
ok 'log_wait 15 "event=failed queue=c .*reason=answer"' 'which fails for good'
r lpush l fail1 l2 die l3 >/dev/null
fed 'l none 1 l3' 'a list feeds one'
log_wait 15 'event=failed queue=l ' 2
log_wait 15 'event=acked queue=l ' 3
is "$(grep -c 'l none . \(fail1\|die\)' "$T/fed")" 2 'and nothing of it runs twice'
r set k1 '' px 20 >/dev/null
fed 'e none 1 k1' 'so do expired keys'
wait_for 15 '[ -z "$(r --raw keys "Lock:*")" ]'
rqd_stop
