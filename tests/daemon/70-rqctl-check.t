#!/bin/sh
# rqctl check as a monitoring plugin: thresholds, the first line, performance data, and the
# exit status, when it can tell and when it cannot.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
command -v python3 >/dev/null || skip_all 'no python3'
PORT=$(free_port)
redis_start --appendonly yes --port "$PORT" --bind 127.0.0.1 --repl-diskless-sync-delay 0

# Prints "STATUS LABEL=VALUE UNIT WARN CRIT MIN|..." of a plugin's output; fails where the
# Monitoring Plugins Development Guidelines do not allow it.
cat >"$T/parse.py" <<'P'
import re, sys
lines = sys.stdin.read().split('\n')
assert lines.pop() == '', 'no newline at the end'
first = re.fullmatch(r'RQD (OK|WARNING|CRITICAL|UNKNOWN) - ([^|]+?)(?: \|(( .*)))?', lines[0])
assert first, lines[0]
for line in lines[1:]:
    assert re.fullmatch(r'(warning|error|unknown): [^|]+', line), line
number = r'[0-9]+(?:\.[0-9]+)?'
datum = re.compile(r" (?:'((?:[^'=]|'')+)'|([^ '=]+))="
                   rf'(?:({number})(s|)|(U));({number})?;({number})?;({number})?(?= |$)')
data, at, seen = first[3] or '', 0, []
while at < len(data):
    m = datum.match(data, at)
    assert m, data[at:]
    label = m[1].replace("''", "'") if m[1] is not None else m[2]
    assert label not in seen and '|' not in label, label
    seen.append(label)
    print('%s=%s' % (label, ' '.join(x if x else '-' for x in (m[3] or m[5], *m.group(4, 6, 7, 8)))))
    at = m.end()
P
check() { # ARGUMENT...: status, output and performance data into $STATUS, $OUT and $DATA
	OUT=$(ctl check "$@" 2>"$T/err")
	STATUS=$?
	DATA=$(printf '%s\n' "$OUT" | python3 "$T/parse.py" 2>&1)
}
is_check() { # STATUS FIRST-LINE DATA DESCRIPTION
	is "$STATUS|$(printf '%s\n' "$OUT" | head -1 | sed 's/ |.*//')|$DATA" "$1|$2|$3" "$4" ||
	    note "$OUT"
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
is "$(ctl check)" 'warning: q: 3 dead letters' 'without thresholds: a line for each problem'
check --dead 4
is_check 0 'RQD OK - 1 queue, 1 daemon, 5 waiting, 3 dead' 'q_dead=3 - 4 - 0' 'below'
check --dead 3
is_check 0 'RQD OK - 1 queue, 1 daemon, 5 waiting, 3 dead' 'q_dead=3 - 3 - 0' 'at it'
check --dead 2
is_check 1 'RQD WARNING - q: 3 dead letters, more than 2' 'q_dead=3 - 2 - 0' 'above'
check --dead 2:3
is_check 1 'RQD WARNING - q: 3 dead letters, more than 2' 'q_dead=3 - 2 3 0' 'at the critical one'
check --dead 2:2
is_check 2 'RQD CRITICAL - q: 3 dead letters, more than 2' 'q_dead=3 - 2 2 0' 'above the critical one'
check --dead :3
is_check 0 'RQD OK - 1 queue, 1 daemon, 5 waiting, 3 dead' 'q_dead=3 - - 3 0' 'a critical one alone'
check --dead=:2
is_check 2 'RQD CRITICAL - q: 3 dead letters, more than 2' 'q_dead=3 - - 2 0' 'above that'
check --waiting 5
is_check 1 'RQD WARNING - q: 3 dead letters' 'q_waiting=5 - 5 - 0' 'dead letters stay a warning'
check --waiting 5 --dead 10
is_check 0 'RQD OK - 1 queue, 1 daemon, 5 waiting, 3 dead' 'q_waiting=5 - 5 - 0
q_dead=3 - 10 - 0' 'unless they have a threshold'
check --waiting 4:5 --dead 10
is_check 1 'RQD WARNING - q: 5 messages wait, more than 4' 'q_waiting=5 - 4 5 0
q_dead=3 - 10 - 0' 'waiting: above'
check --waiting 3:4 --dead 2
is_check 2 'RQD CRITICAL - q: 5 messages wait, more than 4 (and 1 more problem)' 'q_waiting=5 - 3 4 0
q_dead=3 - 2 - 0' 'waiting: above the critical one'
is "$(printf '%s\n' "$OUT" | tail -n +2)" 'error: q: 5 messages wait, more than 4
warning: q: 3 dead letters, more than 2' 'a line for each of several problems'
check --plugin
is_check 1 'RQD WARNING - q: 3 dead letters' 'q_latency=U - - - 0
q_waiting=5 - - - 0
q_dead=3 - - - 0' '--plugin: all data'
is "$(ctl check --dead 1:2 --json | tr -d '\n ')" \
    '[{"level":"error","queue":"q","text":"3deadletters,morethan2"}]' 'thresholds with --json'

# -- latency: exact for a sorted set; of a list only daemons know it ---------------------

r zadd u "$(($(date +%s) - 400))" a "$(($(date +%s) + 400))" b >/dev/null
config_write late <<'C'
queue "u" { kind = "unique" key = "u" command = {"/bin/true"} }
C
list() { daemon "\"u\":{\"kind\":\"unique\"},\"q\":{\"state\":\"running\"$1}"; }
late() { # ARGUMENT...: as check, without the seconds
	check "$@"
	DATA=$(printf '%s\n' "$DATA" | sed -E 's/=[0-9.]+ s/=N s/')
	OUT=$(printf '%s\n' "$OUT" | sed -E 's/waited [6-9]m[0-9.]*s?/waited T/')
}
list ''
late -c "$T/late.conf" --latency 5m u
is_check 1 'RQD WARNING - u: a message has waited T, longer than 5m' 'u_latency=N s 300 - 0' 'latency: above'
late -c "$T/late.conf" --latency 1m:5m u
is_check 2 'RQD CRITICAL - u: a message has waited T, longer than 5m' 'u_latency=N s 60 300 0' 'latency: critical'
late -c "$T/late.conf" --latency 1h u
is_check 0 'RQD OK - 1 queue, 1 daemon, 1 waiting, 0 dead' 'u_latency=N s 3600 - 0' 'latency: below'
r del u >/dev/null
late -c "$T/late.conf" --latency 0 u
is_check 0 'RQD OK - 1 queue, 1 daemon, 0 waiting, 0 dead' 'u_latency=N s 0 - 0' 'latency: an empty queue, at 0'
late --latency 5m --dead 9 q
is_check 3 'RQD UNKNOWN - q: how long messages have waited is not known' 'q_latency=U - 300 - 0
q_dead=3 - 9 - 0' 'latency: not known'
late --latency 5m --dead 1 q
is_check 1 'RQD WARNING - q: 3 dead letters, more than 1 (and 1 more problem)' 'q_latency=U - 300 - 0
q_dead=3 - 1 - 0' 'a warning is worse than what is not known'
is "$(ctl check --latency 5m --dead 9 --json q | tr -d '\n ')" \
    '[{"level":"unknown","queue":"q","text":"howlongmessageshavewaitedisnotknown"}]' 'latency: not known, in JSON'
list ',"latency":400'
late --latency 5m:1h --dead 9 q
is_check 1 'RQD WARNING - q: a message has waited T, longer than 5m' 'q_latency=N s 300 3600 0
q_dead=3 - 9 - 0' 'latency: a daemon knows it'

# -- queues ---------------------------------------------------------------------------

daemon "\"q\":{\"state\":\"running\"},\"it's a=b|c\":{},\"o\":{\"state\":\"suspended\",\"reason\":\"a|b\"},\"c\":{\"kind\":\"channel\"}"
check --waiting 10 --dead 10
is_check 1 'RQD WARNING - o: suspended, and without messages: a\x7cb' "it's a\\x3db\\x7cc_waiting=0 - 10 - 0
it's a\\x3db\\x7cc_dead=0 - 10 - 0
o_waiting=0 - 10 - 0
o_dead=0 - 10 - 0
q_waiting=5 - 10 - 0
q_dead=3 - 10 - 0" 'names with all kinds of characters; a channel has no messages'
check --dead 10 q
is_check 0 'RQD OK - 1 queue, 1 daemon, 5 waiting, 3 dead' 'q_dead=3 - 10 - 0' 'one queue by name'
r set wBACKUP x >/dev/null
r set w x >/dev/null
check --waiting 10 --dead 10 w
is "$STATUS $DATA" '2 w_waiting=U - 10 - 0
w_dead=0 - 10 - 0' 'a number that is not known'
is "$(printf '%s\n' "$OUT" | grep -c '^error: w: WRONGTYPE')" 1 'and why'

# -- it cannot tell ---------------------------------------------------------------------

for bad in 10: : '' x 10:x x:10 -1 1.5 5m 10:20:30 1000000000001 @10 10:2; do
	check --dead "$bad"
	is "$STATUS $(printf '%s\n' "$OUT" | wc -l) $(cat "$T/err")" '3 1 ' "--dead '$bad': status, and one line"
	like "$OUT" "^RQD UNKNOWN - --dead: \"$bad\".*write 10(:100| or 10:100)\$" "--dead '$bad': what to write"
done
for bad in 5 5m:1 x: 1h:5m; do
	check --latency "$bad"
	like "$STATUS $OUT" "^3 RQD UNKNOWN - --latency: \"$bad\".*write 5m(:30m| or 5m:30m)\$" "--latency '$bad'"
done
check --plugin --json
is "$STATUS $(cat "$T/err")" '3 rqctl: --plugin and --json do not go together' 'a plugin prints no JSON'
check --plugin -c "$T/none.conf"
like "$STATUS $OUT" "^3 RQD UNKNOWN - $T/none.conf: No such file" 'no configuration'
OUT=$("$RQCTL" --server "unix:$T/none" check --dead 5 2>&1)
is "$? $(printf '%s\n' "$OUT" | wc -l)" '2 1' 'no Redis: status, one line'
like "$OUT" "^RQD CRITICAL - redis unix:$T/none: " 'no Redis: why'
OUT=$("$RQCTL" --server "unix:$T/none" check 2>&1)
is "$?|${OUT%%: *}" '2|rqctl' 'no Redis, without a threshold: as ever'
