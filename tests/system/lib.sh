# A whole machine with systemd, for the tests of this folder, which source this file.
# systemd-nspawn boots an overlay over this machine's root in half a second.  rqd is
# installed in it, unless BARE=yes.  Nothing of it stays after the test.  It needs root.
#
# shellcheck shell=sh disable=SC2016,SC2086,SC2034

SRCDIR=${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=tests/lib.sh
. "$SRCDIR/tests/lib.sh"

[ "$(id -u)" -eq 0 ] || skip_all 'needs root'
command -v systemd-nspawn >/dev/null || skip_all 'no systemd-nspawn'
[ "$SLOW" -eq 1 ] || skip_all 'not with sanitizers: the unit forbids what they need'
command -v unshare >/dev/null || skip_all 'no unshare'

# The test runs itself again in mount and process name spaces of its own.
if [ -z "$RQD_SYSTEM" ]; then
	cleanup
	trap - EXIT
	unshare --mount --pid --fork --kill-child --mount-proc true 2>/dev/null ||
	    { echo '1..0 # SKIP no name spaces here'; exit 0; }
	RQD_SYSTEM=yes
	export RQD_SYSTEM
	exec unshare --mount --pid --fork --kill-child --mount-proc sh "$0"
fi

M=$T/machine
IN=''

# Ends a test that cannot have a machine: the rest is skipped, failures so far count.
no_machine() {	# REASON
	[ "$TESTS_RUN" -gt 0 ] || skip_all "$1"
	skip "$1"
	exit 0
}

# Boots the machine; after that, "m COMMAND..." runs a command inside.
machine_boot() {
	# Only one machine at a time: their control groups have the same names.
	exec 8>/tmp/rqd-test-machine.lock
	flock 8
	mount --make-rprivate / 2>/dev/null || no_machine 'mounts cannot be made private here'
	mkdir "$M" && mount -t tmpfs -o size=256m,mode=755 tmpfs "$M" || no_machine 'no tmpfs'
	mkdir "$M/up" "$M/work" "$M/root"
	mount -t overlay overlay -o "lowerdir=/,upperdir=$M/up,workdir=$M/work" "$M/root" 2>/dev/null ||
	    no_machine 'no overlay file system'
	R=$M/root
	rm -f "$R"/etc/systemd/system/*.wants/* "$R/usr/sbin/policy-rc.d"
	: >"$R/etc/fstab"
	echo rqdhost >"$R/etc/hostname"
	rm -rf "$R/var/log/journal" "$R/etc/rqd.conf" "$R/etc/rqd.d"
	# Without this, each dpkg -i would index all manuals again.
	rm -f "$R/var/lib/man-db/auto-update"
	[ "$BARE" = yes ] || machine_install
	# /usr/local/lib/sysusers.d is not looked at during boot; units there are.
	SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn -q --register=no --keep-unit --private-network \
	    --console=read-only -M rqdhost -D "$R" --boot >"$T/boot.out" 2>&1 </dev/null 8>&- &
	NSPAWN=$!
	wait_for 30 'LEADER=$(pgrep -P $NSPAWN -x systemd); [ -n "$LEADER" ] || ! is_alive $NSPAWN'
	IN="nsenter -t $LEADER -m -u -i -n -p -C --"
	wait_for 30 'machine_is_up || ! is_alive $NSPAWN'
	machine_is_up && return
	note "$(tail -30 "$T/boot.out")"
	IN=''
	machine_stop
	no_machine 'systemd does not boot here'
}

machine_is_up() {
	[ -n "$LEADER" ] && m systemctl is-system-running 2>/dev/null | grep -Eq 'running|degraded'
}

machine_install() {
	make -s -C "$BUILDDIR" install DESTDIR="$R" >"$T/install.out" 2>&1 ||
	    { fail 'make install'; note "$(tail -20 "$T/install.out")"; exit 1; }
	systemd-sysusers --root="$R" "$R$(prefix)/lib/sysusers.d/rqd.conf" 2>/dev/null
	cp "$R$(prefix)/lib/tmpfiles.d/rqd.conf" "$R/etc/tmpfiles.d/"
}

# Builds the Debian package from the files of the tarball, in $PACKAGE.  The first test that
# needs it does that for all.  It is built without optimization and debug information, to
# be quick.
PACKAGE=$BUILDDIR/tests/package
package_make() {
	for _tool in dpkg-buildpackage lintian dh; do
		command -v "$_tool" >/dev/null || skip_all "no $_tool"
	done
	mkdir -p "$PACKAGE"
	exec 7>"$PACKAGE.lock"
	flock 7
	if [ -e "$PACKAGE/built" ] && [ -z "$(cd "$SRCDIR" && find src etc man doc systemd debian Makefile.am \
	    configure.ac README.md NEWS.md -newer "$PACKAGE/built" | head -1)" ]; then
		exec 7>&-
		return 0
	fi
	rm -rf "$PACKAGE" && mkdir -p "$PACKAGE"
	make -s -C "$BUILDDIR" distdir distdir="$PACKAGE/src" >"$T/build.out" 2>&1 || { exec 7>&-; return 1; }
	cp -R "$SRCDIR/debian" "$PACKAGE/src/"
	(
		DEB_BUILD_OPTIONS='nocheck noautodbgsym parallel=2' DEB_CFLAGS_APPEND='-O0 -g0'
		DEB_CPPFLAGS_APPEND=-U_FORTIFY_SOURCE	# needs -O1
		export DEB_BUILD_OPTIONS DEB_CFLAGS_APPEND DEB_CPPFLAGS_APPEND
		cd "$PACKAGE/src" && dpkg-buildpackage -us -uc -b
	) >"$T/build.out" 2>&1 7>&-
	_status=$?
	rm -rf "$PACKAGE/src"
	[ $_status -ne 0 ] || : >"$PACKAGE/built"
	exec 7>&-
	return $_status
}

prefix() { sed -n 's/^prefix = //p' "$BUILDDIR/Makefile"; }
m() { $IN "$@" </dev/null; }
mr() { m redis-cli "$@"; }
# Prints a file of the machine.
inside() { cat "/proc/$LEADER/root$1" 2>/dev/null; }
etc=$(sed -n 's/^sysconfdir = //p' "$BUILDDIR/Makefile" | sed "s|\${prefix}|$(prefix)|")

# Starts a Redis inside the machine.
machine_redis() {
	m redis-server --port 6379 --bind 127.0.0.1 --save '' --dir /run --daemonize yes >/dev/null
	wait_for 30 '[ "$(mr ping 2>/dev/null)" = PONG ]'
}

# Prints a property of a unit.
prop() { m systemctl show -P "$1" "${2:-rqd.service}"; }
journal() { m journalctl -o cat --no-pager -u rqd; }

machine_stop() {
	[ -n "$NSPAWN" ] || return 0
	kill -TERM "$NSPAWN" 2>/dev/null
	wait_for 20 '! is_alive "$NSPAWN"' || kill -KILL "$NSPAWN"
	wait "$NSPAWN"
	NSPAWN=''
	umount -l "$M/root" "$M"
	# The end of the name space unmounts everything.  Here only the empty control groups
	# of nspawn are removed.
	for _c in unified systemd; do
		for _g in payload supervisor; do
			find "/sys/fs/cgroup/$_c/$_g" -depth -type d -exec rmdir {} + 2>/dev/null
		done
	done
}

system_finish() {
	_ended=$?
	if [ "$TESTS_FAILED" -gt 0 ] && [ -n "$IN" ]; then
		note "$(journal | tail -100)"
		note "$(m systemctl status rqd --no-pager -l)"
	fi
	machine_stop
	(exit $_ended)
	finish
}
trap system_finish EXIT
