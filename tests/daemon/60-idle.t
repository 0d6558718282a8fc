#!/bin/sh
# An idle daemon with twenty queues sleeps: no wake-up and no command to Redis
# for seconds at a time.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

needs_speed
redis_start
handler fine <<'H'
exit 0
H
for i in $(seq 20); do echo "queue \"q$i\" { command = {\"$T/fine\"} }"; done >"$T/start"
rqd_start <"$T/start"
log_wait 30 event=redis_up
r lpush q7 '{"id":1}' >/dev/null
log_wait 30 'event=acked queue=q7 '
sleep 2

switches() { awk '/ctxt_switches/ { n += $2 } END { print n }' "/proc/$PID/status"; }
scripts() { r info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p'; }

# The longest time in which it did not wake up, by a look each half second, for fifteen
# seconds.  On a busy machine that takes longer.
longest=0 woken=0
last=$(switches)
before=$(scripts)
begin=$(msec)
slept=$begin
for _ in $(seq 30); do
	sleep 0.5
	now=$(switches)
	if [ "$now" -eq "$last" ]; then
		run=$(($(msec) - slept))
		[ $run -le $longest ] || longest=$run
	else
		slept=$(msec)
		woken=$((woken + now - last))
	fi
	last=$now
done
sent=$(($(scripts) - before))
took=$((($(msec) - begin + 999) / 1000))
note "longest sleep $longest ms; $woken wake-ups and $sent scripts in $took s"
ok '[ $longest -ge 2500 ]' 'it sleeps three seconds and more at a time'
ok '[ $woken -le $((40 * took / 15)) ]' 'it wakes up seldom'
ok '[ $sent -le $((120 * took / 15)) ]' 'and asks Redis little: the safety poll'

ticks=$(awk '{ print $14 + $15 }' "/proc/$PID/stat")
ok "[ $ticks -le 20 ]" "with little processor time since its start ($ticks ticks)"
r lpush q13 '{"id":2}' >/dev/null
start=$(msec)
log_wait 30 'event=acked queue=q13 '
took=$(($(msec) - start))
ok "[ $took -le 5000 ]" "and still wakes at once ($took ms)"
