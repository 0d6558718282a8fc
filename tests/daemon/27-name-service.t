#!/bin/sh
# A name service hangs for a minute.  A reload that asks it waits, and nothing else does:
# handlers start and end, a time limit is kept, and rqd stops when it is told to.  Likewise a
# server of files under the password that only root may read.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root'
[ "$SLOW" -eq 1 ] || skip_all 'no preload beside a sanitizer or valgrind'

redis_start
handler work <<'H'
exit 0
H
handler slow <<'H'
exec sleep 1000
H
conf() {
	echo "defaults { command = {\"$T/work\"} user = \"daemon\" max_attempts = 1 }"
	echo 'queue "q" { }'
	echo "queue \"slow\" { command = {\"$T/slow\"} time_limit = 1s kill_grace = 100ms }"
}
conf >"$T/text"
RQD_WRAPPER="env LD_PRELOAD=$BUILDDIR/tests/helpers/names.so"
rqd_start <"$T/text"
RQD_WRAPPER=''
{ conf; echo 'queue "hangs" { user = "hanging" }'; } >"$T/rqd.conf"
QUEUES="$QUEUES hangs"
rqd_signal HUP
S=$(pgrep -o -P "$PID" -x rqd-spawner)
wait_ok 10 '[ -n "$(pgrep -P "$S")" ]' 'the loader is asking'
start=$(msec)
i=0
while [ $i -lt 5 ]; do
	r lpush q $i >/dev/null
	i=$((i + 1))
	wait_for 10 '[ "$(log_count "event=acked queue=q ")" -eq $i ]' || break
done
r lpush slow 1 >/dev/null
wait_ok 10 '[ "$(log_count "event=dead queue=slow ")" -eq 1 ]' 'a time limit is kept'
is $i 5 'handlers run meanwhile'
ok "[ $(($(msec) - start)) -lt $((20000 * SLOW)) ]" "without a pause ($(($(msec) - start)) ms)"
is "$(log_count 'event=reload')" 0 'the reload still waits'
start=$(msec)
rqd_stop
ok "[ $(($(msec) - start)) -lt $((10000 * SLOW)) ]" 'rqd stops at once'

# -- a server of files --------------------------------------------------------------
printf 'secret\n' >"$T/password"
chmod 600 "$T/password"
r config set requirepass secret >/dev/null
export REDISCLI_AUTH=secret
handler slow <<'H'
echo $$ >"$OUT"
exec sleep 1000
H
cat >"$T/text" <<C
redis { server = "unix:$SOCK" password_file = "$T/password" timeout = 2s }
defaults { user = "daemon" kill_grace = 100ms }
queue "slow" { command = {"$T/slow"} time_limit = 4s env = {"OUT=$T/out/slow"} max_attempts = 1 }
C
mkdir -m 777 "$T/out"
RQD_WRAPPER="env LD_PRELOAD=$BUILDDIR/tests/helpers/names.so"
rqd_start files <"$T/text"
RQD_WRAPPER=''
log_wait 20 event=ready 1 files
r lpush slow 1 >/dev/null
wait_ok 20 '[ -s "$T/out/slow" ]' 'a handler is started'
touch "$T/password.hangs"
r client kill type normal >/dev/null
wait_ok 20 '! is_alive "$(cat "$T/out/slow")"' 'and ended at its time limit while the password cannot be read'
rm "$T/password.hangs"
wait_ok 30 '[ "$(log_count "event=dead queue=slow " files)" -eq 1 ]' 'its result follows when it can be read'
rqd_stop files

# -- at the start ---------------------------------------------------------------------
{ conf; echo 'queue "hangs" { user = "hanging" }'; } >"$T/text"
sed -i "1i redis { server = \"unix:$SOCK\" password_file = \"$T/password\" }" "$T/text"
start=$(msec)
RQD_WRAPPER="env LD_PRELOAD=$BUILDDIR/tests/helpers/names.so"
rqd_start third <"$T/text"
RQD_WRAPPER=''
ok "[ $(($(msec) - start)) -lt 15000 ]" "rqd is ready without the name service ($(($(msec) - start)) ms)"
like "$(log_lines event=warning third)" 'user .*hanging.* cannot be looked up: ' 'and warns of the user'
r lpush q last >/dev/null
wait_ok 10 '[ "$(log_count "event=acked queue=q " third)" -eq 1 ]' 'handlers of others run'
r lpush hangs 1 >/dev/null
log_wait 10 'event=(suspended|dead) queue=hangs ' 1 third
is "$(log_count 'event=dead queue=hangs ' third)" 0 'the messages of this one wait'
rqd_stop third
