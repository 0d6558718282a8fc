#!/bin/sh
# Queues that no configuration names any more: a queue is renamed, and messages stay
# behind.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
handler good <<'H'
cat >/dev/null
H
rqd_start <<C
queue "old" { command = {"$T/good"} }
queue "ids" { kind = "unique" key = "oldids" command = {"$T/good"} }
queue "events" { kind = "stream" key = "oldevents" consumer_group = "g" command = {"$T/good"} }
C
log_wait 30 event=redis_up
wait_ok 30 '[ "$(r zcard rqd:daemons:queues)" = 3 ]' 'the daemon notes which queues it serves'
check() { ctl -c "$T/rqd.conf" check; }
unnamed() { check | sed -n 's/^[a-z]*: \(.*\): no configuration names it, and it holds messages: /\1: /p'; }
r lpush old kept >/dev/null
wait_for 30 '[ "$(r llen old)" = 0 ]'
is "$(unnamed)" '' 'nothing is unnamed'

config_write rqd <<C
queue "new" { command = {"$T/good"} }
C
QUEUES="$QUEUES old oldids oldevents"
rqd_signal HUP
wait_ok 30 '[ "$(r zcard rqd:daemons:queues)" = 4 ]' 'the new name is noted, the old ones stay'
INSTANCE=$(log_lines event=started | log_field instance)
wait_for 60 '! r --raw get "rqd:daemon:$INSTANCE" | grep -q "\"old\""'
is "$(unnamed)" '' 'renamed, and nothing left behind'

# One kind of place after the other.
now=$(date +%s)
left() { # TEXT COMMAND...
	text=$1
	shift
	r "$@" >/dev/null
	is "$(unnamed)" "old: $text" "$*"
}
left '1, of these 0 dead' lpush old a
r del old >/dev/null
left '1, of these 0 dead' zadd oldBACKUP "$now" 7
r del oldBACKUP >/dev/null
left '1, of these 0 dead' zadd oldRETRY $((now + 900)) 8
left '2, of these 0 dead' zadd oldRETRY $((now + 900)) 9
r del oldRETRY >/dev/null
left '1, of these 0 dead' zadd oldDELAYED $((now + 900)) m
r del oldDELAYED >/dev/null
left '1, of these 1 dead' xadd oldDEAD '*' id 7 message m reason attempts
check=$(check)
is "$?" 1 'dead letters alone are a warning'
like "$check" '^warning: old: ' 'and are called so'
left '4, of these 1 dead' lpush old a b c
check >/dev/null
is "$?" 2 'messages that nobody takes are an error'
is "$(ctl -c "$T/rqd.conf" check new | grep -c 'no configuration')" 0 'not where a queue is named'

# Other kinds.
r zadd Queue:x 1 1 >/dev/null	# never served by anybody: not known
r del Queue:x >/dev/null
r zadd oldids 1 a 1 b >/dev/null
r xadd oldevents '*' message m >/dev/null
is "$(unnamed | sort)" "$(printf '%s\n' 'old: 4, of these 1 dead' \
    'oldevents: 1, of these 0 dead' 'oldids: 2, of these 0 dead')" \
    'a sorted set and a stream'

# The queue is named, by the user or by a daemon: no warning.
rqd_start other <<C
queue "renamed" { key = "old" command = {"$T/good"} }
queue "oldids" { kind = "unique" key = "oldids" command = {"$T/good"} concurrency = 1 }
C
wait_ok 30 '[ "$(r llen old)" = 0 ]' 'another daemon serves the key'
wait_ok 20 '[ -z "$(unnamed | grep -v oldevents)" ]' 'so it has a name'
rqd_stop other
wait_ok 30 'unnamed | grep -q "^old: 1, of these 1 dead"' 'it is gone, and its dead letter shows again'

# forget
is "$(ctl -c "$T/rqd.conf" forget old --force -y | cut -d ' ' -f 1)" forgot 'rqctl forget'
is "$(r --raw zrange rqd:daemons:queues 0 -1 | grep -c '"key":"old"')" 0 'the index forgets it, too'
ok '[ -z "$(unnamed | grep "^old:")" ]' 'and nothing is said'

# Entries of the index that rqd did not write.
r zadd rqd:daemons:queues 9e9 '{' 9e9 '[]' 9e9 '{"key":7}' 9e9 '{"key":""}' 9e9 '"x"' 9e9 '{"key":"old","kind":"what"}' >/dev/null
r lpush old a >/dev/null
like "$(unnamed)" '^old: 1, of these 0 dead' 'an odd index'
r del rqd:daemons:queues >/dev/null
r set rqd:daemons:queues x >/dev/null
is "$(unnamed)" '' 'no index at all'
r del rqd:daemons:queues >/dev/null

# A list whose key only lacks the braces of a queue's key.
rqd_stop
QUEUES="$QUEUES braced {braced}"
rqd_start <<C
queue "loaded" { key = "{braced}" command = {"$T/good"} }
C
log_wait 30 event=redis_up
r lpush braced a >/dev/null
lacks() { sed -n 's/^warning: \(.*\): no queue reads it, .* rqctl queues --keys \(.*\) prints$/\1 \2/p'; }
is "$(check | lacks)" 'braced loaded' 'a list without the braces of a key'
wait_ok 20 '[ "$(ctl check | lacks)" = "braced {braced}" ]' 'without a configuration the advice has the key'
is "$(ctl queues --keys '{braced}')" '{braced}' 'which is what rqctl queues prints then'
