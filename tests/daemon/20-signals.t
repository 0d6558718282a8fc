#!/bin/sh
# All signals that service managers, container images and terminals send: TERM and those like
# it, a second one, HUP, USR1, USR2, WINCH, PIPE, TSTP.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start --appendonly no
handler work <<'H'
case $RQD_ID in deaf*) trap '' TERM ;; esac
echo "$RQD_ID $RQD_ATTEMPT" >>"$T/began"
case $RQD_ID in
long*) sleep 600 ;;
half*) until [ -e "$T/finish" ]; do sleep 0.1; done ;;
deaf*) sleep 600; sleep 600 ;;
esac
echo "$RQD_ID" >>"$T/ended"
H
conf() {	# DRAIN_TIMEOUT
	cat <<C
drain_timeout = $1
queue "q" { command = {"$T/work"} concurrency = 2 kill_grace = 1s }
C
}
began() { wait_for 10 "grep -q '^$1 ' '$T/began'"; }
push() { r lpush q "{\"id\":\"$1\"}" >/dev/null; }
timed_end() {	# milliseconds since $start
	rqd_wait
	took=$(($(msec) - start))
}

# -- TERM: running handlers finish ---------------------------------------------------
conf 60s >"$T/start"
rqd_start <"$T/start"
push half-1
began half-1
push half-2
began half-2
push waiting
rqd_signal TERM
log_wait 10 event=draining
start=$(msec)
touch "$T/finish"
timed_end
is "$STATUS" 0 'SIGTERM: exit 0'
ok "[ $took -le 50000 ]" "as soon as the handlers have finished ($took ms)"
is "$(sort "$T/ended" | tr '\n' ' ')" 'half-1 half-2 ' 'they did finish'
is "$(log_count 'event=acked')" 2 'and were acked'
is "$(r llen q)" 1 'no more was popped'
like "$(log_lines 'event=draining')" . 'the log says draining'
like "$(log_lines 'event=stopped')" . 'and stopped'
wait_ok 20 'grep -q "^STOPPING=1" "$T/rqd.notify"' 'systemd is told'

# -- TERM: drain_timeout, and the messages go back --------------------------------------
# Redis has 1.5 s to confirm that.  A machine may stand still for so long.
given_back() { [ "$(r zcard qRETRY)" -eq 2 ]; }
start_both() {	# DRAIN_TIMEOUT
	r del q qBACKUP qRETRY qCONTEXT qDELIVERY >/dev/null
	: >"$T/began"
	conf "$1" >"$T/start"
	rqd_start <"$T/start"
	push long-1
	push deaf-1
	began long-1
	began deaf-1
}
out_of_time() {
	start_both 700ms
	start=$(msec)
	returned=$(log_count "$RETURNED")
	rqd_signal TERM
	timed_end
	given_back
}
RETURNED='event=returned queue=q id=(long|deaf)-1 .*reason=drain'
thrice out_of_time
is "$STATUS" 0 'SIGTERM with handlers that do not end: exit 0'
ok "[ $took -ge 700 ] && [ $took -le $((50000 * SLOW)) ]" "after drain_timeout and kill_grace ($took ms)"
is "$(($(log_count "$RETURNED") - returned))" 2 'both messages were given back'
is "$(r zcard qBACKUP)" 0 'nobody owns them'
ok given_back 'they are due'
: >"$T/began"
push waits
conf 60s >"$T/start"
rqd_start <"$T/start"
began long-1
began deaf-1
is "$(sort "$T/began" | tr '\n' ' ')" 'deaf-1 1 long-1 1 ' 'and run again before what waits, no attempt counted'
r del q >/dev/null

# -- TERM twice ----------------------------------------------------------------------
term_twice() {
	is_child "$(pid_of)" || start_both 60s
	draining=$(log_count event=draining)
	start=$(msec)
	rqd_signal TERM
	log_wait 15 event=draining $((draining + 1))
	rqd_signal TERM
	timed_end
	given_back
}
thrice term_twice
is "$STATUS" 0 'a second SIGTERM: exit 0'
ok "[ $took -le 50000 ]" "without waiting for drain_timeout ($took ms)"
ok given_back 'the messages were given back again'
r del qRETRY qCONTEXT qDELIVERY >/dev/null

# -- TERM three times ----------------------------------------------------------------
term_thrice() {
	r del qRETRY qCONTEXT qDELIVERY >/dev/null
	: >"$T/began"
	conf 60s | sed 's/kill_grace = 1s/kill_grace = 60s/' >"$T/start"
	rqd_start <"$T/start"
	push deaf-2
	began deaf-2
	draining=$(log_count event=draining) gave_up=$(log_count 'gave up waiting')
	rqd_signal TERM
	log_wait 15 event=draining $((draining + 1))
	rqd_signal TERM
	# Two that are pending together are one.
	wait_for 20 'grep -q "^ShdPnd:.0*$" "/proc/$(pid_of)/status"'
	start=$(msec)
	rqd_signal TERM
	timed_end
	[ "$(log_count 'gave up waiting')" -eq "$gave_up" ]
}
thrice term_thrice
is "$STATUS" 0 'a third SIGTERM: exit 0'
ok "[ $took -le 50000 ]" "without waiting for kill_grace ($took ms)"
is "$(r zcard qRETRY)" 1 'the message was given back'
r del qRETRY qCONTEXT qDELIVERY >/dev/null

# -- TERM: a batch that has done all messages, and runs on -------------------------------
handler lingers <<'H'
trap 'echo TERM >"$T/lingers"; exit 0' TERM
cat >/dev/null
echo 1 ok >&3
while sleep 0.1; do :; done
H
rqd_start <<C
drain_timeout = 700ms
queue "q" { command = {"$T/lingers"} batch = 2 kill_grace = 60s }
C
push done-1
log_wait 15 'event=acked queue=q id=done-1 '
gave_up=$(log_count 'gave up waiting')
rqd_signal TERM
rqd_wait
is "$STATUS $(cat "$T/lingers")" '0 TERM' 'after drain_timeout it gets SIGTERM, too'
is "$(log_count 'gave up waiting')" "$gave_up" 'rqd does not say that Redis was slow'

# -- INT ---------------------------------------------------------------------------------
conf 20s >"$T/start"
rqd_start <"$T/start"
rqd_signal INT
rqd_wait
is "$STATUS" 0 'SIGINT: exit 0'

# -- USR2: quiet, until HUP ---------------------------------------------------------------
: >"$T/began"
: >"$T/ended"
conf 20s >"$T/start"
rqd_start <"$T/start"
rm "$T/finish"
push half-3
began half-3
rqd_signal USR2
ok 'log_wait 15 event=quiet' 'SIGUSR2: quiet'
push half-4
touch "$T/finish"
ok 'log_wait 10 "event=acked queue=q id=half-3 "' 'what runs goes on'
sleep 0.5
is "$(r llen q)" 1 'but nothing is popped'
rqd_signal HUP
ok 'log_wait 10 "event=acked queue=q id=half-4 "' 'SIGHUP ends it'
rqd_stop

# -- USR1: a new log file --------------------------------------------------------------
rqd_start <<C
log { target = "$OWN/file.log" level = "debug" }
queue "q" { command = {"$T/work"} }
C
ok '[ -s "$OWN/file.log" ]' 'the log is in its file'
mv "$OWN/file.log" "$OWN/file.log.1"
push quick-1
wait_for 10 'grep -q "event=acked queue=q id=quick-1 " "$OWN/file.log.1"'
rqd_signal USR1
wait_for 15 '[ -e "$OWN/file.log" ]'
push quick-2
wait_ok 10 'grep -q id=quick-2 "$OWN/file.log"' 'SIGUSR1: the log goes on in a new file'
ok 'grep -q quick-1 "$OWN/file.log.1" && ! grep -q quick-2 "$OWN/file.log.1"' 'and leaves the old one'
rqd_stop

# -- HUP, USR1 and USR2 in its first moment ------------------------------------------------
if [ "$SLOW" -eq 1 ]; then
	RQD_WRAPPER="env LD_PRELOAD=$BUILDDIR/tests/helpers/early.so"
	rqd_start early <<C
queue "q" { command = {"$T/work"} }
C
	RQD_WRAPPER=''
	wait_ok 10 'log_count event=reloaded early >/dev/null && log_count event=quiet early >/dev/null' \
	    'they are heard once the daemon is there'
	rqd_stop early
else
	skip 'no preload beside a sanitizer or valgrind'
fi

# -- no time at all: what is on its way to Redis still arrives ----------------------------
handler quick <<'H'
while read -r n attempt length id && IFS= read -r message; do echo "$n ok"; done
H
gave_up=0
for _round in 1 2 3 4 5; do
	rqd_start none <<C
drain_timeout = 0
queue "fast" { command = {"$T/quick"}  mode = "persistent"  framing = "line" }
C
	acked=$(log_count 'event=acked queue=fast' none)
	seq 1 3000 | ctl push -l fast >/dev/null
	log_wait 10 'event=acked queue=fast' $((acked + 100)) none
	rqd_signal TERM none
	rqd_wait none
	# Redis has 1.5 s, as above.
	if [ "$(log_count 'gave up' none)" -gt $gave_up ]; then
		gave_up=$((gave_up + 1))
		r del fastBACKUP >/dev/null
		continue
	fi
	is "$(r zcard fastBACKUP)" 0 'drain_timeout = 0: nothing is left to its lease'
done
ok "[ $gave_up -le 2 ]" "hardly anything was given up ($gave_up)"
r unlink fast fastRETRY fastCONTEXT fastDELIVERY >/dev/null

# -- a burst of TERM, on and on until the process is gone ---------------------------------
killed=0
for _round in $(seq 50); do
	config_write burst <<C
drain_timeout = 0
C
	rm -f "$T/burst.log"	# of the round before: it says "started", too
	"$RQD" -c "$T/burst.conf" </dev/null 2>"$T/burst.log" &
	PID=$!
	OTHER_PIDS="$OTHER_PIDS $PID"
	wait_for 20 'grep -qs event=started "$T/burst.log"'
	while kill -TERM "$PID" 2>/dev/null; do :; done
	STATUS=0
	wait "$PID" || STATUS=$?
	[ "$STATUS" -eq 0 ] || killed=$((killed + 1))
done
is "$killed" 0 'of 50 daemons under a burst of SIGTERM all exit with 0'

# -- the other signals that stop a service ---------------------------------------------------
HALT=$(python3 -c 'import signal; print(int(signal.SIGRTMIN) + 3)' 2>/dev/null) || HALT=37
r del q qBACKUP qRETRY qCONTEXT qDELIVERY >/dev/null
n=$(log_count 'event=acked')
for signal in QUIT PWR "$HALT"; do
	rm -f "$T/finish"
	: >"$T/began"
	conf 60s >"$T/start"
	rqd_start <"$T/start"
	push "half-$signal"
	began "half-$signal"
	drains=$(log_count event=draining)
	rqd_signal WINCH
	rqd_signal "$signal"
	wait_ok 10 '[ "$(log_count event=draining)" -gt "$drains" ]' "signal $signal: drains"
	touch "$T/finish"
	rqd_wait
	is "$STATUS $(log_count 'event=acked')" "0 $((n += 1))" 'after the handler: exit 0, and SIGWINCH is ignored'
done

# -- PIPE, and TSTP until CONT -------------------------------------------------------------------
heard() { grep -q '^SigPnd:.0*$' "/proc/$1/status" && grep -q '^ShdPnd:.0*$' "/proc/$1/status"; }
stopped() { grep -q '^State:.T' "/proc/$1/status"; }
: >"$T/began"
: >"$T/ended"
rm -f "$T/finish"
conf 60s >"$T/start"
rqd_start quietly <"$T/start"
main=$PID
spawner=$(pgrep -o -P "$main" -x rqd-spawner)
push half-pipe
began half-pipe
# The spawner, which blocks them, has those that a terminal sends to all of its processes, too.
kill -PIPE "$main" "$spawner"
wait_for 10 'heard "$main"'
push half-pipe-2
began half-pipe-2
ok 'is_alive "$main" && is_alive "$spawner"' 'SIGPIPE, to rqd and to its spawner, is ignored'
# A process whose group no shell controls, as below systemd, does not stop.
kill -TSTP "$main" "$spawner"
wait_for 10 'stopped "$main" || heard "$main"'
ok '! stopped "$spawner"' 'SIGTSTP: the spawner does not stop'
touch "$T/finish"
wait_ok 10 'grep -q half-pipe-2 "$T/ended"' 'and handlers run on'
stopped "$main" && is "$(log_count 'event=acked' quietly)" 0 'rqd, which is stopped, acks nothing'
kill -CONT "$main" "$spawner"
wait_ok 10 '[ "$(log_count "event=acked .*attempt=1 " quietly)" -eq 2 ]' 'after SIGCONT both are acked, in their first attempt'
push quick-tstp
wait_ok 10 'log_lines "event=acked .*id=quick-tstp " quietly >/dev/null' 'and the next one runs'
is "$(log_count 'event=(draining|quiet|reload|warning|returned|retry|stopped)' quietly)" 0 'nothing else has come of them'
rqd_stop quietly

# -- -q: its terminal is closed ----------------------------------------------------------------
: >"$T/began"
rm -f "$T/finish"
# The signal may be ignored where the tests were started.
wrapper=$RQD_WRAPPER
RQD_WRAPPER="env --default-signal=HUP $RQD_WRAPPER"
rqd_run line -o "redis.server=unix:$SOCK" -q q -- "$T/work"
RQD_WRAPPER=$wrapper
push half-hup
began half-hup
rqd_signal HUP line
wait_ok 10 '[ "$(log_count event=draining line)" = 1 ]' 'rqd -q: SIGHUP drains'
rqd_signal HUP line
touch "$T/finish"
rqd_wait line
is "$STATUS $(log_count 'event=acked' line)" '0 1' 'and a second one takes no handler'"'"'s time'

if command -v nohup >/dev/null; then
	: >"$T/began"
	RQD_WRAPPER="nohup $RQD_WRAPPER"
	rqd_run line -o "redis.server=unix:$SOCK" -q q -- "$T/work"
	rqd_signal HUP line
	push half-nohup
	began half-nohup
	log_wait 10 event=acked 2 line
	is "$(log_count event=draining line) $(log_count event=acked line)" '1 2' 'under nohup it is ignored'
	rqd_stop line
fi
