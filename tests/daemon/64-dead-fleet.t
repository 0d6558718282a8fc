#!/bin/sh
# Two hundred daemons that have died do not count: a daemon that is alone waits for nobody
# with what falls due.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

needs_speed
N=16
redis_start
# A minute ago: three heartbeats, and the index keeps them for an hour.
# shellcheck disable=SC2046
r zadd rqd:daemons $(for i in $(seq 200); do echo "$(($(date +%s) - 60)) dead.$i"; done) >/dev/null

# How late the median of the queues begins with its first message, in ms.  Each queue draws
# its own time, and learns later how many daemons compete.
late() {
	log_lines event=delivered "d$turn" | sed -n 's/^ts=[^T]*T\(..\):\(..\):\(..\)\.\(...\).*/\1 \2 \3 \4/p' |
	    awk -v due="$due" '{ print (($1 * 60 + $2) * 60 + $3 - due % 86400) * 1000 + $4 }' |
	    sort -n | sed -n "$((N / 2))p"
}
for turn in 1 2 3; do
	rqd_start "d$turn" <<C
defaults { command = {"/bin/true"} $AS }
$(for q in $(seq $N); do echo "queue \"q$q\" {}"; done)
C
	wait_for 20 '[ "$(r zcard rqd:daemons)" -eq 201 ]'
	due=$(($(date +%s) + 3))
	for q in $(seq $N); do r zadd "q${q}DELAYED" $due "m$turn" >/dev/null; done
	wait_for 30 '[ "$(log_count event=acked "d$turn")" -eq $N ]'
	median=$(late)
	note "the median is $median ms late"
	rqd_stop "d$turn"
	# A busy machine may be late; one that waits for the dead is so each time.
	[ "$median" -ge 300 ] || break
done
ok '[ "$median" -lt 300 ]' 'what falls due is not delayed by daemons that have died'
r del rqd:daemons >/dev/null
