#!/bin/sh
# Heartbeats that no daemon wrote: with any contents of rqd:daemon:..., the daemon and
# rqctl stay small, the page works, and their output is bounded.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v curl >/dev/null || skip_all 'no curl'
command -v python3 >/dev/null || skip_all 'no python3'
# Some 360,000 queues: a sanitizer needs minutes for each verb.
[ "$SLOW" -eq 1 ] || skip_all 'too slow with sanitizers'
H=$OWN/http.sock
get() { curl -s -m 30 --unix-socket "$H" "http://rqd$1"; }		# PATH
# Memory in MB: that the process has taken at most.
peak() { awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$1/status"; }
# PYTHON expression of a text -> a heartbeat of the daemon NAME.
plant() {	# NAME EXPRESSION
	python3 -c "import json, sys; sys.stdout.write($2)" | r -x set "rqd:daemon:$1" >/dev/null
	r zadd rqd:daemons "$(date +%s)" "$1" >/dev/null
}
value() { python3 -c 'import json, sys; v = json.load(sys.stdin); print('"$1"')' 2>&1; }

redis_start
handler good <<'H'
cat >/dev/null
H
rqd_start <<C
http { listen = "unix:$H" }
queue "q" { command = {"$T/good"} lease = 9s }
C
log_wait 10 event=ready
wait_for 10 '[ "$(r zcard rqd:daemons)" = 1 ]'
INSTANCE=$(log_lines event=started | log_field instance)
MAIN=$(log_lines event=started | log_field pid)
get /status >/dev/null
before=$(peak "$MAIN")

# Every member that the daemon writes is one that readers know.
wait_ok 10 '[ "$(r --raw get "rqd:daemon:$INSTANCE" | value "sorted(v) + sorted(v[\"queues\"][\"q\"])")" = \
    "$(ctl daemons --json | value "sorted(set(v[0]) - {\"seen\"}) + sorted(v[0][\"queues\"][\"q\"])")" ]' \
    'readers keep all that a daemon writes'

plant big1 "'{\"queues\":{' + ','.join('\"q%d\":{\"in_hand\":[%s]}' % (i, ','.join(['{}'] * 100)) for i in range(30000)) + '}}'"
plant big2 "'[' + ','.join(['[]'] * 3000000) + ']'"
plant deep "'{\"queues\":' + '[' * 25000 + ']' * 25000 + '}'"
plant long "json.dumps({'name': 'x' * 900000})"
plant types '"{\"config\":5,\"queues\":{},\"name\":[],\"version\":{},\"pid\":\"x\",\"started\":null}"'
plant odd '"{\"queues\":{\"q\":[1],\"r\":{\"key\":\"r\",\"state\":7,\"in_hand\":{\"a\":1}},\"s\":{\"key\":8}},\"evil\":{\"a\":1}}"'
plant text '"no JSON"'

# The daemon asks Redis at most once a second for all who look at it.
fleet() { value 'sorted(d["instance"].replace("'"$INSTANCE"'", "~own") for d in v["fleet"]), v["ignored"]' <"$T/status"; }
# On a busy machine an answer comes before the survey is there, or a survey before the last.
wait_for 20 'get /status >"$T/status"; fleet | grep -q "odd.*types.* 4"'
is "$(fleet)" "['long', 'odd', 'types', '~own'] 4" '/status shows what is a heartbeat, and counts the others'
is "$(value '[sorted(d) for d in v["fleet"] if d["instance"] == "types"][0]' <"$T/status")" \
    "['instance', 'moods', 'queues', 'running', 'seen', 'states']" 'members of another type are left out'
python3 - <<'P' | r --pipe >/dev/null
import sys, time
def send(*words):
    words = [w.encode() for w in words]
    sys.stdout.buffer.write(b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words))
for n in range(30):
    send('SET', 'rqd:daemon:wide%d' % n, '{"queues":{' + ','.join('"w%d-%d":{}' % (i, n) for i in range(12000)) + '}}')
    send('ZADD', 'rqd:daemons', str(int(time.time())), 'wide%d' % n)
P
sleep 1.6	# what was surveyed before is not fresh any more
get /status >/dev/null
get /metrics >/dev/null
after=$(peak "$MAIN")
ok "[ $((after - before)) -lt $((200 * (SLOW > 1 ? 4 : 1))) ]" "the daemon stays small ($before MB, then $after MB)"

whole() { get /status | value 'v["ignored"] > 8, len(v["fleet"]) < 20, len(v["queues"])'; }
wait_for 40 'whole=$(whole); [ "$whole" = "True True 1001" ]'
is "$whole" "True True 1001" 'together they are bounded, too'

for verb in status daemons running check 'daemons --json' 'status --json' 'show q id'; do
	limit=400000
	[ "$SLOW" -eq 1 ] || limit=unlimited
	# shellcheck disable=SC3045
	(ulimit -v $limit && ctl $verb >"$T/told" 2>"$T/err")
	status=$?
	ok "[ $status -le 2 ]" "rqctl $verb: within $limit KB (status $status, $(head -c 100 "$T/err"))"
	size=$(wc -c <"$T/told")
	ok "[ $size -lt 20000000 ]" "and prints no flood ($size bytes)"
	case $verb in daemons) daemons=$(cat "$T/err") ;; check) check=$(cat "$T/told") ;; esac
done
like "$daemons" 'skipped [0-9]+ heartbeats: too large, or not readable' 'daemons says that some are missing'
like "$check" 'warning: [0-9]+ keys rqd:daemon:... are too large' 'and so does check'

# A name in the index that is no daemon's.
r flushall >/dev/null
python3 -c 'import sys; sys.stdout.write("n" * 100000)' | r -x zadd rqd:daemons 1 >/dev/null
ok 'ctl status >/dev/null 2>&1' 'a long name in the index'
r del rqd:daemons >/dev/null
