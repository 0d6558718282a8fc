#!/bin/sh
# rqctl dead import, dead move, forget, schedules run.  No daemon.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
RQD_SERVER=unix:$SOCK
export RQD_SERVER

letters() {
	r eval 'redis.call("XADD", KEYS[1], "1000-1", "id", "a", "message", "first", "reason", "attempts", "attempts", 25,
		"status", "1", "error", "boom\n", "host", "h")
	redis.call("XADD", KEYS[1], "2000-0", "id", "b", "message", "\0\255\254 binary \128", "reason", "status", "attempts", 1,
		"status", "65", "error", "\27[31m")
	redis.call("XADD", KEYS[1], "3000-7", "message", "", "reason", "crashed")
	redis.call("XADD", KEYS[1], "4000-0", "id", "n", "message", "nul \0 in it", "reason", "status")
	for i = 1, 12 do redis.call("XADD", KEYS[1], (5000 + i) .. "-0", "message", string.rep("\200", i)) end' 1 qDEAD >/dev/null
}

# -- dead import ------------------------------------------------------------------------

letters
ctl dead export q >"$T/letters"
r --raw xrange qDEAD - + >"$T/before"
r del qDEAD >/dev/null
is "$(ctl dead import q <"$T/letters")" 'imported 16 dead letters of q' 'dead import'
r --raw xrange qDEAD - + >"$T/after"
ok 'cmp "$T/before" "$T/after"' 'all is as it was, byte for byte'
is "$(ctl dead import q <"$T/letters")" 'imported 0 dead letters of q; skipped 16 that existed' 'again: each is there'
ctl dead drop -y q --all >/dev/null
is "$(ctl dead import q <"$T/letters")" 'imported 16 dead letters of q' 'behind newer numbers'
ctl dead export q | sed 's/"letter":"[^"]*","died":"[^"]*",//' >"$T/again"
sed 's/"letter":"[^"]*","died":"[^"]*",//' "$T/letters" | cmp - "$T/again"
is $? 0 'they have new numbers, and all else'
r flushall >/dev/null
is "$({ head -2 "$T/letters"; echo '{"id":"x"}'; tail -1 "$T/letters"; } | ctl dead import q 2>&1; echo $?)" \
    'rqctl: line 3: not a dead letter: it has no message
imported 2 dead letters of q
65' 'what is no letter ends it'
is "$(echo 'no JSON' | ctl dead import q 2>&1 | head -1)" 'rqctl: line 1: not a JSON object: dead import reads what dead export writes' 'nor is that'
is "$(echo '{"message_base64":"a==="}' | ctl dead import q 2>&1 | head -1)" 'rqctl: line 1: not a dead letter: it has no message' 'broken base64'
is "$(head -2 "$T/letters" | ctl dead import q --json | tr -d ' \n')" '{"queue":"q","imported":0,"present":2,"complete":true}' 'JSON'

# Another letter has the number: a letter is the same only with its id and message.
r flushall >/dev/null
r xadd qDEAD 1000-1 id a message other >/dev/null
r xadd qDEAD 2000-0 id c message 'x' >/dev/null
is "$({ echo '{"letter":"1000-1","id":"a","message":"first"}'; echo '{"letter":"2000-0","id":"b","message":"x"}'; } |
    ctl dead import q)" 'imported 2 dead letters of q' 'another letter has the number'
is "$(r --raw xrange qDEAD - + | grep -cxE 'other|first')" 2 'both are there'
# A number from the future would be the last word on all later numbers.
r flushall >/dev/null
echo '{"letter":"9000000000000000000-1","id":"a","message":"first"}' | ctl dead import q >/dev/null
ok '[ "$(r --raw xrange qDEAD - + | sed -n "1s/-.*//p")" -le "$(date +%s999)" ]' 'a number from the future is replaced'

# -- dead move -----------------------------------------------------------------------------

r flushall >/dev/null
letters
is "$(ctl dead move q a b other)" 'moved 2 dead letters of q' 'dead move, by id'
is "$(r xlen qDEAD) $(r hget otherCONTEXT a) $(r zcard otherRETRY) $(r hget otherDELIVERY a | cut -c 1-4)" '14 first 2 0 0 ' 'it waits in the other queue'
is "$(r exists qRETRY qCONTEXT)" 0 'and not in its own'
is "$(ctl dead move q other --reason crashed -n)" 'would be moved: 1 dead letter of q' 'by a filter, dry run'
is "$(ctl dead move q other --all 2>&1 </dev/null; echo $?)" 'rqctl: cannot ask without a terminal: add -y to move 14 dead letters of q
64' '--all asks'
is "$(ctl dead move q other --all -y)" 'moved 14 dead letters of q' 'and does it'
is "$(ctl dead move q other --all -y 2>&1; echo $?)" 'rqctl: q has no dead letters
1' 'twice'

# Letters of several queues share a number and an id, and a producer chose an id that looks like a tag.
r flushall >/dev/null
for from in q q2 q3 q4; do r xadd ${from}DEAD 1000-1 id a message "of $from" >/dev/null; done
r xadd otherDEAD 5-0 id a#1000-1 message theirs >/dev/null
ctl dead retry other a#1000-1 >/dev/null
for from in q q2 q3 q4; do ctl dead move $from other --all -y >/dev/null; done
is "$(r --raw hvals otherCONTEXT | sort | tr '\n' ,)" 'of q,of q2,of q3,of q4,theirs,' 'letters of one number are all moved'
is "$(r zcard otherRETRY) $(r exists qDEAD q2DEAD q3DEAD q4DEAD && r xlen q4DEAD)" '5 4
0' 'and wait'
like "$(ctl dead move q q --all 2>&1)" 'is the same queue: use rqctl dead retry' 'into itself'
like "$(ctl dead move q a 2>&1)" 'select dead letters' 'no id'

# -- forget --------------------------------------------------------------------------------------

r flushall >/dev/null
is "$(ctl forget gone 2>&1 -y; echo $?)" 'rqctl: gone has no keys
1' 'forget: nothing there'
r hset goneSTATS acked 5 >/dev/null
r set gonePAUSED x >/dev/null
r set gone2 theirs >/dev/null
is "$(ctl forget gone 2>&1 </dev/null; echo $?)" 'rqctl: cannot ask without a terminal: add -y to delete 2 keys and 0 messages of gone
64' 'forget: asks'
is "$(ctl forget gone -n)" 'would forget 2 keys and 0 messages of gone' 'forget: dry run'
r set rqd:daemon:h.1 '{"queues":{"x":{"key":"gone"}}}' >/dev/null
r zadd rqd:daemons 1 h.1 >/dev/null
like "$(ctl forget -y gone 2>&1; echo $?)" '^rqctl: h.1 serves gone: ' 'forget: a daemon serves it'
r del rqd:daemon:h.1 rqd:daemons >/dev/null
r lpush gone m1 m2 >/dev/null
r xadd goneDEAD '*' message x >/dev/null
is "$(ctl forget -y gone 2>&1; echo $?)" 'rqctl: gone holds 3 messages: let a queue take them, or delete them with --force
75' 'forget: messages are there'
is "$(r exists gone goneSTATS gonePAUSED goneDEAD)" 4 'forget: nothing is deleted'
is "$(ctl forget -y --force gone)" 'forgot 4 keys and 3 messages of gone' 'forget: forced'
is "$(keys)" gone2 'forget: only those of the queue'
config_write one <<C
queue "gone" { command = {"/bin/true"} }
C
r hset goneSTATS acked 5 >/dev/null
like "$(ctl -c "$T/one.conf" forget -y gone 2>&1; echo $?)" 'gone is in .*one.conf, line [0-9]+: remove it first' 'forget: the configuration has it'
is "$(ctl -c "$T/one.conf" forget -y --force --json gone | tr -d ' \n')" '{"queue":"gone","keys":1,"messages":0,"dry_run":false}' 'forget: JSON'

# -- schedules run ------------------------------------------------------------------------------------

config_write s <<C
queue "q" { command = {"/bin/true"} }
queue "u" { kind = "unique" key = "u" command = {"/bin/true"} }
schedule "nightly" { queue = "q" cron = "0 3 * * *" }
schedule "said" { queue = "q" every = 1h message = "words" }
schedule "ids" { queue = "u" every = 1h }
C
like "$(ctl -c "$T/s.conf" schedules run nightly)" '^nightly@20[0-9-]*T[0-9:]*Z$' 'schedules run: the id'
like "$(r lpop q)" '^\{"id":"nightly@20[0-9-]*T[0-9:]*Z"\}$' 'schedules run: the message'
ctl -c "$T/s.conf" schedules run said >/dev/null
is "$(r lpop q)" words 'schedules run: a message of its own'
ctl -c "$T/s.conf" schedules run ids >/dev/null
is "$(r zrange u 0 -1)" ids 'schedules run: an id'
is "$(r exists qSCHEDULE uSCHEDULE)" 0 'schedules run: the next run stays as it was'
like "$(ctl -c "$T/s.conf" schedules run nothing 2>&1; echo $?)" 'there is no schedule "nothing" in' 'schedules run: no such schedule'
like "$(ctl -c "$T/s.conf" schedules nightly)" '^nightly +q ' 'schedules: the list is as it was'
r flushall >/dev/null
echo 'queue "q" { command = {"/bin/true"} }' | config_write none
is "$(ctl -c "$T/none.conf" schedules 2>&1; echo $?)" "rqctl: there are no schedules in $T/none.conf
0" 'schedules: none is no error'
