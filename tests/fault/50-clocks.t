#!/bin/sh
# Clocks that are wrong: daemons that live a day ago and a year from now (libfaketime),
# and a Redis whose own clock jumps (shim.c).  Only Redis' clock counts, and when that
# jumps ahead, no daemon loses its leases.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/fault/lib.sh
. "$SRCDIR/tests/fault/lib.sh"

for FAKE in /usr/lib/*/faketime/libfaketime.so.1 ''; do [ -e "$FAKE" ] && break; done
[ -n "$FAKE" ] || skip_all 'no libfaketime'
FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_CACHE_DURATION=1
export FAKETIME_DONT_FAKE_MONOTONIC FAKETIME_CACHE_DURATION
shim_make
redis_under_shim

handler work <<'H'
echo "$RQD_ID" >>"$T/ran"
case $RQD_ID in
long*) while [ -e "$T/hold" ]; do sleep 0.2; done ;;
once*) [ "$RQD_ATTEMPT" -ge 2 ] ;;
esac
H
daemon() {	# NAME CLOCK
	RQD_WRAPPER="env LD_PRELOAD=$FAKE FAKETIME=$2"
	rqd_start "$1" <<C
name = "$1"
queue "q" { command = {"$T/work"} concurrency = 4 lease = 3s backoff = 200ms }
C
	RQD_WRAPPER=''
	log_wait 30 event=redis_up 1 "$1"
}
touch "$T/hold"
day() { date -d "$1" +%F; }
past=$(day '1 day ago') future=$(day '365 days')
daemon past -1d
daemon future +365d
like "$(tail -n 1 "$T/past.log")" "ts=($past|$(day '1 day ago'))" 'one lives in the past'
like "$(tail -n 1 "$T/future.log")" "ts=($future|$(day '365 days'))" 'one in the future'

wait_ok 30 'ctl check | grep -Eq "^warning: past\..*: its clock is (1d|23h59m).* behind Redis"' 'rqctl check names one'
wait_ok 30 'ctl check | grep -Eq "^warning: future\..*: its clock is 36[45]d.* ahead of Redis"' 'and the other'

both() { cat "$T/past.log" "$T/future.log"; }
for i in 1 2 3 4 5 6; do r lpush q "{\"id\":\"long$i\"}" >/dev/null; done
wait_ok 30 '[ "$(wc -l <"$T/ran")" -eq 6 ]' 'messages are handled'
ctl push q --delay 300ms '{"id":"once"}' >/dev/null 2>&1 ||
    r zadd qDELAYED "$(($(date +%s) + 1))" '{"id":"once"}' >/dev/null
wait_ok 30 'both | grep -q "event=acked queue=q id=once"' 'delays and retries are of Redis'"'"' time'

# -- Redis' clock jumps, far ahead and back, while leases are held --------------------------
for by in 3600 -86400 40000000; do
	old=$(r --raw time | head -n 1)
	shim_clock "$by"
	wait_ok 30 "n=\$((\$(r --raw time | head -n 1) - old)); [ \${n#-} -gt 1000 ]" "the clock goes to $by"
	# Renewals have a third of the lease; what is to expire would have by then.
	sleep 4
done
is "$(both | grep -c 'event=requeued')" 0 'no lease was taken'
is "$(sort "$T/ran" | uniq -d | grep -v once)" '' 'nothing ran twice'
rm "$T/hold"
wait_ok 30 '[ "$(both | grep -c "event=acked queue=q id=long")" -eq 6 ]' 'and all is acknowledged'
wait_for 30 '[ "$(r exists qBACKUP qRETRY qCONTEXT)" -eq 0 ]'
is "$(r exists qBACKUP qRETRY qCONTEXT)" 0 'nothing is left'

# -- a daemon that is killed: its lease ends, by the clock that has jumped, and once more --------
touch "$T/hold"
r lpush q '{"id":"long7"}' >/dev/null
wait_for 30 'grep -q long7 "$T/ran"'
wait_for 30 'both | grep -q "id=long7"'
holder=past
grep -q 'id=long7' "$T/future.log" && holder=future
rqd_kill9 $holder
shim_clock 86400
rm "$T/hold"
wait_ok 20 'both | grep -q "event=acked queue=q id=long7"' 'what a killed daemon held runs again'
