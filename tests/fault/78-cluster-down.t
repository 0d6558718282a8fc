#!/bin/sh
# A queue with shards on a Redis Cluster.  The master of its key without a shard is
# down, and no replica replaces it: the messages of the other shards run, and rqctl
# reports the state.  --until-empty ends when the last master is back and its messages
# have run.  A master that hangs holds up only its own shards, although the daemon waits
# for its answer for as long as redis.timeout.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/fault/cluster.sh
. "$SRCDIR/tests/fault/cluster.sh"

cluster_start 3 0 --cluster-require-full-coverage no
: >"$T/done"
handler work <<'H'
case $RQD_ID in slow*) : >"$T/began.$RQD_ID"; until [ -e "$T/slow.may" ]; do sleep 0.1; done ;; esac
echo "$RQD_ID" >>"$T/done"
H
config_write rqd <<C
redis { cluster = {"127.0.0.1:$PORT_n1", "127.0.0.1:$PORT_n2", "127.0.0.1:$PORT_n3"} timeout = 2s }
http { listen = "unix:$T/http" }
queue "orders" { command = {"$T/work"} concurrency = 8 shards = 4 lease = 3s $AS }
C
x() { "$RQCTL" -c "$T/rqd.conf" "$@"; }
push_each() {	# NAME: one to each shard whose master answers
	_id=$1
	for _key in $(x queues --keys orders); do
		# For a moment a busy machine's nodes may believe that more of them are down.
		wait_for 30 '! timeout 10 redis-cli -c -p "$(port_of "$(any_node)")" \
		    lpush "$_key" "{\"id\":\"$_id-$_key\"}" 2>&1 | grep -q CLUSTERDOWN'
	done
}
DOWN=$(owner_of '{orders}')
HERE=$(for k in $(x queues --keys orders); do owner_of "$k"; done | grep -c -v "^$DOWN$")

# -- a daemon that goes on -------------------------------------------------------------------

rqd_run rqd -c "$T/rqd.conf"
push_each all
wait_ok 30 '[ "$(sort -u "$T/done" | wc -l)" = 4 ]' 'the messages of all shards run'
node_kill "$DOWN"
log_wait 30 "event=redis_down.*:$(port_of "$DOWN")"
push_each rest
wait_ok 30 '[ "$(grep -c ^rest "$T/done")" = "$HERE" ]' 'the master of the plain key is down: the other shards go on'
blocked() { curl -s --unix-socket "$T/http" http://x/metrics | sed -n 's/^rqd_queue_blocked{.*reason="redis".*} //p'; }
is "$(blocked)" 0 'the queue is not blocked'
for _node in $NODES; do
	[ "$_node" = "$DOWN" ] || eval "kill -STOP \$PID_$_node"
done
wait_ok 30 '[ "$(blocked)" = 1 ]' 'no master answers: it is'
for _node in $NODES; do
	[ "$_node" = "$DOWN" ] || eval "kill -CONT \$PID_$_node"
done
wait_ok 60 '[ "$(blocked)" = 0 ]' 'two answer again: it is not'
rqd_stop

# -- until all is done ---------------------------------------------------------------------------

node_again "$DOWN"
wait_for 30 cluster_is_ok
push_each last
OTHER=$(for k in $(x queues --keys orders); do owner_of "$k"; done | grep -v "^$DOWN$" | head -n 1)
downs=$(log_count "event=redis_down.*:$(port_of "$OTHER")")
node_kill "$OTHER"
rqd_spawn rqd -c "$T/rqd.conf" --until-empty
wait_ok 30 '[ "$(grep -c ^last "$T/done")" -ge 1 ]' 'a master of shards is down: the rest runs'
log_wait 30 "event=redis_down.*:$(port_of "$OTHER")" $((downs + 1))
in_flight() { for _key in $(x queues --keys orders); do n "$DOWN" -c exists "${_key}BACKUP" 2>/dev/null; done | grep -c 1; }
wait_for 30 '[ "$(in_flight)" = 0 ]'
# Each shard is looked at once more before a daemon ends.
sleep 1
ok 'is_child "$PID"' '--until-empty does not end yet'
node_again "$OTHER"
rqd_wait rqd 60
is "$STATUS" 0 'it ends when that master is back'
is "$(grep -c ^last "$T/done")" 4 'and all messages have run'

# A shard that was empty when its master went down may hold messages when the master is
# back.
wait_for 30 cluster_is_ok
slow=$(for k in $(x queues --keys orders); do [ "$(owner_of "$k")" != "$DOWN" ] || echo "$k"; done | head -n 1)
c lpush "$slow" '{"id":"slow"}' >/dev/null
rqd_run rqd -c "$T/rqd.conf" --until-empty
wait_for 30 'n "$DOWN" exists "${slow}BACKUP" | grep -q 1'
downs=$(log_count "event=redis_down.*:$(port_of "$OTHER")")
node_kill "$OTHER"
log_wait 30 "event=redis_down.*:$(port_of "$OTHER")" $((downs + 1))
touch "$T/slow.may"
wait_ok 30 'grep -q slow "$T/done" && [ "$(n "$DOWN" exists "${slow}BACKUP")" = 0 ]' 'the last message has run, and its queue was empty elsewhere'
sleep 1
ok 'is_child "$PID"' '--until-empty waits for the master that is down'
node_again "$OTHER"
rqd_wait rqd 60
is "$STATUS" 0 'and ends when it is back'

# -- a master that hangs ---------------------------------------------------------------------------

# All handlers are busy, and all shards have more: fetches ask that master's, too.
wait_for 30 cluster_is_ok
patience 200000
: >"$T/done"
rm -f "$T/slow.may" "$T"/began.*
sed -i 's/timeout = 2s/timeout = 100s/; s/lease = 3s/lease = 300s/' "$T/rqd.conf"
rqd_run rqd -c "$T/rqd.conf"
KEYS=$(x queues --keys orders)
THERE=$(for k in $KEYS; do [ "$(owner_of "$k")" = "$DOWN" ] || echo "$k"; done)
push_to() {	# NAME KEY...
	_name=$1
	shift
	for _key in "$@"; do n "$(any_node)" -c lpush "$_key" "{\"id\":\"$_name-$_key\"}" >/dev/null; done
}
begun() { find "$T" -name 'began.*' | wc -l; }
push_to slow1 $KEYS
push_to slow2 $KEYS
wait_for 30 '[ "$(begun)" = 8 ]'
for _i in 1 2 3; do push_to "waits$_i" $KEYS; done
eval "kill -STOP \$PID_$DOWN"
touch "$T/slow.may"
done_of() { grep -c "^$1" "$T/done"; }
all() { echo $(($1 * $(echo "$THERE" | wc -l))); }
wait_ok 60 '[ "$(done_of waits)" = "$(all 3)" ]' 'a master hangs: the other shards go on'
for _i in 1 2 3; do
	push_to "more$_i" $THERE
	wait_for 60 '[ "$(done_of "more$_i")" = "$(all 1)" ]'
done
is "$(done_of more)" "$(all 3)" 'and on'
eval "kill -CONT \$PID_$DOWN"
wait_ok 60 '[ "$(done_of waits)" = 12 ]' 'it answers: its messages run'
rqd_stop
is "$(sort "$T/done" | uniq -d)" '' 'each has run once'
is "$(for k in $KEYS; do c llen "$k"; c zcard "${k}BACKUP"; c zcard "${k}RETRY"; done | sort -u)" 0 'nothing is left'
