#!/bin/sh
# A list whose producers push to the right: pop = "left"; the member that is the id; another key
# of delayed messages.  What rqd, rqctl, schedules and other handlers push goes behind.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

MORE_KEYS='app:jobs app:jobs:later app:jobs:other'
redis_start
handler work <<'H'
echo "$RQD_ID" >>"$T/ran"
[ "$RQD_ID" != twice ] || [ "$RQD_ATTEMPT" -gt 1 ]
H
handler print <<'H'
echo '{"jid":"pushed-1"}'
echo '{"jid":"pushed-2"}'
H
cat >"$T/conf" <<C
queue "in" {
	key = "app:jobs" pop = "left" id = "jid" delayed_key = "app:jobs:later"
	command = {"$T/work"}
	backoff = 100ms
	suspend_after = 0
}
queue "out" { command = {"$T/print"} pushes = {"in"} output = "push:in" }
schedule "tick" { queue = "in" message = "{\"jid\":\"tick\"}" every = 1s }
C
qctl() { RQD_CONFIG=$T/rqd.conf "$RQCTL" "$@"; }
# The messages that wait, as rqctl lists them.
peek() { qctl peek in --json | jq -r '[.[] | .id // "-"] | join(" ")'; }
ran() { tr '\n' ' ' <"$T/ran"; }
command -v jq >/dev/null || skip_all 'no jq'

# -- what waits ---------------------------------------------------------------------
grep -v schedule "$T/conf" >"$T/plain"
rqd_start <"$T/plain"
qctl pause in >/dev/null
log_wait 10 'event=paused queue=in'
r rpush app:jobs '{"jid":"a"}' '{"n":1,"jid":"b"}' '{"jid":3}' '{"id":"not-this"}' >/dev/null
is "$(qctl push in '{"jid":"d"}')" d 'rqctl push prints the id'
is "$(peek)" 'a b 3 - d' 'rqctl peek: the order of the pushes, the ids'
like "$(qctl show in a)" 'number 1 in line' 'rqctl show: the next one'
like "$(qctl show in d)" 'number 5 in line' 'rqctl show: the last one'
is "$(qctl cancel in 3)" 'cancelled: 3 of in, waiting' 'rqctl cancel'
is "$(peek)" 'a b - d' 'only that one'
r rpush app:jobs '{"jid":"b"}' >/dev/null
qctl cancel in b --scan 2 >/dev/null
is "$(peek)" 'a - d b' 'rqctl cancel looks at the next ones first'

# -- delayed --------------------------------------------------------------------------
r zadd app:jobs:later "$(($(date +%s) + 900))" '{"jid":"later"}' "$(($(date +%s) + 900))" '{"jid":"never"}' >/dev/null
is "$(qctl delayed list in --json | jq -r '[.[].id] | sort | join(" ")')" 'later never' 'rqctl delayed list'
is "$(qctl status in --json | jq -r '.queues[] | select(.name == "in").delayed')" 2 'rqctl status counts them'
qctl cancel in never >/dev/null
is "$(r zcard app:jobs:later)" 1 'rqctl cancel finds one'
qctl delayed now in later >/dev/null
wait_ok 20 '[ "$(r zcard app:jobs:later)" -eq 0 ]' 'one that is made due leaves that key'
is "$(peek)" 'a - d b later' 'for the end of the list'

# -- pushes of a handler --------------------------------------------------------------
r lpush out go >/dev/null
log_wait 10 'event=acked queue=out '
is "$(peek)" 'a - d b later pushed-1 pushed-2' 'output messages: behind, in their order'

# -- deliveries -------------------------------------------------------------------------
qctl resume in >/dev/null
ok 'log_wait 20 "event=acked queue=in id=pushed-2 "' 'all are delivered'
like "$(ran)" '^a ~[^ ]* d b later pushed-1 pushed-2 $' 'the oldest first'
r rpush app:jobs '{"jid":"twice"}' '{"jid":"x"}' >/dev/null
ok 'log_wait 20 "event=acked queue=in id=twice "' 'a retry'
log_wait 20 'event=acked queue=in id=x '
is "$(qctl status in --json | jq -r '.queues[] | select(.name == "in").waiting')" 0 'nothing waits'
is "$(keys)" 'app:jobsSTATS outSTATS' 'no other key was used'

# -- purge ----------------------------------------------------------------------------------
qctl pause in >/dev/null
log_wait 10 'event=paused queue=in' 2
r rpush app:jobs 1 2 3 >/dev/null
is "$(qctl purge in --waiting -y)" 'purged 3 waiting of in' 'rqctl purge'
qctl resume in >/dev/null

# -- a schedule, and a reload to another delayed_key --------------------------------------
sed 's/app:jobs:later/app:jobs:other/' "$T/conf" | config_write rqd
r zadd app:jobs:later 1 '{"jid":"stays"}' >/dev/null
wait_ok 20 '[ "$(r zcard app:jobs:later)" -eq 0 ]' 'one that is long due'
rqd_signal HUP
ok 'log_wait 10 event=reloaded' 'a reload'
r zadd app:jobs:later 1 '{"jid":"unseen"}' >/dev/null
r zadd app:jobs:other 1 '{"jid":"seen"}' >/dev/null
ok 'log_wait 20 "event=acked queue=in id=seen "' 'a reload to another delayed_key'
is "$(r zcard app:jobs:later)" 1 'the other one is left alone'
ok 'log_wait 20 "event=acked queue=in id=tick "' 'a schedule'
like "$(qctl acl)" ' ~app:jobs\* ~app:jobs:other\* ' 'rqctl acl names the key'
r del app:jobs:later >/dev/null
rqd_stop
r del app:jobs >/dev/null
