#!/bin/sh
# rqctl try: the handler by hand, without Redis.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

handler env <<'H'
cat >"$T/got"
echo "out $RQD_QUEUE $RQD_ID $RQD_ATTEMPT $RQD_MAX_ATTEMPTS $RQD_CONFIG"
echo err >&2
pwd
H
for status in 1 65 75; do
	handler "exit$status" <<H
exit $status
H
done
handler slow <<'H'
echo started >"$T/started"
sleep 1000
H
handler killed <<'H'
kill -KILL $$
H
handler quiet </dev/null
handler limits <<'H'
d=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)$(sed -n 's/^0:://p' /proc/self/cgroup)
cat "$d/memory.max" "$d/pids.max"
H
# Does what the message says, in sh.
handler batch <<'H'
read -r head
eval "$(head -n 1)"
H

config_write try <<C
queue "env" { command = {"$T/env"}  directory = "/usr" }
queue "exit1" { command = {"$T/exit1"}  backoff = 5s }
queue "exit65" { command = {"$T/exit65"} }
queue "exit75" { command = {"$T/exit75"}  max_attempts = 3 }
queue "killed" { command = {"$T/killed"} }
queue "slow" { command = {"$T/slow"}  time_limit = 300ms  kill_grace = 10s }
queue "long" { command = {"$T/slow"} }
queue "none" { command = {"$T/nonexistent"} }
queue "pipe" { command = {"/usr/bin/tr", " ", "\\n"}  output = "push:small"  pushes = {"small"} }
queue "batch" { command = {"$T/batch"}  batch = 10 }
queue "limited" { command = {"$T/batch"}  batch = 10  time_limit = 2s  kill_grace = 10s }
queue "declared" { concurrency = 0 }
queue "limits" { command = {"$T/limits"}  memory_max = 64M  pids_max = 10 }
queue "small" { command = {"$T/quiet"}  message_max = 10 }
C
RQD_CONFIG=$T/try.conf
export RQD_CONFIG

printf '{"x":7}\n\0x' >"$T/message"
try() { # STATUS VERDICT ARGUMENT...
	_want=$1 _re=$2
	shift 2
	"$RQCTL" try "$@" <"$T/message" >"$T/out" 2>"$T/err"
	is $? "$_want" "status of try $*"
	like "$(tail -1 "$T/err")" "$_re" "verdict of try $*"
}

try 0 '^rqctl: env ~[^ ]*: status 0 after .*: would be acked$' env
ok 'cmp -s "$T/message" "$T/got"' 'the message, byte for byte'
is "$(cat "$T/out")" "out env $(sed -n 's/^rqctl: env \([^:]*\):.*/\1/p' "$T/err") 1 25 $T/try.conf
/usr" 'its output, in its directory'
like "$(cat "$T/err")" '^err$' 'its errors'
# Whether there are controllers for them depends on the machine.
"$RQCTL" try limits <"$T/message" >"$T/out" 2>"$T/err"
for limit in memory_max:67108864 pids_max:10; do
	grep -qx "${limit#*:}" "$T/out" || grep -q "^rqctl: warning: ${limit%:*} has no effect here: ." "$T/err"
	is $? 0 "${limit%:*} limits the run, or rqctl says that it does not"
done
printf '{"id":7}' >"$T/message"
try 0 '^rqctl: env 7: ' env
try 0 '^rqctl: env 8: ' env --id 8 --attempt 3
like "$(cat "$T/out")" '^out env 8 3 25 ' 'attempt and id are told'
printf other >"$T/file"
try 0 'acked' env "$T/file"
is "$(cat "$T/got")" other 'the message from a file'
try 66 'No such file' env "$T/missing"
try 1 'status 1 after .*: would be retried in 2.5s to 5s$' exit1
try 1 'would be retried in 10s to 20s$' exit1 --attempt 3
try 65 'would be a dead letter: status$' exit65
try 75 'would be retried in' exit75
try 75 'would be a dead letter: attempts$' exit75 --attempt 3
try 137 'signal SIGKILL after .*: would be retried' killed
try 143 'signal SIGTERM after .*, ended at time_limit: would be retried' slow
try 127 'cannot be started: .*: would be returned without an attempt; the queue would be suspended' none
printf 12345678901 >"$T/message"
try 65 'without being run: too_large' small

# rqctl try prints the messages that the handler would hand over; if it breaks a rule,
# none.
printf 'one two' >"$T/message"
try 0 'would be acked, with 2 messages for small$' pipe
is "$(cat "$T/out")" 'push small one
push small two' 'what would be pushed'
printf 'one 12345678901' >"$T/message"
try 0 'may not push (.*message_max.*): would be retried' pipe
is "$(cat "$T/out")" '' 'nothing would be pushed'
try 64 'has concurrency = 0: others consume it' declared

# A batch of one goes on after what it says of its message: the status is that of its end.
printf 'echo 1 ok >&3; sleep 0.05; exit 3' >"$T/message"
try 3 'said ok after .*, status 3 after .*: would be acked$' batch
printf 'echo 1 ok >&3; sleep 0.05; kill -KILL $$' >"$T/message"
try 137 'said ok after .*, signal SIGKILL after .*: would be acked$' batch
printf 'echo 1 ok >&3; exec sleep 1000' >"$T/message"
try 143 'said ok after .*, signal SIGTERM after .*, ended at time_limit: would be acked$' limited
printf 'echo 1 dead hopeless >&3' >"$T/message"
try 0 'status 0 after .*, said dead \(hopeless\): would be a dead letter: answer$' batch
printf 'echo 2 ok >&3' >"$T/message"
try 0 'broke the protocol .*: would be retried' batch
printf 'exit 75' >"$T/message"
try 75 'status 75 after .*: would be retried in' batch

# Interrupted: as at a shutdown.
rm -f "$T/started"
"$RQCTL" try long <"$T/message" >"$T/out" 2>"$T/err" &
wait_for 30 '[ -s "$T/started" ]'
kill -INT $!
wait $!
is $? 143 'interrupted: the handler got SIGTERM'
like "$(cat "$T/err")" 'would be returned without an attempt' 'interrupted: verdict'
wait_for 30 '[ -z "$(our_processes)" ]'
is "$(our_processes)" '' 'nothing is left running'

# As root: what the handler writes, another user reads, without capabilities.
if [ "$(id -u)" -eq 0 ]; then
	rm -f "$T/pipe"
	printf 'readlink /proc/$$/fd/2 >"%s"; while [ ! -e "%s" ]; do sleep 0.05; done' "$T/pipe" "$T/go" >"$T/message"
	"$RQCTL" try batch <"$T/message" >"$T/out" 2>"$T/err" &
	wait_for 30 '[ -s "$T/pipe" ]'
	readers=$(find /proc/[0-9]*/fd -lname "pipe:?$(tr -dc 0-9 <"$T/pipe")?" -perm -400 ! -perm -200 2>/dev/null | while read -r d; do
		sed -n 's/^\(Uid\|CapPrm\):[	 ]*\([0-9a-f]*\).*/\2/p' "${d%/fd/*}/status"
	done | tr '\n' ' ')
	is "$readers" "$(id -u _rqd) 0000000000000000 " 'as root: another user reads what the handler writes'
	touch "$T/go"
	wait $!
	is $? 0 'as root: it goes on'
fi

# -- nothing of a message drives the terminal ------------------------------------------

printf '{"id":"a\302\233b"}' >"$T/message"
try 0 '^rqctl: env a\\xc2\\x9bb: status 0 ' env

unset RQD_CONFIG
"$RQCTL" --server unix:/nonexistent try q </dev/null 2>"$T/err"
is $? 64 'without a file: status'
like "$(cat "$T/err")" '^rqctl: try needs a configuration' 'without a file: words'
