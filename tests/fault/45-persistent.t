#!/bin/sh
# Persistent handlers of two daemons on one queue, while processes, connections and a
# daemon are killed at random, and one reloads: no message is lost, none becomes a dead
# letter, and none is at two processes at once.
#
# SEED, FAULTS	of the faults

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

PYTHON=$(command -v python3) || skip_all 'no python3'
SEED=${SEED:-20} FAULTS=${FAULTS:-40}
note "SEED=$SEED FAULTS=$FAULTS"
state=$((SEED % 2147483647))
random() {	# MOST: 0 to MOST - 1, in $drawn
	state=$((state * 48271 % 2147483647))
	drawn=$((state / 64 % $1))
}

nothing_left() { [ "$(r --raw exists s sBACKUP sRETRY sCONTEXT sDELIVERY)" = 0 ]; }

# One of the last processes that a daemon has begun.
a_process() {	# NAME
	random 3
	log_lines 'event=handler_started' "$1" | log_field pid | tail -n $((drawn + 1)) | head -n 1
}

conf() {
	cat <<C
log { level = "info" }
queue "s" {
	command = {"$PYTHON", "$SRCDIR/tests/helpers/persist.py", "s", "$T"}
	mode = "persistent" concurrency = 2 pipeline = 16 max_messages = 200
	backoff = 20ms lease = 3s max_attempts = 1000 max_crashes = 1000 suspend_after = 0
	kill_grace = 500ms env = {"SLOW=0.003"}
}
C
}

fault() {
	random 7
	case $drawn in
	0 | 1) p=$(a_process a) && is_alive "$p" && kill -KILL "$p" ;;
	2 | 3) p=$(a_process b) && is_alive "$p" && kill -SEGV "$p" ;;
	4) r client kill type normal >/dev/null ;;
	5) rqd_signal HUP a ;;
	6)
		rqd_kill9 b
		rqd_start b <"$T/start"
		;;
	esac
}

redis_start
seq 100 3099 | sed "s/.*/LPUSH s '{\"id\":&}'/" | r >/dev/null
conf >"$T/start"
rqd_start a <"$T/start"
rqd_start b <"$T/start"
log_wait 20 'event=acked' 10 a
i=0
while [ $i -lt "$FAULTS" ] && ! nothing_left; do
	fault
	i=$((i + 1))
	sleep 0.2
done
note "$i faults"
wait_ok 120 nothing_left 'all messages are done'
is "$(cut -d ' ' -f 1 "$T/s.done" | sort -u | wc -l | tr -d ' ')" 3000 'each of them'
is "$(cat "$T/a.log" "$T/b.log" | grep -c 'event=dead ')" 0 'none is a dead letter'
ok '[ ! -e "$T/overlap" ]' 'none was at two processes at once'
note "$(($(wc -l <"$T/s.done") - 3000)) ran twice to their end"
