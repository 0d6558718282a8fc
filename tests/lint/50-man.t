#!/bin/sh
# The man pages are clean mdoc.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

command -v mandoc >/dev/null || skip_all 'no mandoc'
pages=$(find man -name '*.[1-8]' 2>/dev/null | sort)
[ -n "$pages" ] || skip_all 'no man pages yet'

# Cross references to our own pages that are not installed yet are no error, nor is a line that
# is one sentence.
lint() {
	mandoc -Tlint -W style "$1" 2>/dev/null |
	    grep -vE 'referenced manual not found|input text line longer than 80 bytes'
}

for f in $pages; do
	silent "$f" lint "$f"
done
done_testing
