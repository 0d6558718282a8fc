#!/bin/sh
# rqctl forget, schedules run.  No daemon.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
RQD_SERVER=unix:$SOCK
export RQD_SERVER

# -- forget --------------------------------------------------------------------------------------

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
is "$(ctl -c "$T/one.conf" forget -y --force --json gone | tr -d ' \n')" '{"queue":"gone","keys":1,"messages":0,"dry_run":false,"complete":true}' 'forget: JSON'

# Its delayed_key is known from the index of queues.
r zadd rqd:daemons:queues 1 '{"key":"gone","kind":"ack","delayed_key":"later"}' 2 '{"key":"gone","kind":"ack"}' >/dev/null
r zadd later 1 m >/dev/null
is "$(ctl forget gone -y 2>&1; echo $?)" 'rqctl: gone holds 1 message: let a queue take them, or delete them with --force
75' 'forget: a message in the delayed_key'
is "$(ctl forget gone --force 2>&1 </dev/null)" 'rqctl: cannot ask without a terminal: add -y to delete 1 key and 1 message of gone, and its delayed_key later' 'forget: the question names it'
is "$(ctl forget gone --force -y)" 'forgot 1 key and 1 message of gone' 'forget: with its delayed_key'
is "$(r exists later rqd:daemons:queues)" 0 'forget: it is gone, and so is the queue from the index'

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
