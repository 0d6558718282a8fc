#!/bin/sh
# Everything that is shell goes through shellcheck: as POSIX sh, but for .ci/run.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

command -v shellcheck >/dev/null || skip_all 'no shellcheck'

# Commands under test are given in single quotes, and lib.sh is sourced by a
# path that shellcheck does not see.
posix() { shellcheck -s sh -S warning -e SC1090,SC1091,SC2034,SC2154 "$1"; }
bash_() { shellcheck -S warning "$1"; }

for f in $(files t tests) $(files sh tests etc build-aux bench | grep -v tap-driver) check demo; do
	[ -f "$f" ] && silent "$f" posix "$f"
done
[ -f .ci/run ] && silent .ci/run bash_ .ci/run
done_testing
