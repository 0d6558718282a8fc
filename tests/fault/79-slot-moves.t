#!/bin/sh
# Slots of a Redis Cluster that move while nothing is sent to them.  The daemon looks every
# 10 s: then an idle queue handles what is pushed to its new master.  Heartbeats go on where
# their slot stays half moved.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/fault/cluster.sh
. "$SRCDIR/tests/fault/cluster.sh"

cluster_start 3 1 --cluster-require-full-coverage no
KEY="{$(tag_of n1)}:a"
handler work <<'H'
echo "$RQD_ID" >>"$T/ran"
H
touch "$T/ran"
rqd_start <<C
redis { cluster = {"127.0.0.1:$PORT_n1", "127.0.0.1:$PORT_n2", "127.0.0.1:$PORT_n3"} timeout = 2s }
defaults { command = {"$T/work"} lease = 30s $AS }
queue "a" { key = "$KEY" }
queue "other" { key = "{$(tag_of n3)}:b" }
C
log_wait 20 event=ready

# -- a heartbeat ----------------------------------------------------------------------------

TO=n3
[ "$(owner_of rqd:daemons)" != n3 ] || TO=n1
wait_for 20 'c zrange rqd:daemons 0 -1 | grep -q .'
INSTANCE=$(c zrange rqd:daemons 0 -1)
beat() { printf 'asking\nzscore rqd:daemons %s\n' "$INSTANCE" | n $TO | tail -n 1; }
slot_open rqd:daemons $TO
n "$SLOT_FROM" migrate 127.0.0.1 "$(port_of $TO)" rqd:daemons 0 5000 >/dev/null
BEAT=$(beat)

# -- an idle queue -------------------------------------------------------------------------

push() {	# ID: to the master of the key
	_id=$1
	n "$(owner_of "$KEY")" lpush "$KEY" "{\"id\":\"$_id\"}" >/dev/null
	wait_for 40 'grep -qx "$_id" "$T/ran"' || fail "$_id: handled"
}

follows() {	# NAME MOVE: MOVE moves the slot
	_from=$(owner_of "$KEY")
	$2
	wait_for 30 '[ "$(owner_of "$KEY")" != "$_from" ]' || fail "$1: the slot is elsewhere"
	_since=$(msec)
	push "$1"
	_took=$(($(msec) - _since))
	ok '[ "$_took" -lt 15000 ]' "$1: an idle queue follows within 10 s"
}

move() {
	_to=n1
	[ "$_from" != n1 ] || _to=n2
	slot_move "$KEY" $_to
}
change_places() {
	_replica=$(replica_of "$_from")
	take_over "$_replica" || fail 'the replica is master'
}

push first
follows moved move
wait_ok 60 '[ "$(beat)" != "$BEAT" ]' 'a slot stays half moved: the heartbeat goes to its new master'
slot_move rqd:daemons $TO

# -- a queue whose slot stays half moved ------------------------------------------------------

# Some of its keys are there, so scripts are answered with TRYAGAIN.  The daemon tries again
# within a second each time.
_from=$(owner_of "$KEY") _to=n1
[ "$_from" != n1 ] || _to=n2
tries() { n "$_from" info errorstats | sed -n 's/^errorstat_TRYAGAIN:count=\([0-9]*\).*/\1/p'; }
slot_open "$KEY" $_to
wait_ok 60 '_tries=$(tries) && [ "${_tries:-0}" -ge 6 ]' 'half moved: its scripts do not run'
slot_move "$KEY" $_to
push half

# Keys that were armed count as changed, too.
follows failover change_places

is "$(log_count "event=redis_warning.*slot")" 0 'no warning of slots'
rqd_stop
