#!/bin/sh
# Memory is small when idle, and does not grow with thousands of messages
# (RQD_TEST_MESSAGES).

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

needs_speed
n=${RQD_TEST_MESSAGES:-1500}
[ -z "$RQD_TEST_LONG" ] || n=4000
redis_start
rqd_start <<C
log { level = "info" }
queue "q" { command = {"/bin/true"} concurrency = 4 output = "none" }
queue "bad" { command = {"/bin/false"} backoff = 1ms backoff_max = 2ms max_attempts = 2 suspend_after = 0 }
C
rss() { awk '/^VmRSS/ { print $2 }' "/proc/$PID/status"; }
push() {	# HOW-MANY QUEUE
	seq "$1" | awk '{ printf "{\"id\":%d,\"pad\":\"%0200d\"}\n", $1, $1 }' |
	    xargs -d '\n' -n 500 redis-cli -s "$SOCK" lpush "$2" >/dev/null
}
settled() { wait_for $((60 + n / 200)) '[ "$(r llen q)$(r zcard qBACKUP)$(r llen bad)$(r zcard badBACKUP)$(r zcard badRETRY)" = 00000 ]'; }
log_wait 30 event=redis_up
sleep 0.5
idle=$(rss)
ok "[ $idle -lt 8192 ]" "idle: less than 8 MB resident ($idle kB)"
push 1000 q
push 50 bad
settled
sleep 0.3
warm=$(rss)
push $n q
push 200 bad
settled
sleep 0.3
after=$(rss)
note "idle $idle kB, after 1000 messages $warm kB, after $n more $after kB"
ok "[ $((after - warm)) -le 256 ]" "no growth over $n messages"
fds=$(ls "/proc/$PID/fd" | wc -l)
ok "[ $fds -le 25 ]" "no descriptor is left open ($fds)"
log_wait 30 event=acked $((1000 + n))
is "$(log_count event=acked)" $((1000 + n)) 'all were handled'

# -- batches of large messages: 16 MiB for each run, not for each message ----------------
rqd_stop
r flushall >/dev/null
handler slow <<'H'
cat >/dev/null
sleep 0.1
H
rqd_start <<C
queue "big" { command = {"$T/slow"} batch = 100 batch_wait = 5s concurrency = 2 framing = "raw" }
C
log_wait 30 event=redis_up
r eval 'local body = string.rep("x", 6000000)
    for i = 1, 40 do redis.call("LPUSH", KEYS[1], body) end' 1 big >/dev/null
wait_ok 60 '[ "$(r llen big)$(r zcard bigBACKUP)$(r zcard bigRETRY)" = 000 ]' '40 messages of 6 MB'
most=$(awk '/^VmHWM/ { print $2 }' "/proc/$PID/status")
note "$most kB at most"
# Two runs, the message that comes beside each, its copy, and what was small before.
ok "[ $most -lt 81920 ]" 'take no more memory than two batches of 16 MiB and a constant'
is "$(log_lines 'level=info event=acked queue=big' | log_field batch | sort -n | tail -n 1)" 2 'two in each run: 16 MiB at most'
