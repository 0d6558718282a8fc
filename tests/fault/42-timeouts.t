#!/bin/sh
# Connections that end are no outage.  A dead daemon's message is taken up within its
# lease and 5 s, although the server closes idle clients after 5 s, and although the
# other daemon's connections are killed every 2 s, or every 15 s.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start --timeout 5
handler work <<'H'
echo "$RQD_ID" >>"$T/ran"
[ -e "$T/hold" ] || exit 0
echo "$RQD_ID" >>"$T/held"
exec sleep 600
H

# A pair of daemons for each queue: name and lease.
pairs='idle30:30 idle6:6 often:30 rarely:30'
start() {	# DAEMON QUEUE LEASE
	rqd_start "$1" <<C
name = "$1"
redis { server = "unix:$SOCK" timeout = 2s }
queue "$2" { command = {"$T/work"} lease = ${3}s }
C
}
touch "$T/hold"
for p in $pairs; do
	q=${p%:*}
	start "a$q" "$q" "${p#*:}"
	r lpush "$q" "{\"id\":\"$q\"}" >/dev/null
done
wait_for 20 '[ "$(wc -l <"$T/held")" -eq 4 ]'
rm "$T/hold"
for p in $pairs; do
	q=${p%:*}
	start "b$q" "$q" "${p#*:}"
	log_wait 30 event=redis_up 1 "b$q"
done

# All connections of a daemon.
cut_off() {	# DAEMON
	r client list | sed -n "s/^id=\([0-9]*\) .* name=$1[^ ]* .*/client kill id \1/p" | r >/dev/null
}
(
	i=0
	while :; do
		sleep 1
		i=$((i + 1))
		[ $((i % 2)) -ne 0 ] || cut_off boften
		[ $((i % 15)) -ne 0 ] || cut_off brarely
	done
) &
OTHER_PIDS="$OTHER_PIDS $!"
sleep 3		# the survivors have seen connections end before
begin=$(msec)
for p in $pairs; do
	rqd_kill9 "a${p%:*}"
done

: >"$T/ran"
check() {	# QUEUE LEASE
	wait_for $(($2 + 30)) "grep -q '^$1$' '$T/ran'"
	took=$(($(msec) - begin))
	note "$1: after $took ms"
	ok "grep -q '^$1$' '$T/ran' && [ $took -le $((($2 + 15) * 1000 * SLOW)) ]" \
	    "$1: taken up within its lease and 15 s"
}
check idle6 6
for q in idle30 often rarely; do check $q 30; done
note "redis_down of bidle30: $(log_count event=redis_down bidle30)"
ok '[ "$(log_count event=redis_down bidle30)" -ge 1 ]' 'the server has closed idle connections'
ok '[ "$(log_count event=redis_down boften)" -ge 5 ]' 'others were killed'
is "$(sort "$T/ran" | uniq -d)" '' 'none ran twice'
