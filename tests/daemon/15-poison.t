#!/bin/sh
# Messages that always fail ("poison").  If others succeed it is the message, not the command: it
# uses up its attempts, and its queue is not suspended.  If nothing has succeeded nobody is charged,
# and status, check and the page say so.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
RQD_SERVER=unix:$SOCK
export RQD_SERVER
handler picky <<'H'
case $(cat) in *bad*) echo no such customer >&2; exit 1 ;; esac
H
rqd_start <<C
http { listen = "unix:$T/http" }
defaults { $AS command = {"$T/picky"} backoff = 100ms backoff_max = 1s suspend_after = 5 }
queue "mixed" { max_attempts = 4 }
queue "idle"  { max_attempts = 6 }
C
log_wait 20 event=ready

# -- a fifth of the messages is bad ------------------------------------------------------
{
	for i in $(seq 20); do
		echo "LPUSH mixed bad-$i good good good good"
	done
} | r >/dev/null
ok 'log_wait 90 "event=dead queue=mixed " 20' 'bad messages become dead letters'
is "$(log_count 'event=suspended queue=mixed ')" 0 'and do not suspend the queue, because others succeed'
log_wait 90 'event=acked queue=mixed ' 80
is "$(log_count 'event=acked queue=mixed ')" 80 'which are all done'
is "$(log_count 'event=dead queue=mixed .*attempt=4 ')" 20 'each after all its attempts'

# -- nothing but bad ones -----------------------------------------------------------------
r lpush idle bad-1 bad-2 bad-3 bad-4 bad-5 bad-6 bad-7 bad-8 >/dev/null
log_wait 20 'event=suspended queue=idle '
words='8 messages have only failed; nothing else to try: repair the command, or rqctl bury idle --all'
wait_ok 120 '"$RQCTL" check idle | grep -qxF "error: idle: $words"' 'check says that nothing else is there to try'
like "$("$RQCTL" status idle)" "^error: idle: $words\$" 'and so does status'
like "$(curl -s --unix-socket "$T/http" 'http://x/queue?key=idle')" "$words" 'and the page'
is "$(log_count 'event=dead queue=idle ')" 0 'and nobody is charged for it'
n=$(log_count 'event=retry queue=idle ')
wait_ok 60 "[ \"\$(log_count 'event=retry queue=idle ')\" -ge $((n + 3)) ]" 'though probes go on'
is "$(log_count 'event=retry queue=idle .*attempt=[4-9] ')" 0 'not more than what failed before the suspension'
r lpush idle good >/dev/null
ok 'log_wait 60 "event=resumed queue=idle "' 'a good one resumes it'
ok 'log_wait 60 "event=dead queue=idle " 8' 'and shows that it was the messages'
is "$(log_count 'event=suspended queue=idle ')" 1 'which suspend it no more'
wait_ok 30 '! "$RQCTL" check idle | grep -q "only failed"' 'check is content'
