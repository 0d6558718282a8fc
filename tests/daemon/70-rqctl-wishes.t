#!/bin/sh
# rqctl: why messages are dead, counted; a group is cancelled; what is removed is logged by the
# daemons; schedules show the time of their zone; check says that it found nothing.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start --appendonly yes

# -- why they are dead -------------------------------------------------------------------

letter() { # FIELD VALUE...
	r xadd deadDEAD '*' message m attempts 2 "$@" >/dev/null
}
letter id 1 reason answer status 0 answer 'no such customer'
letter id 2 reason attempts status 1 error 'first
cannot connect'
letter id 3 reason attempts status 1 error 'cannot connect'
letter id 4 reason crashed status SIGKILL error ''
letter id 5 reason status status 65 error 'bad'
letter id 6 reason too_large status ''
is "$(ctl dead list dead | awk -F '  +' 'NR > 1 { print $2 ": " $5 ": " $6 }')" '6: too_large: -
5: status 65: bad
4: crashed (SIGKILL): -
3: attempts (status 1): cannot connect
2: attempts (status 1): cannot connect
1: said dead: no such customer' 'dead list says why'
is "$(ctl dead list dead --summary)" 'COUNT  REASON               ERROR
    2  attempts (status 1)  cannot connect
    1  crashed (SIGKILL)    -
    1  said dead            no such customer
    1  status 65            bad
    1  too_large            -' 'dead list --summary'
is "$(ctl dead list dead --summary --reason attempts --json | tr -d ' \n')" \
    '[{"count":2,"why":"attempts(status1)","error":"cannotconnect"}]' 'with a condition, as JSON'
for o in --all '--count 2'; do
	is "$(ctl dead list dead --summary $o 2>&1; echo $?)" 'rqctl: --summary does not go together with --count or --all: it counts all
64' "dead list --summary $o"
done
letter id 7 reason status status 66 error "$(printf 'a\377b')"
letter id 8 reason status status 67 error "$(printf 'a\033b')"
letter id 9 reason status status 68 error "$(printf '%0199dä' 7)"
is "$(ctl dead list dead --summary --json | tr -d ' \n' | grep -o '{[^{]*status6[678]"[^}]*}')" \
    '{"count":1,"why":"status66","error_base64":"Yf9i"}
{"count":1,"why":"status67","error":"a\u001Bb"}
{"count":1,"why":"status68","error":"'"$(printf '%0199d' 7)"'"}' 'dead list --summary --json: the bytes of a handler'
r del deadDEAD >/dev/null
r eval 'for i = 1, 2000 do redis.call("XADD", KEYS[1], "*", "id", i, "message", i, "reason", "status", "error", i % 1500) end' 1 deadDEAD >/dev/null
is "$(ctl dead list dead --summary | awk 'NR > 1 { n += $1 } END { print n, NR }')" '2000 1002' 'different ones are bounded'
r del deadDEAD >/dev/null

# -- why messages wait for another try -----------------------------------------------------

handler fails <<'H'
echo "cannot reach $RQD_ID" >&2
exit 75
H
rqd_start fails <<C
queue "late" { command = {"$T/fails"} backoff = 1h suspend_after = 0 }
C
fails() { "$RQCTL" -c "$T/fails.conf" "$@"; }
for i in 1 2 3; do r lpush late "{\"id\":$i}" >/dev/null; done
log_wait 10 'event=retry queue=late ' 3 fails
is "$(fails retry list late | awk -F '  +' 'NR > 1 { print $1 ": " $NF }' | sort)" \
    '1: exit status 75, stderr: cannot reach 1
2: exit status 75, stderr: cannot reach 2
3: exit status 75, stderr: cannot reach 3' 'retry list says why each failed last'
is "$(fails retry list late --match '"id":2' --json | jq -r '.[].error')" \
    'exit status 75, stderr: cannot reach 2' 'as JSON'
like "$(fails show late 3)" 'due in .*, last error: exit status 75, stderr: cannot reach 3' 'and so does show'
is "$(fails show late 1 --json | jq -r '..|.error? // empty')" 'exit status 75, stderr: cannot reach 1' 'as JSON'
for i in $(seq 4 23); do r lpush late "{\"id\":$i}" >/dev/null; done
log_wait 20 'event=retry queue=late ' 23 fails
is "$(fails retry list late | grep -c ' -$')" 3 'of the latest 20 messages'
fails retry now late 23 >/dev/null
log_wait 20 'event=retry queue=late ' 24 fails
is "$(fails retry list late | grep -c ' -$')" 3 'one message has one of the 20 places'
r hset lateDELIVERY 22 "$(r hget lateDELIVERY 22 | sed 's/^1 /2 /')" >/dev/null
like "$(fails retry list late)" '^22 .* -$' 'an error of another attempt is not told'
r acl setuser default resetkeys '~late*' >/dev/null
is "$(fails retry list late 2>&1 | grep -c '^[0-9]* .* -$')" 23 'without the right to read heartbeats the list has no errors'
r acl setuser default allkeys >/dev/null
rqd_stop fails
like "$(fails retry list late)" '^1 .* -$' 'a daemon that has ended does not tell'
r del lateRETRY lateCONTEXT lateDELIVERY >/dev/null

# -- groups, and what daemons log ----------------------------------------------------------

handler work <<'H'
trap 'exit 0' TERM
touch "$T/began"
while :; do sleep 0.1; done
H
rqd_start <<C
queue "dead" { command = {"/bin/true"} }
queue "q" { command = {"$T/work"} group_by = "g" concurrency = 1 }
C
log_wait 30 event=ready
INSTANCE=$(log_lines event=started | log_field instance)
wait_for 30 '[ "$(r pubsub numsub "rqd:control:$INSTANCE" | tail -1)" = 1 ]'
OPTS="-c $T/rqd.conf"
push() { r lpush q "{\"id\":\"$1\",\"g\":\"$2\"}" >/dev/null; }
push a1 a
wait_for 30 '[ -e "$T/began" ]'
for id in a2 b1 a3 b2; do push $id ${id%?}; done
r zadd qDELAYED 4e9 '{"id":"a4","g":"a"}' 4e9 '{"id":"b4","g":"b"}' >/dev/null
is "$("$RQCTL" $OPTS cancel q --group a -n | sort | tr '\n' ,)" \
    "would be cancelled: a1 of q, running on $INSTANCE,would be cancelled: a2 of q, waiting,would be cancelled: a3 of q, waiting,would be cancelled: a4 of q, delayed," 'cancel --group -n'
is "$("$RQCTL" $OPTS cancel q --group a | wc -l)" 4 'cancel --group'
wait_ok 30 '[ "$(log_count "event=cancelled queue=q id=a1")" = 1 ]' 'also the one in flight'
log_wait 30 'event=delivered queue=q id=b1'
is "$(log_count 'event=delivered queue=q id=a[234]') $(r --raw zrange qDELAYED 0 -1)" \
    '0 {"id":"b4","g":"b"}' 'none of the group is left, all others are'
push b3 b
is "$("$RQCTL" $OPTS cancel q --group b --retry | wc -l)" 1 '--retry: only what runs'
is "$("$RQCTL" $OPTS cancel q --group none 2>&1; echo $?)" 'rqctl: q has no message of group none that waits or runs
1' 'no such group'
is "$("$RQCTL" $OPTS cancel q x --group b 2>&1; echo $?)" 'rqctl: select messages: by id, or by --group GROUP
64' 'ids and a group'
is "$("$RQCTL" $OPTS cancel q 2>&1; echo $?)" 'rqctl: select messages: by id, or by --group GROUP
64' 'neither'
is "$("$RQCTL" $OPTS cancel dead --group b 2>&1; echo $?)" 'rqctl: dead has no group_by, so no groups
64' 'no groups'

r xadd deadDEAD '*' id 1 message m >/dev/null
r xadd deadDEAD '*' id 2 message m >/dev/null
by="by=$(id -un)@[^ ]*"
"$RQCTL" $OPTS dead drop dead 1 -y >/dev/null
wait_ok 30 '[ "$(log_count "level=warn event=removed queue=dead $by count=1 verb=\"dead drop\"")" = 1 ]' 'dead drop is logged'
"$RQCTL" $OPTS purge dead --dead -y >/dev/null
wait_ok 30 '[ "$(log_count "event=removed queue=dead $by count=1 verb=\"purge --dead\"")" = 1 ]' 'purge'
"$RQCTL" $OPTS delayed cancel q b4 -y >/dev/null
wait_ok 30 '[ "$(log_count "event=removed queue=q $by count=1 verb=\"delayed cancel\"")" = 1 ]' 'delayed cancel'
r lpush gone x >/dev/null
ctl forget gone --force -y >/dev/null
wait_ok 30 '[ "$(log_count "event=removed queue=gone $by count=1 verb=\"forget --force\"")" = 1 ]' 'forget'
is "$(log_count event=removed)" 4 'and nothing else'
for hint in 'removed
' 'removed
dead' 'removed
dead
me
x
y' 'removed
dead
me
1'; do
	r publish "rqd:control:$INSTANCE" "$hint" >/dev/null
done
"$RQCTL" $OPTS cancel q --group b >/dev/null
r del deadDEAD >/dev/null
rqd_stop
is "$(log_count event=removed)" 4 'what is no such hint is not logged'

# -- two daemons: who logs what was removed ----------------------------------------------------

printf 'queue "q" { command = {"/bin/true"} }\nqueue "dead" { command = {"/bin/true"} }\n' | config_write both
rqd_run first -c "$T/both.conf"
rqd_start second <<'C'
queue "q" { command = {"/bin/true"} }
C
wait_for 30 '[ "$(r zcard rqd:daemons)" -ge 2 ]'
removed() {	# VERB: of each daemon, how often it has logged that
	for d in first second; do log_count "event=removed .* $by count=1 verb=\"$1\"" $d; done | tr '\n' ' '
}
r xadd qDEAD '*' id 1 message m >/dev/null
"$RQCTL" -c "$T/both.conf" purge q --dead -y >/dev/null
wait_for 20 '[ "$(removed "purge --dead")" = "1 1 " ]'
is "$(removed 'purge --dead')" '1 1 ' 'each daemon that serves the queue logs a purge, once'
r xadd deadDEAD 1-0 id 1 message m >/dev/null
"$RQCTL" -c "$T/both.conf" dead drop dead 1 -y >/dev/null
wait_for 20 '[ "$(removed "dead drop")" = "1 0 " ]'
r lpush gone x >/dev/null
ctl forget gone --force -y >/dev/null
wait_for 20 '[ "$(removed "forget --force")" = "1 1 " ]'
is "$(removed 'forget --force')" '1 1 ' 'all log it of a queue that nobody serves'
# By now the second would have logged the drop, which came before.
is "$(removed 'dead drop')" '1 0 ' 'only one daemon serves that queue'
is "$(log_count event=removed first) $(log_count event=removed second)" '3 2' 'and nothing else is logged'
rqd_stop first
rqd_stop second

# -- a zone ----------------------------------------------------------------------------------

if [ -e /usr/share/zoneinfo/Asia/Kolkata ]; then
	config_write zones <<'C'
queue "q" { command = {"/bin/true"} }
schedule "there" { queue = "q" cron = "0 3 * * *" timezone = "Asia/Kolkata" }
schedule "west" { queue = "q" cron = "0 3 * * *" timezone = "Etc/GMT+9" }
schedule "here" { queue = "q" cron = "0 3 * * *" }
C
	"$RQCTL" -c "$T/zones.conf" schedules >"$T/table"
	like "$(grep ^there "$T/table")" 'T21:30:00Z \(03:00\+05:30\)' 'the time of the zone'
	like "$(grep ^west "$T/table")" 'T12:00:00Z \(03:00-09:00\)' 'west of UTC'
	like "$(grep ^here "$T/table")" 'T03:00:00Z +[0-9]' 'UTC'
fi

# -- check --------------------------------------------------------------------------------------

cat >"$T/on-pty.py" <<'P'
import pty, sys
sys.exit(pty.spawn(sys.argv[1:]) >> 8)
P
if command -v python3 >/dev/null; then
	r set rqd:daemon:h.1 '{"queues":{"q":{"state":"running"}}}' >/dev/null
	r zadd rqd:daemons 1 h.1 >/dev/null
	is "$(python3 "$T/on-pty.py" "$RQCTL" --server "unix:$SOCK" check q </dev/null | tr -d '\r')" 'no problems' 'check on a terminal'
	is "$(ctl check q)" '' 'elsewhere it prints nothing'
	r del rqd:daemons rqd:daemon:h.1 >/dev/null
fi

# -- a narrow terminal: schedules never lose their state --------------------------------------------

if command -v python3 >/dev/null && [ -e "$T/zones.conf" ]; then
	# 80 columns are what rqctl assumes of a terminal that does not say its size.
	is "$(COLUMNS=80 python3 "$T/on-pty.py" "$RQCTL" -c "$T/zones.conf" schedules </dev/null | tr -d '\r' |
	    sed 's/\x1b\[[0-9;]*m//g' | grep -c '^STATE  *not seen by any daemon yet$')" 3 'a block of lines for each'
fi
