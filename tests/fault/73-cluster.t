#!/bin/sh
# A Redis Cluster: queues of every kind in slots of every master, and two daemons.  Slots
# move, one stays half moved for a while, a master changes places with its replica, a node
# forgets its scripts, and a master dies.  Nothing is lost, nothing runs twice but for that
# death, and the queues of other nodes go on.  77-cluster-run.t has more faults, and more load.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/fault/cluster.sh
. "$SRCDIR/tests/fault/cluster.sh"

HALF=3 PAUSE=3000	# seconds that a slot stays half moved; ms that a message may wait

cluster_start 3 1 --cluster-require-full-coverage no

# The hash tags of three slots: one of each master.
T1=$(tag_of n1) T2=$(tag_of n2) T3=$(tag_of n3)

handler work <<'H'
case $RQD_QUEUE in gone* | news) RQD_ID=$(cat) ;; esac
echo "$RQD_QUEUE $RQD_ID $(date +%s%3N)" >>"$T/ran"
H
touch "$T/ran"

configuration() {	# NAME
	cat >"$T/$1.in" <<C
redis { cluster = {"127.0.0.1:$PORT_n4", "127.0.0.1:$PORT_n1", "127.0.0.1:$PORT_n2"} timeout = 2s }
name = "$1"
http { listen = "unix:$T/$1.http" }
defaults { command = {"$T/work"} concurrency = 4 lease = 6s $AS }
queue "a1" { key = "{$T1}:a" }
queue "a2" { key = "{$T2}:a" }
queue "a3" { key = "{$T3}:a" }
queue "list1" { key = "{$T1}:list" kind = "list" }
queue "list2" { key = "{$T2}:list" kind = "list" }
queue "unique2" { key = "{$T2}:unique" kind = "unique" }
queue "stream3" { key = "{$T3}:stream" kind = "stream" }
queue "gone3" { key = "{$T3}:gone" kind = "expired" match = "session:*" notifications = "set" skew = 4s }
queue "s" { shards = 4 }
queue "news" { key = "news" kind = "channel" }
schedule "tick" { queue = "a3" every = 1s message = "{\"id\":\"tick\"}" }
C
}
for name in one two; do
	configuration $name
	rqd_start $name <"$T/$name.in"
	log_wait 20 event=ready 1 $name
done

# -- what was pushed, and what ran -----------------------------------------------------


# Pushes; writes the ids down once a replica has the messages, too.
push() {	# QUEUE KEY ID...
	_q=$1 _key=$2
	shift 2
	{
		for _id in "$@"; do
			case $_q in
			a* | list*) echo "lpush $_key '{\"id\":\"$_id\"}'" ;;
			unique*) echo "zadd $_key 0 $_id" ;;
			stream*) echo "xadd $_key * message '{\"id\":\"$_id\"}'" ;;
			esac
		done
		echo wait 1 500
	} | timeout 2 redis-cli -c -p "$PORT" 2>/dev/null | grep -v '^->' >"$T/said.$_q"
	[ "$(tail -n 1 "$T/said.$_q")" = 1 ] &&
	    [ "$(grep -cE '^[1-9][0-9]*(-[0-9]+)?$' "$T/said.$_q")" -eq $(($# + 1)) ] &&
	    printf "%s $(msec)\n" "$@" >>"$T/pushed.$_q"
}

# Pushes to a queue until $T/load is gone.
load() {	# QUEUE KEY
	: >"$T/pushed.$1"
	PORT=$(port_of "$(any_node)") _i=0
	while [ -e "$T/load" ]; do
		_i=$((_i + 1))
		push "$1" "$2" "$PHASE-$_i-a" "$PHASE-$_i-b" "$PHASE-$_i-c" || PORT=$(port_of "$(any_node)")
		[ -n "$RQD_TEST_LONG" ] || sleep 0.2
	done
}

load_begin() {	# PHASE
	PHASE=$1
	for _tag in "$T1" "$T2" "$T3"; do owner_of "{$_tag}" >"$T/owner.$_tag"; done
	touch "$T/load"
	while [ -e "$T/load" ]; do
		read -r _now _ </proc/uptime
		echo "$_now"
		sleep 0.2
	done >"$T/clock" &
	LOADS=$!
	while read -r _queue _key; do
		load "$_queue" "$_key" &
		LOADS="$LOADS $!"
	done <<L
a1 {$T1}:a
a2 {$T2}:a
a3 {$T3}:a
list2 {$T2}:list
unique2 {$T2}:unique
L
	wait_for 30 'ran a1 "$PHASE" && ran a2 "$PHASE" && ran a3 "$PHASE"'
}

ran() { grep -q "^$1 $2-" "$T/ran"; }	# QUEUE PHASE
ids() { grep "^$1 $PHASE-" "$T/ran" | cut -d ' ' -f 2 | sort; }	# QUEUE
missing() { cut -d ' ' -f 1 "$T/pushed.$1" | sort -u >"$T/sorted"; ids "$1" | uniq | comm -23 "$T/sorted" -; }

# The longest time in ms that a message of this phase has waited for its first run.
pause_of() {	# QUEUE
	grep "^$1 $PHASE-" "$T/ran" | cut -d ' ' -f 2,3 | awk '
	    NR == FNR { pushed[$1] = $2; next }
	    $1 in pushed { if ($2 - pushed[$1] > most) most = $2 - pushed[$1]; delete pushed[$1] }
	    END { print most + 0 }' "$T/pushed.$1" -
}

# How much longer than 0.2 s a sleep of 0.2 s took at most, in ms.
stall() {
	awk 'NR > 1 && $1 - last > most { most = $1 - last } { last = $1 }
	    END { printf("%d", most > 0.3 ? (most - 0.2) * 1000 : 0) }' "$T/clock"
}

# Each queue runs five more messages.
goes_on() {
	_since=$(msec)
	for _queue in a1 a2 a3 list2 unique2; do
		wait_ok 40 '[ "$(runs_since $_queue)" -ge 5 ]' "$PHASE: $_queue goes on then"
	done
}
runs_since() { awk -v q="$1" -v since="$_since" '$1 == q && $3 > since' "$T/ran" | wc -l; }	# QUEUE

# A machine that stands still makes a fault of its own: a master that said nothing is replaced.
# MOVES: tags whose master is to be another one.
see_masters() {
	for _tag in "$T1" "$T2" "$T3"; do
		case " $MOVES " in *" $_tag "*) continue ;; esac
		[ "$(owner_of "{$_tag}")" != "$(cat "$T/owner.$_tag")" ] || continue
		note "$PHASE: the slots of $_tag have another master"
		case $_tag in
		"$T1") _queues='a1' ;;
		"$T2") _queues='a2 list2 unique2' ;;
		"$T3") _queues='a3' ;;
		esac
		TWICE="$TWICE $_queues" STILL="$STILL $_queues"
	done
}

# TWICE: queues whose messages may run again; STILL: queues that may stand still.
load_end() {
	rm "$T/load"
	# shellcheck disable=SC2086
	wait $LOADS
	see_masters
	_stall=$(stall)
	[ "$_stall" -eq 0 ] || note "$PHASE: the machine kept a process waiting for $_stall ms"
	for _queue in a1 a2 a3 list2 unique2; do
		wait_ok 60 '[ -z "$(missing $_queue)" ]' "$PHASE: $_queue lost none of $(wc -l <"$T/pushed.$_queue")"
		case " $TWICE " in *" $_queue "*) ;; *)
			is "$(ids $_queue | uniq -d)" '' "$PHASE: nothing of $_queue ran twice" ;;
		esac
		_pause=$(pause_of $_queue)
		note "$PHASE: $_queue kept a message waiting for $_pause ms at most"
		case " $STILL " in *" $_queue "*) ;; *)
			ok '[ "$_pause" -lt $((PAUSE * SLOW + 5 * _stall)) ]' "$PHASE: $_queue went on" ;;
		esac
	done
	MOVES='' TWICE='' STILL=''
}
MOVES='' TWICE='' STILL=''

# -- all kinds ----------------------------------------------------------------------------

PORT=$PORT_n1
ALL='all-1 all-2 all-3 all-4 all-5 all-6 all-7 all-8 all-9'
# shellcheck disable=SC2086
{
	push a1 "{$T1}:a" $ALL
	push a2 "{$T2}:a" $ALL
	push a3 "{$T3}:a" $ALL
	push list1 "{$T1}:list" $ALL
	push list2 "{$T2}:list" $ALL
	push unique2 "{$T2}:unique" $ALL
	push stream3 "{$T3}:stream" $ALL
}
PHASE=all
for queue in a1 a2 a3 list1 list2 unique2; do
	wait_ok 60 '[ "$(ids $queue | wc -l)" -eq 9 ]' "$queue: all nine have run"
done
for id in $ALL; do
	RQD_CONFIG=$T/one.conf "$RQCTL" push s "{\"id\":\"$id\"}" >/dev/null
done
wait_ok 60 '[ "$(ids s | wc -l)" -eq 9 ]' 's: all nine have run, of four shards'
wait_ok 60 '[ "$(grep -c "^stream3 " "$T/ran")" -eq 9 ]' 'stream3: all nine have run'
wait_ok 20 'n n3 publish news hello >/dev/null; grep -q "^news " "$T/ran"' 'a channel is heard'
wait_ok 20 'log_count "event=subscribed.*queue=gone3" one >/dev/null && log_count "event=subscribed.*queue=gone3" two >/dev/null' \
    'both daemons listen to every master'
for i in n1 n2 n3; do
	wait_for 20 'n $i config get notify-keyspace-events | grep -q x'
done
for i in 1 2 3; do
	eval "tag=\$T$i"
	c set "session:{$tag}" x px 100 >/dev/null
done
wait_ok 20 '[ "$(grep -c "^gone3 session:" "$T/ran")" -eq 3 ]' 'keys expire on each master, and their names are heard once'
wait_ok 20 '[ "$(grep -c "^a3 tick" "$T/ran")" -ge 2 ]' 'a schedule pushes'
is "$(c zcard rqd:daemons)" 2 'both daemons are in the index'
wait_ok 20 '[ "$(curl -s --unix-socket "$T/one.http" http://x/readyz)" = ready ]' '/readyz: ready'

# -- a slot moves ----------------------------------------------------------------------------

setslot() {	# SLOT FROM TO
	n "$3" cluster setslot "$1" importing "$(n "$2" cluster myid)" >/dev/null
	n "$2" cluster setslot "$1" migrating "$(n "$3" cluster myid)" >/dev/null
}
some_keys() { n "$2" cluster getkeysinslot "$1" "$3"; }
move_keys() {	# SLOT FROM TO NUMBER
	# shellcheck disable=SC2046
	n "$2" migrate 127.0.0.1 "$(port_of "$3")" '' 0 5000 keys $(some_keys "$1" "$2" "$4") >/dev/null
}
end_move() {	# SLOT FROM TO
	while [ -n "$(some_keys "$1" "$2" 1)" ]; do move_keys "$1" "$2" "$3" 20; done
	for _node in "$3" "$2" n1 n2 n3; do
		n "$_node" cluster setslot "$1" node "$(n "$3" cluster myid)" >/dev/null 2>&1
	done
}
SLOT1=$(n n1 cluster keyslot "{$T1}")

load_begin move
setslot "$SLOT1" n1 n2
end_move "$SLOT1" n1 n2
is "$(owner_of "{$T1}")" n2 'a slot has moved'
goes_on
MOVES=$T1 STILL=a1	# until all keys are there
load_end

load_begin half
setslot "$SLOT1" n2 n1
move_keys "$SLOT1" n2 n1 1
sleep $HALF
end_move "$SLOT1" n2 n1
goes_on
MOVES=$T1 STILL=a1
load_end

# -- scripts are forgotten, a master and its replica change places ------------------------------

load_begin flush
n n3 script flush >/dev/null
goes_on
load_end

load_begin failover
REPLICA=$(replica_of "$(owner_of "{$T2}")")
ok 'take_over "$REPLICA"' 'the replica of a master is one now'
goes_on
MOVES=$T2
load_end

# -- a master dies --------------------------------------------------------------------------------

load_begin death
MASTER=$(owner_of "{$T1}")
REPLICA=$(replica_of "$MASTER")
node_kill "$MASTER"
wait_ok 60 'n $REPLICA role | grep -q master' 'the replica of a dead master is one now'
NEW=$(msec)
wait_ok 60 '[ "$(grep "^a1 death-" "$T/ran" | tail -n 1 | cut -d " " -f 3)" -gt "$NEW" ]' 'its queues go on there'
note "a1 resumed $(($(grep "^a1 death-" "$T/ran" | awk -v new="$NEW" '$3 > new { print $3; exit }') - NEW)) ms after"
goes_on
patience 15000
MOVES=$T1 STILL=a1 TWICE=a1
load_end

for name in one two; do
	rqd_stop $name
done
