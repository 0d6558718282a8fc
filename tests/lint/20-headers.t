#!/bin/sh
# Every header compiles alone, with all warnings, and twice.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

[ -f "$BUILDDIR/Makefile" ] || skip_all 'not configured'
CC=$(built CC)
FLAGS="$(built HIREDIS_CFLAGS) $(built EVENT_CFLAGS) $(built CONFUSE_CFLAGS)
$(built JANSSON_CFLAGS)"

compile() {
	# shellcheck disable=SC2086
	printf '#include "%s"\n#include "%s"\nint x;\n' "$1" "$1" |
	    $CC -std=gnu17 -D_GNU_SOURCE -DSYSCONFDIR='""' -I"$BUILDDIR" -Isrc -I"$BUILDDIR/src" $FLAGS \
	    -Wall -Wextra -Wstrict-prototypes -Werror -fsyntax-only -x c -
}

for h in $(files h src); do
	silent "$h" compile "${h#src/}"
done
done_testing
