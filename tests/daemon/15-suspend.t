#!/bin/sh
# A queue whose command cannot be run, or always fails, is suspended: it costs
# no attempts, one probe at a time, and resumes by itself.

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
ok 'log_wait 5 "event=resumed queue=nope"' 'and says so'
like "$(tail -n 1 "$T/nope.ran")" '^[2-9]' 'with the attempts counted'

# -- failures in a row ---------------------------------------------------------------
for i in 1 2 3 4 5 6 7 8; do r lpush failing "{\"id\":\"x$i\"}" >/dev/null; done
ok 'log_wait 20 "event=suspended queue=failing"' 'suspend_after failures in a row suspend'
like "$(log_lines 'event=suspended queue=failing')" 'reason=failing' 'and it says so'
ran=$(wc -l <"$T/failing.ran")
ok "[ $ran -ge 3 ] && [ $ran -le 4 ]" "after three of them ($ran)"
touch "$T/failing.ok"
ok 'log_wait 20 "event=resumed queue=failing"' 'the first success resumes'
ok 'log_wait 20 "event=acked queue=failing" 8' 'everything is handled'
