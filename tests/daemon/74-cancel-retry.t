#!/bin/sh
# rqctl cancel --retry: the run of a message ends, and the message is tried again; whatever
# happens between the mark and its end, the message is not lost.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
# Exits with 0 when it is told to end: that does not count.
handler hold <<'H'
trap 'exit 0' TERM
echo "$RQD_ID $RQD_ATTEMPT" >> "$T/began"
until [ -e "$T/release" ]; do sleep 0.2; done
H
began() { n=$(grep -cx -e "$1" "$T/began" 2>/dev/null); [ "${n:-0}" -ge "${2:-1}" ]; }
ctl() { "$RQCTL" -c "$T/one.conf" "$@"; }
nothing() { [ "$(r exists "$1" "$1BACKUP" "$1RETRY" "$1CONTEXT" "$1DELIVERY")" = 0 ]; }
SECTIONS="queue \"q\" { command = {\"$T/hold\"} concurrency = 3 lease = 60s backoff = 100ms suspend_after = 2 }
queue \"last\" { command = {\"$T/hold\"} max_attempts = 1 }
queue \"slow\" { command = {\"$T/hold\"} backoff = 1h }
queue \"u\" { kind = \"unique\" key = \"u\" command = {\"$T/hold\"} backoff = 100ms }
queue \"e\" { kind = \"stream\" command = {\"$T/hold\"} backoff = 100ms }
queue \"d\" { command = {\"$T/hold\"} lease = 3s backoff = 1h }"
rqd_start one <<C
name = "web1"
$SECTIONS
C
log_wait 30 event=ready 1 one
INSTANCE=$(log_lines event=started one | log_field instance)
wait_for 30 '[ "$(r pubsub numsub "rqd:control:$INSTANCE" | tail -1)" = 1 ]'

# -- it runs ---------------------------------------------------------------------------

r lpush q '{"id":1}' >/dev/null
wait_for 30 'began "1 1"'
is "$(ctl cancel --retry -n q 1)" "would be cancelled and retried: 1 of q, running on $INSTANCE" 'a dry run'
is "$(r hget qDELIVERY 1 | grep -c '!')" 0 'marks nothing'
is "$(ctl cancel --retry q 1)" "cancelled and retried: 1 of q, running on $INSTANCE" 'in flight: it is said where'
wait_ok 30 'began "1 2"' 'its next run is attempt 2'
like "$(log_lines 'event=retry queue=q id=1 ' one)" " reason=cancelled by=[^ @]+@$(hostname) " 'the log says why, and who did it'
is "$(log_count 'event=acked queue=q' one)" 0 'the status of the run that was ended does not count'
like "$(r hget qDELIVERY 1)" '^1 0 [^!]' 'the mark has gone with its run'
is "$(ctl cancel --retry --json q 1)" '{"queue":"q","tag":"1","place":"running","daemon":"'"$INSTANCE"'","dead":false,"retry":true,"dry_run":false}' '--json'
wait_ok 30 'began "1 3"' 'once more'
r lpush q '{"id":2}' >/dev/null
wait_for 30 'began "2 1"'
ctl cancel --retry q 2 >/dev/null
wait_for 30 'began "2 2"'
is "$(log_count event=suspended one)" 0 'three in a row say nothing against the command'

# The last attempt.
r lpush last '{"id":3}' >/dev/null
wait_for 30 'began "3 1"'
ctl cancel --retry last 3 >/dev/null
log_wait 30 'event=dead queue=last id=3 .*reason=attempts by=' 1 one
is "$(ctl dead list last --reason attempts --json | grep -c '"id": "3"')" 1 'the last attempt: a dead letter, as after any failure'

# Other kinds.
r zadd u 0 a >/dev/null
wait_for 30 'began "a 1"'
ctl cancel --retry u a >/dev/null
wait_ok 30 'began "a 2"' 'unique'
ENTRY=$(r xadd e '*' message m1)
wait_for 30 'began "$ENTRY 1"'
ctl cancel --retry e "$ENTRY" >/dev/null
wait_ok 30 'began "$ENTRY 2"' 'stream'

# -- it does not run ---------------------------------------------------------------------

r lpush slow '{"id":4}' >/dev/null
wait_for 30 'began "4 1"'
r lpush slow '{"id":5}' '{"id":4,"n":2}' >/dev/null
r zadd slowDELAYED 4000000000 '{"id":6}' >/dev/null
is "$(ctl cancel --retry slow 5 6 7 2>&1; echo $?)" 'rqctl: 5 of slow is not in flight: it waits for its first delivery
rqctl: 6 of slow is not in flight: use rqctl delayed now slow 6
rqctl: slow has no message 7
1' 'waiting, delayed, nowhere: what to use instead'
is "$(r llen slow) $(r zcard slowDELAYED)" '2 1' 'and they stay'
is "$(ctl cancel --retry slow 4 2>&1; echo $?)" "cancelled and retried: 4 of slow, running on $INSTANCE
0" 'one runs, and one with the same id waits'
log_wait 30 'event=retry queue=slow id=4 ' 1 one
wait_for 30 'began "5 1"'
r del slow >/dev/null
is "$(ctl cancel --retry slow 4 2>&1; echo $?)" 'rqctl: 4 of slow is not in flight: use rqctl retry now slow 4
1' 'a retry'
is "$(ctl retry now slow 4 2>&1; echo $?)" 'made due 1 message of slow
0' 'which works'
is "$(ctl cancel --retry --dead slow 4 2>&1; echo $?)" 'rqctl: --retry and --dead do not go together
64' 'not with --dead'
ctl cancel slow 4 5 6 >/dev/null
touch "$T/release"
for q in q slow u; do wait_for 30 "nothing $q"; done
rm "$T/release"
rqd_stop one

# -- between the mark and the end ----------------------------------------------------------

# Without hints the daemon sees the mark at its next renewal, after 10 s.
r acl setuser few on nopass '~*' +@all resetchannels '&__redis__:invalidate' >/dev/null
rqd_start deaf <<C
name = "web1"
redis { server = "unix:$SOCK" username = "few" }
$SECTIONS
C
log_wait 30 event=ready 1 deaf
for id in 10 11; do
	r lpush q "{\"id\":$id}" >/dev/null
	wait_for 30 "began '$id 1'"
done
like "$(RQD_SERVER=unix:$SOCK "$RQCTL" cancel --retry q 10 11 2>&1)" ': 10: the next daemon that serves q runs it again when its lease has ended' \
    'without a hint: what follows is said'
touch "$T/release"
log_wait 30 'event=(acked|retry) queue=q' 2 deaf
rm "$T/release"
wait_ok 30 'nothing q || began "1[01] 2"' 'it ends meanwhile: done, or tried again, not lost'
touch "$T/release"
wait_for 30 'nothing q'
rm "$T/release"

# The daemon dies with the mark unseen, and its message is the next one's.
r lpush d '{"id":20}' >/dev/null
wait_for 30 'began "20 1"'
rqd_signal STOP deaf
RQD_SERVER=unix:$SOCK "$RQCTL" cancel --retry d 20 >/dev/null 2>&1
like "$(r hget dDELIVERY 20)" '^0 0 !retry:' 'marked'
rqd_kill9 deaf
rqd_start one <<C
name = "web2"
$SECTIONS
C
wait_ok 60 'began "20 1" 2' 'its daemon died: it runs again when its lease has ended'
like "$(r hget dDELIVERY 20)" '^0 1 [^!]' 'as after any crash, and the mark is gone'
touch "$T/release"
log_wait 30 'event=acked queue=d id=20 ' 1 one
rm "$T/release"

# A daemon that does not know the mark: its run ends, and the lease brings the message back.
r lpush d '{"id":21}' >/dev/null
wait_for 30 'began "21 1"'
r --raw hget dDELIVERY 21 >"$T/field"
read -r attempts crashes token time length <"$T/field"
r hset dDELIVERY 21 "$attempts $crashes !later:me@host:$token $time $length" >/dev/null
log_wait 30 'event=stale queue=d id=21 ' 1 one
wait_ok 60 'began "21 1" 2' 'a mark that the daemon does not know: the message is not lost'
touch "$T/release"
log_wait 30 'event=acked queue=d id=21 ' 1 one
rqd_stop one
no_keys || note "$(left_keys)"
