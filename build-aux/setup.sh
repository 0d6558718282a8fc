# Shared by ./demo and ./check: installs what is missing, and builds.  Sourced from the
# top of the sources.
#
# shellcheck shell=sh disable=SC2034

BUILD_PACKAGES='gcc libc6-dev make automake autoconf autoconf-archive pkg-config
libhiredis-dev libevent-dev libconfuse-dev libjansson-dev libseccomp-dev redis-server'

# How many processors there are: a container may have fewer than nproc sees.
processors() {
	n=$(nproc 2>/dev/null || echo 2)
	read -r quota period <"${1:-/sys/fs/cgroup/cpu.max}" && [ "$quota" != max ] &&
	    [ $((quota / period)) -lt "$n" ] && n=$((quota / period))
	[ "$n" -ge 1 ] || n=1
	echo "$n"
} 2>/dev/null

JOBS=$(processors)
refusing=no
BOLD='' RED='' GREEN='' YELLOW='' CYAN='' PLAIN=''
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ] && [ -z "${NO_COLOR:-}" ]; then
	BOLD=$(printf '\033[1m') RED=$(printf '\033[31m') GREEN=$(printf '\033[32m')
	YELLOW=$(printf '\033[33m') CYAN=$(printf '\033[36m') PLAIN=$(printf '\033[0m')
fi

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

is_installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Debian starts what it installs; policy-rc.d is its way to say no.  An existing
# one is the administrator's, and is left alone.
refuse_services() {
	[ -e /usr/sbin/policy-rc.d ] && return
	printf '#!/bin/sh\nexit 101\n' | as_root sh -c 'cat >/usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d'
	refusing=yes
	trap allow_services EXIT
	trap 'exit 1' HUP INT TERM
}

allow_services() {
	[ "$refusing" = yes ] || return 0
	as_root rm -f /usr/sbin/policy-rc.d
	refusing=no
	trap - EXIT HUP INT TERM
}

apt() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 \
	    -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# Installs those of these packages that are missing.
packages() {	# PACKAGE...
	if ! command -v apt-get >/dev/null; then
		echo "This is not Debian: what is needed must be there already:" "$@"
		return
	fi
	missing=''
	for p in "$@"; do
		is_installed "$p" || missing="$missing $p"
	done
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
		die "run this as root, or install first:$missing"
	fi
	echo "installing:$missing"
	echo '(this may take some minutes, and shows nothing meanwhile)'
	refuse_services
	log=$(mktemp)
	# shellcheck disable=SC2086
	if ! { apt update && apt install -y --no-install-recommends $missing; } >"$log" 2>&1; then
		tail -40 "$log"
		rm -f "$log"
		die 'the packages could not be installed'
	fi
	rm -f "$log"
	allow_services
	case $missing in *redis-server*) redis_note ;; esac
}

# The user may want to use the Redis that was installed here: say how to start it.
redis_note() {
	[ -d /run/systemd/system ] || return 0
	sudo=''
	[ "$(id -u)" -eq 0 ] || sudo='sudo '
	echo "Redis is installed but not started (not needed here): ${sudo}systemctl start redis-server"
}

# Runs a command, and shows what it printed only if it fails.
quietly() {	# COMMAND...
	log=$(mktemp)
	if ! "$@" >"$log" 2>&1 </dev/null; then
		tail -100 "$log"
		rm -f "$log"
		die "failed: $*"
	fi
	rm -f "$log"
}

# Configures a build folder where that was not done, with these options, and builds.
build() {	# FOLDER CONFIGURE-OPTION...
	dir=$1
	shift
	# After sudo ./check, for example.
	for f in . "$dir" "$dir/config.status"; do
		[ ! -e "$f" ] || [ -w "$f" ] ||
		    die "$f belongs to $(stat -c %U "$f"): remove it, or run this as that user"
	done
	[ ! -e config.status ] ||
	    die "this source directory is configured in place: run \"make distclean\" first"
	if [ ! -x configure ] || [ -n "$(find configure.ac -newer configure)" ]; then
		quietly autoreconf -fi
	fi
	mkdir -p "$dir"
	if [ ! -f "$dir/Makefile" ] || [ "$(cat "$dir/options" 2>/dev/null)" != "$*" ]; then
		(cd "$dir" && quietly ../configure -q "$@") || exit 1
		echo "$*" >"$dir/options"
	fi
	quietly make -s -C "$dir" -j "$JOBS"
}
