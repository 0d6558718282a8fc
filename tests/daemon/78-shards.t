#!/bin/sh
# A queue over several keys: handlers, operators and totals see one queue.  Its number of
# shards grows and shrinks, and no message is lost or handled twice.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
c() { ctl -c "$T/rqd.conf" "$@"; }
handler work <<'H'
echo "$RQD_ID" >>"$T/done"
case $RQD_ID in
dead*) exit 65 ;;
again*) [ "$RQD_ATTEMPT" != 1 ] || exit 1 ;;
slow*) echo "progress half" >&3; until [ -e "$T/go" ]; do sleep 0.2; done ;;
order*) echo "$(sed 's/.*"n":\([0-9]*\).*/\1/')" >>"$T/$RQD_ID.order" ;;
esac
H
LEASE=30s		# of a daemon that dies: short
conf() {	# OPTION...
	cat <<C
queue "orders" { command = {"$T/work"} concurrency = 4 lease = $LEASE backoff = 100ms backoff_max = 100ms $* }
C
}
# Not in a pipe: see rqd_start in tests/lib.sh.
start() {
	conf "$@" >"$T/start"
	rqd_start <"$T/start"
}
conf shards = 8 | config_write rqd
K=$(c queues --keys orders)
is "$(printf '%s\n' "$K" | wc -l)" 8 'rqctl queues --keys prints eight keys'
like "$K" '^\{orders\.0\}$' 'the first of them is {orders.0}'
conf shards = 16 | config_write rqd
K16=$(c queues --keys orders)
QUEUES="$QUEUES $K16"
is "$(printf '%s\n' $K $K16 | sort | uniq -d | wc -l)" 8 'the eight are among sixteen'
conf | config_write rqd
is "$(c queues --keys orders)" orders 'without shards it is the key'
set -- $K
sum() {	# COMMAND SUFFIX: over all keys
	_n=0
	for _k in orders $K16; do _n=$((_n + $(r "$1" "$_k$2"))); done
	echo $_n
}
status() { c status orders --json | tr -d ' \n'; }
distinct() { [ ! -e "$T/done" ] || sort -u "$T/done" | wc -l; }

# By hand, by rqctl, into the old key.
start shards = 8
log_wait 30 event=redis_up
for i in $(seq 1 40); do eval "r lpush \"\${$((i % 8 + 1))}\" '{\"id\":\"$i\"}'" >/dev/null; done
r lpush orders '{"id":"41"}' >/dev/null
seq 42 100 | sed 's/.*/{"id":"&"}/' | c push orders --lines >"$T/pushed"
is "$(sort -n "$T/pushed" | tr '\n' ' ')" "$(seq 42 100 | tr '\n' ' ')" 'rqctl push prints the ids'
for i in 1 2 3; do c push orders "no id" >/dev/null; done
wait_ok 20 '[ "$(distinct)" = 103 ]' 'all messages are handled'
wait_ok 30 '[ "$(sum zcard BACKUP)" = 0 ] && [ "$(sum llen "")" = 0 ]' 'nothing is left'
is "$(sort "$T/done" | uniq -d)" '' 'none twice'
wait_ok 20 'status | grep -q "\"acked\":103,"' 'status has one row, with the totals'
is "$(status | grep -o '"name":' | wc -l)" 1 'one row'

# One id, one shard: their order is kept.
for n in 1 2 3 4 5 6 7 8 9; do
	for i in 1 2 3; do echo "{\"id\":\"order$i\",\"n\":$n}"; done
done >"$T/lines"
c pause orders --wait >/dev/null
is "$(sum exists PAUSED)" 9 'pause sets the pauses of all keys'
c push orders --lines <"$T/lines" >/dev/null
like "$(status)" '"waiting":27,' 'they wait'
like "$(c status orders)" 'paused by ' 'status: paused'
is "$(sum llen '')" 27 'no daemon takes them'
like "$(c peek orders --all | wc -l)" '^28$' 'peek shows all'
rqd_stop
conf shards = 8 | sed 's/concurrency = 4/concurrency = 1/' >"$T/start"
rqd_start <"$T/start"
c resume orders >/dev/null
is "$(sum exists PAUSED)" 0 'resume removes the pauses of all keys'
wait_ok 20 '[ "$(cat "$T"/order?.order | wc -l)" = 27 ]' 'resumed'
for i in 1 2 3; do
	is "$(tr '\n' ' ' <"$T/order$i.order")" "$(seq 1 9 | tr '\n' ' ')" "the order of order$i"
done
rqd_stop

# One key is paused by somebody else.
start shards = 8
log_wait 30 event=redis_up
r set "$1PAUSED" by-hand >/dev/null
like "$(c status orders)" 'partly paused' 'status: partly paused'
like "$(c check)" 'orders: partly paused: by-hand' 'check, too'
like "$(status)" '"partly":true' 'JSON, too'
for k in "$@"; do r lpush "$k" "{\"id\":\"partly $k\"}" >/dev/null; done
wait_ok 20 '[ "$(grep -c "^partly" "$T/done")" = 7 ]' 'the other shards go on'
is "$(r llen "$1")" 1 'the paused one waits'
r del "$1PAUSED" >/dev/null
wait_ok 20 '[ "$(grep -c "^partly" "$T/done")" = 8 ]' 'until it may'

# A key of the wrong type.
wait_ok 30 '[ "$(r exists "$1")" = 0 ]' 'its list is gone'
r set "$1" x >/dev/null
for k in "$@"; do [ "$k" = "$1" ] || r lpush "$k" "{\"id\":\"type $k\"}" >/dev/null; done
wait_ok 20 '[ "$(grep -c "^type" "$T/done")" = 7 ]' 'the other shards go on beside a broken one'
like "$(c check)" "orders: the key $1 is a string, not a list" 'check names the key'
is "$(log_count event=suspended)" 0 'the queue is not suspended'
r del "$1" >/dev/null

# A number that dead letters of two shards have.
for k in "$1" "$2"; do
	r xadd "${k}DEAD" 7-1 id "of $k" message m reason status >/dev/null
done
out=$(c dead drop orders 7-1 -y 2>&1)
is $? 64 'an ambiguous number is refused'
like "$out" "7-1 is the number of 2 dead letters: write $1:7-1 or $2:7-1" 'with the choices'
is "$(c dead show orders "$2:7-1" | grep ^id)" "id        of $2" 'KEY:NUMBER shows the one'
like "$(c dead list orders)" "$2:7-1 +of " 'dead list shows it so'
like "$(c dead drop orders "$2:7-1" -y)" 'dropped 1 dead letter of orders' 'dead drop takes it'
is "$(r xlen "${1}DEAD")$(r xlen "${2}DEAD")" 10 'no other is dropped'
out=$(c dead drop orders "$2:7-1" -y 2>&1)
like "$?$out" "^1.*orders has no dead letter $2:7-1" 'it is gone'
like "$(c dead drop orders 7-1 -y)" 'dropped 1 dead letter' 'a number that one has needs no key'

# Failures, dead letters, delays.
for i in 1 2 3 4 5 6; do
	c push orders "{\"id\":\"again$i\"}" >/dev/null
	c push orders "{\"id\":\"dead$i\"}" >/dev/null
done
wait_ok 20 '[ "$(sum xlen DEAD)" = 6 ] && [ "$(grep -c ^again "$T/done")" = 12 ]' 'retries and dead letters'
is "$(c dead list orders | grep -c dead)" 6 'dead list'
is "$(c dead list orders --count 2 2>&1 | grep -c '2 of 6')" 1 'it counts those of all shards'
is "$(c dead show orders dead3 --raw)" '{"id":"dead3"}' 'dead show finds it'
like "$(c show orders dead5)" '^dead .*reason status' 'show finds it'
c dead export orders --all >"$T/letters"
is "$(wc -l <"$T/letters")" 6 'dead export'
c dead retry orders dead1 dead2 >/dev/null
wait_ok 20 '[ "$(grep -c "^dead[12]" "$T/done")" = 4 ]' 'dead retry, by id'
wait_ok 30 '[ "$(sum xlen DEAD)" = 6 ]' 'they are dead again'
like "$(c dead drop orders --all -y)" 'dropped 6 dead letters of orders' 'dead drop'
is "$(sum xlen DEAD)" 0 'all are gone'
for key in $(c queues --keys orders | head -2); do r xadd "${key}DEAD" '*' id x message x >/dev/null; done
like "$(c purge orders --dead -y)" 'purged 2 dead' 'purge'
for i in 1 2 3 4 5; do c push orders "{\"id\":\"later$i\"}" --delay 1h >/dev/null; done
is "$(c delayed list orders | grep -c later)" 5 'delayed list'
c delayed now orders later4 >/dev/null
wait_ok 20 'grep -q later4 "$T/done"' 'delayed now'
like "$(c delayed cancel orders --all -y)" 'cancelled 4 messages' 'delayed cancel'
r zadd "$2DELAYED" 1 '{"id":"due"}' >/dev/null
wait_ok 20 'grep -q due "$T/done"' 'a delayed message is promoted'

# In flight.
for i in 1 2 3 4; do c push orders "{\"id\":\"slow$i\"}" >/dev/null; done
wait_ok 20 '[ "$(grep -c ^slow "$T/done")" = 4 ]' 'four run'
like "$(status)" '"running":4,' 'status counts them'
wait_ok 30 '[ "$(c running orders | grep -c "slow[1-4].*half")" = 4 ]' 'running lists them, with their progress'
like "$(c show orders slow2)" '^running .*progress: half' 'show, too'
like "$(c cancel orders slow2 slow3 2>&1)" 'cancelled: slow2 of orders, running' 'cancel'
wait_ok 30 '[ "$(sum zcard BACKUP)" = 2 ]' 'cancelled at once: the daemon hears of it'
touch "$T/go"
wait_ok 30 '[ "$(sum zcard BACKUP)" = 0 ]' 'the others end'
rqd_stop
rm -f "$T/go"

# kill -9, with messages in flight; restarted with twice as many shards.
: >"$T/done"
rm -f "$T/go"
LEASE=3s
start shards = 4
for i in $(seq 1 60); do echo "{\"id\":\"k$i\"}"; done | c push orders --lines >/dev/null
for i in 1 2 3 4; do c push orders "{\"id\":\"slow$i\"}" >/dev/null; done
wait_for 20 '[ "$(grep -c ^slow "$T/done")" -ge 2 ]'
rqd_kill9
log_lines event=acked | log_field id | grep '^k' | sort >"$T/acked"
start shards = 8
for i in $(seq 61 100); do echo "{\"id\":\"k$i\"}"; done | c push orders --lines >/dev/null
touch "$T/go"
wait_ok 30 '[ "$(distinct)" = 104 ]' 'after kill -9 and growing from 4 to 8, all are handled'
wait_ok 30 '[ "$(sum zcard BACKUP)" = 0 ]' 'and settled'
sort "$T/done" | uniq -d | comm -12 - "$T/acked" >"$T/twice"
is "$(cat "$T/twice")" '' 'what was acked did not run again'

LEASE=30s

# Shrinking at a reload: the former shards are drained, and nobody pushes to them.
: >"$T/done"
c pause orders >/dev/null
for i in $(seq 1 80); do echo "{\"id\":\"s$i\"}"; done | c push orders --lines >/dev/null
conf shards = 2 shards_drain = 8 | config_write rqd
rqd_signal HUP
log_wait 30 event=reloaded
is "$(c queues --keys orders | wc -l)" 2 'producers use two keys from now on'
for i in $(seq 81 100); do echo "{\"id\":\"s$i\"}"; done | c push orders --lines >/dev/null
new=$(c queues --keys orders)
n=0
for k in $new; do n=$((n + $(r llen "$k"))); done
ok "[ $n -ge 20 ]" "the new messages are there ($n)"
like "$(status)" '"waiting":100,' 'status counts all'
c resume orders >/dev/null
wait_ok 30 '[ "$(distinct)" = 100 ]' 'shrinking from 8 to 2 drains the others'
is "$(sort "$T/done" | uniq -d)" '' 'none ran twice'
wait_ok 30 '[ "$(sum zcard BACKUP)" = 0 ]' 'all are settled'

# Shards that nobody drains are not forgotten.
r lpush '{orders.0}' '{"id":"left"}' >/dev/null
c pause orders >/dev/null
k=$(printf '%s\n' $K | grep -v -x -F "$(printf '%s\n' $new)" | head -n 1)
r lpush "$k" '{"id":"behind"}' >/dev/null
conf shards = 2 | config_write two
is "$(ctl -c "$T/two.conf" check | grep -c "no configuration")" 0 "while a daemon drains them, check says nothing"
rqd_stop
like "$(ctl -c "$T/two.conf" check)" "$(printf %s "$k" | sed 's/[{}]/\\&/g'): no configuration names it, and it holds messages: 1," \
    'check finds a message in a former shard'
r del "$k" >/dev/null
is "$(ctl -c "$T/two.conf" check | grep -c 'no configuration')" 0 'until it is gone'
start shards = 2 shards_drain = 8
c resume orders >/dev/null
wait_ok 20 'grep -q left "$T/done"' 'resumed'
: >"$T/done"
seq 1 100 | sed 's/^/s/' >"$T/done"

# And back to one key.
cp "$T/rqd.conf" "$T/old.conf"
c pause orders >/dev/null
for i in $(seq 101 120); do echo "{\"id\":\"s$i\"}"; done | c push orders --lines >/dev/null
conf shards_drain = 2 | config_write rqd
rqd_signal HUP
log_wait 30 event=reloaded 2
c push orders '{"id":"s121"}' >/dev/null
is "$(r llen orders)" 1 'with one shard, producers use the key'
ctl -c "$T/old.conf" resume orders >/dev/null	# it knows all keys that were paused
wait_ok 30 '[ "$(distinct)" = 121 ]' 'shrinking to one key'
rqd_stop

# Totals of a drain are not lost.
: >"$T/done"
start shards = 8
before=$(status | grep -o '"acked":[0-9]*' | tr -dc 0-9)
for i in $(seq 1 50); do echo "{\"id\":\"t$i\"}"; done | c push orders --lines >/dev/null
wait_for 20 '[ "$(distinct)" = 50 ] && [ "$(sum zcard BACKUP)" = 0 ]'
rqd_stop
after=$(status | grep -o '"acked":[0-9]*' | tr -dc 0-9)
is "$((after - before))" 50 'what a daemon counts until its end is in the totals'
like "$(c forget orders --force -y)" '^forgot ' 'forget'
is "$(left_keys)" '' 'no key is left'
is "$(r --raw keys '*orders*')" '' 'of no shard'
