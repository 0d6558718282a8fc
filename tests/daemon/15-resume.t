#!/bin/sh
# After an outage of the command a suspended queue resumes by itself, within seconds, whatever
# max_attempts and backoff are: all that failed is due at once.  One message that always fails
# suspends nothing, and a suspended queue without messages is no error.

# shellcheck source=tests/lib.sh disable=SC2016,SC2046
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

QUEUES='{shards.0} {shards.2}'
redis_start
RQD_SERVER=unix:$SOCK
export RQD_SERVER
handler work <<'H'
echo "$RQD_ID $RQD_ATTEMPT" >>"$T/runs.$RQD_QUEUE"
[ "$RQD_ID" != poison ] && [ -e "$T/works" ]
H
handler says <<'H'
cat >/dev/null
[ ! -e "$T/works" ] || exit 0
echo 'retry 1h the carrier is down' >&3
H
handler wrong <<'H'
cat >/dev/null
[ ! -e "$T/works" ] || exit 0
echo 'perhaps' >&3
H
handler answers <<'H'
while read -r n _ && read -r _; do
	if [ -e "$T/works" ]; then echo "$n ok"; else echo "$n retry 3600 no such table"; fi
done
H
handler none <<'H'
[ -e "$T/works" ]
H
chmod 644 "$T/none"
push() { for _q; do for _i in a b c d; do r lpush "$_q" "{\"id\":\"$_i\"}" >/dev/null; done; done; }
runs() { wc -l <"$T/runs.$1"; }

ALL='two five most shards says wrong answers none'
rqd_start <<C
defaults { $AS suspend_after = 3 backoff = 1h backoff_max = 1h command = {"$T/work"} }
queue "two"     { max_attempts = 2 }
queue "five"    { max_attempts = 5 }
queue "most"    { max_attempts = 25 concurrency = 4 }
queue "shards"  { shards = 2 }
queue "says"    { command = {"$T/says"} }
queue "wrong"   { command = {"$T/wrong"} }
queue "answers" { command = {"$T/answers"} mode = "persistent" framing = "line" }
queue "none"    { command = {"$T/none"} }
queue "alone"   { }
queue "poison"  { backoff = 10ms backoff_max = 10ms }
queue "empty"   { backoff = 10ms backoff_max = 10ms max_attempts = 2 suspend_after = 2 }
queue "refused" { }
C
log_wait 20 event=ready
# shellcheck disable=SC2086
push $(echo $ALL | sed s/shards//)
r lpush empty '{"id":"a"}' '{"id":"b"}' >/dev/null
for i in a b c d; do "$RQCTL" push shards "{\"id\":\"$i\"}" >/dev/null; done
r lpush alone '{"id":"poison"}' >/dev/null
r lpush poison '{"id":"poison"}' >/dev/null
for q in $ALL; do log_wait 20 "event=suspended queue=$q "; done
like "$(log_lines 'event=suspended queue=says ')" "error=\"command $T/says: it said retry: the carrier is down\"" 'a verdict is named as the cause'
like "$(log_lines 'event=suspended queue=wrong ')" "error=\"command $T/wrong: it broke the protocol: .*perhaps" 'and a wrong one'
like "$(log_lines 'event=suspended queue=answers ')" "error=\"command $T/answers: it said retry: no such table\"" 'and an answer'
like "$(log_lines 'event=suspended queue=two ')" "error=\"command $T/work: exit status 1\"" 'and an exit status'

# Nothing is due, and all failures of a probe are due in an hour.
wait_for 30 '[ "$(runs two)" -ge 9 ]'
three_probes() {
	n=$(runs two) start=$(msec)
	wait_for 30 "[ \"\$(runs two)\" -ge $((n + 3)) ]"
	[ $(($(msec) - start)) -lt 17000 ]
}
ok 'thrice three_probes' 'a probe comes every 5 s, though no message is due'
is "$(log_count 'event=dead queue=(two|five|most|shards|says|wrong|answers|none) ')" 0 'and makes no dead letter'
is "$(awk '$2 > 2' "$T/runs.two" "$T/runs.five" "$T/runs.most" "$T/runs.shards")" '' 'nor does one count as an attempt'

touch "$T/works"
chmod 755 "$T/none"
start=$(msec)
for q in $ALL; do
	log_wait 30 "event=resumed queue=$q "
	ok "log_wait 5 'event=acked queue=$q ' 4" "$q resumes by itself, and all that failed is done at once"
done
ok "[ $(($(msec) - start)) -lt $((20000 * SLOW)) ]" "within seconds ($(($(msec) - start)) ms)"
is "$(log_count 'event=dead queue=(two|five|most|shards|says|wrong|answers|none) ')" 0 'nothing is lost'

# -- one message that always fails -------------------------------------------------------
wait_ok 20 '[ "$(r xlen poisonDEAD)" = 1 ]' 'a message that always fails becomes a dead letter'
is "$(runs poison)" 25 'after 25 attempts'
is "$(log_count 'event=suspended queue=(poison|alone) ')" 0 'and does not suspend its queue'

# -- a suspended queue without messages --------------------------------------------------
rm "$T/works"
r del emptyDEAD >/dev/null
r lpush empty '{"id":"e"}' '{"id":"f"}' >/dev/null
log_wait 20 'event=suspended queue=empty ' 2
wait_for 20 '"$RQCTL" status empty | grep -q suspended'
is "$("$RQCTL" check empty | grep -o 'error: empty: suspended: failing')" 'error: empty: suspended: failing' 'suspended with messages: check finds an error'
like "$("$RQCTL" status empty)" '^error: empty: suspended: failing: ' 'and status says so'
"$RQCTL" purge empty --retry --waiting -y >/dev/null
wait_for 20 '"$RQCTL" purge empty --retry --waiting -y; [ "$(r exists emptyBACKUP emptyRETRY empty)" = 0 ]' >/dev/null
said=$("$RQCTL" check empty)
is "$? $(printf '%s\n' "$said" | grep -c 'warning: empty: suspended, and without messages: failing')" '1 1' 'without messages: a warning'
is "$("$RQCTL" status empty | grep -c 'error')" 0 'no error in status'
like "$("$RQCTL" status --json empty | tr -d '\n')" '"state": *"idle, suspended: failing".*"mood": *"warn"' 'its mood is that of check'
# -- Redis refuses to make messages due ----------------------------------------------------
push refused
log_wait 20 'event=suspended queue=refused '
r config set min-replicas-to-write 1 >/dev/null
ok 'log_wait 30 "queue=refused .*due: NOREPLICAS"' 'Redis refuses to make a message due'
r config set min-replicas-to-write 0 >/dev/null
r config set maxmemory 1 >/dev/null
touch "$T/works"
log_wait 30 'event=resumed queue=refused '
ok 'log_wait 10 "event=acked queue=refused " 4' 'it does so later, although its memory is full'
r config set maxmemory 0 >/dev/null
rm "$T/works"

touch "$T/works"
r lpush empty good >/dev/null
log_wait 10 'event=resumed queue=empty ' 2
ok 'log_wait 5 "event=acked queue=empty"' 'the next message ends it'

