#!/bin/sh
# Messages for later: the producer's own ZADD, in seconds and milliseconds, and
# rqctl push --delay.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
handler keep <<'H'
{ date +%s%N | cut -c 1-13 | tr '\n' ' '; cat; echo; } >>"$T/ran"
H
rqd_start <<C
queue "q" { command = {"$T/keep"} }
C
log_wait 10 event=redis_up

# How many milliseconds after its due time a message ran; each says its own.
lateness() { awk '{ sub(/^late-/, "", $2); print $1 - $2 }' "$T/ran"; }

at() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }
soon() {
	rm -f "$T/ran"
	now=$(msec)
	for i in 900 1100 1300 1500 1700 1900 2100; do
		r zadd qDELAYED "$(at $((now + i)))" "late-$((now + i))" >/dev/null
	done
	wait_for 20 '[ "$(cat "$T/ran" 2>/dev/null | wc -l)" -eq 7 ]'
	median=$(lateness | sort -n | sed -n 4p)
	early=$early$(lateness | awk '$1 < 0')
	[ "$median" -le $((600 * SLOW)) ]
}
early=''
ok 'thrice soon' 'each runs soon after it was due'
is "$(wc -l <"$T/ran")" 7 'all ran'
note "median: $median ms"
is "$early" '' 'not one before its time'

rm "$T/ran"
now=$(msec)
r zadd qDELAYED $((now + 700)) "late-$((now + 700))" >/dev/null
r zadd qDELAYED "$((now / 1000 - 5))" past >/dev/null
r zadd qDELAYED "$((now / 1000 + 5000))" future -inf minus +inf plus >/dev/null
wait_for 10 '[ "$(wc -l <"$T/ran" 2>/dev/null || echo 0)" -ge 3 ]'
like "$(cat "$T/ran")" ' past$' 'one that is overdue runs at once'
like "$(cat "$T/ran")" ' minus$' 'so does one at -inf'
like "$(grep late "$T/ran")" . 'a score in milliseconds is read as such'
late=$(grep late "$T/ran" | awk '{ sub(/^late-/, "", $2); print $1 - $2 }')
ok "[ ${late:--1} -ge 0 ]" "and kept ($late ms)"
is "$(r --raw zrange qDELAYED 0 -1 | tr '\n' ' ')" 'future plus ' 'what is not due stays'
r zrem qDELAYED future plus >/dev/null

rm "$T/ran"
start=$(msec)
printf same | ctl push --delay 1s q >"$T/id1" 2>"$T/ctl.err"
printf same | ctl push --delay 1s q >>"$T/id1" 2>>"$T/ctl.err"
is "$(cat "$T/ctl.err")" '' 'rqctl push --delay'
is "$(sort -u "$T/id1" | wc -l)" 2 'prints two ids for two equal payloads'
wait_for 10 '[ "$(wc -l <"$T/ran" 2>/dev/null || echo 0)" -ge 2 ]'
is "$(cut -d ' ' -f 2 "$T/ran" | tr '\n' ' ')" 'same same ' 'and both run'
ok '[ "$(head -n 1 "$T/ran" | cut -d " " -f 1)" -ge $((start + 1000)) ]' 'after the delay'
wait_ok 15 'no_keys' 'no key is left but QSTATS'
