#!/bin/sh
# When max_handlers is reached, equal queues take turns, even if one of them is flooded;
# a higher priority goes first.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
handler work <<'H'
echo "$RQD_QUEUE" >>"$T/order"
sleep 0.01
H
# At once: what is pushed one by one on a busy machine comes in bits.
flood() { r eval 'for _ = 1, ARGV[1] do redis.call("LPUSH", KEYS[1], "m") end' 1 "$1" "$2" >/dev/null; }
# How many of other queues began after line $2, before the last of $1.
others() { tail -n "+$(($2 + 1))" "$T/order" | awk -v q="$1" '
	$1 != q { n++ } $1 == q { last = n } END { print last + 0 }'; }
# The same, between its first and its last: before that it may not have been pushed.
beside() { tail -n "+$(($2 + 1))" "$T/order" | awk -v q="$1" '
	$1 != q { n += begun } $1 == q { begun = 1; last = n } END { print last + 0 }'; }
lines() { wc -l <"$T/order"; }
: >"$T/order"

rqd_start <<C
max_handlers = 2
queue "flood" { command = {"$T/work"} concurrency = 8 }
queue "other" { command = {"$T/work"} concurrency = 8 }
queue "small" { command = {"$T/work"} }
queue "high" { command = {"$T/work"} priority = 10 }
queue "wide" { command = {"$T/work"} priority = 10 concurrency = 8 }
C
log_wait 10 event=redis_up
flood flood 20000
wait_for 10 '[ "$(lines)" -ge 20 ]'

flood small 5
at=$(lines)
wait_ok 30 '[ "$(grep -c small "$T/order")" -eq 5 ]' 'a small queue beside a flooded one is served'
n=$(others small "$at")
ok "[ $n -le 60 ]" "in turns with it ($n of the flood before its 5 were begun)"

at=$(lines)
flood other 150
wait_for 60 '[ "$(grep -c other "$T/order")" -eq 150 ]'
n=$(beside other "$at")
ok "[ $n -ge 75 ] && [ $n -le 300 ]" "two flooded queues have equal shares ($n beside 150)"

at=$(lines)
flood wide 50
wait_for 60 '[ "$(grep -c wide "$T/order")" -eq 50 ]'
n=$(beside wide "$at")
ok "[ $n -le 25 ]" "a higher priority goes first ($n beside 50)"

# It can fill one of two places; the flood has the other.
at=$(lines)
flood high 50
wait_for 60 '[ "$(grep -c high "$T/order")" -eq 50 ]'
n=$(beside high "$at")
ok "[ $n -le 75 ]" "so does one whose concurrency is small ($n beside 50)"
r del flood >/dev/null
