#!/bin/sh
# A pipe of three queues while daemons are killed, replies are lost, Redis is killed,
# and is full at times: each message that is handed over arrives exactly once.
# RQD_SOAK, as in make soak: 14,000 messages instead of some hundred.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

DAEMON_NAMES='one two three'
N=120
[ -z "${RQD_SOAK:-}" ] || N=2000	# 2000 orders, 2 items each, 2 parcels each: 14,000 runs
command -v redis-server >/dev/null || skip_all 'no redis-server'
command -v jq >/dev/null || skip_all 'no jq'

random() { od -An -N2 -tu2 /dev/urandom | tr -d ' '; }

# Redis writes to its disk before it answers.
redis_run() {
	redis-server --port 0 --unixsocket "$SOCK" --unixsocketperm 777 --dir "$T" --save '' --appendonly yes \
	    --appendfsync always --logfile "$T/redis.log" >>"$T/redis.out" 2>&1 &
	REDIS_PID=$!
	wait_for 30 '[ "$(r ping 2>/dev/null)" = PONG ]'
}

# The kind of message is a line of text from the second queue on.
handler split <<'H'
read -r item
[ "$(od -An -N1 -tu1 /dev/urandom)" -ge 40 ] || { echo "$item/lost"; exit 1; }
echo "$item/a"
printf '%s/b' "$item"
H
cat >"$T/text" <<C
redis { server = "unix:$T/proxy.sock" timeout = 2s }
log { level = "info" }
defaults {
	$AS
	concurrency = 3  lease = 3s  backoff = 50ms  backoff_max = 500ms  suspend_after = 0
	max_attempts = 100000  max_crashes = 100000
}
queue "orders" { command = {"$(command -v jq)", "-r", ".items[]"} output = "push:items" pushes = {"items"} }
queue "items" { command = {"$T/split"} output = "push:parcels" pushes = {"parcels"} }
queue "parcels" { command = {"/bin/cat"} output = "push:shipped" pushes = {"shipped"} }
queue "shipped" { concurrency = 0 }
C

harm() {	# what is first is no matter of chance
	case $((rounds > 0 ? $(random) % 7 : 1)) in
	0) redis_stop KILL; redis_run; redis=$((redis + 1)) ;;
	1) rqd_kill9 one; rqd_start one <"$T/text"; killed=$((killed + 1)) ;;
	2) rqd_kill9 two; rqd_start two <"$T/text"; killed=$((killed + 1)) ;;
	3) rqd_signal TERM three; rqd_wait three; rqd_start three <"$T/text" ;;
	4) r script flush >/dev/null; r client kill type normal >/dev/null ;;
	*) r config set maxmemory 1 >/dev/null; sleep 0.5; r config set maxmemory 0 >/dev/null
	   full=$((full + 1)) ;;
	esac
}

all_out() { [ "$(r llen shipped)" -ge $((4 * N)) ]; }
at_rest() {
	[ "$(r exists orders items parcels ordersBACKUP itemsBACKUP parcelsBACKUP ordersRETRY itemsRETRY parcelsRETRY)" = 0 ]
}

redis_run
proxy_start
for i in $(seq $N); do echo "lpush orders '{\"id\":$i,\"items\":[\"$i/1\",\"$i/2\"]}'"; done | r >/dev/null
echo 'lose 30' >&3
for d in $DAEMON_NAMES; do rqd_start $d <"$T/text"; done
killed=0 redis=0 full=0 rounds=0
until all_out || [ $rounds -ge 1500 ]; do
	harm
	sleep 0.5
	rounds=$((rounds + 1))
done
echo calm >&3
wait_ok 120 at_rest 'all is worked off'
note "$rounds rounds: $killed daemons killed, Redis killed $redis times, full $full times"
note "connections lost: $(cat "$T"/one.log "$T"/two.log "$T"/three.log | grep -c event=redis_down)"
ok '[ $((killed + redis + full)) -gt 0 ]' 'there was harm'

for i in $(seq $N); do
	for item in 1 2; do printf '%s\n' "$i/$item/a" "$i/$item/b"; done
done | sort >"$T/wanted"
r --raw lrange shipped 0 -1 | sort >"$T/got"
is "$(comm -23 "$T/wanted" "$T/got" | head -5 | tr '\n' ' ')" '' 'nothing is lost'
is "$(comm -13 "$T/wanted" "$T/got" | head -5 | tr '\n' ' ')" '' 'nothing comes twice, and nothing of a failed run'
for d in $DAEMON_NAMES; do rqd_stop $d; done
r del shipped >/dev/null
exec 3>&-
