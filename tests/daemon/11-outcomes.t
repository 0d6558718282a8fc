#!/bin/sh
# Each row of the table of outcomes: the result of a message, by the end of its handler.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
r xadd fewDEAD 1000-1 id old message m >/dev/null
# Ends as its message says.
handler as_told <<'H'
id=$RQD_ID
echo "$RQD_DEADLINE $(date +%s.%N)" >"$T/deadline.$id.$RQD_ATTEMPT"
date +%s%N | sed "s/......\$/ $RQD_ATTEMPT/" >>"$T/runs.$id"
echo "about to end as $id" >&2
case $id in
status-*) exit "${id#status-}" ;;
twice) [ "$RQD_ATTEMPT" -ge 3 ] ;;
kill) kill -KILL $$ ;;
slow) sleep 600 ;;
polite) trap 'exit 0' TERM; sleep 600 & wait ;;
deaf) trap '' TERM; sleep 600 & wait; sleep 600 ;;
chatty) seq 1 5000 >&2; exit 65 ;;
esac
H
rqd_start <<C
max_handlers = 8
queue "q" {
	command = {"$T/as_told"}
	concurrency = 8
	backoff = 1s
	max_attempts = 3
	suspend_after = 0
	message_max = 1K
}
queue "limited" {
	command = {"$T/as_told"}
	concurrency = 8
	backoff = 1s
	time_limit = 3s
	kill_grace = 500ms
	max_attempts = 3
	suspend_after = 0
}
queue "own" {
	command = {"$T/as_told"}
	dead_status = {3, 4}
	max_attempts = 1
}
queue "few" { command = {"$T/as_told"} dead_max = 10 dead_max_age = 1m }
C

push() { r lpush "${2:-q}" "{\"id\":\"$1\"}" >/dev/null; }

# Field of the dead letter of an id.
letter() {	# ID FIELD [QUEUE]
	r --raw xrange "${3:-q}DEAD" - + | awk -v id="$1" -v field="$2" '
	$0 == "id" { getline; here = ($0 == id); next }
	here && $0 == field { getline; print; exit }
	$0 == "reason" { getline }	# whose value may look like a field'
}
runs() { wc -l <"$T/runs.$1"; }
sleepers() { for p in $(our_processes); do grep -lsx sleep "/proc/$p/comm"; done; }

# -- success, and no use ---------------------------------------------------------
for id in status-0 status-65 kill chatty twice status-1 status-75; do push $id; done
for id in slow polite deaf; do push $id limited; done
wait_ok 10 '[ -n "$(sleepers)" ]' 'some take long'

log_wait 10 'event=acked queue=q id=status-0 '
is "$(runs status-0)" 1 'status 0: acked'

log_wait 10 'event=dead queue=q id=status-65 '
like "$(log_lines 'event=dead queue=q id=status-65 attempt=1 ')" 'status=65 .*reason=status' 'status 65: dead at once'
is "$(letter status-65 message)" '{"id":"status-65"}' 'the dead letter holds the message'
is "$(letter status-65 reason)" status '- the reason'
is "$(letter status-65 attempts)" 1 '- how many attempts failed'
is "$(letter status-65 status)" 65 '- the exit status'
is "$(letter status-65 error)" 'about to end as status-65' '- the end of its stderr'
like "$(letter status-65 host)" . '- and the host'
is "$(runs status-65)" 1 'it ran once'

log_wait 10 'event=dead queue=q id=chatty '
error=$(r --raw xrange qDEAD - + | awk '$0 == "chatty" { on = 1 } on && $0 == "error" { go = 1; next } go && $0 == "host" { exit } go')
like "$error" '5000$' 'of a long stderr the end is kept'
ok '[ ${#error} -le 4096 ] && [ ${#error} -ge 2000 ]' "4 KiB of it (${#error})"

# -- failures --------------------------------------------------------------------
log_wait 20 'event=acked queue=q id=twice '
is "$(runs twice)" 3 'status 1 twice, then 0: three runs'
is "$(cut -d ' ' -f 2 "$T/runs.twice" | tr '\n' ' ')" '1 2 3 ' 'attempts are counted'
# shellcheck disable=SC2046  # three words
set -- $(cut -d ' ' -f 1 "$T/runs.twice")
first=$(($2 - $1)) second=$(($3 - $2))
# The daemon says how long; a busy machine adds to it.
delay() { log_lines "event=retry queue=q id=twice attempt=$1 " | log_field delay; }	# ATTEMPT
between() { awk -v x="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(x >= low && x <= high) }'; }
ok 'between "$(delay 1)" 0.5 1 && [ $first -ge 500 ]' "the first retry after 0.5 to 1 of backoff ($(delay 1) s, $first ms)"
ok 'between "$(delay 2)" 1 2 && [ $second -ge 1000 ]' "the second after 1 to 2 ($(delay 2) s, $second ms)"
like "$(log_lines 'event=retry queue=q id=twice attempt=1 ')" 'status=1 .*reason=exit' 'the log says why'

for id in status-1 status-75; do
	log_wait 20 "event=dead queue=q id=$id "
	is "$(runs $id)" 3 "$id: retried until max_attempts"
	is "$(letter $id reason)" attempts 'and then dead, reason attempts'
	is "$(letter $id attempts)" 3 'after three'
	is "$(letter $id status)" "${id#status-}" 'with the last status'
done

log_wait 10 'event=retry queue=q id=kill attempt=1 '
like "$(log_lines 'event=retry queue=q id=kill attempt=1 ')" 'signal=SIGKILL' 'a signal: retried'
log_wait 20 'event=dead queue=q id=kill '
like "$(letter kill status)" '^(SIG)?KILL$' 'the dead letter names the signal'

# -- the time limit --------------------------------------------------------------
for id in slow polite deaf; do
	log_wait 20 "event=retry queue=limited id=$id attempt=1 "
	like "$(log_lines "event=retry queue=limited id=$id attempt=1 ")" 'reason=timeout' "$id: over its time limit, retried"
done
duration() { log_lines "event=retry queue=limited id=$1 attempt=1 " | log_field duration | cut -d . -f 1; }
# Between the record of the delivery and the handler's own look at the clock.
began=$(log_lines 'event=delivered queue=limited id=slow attempt=1' | sed -n '1s/^ts=\([^ ]*\).*/\1/p')
read -r deadline now <"$T/deadline.slow.1"
ok "awk 'BEGIN { exit !($deadline > $(date -d "$began" +%s.%N) + 2 && $deadline <= $now + 3) }'" \
    "RQD_DEADLINE is the end of the limit, in whole seconds ($deadline, delivered $began)"
ok '[ "$(duration deaf)" -lt $((30 * SLOW)) ]' 'one that ignores SIGTERM is killed'
for id in slow polite deaf; do
	log_wait 30 "event=dead queue=limited id=$id "
	is "$(letter $id reason limited)" attempts "$id: dead in the end"
	like "$(log_lines "event=dead queue=limited id=$id ")" 'reason=attempts cause=timeout' 'and the log says why'
done
wait_ok 20 '[ -z "$(sleepers)" ]' 'and their processes are gone'

# -- dead_max_age, dead_max --------------------------------------------------------
wait_ok 20 "[ \"\$(r xlen fewDEAD)\" = 0 ]" 'dead_max_age deletes an old letter'
ok "[ $(r xlen qDEAD) -gt 0 ]" "and no other queue's"
# A trimmed stream loses whole nodes.
r config set stream-node-max-entries 5 >/dev/null
seq 40 | sed "s/.*/LPUSH few '{\"id\":\"status-65\",\"n\":&}'/" | r >/dev/null
log_wait 30 'event=dead queue=few ' 40
n=$(r xlen fewDEAD)
ok "[ $n -ge 10 ] && [ $n -le 15 ]" "dead_max letters are kept ($n)"
like "$(r --raw xrevrange fewDEAD + - count 1 | tail -n +2 | head -n 4 | tail -n 1)" '"n":40' 'the newest'
is "$(r --raw xrange fewDEAD - + | grep -c '"n":[12]}')" 0 'and not the oldest'

# -- other rules -----------------------------------------------------------------
push status-4 own
log_wait 10 'event=dead queue=own id=status-4 '
is "$(letter status-4 reason own)" status 'dead_status says which are dead'
push status-65 own
log_wait 10 'event=dead queue=own id=status-65 '
is "$(letter status-65 reason own)" attempts 'and which are not'

large=$(printf '{"id":"large","pad":"%02000d"}' 0)
r lpush q "$large" >/dev/null
log_wait 10 'event=dead queue=q .*reason=too_large'
is "$(r --raw xrevrange qDEAD + - count 1 | awk '$0 == "message" { getline; print }')" "$large" 'too large: dead, whole, unrun'
ok '[ ! -e "$T/runs.large" ]' 'it did not run'

is "$(r xlen qDEAD) $(r xlen limitedDEAD) $(r xlen ownDEAD)" '6 3 2' 'no dead letter too many'
ok '[ -z "$(keys | tr " " "\n" | grep -vE "(DEAD|STATS)$")" ]' 'nothing else is left'
ctl dead retry q status-65 -y >"$T/ctl.out" 2>&1
wait_for 10 '[ "$(runs status-65)" -ge 2 ]'
like "$(runs status-65)" '^[2-9]' 'rqctl dead retry brings one back'

# -- and all that is counted -------------------------------------------------------
rqd_stop
events() { log_count "event=$1 queue=q .*$2"; }
unrun=$(events dead reason=too_large)
is "$(r hmget qSTATS delivered acked retried dead failed | tr '\n' ' ')" \
    "$(events delivered) $(events acked) $(events retry) $(events dead) $(($(events retry) + $(events dead) - unrun)) " \
    'the totals are what the log says'
# The last of three goes with reason=attempts.
is "$(r hget limitedSTATS timeouts)" "$(($(log_count 'event=retry queue=limited .*reason=timeout') + 3))" 'with those that took too long'
