#!/bin/sh
# The units as shipped: each run has a cgroup below that of the unit, started as root and as an
# ordinary user; with strict.conf none has.

# shellcheck source=tests/system/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/system/lib.sh"

machine_boot
mkdir -p "$R/opt"
cat >"$R/opt/work" <<'H'
#!/bin/sh
d=$(cat)
sed -n 's/^0:://p' /proc/self/cgroup >"/tmp/$d.cgroup"
setsid sh -c "echo \$\$ >/tmp/$d.left; exec sleep 1000" &
until [ -s "/tmp/$d.left" ]; do sleep 0.05; done
H
chmod 755 "$R/opt/work"
conf() { cat >"$R$etc/$1"; }
tmp() { cat "/proc/$LEADER/root/tmp/$1" 2>/dev/null; }
left() { m sh -c "kill -0 $(tmp "$1.left")" 2>/dev/null; }
uncontained() { m journalctl -q -o cat -u "$1" | grep event=started | tail -n 1 | grep -o 'uncontained=.*'; }

machine_redis
conf rqd.conf <<C
queue "q" { command = {"/opt/work"} user = "daemon" }
C
m systemctl daemon-reload
m systemctl start rqd
is $? 0 'the service starts'
is "$(uncontained rqd)" '' 'it can make cgroups'
mr lpush q one >/dev/null
wait_ok 20 '[ -n "$(tmp one.left)" ] && [ "$(mr zcard qBACKUP)" = 0 ]' 'a message is done'
like "$(tmp one.cgroup)" '/system\.slice/rqd\.service/rqd\.daemon\.[0-9.]+/runs/[0-9]+$' 'the handler had a cgroup of the unit'
wait_ok 20 '! left one' 'the process in another session that it has left is killed'
m systemctl daemon-reload
m systemctl reload rqd
is $? 0 'a reload succeeds'
mr lpush q two >/dev/null
wait_ok 20 '[ -n "$(tmp two.left)" ] && [ "$(mr zcard qBACKUP)" = 0 ]' 'a message after the reload is done'
wait_ok 20 '! left two' 'what its handler has left is killed'
m systemctl stop rqd
is "$(prop Result)" success 'the service stops'

m useradd --system alice
conf rqd-alice.conf <<C
queue "a" { command = {"/opt/work"} }
C
m systemctl start rqd@alice
is $? 0 'rqd@alice starts'
is "$(uncontained rqd@alice)" '' 'it can make cgroups'
mr lpush a alice >/dev/null
wait_ok 20 '[ -n "$(tmp alice.left)" ] && [ "$(mr zcard aBACKUP)" = 0 ]' 'a message of alice is done'
like "$(tmp alice.cgroup)" 'rqd@alice\.service/rqd\.daemon\.[0-9.]+/runs/[0-9]+$' 'the handler had a cgroup'
wait_ok 20 '! left alice' 'what it has left is killed'
m systemctl stop rqd@alice

mkdir -p "$R/etc/systemd/system/rqd.service.d"
cp "$SRCDIR/etc/examples/systemd/strict.conf" "$R/etc/systemd/system/rqd.service.d/"
conf rqd.conf <<C
privileged = false
queue "q" { command = {"/bin/true"} memory_max = 64M }
C
m systemctl daemon-reload
m systemctl start rqd
is $? 0 'strict: the service starts'
like "$(uncontained rqd)" '.' 'strict: the log says that runs are not contained'
wait_ok 20 'm journalctl -q -o cat -u rqd | grep -q "event=warning.*memory_max has no effect here"' 'strict: and that memory_max has no effect'
mr lpush q strict >/dev/null
wait_ok 20 '[ "$(mr llen q)" = 0 ] && [ "$(mr zcard qBACKUP)" = 0 ]' 'strict: a handler runs'
