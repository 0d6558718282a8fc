#!/bin/sh
# rqctl --server without a configuration: it knows what daemons have written of a queue (its
# kind, the end that is popped, who hears of dead letters), and says so where nobody has.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
RQD_SERVER=unix:$SOCK
export RQD_SERVER
QUEUES="q told ids spread {spread.0} {spread.1} {spread.2} {spread.3}"

handler never <<'H'
exit 75
H
rqd_start <<C
queue "left" { key = "q" pop = "left" id = "number" on_dead = "push:told"
	command = {"$T/never"} backoff = 1h }
queue "told" { command = {"/bin/true"} }
queue "ids" { kind = "unique" key = "ids" command = {"/bin/true"} }
queue "spread" { shards = 4 command = {"/bin/true"} }
C
log_wait 30 event=ready
wait_for 30 '[ "$(r zcard rqd:daemons:queues)" = 4 ]'
for m in 1 2; do ctl push q "{\"number\":$m}" >/dev/null; done
wait_for 30 '[ "$(r zcard qRETRY)" = 2 ]'
rqd_stop
r pexpire rqd:daemons 1 >/dev/null

for m in 3 4 5; do ctl push q "{\"number\":$m}" >/dev/null; done
is "$(r --raw lrange q 0 -1 | tr -dc '0-9\n' | tr '\n' ' ')" '3 4 5 ' 'push: to the end that is popped last'
is "$(ctl peek q | sed 1d | awk '{ print $2 }' | tr '\n' ' ')" '3 4 5 ' 'peek: in the order of the queue, with its ids'
is "$(ctl show q 3 --json | grep -o '"number": [0-9]*' | head -1)" '"number": 1' 'show: its place'
is "$(ctl cancel q 5 --dead)" 'cancelled as a dead letter: 5 of q, waiting' 'cancel --dead'
is "$(ctl bury q 1)" 'buried 1 message of q' 'bury'
is "$(r --raw lrange told 0 -1 | grep -oE '"(id|queue|reason)":"[^"]*"' | tr '\n' ' ')" \
    '"id":"1" "queue":"left" "reason":"buried" "id":"5" "queue":"left" "reason":"cancelled" ' \
    'both are announced'
is "$(ctl push ids x && r type ids)" 'x
zset' 'push: as the kind wants it'
for m in 1 2 3 4 5 6 7 8; do ctl push spread "{\"id\":$m}" >/dev/null; done
is "$(r exists spread) $(r --raw keys '{spread.*}' | wc -l)" '0 4' 'push: to the shards'
is "$(ctl purge q --waiting -y 2>&1)" 'purged 2 waiting of q' 'purge'
is "$(r --raw keys 'rqd:daemon:*')" '' 'no daemon has a heartbeat'

# The latest word counts, and no other key's.
r zadd rqd:daemons:queues 9e9 '{"key":"q","kind":"ack"}' 9e9 '{"key":"qq","kind":"unique"}' >/dev/null
ctl push q a >/dev/null
ctl push q b >/dev/null
is "$(r --raw lrange q 0 -1 | tr '\n' ' ')" 'b a ' 'the latest word counts'
# What is no announcement is no command.
r zadd rqd:daemons:queues 9e10 '{"key":"q","dead_key":"told","dead_tell":"DEL:0:x"}' >/dev/null
ctl bury q 2 >/dev/null
is "$(r llen told)" 2 'a command that is none is not sent'

# Nobody has said anything.
is "$(ctl push other x 2>&1 >/dev/null)" 'rqctl: no configuration is read and no daemon has served other: rqctl takes its right end for the oldest' 'push says what it does not know'
is "$(ctl peek other 2>&1 >/dev/null | grep -c 'right end')" 1 'peek, too'
is "$(ctl cancel other '~none' --dead 2>&1 | grep -c on_dead)" 0 'an error is one line'
r zadd otherRETRY 1 a >/dev/null
r hset otherDELIVERY a '1 0 - 1 1' >/dev/null
r hset otherCONTEXT a a >/dev/null
is "$(ctl bury other a 2>&1)" 'buried 1 message of other
rqctl: no configuration is read and no daemon has served other: its on_dead is not known, nothing is announced' 'bury says what it does not know'
r del rqd:daemons:queues >/dev/null
r set rqd:daemons:queues x >/dev/null
is "$(ctl push other x 2>/dev/null)" - 'an index of another type'
r del rqd:daemons:queues >/dev/null
r del other otherRETRY otherDELIVERY otherCONTEXT otherDEAD >/dev/null
