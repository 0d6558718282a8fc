#!/bin/sh
# Kinds channel and pattern: every daemon runs each message, at most once; the backlog
# is bounded; and rqctl shows the queues.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start --appendonly yes
handler work <<'H'
m=$(cat)
echo "$RQD_QUEUE $RQD_CHANNEL $RQD_ATTEMPT/$RQD_MAX_ATTEMPTS $m" >>"$T/seen.$NAME"
[ "$m" != bad ]
H
handler slow <<'H'
[ -e "$T/jam" ] && sleep 0.2
exit 0
H
conf() {	# NAME
	cat <<C
name = "$1"
drain_timeout = 300ms
defaults { env = {"NAME=$1"} $AS }
queue "n" { kind = "channel" key = {"news", "alerts"} command = {"$T/work"} }
queue "p" { kind = "pattern" key = "user:*:[ab]" command = {"$T/work"} }
queue "flood" { kind = "channel" command = {"$T/slow"} backlog = 50 }
queue "ack" { command = {"/bin/true"} concurrency = 4 }
C
}
qctl() { RQD_CONFIG=$T/one.conf "$RQCTL" "$@"; }

conf one >"$T/conf"
rqd_start one <"$T/conf"
conf two >"$T/conf"
rqd_start two <"$T/conf"
for d in one two; do
	log_wait 10 'event=subscribed queue=n$' 1 $d
	log_wait 10 'event=subscribed queue=p$' 1 $d
done

# -- delivery ---------------------------------------------------------------------
r publish news hello >/dev/null
r publish alerts fire >/dev/null
r publish user:7:a x >/dev/null
r publish user:7:c x >/dev/null
for d in one two; do
	wait_for 10 '[ "$(cat "$T/seen.$d" 2>/dev/null | wc -l)" -eq 3 ]'
	is "$(sort "$T/seen.$d" | tr '\n' ,)" 'n alerts 1/1 fire,n news 1/1 hello,p user:7:a 1/1 x,' \
	    "daemon $d ran all that it listens to, and knows the channel"
done
is "$(left_keys)" '' 'nothing is in Redis but totals'
r publish news bad >/dev/null
log_wait 10 'event=failed queue=n ' 1 one
like "$(log_lines 'event=failed' one)" 'level=error .* status=1 .*reason=exit' 'a failure is logged'

# -- rqctl ------------------------------------------------------------------------
is "$(qctl push n '{"id":5}' 2>"$T/err")" 5 'rqctl push publishes'
is "$(cat "$T/err")" 'rqctl: published to 2 subscribers' 'and says who heard it'
log_wait 10 'event=acked queue=n id=5 ' 1 one
log_wait 10 'event=acked queue=n id=5 ' 1 two
is "$(printf '6\n7\n' | qctl push --lines n 2>&1 | tail -n 1)" 'rqctl: published to 2 subscribers' 'rqctl push --lines'
for d in one two; do wait_for 10 'grep -q " 7$" "$T/seen.$d"'; done
like "$(qctl push p x 2>&1)" 'kind pattern' 'nothing can be pushed to a pattern'
like "$(qctl push --delay 1s n x 2>&1)" 'no delayed' 'nor later'
like "$(qctl peek n 2>&1)" 'kind channel' 'rqctl peek is refused'
like "$(qctl purge n --waiting -y 2>&1)" 'kind channel' 'rqctl purge is refused'
like "$(qctl dead list p 2>&1)" 'kind pattern' 'rqctl dead is refused'
# The numbers of running handlers are those of the last heartbeats.
wait_ok 15 'qctl status n | grep -Eq "^n  *-  *0/2  *-  *-  *-  *-  *-  *ok"' 'rqctl status'
is "$(qctl check)" '' 'rqctl check'
like "$(qctl queues)" '^n  *channel  *news alerts  *1  *-  *1 ' 'rqctl queues'
like "$(qctl queues --json n | tr -d ' \n')" '"channels":\["news","alerts"\]' 'the same as JSON'
is "$(echo tried | qctl try n 2>"$T/err"; grep tried "$T/seen.one")" 'n news 1/1 tried' 'rqctl try has a channel, too'
like "$(cat "$T/err")" 'would be acked' 'and a verdict'

qctl pause n --reason test >/dev/null
log_wait 10 'event=paused queue=n' 1 one
log_wait 10 'event=paused queue=n' 1 two
r publish news later >/dev/null
r publish user:9:a heard >/dev/null
for d in one two; do wait_for 10 'grep -q heard "$T/seen.$d"'; done
is "$(grep -c later "$T/seen.one")" 0 'paused: it waits in the daemon'
qctl resume n >/dev/null
wait_ok 10 'grep -q later "$T/seen.one" && grep -q later "$T/seen.two"' 'resumed: it runs'

# -- faults -----------------------------------------------------------------------
r client kill type pubsub >/dev/null
for d in one two; do
	log_wait 10 'event=subscribed queue=n$' 2 $d
	log_wait 10 'event=subscribed queue=p$' 2 $d
done
like "$(log_lines 'event=unsubscribed queue=n ' one)" 'level=error .*error=' 'a lost connection is told'
r publish news back >/dev/null
wait_ok 10 'grep -q back "$T/seen.one" && grep -q back "$T/seen.two"' 'and the subscription renewed'

# -- a flood: bounded, counted, and nobody else waits -----------------------------------
for d in one two; do log_wait 10 'event=subscribed queue=flood$' 2 $d; done
: >"$T/jam"
seq 1 20000 | sed 's/.*/PUBLISH flood &/' | r --pipe >/dev/null &
pipe=$!
start=$(msec)
for i in 1 2 3 4 5 6 7 8 9 10; do r lpush ack "{\"id\":\"a$i\"}" >/dev/null; done
wait_for 20 '[ "$(cat "$T/one.log" "$T/two.log" | grep -c "event=acked queue=ack ")" -eq 10 ]'
note "10 messages of another queue beside the flood: $(($(msec) - start)) ms"
wait $pipe
log_wait 20 'event=warning queue=flood .*backlog is full' 1 one
rm -f "$T/jam"
log_wait 20 'event=warning queue=flood .*messages were dropped' 1 one
log_wait 20 'event=warning queue=flood .*messages were dropped' 1 two
wait_for 20 '[ "$(qctl status --json flood | tr -d " \n" | grep -c "\"running\":0")" -eq 1 ]'
is "$(log_count 'event=dropped' one)" 0 'no line for each'
r publish n x >/dev/null
rqd_stop one
rqd_stop two
is "$(($(r hget floodSTATS acked) + $(r hget floodSTATS dropped)))" 40000 'each was run or counted as dropped, by each daemon'
ok '[ "$(r hget floodSTATS dropped)" -gt 30000 ]' 'most were dropped'
is "$(qctl push n gone 2>&1 | tail -n 1)" 'rqctl: no subscriber to news: the messages are lost' 'nobody listens'

# -- configuration -------------------------------------------------------------------
config_wrong() { printf 'queue "x" { %s command = {"/bin/true"} %s }\n' "$1" "$AS" >"$T/wrong.conf"; "$RQD" -t -c "$T/wrong.conf" 2>&1; }
like "$(config_wrong 'key = {"a", "b"}')" 'key takes one value with kind "ack"' 'one key for other kinds'
like "$(config_wrong 'kind = "channel" key = {"a", "b", "a"}')" 'key names "a" twice' 'no channel twice'
like "$(config_wrong 'kind = "channel" max_attempts = 2')" 'max_attempts has no meaning' 'no retries'
like "$(config_wrong 'backlog = 2')" 'backlog has no meaning with kind "ack"' 'no backlog for other kinds'
