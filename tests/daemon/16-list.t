#!/bin/sh
# Kind list: messages run at most once, those that never began are pushed back, and
# rqctl shows the queue.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start --appendonly yes
handler work <<'H'
echo "$RQD_ID $RQD_ATTEMPT $RQD_MAX_ATTEMPTS" >>"$T/began"
case $RQD_ID in
bad) exit 3 ;;
long*) sleep 600 ;;
*) cat >>"$T/messages"; echo >>"$T/messages" ;;
esac
H
conf() {	# COMMAND [OPTION]
	cat <<C
drain_timeout = 300ms
queue "q" { kind = "list" command = {"$1"} concurrency = 2 kill_grace = 1s $2 }
C
}
push() { for _id in "$@"; do r lpush q "{\"id\":\"$_id\"}" >/dev/null; done; }
qctl() { RQD_CONFIG=$T/rqd.conf "$RQCTL" "$@"; }

# -- delivery ---------------------------------------------------------------------
push a b c
conf "$T/work" >"$T/conf"
rqd_start <"$T/conf"
for id in a b c; do log_wait 10 "event=acked queue=q id=$id "; done
is "$(sort "$T/began" | tr '\n' ,)" 'a 1 1,b 1 1,c 1 1,' 'all ran, and there is one attempt only'
is "$(keys)" qSTATS 'nothing but the list and the counters was ever there'
push d
ok 'log_wait 10 "event=acked queue=q id=d "' 'an idle queue wakes up'

push bad
log_wait 10 'event=failed queue=q id=bad '
like "$(log_lines 'event=failed')" 'level=error .* status=3 .*reason=exit' 'a failure is logged'
push e
log_wait 10 'event=acked queue=q id=e '
is "$(grep -c '^bad' "$T/began")" 1 'and not tried again'

# -- rqctl ------------------------------------------------------------------------
qctl pause q --reason test >/dev/null
log_wait 10 'event=paused queue=q'
is "$(qctl push q '{"id":"f"}')" f 'rqctl push'
is "$(qctl peek q | awk 'NR > 1 { print $2 }')" f 'rqctl peek'
# The number of running handlers is that of the last heartbeat.
wait_ok 15 'qctl status q | grep -Eq "^q  *1  *0/2  *-  *-  *-  *[0-9.]*s  *-  *paused"' \
    'rqctl status has no numbers that a list has not'
like "$(qctl push --delay 1s q x 2>&1)" 'no delayed' 'rqctl push --delay is refused'
like "$(qctl dead list q 2>&1)" 'kind list' 'rqctl dead is refused'
like "$(qctl retry list q 2>&1)" 'kind list' 'rqctl retry is refused'
like "$(qctl pause q --wait 2>&1)" 'of kind list' 'rqctl pause --wait is refused'
like "$(qctl show q f 2>&1)" 'kind list' 'rqctl show is refused'
like "$(qctl purge q --dead -y 2>&1)" 'only' 'rqctl purge --dead is refused'
is "$(qctl purge q --waiting -y)" 'purged 1 waiting of q' 'rqctl purge --waiting'
like "$(qctl queues)" '^q  *list  *q  *2  *-  *1 ' 'rqctl queues'
is "$(qctl check | grep -v paused)" '' 'rqctl check'
qctl resume q >/dev/null
log_wait 10 'event=unpaused queue=q'

# -- stop: what has begun is not run again, the rest stays in order -------------------
push long-1 long-2 g h
wait_for 10 '[ "$(grep -c ^long "$T/began")" -eq 2 ]'
wait_for 15 'qctl running q 2>&1 | grep -q long-1'
like "$(qctl running q)" '^q  *long-1  *1 ' 'rqctl running knows by heartbeats'
rqd_stop
is "$(r llen q)" 2 'no more was popped'
is "$(log_count 'event=dropped queue=q id="?long-')" 2 'what had begun is dropped, and that is logged'
is "$(r hget qSTATS dropped) $(r hget qSTATS failed) $(r hget qSTATS acked)" '2 1 5' 'the totals'
is "$(grep -c ^long "$T/began")" 2 'and not run again'

# -- what cannot be started goes back to its place ---------------------------------------
# One at a time: several that fail at once come back as their ends are seen.
conf "$T/missing" | sed 's/concurrency = 2/concurrency = 1/' >"$T/conf"
rqd_start <"$T/conf"
log_wait 10 'event=suspended queue=q'
log_wait 10 'event=returned queue=q id=g '
rqd_stop
is "$(r lrange q 0 -1 | tr '\n' ' ')" '{"id":"h"} {"id":"g"} ' 'they are back in order'
conf "$T/work" 'pop = "left"' >"$T/conf"
rqd_start <"$T/conf"
log_wait 10 'event=acked queue=q id=g '
is "$(log_lines 'event=delivered queue=q id=[gh] ' | tail -n 2 | log_field id | tr '\n' ' ')" 'h g ' 'pop = "left" takes the other end first'
rqd_stop

# -- refused options ----------------------------------------------------------------------
conf "$T/work" 'max_attempts = 3' >"$T/conf"
config_write wrong <"$T/conf"
like "$("$RQD" -t -c "$T/wrong.conf" 2>&1)" 'max_attempts has no meaning with kind "list"' 'options of other kinds are errors'
