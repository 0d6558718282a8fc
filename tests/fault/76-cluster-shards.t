#!/bin/sh
# A queue with shards on a Redis Cluster: its keys are on all masters, and when one of
# these dies or gives its slots away, every message is handled.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/fault/cluster.sh
. "$SRCDIR/tests/fault/cluster.sh"

cluster_start 3 3
: >"$T/done"
handler work <<'H'
echo "$RQD_ID" >>"$T/done"
H
rqd_start <<C
redis { cluster = {"127.0.0.1:$PORT_n1", "127.0.0.1:$PORT_n2", "127.0.0.1:$PORT_n3"} }
queue "orders" { command = {"$T/work"} concurrency = 8 shards = 16 }
C
x() { "$RQCTL" -c "$T/rqd.conf" "$@"; }
distinct() { sort -u "$T/done" | wc -l; }
push() {	# FROM TO
	seq "$1" "$2" | sed 's/.*/{"id":"m&"}/' | x push orders --lines >/dev/null
	# WAIT is for what its own connection wrote; what was written before is older.  Any replica may
	# take over: each has it.
	for _n in n1 n2 n3; do
		eval "_key=\$KEY_$_n"
		printf 'set %s.written x\nwait 3 5000\n' "$_key" | n $_n >/dev/null 2>&1
	done
}
log_wait 20 event=redis_up
for k in $(x queues --keys orders); do
	_owner=$(owner_of "$k")
	eval "KEY_$_owner=\$k"
	echo "$_owner" >>"$T/owner"
done
sort "$T/owner" | uniq -c >"$T/owners"
is "$(awk '$1 == 5 || $1 == 6' "$T/owners" | wc -l)" 3 'the sixteen lie evenly on three masters'

push 1 200
wait_ok 30 '[ "$(distinct)" = 200 ]' 'the messages of all masters are handled'
is "$(sort "$T/done" | uniq -d)" '' 'none twice'

# Its replica takes over; the other masters' shards need not wait for that.
x pause orders >/dev/null
push 201 500
node_kill n2
wait_ok 90 'x resume orders >/dev/null 2>&1' 'resume, once a replica has taken over'
wait_ok 90 '[ "$(distinct)" = 500 ]' 'a master dies: all are handled'
push 501 600
wait_ok 90 '[ "$(distinct)" = 600 ]' 'and what comes after it'
wait_ok 10 'x status orders | grep -Eq "^orders +0 +0/8 +0 +0 +0 "' 'nothing is left'
c lpush orders nowhere >/dev/null
like "$(x check)" 'warning: orders: no queue reads it, .*: 1; push to the keys that rqctl queues --keys orders prints' 'check: a push to the name'
c del orders >/dev/null
is "$(x check orders | grep -v 'master\|replica\|cluster')" '' 'check finds nothing wrong with the queue'
