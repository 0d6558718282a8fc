#!/bin/sh
# Kind "unique", and an exclusive queue, while daemons and Redis are killed over
# and over: no id runs beside itself, no two of an exclusive queue at once, and
# each id runs after it was last enqueued.  RQD_SOAK: seconds for each.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

SECONDS_EACH=8
[ -z "$RQD_TEST_LONG" ] || SECONDS_EACH=12
SECONDS_EACH=${RQD_SOAK:-$SECONDS_EACH}
DAEMON_NAMES='one two three'
MORE_KEYS='Queue:each Queue:only'
command -v redis-server >/dev/null || skip_all 'no redis-server'

random() { od -An -N2 -tu2 /dev/urandom | tr -d ' '; }
now() { date +%s.%N | cut -c 1-17; }

# Redis writes to its disk before it answers.
redis_run() {
	redis-server --port 0 --unixsocket "$SOCK" --unixsocketperm 777 --dir "$T" --save '' --appendonly yes \
	    --appendfsync always --logfile "$T/redis.log" >>"$T/redis.out" 2>&1 &
	REDIS_PID=$!
	wait_for 30 '[ "$(r ping 2>/dev/null)" = PONG ]'
}

# One that is killed tells us by its lock; $T/lock is what may be held once.
handler work <<'H'
case $RQD_QUEUE in each) lock=each.$RQD_ID ;; *) lock=only ;; esac
exec 9>"$T/lock.$lock"
flock -n 9 || echo "$RQD_QUEUE $RQD_ID" >>"$T/overlap"
echo "$(date +%s%N) $RQD_QUEUE $RQD_ID" >>"$T/began"
n=$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')
case $((n % 10)) in
0) sleep 0.3 ;;
1) exit 1 ;;
2) redis-cli -s "$T/redis.sock" zadd "Queue:$RQD_QUEUE" nx "$(date +%s)" "$RQD_ID" >/dev/null 2>&1 9>&- ;;
*) sleep "0.0$((n % 10))" ;;
esac
exit 0
H
cat >"$T/text" <<C
defaults {
	$AS
	kind = "unique"  command = {"$T/work"}  concurrency = 4
	lease = 5s  backoff = 100ms  backoff_max = 1s  suspend_after = 0
	max_attempts = 100000  max_crashes = 1000
}
queue "each" { }
queue "only" { fleet_concurrency = 1 }
C

# Enqueues in every form; what was answered is written down.
produce() {	# QUEUE
	while [ ! -e "$T/stop" ]; do
		for id in 1 2 3 4 5 6; do
			case $((id % 4)) in 0) form=NX ;; 1) form=GT ;; 2) form=LT ;; 3) form='' ;; esac
			at=$(date +%s%N)
			case $(r zadd "Queue:$1" $form "$(now)" $id 2>/dev/null) in
			[01]) echo "$at $1 $id" >>"$T/enqueued" ;;
			esac
		done
		sleep 0.3
	done
}

harm() {
	case $(($(random) % 5)) in
	0) redis_stop KILL; redis_run ;;
	1) rqd_kill9 one; rqd_start one <"$T/text" ;;
	2) rqd_kill9 two; rqd_start two <"$T/text" ;;
	3) rqd_signal TERM three; rqd_wait three; rqd_start three <"$T/text" ;;
	4) r script flush >/dev/null; r client kill type normal >/dev/null ;;
	esac
}

last() { awk -v q="$2" -v i="$3" '$2 == q && $3 == i { t = $1 } END { printf "%s", t }' "$T/$1"; }

: >"$T/began"
: >"$T/enqueued"
redis_run
for d in $DAEMON_NAMES; do rqd_start $d <"$T/text"; done
produce each &
producers=$!
produce only &
producers="$producers $!"
end=$(($(date +%s) + 2 * SECONDS_EACH))
while [ "$(date +%s)" -lt $end ]; do
	harm
	sleep 1
done
: >"$T/stop"
wait $producers
wait_ok 90 '[ "$(r exists Queue:each Queue:eachBACKUP Queue:eachRETRY Queue:only Queue:onlyBACKUP Queue:onlyRETRY)" = 0 ]' \
    'all is worked off'
for q in each only; do
	late=''
	for id in 1 2 3 4 5 6; do
		[ "$(last began $q $id)" -ge "$(last enqueued $q $id)" ] || late="$late $id"
	done
	is "$late" '' "$q: each id ran after it was last enqueued"
	note "$q: $(grep -c " $q " "$T/began") runs, $(grep -c " $q " "$T/enqueued") times enqueued"
done
is "$(grep ^each "$T/overlap" 2>/dev/null)" '' 'no id ran beside itself'
is "$(grep ^only "$T/overlap" 2>/dev/null)" '' 'no two of the exclusive queue ran at once'
