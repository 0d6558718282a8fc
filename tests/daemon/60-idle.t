#!/bin/sh
# An idle daemon with twenty queues sleeps: no wake-up and no command to Redis
# for seconds at a time.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

[ "$SLOW" -eq 1 ] || skip_all 'tells nothing of a build with sanitizers or valgrind'
redis_start
handler fine <<'H'
exit 0
H
for i in $(seq 20); do echo "queue \"q$i\" { command = {\"$T/fine\"} }"; done >"$T/start"
rqd_start <"$T/start"
log_wait 10 event=redis_up
r lpush q7 '{"id":1}' >/dev/null
log_wait 10 'event=acked queue=q7 '
sleep 2

switches() { awk '/ctxt_switches/ { n += $2 } END { print n }' "/proc/$PID/status"; }
scripts() { r info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p'; }

# Half seconds in which it did not wake up, for fifteen seconds.
longest=0 run=0 woken=0
last=$(switches)
before=$(scripts)
for _ in $(seq 30); do
	sleep 0.5
	now=$(switches)
	if [ "$now" -eq "$last" ]; then
		run=$((run + 1))
		[ $run -le $longest ] || longest=$run
	else
		run=0
		woken=$((woken + now - last))
	fi
	last=$now
done
sent=$(($(scripts) - before))
note "longest sleep $longest half seconds; $woken wake-ups and $sent scripts in 15 s"
ok '[ $longest -ge 6 ]' 'it sleeps three seconds and more at a time'
ok '[ $woken -le 40 ]' 'it wakes up seldom'
ok '[ $sent -le 120 ]' 'and asks Redis little: the safety poll'

ticks=$(awk '{ print $14 + $15 }' "/proc/$PID/stat")
ok "[ $ticks -le 20 ]" "with little processor time since its start ($ticks ticks)"
r lpush q13 '{"id":2}' >/dev/null
start=$(msec)
log_wait 10 'event=acked queue=q13 '
took=$(($(msec) - start))
ok "[ $took -le 5000 ]" "and still wakes at once ($took ms)"
