#!/bin/sh
# The acceptance run on a Redis Cluster: three masters with three replicas, four daemons,
# queues of every kind in slots of every master, and producers that never stop.  Nothing is
# lost that Redis has kept, nothing runs twice without a fault that explains it, queues that a
# fault does not concern go on, and those that it concerns go on once their slot has a master.
#
# One master has a network of its own, which can be cut: a name space, for root.  Elsewhere
# that master is stopped with SIGSTOP for as long, and the test says so.
#
# ./check all does all of it, one to three minutes; ./check the partition only: the other
# faults are in 73-cluster.t in short, and with sanitizers that has to do, too.  With RQD_SOAK
# set, as in make soak, it draws faults for SOAK_SECONDS (300), from SEED where that is given.
#
# The test asserts five times the times that rqd has to keep, and prints what they were.
#
# shellcheck disable=SC2046

if [ "$(id -u)" -eq 0 ] && [ -z "$OWN_NETWORK" ] && unshare --net true 2>/dev/null; then
	OWN_NETWORK=yes
	export OWN_NETWORK
	exec unshare --net sh "$0"
fi
# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/fault/cluster.sh
. "$SRCDIR/tests/fault/cluster.sh"

command -v python3 >/dev/null || skip_all 'no python3'
STOPS=5 RESUMES=10	# seconds: five times what is wanted
LONG=$RQD_TEST_LONG
[ "$SLOW" -eq 1 ] || LONG=''

# -- the network of n3 -----------------------------------------------------------------

# All others are at 10.9.0.1.
network() {
	[ -n "$OWN_NETWORK" ] && ip link set lo up &&
	    ip link add name here type veth peer name there || return 1
	unshare --net sleep 1000 &
	_netns=$!
	OTHER_PIDS="$OTHER_PIDS $_netns"
	wait_for 30 '[ "$(readlink /proc/$_netns/ns/net)" != "$(readlink /proc/$$/ns/net)" ]'
	IN_n3="nsenter --target $_netns --net"
	ip link set there netns $_netns && ip address add 10.9.0.1/24 dev here &&
	    ip link set here up && $IN_n3 ip link set lo up &&
	    $IN_n3 ip address add 10.9.0.3/24 dev there && $IN_n3 ip link set there up
}

if network 2>"$T/network.out"; then
	for i in 1 2 4 5 6 7; do eval "HOST_n$i=10.9.0.1"; done
	HOST_n3=10.9.0.3
	# Packets are lost silently, as when somebody pulls the cable.
	pull() { $IN_n3 ip link set there down; }
	plug() { $IN_n3 ip link set there up; }
else
	[ -z "$OWN_NETWORK" ] || ip link set lo up
	IN_n3=''
	note 'no network name space for this process: n3 is stopped with SIGSTOP in place of a partition'
	pull() { kill -STOP "$PID_n3"; }
	plug() { kill -CONT "$PID_n3"; }
fi

cluster_start 3 1 --cluster-require-full-coverage no

# -- queues, daemons, producers -----------------------------------------------------------

# The hash tags of three slots, one of each master; and slot 0, which redis-cli moves first.
T1=$(tag_of n1) T2=$(tag_of n2) T3=$(tag_of n3) T0=06S
is "$(n n1 cluster keyslot "{$T0}")" 0 'the moving queue has the first slot'

clock() { read -r _now _ </proc/uptime; echo "$_now"; }
handler work <<'H'
read -r now _ </proc/uptime
case $RQD_QUEUE in gone) read -r RQD_ID ; RQD_ID=${RQD_ID##*:} ;; news | pattern) RQD_ID=heard ;; esac
echo "$RQD_QUEUE $RQD_ID $now $1" >>"$T/ran"
case $RQD_ID in *[37]) sleep 0.4 ;; esac	# so that some are in flight at each fault
H
touch "$T/ran" "$T/pushed" "$T/faults"

configuration() {	# NAME
	cat <<C
redis { cluster = {"$(address_of n4)", "$(address_of n1)", "$(address_of n2)"} timeout = 2s }
name = "$1"
log { level = "info" }
http { listen = "unix:$T/$1.http" }
defaults { command = {"$T/work", "$1"} concurrency = 4 lease = 10s $AS }
queue "ack0" { key = "{$T0}:ack" }
queue "ack1" { key = "{$T1}:ack" }
queue "ack2" { key = "{$T2}:ack" }
queue "ack3" { key = "{$T3}:ack" }
queue "list1" { key = "{$T1}:list" kind = "list" }
queue "list3" { key = "{$T3}:list" kind = "list" }
queue "unique2" { key = "{$T2}:unique" kind = "unique" }
queue "unique3" { key = "{$T3}:unique" kind = "unique" }
queue "stream1" { key = "{$T1}:stream" kind = "stream" }
queue "stream3" { key = "{$T3}:stream" kind = "stream" }
queue "gone" { key = "{$T2}:gone" kind = "expired" match = "session:*" notifications = "set" }
queue "shards" { shards = 4 }
queue "news" { key = "news" kind = "channel" }
queue "pattern" { key = "pattern.*" kind = "pattern" }
schedule "tick" { queue = "ack3" every = 1s message = "{\"id\":\"tick\"}" }
C
}
for name in one two three four; do
	configuration $name >"$T/$name.in"
	rqd_start $name <"$T/$name.in"
done
for name in one two three four; do
	wait_for 30 '[ "$(curl -s --unix-socket "$T/$name.http" http://x/readyz)" = ready ]' ||
	    fail "$name is ready"
done

# The queues that producers push to all the time: label, kind, key.
cat >"$T/labels" <<L
ack0 ack {$T0}:ack
ack1 ack {$T1}:ack
ack2 ack {$T2}:ack
ack3 ack {$T3}:ack
list1 list {$T1}:list
list3 list {$T3}:list
unique2 unique {$T2}:unique
unique3 unique {$T3}:unique
stream1 stream {$T1}:stream
stream3 stream {$T3}:stream
$("$RQCTL" -c "$T/one.conf" queues --keys shards | sed 's/{shards\(.*\)}/shards\1 ack &/')
L
python3 "$SRCDIR/tests/fault/cluster_load.py" "$T/pushed" \
    $(for _n in $NODES; do address_of $_n; done) <"$T/labels" >"$T/load.out" 2>&1 &
LOAD=$!
OTHER_PIDS="$OTHER_PIDS $LOAD"

judge() {	# WHAT [FILE [ARGUMENT...]]
	_what=$1 _pushed=${2:-$T/pushed}
	shift $(($# > 2 ? 2 : $#))
	python3 "$SRCDIR/tests/fault/cluster_judge.py" "$_what" "$_pushed" "$T/ran" "$T/faults" "$@"
}
all_run() {	# SECONDS DESCRIPTION: all that was pushed up to now
	cp "$T/pushed" "$T/until"
	wait_ok "$1" '[ -z "$(judge waiting "$T/until")" ]' "$2" ||
	    note "waiting: $(judge waiting "$T/until")"
}
while read -r label _ key; do
	echo "$label $(n n1 cluster keyslot "$key")"
done <"$T/labels" >"$T/slots"
owners() {	# lines "LABEL PORT"
	n "$(any_node)" cluster nodes | awk '
	    NR == FNR { slot[$1] = $2; next }
	    $3 ~ /master/ {
		port = $2
		sub(/@.*/, "", port)
		sub(/.*:/, "", port)
		for (i = 9; i <= NF; i++) {
			split($i, range, "-")
			for (label in slot)
				if ($i !~ /\[/ && slot[label] >= range[1] + 0 &&
				    slot[label] <= (range[2] != "" ? range[2] : range[1]) + 0)
					print label, port
		}
	    }' "$T/slots" - | sort
}
labels_of() {	# NODE
	owners | sed -n "s/ $(port_of "$1")\$//p" | tr '\n' ' '
}
is_master() { [ "$(timeout 2 $ASK -h "$(host_of "$1")" -p "$(port_of "$1")" role 2>/dev/null | sed -n 1p)" = master ]; }

# Each master has a replica that has its data.
is_whole() {
	cluster_is_ok || return 1
	[ "$(for _node in $NODES; do n "$_node" info replication; done | tr -d '\r' |
	    grep -cE '^(master_link_status:up|connected_slaves:1)$')" = 6 ]
}

fault_begin() {	# NAME AGAIN LABEL...: as cluster_judge.py has them
	note "-- $*"
	FAULT=$1 AGAIN=$2
	shift 2
	CONCERNED=$*
	owners >"$T/owners"
	FROM=$(clock) CHANGED=$FROM
}
# Its slots have a master again, that node.
replaced() {
	wait_ok 30 'is_master $REPLICA' "$FAULT: $REPLICA is the master"
	CHANGED=$(clock)
}
# A machine that stands still makes a fault of its own: a master that said nothing is replaced.
see_surprises() {
	_surprised=$(owners | comm -13 "$T/owners" - | while read -r _label _; do
		case " $CONCERNED " in *" $_label "*) ;; *) echo "$_label" ;; esac
	done)
	[ -n "$_surprised" ] || return 0
	note "$FAULT: another master was replaced, that of" $_surprised
	echo "surprise $FROM $(clock) all" $_surprised >>"$T/faults"
}
# Every queue that it concerns has run something since.
have_resumed() {
	judge resumed "$T/pushed" "$CHANGED" $CONCERNED >"$T/resumed"
	[ "$(wc -l <"$T/resumed")" -eq "$(echo "$CONCERNED" | wc -w)" ]
}
# Ends when all that was pushed up to now has run.
fault_over() {
	wait_ok 60 have_resumed "$FAULT: every queue that it concerns has run something"
	wait_ok 60 is_whole "$FAULT: the cluster is whole"
	all_run 90 "$FAULT: all that was pushed has run"
	patience 15000
	echo "$FAULT $FROM $(clock) $AGAIN $CONCERNED" >>"$T/faults"
	see_surprises
	note "$FAULT: ran ms after the change: $(tr '\n' ',' <"$T/resumed")"
	is "$(awk -v most=$((RESUMES * SLOW * 1000)) '$2 > most' "$T/resumed")" '' "$FAULT: they went on in time"
}
all_run 60 'all queues run what is pushed'

# -- the faults -------------------------------------------------------------------------------

# A master dies; another takes over, and it comes back as its replica.
master_dies() {	# KEY
	_dies=$(owner_of "$1")
	REPLICA=$(replica_of "$_dies")
	fault_begin "$_dies-killed" all $(labels_of "$_dies")
	node_kill "$_dies"
	replaced
	node_again "$_dies"
	fault_over
}

# Its master lets it.  The others vote for one of its replicas once in 3 s, and each try
# has 5 s.
takes_over() {	# REPLICA
	REPLICA=$1
	patience 1500
	for _try in 1 2 3 4 5; do
		n "$REPLICA" cluster failover >/dev/null
		wait_for 8 'is_master $REPLICA' && return
	done
}

# A master and its replica change places.
change_places() {	# REPLICA
	fault_begin "$1-takes-over" none $(labels_of "$(node_at "$(n "$1" role | sed -n 3p)")")
	takes_over "$1"
	replaced
	fault_over
}

# Its first slot, which is that of ack0.
reshard() {	# FROM TO
	redis-cli --cluster reshard "$(address_of "$2")" --cluster-from "$(node_id "$1")" \
	    --cluster-to "$(node_id "$2")" --cluster-slots 1 --cluster-yes >"$T/reshard.out" 2>&1 ||
	    { fail "$FAULT: redis-cli moves a slot"; note "$(tail -n 20 "$T/reshard.out")"; }
	CHANGED=$(clock)
	is "$(owner_of "{$T0}")" "$2" "$FAULT: $2 has the slot"
}
slot_moves() {	# TO
	fault_begin "reshard-to-$1" none ack0
	reshard "$(owner_of "{$T0}")" "$1"
	fault_over
}
slot_stays_half_moved() {	# TO SECONDS
	fault_begin "half-moved-to-$1" none ack0
	slot_open "{$T0}" "$1"
	n "$SLOT_FROM" migrate "$(host_of "$1")" "$(port_of "$1")" '' 0 5000 \
	    keys $(n "$SLOT_FROM" cluster getkeysinslot 0 1) >/dev/null
	sleep "$2"
	slot_move "{$T0}" "$1"
	CHANGED=$(clock)
	is "$(owner_of "{$T0}")" "$1" "$FAULT: it has the slot"
	fault_over
}

scripts_forgotten() {	# NODE
	fault_begin "$1-forgets-scripts" none
	n "$1" script flush >/dev/null
	fault_over
}

# Cut off for longer than the timeout of the cluster, 1.5 s, and for 3 s once it is replaced.
partition() {
	is_master n3 || takes_over n3
	wait_for 60 is_whole
	REPLICA=$(replica_of n3)
	fault_begin partition all $(labels_of n3)
	patience 1500
	pull
	replaced
	sleep 3
	plug
	wait_ok 60 '! is_master n3' 'partition: n3 is a replica when it is back'
	fault_over
}

# Cut off for a moment: nobody replaces it.
cable_is_loose() {
	is_master n3 || takes_over n3
	patience 15000
	fault_begin loose-cable none $(labels_of n3)
	pull
	sleep 0.7
	plug
	CHANGED=$(clock)
	fault_over
}

node_comes_and_goes() {
	fault_begin node-added none ack0
	rm -rf "$T/n7"
	node_start n7
	redis-cli --cluster add-node "$(address_of n7)" "$(address_of n1)" >"$T/add.out" 2>&1 ||
	    fail 'redis-cli adds a node'
	wait_ok 60 cluster_is_ok 'all nodes know the new one'
	_owner=$(owner_of "{$T0}")
	reshard "$_owner" n7
	all_run 90 'node-added: all that was pushed has run'
	reshard n7 "$_owner"
	redis-cli --cluster del-node "$(address_of n1)" "$(node_id n7)" >"$T/del.out" 2>&1 ||
	    fail 'redis-cli removes a node'
	NODES=${NODES% n7}
	node_kill n7
	fault_over
}

# -- the soak: any of them, and daemons that are killed or hang meanwhile ------------------------

LABELS=$(cut -d ' ' -f 1 "$T/labels" | tr '\n' ' ')
draw() { RNG=$(((RNG * 1103515245 + 12345) & 0x7fffffff)); DRAWN=$((RNG / 65536 % $1)); }
draw_node() { draw 3; eval "NODE=\$(owner_of \"{\$T$((DRAWN + 1))}\")"; }
draw_other() {	# a master that has not the moving slot
	_has=$(owner_of "{$T0}")
	draw_node
	while [ "$NODE" = "$_has" ]; do draw_node; done
}
draw_fault() {
	draw 12
	case $DRAWN in
	0 | 1 | 2) draw_node; master_dies "{$(eval "echo \$T$((DRAWN + 1))")}" ;;
	3 | 4) draw_node; change_places "$(replica_of "$NODE")" ;;
	5) draw_other; slot_moves "$NODE" ;;
	6) draw_other; draw 8; slot_stays_half_moved "$NODE" "$DRAWN" ;;
	7) draw_node; scripts_forgotten "$NODE" ;;
	8 | 9) partition ;;
	10) cable_is_loose ;;
	11) node_comes_and_goes ;;
	esac
}
# Half of the faults have a daemon in trouble beside them.
soak() {	# SECONDS
	RNG=${SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')} _faults=0
	note "SEED=$RNG"
	_until=$(($(date +%s) + $1))
	while [ "$(date +%s)" -lt $_until ] && [ "$TESTS_FAILED" -eq 0 ]; do
		draw 4
		HURT=$(echo one two three four | cut -d ' ' -f $((DRAWN + 1))) HURT_FROM=$(clock)
		draw 4
		HOW=$DRAWN
		case $HOW in
		0) note "-- $HURT is killed"; rqd_kill9 $HURT ;;
		1) note "-- $HURT hangs"; rqd_signal STOP $HURT ;;
		esac
		draw_fault
		case $HOW in
		0) rqd_start $HURT <"$T/$HURT.in" ;;
		1) rqd_signal CONT $HURT ;;
		*) continue ;;
		esac
		all_run 90 'all that was pushed has run'
		echo "$HURT-hurt $HURT_FROM $(clock) by:$HURT $LABELS" >>"$T/faults"
	done
	note "$(wc -l <"$T/faults") faults, $(wc -l <"$T/pushed") messages"
}

if [ -n "$RQD_SOAK" ]; then
	STOPS=1000 RESUMES=1000		# with hung daemons, that of a lease
	soak "${SOAK_SECONDS:-300}"
elif [ -n "$LONG" ]; then
	slot_moves n2
	slot_stays_half_moved n1 20
	scripts_forgotten n3
	for tag in $T1 $T2 $T3; do master_dies "{$tag}"; done
	for node in n1 n2; do is_master $node || change_places $node; done
	partition
	cable_is_loose
	node_comes_and_goes
else
	partition
fi

# -- the end ---------------------------------------------------------------------------------

# A channel, to which nobody publishes all the time: each daemon listens to each master.
heard() { grep -c "^$1 heard" "$T/ran"; }
before=$(heard news)
wait_ok 30 'c publish news hello >/dev/null; [ "$(heard news)" -ge $((before + 8)) ]' 'a channel is heard'
before=$(heard pattern)
wait_ok 30 'c publish pattern.x hello >/dev/null; [ "$(heard pattern)" -ge $((before + 8)) ]' 'and a pattern'
for i in 1 2 3; do
	eval "tag=\$T$i"
	wait_ok 30 'c set "session:{$tag}:e$i" x px 50 >/dev/null; sleep 0.2; grep -q "^gone e$i " "$T/ran"' \
	    "keys of T$i expire, and their names are heard"
done
ticks=$(grep -c '^ack3 tick' "$T/ran")
wait_ok 30 '[ "$(grep -c "^ack3 tick" "$T/ran")" -gt $((ticks + 1)) ]' 'a schedule pushes'

touch "$T/pushed.stop"
wait_for 30 '! is_alive $LOAD' || fail 'the producers end'
all_run 90 "all $(wc -l <"$T/pushed") messages have run"
is "$(cat "$T/load.out")" '' 'no producer failed'
is "$(judge lost)" '' 'none that a replica had is lost'
is "$(judge twice)" '' 'none ran twice without a fault that explains it'
note "$(judge again) ran twice after a fault that explains it"
judge waited >"$T/waited"
note 'messages that no fault concerned waited:'
note "$(cat "$T/waited")"
stall=$(judge stall)
note "the longest time in which nothing was pushed: $stall ms"
is "$(awk -v most=$((STOPS * SLOW * 1000 + 3 * stall)) '$NF > most' "$T/waited")" '' 'queues go on that no fault concerns'
for name in one two three four; do
	rqd_stop $name
done
