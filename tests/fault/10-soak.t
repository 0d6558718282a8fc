#!/bin/sh
# Two daemons while things break at random: a fixed seed and a new one, side by
# side.  A run that failed is done again by the line that it printed:
#
#	SEED=... FAULTS=20 MESSAGES=300 tests/fault/soak ./rqd tests/fault/flakyproxy
#
# `make soak` is the long one.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v redis-server >/dev/null || skip_all 'no redis-server'
FAULTS=${FAULTS:-20} MESSAGES=${MESSAGES:-300}
export FAULTS MESSAGES
pids=''
for seed in 20 0; do	# 0: a random one
	SEED=$seed "$BUILDDIR/tests/fault/soak" "$RQD" "$BUILDDIR/tests/fault/flakyproxy" \
	    >"$T/soak$seed.txt" 2>&1 &
	pids="$pids $!"
	OTHER_PIDS="$OTHER_PIDS $!"
done
for seed in 20 0; do
	pid=${pids# }
	pids=${pid#"${pid%% *}"}
	pid=${pid%% *}
	wait "$pid"
	status=$?
	grep -v '^\(ok\|1\.\.\)' "$T/soak$seed.txt" | sed 's/^\([^#]\)/# \1/'
	is "$status" 0 "$(sed -n '1s/^# //p' "$T/soak$seed.txt")"
done
OTHER_PIDS=''
