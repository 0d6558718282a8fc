# The harness of the tests in shell: sourced, not run.
#
#	. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
#	redis_start
#	handler good <<'H'
#	cat > "$T/got"
#	H
#	rqd_start <<C
#	queue "q" { command = {"$T/good"} }
#	C
#	r lpush q hello
#	wait_for 5 '[ -s "$T/got" ]'
#	is "$(cat "$T/got")" hello 'the handler got the message'
#
# Each test has a directory $T and a Redis of its own, on a unix socket there.  At exit
# the harness stops everything, and tests that, too: the daemon's exit status, no signs
# of a bug in the logs, no process left, no key in Redis but documented ones.  It prints
# the plan last, and logs only after a failure.  It also cleans up after a signal, and
# if nobody reads its output (SIGPIPE).
#
# SRCDIR, BUILDDIR	found from $0 and the working directory where unset
# RQD_WRAPPER		runs in front of rqd: valgrind ..., strace -D ...
# RQD_TEST_KEEP		keep $T
# RQD_TEST_LONG		more rounds, more messages, where a test has a number of them
# RQD_TEST_SLOW		the machine is slow: no tests of speed, and those in C wait longer
#
# shellcheck shell=sh disable=SC2016,SC2086,SC2013

SRCDIR=${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
if [ -z "$BUILDDIR" ]; then
	BUILDDIR=$SRCDIR/build
	[ -f ./config.status ] && BUILDDIR=$(pwd)
fi
export SRCDIR BUILDDIR
unset RQD_SERVER RQD_CONFIG RQD_OPTIONS NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID \
    JOURNAL_STREAM CREDENTIALS_DIRECTORY RUNTIME_DIRECTORY MAKEFLAGS MFLAGS
RQD=${RQD:-$BUILDDIR/rqd}
RQCTL=${RQCTL:-$BUILDDIR/rqctl}
LC_ALL=C.UTF-8 TZ=UTC
export LC_ALL TZ
umask 022

# How many times slower this build is than a plain one.
SLOW=1
grep -qs '^#define RQD_SANITIZERS 1' "$BUILDDIR/config.h" && SLOW=3
case $RQD_WRAPPER in *valgrind*) SLOW=10 ;; esac

TESTS_RUN=0 TESTS_FAILED=0
DAEMONS='' QUEUES='' MORE_KEYS='' OTHER_PIDS='' REDIS_PID='' SPAWNS=0
T=$(mktemp -d /tmp/rqd-test.XXXXXX) || exit 99
chmod 755 "$T"
SOCK=$T/redis.sock
# The user of the main process if rqd is started as root, and a folder that this user
# may write to.
MAIN_USER=$(id -un)
[ "$(id -u)" -ne 0 ] || MAIN_USER=_rqd
sh "$SRCDIR/tests/helpers/user.sh"
OWN=$T/own
mkdir "$OWN" && chown "$MAIN_USER" "$OWN"
AS=''			# must be in defaults { } if a test writes one
[ "$(id -u)" -eq 0 ] && AS='user = "root"'

# If python3 is a version manager's script, which takes 0.1 s: use Debian's, or the
# program behind it.
_python=$(command -v python3)
if [ -n "$_python" ] && read -r _line <"$_python" && [ "${_line#'#!'}" != "$_line" ]; then
	if [ ! -e "$BUILDDIR/tests/python/python3" ]; then
		mkdir -p "$BUILDDIR/tests/python"
		_python=/usr/bin/python3
		[ -x "$_python" ] || _python=$(python3 -c 'import sys; print(sys.executable)')
		ln -sf "$_python" "$BUILDDIR/tests/python/python3"
	fi
	PATH=$BUILDDIR/tests/python:$PATH
fi

# -- TAP ---------------------------------------------------------------------

note() { printf '%s\n' "$*" | cut -c 1-500 | head -n 60 | sed 's/^/# /'; }

report() {	# STATUS DESCRIPTION
	TESTS_RUN=$((TESTS_RUN + 1))
	if [ "$1" -eq 0 ]; then
		printf 'ok %s - %s\n' "$TESTS_RUN" "$2"
	else
		TESTS_FAILED=$((TESTS_FAILED + 1))
		printf 'not ok %s - %s\n' "$TESTS_RUN" "$2"
	fi
	return "$1"
}

pass() { report 0 "$1"; }
fail() { report 1 "$1"; }
skip() { TESTS_RUN=$((TESTS_RUN + 1)); echo "ok $TESTS_RUN # SKIP $1"; }	# WHAT AND WHY

ok() {		# 'COMMAND' DESCRIPTION
	if eval "$1"; then pass "$2"; else fail "$2"; note "false: $1"; return 1; fi
}

is() {		# GOT WANTED DESCRIPTION
	if [ "$1" = "$2" ]; then pass "$3"; return; fi
	fail "$3"
	note "     got: $1"
	note "expected: $2"
	return 1
}

like() {	# GOT REGEX DESCRIPTION
	if printf '%s\n' "$1" | grep -Eq -e "$2"; then pass "$3"; return; fi
	fail "$3"
	note "           got: $1"
	note "does not match: $2"
	return 1
}

unlike() {	# GOT REGEX DESCRIPTION
	if ! printf '%s\n' "$1" | grep -Eq -e "$2"; then pass "$3"; return; fi
	fail "$3"
	note "    got: $1"
	note "matches: $2"
	return 1
}

skip_all() {
	trap - EXIT
	cleanup
	echo "1..0 # SKIP $*"
	exit 0
}

# For tests whose figures a slow build or machine cannot reach.
needs_speed() {
	if [ "$SLOW" -ne 1 ] || [ -n "${RQD_TEST_SLOW-}" ]; then
		skip_all 'its figures say nothing of a slow build or machine'
	fi
}

# -- waiting -----------------------------------------------------------------

# Waits until the command is true, SECONDS at most (longer with a slow build).  From 10 s
# on they mean 30 at least, for busy machines: only a failure lasts so long.  Less is a
# promise of the daemon, and counts.  Many tests wait at the same time, so a turn starts
# as few processes as possible, and turns become rarer after half a second, and after two.
wait_for() {	# SECONDS 'COMMAND'
	read -r _now _ </proc/uptime
	_most=$(($1 < 10 || $1 > 30 ? $1 : 30))
	_end=$((${_now%.*} + _most * SLOW + 1)) _turn=0
	until eval "$2"; do
		read -r _now _ </proc/uptime
		if [ "${_now%.*}" -ge "$_end" ]; then
			note "waited $((_most * SLOW)) s in vain for: $2"
			return 1
		fi
		case $((_turn += 1)) in ? | 1[0-5]) sleep 0.03 ;; [12]? | 30) sleep 0.1 ;; *) sleep 0.25 ;; esac
	done
}

wait_ok() {	# SECONDS 'COMMAND' DESCRIPTION
	wait_for "$1" "$2"
	report $? "$3"
}

# For what must be soon, on a machine that may be busy now: one of three times counts.
thrice() {	# 'COMMAND'
	eval "$1" || { note "again: $1"; eval "$1"; } || { note "and again: $1"; eval "$1"; }
}

msec() { echo $(($(date +%s%N) / 1000000)); }

# Read only files of one line.  If the process dies meanwhile, bash keeps the rest of a
# longer one for the next read, of any file.
is_alive() {	# PID: a zombie does not live
	{ read -r _line <"/proc/$1/stat"; } 2>/dev/null || return 1
	case ${_line##*) } in [ZX]*) return 1 ;; esac
}

# Whether the process lives and is a child of this shell.  After its end another
# process, of another test, may have the number.
is_child() {	# PID
	is_alive "$1" || return 1	# not bare: in a trap bash returns the status before it
	# shellcheck disable=SC2086
	set -- ${_line##*) }
	[ "$2" = $$ ]
}

# -- Redis -------------------------------------------------------------------

# A link to the test's process reserves a port, also while its server is stopped: a Sentinel
# of another test would take a new server there for its own.
PORTS=/tmp/rqd-test-ports

port_take() {	# PORT; false: another test has it
	mkdir -m 1777 "$PORTS" 2>/dev/null
	_taken=$(readlink "$PORTS/$1") && [ ! -d "/proc/$_taken" ] && rm -f "$PORTS/$1"
	ln -s $$ "$PORTS/$1" 2>/dev/null
}

# Prints a port that is free and will stay so until the test ends: it is below those that
# the kernel gives out.
free_port() {
	until p=$(($(od -An -N2 -tu2 /dev/urandom) % 12000 + 18000)) && port_take "$p" &&
	    ! redis-cli -p "$p" ping >/dev/null 2>&1; do :; done
	echo "$p"
}

redis_start() {	# [OPTION...]
	command -v redis-server >/dev/null || skip_all 'no redis-server'
	# The main process of a privileged rqd is not root.
	redis-server --port 0 --unixsocket "$SOCK" --unixsocketperm 777 --dir "$T" --save '' \
	    --logfile "$T/redis.log" "$@" >"$T/redis.out" 2>&1 &
	REDIS_PID=$!
	wait_for 10 '[ -S "$SOCK" ] && [ "$(r ping 2>/dev/null)" = PONG ]' || fail 'Redis starts'
}

redis_stop() {	# [SIGNAL]
	[ -n "$REDIS_PID" ] || return 0
	kill "-${1:-TERM}" "$REDIS_PID" 2>/dev/null
	wait "$REDIS_PID" 2>/dev/null
	REDIS_PID=''
}

# A client that starts faster than redis-cli; some builds use redis-cli instead.
ASK="$BUILDDIR/tests/helpers/ask"
[ "$SLOW" -eq 1 ] || ASK=redis-cli
r() { $ASK -s "$SOCK" "$@"; }

# Starts a proxy to Redis at $T/proxy.sock.  It takes commands to fail from descriptor
# 3, and answers into $T/answers.  The head of flakyproxy.c lists the commands.
proxy_start() {	# [SEED]
	mkfifo "$T/commands"
	"$BUILDDIR/tests/fault/flakyproxy" "$T/proxy.sock" "$SOCK" "$@" <"$T/commands" >"$T/answers" &
	OTHER_PIDS="$OTHER_PIDS $!"
	exec 3>"$T/commands"
	wait_for 10 '[ -S "$T/proxy.sock" ]'
}

# Prints all keys in a line, sorted, without those that every daemon writes.
keys() { r --raw keys '*' | grep -v '^rqd:daemon' | sort | tr '\n' ' ' | sed 's/ $//'; }

# The keys that are left, without totals.
left_keys() { r --raw keys '*' | grep -vE 'STATS$|^rqd:daemon' | sort; }
# Whether a list has no message in any place.  Several commands could overlook one that moves.
is_empty() {	# KEY
	[ "$(r eval 'return redis.call("LLEN", KEYS[1]) + redis.call("ZCARD", KEYS[1] .. "BACKUP") +
	    redis.call("ZCARD", KEYS[1] .. "RETRY")' 1 "$1")" -eq 0 ]
}
# Whether all queues have no keys but their totals.
no_keys() { [ -z "$(left_keys)" ]; }

# -- the daemon --------------------------------------------------------------

# Writes a handler, a shell script with $T set.
handler() {	# NAME, text on stdin
	{ printf '#!/bin/sh\nT=%s\n' "$T"; cat; } >"$T/$1.new"
	chmod 755 "$T/$1.new"
	mv "$T/$1.new" "$T/$1"
}

# Writes the configuration, and adds the sections that all tests share if it has none.
config_write() { # NAME, text on stdin
	_text=$(cat)
	{
		case $_text in *'redis {'*) ;; *) printf 'redis { server = "unix:%s" }\n' "$SOCK" ;; esac
		case $_text in *'log {'*) ;; *) printf 'log { level = "debug" }\n' ;; esac
		case $_text in *'defaults {'*) ;; *) [ -n "$AS" ] && printf 'defaults { %s }\n' "$AS" ;; esac
		printf '%s\n' "$_text"
	} >"$T/$1.conf"
	QUEUES="$QUEUES $(sed -n 's/^[ 	]*queue  *"\([^"]*\)".*/\1/p' "$T/$1.conf" | tr '\n' ' ')"
}

# Do not call this in a pipe: its variables would be lost with the subshell.
rqd_start() {	# [NAME [ARGUMENT...]], configuration on stdin
	_name=${1:-rqd}
	[ $# -gt 0 ] && shift
	config_write "$_name"
	rqd_run "$_name" -c "$T/$_name.conf" "$@"
}

# Starts rqd with arguments of any kind and waits until it says READY=1.
rqd_run() {	# NAME ARGUMENT...
	_name=$1
	shift
	rqd_spawn "$_name" "$@"
	wait_for 20 'said_ready "$_name" || ! is_alive "$PID"'
	# A daemon that has ended may have said it before, unread.
	wait_for 10 'said_ready "$_name"' || fail "$_name becomes ready"
}

said_ready() {	# NAME
	while read -r _line; do
		case $_line in READY=1*) return 0 ;; esac
	done <"$T/$1.notify"
	return 1
}

rqd_spawn() {	# NAME ARGUMENT...; PID is its process
	_name=$1
	shift
	_sock=$T/$_name.$((SPAWNS += 1)).sock
	"$BUILDDIR/tests/helpers/notify-wait" "$_sock" >"$T/$_name.notify" &
	OTHER_PIDS="$OTHER_PIDS $!"
	wait_for 10 '[ -S "$_sock" ]'
	NOTIFY_SOCKET=$_sock $RQD_WRAPPER "$RQD" "$@" </dev/null >>"$T/$_name.out" 2>>"$T/$_name.log" &
	PID=$!
	eval "PID_$_name=$PID"
	case " $DAEMONS " in *" $_name "*) ;; *) DAEMONS="$DAEMONS $_name" ;; esac
}

pid_of() { eval "echo \$PID_${1:-rqd}"; }

# Waits for the end of a daemon; its exit status is in STATUS, 137 if it had to be killed.
rqd_wait() {	# [NAME [SECONDS]]
	_p=$(pid_of "$1")
	STATUS=0
	wait_for "${2:-60}" '! is_child "$_p"' || kill -KILL "$_p"
	wait "$_p" 2>/dev/null || STATUS=$?
	eval "PID_${1:-rqd}="
}

rqd_signal() {	# SIGNAL [NAME]
	kill "-$1" "$(pid_of "$2")" || fail "SIG$1 to ${2:-rqd}"
}

rqd_stop() {	# [NAME]
	[ -n "$(pid_of "$1")" ] || return 0
	rqd_signal TERM "$1"
	rqd_wait "$1"
	is "$STATUS" 0 "${1:-rqd} ends with status 0"
}

rqd_kill9() {	# [NAME]
	rqd_signal KILL "$1"
	rqd_wait "$1"
}

ctl() { RQD_SERVER=unix:$SOCK "$RQCTL" "$@"; }

# -- the log -----------------------------------------------------------------

log_lines() {	# REGEX [NAME]
	grep -aE -e "$1" "$T/${2:-rqd}.log"
}

log_count() {	# REGEX [NAME]
	LC_ALL=C grep -acE -e "$1" "$T/${2:-rqd}.log"
}

log_wait() {	# SECONDS REGEX [COUNT [NAME]]
	_re=$2 _n=${3:-1} _l=${4:-rqd}
	wait_for "$1" '[ "$(log_count "$_re" "$_l")" -ge "$_n" ]'
}

log_field() {	# FIELD, records on stdin
	sed -n "s/.*[ ]$1=\"\{0,1\}\([^ \"]*\).*/\1/p"
}

# -- the end -----------------------------------------------------------------

# All processes that this test began, also indirectly: handlers have $T in RQD_CONFIG or
# RQD_SERVER, daemons in NOTIFY_SOCKET.
our_processes() {
	for _f in $(grep -alsF -e "${T#/tmp/}" /proc/[0-9]*/environ); do
		_f=${_f#/proc/}
		_f=${_f%/environ}
		case " $OTHER_PIDS " in *" $_f "*) continue ;; esac
		is_alive "$_f" && echo "$_f"
	done
}

cleanup() {
	for _d in $DAEMONS; do
		_p=$(pid_of "$_d")
		[ -n "$_p" ] && is_child "$_p" && kill -KILL "$_p" 2>/dev/null
	done
	for _p in $OTHER_PIDS; do
		is_child "$_p" && kill -KILL "$_p" 2>/dev/null
	done
	for _p in $(our_processes); do
		kill -KILL "$_p" 2>/dev/null
	done
	redis_stop KILL
	[ -z "$OTHER_PIDS" ] || wait $OTHER_PIDS
	find "$PORTS" -lname $$ -delete 2>/dev/null
	rmdir "$PORTS" 2>/dev/null
	if [ -n "$RQD_TEST_KEEP" ]; then note "kept: $T"; else rm -rf "$T"; fi
}

check_keys() {
	[ -n "$REDIS_PID" ] || return 0
	_unknown=''
	for _k in $(keys); do
		_known=no
		for _q in $QUEUES $MORE_KEYS; do
			case $_k in
			"$_q" | "$_q"BACKUP | "$_q"CONTEXT | "$_q"DELIVERY | "$_q"RETRY | \
			"$_q"DELAYED | "$_q"DEAD | "$_q"PAUSED | "$_q"STATS | "$_q"SCHEDULE | "$_q"RATE | \
			Lock:"$_q":*)
				_known=yes ;;
			esac
		done
		[ $_known = yes ] || _unknown="$_unknown $_k"
	done
	is "$_unknown" '' 'no key in Redis but the documented ones'
}

check_logs() {
	_bad=$(grep -aEn 'Sanitizer|runtime error:|^==[0-9]+== |VALGRIND-ERROR|[Aa]ssert' \
	    "$T"/*.log "$OWN"/*.log "$T"/*.out 2>/dev/null | grep -v "/redis\.[a-z]*:" | head -40)
	is "$_bad" '' 'no sign of a bug in the logs'
}

# After a signal: ends all, and does not wait for daemons to drain.
stop_now() {
	echo 'Bail out! stopped by a signal'
	cleanup
	exit 99
}

finish() {
	_status=$?
	trap - EXIT
	trap 'exec >/dev/null' PIPE
	trap stop_now HUP INT TERM
	[ -z "$STOPPED" ] || stop_now
	# Status 1 is that of a last test that failed.
	[ "$_status" -le 1 ] || fail "the script ran to its end (status $_status)"
	[ "$TESTS_RUN" -gt 0 ] || fail 'the script tests something'
	for _d in $DAEMONS; do rqd_stop "$_d"; done
	if [ -n "$DAEMONS" ]; then
		wait_for 10 '[ -z "$(our_processes)" ]'
		is "$(our_processes | while read -r _p; do
			echo "$_p $(tr '\0' ' ' <"/proc/$_p/cmdline")"
		done)" '' 'no process is left'
		check_keys
		check_logs
	fi
	if [ "$TESTS_FAILED" -gt 0 ]; then
		for _f in "$T"/*.conf "$T"/*.log "$OWN"/*.log "$T"/*.out "$T"/*.notify; do
			[ -s "$_f" ] || continue
			echo "# ---- ${_f##*/}"
			tail -n 200 "$_f" | cut -c 1-400 | sed 's/^/# /'
		done
	fi
	cleanup
	echo "1..$TESTS_RUN"
	# In a trap, a bare exit would have the status from before the trap.
	exit $((TESTS_FAILED > 0))
}

trap finish EXIT
STOPPED=''
trap 'STOPPED=yes; exit 99' HUP INT TERM
trap 'exec >/dev/null; STOPPED=yes; exit 99' PIPE
