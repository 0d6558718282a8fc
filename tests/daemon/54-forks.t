#!/bin/sh
# One user's handlers have thousands of processes, and some that fork and exit for ever.  All
# of them become children of the spawner.  rqd answers meanwhile, and renews another queue's lease.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root'
needs_speed
command -v curl >/dev/null || skip_all 'no curl'
EVIL=60375		# nobody else's
IDLE=3000 CHAINS=4

redis_start
mkdir -m 777 "$T/out"
cp "$BUILDDIR/tests/helpers/forks" "$T/"	# the sources may be where others may not go
handler work <<'H'
echo x >>"$T/out/runs"
while [ ! -e "$T/out/enough" ]; do sleep 0.1; done
H
handler limit <<'H'
ulimit -u >"$T/out/limit"
H
dd if=/dev/zero of="$T/turns" bs=32 count=1 2>/dev/null
RQD_WRAPPER="env RQD_TURNS=$T/turns LD_PRELOAD=$BUILDDIR/tests/helpers/turns.so"
rqd_start <<C
log { level = "info" }
http { listen = "unix:$OWN/http.sock" }
queue "evil" { command = {"$T/forks", "$IDLE", "$CHAINS", "$T/out/end"} user = "$EVIL" group = "$EVIL" limit_nproc = 4096 nice = 19 }
queue "work" { command = {"$T/work"} user = "daemon" lease = 5s }
queue "limit" { command = {"/bin/bash", "$T/limit"} user = "$EVIL" group = "$EVIL" }
C
RQD_WRAPPER=''
r lpush limit 1 >/dev/null
wait_ok 10 '[ -s "$T/out/limit" ]' 'a handler of that user'
is "$(cat "$T/out/limit")" 4096 'may have so many processes'

r lpush work 1 >/dev/null
wait_for 10 '[ -s "$T/out/runs" ]'
r lpush evil 1 >/dev/null
S=$(pgrep -o -P "$PID" -x rqd-spawner)
idle() { [ "$(wc -w <"/proc/$S/task/$S/children")" -ge $IDLE ]; }
wait_ok 60 idle "the spawner has $IDLE children"
dd if=/dev/zero of="$T/turns" bs=32 count=1 conv=notrunc 2>/dev/null
turns() { od -An -t d8 -w8 "$T/turns" | sed -n "${1}p" | tr -d ' '; }
i=0 start=$(msec)
until [ $i -ge 10 ] && [ $(($(msec) - start)) -gt 8000 ]; do
	curl -s -m 30 -o "$T/health" --unix-socket "$OWN/http.sock" http://localhost/healthz || break
	i=$((i + 1))
	sleep 0.2
done
ok "[ $i -ge 10 ]" "/healthz answers ($i times in $(($(msec) - start)) ms)"
note "turns of the loop: $(turns 1), the longest $(turns 2) us; with waits for a processor $(turns 3) us"
ok '[ "$(turns 1)" -gt 10 ] && [ "$(turns 2)" -lt 200000 ]' 'no turn of the loop is long'
ok idle 'they are still there'
is "$(log_count 'event=(stale|requeued)')" 0 'no lease has lapsed'
touch "$T/out/enough"
wait_ok 30 'log_wait 30 "event=acked queue=work"' 'the other user'"'"'s message is done'
is "$(wc -l <"$T/out/runs")" 1 'and ran once'
touch "$T/out/end"
wait_ok 30 '[ "$(log_count "event=acked queue=evil")" = 1 ] && ! idle' 'the end'
