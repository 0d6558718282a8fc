#!/bin/sh
# Kind "unique", with redis-cli as the producer: an id is queued once, runs when it is
# due, and never runs twice at the same time, however often it is enqueued.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
MORE_KEYS=Queue:users
# The lock lives as long as the handler.  While $T/hold is there it does not end.
handler work <<'H'
exec 9>"$T/lock.$RQD_ID"
flock -n 9 || echo "$RQD_ID" >>"$T/overlap"
read -r id
[ "$id" = "$RQD_ID" ] || echo "$RQD_ID: $id" >>"$T/wrong"
echo "$(date +%s%N | cut -c 1-13) $RQD_ID $RQD_ATTEMPT" >>"$T/began"
while [ -e "$T/hold" ]; do sleep 0.2; done
case $RQD_ID in fail*) [ -e "$T/mended" ] || exit 1 ;; esac
echo "$RQD_ID" >>"$T/done"
H
conf() {
	cat <<C
queue "users" {
	kind = "unique"
	command = {"$T/work"}
	concurrency = 4
	lease = 3s
	backoff = 60s
	max_attempts = 1000
}
C
}
now() { date +%s.%N | cut -c 1-17; }
enqueue() { r zadd Queue:users "$@" >/dev/null; }
began() { grep -c " $1 " "$T/began"; }
ended() { grep -cx "$1" "$T/done"; }
: >"$T/began"
: >"$T/done"
conf >"$T/start"
rqd_start <"$T/start"
log_wait 10 event=redis_up

# Ordinary producers.
enqueue NX "$(now)" 7
wait_ok 10 '[ "$(ended 7)" -eq 1 ]' 'an id that is due runs'
# As those producers do it that take a lock around their calls.
{
	echo 'SETNX Lock:Queue:users 1'
	echo 'EXPIRE Lock:Queue:users 10'
	echo "ZADD Queue:users NX $(now) locked"
	echo 'DEL Lock:Queue:users'
} | r >/dev/null
wait_ok 10 '[ "$(ended locked)" -eq 1 ]' 'so does one that was enqueued under a lock'
enqueue NX -inf first
enqueue NX "$(date +%s%N | cut -c 1-13)" ms
wait_ok 10 '[ "$(ended first)$(ended ms)" = 11 ]' 'so does one at -inf, and one in milliseconds'
enqueue NX inf never
later() {
	due=$(($(msec) + 1200))
	enqueue NX "$((due / 1000)).$(printf %03d $((due % 1000)))" "later$((laters += 1))"
	wait_for 10 '[ "$(ended "later$laters")" -eq 1 ]'
	late=$(($(awk -v id="later$laters" '$2 == id { print $1 }' "$T/began") - due))
	[ $late -ge 0 ] || early="$early $late"
	[ $late -le $((3000 * SLOW)) ]
}
laters=0 early=''
ok 'thrice later' 'one for later runs later'
is "$early" '' "when it is due ($late ms)"
is "$(r --raw zrange Queue:users 0 -1)" never 'and one at inf stays'
r zrem Queue:users never >/dev/null

# Enqueued again while it runs.
: >"$T/hold"
enqueue NX "$(now)" a
wait_for 10 '[ "$(began a)" -eq 1 ]'
for i in $(seq 25); do
	enqueue NX "$(now)" a
	enqueue GT CH "$(now)" a
	enqueue LT "$(now)" a
	enqueue "$(now)" a
done
enqueue "$(now)" b
wait_ok 10 '[ "$(began b)" -eq 1 ]' 'an id that is due again and again while it runs hides no other'
is "$(began a)" 1 'and does not run beside itself'
rm "$T/hold"
wait_ok 10 '[ "$(ended a)" -eq 2 ]' 'enqueued a hundred times while it ran it runs again'
wait_for 10 'no_keys'
is "$(ended a)" 2 'once'

# Enqueued while it waits for a retry.
enqueue NX "$(now)" fail
wait_for 10 '[ "$(r zcard Queue:usersRETRY)" -eq 1 ]'
is "$(began fail)" 1 'a failed run waits for its retry'
enqueue NX "$(now)" fail
wait_ok 10 '[ "$(began fail)" -eq 2 ]' 'enqueued meanwhile it runs at once'
log_wait 10 'event=retry queue=users id=fail ' 2
is "$(awk '$2 == "fail" { print $3 }' "$T/began" | tr '\n' ' ')" '1 2 ' 'as its second attempt'
: >"$T/mended"
wait_for 10 '[ "$(r zcard Queue:usersRETRY)" -eq 1 ]'
enqueue 1 fail
wait_ok 10 'no_keys' 'and once only: nothing is left'

# A key of the wrong type.
r lpush Queue:users x >/dev/null
wait_ok 20 'log_lines "event=suspended queue=users" | grep -q WRONGTYPE' 'a key of the wrong type suspends the queue'
r del Queue:users >/dev/null
enqueue "$(now)" 8
wait_ok 70 '[ "$(ended 8)" -eq 1 ]' 'until it is right'

# Two daemons; one of them is killed while ids run that are enqueued on and on.
rqd_stop
rm "$T/mended"
conf >"$T/start"
rqd_start one <"$T/start"
rqd_start two <"$T/start"
log_wait 10 event=redis_up 1 one
log_wait 10 event=redis_up 1 two
: >"$T/began"
: >"$T/done"
produce() {
	for i in $(seq "$1"); do
		for id in x y z fail-1; do echo "ZADD Queue:users $(now) $id"; done
		sleep 0.03
	done | r >/dev/null
}
produce 50
: >"$T/hold"
enqueue "$(now)" x "$(now)" y "$(now)" z
wait_for 10 '[ "$(r zcard Queue:usersBACKUP)" -ge 3 ]'
enqueue "$(now)" x "$(now)" y "$(now)" z
rqd_kill9 one
rm "$T/hold"
produce 20
before=$(wc -l <"$T/done")
last=$(msec)
: >"$T/mended"
enqueue "$(now)" x "$(now)" y "$(now)" z "$(now)" fail-1
wait_ok 30 'no_keys' 'after kill -9 of one of two daemons all is worked off'
for id in x y z; do
	ok "[ \$(awk '\$2 == \"$id\" { t = \$1 } END { print t }' '$T/began') -ge $last ]" \
	    "$id ran after it was last enqueued"
done
note "$(wc -l <"$T/began") runs of 4 ids, $before before the last time"
ok '[ ! -e "$T/overlap" ]' 'never did one run beside itself'
ok '[ ! -e "$T/wrong" ]' 'and every handler got its id'
