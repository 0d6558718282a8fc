#!/bin/sh
# A Redis at maxmemory: whatever becomes of the messages, rqd's writes do not take it above 1.05
# times of that; consumers drain it, and nothing is lost.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

N=80000
redis_start
info() { r info "$1" | tr -d '\r' | sed -n "s/^$2://p"; }
# How many messages wait, were never delivered; and how many there are elsewhere.
count() { r eval 'local call, t = redis.call, redis.call("TYPE", KEYS[1]).ok
    local waits = t == "stream" and (call("XINFO", "GROUPS", KEYS[1])[1][12] or 0) or
        t == "zset" and call("ZCARD", KEYS[1]) or call("LLEN", KEYS[1])
    local others = call("ZCARD", "qBACKUP") + call("ZCARD", "qRETRY") + call("ZCARD", "qHELD") + call("XLEN", "qDEAD")
    return ARGV[1] == "waits" and waits or ARGV[1] == "others" and others or waits + others' 1 q "$1"; }
waits() { count waits; }
others() { count others; }

# What Redis stores: buffers of connections come and go.
used() { echo $(($(info memory used_memory) - $(info memory mem_clients_normal))); }

# fill N COMMAND: messages of some 100 bytes, most of them of one group.
fill() {
	r eval 'for i = 1, tonumber(ARGV[1]) do
	    local m = string.format("{\"id\":%d,\"g\":\"g%d\",\"text\":\"%048d\"}", i,
	        i % 1000 == 0 and i / 1000 or 0, i)
	    if ARGV[2] == "XADD" then redis.call("XADD", KEYS[1], "*", "message", m)
	    elseif ARGV[2] == "ZADD" then redis.call("ZADD", KEYS[1], i, m)
	    else redis.call("LPUSH", KEYS[1], m) end end' 1 q "$@" >/dev/null
}
watch() {	# SECONDS 'COMMAND': the highest use of memory until then
	end=$(($(date +%s) + $1))
	while ! eval "$2" && [ "$(date +%s)" -lt "$end" ]; do
		now=$(used)
		[ "$now" -le "$highest" ] || highest=$now
		sleep 0.02
	done
	eval "$2"
}

handler work <<'H'
cat >/dev/null
[ -e "$T/bad" ] || exit 0
head -c 4000 /dev/zero | tr '\0' x >&2
exit "$(cat "$T/bad")"
H
cat >"$T/alert" <<'H'
#!/bin/sh
sleep 600
H
chmod 755 "$T/alert"

# full STATUS COMMAND OPTIONS: all handlers end with the status, and Redis has just become full.
full() {
	echo "$1" >"$T/bad"
	chmod 644 "$T/bad"
	r set qPAUSED x >/dev/null
	rqd_start <<C
queue "q" {
	command = {"$T/work"} batch = 100 framing = "line" concurrency = 4 suspend_after = 0
	backoff = 1h backoff_max = 1h output = "none" $3
}
queue "alerts" { command = {"$T/alert"} }
C
	log_wait 30 'event=redis_up'
	fill "$N" "$2"
	max=$(used) highest=$max
	r config set maxmemory "$(info memory used_memory)" >/dev/null
	r del qPAUSED >/dev/null
	# Without a bound, it is reached at once.
	watch 5 '[ "$(others)" -ge 10000 ]'
	note "$1 $2: $((100 * highest / max)) % of maxmemory, $(r zcard qRETRY) retries, $(r xlen qDEAD) letters, $(waits) wait"
	[ "$N" -lt 1000 ] || ok '[ $((highest * 20)) -le $((max * 21)) ]' "$1 $2 $3: memory does not grow"
}
# Now the handlers succeed.
drained() {	# DESCRIPTION
	rm "$T/bad"
	watch 100 '[ "$(waits)" = 0 ]'
	is "$(waits)" 0 "$1: what waits is delivered"
	ok '[ $((highest * 20)) -le $((max * 21)) ]' "$1: memory does not grow meanwhile"
}
over() {
	r config set maxmemory 0 >/dev/null
	rqd_stop
	r flushall >/dev/null
	: >"$T/rqd.log"
}

# Redis keeps each script that it has run.
N=200
full 1 LPUSH 'max_attempts = 1 on_dead = "push:alerts" on_dead_message = true'
over
N=80000

# -- letters --
full 1 LPUSH 'max_attempts = 1 on_dead = "push:alerts" on_dead_message = true'
is "$(count all)" $N 'letters: nothing is lost'
is "$(r xlen qDEAD)" "$(($(r llen alerts) + $(r zcard alertsBACKUP)))" 'each letter is announced'
drained letters
over
full 1 LPUSH 'max_attempts = 1 '
is "$(count all)" $N 'letters that are not announced: nothing is lost'
over
full 1 ZADD 'max_attempts = 1 kind = "unique" key = "q"'
over
full 1 XADD 'max_attempts = 1 kind = "stream"'
over

# -- retries --
full 1 LPUSH ''
is "$(count all)" $N 'retries: nothing is lost'
drained retries
over
full 1 ZADD 'kind = "unique" key = "q"'
over
full 1 XADD 'kind = "stream"'
over

# -- groups --
full 0 LPUSH 'group_by = "g"'
drained_some() { [ "$(count all)" -le $((N - 20)) ]; }
ok 'watch 60 drained_some' 'groups: they are drained from the end of the list'
ok '[ $((highest * 20)) -le $((max * 21)) ]' 'groups: memory does not grow meanwhile'
ok '[ "$(r zcard qHELD)" -le 1000 ]' 'few are held'
over

finish
