#!/bin/sh
# Other systems than this one, in root directories of their own: Debian 11 and 13.
#
#	tests/reach/run.sh BUILD	BUILD: of this tree, with its test programs
#
# - The static programs, with TLS and without, run there, and where there is nothing else.
#   Without TLS they are built twice, in two directories: the same bytes.
# - The archive of make dist is built on Debian 11, whose tools and C library are older.  Its Redis
#   6.0 is too old.
# - The tests of Redis and of Lua, and a soak, with the Redis and the Valkey of Debian 13.
#
# Needs root, and a mirror of Debian.  Prints a line for each step, and ends with 0 if all have
# passed, with 77 without root or a mirror, else with 1.

set -u
cd "$(dirname "$0")/../.." || exit 1
[ "$(id -u)" -eq 0 ] || { echo 'needs root'; exit 77; }
BUILD=$(cd "${1:?BUILD}" && pwd) || exit 1
[ -x "$BUILD/tests/redis/test_ack" ] || { echo "no test programs: make -C $BUILD check TESTS="; exit 1; }
# shellcheck source=build-aux/setup.sh
. ./build-aux/setup.sh
packages debootstrap busybox-static openssl binutils
W=$(mktemp -d /var/tmp/rqd-reach.XXXXXX)
trap 'rm -rf --one-file-system "$W"' EXIT
trap 'exit 130' INT TERM
chmod 755 "$W"
failed=0

step() {	# NAME COMMAND...
	name=$1
	shift
	from=$(date +%s)
	if "$@" >"$W/log" 2>&1; then
		echo "  $name: passed, $(grep -c '^ok' "$W/log") checks ($(($(date +%s) - from)) s)"
		sed -n '/# SKIP/s/^/    /p' "$W/log"
		# Without a check nothing has passed.
		! grep -q '^1\.\.0' "$W/log" || failed=$((failed + 1))
		return
	fi
	echo "  $name: FAILED ($(($(date +%s) - from)) s)"
	grep -v '^ok' "$W/log" | tail -n 60 | sed 's/^/    /'
	failed=$((failed + 1))
}

root() {	# DIRECTORY SUITE PACKAGES: a small Debian
	# shellcheck disable=SC2016
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN)' | sed -n 's, Debian$,,p' |
	    grep -v security | head -n 1)
	debootstrap --variant=minbase --include="$3" "$2" "$1" "$mirror" >"$W/log" 2>&1 || {
		tail -n 3 "$W/log"
		echo "  no mirror has all of Debian's $2"
		exit 77
	}
}

# -- Redis and Valkey of Debian 13 ----------------------------------------------------------

# A directory with a redis-server that is the program of another root.
server() {	# DIRECTORY PROGRAM
	mkdir "$1"
	lib=usr/lib/$(gcc -print-multiarch)
	cat >"$1/redis-server" <<-S
		#!/bin/sh
		exec $W/13/$lib/ld-linux-*.so.* --library-path $W/13/$lib \\
		    --argv0 redis-server $W/13/usr/bin/$2 "\$@"
	S
	chmod 755 "$1/redis-server"
	"$1/redis-server" --version
}

# Runs a test, and says whether it has failed.
cat >"$W/run-one" <<'O'
#!/bin/sh
out=$(mktemp)
case $1 in *.t) set -- sh "$1" ;; esac
"$@" >"$out" 2>&1 || { cat "$out"; echo "failed: $*"; }
rm -f "$out"
O
chmod 755 "$W/run-one"

# Bounds of time are those of this machine's own Redis: test_bounds is left out.
with_server() {	# DIRECTORY
	{
		find "$BUILD"/tests/redis "$BUILD"/tests/lua -maxdepth 1 -name 'test_*' \
		    -perm -100 ! -name test_bounds
		echo tests/fault/10-soak.t
		echo tests/daemon/10-ack.t
	} | PATH=$1:$PATH BUILDDIR=$BUILD SRCDIR=$(pwd) xargs -n 1 -P 4 "$W/run-one" >"$W/all" 2>&1
	cat "$W/all"
	! grep -q '^failed: ' "$W/all"
}

# -- the static programs ----------------------------------------------------------------------

# A copy of the tree, whose dist/sources is shared.
copy() {	# DIRECTORY
	mkdir "$1"
	tar --exclude=./build --exclude=./build-asan --exclude=./build-clang --exclude=./build-way \
	    --exclude=./dist --exclude=./.git -cf - . | tar -C "$1" -xf -
	mkdir -p "$1/dist" "$W/sources"
	ln -s "$W/sources" "$1/dist/sources"
}

both_static() {
	copy "$W/first" && (cd "$W/first" && ./build-static && ./build-static --without-tls)
}

same_bytes() {
	copy "$W/second" && (cd "$W/second" && ./build-static --without-tls) &&
	    cmp "$W"/one.dir/dist/*-notls.tar.xz "$W"/another/dist/*-notls.tar.xz
}

in_roots() {	# ARCHIVE
	BUILDDIR=$BUILD SRCDIR=$(pwd) sh tests/reach/static.sh "$1" "$W/11" "$W/13"
}

# -- the archive of make dist ----------------------------------------------------------------

on_debian_11() {
	(cd "$BUILD" && rm -f rqd-*.tar.xz && make -s dist) || return
	rm -rf "$W/11/src" && mkdir "$W/11/src" || return
	tar -xf "$BUILD"/rqd-*.tar.xz -C "$W/11/src" --strip-components=1
	# shellcheck disable=SC2016
	unshare --mount --pid --fork --kill-child sh -ec '
		mount -t proc proc "$1/proc"
		mount --bind /dev "$1/dev"
		exec chroot "$1" sh -ec "cd /src; mkdir b; cd b; ../configure -q
			make -s -j2; ./rqd --version; ./rqctl --version"' sh "$W/11"
}

root "$W/13" trixie redis-server,valkey-server
root "$W/11" bullseye gcc,libc6-dev,make,pkg-config,libhiredis-dev,libevent-dev,libconfuse-dev,libjansson-dev,libseccomp-dev,procps
server "$W/redis" redis-server && server "$W/valkey" valkey-server || exit 1
step 'Redis 8.0: tests of Redis, Lua, a soak' with_server "$W/redis"
step 'Valkey 8.1: tests of Redis, Lua, a soak' with_server "$W/valkey"
step 'the static programs are built' both_static
step 'the same bytes in another directory' same_bytes
for archive in "$W"/one.dir/dist/rqd-*.tar.xz; do
	step "${archive##*/} in other roots" in_roots "$archive"
done
step 'the archive of make dist, on Debian 11' on_debian_11
[ "$failed" -eq 0 ]
