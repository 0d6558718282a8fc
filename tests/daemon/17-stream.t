#!/bin/sh
# Kind "stream": all entries that the consumer group gets are handled, although daemons
# die, other consumers take part, and entries are deleted.  The other consumers are
# redis-cli.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start

# ok, fail (the first time), dead; waits as long as there is a file hold.
handler work <<'H'
cat >"$T/stdin.$$"
message=$(tr '\0' ' ' <"$T/stdin.$$")
mv "$T/stdin.$$" "$T/message.$RQD_ID"
echo "$RQD_ID $RQD_ATTEMPT $message" >>"$T/ran"
while [ -e "$T/hold" ]; do sleep 0.2; done
case $message in
dead*) exit 65 ;;
fail*) [ "$RQD_ATTEMPT" -gt 1 ] || exit 1 ;;
esac
H
conf() {	# [FOREIGN_TIMEOUT]
	cat <<C
queue "q" {
	kind = "stream"
	command = {"$T/work"}
	concurrency = 10
	lease = 3s
	foreign_timeout = ${1:-2s}
	backoff = 500ms
}
C
}
add() { r --raw xadd q '*' message "$1"; }
pending() { r --raw xpending q rqd | head -n 1; }
ran() { grep -c " $1" "$T/ran"; }
foreign_timeout() {	# FOREIGN_TIMEOUT of the daemon two
	_n=$(log_count event=reloaded two)
	conf "$1" >"$T/start"
	config_write two <"$T/start"
	rqd_signal HUP two
	log_wait 10 event=reloaded $((_n + 1)) two
}
# Waits until all is done that was added, and nothing is left but the stream.
all_done() { [ "$(pending)" = 0 ] && [ "$(left_keys | grep -vE '^q(DEAD)?$')" = '' ]; }
other() { r --raw xreadgroup group rqd other count "$1" streams q '>' | grep -E '^[0-9]+-[0-9]+$'; }

# -- kill -9 ------------------------------------------------------------------------
touch "$T/hold"
for i in 1 2 3 4 5 6 7 8; do add "ok $i" >/dev/null; done
add fail >/dev/null
add dead >/dev/null
conf >"$T/start"
rqd_start one <"$T/start"
wait_ok 10 '[ "$(pending)" = 10 ]' 'ten entries are pending'
wait_for 10 '[ "$(wc -l <"$T/ran")" -eq 10 ]'
rqd_kill9 one
is "$(pending)" 10 'and stay so when the daemon is killed'
rm "$T/hold"
killed=$(msec)
conf >"$T/start"
rqd_start two <"$T/start"
wait_ok 30 'all_done' 'another daemon handles all of them'
note "after $(($(msec) - killed)) ms"
is "$(sort -k 2 "$T/ran" | grep -c ' 1 ok')" 16 'each ran once more, as a first attempt'
is "$(ran '2 fail')" 1 'exit 1 was retried'
like "$(log_lines 'event=retry' two)" 'delay=' 'with a backoff'
is "$(r xlen qDEAD)" 1 'exit 65 is dead'
is "$(r --raw xrange qDEAD - + | sed -n '2,3p;5p' | tr '\n' ' ')" "id $(grep ' dead' "$T/ran" | head -n 1 | cut -d ' ' -f 1) dead " \
    'its letter has the id of the entry'
is "$(pending)" 0 'nothing is pending'
is "$(r xlen q)" 10 'nothing was deleted from the stream'
r del qDEAD >/dev/null

# -- other consumers ------------------------------------------------------------------
: >"$T/ran"
foreign_timeout 1m	# the other one may be slow
take() { id=$(other 1) && echo "$id" >>"$T/other" && r xack q rqd "$id" >/dev/null; }
r set qPAUSED test >/dev/null
wait_for 10 'grep -q "event=paused" "$T/two.log"'
for i in $(seq 100); do add "share $i" >/dev/null; done
for i in $(seq 10); do take; done
r del qPAUSED >/dev/null
while take; do :; done
wait_ok 20 'all_done && [ $(($(wc -l <"$T/other") + $(wc -l <"$T/ran"))) -ge 100 ]' 'another consumer shares the group'
note "it had $(wc -l <"$T/other") of 100"
is "$(cut -d ' ' -f 1 "$T/ran" | sort - "$T/other" | uniq -d)" '' 'nothing is handled by both'

# Others take over the entries that it has left, but not those that it goes on claiming.
foreign_timeout 2s
r set qPAUSED test >/dev/null
wait_for 10 '[ "$(log_count "event=paused" two)" -ge 2 ]'
: >"$T/ran"
for i in 1 2 3; do add "left $i" >/dev/null; done
ids=$(other 3)
is "$(echo "$ids" | wc -l)" 3 'while rqd is paused the other gets all'
r del qPAUSED >/dev/null
wait_ok 30 '[ "$(ran "1 left")" -eq 3 ] && all_done' 'what it has abandoned is taken over'

# -- the stream is deleted, everything is deleted ---------------------------------------
: >"$T/ran"
touch "$T/hold"
add 'ok before' >/dev/null
add 'fail before' >/dev/null
wait_for 10 '[ "$(wc -l <"$T/ran")" -eq 2 ]'
r del q >/dev/null
rm "$T/hold"
wait_ok 20 '[ "$(ran "2 fail before")" -eq 1 ]' 'what was in hand when the stream was deleted is handled to its end'
add 'ok after' >/dev/null
wait_ok 10 '[ "$(ran "1 ok after")" -eq 1 ] && all_done' 'and what comes after it'

: >"$T/ran"
touch "$T/hold"
add 'ok flushed' >/dev/null
add 'fail flushed' >/dev/null
stale=$(log_count event=stale two)
wait_for 10 '[ "$(wc -l <"$T/ran")" -eq 2 ]'
r flushall >/dev/null
wait_ok 10 '[ "$(pending 2>/dev/null)" = 0 ]' 'the group is there again soon after FLUSHALL'
rm "$T/hold"
wait_ok 20 '[ "$(log_count event=stale two)" -eq $((stale + 2)) ]' 'what it has forgotten is stale'
r xgroup destroy q rqd >/dev/null
add 'ok new' >/dev/null
wait_ok 20 '[ "$(ran "1 ok new")" -eq 1 ] && all_done' 'a group that was destroyed is made again'

# -- trimmed while pending ------------------------------------------------------------------
: >"$T/ran"
touch "$T/hold"
add 'fail trimmed' >/dev/null
wait_for 10 '[ "$(wc -l <"$T/ran")" -eq 1 ]'
r set qPAUSED test >/dev/null
wait_for 10 '[ "$(log_count "event=paused" two)" -ge 3 ]'
add 'ok never' >/dev/null
add 'ok never' >/dev/null
is "$(other 2 | wc -l)" 2 'another consumer has two entries pending'
r xtrim q maxlen 0 >/dev/null
r del qPAUSED >/dev/null
rm "$T/hold"
wait_ok 20 '[ "$(ran "2 fail trimmed")" -eq 1 ]' 'what rqd had in hand is handled to its end'
wait_ok 30 'all_done' 'the other two are acknowledged'
is "$(ran 'ok never')" 0 'unseen'
dropped() { log_lines 'event=dropped' two | log_field count | awk '{ n += $1 } END { print n }'; }
wait_for 10 '[ "$(dropped)" = 2 ]'
is "$(dropped)" 2 'and logged as dropped'

# -- what the handler gets ---------------------------------------------------------------------
printf 'a\0b\377' | r -x xadd q '*' other x message >"$T/id"
wait_for 10 '[ -e "$T/message.$(cat "$T/id")" ]'
wait_ok 15 '[ "$(printf "a\0b\377" | od -c)" = "$(od -c <"$T/message.$(cat "$T/id")")" ]' 'the field message, byte for byte'
id=$(r --raw xadd q '*' b 1 a 'x"y
ä' b 2 '' 3)
wait_for 10 '[ -s "$T/message.$id" ]'
is "$(cat "$T/message.$id")" '{"a":"x\"y\nä","b":"2","":"3"}' 'else all fields as JSON'

# -- two daemons of one name --------------------------------------------------------------------
: >"$T/ran"
conf >"$T/start"
rqd_start three <"$T/start"
for i in $(seq 60); do add "ok $i"; done >/dev/null
wait_ok 20 '[ "$(wc -l <"$T/ran")" -eq 60 ] && all_done' 'two daemons of one name handle each entry once'
rqd_stop two
touch "$T/hold"
: >"$T/ran"
for i in 1 2 3; do add "ok $i"; done >/dev/null
wait_for 10 '[ "$(wc -l <"$T/ran")" -eq 3 ]'
conf >"$T/start"
rqd_start two <"$T/start"
rqd_stop two
is "$(pending)" 3 'one that ends leaves what the other has in hand'
rm "$T/hold"
wait_ok 10 'all_done' 'which is handled to its end'
is "$(wc -l <"$T/ran")" 3 'once'

# -- what the daemons leave in the group ---------------------------------------------------------
consumers() { r --raw xinfo consumers q rqd | grep -A 1 '^name$' | grep -- '-q$'; }
name=$(consumers | head -n 1)
ok '[ -n "$name" ]' "a daemon is the consumer $name"
rqd_stop three
is "$(consumers)" '' 'the last one that stops removes it'
is "$(r --raw xinfo consumers q rqd | grep -c '^other$')" 1 'and no consumer of others'
touch "$T/hold"
conf | sed 's/lease = 3s/lease = 3s kill_grace = 100ms/; 1i drain_timeout = 100ms' >"$T/start"
rqd_start four <"$T/start"
add 'ok pending' >/dev/null
wait_for 10 '[ "$(pending)" = 1 ]'
rqd_stop four
is "$(consumers) $(pending)" "$name 1" 'but not while entries are pending for it'
rm "$T/hold"
rqd_start four <"$T/start"
wait_ok 20 'all_done' 'which the next one handles'
rqd_stop four
is "$(consumers)" '' 'and then removes it'
