# Lets shell tests use shim.c: sourced after tests/lib.sh.
#
#	shim_make
#	RQD_WRAPPER=$SHIM	# rqd under it
#	redis_under_shim	# or redis_start
#	shim_fork 11		# fork(2) fails: EAGAIN; 0: it works
#	shim_clock 3600		# the calendar is an hour ahead
#	shim_mono 60		# timers are a minute ahead
#
# shellcheck shell=sh disable=SC2034,SC2154

# A file of the size of struct shim, all zero; see shim.h for what is where.
shim_make() {
	dd if=/dev/zero of="$T/shim" bs=64 count=1 2>/dev/null
	ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
	export ASAN_OPTIONS
	SHIM="env RQD_SHIM=$T/shim LD_PRELOAD=$BUILDDIR/tests/fault/shim.so"
}

shim_put() {	# OFFSET BYTES VALUE
	_bytes='' _i=0
	while [ $_i -lt $((8 * $2)) ]; do
		_bytes="$_bytes\\$(printf %03o $((($3 >> _i) & 255)))"
		_i=$((_i + 8))
	done
	# shellcheck disable=SC2059
	printf "$_bytes" | dd of="$T/shim" bs=1 seek="$1" conv=notrunc 2>/dev/null
}

shim_fork() { shim_put 0 4 "$1"; }
shim_exec() { shim_put 4 4 "$1"; }
shim_clock() { shim_put 16 8 "$1"; }
shim_mono() { shim_put 40 4 "$1"; }

# For Redis libfaketime is no use: with jemalloc it hangs.
redis_under_shim() {
	printf '#!/bin/sh\nexec %s %s "$@"\n' "$SHIM" "$(command -v redis-server)" >"$T/redis-server"
	chmod 755 "$T/redis-server"
	PATH=$T:$PATH
	redis_start
}
