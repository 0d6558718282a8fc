#!/bin/sh
# rqctl cancel while the daemon is killed between its mark and its end, and while every
# tenth reply is lost: no cancelled message runs again, and each letter is written once.
#
# Before a point: the kind of queue, or "batch".  With "mark" the owner has died, and
# the daemon that is killed is the one that pops the marked message.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

CRASHAT=$BUILDDIR/tests/fault/crashat
"$CRASHAT" call "$T/probe" /bin/true 2>/dev/null || skip_all 'no ptrace'
# rqd is not dumpable, so only root can follow it.
[ "$(id -u)" -eq 0 ] || skip_all 'needs root'
ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"	# impossible beside a debugger
export ASAN_OPTIONS
redis_start
AS=''	# handlers run as the user of the daemon
touch "$T/runs"
chmod 666 "$T/runs"
handler hold <<'H'
[ -n "$RQD_ID" ] || read -r _ _ _ RQD_ID	# a batch of one
trap 'echo "E $RQD_ID" >> "$T/runs"; exit 0' TERM
echo "B $RQD_ID" >> "$T/runs"
while sleep 0.2; do [ ! -e "$T/release" ] || break; done
H
ctl() { RQD_SERVER=unix:$SOCK "$RQCTL" "$@"; }
began() { grep -qsx "B $1" "$T/runs"; }

# -- killed ---------------------------------------------------------------------------------

POINTS='renew-before renew-sent renew-answered settle-before settle-sent settle-answered
exit-before exit-after batch/renew-answered batch/settle-before batch/settle-sent
unique/renew-sent unique/unique_settle-before unique/unique_settle-sent
stream/renew-sent stream/stream_settle-before stream/stream_settle-sent
mark/pop-before mark/pop-sent mark/pop-answered mark/settle-before mark/settle-sent
mark/settle-answered'
kind_of() { case $1 in unique/* | stream/*) echo "${1%%/*}" ;; *) echo ack ;; esac; }
id_of() { case $2 in stream/*) echo "$1-1" ;; *) echo "m$1" ;; esac; }	# NUMBER POINT
each() {	# FUNCTION: is called with NUMBER POINT MODE
	i=0
	for p in $POINTS; do
		for mode in drop dead; do "$1" $((i += 1)) "$p" $mode; done
	done
}

begin() {
	config_write "p$1" <<C
privileged = false
queue "p$1" {
	kind = "$(kind_of "$2")" key = "p$1" command = {"$T/hold"} kill_grace = 5s
	lease = $(case $2 in mark/*) echo 3s ;; *) echo 6s ;; esac)
	$(case $2 in batch/*) echo 'batch = 4' ;; esac)
}
C
	RQD_WRAPPER=''
	case $2 in mark/*) ;; *) RQD_WRAPPER="$CRASHAT ${2#*/} $T/crash.p$1" ;; esac
	rqd_spawn "a$1" -c "$T/p$1.conf"
	RQD_WRAPPER=''
	case $2 in
	unique/*) r zadd "p$1" 1 "m$1" ;;
	stream/*) r xadd "p$1" "$1-1" message m ;;
	*) r lpush "p$1" "{\"id\":\"m$1\"}" ;;
	esac >/dev/null
}
end_it() {
	option=''
	[ "$3" = drop ] || option=--dead
	wait_for 60 "began $(id_of "$1" "$2")"
	case $2 in mark/*) rqd_signal STOP "a$1" ;; esac
	ctl cancel -c "$T/p$1.conf" "p$1" "$(id_of "$1" "$2")" $option >>"$T/ctl.out" 2>&1 || fail "$2: $(tail -1 "$T/ctl.out")"
	case $2 in mark/*) ;; *) return ;; esac
	rqd_kill9 "a$1"
	RQD_WRAPPER="$CRASHAT ${2#*/} $T/crash.p$1"
	rqd_spawn "a$1" -c "$T/p$1.conf"
	RQD_WRAPPER=''
}
go_on() {
	rqd_wait "a$1" 60
	grep -qsa '^CRASH' "$T/crash.p$1" || fail "$2: not reached"
	rqd_spawn "b$1" -c "$T/p$1.conf"
}
drained() {
	case $2 in
	stream/*) [ "$(r xpending "p$1" rqd | head -1)" = 0 ] || return ;;
	*) [ "$(r exists "p$1")" -eq 0 ] || return ;;
	esac
	[ "$(r exists "p$1BACKUP" "p$1RETRY" "p$1CONTEXT")" -eq 0 ]
}
judge() {
	wait_for 90 "drained $1 $2"
	rqd_signal TERM "b$1"
	rqd_wait "b$1"
	want=0
	[ "$3" = drop ] || want=1
	is "$(grep -cx "B $(id_of "$1" "$2")" "$T/runs") $(r xlen "p${1}DEAD")" "1 $want" \
	    "killed at $2, $3"
}
each begin
QUEUES=$(seq -f 'p%.0f' $i | tr '\n' ' ')
each end_it
each go_on
each judge

# -- lost replies ---------------------------------------------------------------------------

proxy_start
rqd_start flaky <<C
privileged = false
redis { server = "unix:$T/proxy.sock" timeout = 2s }
queue "q" { command = {"$T/hold"} concurrency = 4 lease = 3s kill_grace = 1s }
C
log_wait 30 event=redis_up 1 flaky
echo 'lose 10' >&3
n=0
more() { [ $n -lt 40 ] || { [ "$(log_count event=redis_down flaky)" -lt 5 ] && [ $n -lt 400 ]; }; }
while [ $((n % 4)) -ne 0 ] || more; do
	[ $((n % 4)) -ne 0 ] || for i in 1 2 3 4; do echo "lpush q '{\"id\":\"q$((n + i))\"}'"; done | r >/dev/null
	n=$((n + 1))
	wait_for 60 "began q$n"
	mode=''
	[ $((n % 2)) -eq 0 ] || mode=--dead
	ctl cancel q "q$n" $mode >/dev/null 2>&1
done
wait_for 30 '[ "$(r exists q qBACKUP qRETRY qCONTEXT)" -eq 0 ]'
echo calm >&3
lost=$(log_count event=redis_down flaky)
note "connections lost: $lost"
ok "[ $lost -ge 5 ]" 'replies were lost'
is "$(grep '^B q' "$T/runs" | sort | uniq -d | tr '\n' ' ')" '' 'none ran twice'
is "$(log_count 'event=(acked|retry|returned) queue=q' flaky)" 0 'nor had another end'
is "$(r xlen qDEAD)" $((n / 2)) 'one letter each'
is "$(r --raw xrange qDEAD - + | grep -A1 '^id$' | grep '^q' | sort | uniq -d)" '' 'and none twice'
exec 3>&-
