#!/bin/sh
# The service before its Redis, with each of the example drop-ins, and with less
# time to stop than a drain may take.

# shellcheck source=tests/system/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/system/lib.sh"

machine_boot
etc=$(sed -n 's/^sysconfdir = //p' "$BUILDDIR/Makefile" | sed "s|\${prefix}|$(prefix)|")
mr() { m redis-cli "$@"; }
mkdir -p "$R/opt"
cat >"$R/opt/work" <<'H'
#!/bin/sh
d=$(cat)
case $(id -un) in rqd) where=/var/lib/rqd ;; *) where=$HOME ;; esac
{ id -un; grep -h '^\(NoNewPrivs\|CapBnd\|Seccomp\):' /proc/self/status | tr -s '\t\n' '  '
touch /home/rqd-was-here 2>/dev/null && echo /home
touch /opt/rqd-was-here 2>/dev/null && echo /opt; echo "end $d"; } >>"$where/ran" 2>&1
H
chmod 755 "$R/opt/work"
m useradd -m alice
m useradd -m bob

conf() { cat >"$R$etc/rqd.conf"; }
drop_in() {	# NAME: alone
	rm -rf "$R/etc/systemd/system/rqd.service.d"
	mkdir -p "$R/etc/systemd/system/rqd.service.d"
	cp "$SRCDIR/etc/examples/systemd/$1.conf" "$R/etc/systemd/system/rqd.service.d/"
	m systemctl daemon-reload
	m systemctl restart rqd
	is $? 0 "$1: it starts"
}
ran() {	# USER
	case $1 in rqd) where=var/lib/rqd ;; *) where=home/$1 ;; esac
	cat "/proc/$LEADER/root/$where/ran" 2>/dev/null
}
handled() {	# USER ID
	who=$1 what=$2
	wait_for 10 'ran "$who" | grep -q "end $what"'
}

# -- before Redis ----------------------------------------------------------------

conf <<C
queue "q" { command = {"/opt/work"} user = "rqd" }
C
m systemctl daemon-reload
m systemctl start rqd
is $? 0 'it starts without Redis'
is "$(prop ActiveState)" active 'and is active'
like "$(prop StatusText)" '[Rr]edis' 'its status names Redis'
m redis-server --port 6379 --bind 127.0.0.1 --save '' --dir /run --daemonize yes >/dev/null
wait_for 10 '[ "$(mr ping 2>/dev/null)" = PONG ]'
mr lpush q first >/dev/null
wait_ok 20 '[ "$(mr llen q)" = 0 ] && [ "$(mr zcard qBACKUP)" = 0 ]' 'when Redis comes, it serves'

# -- relaxed ---------------------------------------------------------------------

chmod 777 "$R/home" "$R/opt"
drop_in relaxed
mr lpush q relaxed >/dev/null
ok 'handled rqd relaxed' 'relaxed: a handler runs'
like "$(ran rqd)" 'NoNewPrivs: 0' 'and may gain privileges'
like "$(ran rqd)" '/home$' 'and write in /home'

# -- strict ----------------------------------------------------------------------

m rm -f /var/lib/rqd/ran
drop_in strict
mr lpush q strict >/dev/null
ok 'handled rqd strict' 'strict: a handler runs'
like "$(ran rqd)" 'NoNewPrivs: 1.*Seccomp: 2' 'and is held'
unlike "$(ran rqd)" '/(home|opt)$' 'and writes nowhere else'
like "$(prop TasksMax)" '^200$' 'its limits are in force'

# -- users -----------------------------------------------------------------------

conf <<C
queue "a" { command = {"/opt/work"} user = "alice" }
queue "b" { command = {"/opt/work"} user = "bob" kill_grace = 1s time_limit = 1s }
queue "slow" { command = {"/bin/sleep", "60"} user = "bob" kill_grace = 1s time_limit = 1s max_attempts = 1 }
C
drop_in users
mr lpush a one >/dev/null
mr lpush b two >/dev/null
mr lpush slow three >/dev/null
ok 'handled alice one' 'users: a handler of alice'
ok 'handled bob two' 'and one of bob'
is "$(ran alice | head -n 1)" alice 'each as its user'
like "$(ran alice)" 'CapBnd: 00000000000000e4' 'with no capability but those to change the user'
wait_ok 15 '[ "$(mr xlen slowDEAD)" = 1 ]' 'and one that exceeds its time is ended'
ok '! m pgrep -u bob sleep >/dev/null' 'although it is of another user'

# -- a drain that takes longer than TimeoutStopSec= -------------------------------

conf <<C
drain_timeout = 20s
queue "long" { command = {"/bin/sh", "-c", 'sleep 5; echo done >>/var/lib/rqd/long'} user = "rqd" }
C
rm -rf "$R/etc/systemd/system/rqd.service.d"
mkdir -p "$R/etc/systemd/system/rqd.service.d"
printf '[Service]\nTimeoutStopSec=2s\n' >"$R/etc/systemd/system/rqd.service.d/short.conf"
m systemctl daemon-reload
m systemctl restart rqd
mr lpush long x >/dev/null
wait_for 10 '[ "$(mr zcard longBACKUP)" = 1 ]'
m systemctl stop rqd
is "$(prop Result)" success 'a drain of 5 s under TimeoutStopSec=2s: the daemon asks for more time'
is "$(cat "/proc/$LEADER/root/var/lib/rqd/long")" 'done' 'and the handler finishes'
is "$(mr exists longBACKUP longRETRY)" 0 'and is acked'
