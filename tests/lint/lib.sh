# Shared by the lint tests, which look at the sources only.
#
# shellcheck shell=sh disable=SC2034

SRCDIR=${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
if [ -z "$BUILDDIR" ]; then
	BUILDDIR=$SRCDIR/build
	[ -f ./config.status ] && BUILDDIR=$(pwd)
fi
cd "$SRCDIR" || exit 99
LC_ALL=C.UTF-8
export LC_ALL
TESTS_RUN=0 TESTS_FAILED=0

# One test: it passes if the command, whose output explains, prints nothing.
silent() {	# DESCRIPTION COMMAND...
	_what=$1
	shift
	_out=$("$@" 2>&1)
	TESTS_RUN=$((TESTS_RUN + 1))
	if [ -z "$_out" ]; then
		echo "ok $TESTS_RUN - $_what"
		return
	fi
	TESTS_FAILED=$((TESTS_FAILED + 1))
	echo "not ok $TESTS_RUN - $_what"
	printf '%s\n' "$_out" | head -100 | sed 's/^/# /'
}

skip_all() { echo "1..0 # SKIP $*"; exit 0; }

done_testing() {
	echo "1..$TESTS_RUN"
	[ "$TESTS_FAILED" -eq 0 ]
	exit
}

# Files of the project below these folders, by extension, sorted; not what a build left.
files() {	# EXTENSION FOLDER...
	_ext=$1
	shift
	for _dir in "$@"; do
		[ -d "$_dir" ] && find "$_dir" -name "*.$_ext" -type f
	done | grep -v -e '^build' -e script_table | sort
}

# A variable of the configured build.
built() {	# NAME
	sed -n "s/^$1 = //p" "$BUILDDIR/Makefile"
}
