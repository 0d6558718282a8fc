#!/bin/sh
# rqctl: cut lists say so, JSON is whole, check exits as a plugin, dangerous verbs ask,
# and there are hints.  No daemon.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start --appendonly yes
RQD_SERVER=unix:$SOCK
export RQD_SERVER

# As a daemon that serves it would.
r zadd rqd:daemons:queues 1 '{"key":"q","kind":"ack"}' >/dev/null

# -- lists -----------------------------------------------------------------------------

r eval 'for i = 1, 120 do
	redis.call("LPUSH", "q", i)
	redis.call("XADD", "qDEAD", "*", "id", i, "message", i, "reason", i <= 60 and "status" or "crashed")
	redis.call("ZADD", "qRETRY", 4e9 + i, "r" .. i)
	redis.call("HSET", "qDELIVERY", "r" .. i, "1 0 - 1 9")
	redis.call("HSET", "qCONTEXT", "r" .. i, i)
	redis.call("ZADD", "qDELAYED", 4e9, "d" .. i)
	redis.call("ZADD", "qBACKUP", 1e9, "b" .. i)
	redis.call("HSET", "qDELIVERY", "b" .. i, "0 0 h.1.1 1 9")
end' 0 >/dev/null
cut_as() { # WORDS VERB...: what the table says on standard error
	_want=$1
	shift
	is "$(ctl "$@" 2>&1 >/dev/null)" "rqctl: $_want" "$*: says that it is cut"
}
whole() { # VERB...
	is "$(ctl "$@" --all 2>"$T/err" | sed 1d | wc -l) $(cat "$T/err")" '120 ' "$*: --all"
	is "$(ctl "$@" --json 2>"$T/err" | grep -cE '^  \{$') $(cat "$T/err")" '120 ' "$*: JSON is whole"
	is "$(ctl "$@" --json --count 7 2>"$T/err" | grep -cE '^  \{$') $(cat "$T/err")" '7 ' "$*: --count"
	is "$(ctl "$@" --count 120 2>&1 | sed 1d | wc -l)" 120 "$*: as many as there are"
	is "$(ctl "$@" --count 5 --all 2>&1; echo $?)" 'rqctl: --all does not go together with --count
64' "$*: not both"
}
cut_as '50 of 120 dead letters; --all for all' dead list q
cut_as 'the first 50 dead letters; --all for all' dead list q --reason status
whole dead list q
is "$(ctl dead list q --all --reason status 2>&1 | sed 1d | wc -l)" 60 'dead list --all with a filter'
cut_as '10 of 120 messages; --all for all' peek q
whole peek q
cut_as '50 of 120 messages; --all for all' retry list q
cut_as 'the first 5 messages; --all for all' retry list q --match 1 --count 5
whole retry list q
cut_as 'the first 50 messages; --all for all' delayed list q
whole delayed list q
cut_as '100 of 120 messages; --all for all' running q
is "$(ctl running q --all 2>&1 | sed 1d | wc -l)" 120 'running: --all'
is "$(ctl running q --json | grep -c '"tag"')" 120 'running: JSON is whole'

# -- what is dangerous asks ----------------------------------------------------------------

is "$(ctl dead retry q --all 2>&1 </dev/null; echo $?)" 'rqctl: cannot ask without a terminal: add -y to retry 120 dead letters of q
64' 'dead retry --all'
is "$(ctl bury q --all 2>&1 </dev/null; echo $?)" 'rqctl: cannot ask without a terminal: add -y to bury 120 failed or deferred messages of q
64' 'bury --all'
is "$(r xlen qDEAD) $(r zcard qRETRY)" '120 120' 'nothing was done'
is "$(ctl dead retry q --reason status)" 'retried 60 dead letters of q' 'dead retry with a filter does not ask'
is "$(ctl bury -y q --all)" 'buried 180 messages of q' 'bury -y'
is "$(ctl dead retry -y q --all)" 'retried 240 dead letters of q' 'dead retry -y'

# -- hints ------------------------------------------------------------------------------------

like "$(ctl retry q 7 2>&1)" 'retry needs one of: list, now; for dead letters: rqctl dead retry' 'retry Q ID'
r flushall >/dev/null
r xadd qDEAD '*' id 7 message x reason status >/dev/null
is "$(ctl retry now q 7 2>&1; echo $?)" 'rqctl: 7 is a dead letter: use rqctl dead retry q 7
1' 'retry now of a dead letter'
is "$(ctl retry now q 8 2>&1; echo $?)" 'rqctl: q has no failed or deferred message 8
1' 'retry now of nothing'
r eval 'for i = 8, 11000 do redis.call("XADD", "qDEAD", "*", "id", i, "message", i) end' 0 >/dev/null
is "$(ctl retry now q 7 2>&1; echo $?)" 'rqctl: q has no failed or deferred message 7
1' 'it looks at the latest 10,000 dead letters only'

# -- a group that was not searched whole ------------------------------------------------------

r zadd rqd:daemons:queues 1 '{"key":"g","kind":"ack","group_by":"customer"}' >/dev/null
r eval 'for i = 1, 12 do redis.call("LPUSH", "g", [[{"customer":"a","id":"]] .. i .. [["}]]) end' 0 >/dev/null
is "$(ctl cancel g --group a --scan 10 2>&1 | tail -n 1)" 'rqctl: 2 more messages wait in g that were not searched; --scan N looks at more' 'cancel --group --scan: what was not searched'
ctl cancel g --group a --scan 1 >/dev/null 2>&1
is "$? $(r llen g)" '1 1' 'cancel --group --scan: status'
r eval 'redis.call("LPUSH", "g", [[{"id":"big","customer":"a","x":"]] .. string.rep("x", 70000) .. [["}]])' 0 >/dev/null
is "$(ctl cancel g --group a 2>&1; echo $?)" 'cancelled: 12 of g, waiting
rqctl: 1 of g wait whose group was not read: they are larger than 64K
1' 'cancel --group: a large message'
is "$(ctl cancel g --group a --retry 2>&1)" 'rqctl: g has no message of group a that runs' 'cancel --group --retry: none of this matters'
r del g >/dev/null
r zadd rqd:daemons:queues 1 '{"key":"st","kind":"stream","group_by":"customer","consumer_group":"rqd"}' >/dev/null
for i in 1 2; do r xadd st '*' message '{"id":"'$i'","customer":"a"}' >/dev/null; done
r xgroup create st rqd 0 >/dev/null
is "$(ctl cancel st --group a 2>&1; echo $?)" 'rqctl: st has no message of group a that waits or runs
rqctl: 2 entries of st were never delivered: they stay, whatever their group is
1' 'cancel --group: of a stream'
r flushall >/dev/null

# -- check ------------------------------------------------------------------------------------

r flushall >/dev/null
beat() {
	r set rqd:daemon:h.1 "{\"queues\":{\"q\":{\"state\":\"$1\"}}}" >/dev/null
	r zadd rqd:daemons 1 h.1 >/dev/null
}
beat running
is "$(ctl check q; echo $?)" 0 'check: all is well'
r xadd qDEAD '*' id 7 message x >/dev/null
is "$(ctl check q; echo $?)" 'warning: q: 1 dead letter
1' 'check: a warning'
beat suspended
is "$(ctl check q >/dev/null; echo $?)" 1 'check: a queue without messages is suspended'
r lpush q x >/dev/null
is "$(ctl check q >/dev/null; echo $?)" 2 'check: an error'
is "$(ctl check q --json >/dev/null; echo $?)" 2 'check --json: an error'
is "$(RQD_SERVER=unix:$T/none "$RQCTL" check 2>/dev/null; echo $?)" 2 'check: Redis cannot be reached'
is "$(ctl check --frob 2>/dev/null; echo $?)" 3 'check: an option that there is not'
is "$(RQD_CONFIG=$T/none "$RQCTL" check 2>/dev/null; echo $?)" 3 'check: no configuration'
r acl setuser default -info -zrevrange >/dev/null
is "$(ctl check q >/dev/null 2>&1; echo $?)" 3 'check: no permission'
r acl setuser default +@all >/dev/null
r flushall >/dev/null
