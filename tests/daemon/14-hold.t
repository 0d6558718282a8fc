#!/bin/sh
# "hold DURATION" of handlers: the queue is paused in all daemons for that time, and the message
# is deferred.  It never makes a pause shorter.  "hold group DURATION" holds only the group.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
handler sh <<'H'
echo "$RQD_ID" >>"$T/ran"
case $RQD_ID in
plain*) exit 0 ;;
esac
[ "$(grep -cx "$RQD_ID" "$T/ran")" -gt 1 ] || echo "hold ${RQD_ID#*:} 429 from $(printf '\033')carrier" >&3
H
handler persistent <<'H'
while read -r n attempt length id && IFS= read -r message; do
	[ -e "$T/told" ] && echo "$n ok" || echo "$n hold 2s busy"
	: >"$T/told"
done
H
cat >"$T/start" <<C
defaults { $AS suspend_after = 10 }
queue "q" { command = {"$T/sh"} }
queue "says" { suspend_after = 1 command = {"$T/persistent"} mode = "persistent" framing = "line" }
queue "list" { kind = "list" command = {"$T/sh"} }
queue "unique" { suspend_after = 1 kind = "unique" key = "unique" command = {"$T/sh"} }
queue "stream" { suspend_after = 1 kind = "stream" command = {"$T/sh"} }
C
{ echo 'name = "web1"'; cat "$T/start"; } >"$T/web1"
{ echo 'name = "web2"'; sed 's/q" {/q" { concurrency = 0/' "$T/start"; } >"$T/web2"
rqd_start one <"$T/web1"
push() { r lpush q "{\"id\":\"$1\"}" >/dev/null; }	# ID
held() { log_wait 20 "event=held queue=q id=$1 " 1 one; }
state() { ctl status q --json | sed -n 's/.*"state": *"\(\([^"\\]\|\\.\)*\)".*/\1/p' | head -n 1; }

# -- the queue stands, then goes on --------------------------------------------------
push a:10m
ok 'held a:10m' 'a handler holds the queue'
push plain
like "$(log_lines 'event=held' one)" 'level=info event=held queue=q id=a:10m attempt=1 .*status=0 .*reason=answer delay=600.000 answer="429 from \\x1bcarrier"' 'the log says so'
like "$(r --raw get qPAUSED)" '^handler@web1 20[0-9TZ:.-]* 429 from .carrier$' 'QPAUSED says who and why'
ok '[ "$(r pttl qPAUSED)" -le 600000 ] && [ "$(r pttl qPAUSED)" -gt 0 ]' 'and ends by itself'
like "$(ctl status q)" ' held [0-9]+m([0-9]+s)? by web1: 429 from .carrier' 'status'
ok 'log_wait 20 "event=paused queue=q why=.handler@web1 " 1 one' 'the daemon pauses'
is "$(cat "$T/ran")" a:10m 'nothing is delivered meanwhile'
r del qPAUSED >/dev/null
log_wait 20 'event=acked queue=q id=plain ' 1 one
ctl retry now q a:10m >/dev/null
log_wait 20 'event=acked queue=q id=a:10m ' 1 one
is "$(log_lines 'event=acked queue=q id=a:10m' one | grep -c attempt=1)" 1 'no attempt is counted'
begun=$(msec)
push a:2s
held a:2s
push plain2
log_wait 20 'event=acked queue=q id=plain2 ' 1 one
took=$(($(msec) - begun))
ok '[ $took -ge 1900 ]' "then it goes on ($took ms)"

# -- no pause becomes shorter ------------------------------------------------------------
# Sets a pause while the handler runs, which then holds the queue.
during() {	# ID WORDS-OF-SET...
	_id=$1
	shift
	handler sh <<H
echo "\$RQD_ID" >>"$T/ran"
[ "\$(grep -cx "\$RQD_ID" "$T/ran")" -eq 1 ] || exit 0
: >"$T/at"
until [ -e "$T/go" ]; do sleep 0.05; done
echo "hold \${RQD_ID#*:} from the handler" >&3
H
	rm -f "$T/at" "$T/go"
	push "$_id"
	wait_for 20 '[ -e "$T/at" ]'
	[ $# -eq 0 ] || r set qPAUSED "$@" >/dev/null
	: >"$T/go"
	held "$_id"
}
during b:5s 'ann@host 2026-11-27T08:00:00.000Z deploy'
like "$(r get qPAUSED) $(r pttl qPAUSED)" 'deploy -1$' 'a pause of a person stays'
r del qPAUSED >/dev/null
during c:5s 'ann@host 2026-11-27T08:00:00.000Z deploy' px 600000
like "$(r get qPAUSED)" 'deploy$' 'so does a longer one'
ok '[ "$(r pttl qPAUSED)" -gt 590000 ]' 'with its time'
r del qPAUSED >/dev/null
during d:5m 'ann@host 2026-11-27T08:00:00.000Z deploy' px 20000
like "$(r get qPAUSED)" '^handler@web1 .* from the handler$' 'a longer hold replaces a shorter pause'
ok '[ "$(r pttl qPAUSED)" -gt 290000 ]' 'with its time'
ctl resume q >"$T/said"
is $? 0 'rqctl resume ends it'
is "$(r exists qPAUSED)" 0 'the key is gone'
like "$(ctl show q d:5m)" '^retry .*, due in (5|4)' 'the message stays deferred'

# -- an hour at most ---------------------------------------------------------------------
during e:3h
ok '[ "$(r pttl qPAUSED)" -gt 3590000 ] && [ "$(r pttl qPAUSED)" -le 3600000 ]' 'three hours count as one'
like "$(log_lines 'event=held queue=q id=e:3h' one)" 'delay=3600.000 .*warning="a handler may hold its queue or group for 1h at most"' 'and the log says so'
like "$(ctl status q)" ' held [0-9]+m' 'it is held'
unlike "$(ctl check q)" 'paused|held' 'which is no problem for rqctl check'
ok '[ "$(($(r zscore qRETRY e:3h | cut -d. -f1) - $(date +%s)))" -le 3600 ]' 'for the message, too'
ctl resume q >/dev/null

# -- a second at least ---------------------------------------------------------------------
during f:0
like "$(log_lines 'event=held queue=q id=f:0' one)" 'delay=1.000 ' 'less than a second counts as one'
log_wait 20 'event=acked queue=q id=f:0 ' 1 one

# -- what is none --------------------------------------------------------------------------
handler sh <<'H'
case $RQD_ID in
blank) echo "hold" >&3 ;;
group) echo "hold group 5s" >&3 ;;
none) echo "hold carrier is down" >&3 ;;
*) [ -e "$T/$RQD_QUEUE.held" ] || { : >"$T/$RQD_QUEUE.held"; echo "hold 1s x" >&3; } ;;
esac
H
for id in blank group none; do
	push $id
	log_wait 20 "event=retry queue=q id=$id " 1 one
done
is "$(log_lines 'event=retry queue=q id=(blank|none) .*reason=protocol' one | wc -l)" 2 'it needs a duration'
like "$(log_lines 'event=retry queue=q id=group' one)" 'reason=protocol .*cause="this queue has no group_by: hold group 5s"' 'without group_by no group can be held'
r lpush list x >/dev/null
ok 'log_wait 20 "event=failed queue=list .*reason=protocol" 1 one' 'a queue that keeps nothing cannot defer'

# -- other kinds, and persistent handlers ---------------------------------------------------
r lpush says '{"id":1}' >/dev/null
r zadd unique 1 job >/dev/null
r xadd stream '*' a b >/dev/null
for q in says unique stream; do
	ok "log_wait 20 'event=held queue=$q ' 1 one" "$q: held"
	ok "log_wait 20 'event=acked queue=$q ' 1 one" "$q: and done later"
done
is "$(log_count 'event=suspended queue=(says|unique|stream) ' one)" 0 'a hold is no failure'

# -- only the group ---------------------------------------------------------------------------
rqd_stop one
rm -f "$T/go"
handler sh <<'H'
case $RQD_QUEUE-$RQD_ID in
two-a/2) until [ -e "$T/go" ]; do sleep 0.1; done ;;
*-a/1) time=1h ;;
*-c/1 | *-alone) time=1s ;;
esac
[ -z "${time-}" ] || [ -e "$T/$RQD_QUEUE.${RQD_ID%/1}" ] || { : >"$T/$RQD_QUEUE.${RQD_ID%/1}"; echo "hold group $time 429 from carrier" >&3; }
H
cat >"$T/groups" <<C
defaults { $AS concurrency = 4 group_by = "/" }
queue "one" { command = {"$T/sh"} }
queue "two" { command = {"$T/sh"} group_concurrency = 2 }
C
rqd_start groups <"$T/groups"
put() { r lpush "$@" >/dev/null; }	# QUEUE MESSAGE ...
acks() { log_lines "event=acked queue=$1 id=$2" groups | sed 's/.* id=\([^ ]*\) .*/\1/' | tr '\n' ' '; }	# QUEUE ID
put one '{"id":"a/1"}' '{"id":"a/2"}' '{"id":"b/1"}'
ok 'log_wait 20 "event=held_group queue=one id=a/1 .*reason=answer delay=3600.000 answer=.429 from carrier" 1 groups' 'a handler holds its group'
log_wait 20 'event=acked queue=one id=b/1 ' 1 groups
put one '{"id":"b/2"}' '{"id":"a/3"}'
log_wait 20 'event=acked queue=one id=b/2 ' 1 groups
wait_ok 10 '[ "$(r zcard oneHELD)" -eq 2 ]' 'the others of the group wait'
is "$(acks one a/)" '' 'and do not run'
like "$(ctl show one a/2)" 'waits behind a/1' 'show says for which one'
is "$(r exists onePAUSED)" 0 'the queue is not paused'
ctl retry now one a/1 >/dev/null
log_wait 20 'event=acked queue=one id=a/3 ' 1 groups
is "$(acks one a/)" 'a/1 a/2 a/3 ' 'retry now ends it, and they keep their order'
put one '{"id":"c/1"}' '{"id":"c/2"}' '{"id":"alone"}'
log_wait 20 'event=acked queue=one id=c/2 ' 1 groups
is "$(acks one c/)" 'c/1 c/2 ' 'it ends by itself'
ok 'log_wait 20 "event=acked queue=one id=alone " 1 groups' 'a message without a group waits alone'
is "$(log_count 'event=held_group queue=one id=(c/1|alone) ' groups)" 2 'both were held'
put two '{"id":"a/1"}' '{"id":"a/2"}' '{"id":"a/3"}' '{"id":"a/4"}'
log_wait 20 'event=held_group queue=two id=a/1 ' 1 groups
: >"$T/go"
log_wait 20 'event=acked queue=two id=a/2 ' 1 groups
put two '{"id":"a/5"}' '{"id":"b/1"}'
log_wait 20 'event=acked queue=two id=b/1 ' 1 groups
wait_ok 10 '[ "$(r zcard twoHELD)" -eq 3 ]' 'with two places one that has begun ends, and the others wait'
is "$(acks two a/)" 'a/2 ' 'and do not run'
ctl retry now two a/1 >/dev/null
ok 'log_wait 20 "event=acked queue=two id=a/" 5 groups' 'until the first one is due'
ok '[ "$(r exists twoHELD twoGROUP twoORDER twoRETRY)" -eq 0 ]' 'nothing is left of it'
rqd_stop groups

cat >"$T/try.conf" <<C
queue "t" { command = {"/bin/sh", "-c", "echo hold 2h >&3"} $AS }
C
echo m | "$RQCTL" -c "$T/try.conf" try t >"$T/said" 2>&1
like "$(cat "$T/said")" 'would be deferred, and the queue held, for 1h$' 'rqctl try'
sed -i 's/hold 2h/hold group 2h/; s/ }$/ group_by = "g" }/' "$T/try.conf"
echo m | "$RQCTL" -c "$T/try.conf" try t >"$T/said" 2>&1
like "$(cat "$T/said")" 'would be deferred, and its group held, for 1h$' 'of a group'

# -- where an ACL denies the pause ------------------------------------------------------------
r acl setuser default -set >/dev/null
handler sh <<'H'
[ -e "$T/acl.held" ] || { : >"$T/acl.held"; echo "hold 1s" >&3; }
H
rqd_start acl <<C
queue "acl" { command = {"$T/sh"} }
C
r lpush acl '{"id":"m"}' >/dev/null
ok 'log_wait 20 "event=deferred queue=acl id=m " 1 acl' 'the message is deferred'
like "$(log_lines 'event=warning queue=acl' acl)" 'warning="settle: not paused: SET: ' 'the log names the command'
ok 'log_wait 20 "event=acked queue=acl id=m " 1 acl' 'and done later'
rqd_stop acl
r acl setuser default +set >/dev/null
