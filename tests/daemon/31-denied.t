#!/bin/sh
# A command that is not permitted: the log names it, and no message is moved or
# duplicated.  Other queues go on, and so does this one when the command is permitted
# again.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start --appendonly yes
MORE_KEYS="added Queue:ids {many.0} {many.2}"
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

# -- the permissions that rqctl acl prints ----------------------------------------------
rqd_stop
printf secret >"$T/password"
chmod 644 "$T/password"
config_write narrow <<C
redis { server = "unix:$SOCK" username = "narrow" password_file = "$T/password" }
queue "list" { command = {"$T/fine"} rate = "100/s" fleet_concurrency = 2 }
queue "ids" { kind = "unique" command = {"$T/fine"} }
queue "stream" { kind = "stream" command = {"$T/fine"} }
queue "many" { shards = 2 command = {"$T/fine"} }
queue "spaced" { key = "a \"b*" command = {"$T/fine"} }
queue "left" { pop = "left" delayed_key = "elsewhere" command = {"$T/fine"} }
queue "news" { kind = "channel" command = {"$T/fine"} }
schedule "tick" { queue = "list" message = "{\"id\":\"tick\"}" every = 1s }
C
narrow() { "$RQCTL" -c "$T/narrow.conf" "$@"; }
is "$(narrow acl | sed 's/PASSWORD/secret/' | r)" OK 'rqctl acl: Redis takes the command'
# Redis 6.2 counts CLIENT and CLUSTER as dangerous.
like "$(narrow acl)" '\+client\|tracking \+client\|caching' 'rqctl acl: Redis 6.2 permits the tracking of keys, too'
rqd_run narrow -c "$T/narrow.conf"
for queue in list ids stream many spaced; do
	narrow push $queue "$queue-1" >/dev/null 2>"$T/err" || note "$(cat "$T/err")"
done
narrow push --delay 10ms list '{"id":"delayed"}' >/dev/null
r zadd elsewhere 1 '{"id":"late"}' >/dev/null
for id in ids-1 delayed late tick; do
	ok "log_wait 20 'event=acked .*id=$id ' 1 narrow" "rqctl acl: $id is done"
done
ok "log_wait 20 'event=acked queue=stream ' 1 narrow && log_wait 20 'event=acked queue=many ' 1 narrow" \
    'rqctl acl: so are those of a stream and of a shard'
ok "log_wait 20 'event=acked queue=spaced ' 1 narrow" 'rqctl acl: and of a key with a space, a quote and a star'
# Nobody keeps what is published before the daemon has subscribed.
wait_ok 20 'narrow push news news-1 >/dev/null 2>&1; log_count "event=acked queue=news " narrow >/dev/null' \
    'rqctl acl: and one of a channel'
is "$(narrow check 2>&1)" '' 'rqctl acl: check has all that it needs'
ok '(narrow pause list && narrow status && narrow running && narrow resume list && narrow lock l -- true) >/dev/null' \
    'rqctl acl: so have other verbs'
unlike "$(cat "$T/narrow.log")" 'NOPERM' 'rqctl acl: nothing is denied'
rqd_stop narrow
r del 'a "b*STATS' >/dev/null

# A queue that was added later.
echo 'queue "added" { command = {"'"$T/fine"'"} }' >>"$T/narrow.conf"
again='NOPERM .*; repeat rqctl acl, and give its output to redis-cli'
like "$(narrow push added x 2>&1)" "$again" 'rqctl: a queue that was added'
rqd_run added -c "$T/narrow.conf"
wait_ok 20 "log_lines 'queue=added' added | grep -Eq '$again'" 'rqd says it, too'
is "$(narrow acl | sed 's/PASSWORD/secret/' | r)" OK 'rqctl acl again'
narrow push added x >/dev/null 2>"$T/err" || note "$(cat "$T/err")"
wait_ok 30 "log_count 'event=acked queue=added ' added >/dev/null" 'then its messages are handled'
