#!/bin/sh
# How dense and how tangled the sources are: figures that may only fall.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

command -v python3 >/dev/null || skip_all 'no python3'

silent 'no figure is above its bound' tests/lint/measure.py compare
done_testing
