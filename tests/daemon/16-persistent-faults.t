#!/bin/sh
# Persistent handlers that die, lie, flood and do not read; daemons that are killed,
# stopped and reloaded meanwhile.  No message is lost, and none is at two processes at
# once.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

PYTHON=$(command -v python3) || skip_all 'no python3'

cp "$SRCDIR/tests/helpers/persist.py" "$T/work.py"

push() {	# QUEUE FROM TO
	seq "$2" "$3" | sed "s/.*/LPUSH $1 '{\"id\":&}'/" | r >/dev/null
}

nothing_left() {	# QUEUE
	[ "$(r --raw exists "$1" "$1BACKUP" "$1RETRY" "$1CONTEXT" "$1DELIVERY")" = 0 ]
}

# Ids that are done, and those that are done more than once.
distinct() { cut -d ' ' -f 1 "$T/$1.done" 2>/dev/null | sort -u | wc -l | tr -d ' '; }
double() { cut -d ' ' -f 1 "$T/$1.done" | sort | uniq -d | wc -l | tr -d ' '; }
# Prints the messages that needed a second attempt.
again() { awk '$2 > 1 { print $1 }' "$T/$1.begun" | sort -u | tr '\n' ' '; }

# -- misbehaviour ------------------------------------------------------------------

KINDS='garbage long unknown twice stdout stdin silent flood exit status segv'
redis_start
# Handlers that sleep end by their time limit; on a busy machine others need long, too, and where
# processes start slowly eleven of Python need seconds.
limits=$((8 * SLOW))
[ -z "${RQD_TEST_SLOW-}" ] || limits=$((3 * limits))
for k in $KINDS; do
	case $k in std* | silent) limit=${limits}s ;; *) limit=5m ;; esac
	echo "queue \"$k\" { command = {\"$PYTHON\", \"$T/work.py\", \"$k\", \"$T\"} time_limit = $limit }"
	push "$k" 1 40
done >"$T/start"
cat >>"$T/start" <<C
log { level = "info" }
defaults {
	mode = "persistent" pipeline = 8 backoff = 100ms
	kill_grace = 200ms output_limit = 10K ${AS:+$AS}
}
C
rqd_start <"$T/start"
for k in $KINDS; do
	wait_for 60 "nothing_left $k"
	is "$(distinct "$k")" 40 "$k: nothing is lost"
done
for k in garbage long unknown stdout stdin silent exit status segv; do
	is "$(again $k)" '7 ' "$k: only the oldest has failed"
done
is "$(again twice)" '8 ' 'twice: the second answer is a breach, and the next was the oldest'
is "$(again flood)" '' 'flood: none has failed'
like "$(log_lines 'event=retry queue=garbage ')" 'id=7 attempt=1 pid=[0-9]* .*reason=protocol delay=.* cause="not an answer: hello world"' 'garbage: the log quotes it'
like "$(log_lines 'event=handler_exited queue=garbage ')" 'level=warn .*reason=protocol cause=' 'garbage: and says why the process ended'
like "$(log_lines 'event=retry queue=unknown ')" 'cause="not outstanding: 4711 ok"' 'unknown: so too'
like "$(log_lines 'event=retry queue=silent ')" 'reason=timeout' 'silent: the time limit'
like "$(log_lines 'event=retry queue=exit ')" 'status=0 .*reason=exit' 'exit: 0 is no answer'
like "$(log_lines 'event=retry queue=status ')" 'status=65 .*reason=exit' 'status: 65 is no verdict'
like "$(log_lines 'event=retry queue=segv ')" 'signal=SIGSEGV .*reason=signal' 'segv: the signal'
like "$(log_lines 'event=returned queue=garbage ')" 'id=8 attempt=1 ' 'those behind it are given back'
# Twice, where the answer before it is still unread when the flood begins.
like "$(log_count 'event=output_cut queue=flood ')" '^[12]$' 'flood: its output is cut'
is "$(log_count 'event=dead ')" 0 'nothing became a dead letter'
rqd_stop

# -- kill -9 of handlers, and of the daemon -------------------------------------------

conf() {	# QUEUE [OPTION...]
	_q=$1
	shift
	cat <<C
log { level = "info" }
queue "$_q" {
	command = {"$PYTHON", "$T/work.py", "$_q", "$T"}
	mode = "persistent" concurrency = 3 pipeline = 16 backoff = 50ms lease = 3s
	max_attempts = 100 suspend_after = 0 env = {"SLOW=0.004"} $*
}
C
}

handlers() { log_lines 'event=handler_started' kill | log_field pid | tail -n 3; }

push kill 100 699
conf kill >"$T/start"
rqd_start kill <"$T/start"
killed=0
while ! nothing_left kill; do
	for p in $(handlers); do
		is_alive "$p" && kill -KILL "$p" && killed=$((killed + 1))
		sleep 0.2
	done
	[ $killed -lt 20 ] || break
done
note "$killed processes were killed"
wait_ok 60 'nothing_left kill' 'kill -9 of handlers: all messages are done'
is "$(distinct kill)" 600 'each of them'
ok "[ \$(log_count 'event=retry ' kill) -le $killed ]" 'at most one has failed for each process'
log_wait 20 'event=acked ' 600 kill
is "$(log_count 'event=acked ' kill)" 600 'each was acked once'
rqd_stop kill

push nine 100 699
for i in 1 2 3; do
	conf nine >"$T/start"
	rqd_start nine <"$T/start"
	log_wait 20 'event=acked ' $((i * 50)) nine
	rqd_kill9 nine
	wait_ok 15 '[ -z "$(our_processes)" ]' "kill -9 of the daemon, $i: its handlers are gone"
done
conf nine >"$T/start"
rqd_start nine <"$T/start"
wait_ok 60 'nothing_left nine' 'after restarts all messages are done'
is "$(distinct nine)" 600 'each of them'
is "$(again nine)" '' 'and that was no attempt'
rqd_stop nine

# -- SIGTERM, and reload ---------------------------------------------------------------

# Redis has 1.5 s to confirm that.  A machine may stand still for so long.
push term 100 399
sigterm() {
	conf term 'kill_grace = 300ms' >"$T/start"
	echo 'drain_timeout = 100ms' >>"$T/start"
	acked=$(log_count 'event=acked ' term) gave_up=$(log_count 'gave up waiting' term)
	rqd_start term <"$T/start"
	log_wait 20 'event=acked ' $((acked + 20)) term
	rqd_stop term
	wait_for 15 '[ -z "$(our_processes)" ]'
	[ "$(log_count 'gave up waiting' term)" -eq "$gave_up" ]
}
thrice sigterm
is "$(r zcard termBACKUP)" 0 'SIGTERM: nothing is left in hand'
conf term >"$T/start"
rqd_start term <"$T/start"
wait_ok 60 'nothing_left term' 'the next daemon does the rest'
is "$(distinct term)" 300 'nothing is lost'
is "$(again term)" '' 'and no attempt was counted'
rqd_stop term

push load 100 399
conf load >"$T/start"
rqd_start load <"$T/start"
for i in 1 2 3; do
	log_wait 20 'event=acked ' $((i * 100)) load
	rqd_signal HUP load
	log_wait 20 'event=reloaded ' $i load
	push load $((200 + i * 200)) $((399 + i * 200))		# for a new process, however slow this is
done
wait_ok 60 'nothing_left load' 'reload: all messages are done'
is "$(distinct load) $(double load)" '900 0' 'each once'
is "$(log_count 'event=(retry|returned|stale) ' load)" 0 'and nothing failed or was given back'
# Three at the start; on a busy machine each reload may bring one alone.
ok '[ "$(log_count "event=handler_started" load)" -ge 6 ]' 'each reload brought new processes'
rqd_stop load
is "$(log_count 'event=handler_exited .*status=0 .*reason=closed' load)" \
    "$(log_count 'event=handler_started' load)" 'and the old ones ended in peace'

ok '[ ! -e "$T/overlap" ]' 'no message was at two processes at once'
