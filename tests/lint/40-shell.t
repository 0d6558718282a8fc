#!/bin/sh
# Everything that is shell goes through shellcheck: as POSIX sh, but for .ci/run.  It
# takes a processor for ten seconds: outside the long form sh reads all files, and shellcheck
# those that git calls changed.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

command -v shellcheck >/dev/null || skip_all 'no shellcheck'

# Commands under test are given in single quotes, and lib.sh is sourced by a
# path that shellcheck does not see.
whole=no changed=" $(git ls-files -m -o --exclude-standard 2>/dev/null | tr '\n' ' ')"
[ -z "$RQD_TEST_LONG" ] || whole=yes
posix() {
	sh -n "$1" || return
	case $whole-$changed in no-*" $1 "*) ;; no-*) return ;; esac
	shellcheck -s sh -S warning -e SC1090,SC1091,SC2034,SC2154 "$1"
}
bash_() { shellcheck -S warning "$1"; }

for f in $(files t tests) $(files sh tests etc build-aux bench | grep -v tap-driver) check demo build-static; do
	[ -f "$f" ] && silent "$f" posix "$f"
done
[ -f .ci/run ] && silent .ci/run bash_ .ci/run
done_testing
