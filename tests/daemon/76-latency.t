#!/bin/sh
# The latency of each kind, in rqctl status --json and in metrics, also if it is not
# known.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v curl >/dev/null || skip_all 'no curl'
command -v python3 >/dev/null || skip_all 'no python3'
H=$OWN/http.sock
# A member of the JSON of a queue.
of() {	# QUEUE MEMBER
	ctl -c "$T/$FILE.conf" status --json | python3 -c 'import json, sys
print(*[q[sys.argv[2]] for q in json.load(sys.stdin)["queues"] if q["name"] == sys.argv[1]])' "$1" "$2"
}
between() {	# NUMBER LEAST MOST: false where there is no number
	case $1 in '' | None) return 1 ;; esac
	awk "BEGIN { exit !($1 >= $2 && $1 <= $3) }"
}
near() {	# SECONDS WANTED: when it began; now it is later
	between "$1" "$2" $(($2 + $(date +%s) - now + 5))
}
sample() {	# METRIC QUEUE
	curl -s -m 20 --unix-socket "$H" http://rqd/metrics | sed -n "s/^$1{queue=\"$2\"} //p"
}

redis_start
FILE=idle
now=$(date +%s)
config_write idle <<C
queue "delayed" { command = {"$T/good"} }
queue "retries" { command = {"$T/good"} }
queue "ids" { kind = "unique" command = {"$T/good"} }
queue "milliseconds" { kind = "unique" command = {"$T/good"} }
queue "stream" { kind = "stream" command = {"$T/good"} }
queue "empty" { command = {"$T/good"} }
queue "old" { command = {"$T/good"} }
queue "channel" { kind = "channel" command = {"$T/good"} }
C
r zadd delayedDELAYED $((now - 300)) m >/dev/null
r zadd retriesRETRY $((now - 200)) 7 $((now + 900)) 8 >/dev/null
r zadd Queue:ids $((now - 100)) 7 $((now + 900)) 8 >/dev/null
r zadd Queue:milliseconds $((now - 400))000 7 >/dev/null
r xadd stream $((now - 500))000-0 message m >/dev/null
r lpush old m >/dev/null

# -- without any daemon: what has a time is known
ok 'near "$(of delayed latency)" 300' 'a delayed message, since it is due'
ok 'near "$(of retries latency)" 200' 'a retry, likewise'
ok 'near "$(of ids latency)" 100' 'an id'
ok 'near "$(of milliseconds latency)" 400' 'in milliseconds, too'
ok 'near "$(of stream latency)" 500' 'an entry of a stream'
is "$(of empty latency)" 0.0 'an empty queue: 0'
is "$(of old latency)" None 'a list: not known'
is "$(of channel latency)" None 'a channel keeps nothing'
r flushall >/dev/null

# -- lists
handler hang <<'H'
cat >>"$T/took"
echo >>"$T/took"
until [ -e "$T/release" ]; do sleep 0.2; done
H
r lpush before 1 2 3 >/dev/null
rqd_start <<C
http { listen = "unix:$H" }
queue "ack" { command = {"$T/hang"} }
queue "list" { kind = "list" command = {"$T/hang"} }
queue "before" { command = {"$T/hang"} }
queue "shared" { command = {"$T/hang"} }
queue "slow" { kind = "unique" command = {"$T/hang"} concurrency = 1 }
C
FILE=rqd
MORE_KEYS=Queue:slow
log_wait 30 event=redis_up
wait_ok 30 '[ "$(sample rqd_queue_latency_seconds ack)" = 0 ]' 'an empty list: 0'
wait_ok 30 '[ "$(sample rqd_queue_latency_seconds list)" = 0 ]' 'of the other kind, too'

# The first one of each is taken, the second waits.
pushed=$(date +%s)
for q in ack list; do r lpush $q first >/dev/null; done
wait_for 30 '[ "$(wc -l <"$T/took")" -ge 3 ]'
for q in ack list; do r lpush $q second >/dev/null; done
for q in ack list; do r lpush $q third >/dev/null; done
wait_ok 40 'between "$(sample rqd_queue_latency_seconds ack)" 20 99' 'it grows'
# It is within a factor of 2 of the truth.
for q in ack list; do
	is_about() {	# SECONDS
		age=$(($(date +%s) - pushed))
		between "$1" $((age / 2)) $((age * 2))
	}
	wait_ok 30 'is_about "$(sample rqd_queue_latency_seconds $q)"' "$q: the metric is about right"
	wait_ok 30 'is_about "$(of $q latency)"' "$q: rqctl status, by the heartbeat"
done

# Messages that waited before the daemon started.
is "$(sample rqd_queue_latency_seconds before)" '' 'before the first sample: no latency'
is "$(of before latency)" None 'likewise in rqctl status'

# A second daemon, which knows less: the best known value is shown.
rqd_start other <<C
queue "ack" { command = {"$T/hang"} }
C
wait_for 30 '[ "$(r llen ack)" = 1 ]'
wait_for 30 '[ "$(r zcard rqd:daemons)" = 2 ]'
# By a heartbeat of up to 10 s ago.
ok 'between "$(of ack latency)" 5 99' 'two daemons: what one of them knows'

# A foreign consumer.
r lpush shared 1 2 >/dev/null
wait_for 30 '[ "$(r llen shared)" = 1 ]'
wait_ok 30 '[ -n "$(sample rqd_queue_latency_seconds shared)" ]' 'a queue that rqd has alone'
r eval 'local id = "foreign"
local m = redis.call("RPOP", KEYS[1])
redis.call("ZADD", KEYS[2], redis.call("TIME")[1], id)
redis.call("HSET", KEYS[3], id, m)' 3 shared sharedBACKUP sharedCONTEXT >/dev/null
r lpush shared 3 4 >/dev/null
wait_ok 20 '[ -z "$(sample rqd_queue_latency_seconds shared)" ]' 'nothing where others take messages, too'
r zrem sharedBACKUP foreign >/dev/null
r hdel sharedCONTEXT foreign >/dev/null

# Too slow for what is pushed: unique ids say since when they wait.
r zadd Queue:slow $(($(date +%s) - 200)) a $(($(date +%s) - 190)) b >/dev/null
wait_ok 30 '[ "$(of slow state)" = "late: all handlers are busy" ]' 'a queue that is late says so'
like "$(ctl -c "$T/$FILE.conf" check)" 'warning: slow: late: all handlers are busy, and a message has waited [3-5]m' \
    'and rqctl check does'

touch "$T/release"
for q in ack list before shared; do
	wait_ok 30 '[ "$(sample rqd_queue_latency_seconds '$q')" = 0 ]' "$q: 0 when all is done"
done
