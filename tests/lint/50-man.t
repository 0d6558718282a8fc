#!/bin/sh
# The man pages are clean mdoc.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

command -v mandoc >/dev/null || skip_all 'no mandoc'
pages=$(find man -name '*.[1-8]' 2>/dev/null | sort)
[ -n "$pages" ] || skip_all 'no man pages yet'

# Cross references to our own pages that are not installed yet are no error.
lint() { mandoc -Tlint -W warning "$1" | grep -v 'referenced manual not found'; }

for f in $pages; do
	silent "$f" lint "$f"
done
done_testing
