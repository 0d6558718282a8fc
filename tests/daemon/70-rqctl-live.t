#!/bin/sh
# rqctl beside a daemon that works.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start --appendonly yes
handler hold <<'H'
cat >"$T/held.$RQD_ID"
while [ ! -e "$T/go" ]; do sleep 0.2; done
H
handler fussy <<'H'
[ -e "$T/mended" ] || { echo "cannot reach the database" >&2; exit 65; }
printf '%s\n' "$(cat)" >>"$T/done"
H
handler swift <<'H'
while read -r n attempt length id && IFS= read -r message; do echo "$n ok"; done
H
rqd_start <<C
queue "swift" { command = {"$T/swift"}  mode = "persistent"  framing = "line"  pipeline = 100 }
queue "hold" { command = {"$T/hold"}  concurrency = 2  suspend_after = 0 }
queue "fussy" { command = {"$T/fussy"}  concurrency = 4  suspend_after = 0 }
C
RQD_CONFIG=$T/rqd.conf
export RQD_CONFIG
wait_for 30 '[ "$(r zcard rqd:daemons)" = 1 ]'

# -- what runs ---------------------------------------------------------------------

"$RQCTL" push hold '{"id":"a"}' >/dev/null
"$RQCTL" push hold '{"id":"b"}' >/dev/null
"$RQCTL" push hold '{"id":"c"}' >/dev/null
wait_for 30 '[ -e "$T/held.a" ] && [ -e "$T/held.b" ]'
like "$("$RQCTL" running hold)" '^hold +a +1 +[0-9.]+m?s ' 'running: a message in hand'
like "$("$RQCTL" status hold | tail -1)" '^hold +1 +2/2 +0 +0 +0 ' 'status: of its concurrency'
like "$("$RQCTL" show hold a)" '^running  tag a, attempt 1, for ' 'show: running'
like "$("$RQCTL" show hold c)" '^waiting  number 1 in line' 'show: waiting'
like "$("$RQCTL" daemons | tail -1)" ' (swift )?(hold fussy|fussy hold)( swift)?$' 'daemons: what it serves'
like "$("$RQCTL" check 2>&1)" '^$' 'check: nothing is wrong'

# -- pause, until nothing runs -------------------------------------------------------

"$RQCTL" pause hold --reason tea --wait >"$T/paused" &
_waiter=$!
wait_for 30 '[ -s "$T/paused" ]'
ok 'is_alive "$_waiter"' 'pause --wait: waits for what runs'
: >"$T/go"
wait $_waiter
is $? 0 'pause --wait: returns when nothing runs'
is "$(r llen hold) $(r exists holdBACKUP)" '1 0' 'pause --wait: nothing was taken any more'
like "$("$RQCTL" status hold | tail -1)" 'paused by .*: tea$' 'status: paused'
"$RQCTL" resume hold >/dev/null
ok "wait_for 30 '[ -e \"\$T/held.c\" ]'" 'resume: goes on'

# -- dead letters, after the handler was mended -----------------------------------------

seq 1 300 | "$RQCTL" push -l fussy >/dev/null
wait_for 120 '[ "$(r xlen fussyDEAD)" = 300 ]'
like "$("$RQCTL" dead list fussy --count 1 | tail -1)" ' 1 +status 65 +cannot reach the database$' 'dead list: why'
: >"$T/mended"
is "$("$RQCTL" dead retry fussy --match database --rate 1000/s)" 'retried 300 dead letters of fussy' 'dead retry'
ok "wait_for 120 '[ \"\$(wc -l <\"\$T/done\")\" = 300 ]'" 'all of them ran'
sort -n "$T/done" >"$T/sorted"
seq 1 300 | cmp -s - "$T/sorted"
is $? 0 'each once, with its bytes'
ok "wait_for 30 '[ \"\$(r exists fussyCONTEXT fussyRETRY fussyDELIVERY fussyBACKUP)\" = 0 ]'" 'nothing is left'

# -- retries, while a daemon takes them ----------------------------------------------------

seq 1 3000 | "$RQCTL" push --delay 1h -l swift >/dev/null
is "$("$RQCTL" retry now swift --all)" 'made due 3,000 messages of swift' 'retry now: all, also beside a daemon'
ok "wait_for 60 '[ \"\$(r zcard swiftRETRY)\" = 0 ]'" 'none is left behind'

# -- delayed ----------------------------------------------------------------------------

rm -f "$T/done"
"$RQCTL" push fussy later --delay 1h >/dev/null
like "$("$RQCTL" delayed list fussy | tail -1)" ' in (59m|1h)' 'delayed list'
"$RQCTL" delayed now fussy --all >/dev/null
ok "wait_for 30 '[ -s \"\$T/done\" ]'" 'delayed now: the daemon takes it at once'
is "$(cat "$T/done")" later 'byte for byte'

# -- an id that is not UTF-8 ------------------------------------------------------------------

rm -f "$T/go"
printf '{"id":"\351t\351"}' | "$RQCTL" push hold >/dev/null
wait_for 30 '[ -e "$T/held.$(printf "\351t\351")" ]'
rqd_signal HUP				# a heartbeat follows
ok "wait_for 30 '\"\$RQCTL\" running hold --json | grep -q \"\\\"pid\\\": [0-9]\"'" 'running: whose it is'
like "$("$RQCTL" running hold --json)" '"id_base64": "6XTp"' 'running: its bytes'
like "$("$RQCTL" running hold)" '^hold +\\xe9t\\xe9 +1 ' 'running: escaped'
: >"$T/go"
