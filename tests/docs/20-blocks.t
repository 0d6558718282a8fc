#!/bin/sh
# Types the commands of README.md and the documents, in order, on a machine with a real
# systemd where the package has just been installed, and compares their output with the
# documents.  It does so as an ordinary user with sudo, and as root.

# shellcheck disable=SC2034
BARE=yes
# shellcheck source=tests/system/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/system/lib.sh"

command -v python3 >/dev/null || skip_all 'no python3'
command -v sudo >/dev/null || skip_all 'no sudo'
command -v jq >/dev/null || skip_all 'no jq'

package_make
is $? 0 'the package' || { note "$(tail -40 "$T/build.out")"; exit 1; }
machine_boot
cp "$PACKAGE"/rqd_*.deb "$R/root/rqd.deb"
[ ! -e "$R/etc/redis/redis.conf" ] || m systemctl start redis-server
wait_for 30 '[ "$(m redis-cli ping 2>/dev/null)" = PONG ]' || m redis-server --daemonize yes >/dev/null
m env DEBIAN_FRONTEND=noninteractive dpkg -i /root/rqd.deb >"$T/dpkg.out" 2>&1
is $? 0 'is installed' || note "$(cat "$T/dpkg.out")"

echo '127.0.1.1 rqdhost' >>"$R/etc/hosts"
m useradd --create-home --shell /bin/sh reader
# README.md runs the program that ./demo builds: here it is the installed one.
m sh -c 'for home in /root /home/reader; do mkdir -p $home/build && ln -s /usr/sbin/rqd $home/build/; done'
echo 'reader ALL=(ALL:ALL) NOPASSWD: ALL' >"$R/etc/sudoers.d/reader"
chmod 440 "$R/etc/sudoers.d/reader"
cat >"$T/session" <<S
#!/bin/sh
# A shell of USER in the machine, as after a login.
case \$1 in root) user=root ;; *) user=reader ;; esac
exec $IN su - \$user -s /bin/bash -c 'cd && exec bash'
S
cat >"$T/check" <<S
#!/bin/sh
# Whether a configuration is accepted there.
cat >"$R/root/block.conf"
exec $IN rqd -t -c /root/block.conf </dev/null
S
chmod 755 "$T/session" "$T/check"

# The machine as it was before the first line was typed.
start_again() {
	m systemctl stop rqd
	m sh -c 'redis-cli -a "$(cat /etc/rqd.redis-password)" config set requirepass ""' >/dev/null 2>&1
	m redis-cli flushall >/dev/null
	m redis-cli config set appendonly yes >/dev/null	# as the tutorial does
	m groupdel rqd-redis 2>/dev/null
	m sh -c 'rm -rf /etc/rqd.d/*.conf /usr/local/bin/ship-order /var/lib/orders /etc/rqd.redis-password'
	m userdel orders 2>/dev/null
	m sh -c 'journalctl --rotate; rm -f /var/log/journal/*/*@* /run/log/journal/*/*@*' >/dev/null 2>&1
	m systemctl reset-failed rqd
	m systemctl start rqd
}

read_by() {	# WHO OPTION... DOCUMENT
	who=$1
	shift
	for last in "$@"; do :; done
	start_again
	python3 "$SRCDIR/tests/docs/blocks.py" "$@" >"$T/blocks" 2>&1 --session "$T/session" --check "$T/check"
	status=$?
	while IFS= read -r line; do
		case $line in
		'ok '*) pass "$who: ${line#* - }" ;;
		'not ok '*) fail "$who: ${line#* - }" ;;
		'1..'*) ;;
		*) printf '%s\n' "$line" ;;
		esac
	done <"$T/blocks"
	is $status 0 "$who has read ${last##*/}"
}

for document in README.md doc/tutorial.md doc/redis.md doc/migrating.md doc/operations.md; do
	read_by 'a user with sudo' "$SRCDIR/$document"
done
# Root does the same; sudo changes nothing then.
read_by root --as-root "$SRCDIR/README.md"
read_by root --as-root "$SRCDIR/doc/tutorial.md"
