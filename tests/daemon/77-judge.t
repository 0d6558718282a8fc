#!/bin/sh
# What rqctl, the page and metrics say of a queue is the same, and true: held messages, schedules
# that never ran, the latency of a suspended queue, what runs now, configurations that differ.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v curl >/dev/null || skip_all 'no curl'
command -v python3 >/dev/null || skip_all 'no python3'
H=$OWN/http.sock
get() { curl -s -m 20 --unix-socket "$H" "http://rqd$1"; }
of() {	# QUEUE EXPRESSION of its object q in /status
	get /status | python3 -c 'import json, sys
v = json.load(sys.stdin)
q = [q for q in v["queues"] or [] if q["name"] == sys.argv[1]][0]
print(eval(sys.argv[2]))' "$1" "$2" 2>&1
}
metric() { get /metrics | grep "^rqd_$1{" | sed 's/.* //'; }

redis_start
handler hang <<'H'
until [ -e "$T/release" ]; do sleep 0.2; done
H
rqd_start <<C
http { listen = "unix:$H" }
queue "groups" { command = {"$T/hang"} group_by = "g" concurrency = 2 }
queue "gone" { command = {"$T/gone"} }
queue "calm" { command = {"/bin/true"} max_attempts = 3 time_limit = 1m }
schedule "nightly" { queue = "calm" cron = "0 3 1 1 *" message = "x" }
C
log_wait 20 event=ready

# -- a schedule that never ran --
wait_for 20 '[ -n "$(r hget calmSCHEDULE nightly)" ]'
rqd_signal HUP		# it asks again, and Redis knows the schedule by now
log_wait 20 event=reloaded
wait_for 20 '[ -n "$(metric schedule_next_timestamp_seconds)" ]'
wait_ok 20 'get /status | grep -q "\"name\":\"nightly\".*\"last\":null,\"next\":[0-9]"' 'a schedule that never ran: /status'
is "$(metric schedule_last_timestamp_seconds)" '' 'metrics'
like "$(ctl -c "$T/rqd.conf" schedules)" 'has not run yet' 'rqctl schedules'

# -- held messages --
for i in 1 2 3 4 5 6; do r lpush groups "{\"id\":$i,\"g\":\"a\"}" >/dev/null; done
wait_ok 20 '[ "$(of groups "q[\"held\"]")" = 5 ]' '/status has the held messages'
wait_ok 30 'get /history | grep -q "\"key\":\"groups\",\"depth\":\[[^]]*5[],]"' 'and /history counts them as depth'
like "$(get '/queue?key=groups')" '"rqctl [^"]*peek --held groups"' 'the page has the command that lists them'

# -- what runs now, and not at the last heartbeat --
is "$(of groups '[q["running"], sum(d["running"] for d in v["fleet"])]')" '[1, 1]' 'queues and daemons have one figure'
wait_ok 5 '[ "$(of groups "q[\"oldest\"] is not None")" = True ]' 'and the age of the oldest run'

# -- the latency of a suspended queue --
r lpush gone '{"id":1}' >/dev/null
began=$(date +%s)
log_wait 20 'event=suspended queue=gone'
watch_latency() { [ "$(of gone 'q["latency"] >= 9')" = True ]; }
wait_ok 30 watch_latency 'the latency of a suspended queue grows, although each probe makes its message due anew'
waited=$(($(date +%s) - began))
ok "[ \"\$(metric 'queue_latency_seconds' | sort -n | tail -1 | cut -d. -f1)\" -ge 9 ]" 'metrics: the same'
ok "[ $waited -ge 8 ]" "and is no longer than the time ($waited s)"

# -- configurations that differ --
rqd_start two <<C
queue "calm" { command = {"/bin/echo", "b"} max_attempts = 5 time_limit = 2m }
C
log_wait 20 event=ready 1 two
wait_ok 20 'ctl -c "$T/rqd.conf" check calm | grep -q "^warning: calm: daemons disagree: command is "' 'check names what differs: the command'
like "$(ctl -c "$T/rqd.conf" check calm)" '^warning: calm: daemons disagree: max_attempts is (3 on .* and 5|5 on .* and 3) on ' 'max_attempts'
like "$(ctl -c "$T/rqd.conf" check calm)" '^warning: calm: daemons disagree: time_limit is (1m on .* and 2m|2m on .* and 1m) on ' 'time_limit'
like "$(ctl daemons)" '^note: the configuration of calm differs between daemons: command, max_attempts, time_limit$' 'daemons'
wait_ok 20 '[ "$(of calm "q[\"state\"]")" = "daemons disagree about the command" ]' 'the page'
touch "$T/release"
r del gone goneRETRY goneDELIVERY goneCONTEXT goneBACKUP >/dev/null
wait_for 20 '[ "$(r exists groups groupsHELD groupsBACKUP)" = 0 ]'
rqd_stop
r flushall >/dev/null
