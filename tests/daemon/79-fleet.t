#!/bin/sh
# Ten daemons with five queues each: idle ones do not poll, and after Redis died they do not
# come back all at once.  bench/section_many.c measures a hundred.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

needs_speed
N=10 QUEUES_EACH=5
redis_start
for i in $(seq $N); do
	rqd_start "d$i" <<C
name = "d$i"
defaults { command = {"/bin/true"} $AS }
$(for q in $(seq $QUEUES_EACH); do echo "queue \"q$q\" {}"; done)
C
done
wait_for 20 '[ "$(r zcard rqd:daemons)" -eq $N ]'
scripts() { r info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p'; }

# -- idle ------------------------------------------------------------------------------
# In 6 s a daemon ticks once at most: a tick and a safety poll for each queue.
sleep 1
before=$(scripts) begin=$(msec)
sleep 6
sent=$(($(scripts) - before))
took=$((($(msec) - begin) / 1000))
note "$sent scripts in $took s"
ok "[ $sent -le $((N * QUEUES_EACH * 2 * took / 6)) ]" 'idle daemons do not poll'

# -- Redis dies, and comes back ------------------------------------------------------------
# The times of the Kth redis_up of each daemon, in ms of the day.
ups() {	# K
	for i in $(seq $N); do
		log_lines event=redis_up "d$i" | sed -n "$1s/^ts=[^T]*T\(..\):\(..\):\(..\)\.\(...\).*/\1 \2 \3 \4/p"
	done | awk '{ print ($1 * 60 + $2) * 60000 + $3 * 1000 + $4 }' | sort -n
}
attempts() { cat "$T"/d*.log | grep -c 'event=redis_state .*from=down to='; }

# A busy machine may wake them together: a stampede does so each time.
together=$N turn=1
while [ $turn -le 3 ] && [ $together -gt $((N * 7 / 10)) ]; do
	turn=$((turn + 1))
	redis_stop KILL
	wait_for 30 '[ "$(cat "$T"/d*.log | grep -c event=redis_down)" -ge $((N * (turn - 1))) ]'
	before=$(attempts)
	sleep 1.5
	tries=$(($(attempts) - before))
	redis_start
	wait_for 60 '[ "$(ups $turn | wc -l)" -eq $N ]' || break
	together=$(ups $turn | awk '{ t[NR] = $1 }
		END { for (i = 1; i <= NR; i++) { for (n = 0; i + n <= NR && t[i + n] < t[i] + 50; n++);
			if (n > most) most = n } print most }')
	note "back after $(ups $turn | awk 'NR == 1 { first = $1 } { printf " %d", $1 - first }') ms; $tries attempts in 1.5 s"
done
is "$(ups $turn | wc -l)" $N 'all daemons come back'
ok "[ $together -le $((N * 7 / 10)) ]" "not at once: $together of $N within 50 ms"
# Three connections each, after 0.1 s, 0.2 s, 0.4 s and so on.
ok "[ $tries -le $((N * 3 * 8)) ]" "and do not hammer: $tries attempts in 1.5 s"
for i in $(seq $N); do rqd_signal TERM "d$i"; done
for i in $(seq $N); do rqd_wait "d$i"; done
