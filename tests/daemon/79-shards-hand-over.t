#!/bin/sh
# A queue with shards: messages that are handed over to it come once, even while
# connections break.  Large messages are taken one at a time.  Schedules.  /metrics and
# /status add the shards up.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
H=$OWN/http.sock
get() { curl -s -m 20 --unix-socket "$H" "http://rqd$1"; }		# PATH
c() { ctl -c "$T/rqd.conf" "$@"; }
handler parent <<'H'
for i in 1 2 3; do echo "{\"id\":\"child $RQD_ID $i\"}"; done
echo "no id, of $RQD_ID"
H
handler large <<'H'
wc -c >>"$T/sizes"
until [ -e "$T/go" ]; do sleep 0.2; done
H
handler good <<'H'
cat >>"$T/tick"
H
rqd_start <<C
http { listen = "unix:$H" }
queue "parents" { command = {"$T/parent"} concurrency = 4 lease = 3s
	output = "push:items" pushes = {"items"} }
queue "items" { concurrency = 0 shards = 8 }
queue "large" { command = {"$T/large"} shards = 4 }
queue "ticks" { command = {"$T/good"} shards = 4 }
schedule "tick" { queue = "ticks" every = 1s }
C
items=$(c queues --keys items)
QUEUES="$QUEUES $items $(c queues --keys large) $(c queues --keys ticks)"
log_wait 30 event=redis_up
all() { for k in items $items; do r --raw lrange "$k" 0 -1; done | grep .; }

# Each breaks the connection while results are on their way.
for i in $(seq 1 60); do
	r lpush parents "{\"id\":\"p$i\"}" >/dev/null
	[ $((i % 6)) -ne 0 ] || r client kill type normal skipme yes >/dev/null
done
wait_ok 120 'is_empty parents' 'all parents are done'
all | sort >"$T/items"
is "$(uniq -d <"$T/items")" '' 'no child comes twice'
is "$(wc -l <"$T/items")" 240 'and none is missing'
n=0
for k in $items; do [ "$(r llen "$k")" = 0 ] || n=$((n + 1)); done
is "$n" 8 'every shard has some'
is "$(r exists items)" 0 'the key without a shard has none'
# By the id: where a producer would push it.
for id in 'child p1 1' 'child p2 2' 'child p3 3' 'child p4 1' 'child p5 2'; do
	c push items "{\"id\":\"$id\"}" >/dev/null
done
twice=$(for k in $items; do r --raw lrange "$k" 0 -1 | sort | uniq -d; done | wc -l)
is "$twice" 5 'a child is where rqctl push puts its id'

# /metrics and /status show how many messages wait.
if command -v curl >/dev/null; then
	wait_ok 20 'get /metrics | grep -q "^rqd_queue_messages{queue=\"large\",state=\"waiting\"} 0"' 'metrics of a queue with shards'
	# An answer may be 1.5 s old.
	wait_ok 30 'get /status | tr -d " \n" | grep -q "\"name\":\"items\",\"key\":\"items\",\"kind\":\"ack\",\"waiting\":245,"' '/status adds its shards up'
fi

# Large messages need a fetch of their own: a daemon takes no more than it can run.
head -c 200000 /dev/zero | tr '\0' x >"$T/message"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do c push large <"$T/message" >/dev/null; done
wait_for 20 '[ -s "$T/sizes" ]'
held() { _n=0; for _k in large $(c queues --keys large); do _n=$((_n + $(r zcard "${_k}BACKUP"))); done; echo $_n; }
is "$(held)" 1 'one is taken'
touch "$T/go"
wait_ok 30 '[ "$(grep -c 200000 "$T/sizes")" = 12 ]' 'all are handled'

# A schedule has one of the shards.
wait_ok 20 '[ -s "$T/tick" ]' 'a schedule runs'
is "$(r exists '{ticks.0}SCHEDULE' ticksSCHEDULE)" 1 'its state is in {ticks.0}'
like "$(c schedules)" '^tick .* ok$' 'rqctl schedules finds it'
is "$(tr '}' '\n' <"$T/tick" | sort | uniq -d)" '' 'each tick came once'
