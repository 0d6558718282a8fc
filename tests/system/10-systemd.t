#!/bin/sh
# rqd as a service of a real systemd: start, status, reload, watchdog, crash, stop, exit
# statuses, and the unit of another user.

# shellcheck source=tests/system/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/system/lib.sh"

machine_boot

# Redis runs inside the machine; the handler's user is not rqd's.
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
ok '[ -e "$R$etc/rqd.conf" ]' 'make install installs rqd.conf'

conf <<C
queue "q" { command = {"/opt/work"} concurrency = 3 }
C
m systemctl daemon-reload

# -- start -------------------------------------------------------------------------
m systemctl start rqd
is $? 0 'systemctl start succeeds'
is "$(prop ActiveState)" active 'the service is active'
is "$(prop Type)" notify 'the service has Type=notify'
like "$(prop StatusText)" . 'the service has a status text'
mr lpush q '{"id":"first"}' >/dev/null
wait_ok 30 'ran | grep -q "first ended"' 'a message is handled'
is "$(ran | head -n 1)" worker 'the handler runs as its user'
wait_ok 30 'journal | grep -q "event=acked queue=q id=first"' 'the journal has the acked message'
unlike "$(journal)" 'ts=|<[0-9]>' 'records in the journal have no ts and no <priority>'
like "$(m journalctl -u rqd -p info..info -o cat --no-pager)" 'event=acked' 'journald knows their priority'
status=$(prop StatusText)
m touch /srv/hold
mr lpush q '{"id":"hold"}' >/dev/null
wait_ok 30 '[ "$(prop StatusText)" != "$status" ]' 'the status text changes while a handler runs'
m rm /srv/hold
note "$status / $(prop StatusText)"

# -- reload ------------------------------------------------------------------------
pid=$(prop MainPID)
conf <<C
queue "q" { command = {"/opt/work"} concurrency = 4 }
queue "p" { command = {"/opt/work"} }
C
m systemctl reload rqd
is $? 0 'systemctl reload with a good file succeeds'
mr lpush p '{"id":"second"}' >/dev/null
wait_ok 30 'ran | grep -q "second ended"' 'the new queue is served after the reload'
conf <<C
queue "q" { concurrency = nonsense }
C
m systemctl reload rqd 2>/dev/null
ok "[ $? -ne 0 ]" 'systemctl reload with a bad file fails'
is "$(prop ActiveState)" active 'the service stays active after a bad reload'
is "$(prop MainPID)" "$pid" 'as the same process'
wait_for 30 'journal | grep -q "rqd.conf:2: "'
like "$(journal)" 'rqd.conf:2: ' 'the journal has the error of the bad file'
mr lpush p '{"id":"third"}' >/dev/null
wait_ok 30 'ran | grep -q "third ended"' 'queues are still served after a bad reload'

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
is "$(prop MainPID)" "$pid" 'rqd notifies the watchdog in time'
m kill -STOP "$pid"
wait_ok 30 '[ "$(prop NRestarts)" -ge 1 ] && [ "$(prop ActiveState)" = active ]' \
    'systemd kills a daemon that hangs, and starts it again'
m sed -i 's/WatchdogSec=.*/WatchdogSec=1min/' /run/systemd/system/rqd.service.d/test.conf
m systemctl daemon-reload
m systemctl restart rqd

# -- kill -9 ----------------------------------------------------------------------------
mr lpush q '{"id":"half-1"}' >/dev/null
wait_for 30 'ran | grep -qx half-1'
pid=$(prop MainPID)
m kill -KILL "$pid"
wait_ok 30 '[ "$(prop MainPID)" != $pid ] && [ "$(prop ActiveState)" = active ]' \
    'systemd starts the daemon again after kill -9'
wait_ok 30 'ran | grep -q "half-1 ended"' 'the message in flight is delivered again after kill -9'

# -- stop --------------------------------------------------------------------------------
mr lpush q '{"id":"half-2"}' >/dev/null
wait_for 30 'ran | grep -qx half-2'
start=$(msec)
m systemctl stop rqd
took=$(($(msec) - start))
is "$(prop Result)" success 'systemctl stop ends with the result success'
ok 'ran | grep -q "half-2 ended"' 'systemctl stop lets the handler finish'
ok "[ $took -le 20000 ]" "systemctl stop does not wait longer ($took ms)"
m systemctl start rqd
mr lpush q '{"id":"long-1"}' >/dev/null
wait_for 30 'ran | grep -qx long-1'
start=$(msec)
m systemctl stop rqd
took=$(($(msec) - start))
is "$(prop Result)" success 'systemctl stop succeeds while a handler does not end'
ok "[ $took -ge 3900 ] && [ $took -le 30000 ]" "it takes drain_timeout then ($took ms)"
is "$(mr zcard qRETRY)" 1 'the message of that handler was returned'
is "$(m systemd-cgls --no-pager -u rqd.service 2>/dev/null | grep -c work)" 0 'no process of that handler is left'

# -- exit statuses -------------------------------------------------------------------------
conf <<C
nonsense
C
m systemctl start rqd 2>/dev/null
wait_for 30 '[ "$(prop ActiveState)" = failed ]'
is "$(prop ActiveState)" failed 'the service fails to start with a bad configuration'
is "$(prop ExecMainStatus)" 78 'the exit status is 78 then'
is "$(prop NRestarts)" 0 'systemd does not start it again then'

# -- another user -------------------------------------------------------------------------
m useradd -m alice
cat >"$R$etc/rqd-alice.conf" <<C
queue "a" { command = {"/bin/sh", "-c", "id -un >/run/rqd-alice/ran"} }
C
m systemctl start rqd@alice
is $? 0 'rqd@alice starts'
mr lpush a x >/dev/null
wait_ok 30 'grep -q alice /proc/$LEADER/root/run/rqd-alice/ran' 'rqd@alice runs handlers as alice'
m systemctl stop rqd@alice
