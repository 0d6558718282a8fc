#!/bin/sh
# A command that is not permitted: the log names it, and no message is moved or
# duplicated.  Other queues go on, and so does this one when the command is permitted
# again.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
MORE_KEYS=Queue:ids
handler fine <<'H'
echo "$RQD_QUEUE $RQD_ID" >>"$T/ran"
H
r acl setuser default -ltrim >/dev/null
r lpush list '{"id":"l"}' >/dev/null
rqd_start <<C
queue "list" { command = {"$T/fine"} }
queue "ids" { kind = "unique" command = {"$T/fine"} }
queue "later" { command = {"$T/fine"} }
C
ok "log_wait 15 'event=suspended queue=list .*(LTRIM|.ltrim.)'" 'the queue is suspended, and the log names the command'
# It is probed after 1, 2, 4, 5 s: each probe used to deliver the message once more.
sleep 8
is "$(r llen list)" 1 'the message is where it was'
is "$(r exists listBACKUP listCONTEXT listDELIVERY)" 0 'and nowhere else'
ok '[ ! -e "$T/ran" ]' 'it has not run'
r zadd Queue:ids 0 u >/dev/null
ok "log_wait 10 'event=acked queue=ids id=u '" 'a queue that does not need the command goes on'
r acl setuser default +ltrim >/dev/null
ok "log_wait 30 'event=acked queue=list id=l '" 'permitted again it is delivered'
is "$(grep -c '^list' "$T/ran")" 1 'once'

# -- QDELAYED alone ---------------------------------------------------------------------
r acl setuser default -zrem >/dev/null
r zadd laterDELAYED 0 '{"id":"d"}' >/dev/null
ok "log_wait 30 'event=warning queue=later .*(ZREM|.zrem.)'" 'a due delayed message that cannot leave: the command is named'
sleep 2
is "$(r llen later)" 0 'it is not pushed, not even once'
is "$(r zcard laterDELAYED)" 1 'it stays'
r acl setuser default +zrem >/dev/null
ok "log_wait 60 'event=acked queue=later id=d '" 'permitted again it is delivered'
is "$(grep -c '^later d' "$T/ran")" 1 'once'
