#!/bin/sh
# rqd as the first process of a container (the example in etc/examples/container):
# orphans are reaped, SIGTERM drains, and nothing outlives it.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

# Root stays root in there, and has every user of the machine; anybody else is alone.
user=''
[ "$(id -u)" -eq 0 ] || user='--user --map-current-user'
# shellcheck disable=SC2086
unshare --pid --fork --mount-proc $user true 2>/dev/null || skip_all 'no name spaces here'
redis_start
QUEUES='orders slow'

# Leaves an orphan that ends by itself, and one that was orphaned before.
handler orphans <<'H'
#!/bin/sh
(setsid sh -c 'sleep 0.1; echo late' >/dev/null 2>&1 &)
cat >>"$OUT"
H
handler slow <<'H'
#!/bin/sh
echo begun >>"$OUT"
sleep 1
echo ended >>"$OUT"
H
sed "s|/usr/local/bin/ship-order|$T/orphans|" "$SRCDIR/etc/examples/container/rqd.conf" >"$T/rqd.conf"
cat >>"$T/rqd.conf" <<C
defaults { env = {"OUT=$T/out"} leftovers = "keep" $AS }
queue "slow" { command = {"$T/slow"} }
C

first() {	# starts it; $first is its number out here
	# shellcheck disable=SC2086
	REDIS_SERVER=unix:$SOCK $RQD_WRAPPER unshare --pid --fork --mount-proc --kill-child $user \
	    "$RQD" -c "$T/rqd.conf" >"$T/log" 2>&1 &
	outer=$!
	OTHER_PIDS=$outer
	wait_for 10 'grep -q event..\"ready "$T/log"'
	first=$(pgrep -P $outer)
}
first
is "$(awk '/^NSpid:/ { print $NF }' "/proc/$first/status")" 1 'rqd is process 1'

for i in 1 2 3 4 5 6 7 8; do r lpush orders "m$i" >/dev/null; done
wait_ok 10 '[ "$(r exists ordersBACKUP orders)" = 0 ]' 'messages are handled'
wait_for 10 'grep -q acked "$T/log"'
like "$(grep acked "$T/log" | head -n 1)" '^\{"ts":.*"event":"acked","queue":"orders"' 'the log is JSON'
wait_ok 10 '! pgrep -P "$first" >/dev/null || [ -z "$(ps -o stat= --ppid "$first" | grep Z)" ]' \
    'orphans are reaped: no zombie'

r lpush slow x >/dev/null
wait_for 10 'grep -q begun "$T/out"'
kill -TERM "$first"
wait "$outer"
is $? 0 'SIGTERM: exit status 0'
ok 'grep -q ended "$T/out"' 'after the handler has ended'
is "$(r exists slowBACKUP slow slowRETRY)" 0 'and its message was acked'
OTHER_PIDS=''

# A process 1 does not die of a signal that it does not handle; these stop it.
HALT=$(python3 -c 'import signal; print(int(signal.SIGRTMIN) + 3)' 2>/dev/null) || HALT=37
for signal in QUIT PWR INT "$HALT"; do
	first
	: >"$T/out"
	r lpush slow x >/dev/null
	wait_for 10 'grep -q begun "$T/out"'
	kill -WINCH "$first"
	kill -"$signal" "$first"
	wait_for 20 '! is_child "$outer"' || kill -KILL "$outer"
	wait "$outer"
	is "$? $(grep -c ended "$T/out")" '0 1' "signal $signal: exit status 0, after the handler"
	OTHER_PIDS=''
done
