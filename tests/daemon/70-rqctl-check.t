#!/bin/sh
# rqctl check: runs that hang, thresholds, and the exit status, when it can tell and when it
# cannot.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
command -v python3 >/dev/null || skip_all 'no python3'
PORT=$(free_port)
redis_start --appendonly yes --port "$PORT" --bind 127.0.0.1 --repl-diskless-sync-delay 0

says() { # STATUS LINES ARGUMENT...
	_want=$1 _lines=$2
	shift 2
	_out=$(ctl check "$@" 2>&1)
	_status=$?
	is "$_status|$(printf '%s\n' "$_out" | sed -E 's/waited [6-9]m[0-9.]*s?/waited T/')" "$_want|$_lines" "check $*"
}
daemon() { # JSON of queues
	r set rqd:daemon:h.9 "{\"queues\":{$1}}" ex 300 >/dev/null
	r zadd rqd:daemons "$(date +%s)" h.9 >/dev/null
}
dead() { # QUEUE NUMBER
	r eval 'for i = 1, ARGV[1] do redis.call("XADD", KEYS[1], "*", "id", i, "message", "m", "reason", "exit") end' \
	    1 "$1DEAD" "$2" >/dev/null
}

# -- runs that hang ------------------------------------------------------------------

# A queue with two messages in flight and one that waits; the ages of the runs, what is usual.
busy() { # AGE AGE USUAL [CONCURRENCY]
	daemon '"h s":{"kind":"ack","state":"running","running":2,"concurrency":'"${4:-2}"',"usual":'"$3"',"in_hand":[{"id":"a","tag":"a#1 2","age":'"$1"'},{"id":"b","tag":"b","age":'"$2"'}]}'
}
r lpush 'h s' 1 >/dev/null
r zadd 'h sBACKUP' "$(date +%s)" 'a#1 2' "$(date +%s)" b >/dev/null
r hset 'h sDELIVERY' 'a#1 2' '0 0 h.9.1.1 1 1' b '0 0 h.9.1.2 1 1' >/dev/null
state() { ctl status --json 'h s' | python3 -c 'import json, sys; print(json.load(sys.stdin)["queues"][0]["state"])'; }
busy 1200 1200 2.5
is "$(ctl check)" "warning: h s: all handlers are busy, and 2 runs take far longer than usual: 20m, usually 2.5s at most; if it hangs: rqctl cancel --retry 'h s' 'a#1 2'" \
    'runs that are far above the usual: how to end the oldest'
is "$(state)" 'slow runs: 2' 'and the state says so'
busy 90 1 2.5
is "$(ctl check)" "warning: h s: all handlers are busy, and 1 run takes far longer than usual: 1m30s, usually 2.5s at most; if it hangs: rqctl cancel --retry 'h s' 'a#1 2'" 'one of two'
for i in '1200 1200 300' '50 50 0.1' '1200 1200 0' '1200 1200 null' '1200 1200 2.5 3'; do
	# shellcheck disable=SC2086
	busy $i
	is "$(state) $(ctl check)" 'ok ' "nothing is wrong: $i"
done
r del 'h s' 'h sBACKUP' 'h sDELIVERY' >/dev/null

# -- what would be lost, and clocks --------------------------------------------------

daemon '"q":{"state":"running"}'
is "$(ctl check)" '' 'with an append-only file nothing is wrong'
r config set appendonly no >/dev/null
is "$(ctl check; echo $?)" "warning: appendonly is no: a crash of Redis loses the messages since its last snapshot; type redis-cli config set appendonly yes and redis-cli config rewrite
1" 'appendonly no: what to type'
r acl setuser default -config >/dev/null
like "$(ctl check)" '^warning: appendonly is no' 'it needs no CONFIG'
r acl setuser default +config >/dev/null
mkdir "$T/replica"
redis-server --port 0 --unixsocket "$T/replica/sock" --dir "$T/replica" --save '' --replicaof 127.0.0.1 "$PORT" \
    >"$T/replica/log" 2>&1 &
OTHER_PIDS="$OTHER_PIDS $!"
wait_for 30 'r info replication | grep -q connected_slaves:1'
is "$(ctl check)" '' 'a replica has the messages, too'
r config set appendonly yes >/dev/null

clock() { # SECONDS
	r set rqd:daemon:h.9 "{\"clock\":$1,\"queues\":{}}" ex 300 >/dev/null
	ctl check
}
is "$(clock 61)" "warning: h.9: its clock is 1m1s ahead of Redis': correct the one that is wrong" 'a clock that is ahead'
is "$(clock -7200)" "warning: h.9: its clock is 2h behind Redis': correct the one that is wrong" 'one that is behind'
is "$(clock 59.9)$(clock -1)" '' 'less than a minute'

# -- thresholds --------------------------------------------------------------------

daemon '"q":{"state":"running"}'
dead q 3
r lpush q 1 2 3 4 5 >/dev/null
says 1 'warning: q: 3 dead letters'
says 0 '' --dead 4
says 0 '' --dead 3
says 1 'warning: q: 3 dead letters, more than 2' --dead 2
says 1 'warning: q: 3 dead letters, more than 2' --dead 2:3
says 2 'error: q: 3 dead letters, more than 2' --dead 2:2
says 0 '' --dead :3
says 2 'error: q: 3 dead letters, more than 2' --dead=:2
says 1 'warning: q: 3 dead letters' --waiting 5
says 0 '' --waiting 5 --dead 10
says 1 'warning: q: 5 messages wait, more than 4' --waiting 4:5 --dead 10
says 2 'error: q: 5 messages wait, more than 4
warning: q: 3 dead letters, more than 2' --waiting 3:4 --dead 2
is "$(ctl check --dead 1:2 --json | tr -d '\n ')" \
    '[{"level":"error","queue":"q","text":"3deadletters,morethan2"}]' 'thresholds with --json'

# -- latency: exact for a sorted set; of a list only daemons know it ---------------------

r zadd u "$(($(date +%s) - 400))" a "$(($(date +%s) + 400))" b >/dev/null
config_write late <<'C'
queue "u" { kind = "unique" key = "u" command = {"/bin/true"} }
C
list() { daemon "\"u\":{\"kind\":\"unique\"},\"q\":{\"state\":\"running\"$1}"; }
list ''
says 1 'warning: u: a message has waited T, longer than 5m' -c "$T/late.conf" --latency 5m u
says 2 'error: u: a message has waited T, longer than 5m' -c "$T/late.conf" --latency 1m:5m u
says 0 '' -c "$T/late.conf" --latency 1h u
r del u >/dev/null
says 0 '' -c "$T/late.conf" --latency 0 u
says 3 'unknown: q: how long messages have waited is not known' --latency 5m --dead 9 q
says 1 'warning: q: 3 dead letters, more than 1
unknown: q: how long messages have waited is not known' --latency 5m --dead 1 q
is "$(ctl check --latency 5m --dead 9 --json q | tr -d '\n ')" \
    '[{"level":"unknown","queue":"q","text":"howlongmessageshavewaitedisnotknown"}]' 'latency: not known, in JSON'
list ',"latency":400'
says 1 'warning: q: a message has waited T, longer than 5m' --latency 5m:1h --dead 9 q

# -- queues ---------------------------------------------------------------------------

daemon "\"q\":{\"state\":\"running\"},\"it's a=b|c\":{},\"o\":{\"state\":\"suspended\",\"reason\":\"a|b\"},\"c\":{\"kind\":\"channel\"}"
says 1 'warning: o: suspended, and without messages: a|b' --waiting 10 --dead 10
says 0 '' --dead 10 q
r set wBACKUP x >/dev/null
r set w x >/dev/null
out=$(ctl check --waiting 10 --dead 10 w)
is $? 2 'a number that is not known: the status'
like "$out" '^error: w: WRONGTYPE' 'and why'

# -- it cannot tell ---------------------------------------------------------------------

for bad in 10: : '' x 10:x x:10 -1 1.5 5m 10:20:30 1000000000001 @10 10:2; do
	out=$(ctl check --dead "$bad" 2>&1)
	is $? 3 "--dead '$bad': unknown"
	like "$out" "^rqctl: --dead: \"$bad\".*write 10(:100| or 10:100)\$" "--dead '$bad': what to write"
done
for bad in 5 5m:1 x: 1h:5m; do
	out=$(ctl check --latency "$bad" 2>&1)
	is $? 3 "--latency '$bad': unknown"
	like "$out" "^rqctl: --latency: \"$bad\".*write 5m(:30m| or 5m:30m)\$" "--latency '$bad'"
done
is "$(ctl check --dead x 2>/dev/null; echo $?)" 3 'wrong usage: unknown'
out=$(ctl check -c "$T/none.conf" 2>&1)
is $? 3 'no configuration: unknown'
like "$out" "$T/none.conf: No such file" 'no configuration'
OUT=$("$RQCTL" --server "unix:$T/none" check --dead 5 2>&1)
is "$? $(printf '%s\n' "$OUT" | wc -l)" '2 1' 'no Redis: status, one line'
like "$OUT" "^rqctl: redis unix:$T/none: " 'no Redis: why'
