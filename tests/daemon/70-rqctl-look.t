#!/bin/sh
# rqctl status, queues, daemons, running, show, peek, check, ping: on keys and
# heartbeats that the test writes.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start --appendonly yes
esc=$(printf '\033')

beat() { # INSTANCE JSON
	r set "rqd:daemon:$1" "$2" ex 3000 >/dev/null
	r zadd rqd:daemons "$(date +%s)" "$1" >/dev/null
}

# -- nothing there -------------------------------------------------------------------

is "$(ctl status | tail -1)" 'no queues: no configuration file was read, and no daemon serves one; for one key: rqctl status KEY' \
    'status: no file, no daemon'
like "$(ctl status q | tail -1)" '^q +0 +0 +0 +0 +0 +0s +- +no daemon$' 'status: an unknown key is empty'
is "$(ctl daemons 2>/dev/null; echo $?)" 0 'daemons: none'
is "$(ctl daemons --json)" '[]' 'daemons: none, in JSON'
beat wrong 'no JSON'
like "$(ctl daemons 2>&1)" '^rqctl: skipped 1 heartbeat: ' 'daemons: none, but something in its place'
r flushall >/dev/null
is "$(ctl running q 2>/dev/null; echo $?)" 0 'running: nothing'
r set oddBACKUP x >/dev/null
like "$(ctl running odd 2>&1; echo $?)" WRONGTYPE 'running: a key of the wrong type is not nothing'
r del oddBACKUP >/dev/null
is "$(ctl peek q 2>/dev/null; echo $?)" 0 'peek: nothing'
is "$(ctl peek q --raw 2>/dev/null; echo $?)" 1 'peek --raw: there is none'
is "$(ctl show q 7 2>/dev/null; echo $?)" 1 'show: nothing'
r eval "for i = 1, 11000 do redis.call('XADD', 'qDEAD', '*', 'id', i, 'message', 'm') end" 0 >/dev/null
like "$(ctl show q 1 2>&1)" '^rqctl: q has no message 1$' 'show: does not look at all dead letters'
r del qDEAD >/dev/null
like "$(ctl ping)" '^redis unix:.*, version [0-9.]+ answers in ' 'ping'
RQD_SERVER=unix:$T/none "$RQCTL" ping 2>/dev/null
is $? 69 'ping: no Redis'

# -- a queue that is declared for others, whom rqd's retries and delayed messages do not concern
config_write others <<C
queue "others" { concurrency = 0 }
C
about() { "$RQCTL" -c "$T/others.conf" "$@"; }
r lpush others 1 >/dev/null
is "$(about check)" 'warning: no daemon is running' 'check: what waits for others is their affair'
about push --delay 1h others later >/dev/null
r zadd othersDELAYED 4000000000 a 4000000000000 b >/dev/null
is "$(about check)" 'warning: no daemon is running' 'check: and what is not due yet'
like "$(about status | tail -1)" ' others consume it$' 'status'
r zadd othersDELAYED 1 c 1700000000000 d >/dev/null
r zadd othersRETRY 1 "$(r zrange othersRETRY 0 -1)" >/dev/null
is "$(about check | tail -1)" 'warning: others: 3 of its retries and delayed messages are due, and no daemon delivers them: it is declared with concurrency = 0' \
    'check: what nobody delivers'
like "$(about status | tail -1)" ' others consume it, but not its retries$' 'status: the same'
beat h.1 '{"queues":{"others":{"concurrency":1,"state":"running"}}}'
is "$(about check)" '' 'check: a daemon elsewhere does'
r flushall >/dev/null

# -- a full Redis, and more daemons than are looked at
r lpush q 1 >/dev/null
r config set maxmemory 1 >/dev/null
like "$(ctl check q 2>&1)" '^error: Redis is full: it uses [0-9.]+[KM]? of maxmemory 1, and refuses' 'check: a full Redis'
like "$(ctl check q 2>&1)" '^warning: no daemon is seen: none can write its heartbeat$' 'check: daemons may run'
like "$(ctl status q 2>&1)" '^error: Redis is full: it uses' 'status: the same'
like "$(ctl status q 2>&1 | tail -1)" 'no daemon is seen: Redis is full$' 'status: what that means for a queue'
r config set maxmemory 0 >/dev/null
unlike "$(ctl check q 2>&1)" 'full' 'check: it has room again'
r eval "for i = 1, 1005 do redis.call('ZADD', 'rqd:daemons', 1000000000 + i, 'h.' .. i) end" 0 >/dev/null
beat h.1005 '{"queues":{}}'
is "$(ctl daemons 2>&1 >/dev/null)" 'rqctl: these are of the latest 1000 daemons; rqd:daemons has 5 more, alive or not' \
    'daemons: it says what it leaves out'
like "$(ctl check q)" '^warning: only the latest 1000 daemons were looked at: rqd:daemons has 5 more' 'check: the same'
r flushall >/dev/null

# -- a queue with everything -----------------------------------------------------------

now=$(date +%s)
r lpush q '{"id":1}' two "${esc}[2J" >/dev/null
r zadd qBACKUP "$now" 7 "$now" theirs >/dev/null
r hset qCONTEXT 7 seven theirs other 8 eight '8#x' eight-again >/dev/null
r hset qDELIVERY 7 "1 0 h.1 $((now - 90)) 1" 8 "2 1 - $now 1" '8#x' "0 0 - $now 1" >/dev/null
r zadd qRETRY $((now + 3600)) 8 1 '8#x' >/dev/null
r zadd qDELAYED $((now + 100)) later >/dev/null
r xadd qDEAD '*' id 9 message nine reason attempts attempts 25 status 1 error boom >/dev/null
r hset qSTATS acked 5 >/dev/null
beat h.1 "{\"instance\":\"h.1\",\"name\":\"h\",\"version\":\"0.1\",\"pid\":12,\"started\":$((now - 7200)),\"config\":\"abcdef0123456789\",\"queues\":{\"q\":{\"key\":\"q\",\"kind\":\"ack\",\"running\":1,\"concurrency\":4,\"lease\":60,\"state\":\"running\",\"in_hand\":[{\"id\":\"7\",\"tag\":\"7\",\"attempt\":2,\"pid\":4711,\"age\":90}]}}}"

like "$(ctl status | tail -1)" '^q +3 +2/4 +2 +1 +1 +- +[1-3]m[0-9]+s +1 dead letter$' 'status: finds the queue by its heartbeat'
like "$(ctl status | head -1)" ', 1 daemon$' 'status: counts daemons'
is "$(ctl status --json | tr -d ' \n' | sed 's/.*"waiting":\([0-9]*\),"running":\([0-9]*\),"retry":\([0-9]*\),"due":\([0-9]*\),"delayed":\([0-9]*\),"dead":\([0-9]*\).*"acked":\([0-9]*\).*/\1 \2 \3 \4 \5 \6 \7/')" \
    '3 2 2 1 1 1 5' 'status: JSON'
like "$(ctl daemons | tail -1)" '^h\.1 +0\.1 +12 +2h.* +abcdef01 +q$' 'daemons'
is "$(ctl queues --names)" q 'queues: those that daemons serve'
like "$(ctl running)" '^q +7 +2 +[1-3]m[0-9.]+s +4711 +h\.1$' 'running: ours, with its daemon and pid'
like "$(ctl running)" '^q +theirs +- +.*\(foreign\)$' 'running: a foreign one'
like "$(ctl show q 7)" '^running  tag 7, attempt 2, for [1-3]m' 'show: running'
like "$(ctl show q 8)" '^retry    tag 8, attempt 3 \(1 crash\), due in (59m|1h)' 'show: a retry'
like "$(ctl show q 8)" '^retry    tag 8#x, attempt 1, due now' 'show: a second message with this id'
like "$(ctl show q 1)" '^waiting  number 1 in line' 'show: waiting'
like "$(ctl show q 9)" '^dead     letter [0-9-]+, .* ago, reason attempts, attempts 25' 'show: dead'
is "$(ctl show q 7 --raw)" seven 'show: raw'
is "$(ctl peek q | sed 's/ \{1,\}/ /g')" 'PLACE ID BYTES MESSAGE
 1 1 8 {"id":1}
 2 - 3 two
 3 - 4 \x1b[2J' 'peek: in order, escaped'
is "$(ctl peek q --raw)" '{"id":1}' 'peek: raw'
is "$(ctl peek q --count 1 --json | tr -d ' \n')" '[{"place":1,"id":"1","length":8,"message":"{\"id\":1}"}]' 'peek: JSON'
is "$(r llen q)" 3 'peek: takes nothing'

# -- trouble ---------------------------------------------------------------------------------

is "$(ctl check q)" 'warning: q: 1 dead letter' 'check: a dead letter'
beat h.2 "{\"instance\":\"h.2\",\"queues\":{\"q\":{\"lease\":30,\"state\":\"suspended\",\"reason\":\"failing\",\"since\":$((now - 60))}}}"
like "$(ctl status | tail -1)" 'suspended: failing for [1-3]m' 'status: suspended on one host'
like "$(ctl check q)" '^error: q: daemons disagree about the lease: one has 30s, another 1m' 'check: leases'
like "$(ctl check q)" '^error: q: suspended: failing$' 'check: suspended, by a daemon that says no cause'
beat h.2 "{\"instance\":\"h.2\",\"queues\":{\"q\":{\"lease\":30,\"state\":\"suspended\",\"reason\":\"failing\",\"cause\":\"it\\u001b[2J is\\nbroken\"}}}"
like "$(ctl check q)" '^error: q: suspended: failing: it.x1b\[2J is.nbroken$' 'check: a cause, escaped'
like "$(ctl status)" '^error: q: suspended: failing: it.x1b\[2J is.nbroken$' 'status: the same'
like "$(ctl daemons)" '^warning: daemons disagree about the lease of q$' 'daemons: leases'
beat h.2 '{"instance":"h.2","queues":{"q":{"group_by":"g","group_concurrency":1}}}'
like "$(ctl status q)" ' daemons disagree about the groups$' 'status: groups'
like "$(ctl check q)" '^error: q: daemons disagree about group_by or group_concurrency: ' 'check: groups'
like "$(ctl daemons)" '^warning: daemons disagree about the groups of q$' 'daemons: groups'
r eval "redis.call('ZADD', 'qHELD', 1, 'stuck') redis.call('HSET', 'qGROUP', 'stuck', 'g')
redis.call('HSET', 'qCONTEXT', 'stuck', 'm')
redis.call('ZADD', 'qORDER', 0, 'g\\0' .. '20000000001.000000\\0stuck')" 0 >/dev/null
like "$(ctl show q stuck)" '^held ' 'show: a message that is held'
unlike "$(ctl show q stuck)" 'waits behind' 'though nobody is before it'
r del qHELD qGROUP qORDER >/dev/null
r hdel qCONTEXT stuck >/dev/null
beat h.3 'this is not JSON'
beat h.4 '[]'
beat h.5 '{"queues":7,"version":{},"started":"x"}'
beat "h${esc}6" '{"queues":{"q":{"in_hand":[1,{"tag":3}],"running":"x"}}}'
ok 'ctl status >/dev/null && ctl running >/dev/null && ctl daemons >"$T/out"' 'broken heartbeats do no harm'
unlike "$(cat "$T/out")" "$esc" 'daemons: escaped'
# -- order: trouble first, but not in JSON, nor where the queues are arguments
cat >"$T/order.conf" <<C
redis { server = "unix:$T/redis.sock" }
queue "a" { command = {"/bin/true"} }
queue "c" { command = {"/bin/true"} }
queue "b" { command = {"/bin/true"} }
queue "d" { command = {"/bin/true"} }
queue "e" { command = {"/bin/true"} }
C
beat h.7 '{"queues":{"a":{"state":"running"},"c":{"state":"running"},"b":{"state":"suspended","reason":"failing"},"d":{"state":"quiet"},"e":{"state":"running"}}}'
r xadd eDEAD '*' id 1 message m >/dev/null
r lpush b m >/dev/null
names() { RQD_CONFIG=$T/order.conf ctl status "$@" | awk '/^[a-e] / { printf "%s", $1 }'; }
is "$(names) $(names a b c)" 'bdeac abc' 'status: trouble first, but for arguments'
is "$(RQD_CONFIG=$T/order.conf ctl status --json | grep -o '"name": *"[a-e]"' | sed 's/.*"\(.\)"$/\1/' | tr -d '\n')" acbde 'status --json: in the order of the file'
r del eDEAD >/dev/null
r set wBACKUP x >/dev/null
like "$(ctl status w | tail -1)" '^w +0 +- .* error: WRONGTYPE' 'status: a key of the wrong type'
like "$(ctl check w)" '^error: w: the key wBACKUP is a string, not a zset$' 'check: names the key'
r config set maxmemory-policy allkeys-lru >/dev/null
like "$(ctl check w)" '^error: maxmemory-policy is allkeys-lru' 'check: eviction'
r config set maxmemory-policy noeviction >/dev/null
r hset oDELIVERY lost "0 0 - 1 4" >/dev/null
like "$(ctl check o)" '^warning: o: 1 entries of its DELIVERY key belong to no message$' 'check: orphans'

# -- work does not grow with messages ---------------------------------------------------------

r flushall >/dev/null
r eval 'for q = 1, 200 do for i = 1, 500 do redis.call("LPUSH", "big" .. q, i)
	redis.call("ZADD", "big" .. q .. "RETRY", i, i) end end' 0 >/dev/null
list=$(seq -f 'big%g' 1 200)
r config resetstat >/dev/null
begin=$(msec)
ctl status $list >"$T/out"
took=$(($(msec) - begin))
is "$(tail -n +3 "$T/out" | wc -l)" 200 'status: 200 queues'
note "status of 200 queues with 200,000 messages: $took ms"
is "$(r info commandstats | grep -cE 'cmdstat_(keys|scan|hgetall|zrange|lrange)\b')" 0 'status: only commands of O(1) or O(log n)'

ctl status -w --json 2>/dev/null </dev/null
is $? 64 'watch: not in JSON'

# -- a heartbeat that no daemon wrote ------------------------------------------------------

r flushall >/dev/null
beat h.2 '{"queues":{"l":{"key":"l","kind":"list","running":66,"in_hand":[{"id":"1","tag":"1","age":1}]}}}'
is "$(ctl running 2>&1 >/dev/null)" 'rqctl: 65 more are in flight: heartbeats do not list all of a queue without leases' \
    'running: not all are listed'
r del rqd:daemon:h.2 rqd:daemons >/dev/null
r zadd rqd:daemons 4e9 odd >/dev/null
r set rqd:daemon:odd '{"pid":1e300,"queues":{"q":{"running":1e300,"concurrency":-1e300,"in_hand":{"x":1}},"s":7}}' >/dev/null
is "$(ctl status q | tail -1)" 'q         0    0      0      0     0       0s           -  ok' 'status: figures that cannot be'
like "$(ctl daemons | tail -1)" '^odd +0 ' 'daemons: the same'
