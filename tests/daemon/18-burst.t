#!/bin/sh
# Thousands of handlers that end at once do not delay renewals: a message of another queue
# stays its daemon's for two leases of 3 s.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
handler long <<'H'
echo "$1" >>"$T/runs"
while [ ! -e "$T/go" ]; do sleep 0.1; done
H
handler answers <<'H'
while read -r number _ && read -r _; do echo "$number ok"; done
H
push() {	# QUEUE COUNT, in one step
	r eval 'for _ = 1, ARGV[1] do redis.call("LPUSH", KEYS[1], "m") end' 1 "$1" "$2" >/dev/null
}
no_more() { [ "$(r exists true trueBACKUP answers answersBACKUP)" = 0 ]; }
conf() {	# NAME
	echo "defaults { $AS }"
	echo "queue \"long\" { command = {\"$T/long\", \"$1\"} lease = 3s }"
}
{
	conf first
	cat <<C
log { level = "warn" }
queue "true" { command = {"/bin/true"} concurrency = 200 }
queue "answers" { command = {"$T/answers"} mode = "persistent" framing = "line" concurrency = 64 }
C
} >"$T/text"
rqd_start first <"$T/text"
r lpush long 1 >/dev/null
wait_ok 10 '[ -s "$T/runs" ]' 'a message runs'
conf second >"$T/text"
rqd_start second <"$T/text"
log_wait 10 event=redis_up 1 second

start=$(msec) rounds=0
while [ $(($(msec) - start)) -lt 6500 ]; do
	push true 500
	push answers 10000
	wait_for 60 no_more || break
	rounds=$((rounds + 1))
done
note "$rounds rounds of 10500 messages"
ok "[ $rounds -ge 1 ]" 'beside thousands of others'
is "$(cat "$T/runs")" first 'no other daemon takes it'
touch "$T/go"
wait_ok 10 no_keys 'and it is settled'
is "$(log_count 'event=(stale|crashed)' first)$(log_count 'queue=long' second)" 00 'by the first'
