#!/bin/sh
# Kind expired: a fleet runs each expiry once; keys that are set again, retries, flags,
# and the output of rqctl.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start --appendonly yes
handler once <<'H'
m=$(cat)
echo "$RQD_QUEUE $RQD_ID $m" >>"$T/ran"
H
# Sets its key again for the next round, three in all; fails once in the first.
handler again <<'H'
key=$(cat)
n=$(redis-cli -s "$T/redis.sock" hincrby rounds "$key" 1)
[ "$n" -ge 3 ] || redis-cli -s "$T/redis.sock" set "$key" x px $((2000 + ${key#beat:} * 20)) >/dev/null
[ "$n" -ne 1 ]
H
MORE_KEYS=rounds
conf() {
	cat <<C
drain_timeout = 5s
queue "once" {
	kind = "expired" match = {"send_message-*", "x"} notifications = "set" skew = 5m
	command = {"$T/once"} concurrency = 4
}
queue "beat" {
	kind = "expired" match = "beat:*" notifications = "set"
	command = {"$T/again"} concurrency = 4 backoff = 100ms
}
C
}
qctl() { RQD_CONFIG=$T/d1.conf "$RQCTL" "$@"; }
DAEMONS_N='1 2 3 4 5 6 7 8 9 10'

r config set notify-keyspace-events 'g$' >/dev/null
for d in $DAEMONS_N; do
	conf >"$T/conf"
	rqd_start d$d <"$T/conf"
done
for d in $DAEMONS_N; do
	log_wait 20 'event=subscribed queue=once$' 1 d$d
	log_wait 20 'event=subscribed queue=beat$' 1 d$d
done
wait_for 10 'r config get notify-keyspace-events | grep -q E'
flags=$(r config get notify-keyspace-events | tail -n 1)
like "$flags" 'x' 'the missing flags are set'
like "$flags" '\$' 'and those of others kept'

# -- once across the fleet -------------------------------------------------------------
start=$(msec)
seq 1 500 | sed 's/.*/SET send_message-&-mail x PX 1&/; s/PX 1\([0-9]\)$/PX 10\1/' | r --pipe >/dev/null
seq 1 100 | sed 's/.*/SET other-& x PX 100/' | r --pipe >/dev/null
wait_for 60 '[ "$(cat "$T/ran" 2>/dev/null | wc -l)" -ge 500 ]'
note "500 expiries, 10 daemons: $(($(msec) - start)) ms"
wait_for 20 '[ "$(qctl status --json once | tr -d " \n" | grep -c "\"waiting\":0,\"running\":0")" -eq 1 ]'
is "$(wc -l <"$T/ran")" 500 '500 expiries, 500 runs'
is "$(sort -u "$T/ran" | wc -l)" 500 'each once'
like "$(sort -u "$T/ran" | head -n 1)" '^once (send_message-[0-9]*-mail) send_message-[0-9]*-mail$' 'the key is message and id'
ok '[ "$(for d in $DAEMONS_N; do log_count "event=acked queue=once" d$d; done | grep -cv "^0")" -gt 1 ]' 'several daemons ran them'
is "$(r exists Lock:once:send_message-7-mail)" 1 'a lock shuts late daemons out'

# -- the next round, retries -------------------------------------------------------------
for i in 1 2 3 4 5 6 7 8; do echo "SET beat:$i x PX 100"; done | r --pipe >/dev/null
wait_for 60 '[ "$(r hvals rounds | grep -c "^[3-9]")" -eq 8 ]'
is "$(r hlen rounds)" 8 'keys that are set again run again'
ok '[ "$(for d in $DAEMONS_N; do log_lines "event=retry queue=beat" d$d; done | wc -l)" -ge 8 ]' 'and a failure is a retry'

# -- rqctl -------------------------------------------------------------------------------
qctl pause once >/dev/null
for d in $DAEMONS_N; do log_wait 10 'event=paused queue=once' 1 d$d; done
is "$(qctl push once x)" x 'rqctl push: as if the key had expired'
is "$(qctl peek once | awk 'NR > 1 { print $2 }')" x 'rqctl peek'
like "$(qctl status once)" '^once  *1  *0/40  *0  *0  *0 .*paused' 'rqctl status'
like "$(qctl show once x)" 'waiting' 'rqctl show'
qctl resume once >/dev/null
for d in $DAEMONS_N; do log_wait 10 'event=unpaused queue=once' 1 d$d; done
wait_ok 10 'grep -q "^once x x$" "$T/ran"' 'and it runs'
wait_ok 20 '[ -z "$(qctl check)" ]' 'rqctl check'

# -- faults ------------------------------------------------------------------------------
r client kill type pubsub >/dev/null
for d in $DAEMONS_N; do log_wait 10 'event=subscribed queue=once$' 2 d$d; done
r set send_message-cut x px 50 >/dev/null
wait_ok 10 'grep -q send_message-cut "$T/ran"' 'subscribed again after a lost connection'
r client kill type normal skipme yes >/dev/null
r set send_message-cut2 x px 50 >/dev/null
wait_ok 10 'grep -q send_message-cut2 "$T/ran"' 'an event beside a cut of the other connections'
for d in $DAEMONS_N; do rqd_stop d$d; done
is "$(wc -l <"$T/ran")" 503 'nothing ran twice'
r --raw keys 'Lock:*' | while read -r k; do r del "$k"; done >/dev/null

# -- flags demanded -------------------------------------------------------------------------
r config set notify-keyspace-events '' >/dev/null
rqd_start one <<C
queue "once" { kind = "expired" match = "send_message-*" command = {"$T/once"} skew = 100ms }
C
log_wait 10 'event=unsubscribed queue=once' 1 one
like "$(log_lines 'event=unsubscribed' one)" "level=error .*redis-cli CONFIG SET notify-keyspace-events 'Ex'" \
    'without the flags the log says what to do'
wait_ok 20 'RQD_CONFIG=$T/one.conf "$RQCTL" status once | grep -q unsubscribed' 'rqctl status'
like "$(RQD_CONFIG=$T/one.conf "$RQCTL" check)" '^error: once: a daemon has lost a subscription' 'rqctl check'
eval "$(log_lines 'event=unsubscribed' one | sed "s|.*do: redis-cli \(.*'Ex'\).*|r \1|")" >/dev/null
log_wait 20 'event=subscribed queue=once$' 1 one
# A daemon without a processor drops an event that is older than skew.
wait_ok 10 'r set send_message-last x nx px 50 >/dev/null; grep -q send_message-last "$T/ran"' 'and that helps'
wait_for 15 '[ "$(r exists Lock:once:send_message-last)" -eq 0 ]'
rqd_stop one

config_wrong() { printf 'queue "x" { %s command = {"/bin/true"} %s }\n' "$1" "$AS" >"$T/wrong.conf"; "$RQD" -t -c "$T/wrong.conf" 2>&1; }
like "$(config_wrong 'match = "a"')" 'match has no meaning with kind "ack"' 'match is for this kind'
like "$(config_wrong 'kind = "expired" notifications = "on"')" 'write "check" or "set"' 'notifications'
