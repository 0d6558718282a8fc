#!/bin/sh
# rqctl cancel while the daemon is killed between its mark and its end, and while every
# tenth reply is lost: no cancelled message runs again, and each letter is written once.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

CRASHAT=$BUILDDIR/tests/fault/crashat
"$CRASHAT" call "$T/probe" /bin/true 2>/dev/null || skip_all 'no ptrace'
ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"	# impossible beside a debugger
export ASAN_OPTIONS
redis_start
# One process, that has its handlers itself: a launcher's system calls are not seen.
ONE=''
if [ "$(id -u)" -eq 0 ]; then
	ONE='privileged = false'
	AS=''
	chmod 777 "$T"
fi
handler hold <<'H'
trap 'echo "E $RQD_ID" >> "$T/runs"; exit 0' TERM
echo "B $RQD_ID" >> "$T/runs"
while sleep 0.02; do [ ! -e "$T/release" ] || break; done
H
ctl() { RQD_SERVER=unix:$SOCK "$RQCTL" "$@"; }
began() { grep -qsx "B $1" "$T/runs"; }

# -- killed ---------------------------------------------------------------------------------

POINTS='renew-before renew-sent renew-answered settle-before settle-sent settle-answered'
i=0
for p in $POINTS; do
	for mode in drop dead; do
		i=$((i + 1))
		config_write "p$i" <<C
$ONE
queue "p$i" { command = {"$T/hold"} lease = 6s kill_grace = 1s }
C
		RQD_WRAPPER="$CRASHAT $p $T/crash.p$i"
		rqd_spawn "a$i" -c "$T/p$i.conf"
		RQD_WRAPPER=''
		r lpush "p$i" "{\"id\":\"m$i\"}" >/dev/null
	done
done
QUEUES=$(seq -f 'p%.0f' $i | tr '\n' ' ')
i=0
for p in $POINTS; do
	for mode in '' --dead; do
		i=$((i + 1))
		wait_for 20 "began m$i"
		ctl cancel "p$i" "m$i" $mode >/dev/null 2>&1
	done
done
i=0
for p in $POINTS; do
	for mode in drop dead; do
		i=$((i + 1))
		rqd_wait "a$i" 20
		grep -qsa '^CRASH' "$T/crash.p$i" || fail "$p: not reached"
		rqd_spawn "b$i" -c "$T/p$i.conf"
	done
done
drained() { [ "$(r exists "p$1" "p$1BACKUP" "p$1RETRY" "p$1CONTEXT")" -eq 0 ]; }
i=0
for p in $POINTS; do
	for mode in drop dead; do
		i=$((i + 1))
		wait_for 40 "drained $i"
		rqd_signal TERM "b$i"
		rqd_wait "b$i"
		want=0
		[ $mode = drop ] || want=1
		is "$(grep -cx "B m$i" "$T/runs") $(r xlen "p${i}DEAD")" "1 $want" "killed at $p, $mode"
	done
done

# -- lost replies ---------------------------------------------------------------------------

proxy_start
rqd_start flaky <<C
$ONE
redis { server = "unix:$T/proxy.sock" timeout = 2s }
queue "q" { command = {"$T/hold"} concurrency = 4 lease = 3s kill_grace = 1s }
C
log_wait 10 event=redis_up 1 flaky
echo 'lose 10' >&3
n=40
for i in $(seq $n); do echo "lpush q '{\"id\":\"q$i\"}'"; done | r >/dev/null
for i in $(seq $n); do
	wait_for 30 "began q$i"
	mode=''
	[ $((i % 2)) -eq 0 ] || mode=--dead
	ctl cancel q "q$i" $mode >/dev/null 2>&1
done
wait_for 30 '[ "$(r exists q qBACKUP qRETRY qCONTEXT)" -eq 0 ]'
echo calm >&3
lost=$(log_count event=redis_down flaky)
note "connections lost: $lost"
ok "[ $lost -ge 5 ]" 'replies were lost'
is "$(grep '^B q' "$T/runs" | sort | uniq -d | tr '\n' ' ')" '' 'none ran twice'
is "$(log_count 'event=(acked|retry|returned|rescued) queue=q' flaky)" 0 'nor had another end'
is "$(r xlen qDEAD)" $((n / 2)) 'one letter each'
is "$(r --raw xrange qDEAD - + | grep -A1 '^id$' | grep '^q' | sort | uniq -d)" '' 'and none twice'
exec 3>&-
