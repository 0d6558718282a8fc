#!/bin/sh
# The unit files: known words only, and as closed as they claim to be.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

command -v systemd-analyze >/dev/null || skip_all 'no systemd-analyze'
command -v systemd-sysusers >/dev/null || skip_all 'no systemd-sysusers'

D=$(mktemp -d /tmp/rqd-units.XXXXXX) || exit 99
trap 'rm -rf "$D"' EXIT
mkdir -p "$D/root/usr/sbin" "$D/root/bin" "$D/root/usr/lib/systemd/system" "$D/root/usr/lib/sysusers.d" "$D/root/etc"
for b in usr/sbin/rqd bin/kill; do
	printf '#!/bin/sh\n' >"$D/root/$b"
	chmod 755 "$D/root/$b"
done
for u in rqd rqd@; do
	sed -e 's|@sbindir@|/usr/sbin|g' -e 's|@sysconfdir@|/etc|g' "systemd/$u.service.in" >"$D/root/usr/lib/systemd/system/$u.service"
done
# verify wants the targets that a unit names to exist.
for t in sysinit basic shutdown multi-user network-online network; do
	printf '[Unit]\nDescription=%s\n' $t >"$D/root/usr/lib/systemd/system/$t.target"
done

verify() {
	systemd-analyze --man=no --root="$D/root" verify "/usr/lib/systemd/system/$1" 2>&1 |
	    grep -F rqd | grep -v -e 'command not found'
}

# The exposure level of systemd-analyze security, times ten, is at most this.
closed() {
	systemd-analyze security --offline=true --threshold="$2" "$D/root/usr/lib/systemd/system/$1" >"$D/out" 2>&1 ||
	    tail -3 "$D/out"
}

# logrotate works in a directory of the main process' user: as that user, not as root.
logrotate_user() {
	for word in su 'create 0640'; do
		grep -qx "	$word _rqd adm" etc/examples/logrotate || echo "etc/examples/logrotate has no: $word _rqd adm"
	done
}

# Nothing that changes what handlers find: they are any user's.
open_to_all() {
	grep -nE '^(Protect|Private|Restrict|SystemCall|MemoryDeny|RemoveIPC|LockPers|UMask)' systemd/rqd.service.in
	grep -q '^NoNewPrivileges=no$' systemd/rqd.service.in || echo 'handlers cannot use sudo'
}

# The shipped unit with strict.conf, as systemd would merge them; systemd-analyze does not.
strict() {
	f="$D/root/usr/lib/systemd/system/strict.service"
	sed -e '/^\[Install\]/,$d' -e '/^CapabilityBoundingSet=/d' "$D/root/usr/lib/systemd/system/rqd.service" >"$f"
	sed '1,/^\[Service\]/d' etc/examples/systemd/strict.conf >>"$f"
	closed strict.service 15
}

sysusers() {
	cp systemd/rqd.sysusers "$D/root/usr/lib/sysusers.d/rqd.conf"
	systemd-sysusers --root="$D/root" 2>"$D/err" || cat "$D/err"
	grep -q '^_rqd:' "$D/root/etc/passwd" || echo 'no user _rqd was made'
}

says() {
	for line in Type=notify KillMode=mixed OOMPolicy=continue 'RestartPreventExitStatus=64 78' \
	    'ExecReload=.*rqd -t' WatchdogSec= TimeoutStopSec= Restart=on-failure; do
		grep -q "^$line" "systemd/$1.in" || echo "$1 does not say $line"
	done
	grep -qE '^(Requires|BindsTo)=' "systemd/$1.in" && echo "$1 requires another unit"
}

for u in rqd.service rqd@.service; do
	silent "$u is a valid unit" verify $u
	silent "$u says what it must" says $u
done
# It makes /run/systemd where that is missing, in a container without systemd.
if [ -d /run/systemd ] || [ -w /run ]; then
	silent 'rqd.service with strict.conf is closed' strict
	silent 'rqd@.service is closed' closed rqd@.service 30
else
	echo '# no /run/systemd: how closed the units are is not known'
fi
silent 'rqd.service holds handlers to nothing' open_to_all
silent 'logrotate has the user of the main process' logrotate_user
silent 'the user is made by sysusers' sysusers
done_testing
