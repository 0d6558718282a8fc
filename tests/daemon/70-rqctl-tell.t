#!/bin/sh
# rqctl quiet: hints to a running daemon.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
RQD_SERVER=unix:$SOCK
export RQD_SERVER
handler slow <<'H'
touch "$T/began"
until [ -e "$T/release" ]; do sleep 0.2; done
H
rqd_start one <<C
name = "web1"
queue "q" { command = {"$T/slow"} concurrency = 4 }
queue "w" { command = {"/bin/true"} }
C
log_wait 30 event=ready 1 one
wait_for 30 '[ "$(r zcard rqd:daemons)" = 1 ]'
INSTANCE=$(log_lines event=started one | log_field instance)
wait_for 30 '[ "$(r pubsub numsub "rqd:control:$INSTANCE" | tail -1)" = 1 ]'

# -- quiet --------------------------------------------------------------------------------

r lpush q a >/dev/null
wait_for 30 '[ -e "$T/began" ]'
is "$("$RQCTL" quiet web1)" "quiet: $INSTANCE" 'quiet, by the name of the host'
log_wait 30 event=quiet 1 one
r lpush q b >/dev/null
wait_ok 30 '"$RQCTL" daemons | grep -q "q(quiet)"' 'the fleet knows'
is "$(r llen q)" 1 'nothing new is taken'
touch "$T/release"
log_wait 30 'event=acked queue=q id=' 1 one
is "$(log_count 'event=acked .*attempt=1' one) $(log_count 'event=(retry|returned)' one)" '1 0' 'what ran went on to its end'
is "$("$RQCTL" quiet "$INSTANCE" --end)" "no longer quiet: $INSTANCE" 'quiet --end, by the instance'
log_wait 30 'event=acked queue=q' 2 one
is "$(log_count event=quiet_ended one)" 1 'it takes messages again'
is "$("$RQCTL" quiet web1 --end --json)" "{\"daemon\":\"$INSTANCE\",\"done\":\"end_quiet\"}" 'twice does no harm'
is "$(log_count event=quiet_ended one)" 1 'nor does the daemon say it twice'
is "$("$RQCTL" quiet nobody 2>&1; echo $?)" 'rqctl: there is no live daemon nobody: rqctl daemons lists them
1' 'no such daemon'

# -- what no daemon should hear --------------------------------------------------------------

for hint in '' stop 'probe w' 'quiet now' "$(head -c 5000 /dev/zero | tr '\0' q)"; do
	is "$(r publish "rqd:control:$INSTANCE" "$hint")" 1 "heard: $(printf %s "$hint" | head -c 20)"
done
head -c 200000 /dev/zero | r -x publish "rqd:control:$INSTANCE" >/dev/null
wait_for 20 '[ "$(r pubsub numsub "rqd:control:$INSTANCE" | tail -1)" = 1 ]'
r lpush w again >/dev/null
ok 'log_wait 30 "event=acked queue=w" 1 one' 'it goes on'
is "$(log_count event=quiet one)" 2 'nothing came of it'

# -- where Redis forbids the channel -----------------------------------------------------------

rqd_stop one
r acl setuser noch on nopass '~*' +@all resetchannels '&__redis__:invalidate' >/dev/null
rqd_start two <<C
name = "web2"
redis { server = "unix:$SOCK" username = "noch" }
log { level = "debug" }
queue "w" { command = {"/bin/true"} }
C
log_wait 30 event=ready 1 two
wait_for 30 'r zrange rqd:daemons 0 -1 | grep -q web2'
like "$("$RQCTL" quiet web2 2>&1; echo $?)" '^rqctl: web2.* is not subscribed to rqd:control:web2.*: Redis forbids it, or its version is too old$' 'it is said'
r lpush w more >/dev/null
ok 'log_wait 30 "event=acked queue=w" 1 two' 'and all else works'
is "$(log_count 'event=(redis_down|redis_warning)' two)" 0 'without a warning'
