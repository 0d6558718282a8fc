#!/bin/sh
# The Debian package: it is built from the tarball without errors or warnings of lintian.
# On a machine with a real systemd it is installed, upgraded while a handler runs, removed
# and purged.

# shellcheck disable=SC2034
BARE=yes
# shellcheck source=tests/system/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/system/lib.sh"

# -- build ---------------------------------------------------------------------

package_make
is $? 0 'dpkg-buildpackage succeeds' || { note "$(tail -40 "$T/build.out")"; exit 1; }
DEB=$(ls "$PACKAGE"/rqd_*.deb)
lintian --allow-root --fail-on error,warning "$PACKAGE"/rqd_*.changes >"$T/lintian.out" 2>&1
is $? 0 'lintian has neither errors nor warnings' || note "$(cat "$T/lintian.out")"

# Make the same package with a higher version.
dpkg-deb -R "$DEB" "$T/next" && sed -i 's/^Version: .*/Version: 99.0-1/' "$T/next/DEBIAN/control"
echo '# of the next version' >>"$T/next/etc/rqd.conf"
(cd "$T/next" && find . -path ./DEBIAN -prune -o -type f -print0 | xargs -0 md5sum |
    sed 's|\./||' | grep -v ' etc/' >DEBIAN/md5sums)
dpkg-deb --root-owner-group -b "$T/next" "$T/next.deb" >/dev/null

machine_boot
cp "$DEB" "$R/root/rqd.deb"
cp "$T/next.deb" "$R/root/next.deb"
redis_conf=$R/etc/redis/redis.conf
[ -e "$redis_conf" ] && m systemctl start redis-server
wait_for 30 '[ "$(m redis-cli ping 2>/dev/null)" = PONG ]' || m redis-server --daemonize yes >/dev/null
m redis-cli flushall >/dev/null

apt_install() { m env DEBIAN_FRONTEND=noninteractive dpkg --force-confold -i "/root/$1" >"$T/dpkg.out" 2>&1; }

# -- install -------------------------------------------------------------------

apt_install rqd.deb
is $? 0 'the package installs' || note "$(cat "$T/dpkg.out")"
is "$(prop ActiveState)" active 'the service is active after the installation'
is "$(m systemctl is-enabled rqd.service)" enabled 'the service is enabled'
is "$(m ps -o user= -p "$(prop MainPID)")" _rqd 'the main process runs as the user _rqd'
is "$(m stat -c '%U %a' /run/rqd /var/log/rqd | tr '\n' ' ')" '_rqd 755 _rqd 750 ' '/run/rqd and /var/log/rqd belong to _rqd'
ok 'm rqctl ping | grep -q "127.0.0.1:6379"' 'rqctl reaches Redis'
ok 'm man -w rqd.conf >/dev/null 2>&1 || [ -e "$R/usr/share/man/man5/rqd.conf.5.gz" ]' 'the manuals are installed'
ok '[ -e "$R/usr/share/bash-completion/completions/rqctl" ]' 'the completion of rqctl is installed'

# The package's own tests, which Debian runs on each upload.
package_test() {	# NAME
	cp "$SRCDIR/debian/tests/$1" "$R/root/$1"
	m sh "/root/$1" >"$T/$1.out" 2>&1
	is $? 0 "debian/tests/$1 passes" || note "$(tail -30 "$T/$1.out")"
	m rm -f "/etc/rqd.d/$1.conf"
}
m systemctl stop redis-server
m redis-cli shutdown nosave >/dev/null 2>&1
for name in $(sed -n 's/^Tests: //p' "$SRCDIR/debian/tests/control" | tr -d ,); do
	package_test "$name"
done

# The first queue, as a user would make it.
cat >"$R/usr/local/bin/work" <<'H'
#!/bin/sh
m=$(cat)
echo "begin $m" >>/srv/ran
case $m in slow*) sleep 2 ;; esac
echo "end $m" >>/srv/ran
H
chmod 755 "$R/usr/local/bin/work"
m useradd orders && m chown orders /srv
echo 'queue "orders" { command = {"/usr/local/bin/work"} user = "orders" }' >"$R/etc/rqd.d/orders.conf"
echo '# mine' >>"$R/etc/rqd.conf"
m systemctl reload rqd
is $? 0 'a reload with a first queue in /etc/rqd.d succeeds'
ran() { cat "/proc/$LEADER/root/srv/ran" 2>/dev/null; }
m redis-cli lpush orders one >/dev/null
wait_ok 30 'ran | grep -q "end one"' 'the first queue is served'

# -- upgrade -------------------------------------------------------------------

pid=$(prop MainPID)
m redis-cli lpush orders slow-1 >/dev/null
wait_for 30 'ran | grep -q "begin slow-1"'
apt_install next.deb
is $? 0 'an upgrade while a handler runs succeeds' || note "$(cat "$T/dpkg.out")"
ok 'ran | grep -q "end slow-1"' 'the upgrade lets the handler finish'
ok '[ "$(prop MainPID)" != "$pid" ] && [ "$(prop ActiveState)" = active ]' 'the upgrade starts the new version'
is "$(ran | grep -c "begin slow-1")" 1 'the message ran once'
ok 'grep -q "^# mine" "$R/etc/rqd.conf"' 'the changed rqd.conf is kept'
ok '[ -e "$R/etc/rqd.conf.dpkg-dist" ]' 'the new rqd.conf is rqd.conf.dpkg-dist'
m redis-cli lpush orders two >/dev/null
wait_ok 30 'ran | grep -q "end two"' 'the queue is served after the upgrade'

# -- remove, purge -------------------------------------------------------------

m dpkg -r rqd >"$T/dpkg.out" 2>&1
is $? 0 'the package is removed' || note "$(cat "$T/dpkg.out")"
is "$(m systemctl show -P ActiveState rqd.service)" inactive 'the service has stopped'
ok '[ ! -e "$R/usr/sbin/rqd" ] && [ -e "$R/etc/rqd.conf" ]' 'removing deletes the programs and keeps the configuration'
ok '[ -d "$R/var/log/rqd" ]' 'removing keeps log files'
m sh -c 'echo x >/var/log/rqd/rqd.log'
m dpkg -P rqd >"$T/dpkg.out" 2>&1
is $? 0 'the package is purged' || note "$(cat "$T/dpkg.out")"
ok '[ ! -e "$R/etc/rqd.conf" ] && [ ! -e "$R/etc/systemd/system/multi-user.target.wants/rqd.service" ]' \
    'purging deletes rqd.conf and disables the service'
ok '[ ! -e "$R/var/log/rqd" ] && [ ! -e "$R/run/rqd" ]' 'purging deletes /var/log/rqd and /run/rqd'
ok '[ -e "$R/etc/rqd.d/orders.conf" ]' 'purging keeps files that the administrator wrote'
