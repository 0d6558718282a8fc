#!/bin/sh
# SIGHUP: the configuration changes whole or not at all, and no message is lost
# or run twice meanwhile.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
handler old <<'H'
echo "old $RQD_QUEUE $RQD_ID" >>"$T/ran"
while [ "$RQD_ID" = slow ] && [ -e "$T/hold" ]; do sleep 0.2; done
exit 0
H
handler new <<'H'
echo "new $RQD_QUEUE $RQD_ID" >>"$T/ran"
H
reload() {	# configuration on stdin
	config_write rqd
	rqd_signal HUP
}
push() { r lpush "$1" "{\"id\":\"$2\"}" >/dev/null; }

touch "$T/hold"
rqd_start <<C
queue "stays" { command = {"$T/old"} concurrency = 2 }
queue "goes"  { command = {"$T/old"} }
C
push stays slow
push goes g1
log_wait 10 'event=acked queue=goes id=g1 '
wait_for 10 'grep -q slow "$T/ran"'

# -- a good one ------------------------------------------------------------------
reload <<C
queue "stays" { command = {"$T/new"} concurrency = 2 }
queue "comes" { command = {"$T/new"} }
C
ok 'log_wait 10 event=reloaded' 'reloaded'
push stays s2
push comes c1
push goes g2
ok 'log_wait 10 "event=acked queue=stays id=s2 "' 'a changed queue goes on'
ok 'log_wait 10 "event=acked queue=comes id=c1 "' 'a new one begins'
ok 'grep -q "^new stays s2" "$T/ran"' 'with the new command'
sleep 0.5
is "$(r llen goes)" 1 'a queue that was removed is left alone'
ok '! log_lines "event=(acked|retry|returned|stale) queue=stays id=slow" >/dev/null' 'the running handler runs on'
rm "$T/hold"
ok 'log_wait 10 "event=acked queue=stays id=slow "' 'and is acked'
is "$(grep -c slow "$T/ran")" 1 'it ran once'
wait_ok 15 'grep -q "^RELOADING=1" "$T/rqd.notify" && [ "$(grep -c "^READY=1" "$T/rqd.notify")" -ge 2 ]' 'systemd is told'

# -- bad ones --------------------------------------------------------------------
cp "$T/rqd.conf" "$T/good.conf"
reload <<C
queue "stays" { command = {"$T/old"} concurrency = -1 }
queue "worse" { command = {"$T/old"} no_such_option = 1 }
C
ok 'log_wait 10 event=reload_failed' 'a bad file is refused'
log_wait 10 event=reload_failed 2
lines=$(log_lines 'event=reload_failed')
like "$lines" "rqd.conf:[0-9]+: .*concurrency" 'the error is logged with file and line'
like "$lines" "rqd.conf:[0-9]+: .*no_such_option" 'and the next one too'
push stays s3
ok 'log_wait 10 "event=acked queue=stays id=s3 "' 'everything is as before'
ok 'grep -q "^new stays s3" "$T/ran"' 'the command too'
rm "$T/rqd.conf"
before=$(log_count event=reload_failed)
rqd_signal HUP
ok 'log_wait 10 event=reload_failed $((before + 1))' 'so is one that is not there'
push stays s4
ok 'log_wait 10 "event=acked queue=stays id=s4 "' 'still as before'

# -- what needs a restart -----------------------------------------------------------
{ echo 'redis { server = "unix:/nowhere/redis.sock" }'; grep -v '^redis' "$T/good.conf"; } >"$T/rqd.conf"
rqd_signal HUP
ok 'log_wait 10 event=reloaded 2' 'a reload with another server'
like "$(log_lines 'event=(reloaded|warning)')" 'redis.*restart|restart.*redis' 'says that this needs a restart'
push stays s5
ok 'log_wait 10 "event=acked queue=stays id=s5 "' 'and goes on with the old one'

# -- many, while messages pass --------------------------------------------------------
: >"$T/ran"
cp "$T/good.conf" "$T/rqd.conf"
for i in $(seq 100); do echo "{\"id\":\"m$i\"}"; done | xargs -d '\n' redis-cli -s "$SOCK" lpush stays >/dev/null
before=$(log_count event=reloaded)
for c in 1 4 2 8 3; do
	sed "s/concurrency = .*/concurrency = $c }/" "$T/good.conf" >"$T/rqd.conf"
	rqd_signal HUP
	before=$((before + 1))
	log_wait 10 event=reloaded $before
done
ok 'log_wait 30 "event=acked queue=stays id=m" 100' 'five reloads under load: everything acked'
is "$(grep -c ' stays m' "$T/ran")" 100 'each message ran once'
is "$(sort "$T/ran" | uniq -d)" '' 'none twice'
r del goes >/dev/null
rqd_stop

# -- a key that changes while another queue ends ---------------------------------------
handler until <<'H'
while [ -e "$T/hold.$RQD_QUEUE" ]; do sleep 0.2; done
H
MORE_KEYS='ends moves1 moves2'
touch "$T/hold.ends" "$T/hold.moves"
rqd_start two <<C
queue "ends"  { command = {"$T/until"} }
queue "moves" { command = {"$T/until"}  key = "moves1" }
C
push ends e1
push moves1 m1
wait_for 10 '[ "$(ctl running ends moves1 | grep -c -e e1 -e m1)" = 2 ]'
config_write two <<C
queue "moves" { command = {"$T/until"}  key = "moves2" }
C
rqd_signal HUP two
ok 'wait_for 10 "ctl daemons --json | grep -q moves2"' 'the heartbeat has the new key'
rm "$T/hold.ends"
log_wait 10 'event=acked queue=ends id=e1 ' 1 two
rqd_signal HUP two			# a heartbeat follows
log_wait 10 event=reloaded 2 two
sleep 0.5
ok 'ctl daemons --json | grep -q moves2' 'also when a queue before it has ended'
rm "$T/hold.moves"
log_wait 10 'event=acked queue=moves id=m1 ' 1 two
rqd_stop two

# -- max_handlers, and the log ----------------------------------------------------------
: >"$T/ran"
touch "$T/hold"
handler held <<'H'
echo "$RQD_ID" >>"$T/ran"
while [ -e "$T/hold" ]; do sleep 0.2; done
H
limited() {	# MAX_HANDLERS [LOG]
	cat >"$T/text" <<C
max_handlers = $1
log { ${2:-level = "debug"} }
queue "stays" { command = {"$T/held"} concurrency = 4 }
C
}
limited 1
rqd_start three <"$T/text"
for i in 1 2 3; do push stays "h$i"; done
wait_for 10 '[ -s "$T/ran" ]'
sleep 0.3
is "$(wc -l <"$T/ran")" 1 'one may run'
limited 2
config_write three <"$T/text"
rqd_signal HUP three
wait_ok 10 '[ "$(wc -l <"$T/ran")" -eq 2 ]' 'max_handlers is raised, and used at once'
rm "$T/hold"
log_wait 10 'event=acked queue=stays id=h' 3 three
limited 2 "target = \"$OWN/other.log\" format = \"json\" level = \"info\""
config_write three <"$T/text"
rqd_signal HUP three
wait_ok 10 'grep -qs "^{.*\"event\":\"reloaded\"" "$OWN/other.log"' 'the log has another file and form'
push stays h4
wait_ok 10 'grep -q "\"event\":\"acked\",\"queue\":\"stays\",\"id\":\"h4\"" "$OWN/other.log"' 'and goes on there'
is "$(grep -c '"level":"debug"' "$OWN/other.log") $(log_count id=h4 three)" '0 0' 'with its level, and nowhere else'
