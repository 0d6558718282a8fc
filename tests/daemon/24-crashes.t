#!/bin/sh
# A message that crashes its daemon runs max_crashes times more, and then becomes a dead
# letter without a run.  Other messages of the daemon do not suffer.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
handler work <<'H'
echo "$RQD_ID $RQD_ATTEMPT" >>"$T/ran"
[ "$RQD_ID" = poison ] || exit 0
kill -KILL "$(sed -n "s/^PPid:[ 	]*//p" "/proc/$PPID/status")"	# the parent of its spawner
sleep 600
H
conf() {
	cat <<C
queue "q" { command = {"$T/work"} lease = 3s max_crashes = 1 max_attempts = 2 backoff = 10ms }
C
}
r lpush q '{"id":"poison"}' '{"id":"good"}' >/dev/null
for i in 1 2; do
	conf >"$T/start"
	config_write rqd <"$T/start"
	rqd_spawn rqd -c "$T/rqd.conf"
	rqd_wait
	is "$STATUS" 137 "the daemon is killed, $i"
	is "$(grep -c poison "$T/ran")" "$i" 'by the message'
	is "$(r --raw hget qCONTEXT poison)" '{"id":"poison"}' 'which is where it was'
done
conf >"$T/start"
rqd_start <"$T/start"
log_wait 40 'event=dead queue=q id=poison '
like "$(log_lines 'event=dead queue=q id=poison ')" 'level=error .*reason=crashed' 'the third time it is dead: crashed'
is "$(r --raw xrange qDEAD - + | sed -n '/^reason$/{n;p;}; /^attempts$/{n;p;}; /^message$/{n;p;}' | tr '\n' ' ')" \
    '{"id":"poison"} crashed 0 ' 'with its message; no attempt had failed'
ok 'log_wait 20 "event=acked queue=q id=good "' 'the next message is handled'
is "$(sort "$T/ran" | tr '\n' ,)" 'good 1,poison 1,poison 1,' 'each ran as often as it had to, and crashes are no attempts'
like "$(log_lines event=requeued | head -n 1)" 'level=warn .*count=1 ids=poison' 'expired leases are told, with ids'
like "$(log_lines 'event=dead queue=q id=poison ')" ' crashes=2 ' 'and how many there were'
wait_ok 15 '[ "$(left_keys)" = qDEAD ]' 'nothing else is left'
