#!/bin/sh
# A Redis at maxmemory: whatever becomes of the messages, rqd's writes do not take it above 1.05
# times of that; consumers drain it, and nothing is lost.
#
# What counts is used_memory of INFO, with all that Redis takes: data, the scripts that the
# daemon loads when Redis is already full, and buffers of clients.  Other data is there, too: the
# first 250 messages in flight or retries, and those scripts, take some 300 KB however large Redis is.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

OTHER=10000000 LETTERS=1000 MANY=6000
[ -z "$RQD_TEST_LONG" ] || LETTERS=10000 MANY=80000

redis_start
# look: how many messages wait, were never delivered; how many are elsewhere; and what Redis uses.
look() {
	# shellcheck disable=SC2046
	set -- $(r eval 'local call, t = redis.call, redis.call("TYPE", KEYS[1]).ok
	    local waits = t == "stream" and ((call("XINFO", "GROUPS", KEYS[1])[1] or {})[12] or call("XLEN", KEYS[1])) or
	        t == "zset" and call("ZCARD", KEYS[1]) or call("LLEN", KEYS[1])
	    local others = call("ZCARD", "qBACKUP") + call("ZCARD", "qRETRY") + call("ZCARD", "qHELD") +
	        call("XLEN", "qDEAD")
	    return {waits, others, call("HEXISTS", "qSTATS", "crammed"),
	        string.match(call("INFO", "memory"), "used_memory:(%d+)")}' 1 q)
	waits=$1 others=$2 all=$(($1 + $2)) crammed=$3 used=$4
	[ "$used" -le "$highest" ] || highest=$used
}
highest=0

# fill N COMMAND: messages of some 100 bytes, most of them of one group.
fill() {
	r eval 'for i = 1, tonumber(ARGV[1]) do
	    local m = string.format("{\"id\":%d,\"g\":\"g%d\",\"text\":\"%048d\"}", i,
	        i % 1000 == 0 and i / 1000 or 0, i)
	    if ARGV[2] == "XADD" then redis.call("XADD", KEYS[1], "*", "message", m)
	    elseif ARGV[2] == "ZADD" then redis.call("ZADD", KEYS[1], i, m)
	    else redis.call("LPUSH", KEYS[1], m) end end' 1 q "$@" >/dev/null
}
bounded() { ok '[ $((highest * 20)) -le $((max * 21)) ]' "$1"; }

handler work <<'H'
[ -e "$T/bad" ] || exit 0
cat "$T/bad" >&2
exit 1
H
cat >"$T/alert" <<'H'
#!/bin/sh
sleep 600
H
chmod 755 "$T/alert"

# full COMMAND OPTIONS: Redis has just become full.
full() {
	r setrange other "$OTHER" x >/dev/null
	r set qPAUSED x >/dev/null
	rqd_start <<C
queue "q" {
	command = {"$T/work"} concurrency = 4 suspend_after = 0
	backoff = 1h backoff_max = 1h $BATCH $2
}
queue "alerts" { command = {"$T/alert"} }
C
	log_wait 30 'event=redis_up'
	fill "$N" "$1"
	highest=0
	look
	max=$used
	r config set maxmemory "$max" >/dev/null
	r del qPAUSED >/dev/null
	# The queue has found its bound, or there is none.  Then it works on.
	wait_ok 60 'look; [ $crammed = 1 ] || [ $others -ge $((N * 3 / 4)) ] || [ $all -le $((N - 20)) ]' \
	    "$1 $2: it is worked on"
	tries=$(r hget qSTATS taken)
	wait_for 10 'look; [ "$(r hget qSTATS taken)" -gt "$tries" ]'
	note "$1 $2: $((100 * highest / max)) % of maxmemory, $(r zcard qRETRY) retries, $(r xlen qDEAD) letters, $waits wait"
	bounded "$1 $2: memory does not grow"
	case $2 in *group_by*) ;; *) is $all "$N" "$1 $2: nothing is lost" ;; esac
}
# Now the handlers succeed.
drained() {	# DESCRIPTION
	rm "$T/bad"
	wait_ok 100 'look; [ $waits = 0 ]' "$1: what waits is delivered"
	bounded "$1: memory does not grow meanwhile"
}
over() {
	r config set maxmemory 0 >/dev/null
	rqd_stop
	r flushall >/dev/null
	: >"$T/rqd.log"
}
fails() {	# BYTES of the error
	head -c "$1" /dev/zero | tr '\0' x >"$T/bad"
	chmod 644 "$T/bad"
}

# -- letters, with errors --
N=$LETTERS BATCH=
fails 4000
full LPUSH 'max_attempts = 1 on_dead = "push:alerts" on_dead_message = true'
is "$(r eval 'return redis.call("XLEN", "qDEAD") - redis.call("LLEN", "alerts") -
    redis.call("ZCARD", "alertsBACKUP")' 0)" 0 'each letter is announced'
drained letters
over
fails 4000
full LPUSH 'max_attempts = 1'
over
full ZADD 'max_attempts = 1 kind = "unique" key = "q"'
over
full XADD 'max_attempts = 1 kind = "stream"'
over

# -- retries --
N=$MANY BATCH='batch = 100 framing = "line"'
full LPUSH
drained retries
over
fails 0
full ZADD 'kind = "unique" key = "q"'
over
full XADD 'kind = "stream"'
over

# -- groups --
rm "$T/bad"
full LPUSH 'group_by = "g"'
wait_ok 60 'look; [ $all -le $((N - 20)) ]' 'groups: they are drained from the end of the list'
bounded 'groups: memory does not grow meanwhile'
ok '[ "$(r zcard qHELD)" -le 1000 ]' 'few are held'
over
