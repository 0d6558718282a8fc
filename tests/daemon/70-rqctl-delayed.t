#!/bin/sh
# rqctl retry, delayed, bury, purge.  No daemon.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
RQD_SERVER=unix:$SOCK
export RQD_SERVER

retry() { # TAG IN D-VALUE MESSAGE
	r zadd qRETRY $((now + $2)) "$1" >/dev/null
	r hset qDELIVERY "$1" "$3" >/dev/null
	r hset qCONTEXT "$1" "$4" >/dev/null
}
fresh() {
	r flushall >/dev/null
	now=$(date +%s)
	retry due -5 '3 0 - 1 3' 'message of due'
	retry 7 1015 '2 1 - 1 1' 'message of 7'
	retry 7#x 2000 '0 0 - 1 1' 'pushed with --delay'
	retry run 3000 '1 0 h.1 1 3' 'its lease ended'
	r zadd qDELAYED $((now + 100)) '{"id":"d1"}' $(((now + 235) * 1000)) 'in milliseconds' >/dev/null
}
column() { tail -n +2 | awk '{ print $1 }' | tr '\n' ' '; }

# -- list --------------------------------------------------------------------------

fresh
is "$(ctl retry list q | column)" 'due 7 7 run ' 'retry list: the next first'
like "$(ctl retry list q)" '^7 +in 16m[0-9s]* +2 +12 +message of 7 +-$' 'retry list: all columns'
like "$(ctl retry list q)" '^due +now +3 ' 'retry list: due'
is "$(ctl retry list q --count 1 | column)" 'due ' 'retry list: --count'
is "$(ctl retry list q --match ended | column)" 'run ' 'retry list: --match'
is "$(ctl retry list q --json | grep -c '"tag"')" 4 'retry list: JSON'
is "$(ctl delayed list q | column)" 'd1 - 7 ' 'delayed list: of both sorts'
like "$(ctl delayed list q)" '^- +in 3m' 'delayed list: milliseconds are understood'
is "$(ctl delayed list none 2>&1; echo $?)" 'rqctl: none has no delayed messages
0' 'delayed list: nothing'

# -- now ----------------------------------------------------------------------------

due() { r zcount "$1" -inf "$(($(date +%s) + 1))"; }
ctl retry now q 2>/dev/null
is $? 64 'retry now: which?'
is "$(ctl retry now q zzz 2>&1; echo $?)" 'rqctl: q has no failed or deferred message zzz
1' 'retry now: no such id'
is "$(ctl retry now q --all -n)" 'would be made due: 4 messages of q' 'retry now: dry run'
is "$(due qRETRY)" 1 'retry now: dry run does nothing'
is "$(ctl retry now q 7#x)" 'made due 1 message of q' 'retry now: by tag'
is "$(due qRETRY)" 2 'retry now: it is due'
is "$(ctl retry now q 7 --json | tr -d ' \n')" '{"queue":"q","made_due":1,"dry_run":false}' 'retry now: by id'
is "$(ctl retry now q --all)" 'made due 1 message of q' 'retry now: what was not yet'
is "$(due qRETRY) $(r zcard qRETRY)" '4 4' 'retry now: all are due, none is gone'
fresh
is "$(ctl delayed now q d1)" 'made due 1 message of q' 'delayed now: a producers own'
is "$(due qDELAYED)" 1 'delayed now: it is due'
is "$(ctl delayed now q --all)" 'made due 2 messages of q' 'delayed now: the rest'
is "$(due qDELAYED) $(due qRETRY)" '2 2' 'delayed now: retries are left alone'

# -- cancel ----------------------------------------------------------------------------

fresh
is "$(ctl delayed cancel q --all 2>&1 </dev/null; echo $?)" 'rqctl: cannot ask without a terminal: add -y to cancel 3 delayed messages of q
64' 'delayed cancel: asks'
is "$(ctl delayed cancel q d1 -y)" 'cancelled 1 message of q' 'delayed cancel: by id'
is "$(ctl delayed cancel q 7 -y)" 'cancelled 1 message of q' 'delayed cancel: one of push --delay'
is "$(r zscore qRETRY 7#x; r hexists qCONTEXT 7#x; r hexists qDELIVERY 7#x; r zcard qRETRY)" '
0
0
3' 'delayed cancel: nothing of it is left, the retry with this id stays'
is "$(ctl delayed cancel q --match milli -y)" 'cancelled 1 message of q' 'delayed cancel: --match'
is "$(r exists qDELAYED)" 0 'delayed cancel: none is left'
r flushall >/dev/null
r eval 'for i = 1, 3000 do redis.call("ZADD", "qDELAYED", 4e9 + i, "m" .. i) end' 0 >/dev/null
is "$(ctl delayed cancel q --match m1 -y)" 'cancelled 1,111 messages of q' 'delayed cancel: across pages'
is "$(r zcard qDELAYED)" 1889 'delayed cancel: the others stay'

# -- bury ----------------------------------------------------------------------------------

fresh
is "$(ctl bury q due --reason 'poison' )" 'buried 1 message of q' 'bury'
is "$(r zscore qRETRY due; r hexists qCONTEXT due; r hexists qDELIVERY due)" '
0
0' 'bury: nothing of it is left'
like "$(ctl dead show q due)" '^reason +buried$' 'bury: the reason'
like "$(ctl dead show q due)" '^error +buried by .*@.*: poison$' 'bury: who and why'
like "$(ctl dead show q due)" '^attempts +3$' 'bury: attempts'
is "$(ctl bury q run 2>&1; echo $?)" 'rqctl: 1 of q stays: still in flight, or cancelled
75' 'bury: not what a daemon has in hand'
fresh
is "$(ctl bury q --all -y 2>&1; echo $?)" 'buried 3 messages of q
rqctl: 1 of q stays: still in flight, or cancelled
75' 'bury --all: the others are buried'
is "$(r --raw zrange qRETRY 0 -1) $(r xlen qDEAD)" 'run 3' 'bury --all: one is kept'
fresh
is "$(ctl bury q due run --json 2>/dev/null | tr -d ' \n')" '{"queue":"q","buried":1,"dry_run":false,"kept":1}' 'bury --json: how many were kept'
for mark in drop dead; do
	retry due -5 "3 0 !$mark:me@host:- 1 3" 'message of due'
	ctl bury q due >"$T/out" 2>&1
	is "$? $(r hget qCONTEXT due) $(r xlen qDEAD)" '75 message of due 1' "bury: a cancelled message ends as its mark says: $mark"
done
r zrem qRETRY due >/dev/null
is "$(ctl bury q nothing 2>/dev/null; echo $?)" 1 'bury: no such id'
is "$(ctl dead retry q due)" 'retried 1 dead letter of q' 'bury: and back'

# -- purge ------------------------------------------------------------------------------------

fresh
r lpush q a b c >/dev/null
r xadd qDEAD '*' id 1 message x >/dev/null
ctl purge q 2>/dev/null
is $? 64 'purge: what?'
is "$(ctl purge q --waiting --dead 2>&1 </dev/null; echo $?)" 'rqctl: cannot ask without a terminal: add -y to purge 3 waiting, 1 dead of q
64' 'purge: asks'
is "$(ctl purge q --waiting --dead -n)" 'would be purged: 3 waiting, 1 dead of q' 'purge: dry run'
is "$(ctl purge q --waiting -y)" 'purged 3 waiting of q' 'purge: waiting'
is "$(r exists q) $(r exists qDEAD)" '0 1' 'purge: only that'
is "$(ctl purge q --retry --delayed --dead -y --json | tr -d ' \n')" '{"queue":"q","retry":3,"delayed":2,"dead":1,"missed":1,"dry_run":false}' 'purge: the rest, and how many of those counted are not gone'
is "$(keys) $(r zrange qRETRY 0 -1)" 'qCONTEXT qDELIVERY qRETRY run' 'purge: what a daemon has in hand stays'

# -- many that are due at the same time -------------------------------------------------------

same() { r eval 'for i = 1, 1800 do redis.call("ZADD", "sDELAYED", 4e9, "m" .. i) end' 0 >/dev/null; }
same
is "$(ctl delayed cancel s --match m1 -n)" 'would be cancelled: 912 messages of s' 'delayed cancel: of one time, dry run'
is "$(ctl delayed cancel s --match m1 -y)" 'cancelled 912 messages of s' 'delayed cancel: of one time'
is "$(r zcard sDELAYED)" 888 'delayed cancel: the others stay'
is "$(ctl delayed list s --count 1000 | tail -n +2 | wc -l)" 888 'delayed list: each once'
same
is "$(ctl delayed now s --match 7)" "made due $(seq 1800 | grep -c 7) messages of s" 'delayed now: of one time'
is "$(ctl delayed now s --all)" "made due 1,$((800 - $(seq 1800 | grep -c 7) % 1000)) messages of s" 'delayed now: the rest'
r del sDELAYED >/dev/null
