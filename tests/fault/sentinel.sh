# Redis servers on loopback and the Sentinels that watch them, sourced after tests/lib.sh.
#
#	server a "$(free_port)"			# PID_a
#	server b "$(free_port)" --replicaof 127.0.0.1 PORT
#	sentinel 1 "$(free_port)" PORT QUORUM	# watches the master "m" at PORT; PID_s1
#
# SENTINEL_CONF		more lines of its configuration
#
# shellcheck shell=sh disable=SC2034,SC2154

command -v redis-sentinel >/dev/null || skip_all 'no redis-sentinel'

answers() { [ "$($ASK -p "$1" ping 2>/dev/null)" = PONG ]; }

server() {	# NAME PORT OPTION...
	name=$1 port=$2
	shift 2
	mkdir -p "$T/$name"
	redis-server --port "$port" --bind 127.0.0.1 --dir "$T/$name" --save '' \
	    --appendonly yes --appendfsync always --repl-diskless-sync-delay 0 "$@" \
	    >>"$T/$name.out" 2>&1 &
	OTHER_PIDS="$OTHER_PIDS $!"
	eval "PID_$name=$!"
	wait_for 30 "answers $port" || fail "server $name starts"
}

sentinel() {	# NUMBER PORT MASTER QUORUM
	mkdir -p "$T/s$1"
	cat >"$T/s$1/conf" <<C
port $2
bind 127.0.0.1
dir $T/s$1
$SENTINEL_CONF
sentinel monitor m 127.0.0.1 $3 $4
sentinel down-after-milliseconds m 1500
sentinel failover-timeout m 6000
C
	redis-sentinel "$T/s$1/conf" >"$T/s$1.out" 2>&1 &
	OTHER_PIDS="$OTHER_PIDS $!"
	eval "PID_s$1=$!"
	wait_for 30 "answers $2" || fail "Sentinel $1 starts"
	# While the master is down, Sentinel asks for INFO once a second only, and promotes no
	# replica whose INFO is older than five ping-periods: it would try again after 12 s.  A
	# Sentinel that the machine has kept waiting for 2 s would do nothing for 30 s (TILT).
	$ASK -p "$2" sentinel debug info-period 500 ping-period 500 publish-period 200 \
	    ask-period 100 tilt-trigger 60000 >/dev/null
}
