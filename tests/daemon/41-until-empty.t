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
