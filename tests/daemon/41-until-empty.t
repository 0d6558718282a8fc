#!/bin/sh
# --until-empty: a batch run that ends by itself.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
QUEUES=q
handler work <<'H'
echo "$RQD_ID $RQD_ATTEMPT" >>"$T/ran"
[ "$RQD_ID" != fails ]
H
batch() {
	rqd_run rqd -o "redis.server=unix:$SOCK" --until-empty -j 3 -q q -- "$T/work"
	rqd_wait
}
batch
is "$STATUS" 0 'an empty queue: exit 0 at once'
for i in $(seq 50); do echo "{\"id\":$i}"; done | xargs -d '\n' redis-cli -s "$SOCK" lpush q >/dev/null
batch
is "$STATUS" 0 'fifty messages: exit 0'
is "$(wc -l <"$T/ran")" 50 'after all of them'
is "$(keys)" qSTATS 'no key is left but QSTATS'
r lpush q '{"id":"fails"}' >/dev/null
r zadd qDELAYED 9999999999 later >/dev/null
batch
is "$STATUS" 0 'a failure: exit 0'
is "$(r zcard qRETRY)" 1 'it does not wait for retries'
is "$(r zcard qDELAYED)" 1 'nor for what is not due'

# The other kinds; then by a daemon that Redis does not tell of changes: it polls.
push() {	# KIND QUEUE
	case $1 in
	unique) seq 20 | sed "s/.*/ZADD $2 1 &/" ;;
	stream) seq 20 | sed "s/.*/XADD $2 * message &/" ;;
	*) seq 20 | sed "s/.*/LPUSH $2 &/" ;;
	esac | r >/dev/null
}
for way in told polling; do
	[ $way = told ] || r acl setuser default '-client|tracking' >/dev/null
	for kind in ack unique stream list; do
		rm -f "$T/ran"
		push $kind $way-$kind
		config_write $way-$kind <<C
queue "$way-$kind" { kind = "$kind" key = "$way-$kind" command = {"$T/work"} concurrency = 3 }
C
		rqd_run $kind -c "$T/$way-$kind.conf" --until-empty
		rqd_wait $kind
		is "$STATUS $(wc -l <"$T/ran")" '0 20' "kind $kind, $way: exit 0 after all messages"
	done
done
r acl setuser default '+client|tracking' >/dev/null

# With several queues it ends when the last one is empty.
r del qRETRY qCONTEXT qDELIVERY qDELAYED >/dev/null
QUEUES="$QUEUES none slow"
handler slow <<'H'
sleep 0.3
echo "$RQD_ID" >>"$T/slow.ran"
H
config_write two <<C
queue "none" { command = {"$T/work"} }
queue "slow" { command = {"$T/slow"} }
C
for i in 1 2 3; do r lpush slow "{\"id\":$i}" >/dev/null; done
rqd_run two -c "$T/two.conf" --until-empty
rqd_wait two
is "$STATUS" 0 'two queues: exit 0'
is "$(tr '\n' ' ' <"$T/slow.ran")" '1 2 3 ' 'after all messages of both'

# -- nothing runs, and nothing can -------------------------------------------------------

# All at once, because each needs a minute.
r del qSTATS slowSTATS >/dev/null
QUEUES="$QUEUES missing none2 paused short wrong failing quiet down back"
handler fail <<'H'
echo "no such table" >&2
exit 1
H
handler waits <<'H'
until [ -e "$T/quiet.may" ]; do sleep 0.1; done
H
for q in missing paused short failing quiet back; do
	r lpush $q 1 2 3 4 5 6 7 8 >/dev/null
done
r set wrong text >/dev/null
r set pausedPAUSED 1 >/dev/null
r set none2PAUSED 1 >/dev/null
r set shortPAUSED 1 >/dev/null
began=$(msec)
try() {	# NAME COMMAND [OPTION...]
	_name=$1 _command=$2
	shift 2
	rqd_spawn "$_name" -o "redis.server=unix:$SOCK" "$@" --until-empty -q "$_name" -- "$_command"
}
gives_up() {	# NAME STATUS REGEX DESCRIPTION
	rqd_wait "$1" 90
	is "$STATUS" "$2" "$4: exit $2"
	like "$(tail -n 1 "$T/$1.log")" "^rqd: --until-empty: $3" 'the last line on stderr says why'
}
try missing "$T/no-such-command"
try none2 "$T/no-such-command"
try paused "$T/work"
try short "$T/work"
try wrong "$T/work"
log_wait 20 event=ready 1 short
r pexpire shortPAUSED 2000 >/dev/null
try quiet "$T/waits"
log_wait 20 event=started 1 quiet
rqd_signal USR2 quiet
log_wait 20 event=quiet 1 quiet
touch "$T/quiet.may"
try down "$T/work" -o "redis.server=unix:$T/no.sock"
try back "$T/work" -o "redis.server=unix:$T/back.sock"
config_write failing <<C
queue "failing" { command = {"$T/fail"} suspend_after = 2 }
C
rqd_spawn failing -c "$T/failing.conf" --until-empty
config_write nothing <<C
queue "nothing" { command = {"$T/work"} concurrency = 0 }
C
rqd_spawn nothing -c "$T/nothing.conf" --until-empty

rqd_wait nothing
is "$STATUS" 0 'no queue is served: exit 0'
rqd_wait none2
is "$STATUS" 0 'an empty queue that is paused, without its command: exit 0'
gives_up missing 69 "queue \"missing\" is suspended: .*no-such-command: No such file" 'the command does not exist'
is "$(($(r llen missing) + $(r zcard missingRETRY)))" 8 'its messages stay'
ok '[ $(($(msec) - began)) -lt $((40000 * SLOW)) ]' 'after ten seconds, not a minute'
rqd_wait short
is "$STATUS $(r exists short)" '0 0' 'a pause that ends soon: exit 0 after all messages'
ln -s "$SOCK" "$T/back.sock"
rqd_wait back
is "$STATUS $(r exists back)" '0 0' 'Redis comes back: exit 0 after all messages'
for name in paused wrong quiet down failing; do
	ok 'is_child "$(pid_of $name)" || [ $(($(msec) - began)) -gt 55000 ]' "$name: it waits for a minute"
done
gives_up paused 75 'queue "paused" is paused: rqctl resume paused' 'the queue is paused'
is "$(r llen paused)" 8 'its messages stay'
gives_up wrong 69 'queue "wrong" is suspended: .*WRONGTYPE' 'a wrong type'
gives_up quiet 75 'the daemon is quiet: rqctl quiet --end' 'quiet'
gives_up down 69 "Redis is unreachable: .*no.sock" 'Redis is down'
gives_up failing 69 'queue "failing" is suspended: .*no such table' 'the command keeps failing'
is "$(($(r llen failing) + $(r zcard failingRETRY)))" 8 'no message is lost'
like "$(cat "$T/failing.log")" 'event=draining .*error=.*no such table' 'the log says it, too'
