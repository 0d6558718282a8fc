#!/bin/sh
# rqd as a service of a real systemd: readiness, status, reload, watchdog, crash,
# stop.

# shellcheck source=tests/system/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/system/lib.sh"

machine_boot

# A Redis inside, and a handler of a user who is not rqd's.
machine_redis
mkdir -p "$R/opt"
cat >"$R/opt/work" <<'H'
#!/bin/sh
id -un >>/srv/ran
echo "$RQD_ID" >>/srv/ran
case $RQD_ID in half*) sleep 1 ;; long*) sleep 600 ;; hold) while [ -e /srv/hold ]; do sleep 0.1; done ;; esac
echo "$RQD_ID ended" >>/srv/ran
H
chmod 755 "$R/opt/work"
conf() { { echo 'defaults { user = "worker" }'; cat; } >"$R$etc/rqd.conf"; }
m useradd -m worker
m chown worker /srv
ran() { cat "/proc/$LEADER/root/srv/ran" 2>/dev/null; }
ok '[ -e "$R$etc/rqd.conf" ]' 'make install puts a configuration there'

conf <<C
queue "q" { command = {"/opt/work"} concurrency = 3 }
C
m systemctl daemon-reload

# -- start -------------------------------------------------------------------------
m systemctl start rqd
is $? 0 'systemctl start'
is "$(prop ActiveState)" active 'it is active'
is "$(prop Type)" notify 'with Type=notify'
like "$(prop StatusText)" . 'and has a status'
mr lpush q '{"id":"first"}' >/dev/null
wait_ok 30 'ran | grep -q "first ended"' 'a message is handled'
is "$(ran | head -n 1)" worker 'by its user'
wait_ok 30 'journal | grep -q "event=acked queue=q id=first"' 'the journal says so'
unlike "$(journal)" 'ts=|<[0-9]>' 'without a time of its own'
like "$(m journalctl -u rqd -p info..info -o cat --no-pager)" 'event=acked' 'and with a priority'
status=$(prop StatusText)
m touch /srv/hold
mr lpush q '{"id":"hold"}' >/dev/null
wait_ok 30 '[ "$(prop StatusText)" != "$status" ]' 'the status moves'
m rm /srv/hold
note "$status / $(prop StatusText)"

# -- reload ------------------------------------------------------------------------
pid=$(prop MainPID)
conf <<C
queue "q" { command = {"/opt/work"} concurrency = 4 }
queue "p" { command = {"/opt/work"} }
C
m systemctl reload rqd
is $? 0 'systemctl reload with a good file'
mr lpush p '{"id":"second"}' >/dev/null
wait_ok 30 'ran | grep -q "second ended"' 'the new queue is served'
conf <<C
queue "q" { concurrency = nonsense }
C
m systemctl reload rqd 2>/dev/null
ok "[ $? -ne 0 ]" 'systemctl reload with a bad file fails'
is "$(prop ActiveState)" active 'but the service runs on'
is "$(prop MainPID)" "$pid" 'the same process'
wait_for 30 'journal | grep -q "rqd.conf:2: "'
like "$(journal)" 'rqd.conf:2: ' 'the journal has the error'
mr lpush p '{"id":"third"}' >/dev/null
wait_ok 30 'ran | grep -q "third ended"' 'it still serves'

# -- the watchdog ---------------------------------------------------------------------
mkdir -p "$R/run/systemd/system"
m sh -c 'mkdir -p /run/systemd/system/rqd.service.d &&
    printf "[Service]\nWatchdogSec=3s\nRestartSec=100ms\n" >/run/systemd/system/rqd.service.d/test.conf'
conf <<C
queue "q" { command = {"/opt/work"} concurrency = 4 lease = 3s kill_grace = 1s }
drain_timeout = 4s
C
m systemctl daemon-reload
m systemctl restart rqd
pid=$(prop MainPID)
sleep 4
is "$(prop MainPID)" "$pid" 'the watchdog is fed'
m kill -STOP "$pid"
wait_ok 30 '[ "$(prop NRestarts)" -ge 1 ] && [ "$(prop ActiveState)" = active ]' \
    'a daemon that hangs is killed and started again'
m sed -i 's/WatchdogSec=.*/WatchdogSec=1min/' /run/systemd/system/rqd.service.d/test.conf
m systemctl daemon-reload
m systemctl restart rqd

# -- kill -9 ----------------------------------------------------------------------------
mr lpush q '{"id":"half-1"}' >/dev/null
wait_for 30 'ran | grep -qx half-1'
pid=$(prop MainPID)
m kill -KILL "$pid"
wait_ok 30 '[ "$(prop MainPID)" != $pid ] && [ "$(prop ActiveState)" = active ]' \
    'after kill -9 it is started again'
wait_ok 30 'ran | grep -q "half-1 ended"' 'and what it had in hand is run again'

# -- stop --------------------------------------------------------------------------------
mr lpush q '{"id":"half-2"}' >/dev/null
wait_for 30 'ran | grep -qx half-2'
start=$(msec)
m systemctl stop rqd
took=$(($(msec) - start))
is "$(prop Result)" success 'systemctl stop: success'
ok 'ran | grep -q "half-2 ended"' 'it let the handler finish'
ok "[ $took -le 20000 ]" "and no longer ($took ms)"
m systemctl start rqd
mr lpush q '{"id":"long-1"}' >/dev/null
wait_for 30 'ran | grep -qx long-1'
start=$(msec)
m systemctl stop rqd
took=$(($(msec) - start))
is "$(prop Result)" success 'with one that does not end: success'
ok "[ $took -ge 3900 ] && [ $took -le 30000 ]" "after drain_timeout ($took ms)"
is "$(mr zcard qRETRY)" 1 'its message was given back'
is "$(m systemd-cgls --no-pager -u rqd.service 2>/dev/null | grep -c work)" 0 'nothing of it runs'

# -- exit statuses -------------------------------------------------------------------------
conf <<C
nonsense
C
m systemctl start rqd 2>/dev/null
wait_for 30 '[ "$(prop ActiveState)" = failed ]'
is "$(prop ActiveState)" failed 'a bad configuration: failed'
is "$(prop ExecMainStatus)" 78 'with status 78'
is "$(prop NRestarts)" 0 'and not tried again'

# -- another user -------------------------------------------------------------------------
m useradd -m alice
cat >"$R$etc/rqd-alice.conf" <<C
queue "a" { command = {"/bin/sh", "-c", "id -un >/run/rqd-alice/ran"} }
C
m systemctl start rqd@alice
is $? 0 'rqd@alice starts'
mr lpush a x >/dev/null
wait_ok 30 'grep -q alice /proc/$LEADER/root/run/rqd-alice/ran' 'and runs handlers as alice'
m systemctl stop rqd@alice
