#!/bin/sh
# The limits of the fleet: rate, and fleet_concurrency, over several daemons,
# one of which is killed.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start

# -- rate -----------------------------------------------------------------------

handler stamp <<'H'
date +%s%N >>"$T/ran"
H
rate_conf() {
	cat <<C
queue "q" {
	command = {"$T/stamp"}
	concurrency = 8
	rate = "50/s"
}
C
}
: >"$T/ran"
rate_conf >"$T/text"
for d in one two three; do rqd_start $d <"$T/text"; log_wait 10 event=redis_up 1 $d; done
seq 3000 | sed 's/.*/LPUSH q m&/' | r >/dev/null
wait_for 60 '[ "$(wc -l <"$T/ran")" -ge 250 ]'
# The rate is Redis' to count: deliveries, by its clock.
start=$(msec) before=$((3000 - $(r llen q))) begun=$(msec)
sleep 3
now=$(msec)
taken=$((3000 - $(r llen q) - before))
passed=$(($(msec) - start))
ok "[ $taken -le $((50 * passed / 1000 + 7)) ]" "three daemons take no more than 50/s in sum ($taken in $passed ms)"
ok "[ $taken -ge $((5 * (now - begun) / 1000)) ]" 'and not much less'
for d in one two three; do
	log_wait 10 event=delivered 1 $d
	ok "[ $(log_count event=delivered $d) -gt 0 ]" "$d has its share ($(log_count event=delivered $d))"
done
log_wait 15 'event=limited queue=q reason=rate' 1 one
ok "log_lines event=limited one | grep -q reason=rate" 'the log says that the rate limits (debug)'
wait_ok 15 '"$RQCTL" -c "$T/one.conf" status q | grep -q limited' 'so does rqctl status'
start=$(msec)
calls=$(r info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p')
sleep 1
calls=$(($(r info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p') - calls))
passed=$(($(msec) - start))
ok "[ $calls -le $((8 * passed / 10)) ]" "without polling hard ($calls scripts in $passed ms)"
r del q >/dev/null
for d in one two three; do rqd_stop $d; done

# The other kinds that have limits.
rqd_start one <<C
queue "u" { kind = "unique" command = {"$T/stamp"} concurrency = 8 rate = "5/s" key = "u" }
queue "s" { kind = "stream" command = {"$T/stamp"} concurrency = 8 rate = "5/s" }
C
log_wait 10 event=redis_up 2 one
{ seq 400 | sed 's/.*/ZADD u 1 id&/'; seq 400 | sed 's/.*/XADD s * message &/'; } | r >/dev/null
for q in u s; do wait_for 20 '[ "$(log_count "event=delivered queue=$q" one)" -ge 3 ]'; done
for q in u s; do
	start=$(msec) before=$(log_count "event=delivered queue=$q" one)
	sleep 2
	log_wait 10 "event=delivered queue=$q" $((before + 1)) one
	taken=$(($(log_count "event=delivered queue=$q" one) - before)) passed=$(($(msec) - start))
	# Some may have been taken before, and logged now.
	ok "[ $taken -ge 1 ] && [ $taken -le $((5 * passed / 1000 + 10)) ]" "a rate of kind $q ($taken in $passed ms)"
done
# Only now: a daemon makes the stream again that it reads, with its group.
rqd_stop one
check_keys
# With the messages that the daemon had in flight, and returned.
r unlink u uRETRY uCONTEXT uDELIVERY s sRETRY sCONTEXT sDELIVERY >/dev/null

# -- fleet_concurrency ------------------------------------------------------------

# Begin and end are single writes to one file, in the order of their happening.
handler work <<'H'
p=$(cat "$T/watched" 2>/dev/null) && grep -qs '^State:.[^XZ]' "/proc/$p/status" && echo "$RQD_ID" >>"$T/beside"
echo "begin $$ $RQD_ID" >>"$T/turns"
sleep 0.02
while [ -e "$T/hold" ]; do sleep 0.2; done
echo "end $$ $RQD_ID" >>"$T/turns"
H
fleet_conf() {
	cat <<C
queue "one" {
	command = {"$T/work"}
	concurrency = 4
	fleet_concurrency = 1
	lease = 3s
}
C
}
: >"$T/turns"
fleet_conf >"$T/text"
for d in one two three; do rqd_start $d <"$T/text"; log_wait 10 event=redis_up 1 $d; done
push() { seq "$1" "$2" | sed "s/.*/LPUSH one '{\"id\":&}'/" | r >/dev/null; }
push 1 100
wait_ok 60 '[ "$(grep -c ^end "$T/turns")" -eq 100 ]' 'all of an exclusive queue are handled'
# A handler of a killed daemon writes no "end": ignore its "begin".
overlaps() { awk -v killed="$1" '
	$2 == killed { next }
	$1 == "begin" { if (running) print "two at once: " $0; running = $2 }
	$1 == "end" { if (running != $2) print "ended late: " $0; running = 0 }' "$T/turns"; }
is "$(overlaps)" '' 'never two at once'
shares=$(for d in one two three; do log_count 'event=acked queue=one' $d; done | tr '\n' ' ')
note "shares: $shares"

: >"$T/hold"
push 101 103
wait_for 10 '[ "$(grep -c ^begin "$T/turns")" -eq 101 ]'
holds() {
	for holder in one two three; do
		log_lines 'event=delivered queue=one id=101 ' $holder >/dev/null && return
	done
	return 1
}
wait_for 10 holds
wait_ok 15 '"$RQCTL" -c "$T/one.conf" status one | grep -q limited' 'rqctl status says that others are kept from it'
handler_pid=$(awk '$1 == "begin" { p = $2 } END { print p }' "$T/turns")
echo "$handler_pid" >"$T/watched"
rqd_kill9 "$holder"
wait_ok 10 '! is_alive "$handler_pid"' 'kill -9 of the daemon ends its handler'
rm "$T/hold"
wait_ok 30 '[ "$(grep -c ^end "$T/turns")" -eq 103 ]' 'and the lease frees its place'
ok '[ ! -e "$T/beside" ]' 'before another one begins'
is "$(overlaps "$handler_pid")" '' 'never two at once, still'
wait_ok 40 'no_keys' 'nothing is left' || note "$(for k in $(left_keys); do echo "$k"; r --raw hgetall "$k" 2>/dev/null | cat -v; done)"
