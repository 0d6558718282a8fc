#!/bin/sh
# The service started before Redis; with the drop-in strict.conf; with privileged = false;
# and with a TimeoutStopSec= that is shorter than the drain.

# shellcheck source=tests/system/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/system/lib.sh"

machine_boot
sbin=$(prefix)/sbin
mkdir -p "$R/opt"
cat >"$R/opt/work" <<'H'
#!/bin/sh
d=$(cat)
{ id -un; grep -h '^\(NoNewPrivs\|CapBnd\|Seccomp\):' /proc/self/status | tr -s '\t\n' '  '
touch /home/rqd-was-here 2>/dev/null && echo /home
touch /opt/rqd-was-here 2>/dev/null && echo /opt; echo "end $d"; } >>/var/lib/rqd/ran 2>&1
H
chmod 755 "$R/opt/work"
conf() { cat >"$R$etc/rqd.conf"; }
ran() { cat "/proc/$LEADER/root/var/lib/rqd/ran" "/proc/$LEADER/root/var/lib/private/rqd/ran" 2>/dev/null; }

# -- before Redis ----------------------------------------------------------------

conf <<C
queue "q" { command = {"/bin/true"} user = "root" }
C
m systemctl daemon-reload
m systemctl start rqd
is $? 0 'the service starts without Redis'
is "$(prop ActiveState)" active 'the service is active without Redis'
like "$(prop StatusText)" '[Rr]edis' 'the status text without Redis says so'
machine_redis
mr lpush q first >/dev/null
wait_ok 20 '[ "$(mr llen q)" = 0 ] && [ "$(mr zcard qBACKUP)" = 0 ]' 'the queue is served when Redis has come up'

# -- strict ----------------------------------------------------------------------

chmod 777 "$R/home" "$R/opt"
conf <<C
privileged = false
queue "q" { command = {"/opt/work"} }
C
mkdir -p "$R/etc/systemd/system/rqd.service.d"
cp "$SRCDIR/etc/examples/systemd/strict.conf" "$R/etc/systemd/system/rqd.service.d/"
m systemctl daemon-reload
m systemctl restart rqd
is $? 0 'strict: the service starts'
mr lpush q strict >/dev/null
wait_ok 30 'ran | grep -q "end strict"' 'strict: a handler runs'
is "$(ran | head -n 1)" _rqd 'strict: the handler runs as _rqd'
like "$(ran)" 'CapBnd: 0000000000000000 NoNewPrivs: 1.*Seccomp: 2' 'strict: the handler can gain no privilege, and has a seccomp filter'
unlike "$(ran)" '/(home|opt)$' 'strict: the handler cannot write to /home and /opt'
like "$(prop TasksMax)" '^200$' 'strict: TasksMax= is in force'
exposure=$(m systemd-analyze security rqd --no-pager | sed -n 's/.*exposure level for rqd.service: \([0-9.]*\).*/\1/p')
ok "awk 'BEGIN { exit !($exposure <= 1.5) }'" "strict: the exposure by systemd-analyze is at most 1.5 ($exposure)"
m systemctl reload rqd
is $? 0 'strict: a reload succeeds'

# The service and rqd -t, run by root, must both refuse this file.
conf <<C
privileged = false
queue "q" { command = {"/opt/work"} user = "daemon" }
C
said=$(m "$sbin/rqd" -t 2>&1)
is $? 78 'strict: rqd -t of root refuses a queue with another user'
like "$said" 'rqd.conf:2: .*privileged = false all handlers run as user "_rqd"' 'strict: rqd -t says why it refuses that'
ok '! m systemctl reload rqd 2>/dev/null' 'strict: a reload of that file fails'
rm -rf "$R/etc/systemd/system/rqd.service.d"

# -- privileged = false, but root -------------------------------------------------

conf <<C
privileged = false
queue "q" { command = {"/bin/sh", "-c", 'id -un >/tmp/who; grep Cap[IPEA] /proc/self/status >>/tmp/who'} }
C
m systemctl daemon-reload
m systemctl restart rqd
is $? 0 'privileged = false: the service starts under the shipped unit'
mr lpush q x >/dev/null
wait_ok 30 '[ "$(m sh -c "grep -c 0000000000000000 /tmp/who")" = 4 ]' 'privileged = false: handlers have no capability'
is "$(m head -n 1 /tmp/who)" _rqd 'privileged = false: handlers run as _rqd'

# -- a drain that takes longer than TimeoutStopSec= -------------------------------

conf <<C
drain_timeout = 20s
queue "long" { command = {"/bin/sh", "-c", 'sleep 5; echo done >>/srv/long'} user = "root" }
C
mkdir -p "$R/etc/systemd/system/rqd.service.d"
printf '[Service]\nTimeoutStopSec=2s\n' >"$R/etc/systemd/system/rqd.service.d/short.conf"
m systemctl daemon-reload
m systemctl restart rqd
mr lpush long x >/dev/null
wait_for 30 '[ "$(mr zcard longBACKUP)" = 1 ]'
m systemctl stop rqd
is "$(prop Result)" success 'a drain of 5 s under TimeoutStopSec=2s: the daemon asks for more time'
is "$(m cat /srv/long)" 'done' 'the handler finishes during that drain'
is "$(mr exists longBACKUP longRETRY)" 0 'its message is acked'
