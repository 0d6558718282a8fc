#!/bin/sh
# Redis is away for a while when handlers run: they go on, rqd keeps their results and
# sends them later, and no message runs twice.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

aof='--appendonly yes --appendfsync always'
redis_start $aof
handler work <<'H'
echo "$RQD_ID" >>"$T/ran"
while [ -e "$T/hold" ]; do sleep 0.05; done
case $RQD_ID in bad*) exit 65 ;; again*) [ "$RQD_ATTEMPT" -ge 2 ] ;; esac
H
touch "$T/hold"
rqd_start <<C
queue "q" { command = {"$T/work"} concurrency = 4 backoff = 200ms }
C
log_wait 10 event=redis_up
for id in good bad again; do r lpush q "{\"id\":\"$id\"}" >/dev/null; done
wait_for 10 '[ "$(wc -l <"$T/ran")" -eq 3 ]'

redis_stop TERM
ok 'log_wait 10 event=redis_down' 'the log says that Redis is gone'
rm "$T/hold"	# the handlers end while there is nobody to tell
sleep 1
ok '[ "$(log_count event=redis_down)" -le 2 ]' 'once for each cause'
is "$(log_count 'event=(acked|dead|retry)')" 0 'no result is claimed that was not delivered'
wait_ok 10 'tail -n 5 "$T/rqd.notify" | grep -q "STATUS=.*Redis down"' 'systemd sees it'

redis_start $aof
ok 'log_wait 20 event=redis_up 2' 'it reconnects'
ok 'log_wait 10 "event=acked queue=q id=good "' 'the success is delivered'
ok 'log_wait 10 "event=dead queue=q id=bad "' 'and the dead letter'
ok 'log_wait 10 "event=retry queue=q id=again "' 'and the failure'
ok 'log_wait 10 "event=acked queue=q id=again "' 'which is retried'
is "$(sort "$T/ran" | tr '\n' ' ')" 'again again bad good ' 'nothing ran more often than it should'

# -- a crash, with messages waiting -----------------------------------------------------
for i in 1 2 3 4 5 6; do r lpush q "{\"id\":\"n$i\"}" >/dev/null; done
redis_stop KILL
redis_start $aof
ok 'log_wait 20 "event=acked queue=q id=n" 6' 'after a crash of Redis the rest is handled'
wait_for 15 '[ "$(r zcard qBACKUP)" -eq 0 ]'
is "$(r zcard qBACKUP)" 0 'nothing stays in hand'

# -- scripts forgotten, connections killed -------------------------------------------------
r script flush >/dev/null
r lpush q '{"id":"flushed"}' >/dev/null
ok 'log_wait 10 "event=acked queue=q id=flushed "' 'SCRIPT FLUSH is survived'
r client kill type normal >/dev/null
r lpush q '{"id":"killed"}' >/dev/null
ok 'log_wait 20 "event=acked queue=q id=killed "' 'so is CLIENT KILL'
r client kill type pubsub >/dev/null
sleep 0.2
r lpush q '{"id":"deafened"}' >/dev/null
ok 'log_wait 20 "event=acked queue=q id=deafened "' 'of either connection'

# -- at the end without Redis ---------------------------------------------------------------
touch "$T/hold"
r lpush q '{"id":"late"}' >/dev/null
wait_for 10 'grep -q late "$T/ran"'
redis_stop TERM
rqd_signal TERM
rm "$T/hold"
rqd_wait
is "$STATUS" 0 'SIGTERM without Redis: exit 0 all the same'
like "$(log_lines 'level=warn event=warning warning=')" 'gave up waiting for Redis' 'the log says that it has waited in vain'
like "$(log_lines 'level=warn event=warning queue=q id=late ')" 'could not be delivered.* result=acked' 'and for which result'
is "$(log_count 'event=acked queue=q id=late ')" 0 'which is not claimed'
redis_start $aof
is "$(r --raw zrange qBACKUP 0 -1) $(r --raw hget qCONTEXT late)" 'late {"id":"late"}' 'its message is left to its lease'
r del qBACKUP qCONTEXT qDELIVERY >/dev/null
