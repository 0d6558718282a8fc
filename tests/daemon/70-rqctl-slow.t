#!/bin/sh
# A Redis that answers a little now and then, or nothing, or too much: rqctl gives up in
# time, with one line and status 69.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
proxy_start
config_write ctl <<C
redis { server = "unix:$T/proxy.sock" timeout = 1s }
queue "q" { command = {"/bin/true"} }
C

says() {	# COMMAND TO THE PROXY, WHAT IT IS
	for verb in 'peek q' 'push q x' 'status' 'ping'; do
		# A busy machine may keep it waiting once.
		for _ in 1 2 3; do
			echo "$1" >&3
			begin=$(msec)
			# shellcheck disable=SC2086
			timeout 30 "$RQCTL" -c "$T/ctl.conf" $verb >"$T/out" 2>"$T/err" 3>&-
			status=$?
			took=$(($(msec) - begin))
			[ $took -ge $((6000 * SLOW)) ] || break
		done
		is $status 69 "$2: rqctl $verb exits with 69"
		is "$(wc -l <"$T/err")" 1 'with one line'
		ok "[ $took -lt $((6000 * SLOW)) ]" 'in time'
		note "$(cat "$T/err")"
	done
	echo calm >&3
}

says 'rate 50' 'a trickle'
says 'swallow down' 'silence'
says 'refuse 1' 'a closed door'
echo 'swallow none' >&3
ok '"$RQCTL" -c "$T/ctl.conf" push q x' 'afterwards it works'
r del q >/dev/null
exec 3>&-
