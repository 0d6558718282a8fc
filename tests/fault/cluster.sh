# A Redis Cluster on loopback, sourced after tests/lib.sh.
#
#	cluster_start 3			# masters n1 n2 n3: PORT_n1, PID_n1, ...
#	cluster_start 3 1 --save ''	# and a replica of each, n4 n5 n6; options for all nodes
#	node_kill n1; node_again n1	# kill -9, and again on its port, with what it had saved
#	patience 15000			# ms until a node that says nothing is replaced
#	n n1 cluster nodes		# redis-cli to one node
#	c get x				# redis-cli -c: follows redirections
#	tag_of n2			# a hash tag with a slot of n2
#	replica_of n2			# its replica
#	owner_of '{orders}'		# the name of the master of that key, as n1 sees it
#	slot_open '{orders}' n2		# its slot begins to move to n2; no key has moved
#	slot_move '{orders}' n2		# it moves, or goes on to
#	HOST_n3=10.9.0.3 IN_n3='nsenter ...'	# before cluster_start: where n3 is, and its prefix
#
# A node's bus has its port and 10,000.  So ports are 20000 to 21999: the buses then are above
# those of free_port, and below the ports that the kernel gives to connections.
#
# On a loaded machine a node may say nothing for seconds, and must not be replaced for that.
# So the nodes are patient, until one is to be replaced.
#
# shellcheck shell=sh disable=SC2016,SC2034,SC2086,SC2154

command -v redis-server >/dev/null || skip_all 'no redis-server'

NODES='' SLOT_OPEN=''
port_of() { eval "echo \$PORT_$1"; }
host_of() { eval "echo \${HOST_$1:-127.0.0.1}"; }
address_of() { echo "$(host_of "$1"):$(port_of "$1")"; }
n() {
	eval "_at=\${HOST_$1:-127.0.0.1} _at_port=\$PORT_$1"
	shift
	$ASK -h "$_at" -p "$_at_port" "$@"
}
c() { n n1 -c "$@"; }

# It is this process that answers there, not another test's.
node_answers() { $ASK -h "$3" -p "$2" info server 2>/dev/null | tr -d '\r' | grep -qx "process_id:$1"; }

node_run() {	# NAME PORT OPTION...; false: the port is another's
	_name=$1 _port=$2 _host=$(host_of "$1")
	shift 2
	mkdir -p "$T/$_name"
	eval "_in=\${IN_$_name:-}"
	$_in redis-server --port "$_port" --bind "$_host" --protected-mode no --dir "$T/$_name" --save '' \
	    --appendonly yes --appendfsync always --repl-diskless-sync-delay 0 \
	    --cluster-enabled yes --cluster-node-timeout 15000 "$@" >>"$T/$_name/log" 2>&1 &
	_pid=$!
	wait_for 30 'node_answers $_pid $_port $_host || ! is_child $_pid'
	is_child $_pid || return 1
	OTHER_PIDS="$OTHER_PIDS $_pid"
	eval "PID_$_name=$_pid PORT_$_name=$_port"
}

node_start() {	# NAME OPTION...
	_name=$1
	shift
	until _free=$(($(od -An -N2 -tu2 /dev/urandom) % 2000 + 20000)) &&
	    port_take $_free && node_run "$_name" $_free $CLUSTER_OPTIONS "$@"; do :; done
	NODES="$NODES $_name"
}

patience() {	# MILLISECONDS
	for _node in $NODES; do
		timeout 5 $ASK -h "$(host_of "$_node")" -p "$(port_of "$_node")" config set cluster-node-timeout "$1" >/dev/null 2>&1
	done
}

node_kill() {
	patience 1500
	eval "kill -KILL \$PID_$1; wait \$PID_$1 2>/dev/null"
}

node_again() {
	node_run "$1" "$(port_of "$1")" $CLUSTER_OPTIONS || fail "node $1 starts again"
}

# All nodes know each other, and each slot has a master.
cluster_is_ok() {
	_count=0
	for _node in $NODES; do _count=$((_count + 1)); done
	for _node in $NODES; do
		[ "$(n "$_node" cluster info 2>/dev/null | tr -d '\r' |
		    grep -cxE "cluster_state:ok|cluster_known_nodes:$_count")" = 2 ] || return 1
	done
}

cluster_start() {	# MASTERS [REPLICAS OF EACH [OPTION...]]
	_masters=$1 _replicas=${2:-0} _list=''
	shift $(($# > 2 ? 2 : $#))
	CLUSTER_OPTIONS=$*
	_i=0
	while [ $((_i += 1)) -le $((_masters + _masters * _replicas)) ]; do
		node_start "n$_i"
		_list="$_list $(address_of "n$_i")"
	done
	redis-cli --cluster create $_list --cluster-replicas "$_replicas" --cluster-yes \
	    >"$T/create.out" 2>&1 || fail 'the cluster is made'
	wait_for 30 cluster_is_ok || fail 'the cluster is up'
}

# The node's name by its port.
node_at() {
	for _node in $NODES; do
		[ "$(port_of "$_node")" != "$1" ] || echo "$_node"
	done
}

# A node that answers.
any_node() {
	for _node in $NODES; do
		[ "$(timeout 2 $ASK -h "$(host_of "$_node")" -p "$(port_of "$_node")" ping 2>/dev/null)" != PONG ] || break
	done
	echo "$_node"
}

owner_of() {	# KEY
	_alive=$(any_node)
	_slot=$(n "$_alive" cluster keyslot "$1")
	node_at "$(n "$_alive" cluster nodes | awk -v slot="$_slot" '$3 ~ /master/ {
		for (i = 9; i <= NF; i++) {
			split($i, range, "-")
			if ($i !~ /\[/ && slot >= range[1] && slot <= (range[2] != "" ? range[2] : range[1]))
				print $2
		} }' | sed 's/@.*//; s/.*://')"
}

node_id() { n "$1" cluster myid; }

# A hash tag whose slot is the node's.
tag_of() {	# NODE
	_k=0
	while [ "$(owner_of "{t$_k}")" != "$1" ]; do _k=$((_k + 1)); done
	echo "t$_k"
}

replica_of() {	# NODE
	for _node in $NODES; do
		[ "$(n "$_node" role | sed -n '1p;3p' | tr '\n' ' ')" != "slave $(port_of "$1") " ] || echo "$_node"
	done
}

# A loaded machine may take longer than the 5 s that each try has.
take_over() {	# REPLICA; false: it is none of the masters
	for _try in 1 2 3 4 5 6 7 8; do
		n "$1" cluster failover >/dev/null
		wait_for 8 "n $1 role | grep -q master" && return
	done
	return 1
}

slot_open() {	# KEY TO
	SLOT=$(n n1 cluster keyslot "$1") SLOT_FROM=$(owner_of "$1") SLOT_TO=$(node_id "$2") SLOT_OPEN="$1 $2"
	n "$2" cluster setslot "$SLOT" importing "$(node_id "$SLOT_FROM")" >/dev/null
	n "$SLOT_FROM" cluster setslot "$SLOT" migrating "$SLOT_TO" >/dev/null
}

# The target hears of it first, then the source, then the others.  With few processes: where a
# slot is open, somebody may wait for the end.
slot_move() {	# KEY TO
	[ "$SLOT_OPEN" = "$1 $2" ] || slot_open "$1" "$2"
	while _keys=$(n "$SLOT_FROM" cluster getkeysinslot "$SLOT" 1000) && [ -n "$_keys" ]; do
		n "$SLOT_FROM" migrate "$(host_of "$2")" "$(port_of "$2")" '' 0 5000 keys $_keys >/dev/null
	done
	for _node in $2 $SLOT_FROM $NODES; do
		n "$_node" cluster setslot "$SLOT" node "$SLOT_TO" >/dev/null 2>&1
	done
	SLOT_OPEN=''
}
