#!/bin/sh
# The HTTP listener with 200 queues, and with more hanging clients than it has
# connections: messages are handled all the same, and proper clients get answers.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v curl >/dev/null || skip_all 'no curl'
H=$OWN/http.sock
get() { curl -s -m 60 --unix-socket "$H" "http://rqd$1"; }		# PATH
took() { curl -s -m 60 -o /dev/null -w '%{http_code} %{time_total}' --unix-socket "$H" "http://rqd$1"; }

redis_start
handler good <<'H'
cat >/dev/null
H
i=0
while [ $i -lt 200 ]; do
	echo "queue \"q$i\" { command = {\"$T/good\"} }"
	i=$((i + 1))
done >"$T/queues"
rqd_start <<C
http { listen = "unix:$H" }
$(cat "$T/queues")
C
log_wait 10 event=ready
i=0
while [ $i -lt 200 ]; do
	echo "zadd q${i}DELAYED 9999999999 later"
	i=$((i + 1))
done | r >/dev/null

# -- all of them
delayed() { get /metrics | grep -c '^rqd_queue_messages{queue="q[0-9]*",state="delayed"} 1$'; }
wait_ok 20 '[ "$(delayed)" = 200 ]' 'figures of 200 queues'
is "$(get /metrics | grep -v '^#' | cut -d ' ' -f 1 | sort | uniq -d)" '' 'each series once'
listed() { get /status | tr '{' '\n' | grep -c '"name":"q[0-9]*","key"'; }
wait_ok 20 '[ "$(listed)" = 200 ]' '/status has them all'
note "/metrics: $(took /metrics), /status: $(took /status), /healthz: $(took /healthz) s"

# -- clients that hang: each takes ten bytes a second of an answer of half a megabyte
hung=''
i=0
while [ $i -lt 48 ]; do
	curl -s -m 600 --limit-rate 10 -o /dev/null --unix-socket "$H" http://rqd/metrics &
	hung="$hung $!"
	i=$((i + 1))
done
OTHER_PIDS="$OTHER_PIDS $hung"
i=0
while [ $i -lt 5 ]; do
	wait_ok 20 '[ "$(get /healthz)" = ok ]' 'health is answered beside them'
	r lpush q7 "a$i" "b$i" "c$i" >/dev/null
	i=$((i + 1))
done
ok 'log_wait 20 "event=acked queue=q7" 15' 'messages are worked on'
acked() { get /metrics | grep -c '^rqd_queue_acked_total'; }
wait_ok 20 '[ "$(acked)" = 200 ]' 'and metrics are answered'
note "beside 48 that hang: /metrics $(took /metrics), /healthz $(took /healthz) s"
ok '[ "$(ls "/proc/$PID/fd" | wc -l)" -lt 60 ]' 'no more connections are held than there may be'
wait_ok 40 '[ "$(get /metrics | sed -n "s/^process_open_fds //p")" -lt 20 ]' 'and those are ended by and by'
# shellcheck disable=SC2086
kill $hung 2>/dev/null
r del $(seq -f 'q%.0fDELAYED' 0 199) >/dev/null

# -- Redis hangs at the end: what the listener has asked is lost, and rqd ends all the same
rqd_stop
handler slow <<'H'
cat >/dev/null
sleep 300
H
rqd_start <<C
redis { server = "unix:$SOCK" timeout = 60s }
drain_timeout = 300ms
http { listen = "unix:$H" }
queue "q" { command = {"$T/slow"} }
C
r lpush q '{"id": "1"}' >/dev/null
wait_ok 10 'ctl running q | grep -q 1' 'a message runs'
kill -STOP "$REDIS_PID"
wait_ok 10 '! curl -s -m 1 -o /dev/null --unix-socket "$H" http://rqd/status' '/status waits for Redis'
rqd_signal TERM
rqd_wait
is "$STATUS" 0 'rqd ends with status 0, not by a signal'
kill -CONT "$REDIS_PID"
