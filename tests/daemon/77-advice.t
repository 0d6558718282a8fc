#!/bin/sh
# Advice for operators names the option with its value, file and line, and a command
# that finds the records in a log file.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v curl >/dev/null || skip_all 'no curl'
command -v python3 >/dev/null || skip_all 'no python3'
queue() {	# QUEUE EXPRESSION of the answer v
	curl -s -m 20 --unix-socket "$OWN/http.sock" "http://rqd/queue?key=$1" |
	    python3 -c 'import json, sys
v = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$2" 2>&1
}
redis_start
handler slow <<'H'
touch "$T/began"
until [ -e "$T/release" ]; do sleep 0.2; done
H
handler bad <<'H'
echo 'no such table' >&2
exit 1
H
cat >"$T/more.conf" <<C
# A file of its own, so that its lines are other ones.
queue "slow" {
	command = {"$T/slow"}
}

queue "a+b c" { command = {"$T/bad"} suspend_after = 1 }
queue "gone" { command = {"$T/gone"} }
C
[ "$(id -u)" -ne 0 ] || sed -i 's|^queue "[^"]*" {|& user = "root"|' "$T/more.conf"
chmod 644 "$T/more.conf"
mkdir "$T/log"
start() {	# FORMAT
	cat >"$T/in" <<C
max_handlers = 9
http { listen = "unix:$OWN/http.sock" }
log { target = "$T/log/rqd.log" format = "$1" }
include("$T/more.conf")
C
	rqd_start <"$T/in"
	r lpush 'a+b c' 1 >/dev/null
}
start logfmt
r lpush slow 1 2 3 >/dev/null
r lpush gone 1 >/dev/null
wait_for 30 '[ -e "$T/began" ]'
wait_for 20 'queue slow "v[\"hint\"]" | grep -q busy'
is "$(queue slow 'v["hint"]')" \
    "All handlers are busy: 1 of 1. Raise concurrency, which is 1 in $T/more.conf:2 (max_handlers is 9), and reload, or start another host." \
    'busy: which option, where, and its value'
wait_for 20 'queue gone "v[\"hint\"]" | grep -q Mend'
like "$(queue gone 'v["hint"]')" "rqd tries again every 5 s\. Mend $T/gone, or command in $T/more.conf:7\.\$" \
    'a command that is missing: the file, and the line that names it'
finds() {	# the command that shows the queue's records finds some
	queue 'a%2Bb%20c' '[c for c in v["commands"] if c.startswith("grep")][0]' >"$T/command"
	sh "$T/command" 2>&1 | grep -q suspended
}
wait_ok 20 'finds' 'the log is a file: a command finds the queue in it' || note "$(cat "$T/command")"
ok '! sh "$T/command" | grep -q "queue=slow\|level=info"' 'and nothing else'
is "$(queue 'a%2Bb%20c' 'sum(c.startswith("journalctl") for c in v["commands"])')" 0 'the journal has nothing of it'
touch "$T/release"
rqd_stop
rm "$T/log/rqd.log"
start json
wait_ok 20 'finds' 'the same for JSON' || note "$(cat "$T/command")"
rqd_stop
r flushall >/dev/null
