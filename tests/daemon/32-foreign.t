#!/bin/sh
# Other consumers of the published convention beside rqd, with their own pop and ack
# scripts as they publish them; each side handles messages of the other.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

# Takes one BACKUP entry older than the timeout back into the list; pops; notes
# it in BACKUP and CONTEXT by the id that the message itself says.
POP='
local old = redis.call("ZRANGEBYSCORE", KEYS[2], "-inf", ARGV[1] - ARGV[2], "LIMIT", 0, 1)[1]
if old then
	redis.call("ZREM", KEYS[2], old)
	local body = redis.call("HGET", KEYS[3], old)
	if body then redis.call("LPUSH", KEYS[1], body) end
end
local body = redis.call("RPOP", KEYS[1])
if not body then return false end
local id = cjson.decode(body).id
redis.call("ZADD", KEYS[2], ARGV[1], id)
redis.call("HSET", KEYS[3], id, body)
return id'
ACK='redis.call("ZREM", KEYS[1], ARGV[1]); return redis.call("HDEL", KEYS[2], ARGV[1])'
foreign_pop() { r --raw eval "$POP" 3 "$1" "$1BACKUP" "$1CONTEXT" "$(date +%s)" "${2:-30}"; }
foreign_ack() { r --raw eval "$ACK" 2 "$1BACKUP" "$1CONTEXT" "$2" >/dev/null; }

redis_start
handler work <<'H'
echo "$RQD_ID $RQD_ATTEMPT" >>"$T/ran"
while [ "$RQD_ID" = slow ] && [ -e "$T/hold" ]; do sleep 0.2; done
exit 0
H
conf() {	# [FOREIGN_TIMEOUT]
	cat <<C
queue "q" { command = {"$T/work"} lease = 6s foreign_timeout = ${1:-2s} concurrency = 2 }
C
}

# -- side by side -----------------------------------------------------------------
n=200
for i in $(seq $n); do echo "{\"id\":$i}"; done | xargs -d '\n' redis-cli -s "$SOCK" lpush q >/dev/null
foreign() {	# COUNT
	for i in $(seq "$1"); do
		id=$(foreign_pop q)
		[ -n "$id" ] || break
		echo "$id" >>"$T/foreign"
		foreign_ack q "$id"
	done
}
foreign 1	# rqd may be faster with all others
conf 1m >"$T/start"
rqd_start <"$T/start"
foreign 40
wait_for 20 '[ "$(cat "$T/ran" "$T/foreign" | wc -l)" -ge $n ]'
note "the other consumer had $(wc -l <"$T/foreign") of $n"
is "$(cut -d ' ' -f 1 "$T/ran" | cat - "$T/foreign" | sort -n | uniq | wc -l)" $n 'with another consumer every message is handled'
is "$(cut -d ' ' -f 1 "$T/ran" | cat - "$T/foreign" | sort -n | uniq -d)" '' 'and none twice'
ok '[ -s "$T/foreign" ]' 'both had some'
wait_ok 15 'no_keys' 'no key is left but QSTATS'

# -- what they leave behind -----------------------------------------------------------
rqd_stop
r lpush q '{"id":"left"}' >/dev/null
is "$(foreign_pop q)" left 'another consumer pops a message, and dies'
conf >"$T/start"
rqd_start <"$T/start"
ok 'log_wait 40 "event=acked queue=q id=left "' 'rqd requeues it after foreign_timeout, and runs it'
like "$(log_lines event=requeued)" . 'and says so'
like "$(tail -n 1 "$T/ran")" '^left 1$' 'as a first attempt'

# -- an entry without a payload ---------------------------------------------------------
r zadd qBACKUP 1000 ghost >/dev/null
wait_ok 30 '[ "$(r zcard qBACKUP)" -eq 0 ]' 'a BACKUP entry without CONTEXT is dropped'

# -- their ack of one of ours ------------------------------------------------------------
touch "$T/hold"
r lpush q '{"id":"slow"}' >/dev/null
wait_for 10 'grep -q "^slow " "$T/ran"'
is "$(foreign_pop q 30)" '' 'they leave a leased message alone'
foreign_ack q slow
rm "$T/hold"
ok 'log_wait 20 "event=(stale|acked) queue=q id=slow "' 'rqd bears that one of its own is acked from outside'
wait_ok 30 'no_keys' 'and nothing is left of it'

# -- they take over from a dead daemon ------------------------------------------------------
touch "$T/hold"
: >"$T/ran"
r lpush q '{"id":"slow"}' >/dev/null
wait_for 10 'grep -q "^slow " "$T/ran"'
rqd_kill9
sleep 2.1
is "$(foreign_pop q 1)" slow 'another consumer takes over what a dead rqd had in hand'
foreign_ack q slow
rm "$T/hold"
conf >"$T/start"
rqd_start <"$T/start"
wait_ok 40 'no_keys' 'and rqd sweeps up what is left of it'
is "$(grep -c slow "$T/ran")" 1 'it did not run again'
