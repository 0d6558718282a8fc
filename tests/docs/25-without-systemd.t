#!/bin/sh
# doc/tutorial.md, "Without systemd": the block and the commands of its table, where
# nothing of systemd runs: in name spaces of this test's own.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

[ "$(id -u)" -eq 0 ] || skip_all 'needs root'
[ "$SLOW" -eq 1 ] || skip_all 'not with sanitizers: rqd and Redis here are those of a reader'
if [ -z "$RQD_PRIVATE" ]; then
	cleanup
	trap - EXIT
	unshare --mount --net --pid --fork --kill-child --mount-proc true 2>/dev/null ||
	    { echo '1..0 # SKIP no name spaces here'; exit 0; }
	RQD_PRIVATE=yes
	export RQD_PRIVATE
	exec unshare --mount --net --pid --fork --kill-child --mount-proc bash "$0"
fi
mount --make-rprivate / 2>/dev/null || skip_all 'mounts cannot be made private here'

# Stands in for an installation: the programs by PATH, the configuration by a mount.
etc=$(sed -n 's/^prefix = //p' "$BUILDDIR/Makefile")/etc
[ "$etc" != /usr/etc ] || etc=/etc
mkdir "$T/etc" "$T/etc/rqd.d" "$T/bin" "$T/home"
cp "$SRCDIR/etc/rqd.conf" "$T/etc/"
mkdir -p "$etc" && mount --bind "$T/etc" "$etc" || skip_all "$etc cannot be replaced"
ip link set lo up 2>/dev/null || skip_all 'no loopback device'
ln -s "$RQD" "$T/bin/rqd"
ln -s "$RQCTL" "$T/bin/rqctl"
PATH=$T/bin:$PATH
chmod 755 "$T"
cd "$T/home" || exit 1
handler ship-order <<'H'
grep -q '"to"' || { echo 'no address' >&2; exit 65; }
echo shipped
H
echo "queue \"orders\" { command = {\"$T/ship-order\"} user = \"nobody\" }" >"$etc/rqd.d/orders.conf"

# The second column of the table's row that begins with this command of systemd.
instead_of() {
	sed -n "s/^| \`$1[^|]*| \(.*\) |\$/\1/p" "$SRCDIR/doc/tutorial.md" | sed 's/^`\([^`]*\)`.*/\1/'
}

set -m
block=$(sed -n '/^## Without systemd/,/^## /{/^```sh/,/^```/p}' "$SRCDIR/doc/tutorial.md" | grep -v '^```')
like "$block" '^rqd 2>rqd.log &$' 'the block is there'
server=$(printf '%s\n' "$block" | head -n 1)
$server >/dev/null
wait_ok 30 '[ "$(redis-cli ping 2>/dev/null)" = PONG ]' "$server"
eval "$(printf '%s\n' "$block" | tail -n +2)"
wait_ok 30 'grep -q event=ready rqd.log' 'rqd starts' || note "$(cat rqd.log)"
redis-cli LPUSH orders '{"id":42,"to":"Bonn"}' '{"id":8}' >/dev/null
wait_ok 30 'rqctl dead show orders 8 >/dev/null 2>&1' 'a dead letter'
like "$(eval "$(instead_of journalctl.RQD_QUEUE)")" 'event=acked queue=orders id=42 ' 'the log of a message'
like "$(eval "$(instead_of 'systemctl status')")" '^orders +0 ' 'the status'
eval "$(instead_of 'systemctl reload')" >t.out 2>&1
is $? 0 'the reload' || note "$(cat t.out)"
wait_ok 30 'grep -q event=reloaded rqd.log' 'is done'
eval "$(instead_of 'systemctl stop')"
wait_ok 30 'grep -q event=stopped rqd.log' 'the stop'
redis-cli shutdown nosave >/dev/null 2>&1
cd /
