#!/bin/sh
# 30-crash-points.t for kind "stream".

KIND=stream SOME=${SOME:-4}
export KIND SOME
# shellcheck source=tests/fault/30-crash-points.t
. "$(dirname "$0")/30-crash-points.t"
