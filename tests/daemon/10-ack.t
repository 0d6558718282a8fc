#!/bin/sh
# The plain life of messages: redis-cli pushes them, they run and are acked, and no key
# is left.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
handler keep <<'H'
cat >"$T/message.$RQD_ID"
echo "$RQD_QUEUE $RQD_ID $RQD_ATTEMPT $RQD_MAX_ATTEMPTS" >>"$T/seen"
H

# Pushed before there is a daemon, and with a wide space inside.
r lpush orders '{"id": 1,  "what":"before"}' >/dev/null
rqd_start <<C
queue "orders" { command = {"$T/keep"} max_attempts = 7 }
C
log_wait 10 'event=acked queue=orders id=1 '
is "$(cat "$T/message.1")" '{"id": 1,  "what":"before"}' 'the exact bytes, of one pushed before the start'
is "$(cat "$T/seen")" 'orders 1 1 7' 'the handler knows queue, id, attempt and limit'

# The next poll without a wake-up comes 5 s after the last one.
wakes() {
	r lpush orders "{\"id\":\"two$((wakes += 1))\"}" >/dev/null
	start=$(msec)
	log_wait 10 "event=acked queue=orders id=two$wakes "
	took=$(($(msec) - start))
	[ $took -lt $((4000 * SLOW)) ]
}
wakes=0
ok 'thrice wakes' 'an idle queue wakes up at once'
note "after $took ms"

r lpush orders '{"id":3}' '{"id":4}' '{"id":5}' '{"id":6}' '{"id":7}' >/dev/null
log_wait 10 'event=acked queue=orders id=7 '
is "$(cut -d ' ' -f 2 "$T/seen" | grep -v two | tr '\n' ' ')" '1 3 4 5 6 7 ' 'first in, first out'

r rpush orders plain >/dev/null
log_wait 10 'event=acked queue=orders id="?~'
like "$(tail -n 1 "$T/seen")" '^orders ~[^ ]+ 1 7$' 'a message that is not JSON gets an id'

like "$(log_lines 'event=acked queue=orders id=1 ')" \
    '^ts=[^ ]* level=info event=acked queue=orders id=1 attempt=1 pid=[0-9]+ .*status=0 duration=[0-9.]+' \
    'what the log says of it'
wait_ok 15 'no_keys' 'no key is left but QSTATS'
rqd_stop
is "$(keys)" ordersSTATS 'the totals are written at the end'
is "$(r hget ordersSTATS acked)" $((7 + wakes)) 'and are right'
