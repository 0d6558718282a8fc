#!/bin/sh
# Locks over a network that delays, loses replies and cuts connections: never two at
# once.  Some commands are ended because their lock could not be kept; no two run at the
# same time.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
ROUNDS=${ROUNDS:-12}
redis_start
proxy_start
RQD_SERVER=unix:$T/proxy.sock
export RQD_SERVER T

# A directory is what only one can make; who is ended leaves it to the next.
cat >"$T/alone" <<'H'
#!/bin/sh
if ! mkdir "$T/busy" 2>/dev/null; then
	holder=$(cat "$T/busy/pid" 2>/dev/null)
	[ -n "$holder" ] && kill -0 "$holder" 2>/dev/null && echo "$holder and $$" >>"$T/both"
fi
echo $$ >"$T/busy/pid"
echo run >>"$T/runs"
sleep 0.0$(($$ % 10))
rm -rf "$T/busy"
H
chmod 755 "$T/alone"
echo 'lose 9' >&3
echo 'delay 20' >&3
workers=''
for i in 1 2 3 4 5 6; do
	(
		for _ in $(seq "$ROUNDS"); do
			"$RQCTL" lock n --ttl 2s --wait 20s -- "$T/alone" 2>>"$T/errors"
			echo $? >>"$T/statuses"
		done
	) &
	workers="$workers $!"
done
for _ in 1 2 3; do
	sleep 1
	echo drop >&3
done
# shellcheck disable=SC2086
wait $workers
is "$(cat "$T/both" 2>/dev/null)" '' 'never two at once'
is "$(grep -vcE '^(0|69|75|76)$' "$T/statuses")" 0 'each says what became of it'
done=$(grep -c '^0$' "$T/statuses")
ok "[ $done -gt $((ROUNDS * 2)) ]" 'most run'
ok "[ $done -le $(wc -l <"$T/runs") ]" 'who says so has run'
note "statuses: $(sort "$T/statuses" | uniq -c | tr '\n' ' ')"
echo calm >&3
ok 'wait_for 20 "[ -z \"\$(keys)\" ]"' 'no lock is left for long'
exec 3>&-
