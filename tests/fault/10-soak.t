#!/bin/sh
# Two daemons while things break at random, from four seeds side by side: what
# is checked in must not fail for what was there before.  `make soak` draws new
# seeds, and is the long one.  A run that failed is done again by the line that
# it printed:
#
#	SEED=... FAULTS=20 MESSAGES=300 tests/fault/soak ./rqd tests/fault/flakyproxy \
#	    $PWD/tests/fault/shim.so

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v redis-server >/dev/null || skip_all 'no redis-server'
# PATIENCE: other tests run beside this one, and sanitizers make all slower.
FAULTS=${FAULTS:-20} MESSAGES=${MESSAGES:-300} PATIENCE=5
export FAULTS MESSAGES PATIENCE
# The third has Redis forget, and machines in trouble.
FORGETS='FLUSHALL,replica promoted,daemon killed,fork fails,exec fails,no descriptors'
# The fourth is of kind "stream".
SEEDS='20 359654417 3 22'
pids=''
for seed in $SEEDS; do
	KINDS=''
	[ "$seed" != 3 ] || KINDS="$FORGETS,disk full,clock jump"
	export KINDS
	[ "$seed" != 22 ] || export STREAM=1
	SEED=$seed "$BUILDDIR/tests/fault/soak" "$RQD" "$BUILDDIR/tests/fault/flakyproxy" \
	    "$BUILDDIR/tests/fault/shim.so" >"$T/soak$seed.txt" 2>&1 &
	pids="$pids $!"
	OTHER_PIDS="$OTHER_PIDS $!"
done
for seed in $SEEDS; do
	pid=${pids# }
	pids=${pid#"${pid%% *}"}
	pid=${pid%% *}
	wait "$pid"
	status=$?
	grep -v '^\(ok\|1\.\.\)' "$T/soak$seed.txt" | sed 's/^\([^#]\)/# \1/'
	is "$status" 0 "$(sed -n '1s/^# //p' "$T/soak$seed.txt")"
done
OTHER_PIDS=''
