#!/bin/sh
# Failovers by Sentinel while messages are pushed and handled: half of them by hand,
# half because the master is killed.  rqd knows the Sentinels only.  Messages that the
# replica confirmed are handled, and work goes on after +switch-master.  RQD_SOAK, as in
# make soak: 20 failovers, not 2, more messages, and half a second at the median.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/fault/sentinel.sh
. "$SRCDIR/tests/fault/sentinel.sh"
FAILOVERS=2
[ -z "${RQD_SOAK:-}" ] || FAILOVERS=20
A=$(free_port) B=$(free_port) S1=$(free_port) S2=$(free_port) S3=$(free_port)
s() { $ASK -p "$S2" "$@"; }
master() { s sentinel get-master-addr-by-name m | tail -1; }

server a "$A"
server b "$B" --replicaof 127.0.0.1 "$A"
i=0
for p in $S1 $S2 $S3; do i=$((i + 1)) && sentinel $i "$p" "$A" 2; done
wait_ok 30 's sentinel ckquorum m 2>/dev/null | grep -q "OK 3 " && s sentinel replicas m | grep -q "$B"' \
    'three Sentinels know each other, the master and the replica'

# Each time of +switch-master, as the second Sentinel says it.
redis-cli -p "$S2" subscribe +switch-master | while read -r line; do
	case $line in "m 127.0.0.1 "*) echo "$(msec) ${line##* }" >>"$T/switches" ;; esac
done &
OTHER_PIDS="$OTHER_PIDS $!"

handler work <<'H'
echo "$RQD_ID" >>"$T/ran"
echo "$(date +%s%3N) $(cat)" >>"$T/times"
H
touch "$T/ran" "$T/switches" "$T/kept"
rqd_start <<C
redis { sentinel = {"127.0.0.1:$S1", "127.0.0.1:$S2", "127.0.0.1:$S3"} master = "m" timeout = 5s }
queue "q" { command = {"$T/work"} concurrency = 4 lease = 6s backoff = 100ms }
C
log_wait 30 'event=redis_up server=127.0.0.1:'"$A"

# Pushes without end to the master of the moment; kept: the ids that the replica has, too.
(
	n=0
	until [ -e "$T/enough" ]; do
		n=$((n + 1))
		replies=$(printf "lpush q '{\"id\":\"m%d\"}'\nwait 1 300\n" $n |
		    timeout 2 $ASK -p "$(master)" 2>/dev/null | tr '\n' ,)
		# Two: a master that dies in between has answered the push alone, also with a 1.
		case $replies in [0-9]*,1,) echo "m$n" >>"$T/kept" ;; esac
		[ -n "${RQD_SOAK:-}$RQD_TEST_LONG" ] || sleep 0.03
	done
) &
PRODUCER=$!
OTHER_PIDS="$OTHER_PIDS $PRODUCER"
wait_ok 120 '[ "$(wc -l <"$T/ran")" -gt 20 ]' 'messages are handled'

# The server at PORT is a replica again, and has all data.
has_all() {	# PORT
	$ASK -p "$1" role 2>/dev/null | grep -q '^slave' &&
	    $ASK -p "$1" info replication | grep -q master_link_status:up &&
	    s sentinel replicas m | grep -q "127.0.0.1:$1" &&
	    s sentinel replicas m | grep -q '^ok$'
}

# Milliseconds from +switch-master to the next message that runs; empty: there is none yet.
resumed() {
	at=$(tail -1 "$T/switches" | cut -d ' ' -f 1)
	awk -v at="$at" '$1 >= at { print $1 - at; exit }' "$T/times"
}

i=0
while [ $i -lt $FAILOVERS ]; do
	old=$(master) new=$A
	[ "$old" = "$B" ] || new=$B
	wait_ok 60 "has_all $new" "$i: the replica has all data"
	# A machine that stands still makes Sentinel switch by itself, also right after this look.
	switches=$(wc -l <"$T/switches")
	[ "$(master)" = "$old" ] || { note "$i: Sentinel has switched meanwhile"; continue; }
	if [ $((i % 2)) -eq 0 ]; then
		how='SENTINEL failover'
		wait_for 20 '[ "$(s sentinel failover m 2>/dev/null)" = OK ]'
	else
		how='kill -9'
		eval "kill -KILL \$PID_$([ "$old" = "$A" ] && echo a || echo b)"
	fi
	wait_ok 60 '[ "$(wc -l <"$T/switches")" -gt "$switches" ]' "$i: Sentinel switches after $how"
	wait_for 60 '[ -n "$(resumed)" ]'
	resumed >>"$T/resumed"
	note "$how: work goes on after $(resumed) ms"
	if [ "$how" = 'kill -9' ]; then
		[ "$old" = "$A" ] && name=a || name=b
		server $name "$old" --replicaof 127.0.0.1 "$new"
	fi
	i=$((i + 1))
done
touch "$T/enough"
wait "$PRODUCER"
wait_ok 30 '[ "$($ASK -p "$(master)" exists q qBACKUP qRETRY)" -eq 0 ]' 'all is handled'
most=500
[ -n "${RQD_SOAK:-}" ] || most=3000	# other tests run beside
[ -z "${RQD_TEST_SLOW-}" ] || most=10000
median=$(sort -n "$T/resumed" | sed -n "$(((FAILOVERS + 1) / 2))p")
ok "[ $median -le $((most * SLOW)) ]" "work goes on within $most ms of +switch-master: $median ms at the median"
sort -u "$T/kept" >"$T/kept.sorted"
sort -u "$T/ran" >"$T/ran.sorted"
is "$(comm -23 "$T/kept.sorted" "$T/ran.sorted" | wc -l)" 0 \
    "of $(wc -l <"$T/kept.sorted") messages that the replica had none is lost"
is "$(log_count 'event=dead')" 0 'no dead letter'
