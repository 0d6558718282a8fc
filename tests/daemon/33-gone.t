#!/bin/sh
# A daemon that is stopped, or cut off, for longer than the lease: another one runs its
# messages and acknowledges them.  When it is back, its handlers get SIGTERM, their
# results are stale, and nothing runs again.  Redis restarts with all its data after a dead
# letter whose answer was lost: there is one letter.  And Redis forgets messages in flight:
# that is stale, too, and nothing of it is written or handed over.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

MORE_KEYS=items
redis_start --appendonly yes --appendfsync always
proxy_start

# On the first daemon a handler ends when it is told to, or when its file is gone.
handler work <<'H'
echo "$RQD_ID" >>"$T/ran"
[ "$1" = second ] && exit 0
trap 'echo "$RQD_ID" >>"$T/told"; exit "${RQD_ID#exit}"' TERM
while [ -e "$T/hold" ]; do sleep 0.2; done
exit "${RQD_ID#exit}"
H
conf() {	# SERVER NAME
	cat <<C
redis { server = "unix:$1" timeout = 2s }
queue "q" { command = {"$T/work", "$2"} lease = 3s max_attempts = 1 concurrency = 2 }
C
}

round() {	# NAME OTHER 'CUT' 'JOIN'
	touch "$T/hold"
	: >"$T/ran"
	: >"$T/told"
	stale=$(log_count event=stale first)
	r lpush q '{"id":"exit1"}' '{"id":"exit65"}' >/dev/null
	wait_for 10 '[ "$(wc -l <"$T/ran")" -eq 2 ]'
	eval "$3"
	conf "$SOCK" second >"$T/start"
	rqd_start "$2" <"$T/start"
	wait_ok 40 "[ \"\$(log_count event=acked $2)\" -eq 2 ]" "$1: another daemon finishes its messages"
	eval "$4"
	wait_ok 20 '[ "$(wc -l <"$T/told")" -eq 2 ]' "$1: when it is back its handlers are told to stop"
	wait_ok 20 "[ \"\$(log_count event=stale first)\" -eq $((stale + 2)) ]" "$1: their results are stale"
	is "$(sort "$T/ran" | tr '\n' ' ')" 'exit1 exit1 exit65 exit65 ' "$1: nothing runs again"
	is "$(r exists qDEAD q qRETRY qBACKUP qCONTEXT)" 0 "$1: there is no letter, and nothing is left"
	rqd_stop "$2"
	rm "$T/hold"
}

conf "$T/proxy.sock" first >"$T/start"
rqd_start first <"$T/start"
log_wait 10 event=redis_up 1 first
round stopped b 'rqd_signal STOP first' 'rqd_signal CONT first'
log_wait 20 event=redis_up 1 first
round 'cut off' c "echo 'refuse 1' >&3" 'echo calm >&3'

# -- a letter whose answer is lost, and a restart -----------------------------------
touch "$T/hold"
: >"$T/ran"
r lpush q '{"id":"exit65"}' >/dev/null
wait_for 20 '[ "$(wc -l <"$T/ran")" -eq 1 ]'
echo 'swallow down' >&3
rm "$T/hold"
wait_ok 20 '[ "$(r xlen qDEAD)" -eq 1 ]' 'the letter is written'
redis_stop KILL
redis_start --appendonly yes --appendfsync always
echo calm >&3
wait_ok 30 '[ "$(log_count event=dead first)" -eq 1 ]' 'and the daemon learns of it'
is "$(r xlen qDEAD)" 1 'there is one letter'
is "$(r exists q qRETRY qBACKUP qCONTEXT)" 0 'nothing else is left'
r del qDEAD >/dev/null
rqd_stop first

# -- Redis forgets ------------------------------------------------------------------
# The handlers of "q" run on; that of "over" ends before the next renewal.
handler over <<'H'
echo "$RQD_ID" >>"$T/ran"
[ "$RQD_ID" = later ] || until [ -e "$T/end" ]; do sleep 0.2; done
echo "child of $RQD_ID"
H
touch "$T/hold"
: >"$T/ran"
: >"$T/told"
rqd_start forgets <<C
log { payloads = false }
queue "q" { command = {"$T/work", "first"} lease = 9s max_attempts = 1 concurrency = 2 }
queue "over" { command = {"$T/over"} output = "push:items" pushes = {"items"} }
queue "items" { command = {"$T/work", "second"} }
C
r set itemsPAUSED test >/dev/null
r lpush q '{"id":"exit0"}' '{"id":"exit1"}' >/dev/null
r lpush over '{"id":"hands"}' >/dev/null
wait_for 20 '[ "$(wc -l <"$T/ran")" -eq 3 ]'
r flushall >/dev/null
r set itemsPAUSED test >/dev/null
touch "$T/end"
wait_ok 20 '[ "$(wc -l <"$T/told")" -eq 2 ]' 'Redis forgets: handlers are told to stop'
wait_ok 20 '[ "$(log_count "event=stale" forgets)" -eq 3 ]' 'their results are stale'
for id in exit0 exit1 hands; do
	like "$(log_lines event=stale forgets)" "level=warn event=stale queue=[a-z]+ id=$id " "$id is named, at level warn"
done
r lpush over '{"id":"later"}' >/dev/null
wait_ok 20 '[ "$(r --raw lrange items 0 -1)" = "child of later" ]' 'another message is handled, and only that one is handed over'
is "$(left_keys | tr '\n' ' ')" 'items itemsPAUSED ' 'nothing else is written'
r del items itemsPAUSED >/dev/null
exec 3>&-
