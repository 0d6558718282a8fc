#!/bin/sh
# A Redis that lies: some values in its replies are wrong.  No daemon ends, hangs, or
# takes much memory.  When the replies are right again, all queues work.  Messages of
# wrong replies may be lost or run twice.  No rqctl crashes or hangs.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

SEED=${SEED:-$(date +%s)}	# of the lies; printed
LIES=${LIES:-400}
note "SEED=$SEED"
redis_start
proxy_start "$SEED"
proxy() { echo "$*" >&3; }
lies() {
	proxy lies
	sed -n 's/ lies$//p' "$T/answers" | tail -n 1
}

handler work <<'H'
cat >/dev/null
[ -e "$T/truth" ] && exit 0
case $RQD_ID in *3) exit 1 ;; *7) exit 65 ;; esac
exit 0
H
rqd_start <<C
redis { server = "unix:$T/proxy.sock" timeout = 1s }
queue "a" { command = {"$T/work"} concurrency = 4 lease = 3s backoff = 100ms backoff_max = 200ms }
queue "u" { kind = "unique" key = "u" command = {"$T/work"} concurrency = 4 lease = 3s backoff = 100ms backoff_max = 200ms }
queue "s" { kind = "stream" command = {"$T/work"} concurrency = 4 lease = 3s backoff = 100ms backoff_max = 200ms }
queue "l" { kind = "list" command = {"$T/work"} concurrency = 4 }
schedule "tick" { queue = "a" message = "t" every = 1s }
C
log_wait 30 event=redis_up
peak() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$PID/status"; }
before=$(peak) n=0
push() {	# FIRST LAST
	for i in $(seq "$1" "$2"); do
		echo "lpush a '{\"id\":$i}'"
		echo "zadd u 0 $i"
		echo "xadd s * message $i"
		echo "lpush l '{\"id\":$i}'"
		echo "zadd aDELAYED 0 d$i"
	done | r >/dev/null
}

told() { [ "$(lies)" -ge "$1" ] 2>/dev/null; }
# The more there are, the longer the daemon waits before it connects again.
for percent in 1 4 15; do
	proxy "lie $percent"
	told=$(lies)
	wanted=$((${told:-0} + LIES / 3))
	end=$(($(date +%s) + 4))
	until told "$wanted" || [ "$(date +%s)" -ge $end ] || ! is_alive "$PID"; do
		push $((n + 1)) $((n + 3))
		n=$((n + 3))
		sleep 0.1
	done
	ok 'is_alive "$PID"' "$percent of 100 values are lies: the daemon lives"
done
ok 'told $((LIES / 10))' 'there were many'
proxy calm
touch "$T/truth"
note "lies: $(lies); messages: $n to each queue; connections lost: $(log_count event=redis_down)"
after=$(peak)
note "most memory: $before kB before, $after kB after"
[ "$SLOW" -eq 1 ] && ok "[ $((after - before)) -lt 60000 ]" 'memory is bounded'

r lpush a '{"id":"last"}' >/dev/null
r zadd u 0 last >/dev/null
last=$(r xadd s '*' message last)
r lpush l '{"id":"last"}' >/dev/null
for q in a u; do
	wait_ok 60 "log_count 'event=acked queue=$q id=last ' >/dev/null" "$q is at work"
done
# A lie may still be on its way, and take this one with it: kind list keeps none.
wait_ok 60 "log_count 'event=acked queue=l id=last ' >/dev/null || { r lpush l '{\"id\":\"last\"}' >/dev/null; false; }" 'l is at work'
wait_ok 60 "log_count 'event=acked queue=s id=$last ' >/dev/null" 's is at work'

# -- rqctl --------------------------------------------------------------------------------------
# Values that other programs may write: a time and a number beyond any calendar.
rqd_stop
for i in 1 2 3; do
	echo "lpush a $i"
	echo "xadd aDEAD $i-1 id $i message m reason exit"
	echo "zadd aRETRY $i t$i"
	echo "hset aCONTEXT t$i m"
	echo "hset aDELIVERY t$i '1 0 - 1700000000.000000 2'"
	echo "zadd aBACKUP $i b$i"
done | r >/dev/null
r hset aSCHEDULE tick 1e300 >/dev/null
r xadd aDEAD 18446744073709551615-1 id x message m >/dev/null
sed "s|timeout = 1s|timeout = 300ms|" "$T/rqd.conf" >"$T/ctl.conf"
crashed=''
look() {	# VERB...
	timeout 20 "$RQCTL" -c "$T/ctl.conf" "$@" >"$T/rqctl.out" 2>"$T/rqctl.err" 3>&-
	status=$?
	if [ $status -ge 124 ] || grep -aq 'runtime error\|Sanitizer' "$T/rqctl.err"; then
		crashed="$crashed $status($*)"
		note "$(grep -a 'runtime error\|Sanitizer' "$T/rqctl.err")"
	fi
}
looks() {	# TIMES
	for _ in $(seq "$1"); do
		for q in a u s; do
			look peek $q --json
			look peek $q --raw
			look show $q 2
			look cancel $q 2 -n
		done
		look running
		look show s 1-1
		look dead list a --json
		look retry list a
		look delayed list a
		look check
		look schedules
		look schedules --json
		look locks
		look pause a --wait --timeout 100ms
	done
}
proxy calm
looks 1
is "$crashed" '' 'rqctl reads times that no calendar has'
proxy 'lie 15'
looks $((LIES / 50))
is "$crashed" '' 'rqctl survives lies'
proxy calm
r flushall >/dev/null
exec 3>&-
