#!/bin/sh
# What a handler inherits from rqd, and what it does not: rqd-handler(7), PROCESS.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

[ "$(id -u)" -eq 0 ] || skip_all 'needs root'
[ -z "$RQD_WRAPPER" ] || skip_all 'the wrapper has its own attributes'
command -v python3 >/dev/null || skip_all 'no python3'
A=$SRCDIR/tests/helpers/attributes.py
PYTHON=$(python3 -c 'import sys; print(sys.executable)')
redis_start
mkdir -m 777 "$T/out"
handler show <<H
exec "$PYTHON" "$A" show >"\$T/out/\$RQD_QUEUE"
H
value() { sed -n "s/^$2 //p" "$T/out/$1"; }
show() {	# QUEUE
	rm -f "$T/out/$1"
	r lpush "$1" '{"id":1}' >/dev/null
	wait_for 20 '[ "$(log_count "event=acked queue=$1 ")" -gt "${shown:-0}" ]' || note "$(log_lines "queue=$1")"
}

"$PYTHON" "$A" show >"$T/out/test"
RQD_WRAPPER="$PYTHON $A set"
rqd_start <<C
queue "own"   { command = {"$T/show"} user = "daemon" }
queue "zero"  { command = {"$T/show"} user = "daemon" nice = 0 umask = "022" directory = "/tmp" limit_fsize = 4K }
queue "lower" { command = {"$T/show"} user = "daemon" nice = -5 }
queue "root"  { command = {"$T/show"} user = "root" memory_max = 200M }
C
RQD_WRAPPER=''
for q in own zero lower root; do show $q; done

for q in own zero lower root; do
	is "$(for a in blocked ignored leads terminal dumpable securebits ambient; do value $q $a; done | tr '\n' ' ')" \
	    "0000000000000000 0000000000000000 True 0 1 0 0000000000000000 " "$q: signals, session, terminal, dumpable: its own"
	is "$(for a in oom policy cpus timerslack no_huge_pages personality no_new_privs; do value $q $a; done | tr '\n' ' ')" \
	    '300 3 1 123456 1 40000 0 ' "$q: what the service manager sets is inherited"
done
for q in own zero lower; do
	is "$(value $q capabilities)" 0000000000000000 "$q: no capabilities"
done
is "$(value own nice) $(value own umask) $(value own directory) $(value own fsize)" "3 0037 / $((1 << 30))" \
    'nice, umask and limits: of rqd; directory: /'
is "$(value zero nice) $(value zero umask) $(value zero directory) $(value zero fsize)" '0 0022 /tmp 4096' \
    'or as the queue says, where nice = 0 is 0'
is "$(value lower nice)" -5 'also lower, as root'
if [ -n "$(value own ioprio)" ]; then
	is "$(value own ioprio)" $((2 << 13 | 6)) 'the I/O priority is inherited'
	ok '[ "$(value own keyring)" != "$(value test keyring)" ] || [ "$(value own keyring)" = -1 ]' \
	    'the session keyring is not'
fi
rqd_stop

# A daemon that the kernel spares when memory is short.
if sh -c 'echo -500 >/proc/self/oom_score_adj' 2>/dev/null; then
	handler spared <<'H'
echo -500 >/proc/self/oom_score_adj
exec "$@"
H
	RQD_WRAPPER=$T/spared
	shown=1
	rqd_start <<C
queue "own"   { command = {"$T/show"} user = "daemon" }
C
	RQD_WRAPPER=''
	show own
	is "$(value own oom)" 0 'a negative oom_score_adj is not inherited'
	is "$(cat /proc/$PID/oom_score_adj) $(cat "/proc/$(pgrep -o -P "$PID" -x rqd-spawner)/oom_score_adj")" '-500 -500' 'and rqd keeps it'
else
	skip 'a negative oom_score_adj is not inherited: this machine forbids one'
fi
