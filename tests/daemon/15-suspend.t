#!/bin/sh
# A queue whose command cannot be run, or always fails, is suspended.  It then runs one
# probe at a time, costs no attempts, and resumes by itself.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
handler fine <<'H'
exit 0
H
handler nope <<'H'
echo "$RQD_ATTEMPT" >>"$T/nope.ran"
[ -e "$T/nope.ok" ] && exit 0
exit 127
H
handler failing <<'H'
echo "$RQD_ID" >>"$T/failing.ran"
[ -e "$T/failing.ok" ]
H
rqd_start <<C
queue "missing" { command = {"$T/not-yet"} concurrency = 3 }
queue "nope"    { command = {"$T/nope"} backoff = 100ms }
queue "failing" { command = {"$T/failing"} backoff = 100ms suspend_after = 3 }
queue "fine"    { command = {"$T/fine"} }
C
like "$(log_lines 'level=warn event=warning')" "$T/not-yet" 'a missing command is warned of at the start'

# -- the command is not there ------------------------------------------------------
r lpush missing '{"id":"m1"}' '{"id":"m2"}' '{"id":"m3"}' '{"id":"m4"}' >/dev/null
ok 'log_wait 10 "event=suspended queue=missing"' 'a missing command suspends the queue'
like "$(log_lines 'event=suspended queue=missing')" 'reason=cannot_execute' 'and says why'
r lpush fine '{"id":"f1"}' >/dev/null
ok 'log_wait 10 "event=acked queue=fine"' 'other queues go on'
is "$(r eval 'local n = redis.call("LLEN", KEYS[1])
    return n + redis.call("ZCARD", KEYS[2]) + redis.call("ZCARD", KEYS[3])' 3 missing missingRETRY missingBACKUP)" 4 \
    'the messages are all there'
handler not-yet <<'H'
echo "$RQD_ID $RQD_ATTEMPT" >>"$T/ran"
H
ok 'log_wait 20 "event=resumed queue=missing"' 'it resumes when the command is there'
ok 'log_wait 10 "event=acked queue=missing" 4' 'everything runs'
is "$(sort "$T/ran" | tr '\n' ' ')" 'm1 1 m2 1 m3 1 m4 1 ' 'once, and no attempt was lost'
is "$(log_count 'event=suspended queue=missing')" 1 'suspended was said once'

# -- status 127 ----------------------------------------------------------------------
r lpush nope '{"id":"n1"}' >/dev/null
ok 'log_wait 10 "event=suspended queue=nope"' 'status 127 suspends'
like "$(log_lines 'event=suspended queue=nope')" 'reason=cannot_execute' 'for the same reason'
ok 'log_wait 10 "event=retry queue=nope id=n1 attempt=1 .*status=127"' 'but is a failed attempt'
touch "$T/nope.ok"
ok 'log_wait 20 "event=acked queue=nope id=n1"' 'it goes on'
ok 'log_wait 15 "event=resumed queue=nope"' 'and says so'
is "$(tail -n 1 "$T/nope.ran")" 2 'the first failure was counted, those of probes were not'

# -- failures in a row ---------------------------------------------------------------
for i in 1 2 3 4 5 6 7 8; do r lpush failing "{\"id\":\"x$i\"}" >/dev/null; done
ok 'log_wait 20 "event=suspended queue=failing"' 'suspend_after failures in a row suspend'
like "$(log_lines 'event=suspended queue=failing')" 'reason=failing' 'and it says so'
# By the log: the first probe may have run by now.
ran=$(sed '/event=suspended queue=failing/q' "$T/rqd.log" | grep -c 'event=delivered queue=failing ')
ok "[ $ran -ge 3 ] && [ $ran -le 4 ]" "after three of them ($ran)"
touch "$T/failing.ok"
ok 'log_wait 20 "event=resumed queue=failing"' 'the first success resumes'
ok 'log_wait 20 "event=acked queue=failing" 8' 'everything is handled'
rqd_stop

# -- a producer cannot wedge a queue ---------------------------------------------------
# 60 messages that fail before a good one, for each kind; good ones run within a minute.
handler picky <<'H'
read -r message
case $message in good*) exit 0 ;; esac
exit 1
H
rqd_start <<C
queue "acks"    { command = {"$T/picky"} }
queue "lists"   { command = {"$T/picky"} kind = "list" }
queue "uniques" { command = {"$T/picky"} kind = "unique" }
queue "streams" { command = {"$T/picky"} kind = "stream" }
C
{
	for i in $(seq 60); do
		echo "LPUSH acks bad-$i"
		echo "LPUSH lists bad-$i"
		echo "ZADD Queue:uniques $i bad-$i"
	done
	echo 'LPUSH acks good'
	echo 'LPUSH lists good'
	echo 'ZADD Queue:uniques 61 good'
} | r >/dev/null
for kind in acks lists uniques; do
	ok "log_wait 60 'event=acked queue=$kind '" "60 messages that fail do not keep a good one from running ($kind)"
	ok "[ \"\$(log_count 'event=suspended queue=$kind ')\" -ge 1 ]" 'though they suspend the queue'
done
# A stream gives its entries in their order, one a probe: after 1, 2, 4, and then each 5 s.
# Twenty failures suspend it, so the good one has the second probe, or a later one if retries
# are due.
{
	for i in $(seq 21); do echo "XADD streams * message bad-$i"; done
	echo 'XADD streams * message good'
} | r >/dev/null
ok "log_wait 90 'event=acked queue=streams '" 'nor does that of a stream'
is "$(sed '/event=acked queue=streams /q' "$T/rqd.log" | grep -c 'event=suspended queue=streams ')" 1 'which is suspended, too'

# -- and nothing dies of a broken command ----------------------------------------------
rqd_stop
r unlink acks acksRETRY acksCONTEXT acksDELIVERY lists Queue:uniques Queue:uniquesRETRY \
    Queue:uniquesCONTEXT Queue:uniquesDELIVERY streams streamsRETRY streamsCONTEXT streamsDELIVERY Queue:uniquesSTATS >/dev/null
handler broken <<'H'
[ -e "$T/broken.ok" ]
H
rqd_start <<C
queue "few" { command = {"$T/broken"} max_attempts = 2 backoff = 1h suspend_after = 4 }
C
# Four fail for the first time, and none of them is due again.
for i in $(seq 6); do echo "LPUSH few x$i"; done | r >/dev/null
ok 'log_wait 20 "event=suspended queue=few"' 'a broken command suspends'
wait_ok 60 '[ "$(log_count "event=retry queue=few")" -ge 7 ]' 'probes fail too, the third with the last attempt'
is "$(log_count 'event=dead')" 0 'that makes no dead letter while the queue is suspended'
touch "$T/broken.ok"
ok 'log_wait 60 "event=acked queue=few" 6' 'and everything is handled in the end'
is "$(r exists fewDEAD)" 0 'nothing was burnt'
