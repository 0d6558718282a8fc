#!/bin/sh
# max_handlers and priority: who gets slots as they become free, how many calls that takes,
# and a reload that lowers max_handlers while more run.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

case $RQD_WRAPPER in *valgrind*) skip_all 'who asks first depends on which queue is slow' ;; esac
redis_start
# Runs until its queue may end.
handler work <<'H'
echo "begin $RQD_QUEUE" >>"$T/runs"
while [ ! -e "$T/go.$RQD_QUEUE" ]; do sleep 0.05; done
[ "$RQD_QUEUE" != few ] || sleep 0.1
echo "end $RQD_QUEUE" >>"$T/runs"
H
push() {	# QUEUE COUNT, in one step
	r eval 'for _ = 1, ARGV[1] do redis.call("LPUSH", KEYS[1], "m") end' 1 "$1" "$2" >/dev/null
}
begun() { grep -c "^begin $1\$" "$T/runs"; }	# QUEUE
calls() { r info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p'; }
# Commands of pops that took something: two of each.
pops() { r info commandstats | sed -n 's/^cmdstat_ltrim:calls=\([0-9]*\).*/\1/p' | grep . || echo 0; }
# Waits until nothing is sent for a third of a second.
quiet() { until _n=$(calls) && sleep 0.33 && [ "$_n" = "$(calls)" ]; do :; done; }
conf() {	# MAX_HANDLERS
	cat <<C
max_handlers = $1
log { level = "debug" }
defaults { $AS command = {"$T/work"} concurrency = 40 }
queue "block" { }
queue "one" { }
queue "two" { }
queue "three" { }
queue "few" { }
queue "high" { priority = 5 concurrency = 6 }
C
}
: >"$T/runs"
conf 12 >"$T/text"
rqd_start <"$T/text"
log_wait 20 event=redis_up

# -- one pop for all ---------------------------------------------------------------------
quiet
before=$(pops)
push block 30
wait_ok 20 '[ "$(begun block)" -eq 12 ]' 'twelve of thirty messages get a slot each'
quiet
n=$(($(pops) - before))
is "$(begun block)" 12 'and no more'
ok "[ $n -le 6 ]" "one pop brings all ($n)"

# -- priority, and turns ------------------------------------------------------------------
# All have messages, and none has a slot.
r ltrim block 1 0 >/dev/null
for q in one two three high; do push $q 20; done
quiet
is "$(begun one) $(begun two) $(begun three) $(begun high)" '0 0 0 0' 'others wait for slots'
# The daemon sees all twelve ends together.
rqd_signal STOP
touch "$T/go.block"
wait_for 20 '! pgrep -f "$T/work" >/dev/null'
rqd_signal CONT
wait_ok 20 '[ "$(grep -c begin "$T/runs")" -eq 24 ]' 'each slot that one queue frees wakes another'
# Slots that become free in several turns of the loop do not come out even; and a queue whose
# pop is on its way, long on a busy machine, wants none.
high=$(begun high)
ok '[ $high -ge 4 ] && [ $high -le 6 ]' 'a higher priority gets more than its share'
is "$(($(begun one) + $(begun two) + $(begun three)))" $((12 - high)) 'equal ones get the rest'
ok "[ $(begun one) -ge 1 ] && [ $(begun two) -ge 1 ] && [ $(begun three) -ge 1 ]" 'in turns'

# -- a reload ------------------------------------------------------------------------------
conf 4 | sed "1i redis { server = \"unix:$SOCK\" }" >"$T/rqd.conf.new" && mv "$T/rqd.conf.new" "$T/rqd.conf"
rqd_signal HUP
log_wait 20 event=reloaded
touch "$T/go.few"
push few 8
# Six or more run on, which are too many.
touch "$T/go.high"
wait_ok 20 '[ "$(grep -c "end high" "$T/runs")" -eq $high ]' 'max_handlers is lowered while more run: some end'
quiet
is "$(grep -c begin "$T/runs")" 24 'nobody gets their slots'
at=$(wc -l <"$T/runs")
touch "$T/go.one" "$T/go.two" "$T/go.three"
wait_ok 30 no_keys 'all are done'
# As many as ran before, then never more than four.
tail -n "+$((at + 1))" "$T/runs" | awk '{ n += $1 == "begin" ? 1 : -1 }
	$1 == "begin" && n + rest > most { most = n + rest } END { print most }' rest=$((12 - high)) - >"$T/most"
ok '[ "$(cat "$T/most")" -le 4 ] && [ "$(cat "$T/most")" -ge 2 ]' 'in four slots'
is "$(begun high) $(begun one) $(begun two) $(begun three) $(begun few)" '20 20 20 20 8' 'each once'
