#!/bin/sh
# Ten idle daemons: a delayed message does not wake all of them, and pushed messages do
# not always go to the same one.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

needs_speed
N=10
redis_start --appendonly no
handler fine <<'H'
exit 0
H
for i in $(seq $N); do
	rqd_start "d$i" <<C
name = "d$i"
queue "q" { command = {"$T/fine"} }
C
done
scripts() { r info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p'; }

# Each daemon learns with its second heartbeat how many there are.
first=$(date +%s)
wait_for 40 '[ "$(r zcard rqd:daemons)" -eq $N ]'
wait_for 40 '[ $(($(date +%s) - first)) -ge 21 ]'

# -- for later ---------------------------------------------------------------------
before=$(scripts) begin=$(msec)
sleep 10
idle=$(($(scripts) - before)) idle_ms=$(($(msec) - begin))
before=$(scripts) begin=$(msec)
for i in $(seq 40); do
	r zadd qDELAYED "$(($(date +%s) + 3600))" "later-$i" >/dev/null
	sleep 0.25
done
idle=$((idle * ($(msec) - begin) / idle_ms))	# in as long a time
sent=$(($(scripts) - before - idle))
note "$sent scripts for 40 messages that are due in an hour, $idle without any"
ok '[ $sent -le 240 ]' 'of ten daemons few look at what is for later'
r del qDELAYED >/dev/null
r zadd qDELAYED "$(($(date +%s) + 2))" soon >/dev/null
acked() { cat "$T"/d*.log | grep -c 'event=acked queue=q'; }
wait_ok 30 '[ "$(acked)" -eq 1 ]' 'what falls due is handed out'

# -- turns --------------------------------------------------------------------------
# Chance says which daemon comes first, and a busy machine favours some: so messages come until
# each had its turn.  A daemon that always comes first has all of them.
pushed=0
taken() {	# the most that one daemon had, and how many had none
	for i in $(seq $N); do log_count 'event=acked queue=q' "d$i"; done | sort -n |
	    awk '{ none += $1 == 0; most = $1 } END { print most, none + 0 }'
}
while [ $pushed -lt 1200 ]; do
	for i in $(seq 120); do
		r lpush q "{\"id\":$((pushed += 1))}" >/dev/null
		sleep 0.02
	done
	wait_for 60 '[ "$(acked)" -gt $pushed ]'
	# shellcheck disable=SC2046
	set -- $(taken)
	[ "$1" -gt $((pushed * 3 / 4)) ] || [ "$2" -gt 2 ] || break
done
is "$(acked)" $((pushed + 1)) 'everything is handled'
note "the daemon with the most messages had $1 of $pushed, $2 had none"
ok "[ $2 -le 2 ]" 'idle daemons take turns'
ok "[ $1 -le $((pushed * 3 / 4)) ]" 'none has nearly all of them'
for i in $(seq $N); do rqd_signal TERM "d$i"; done
for i in $(seq $N); do rqd_wait "d$i"; done
