#!/bin/sh
# rqctl lock: one command runs at a time, whatever happens to Redis, to the lock, to
# rqctl.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
RQD_SERVER=unix:$SOCK
export RQD_SERVER T

# A command that notes when it was told to end, and can be told to ignore that.
cat >"$T/hold" <<'H'
#!/bin/sh
trap 'date +%s%N >"$T/term"; [ -n "$STUBBORN" ] || exit 9' TERM
: >"$T/started"
while [ ! -e "$T/go" ]; do sleep 0.2; done
H
chmod 755 "$T/hold"
hold() { # OPTION...: in the background; waits for the start
	rm -f "$T/started" "$T/term" "$T/go" "$T/status" "$T/err"
	{ "$RQCTL" lock "$@" h -- "$T/hold" 2>"$T/err"; echo $? >"$T/status"; } &
	wait_for 30 '[ -e "$T/started" ]'
}
ended() { wait_for 30 '[ -s "$T/status" ]'; wait $!; cat "$T/status"; }
told() { echo $(($(cat "$T/term") / 1000000)); }	# ms
status() { "$@" >/dev/null 2>&1 </dev/null; echo $?; }

# -- as flock(1) ---------------------------------------------------------------------

is "$("$RQCTL" lock a -- printf '%s|' 'x y' --json -n)" 'x y|--json|-n|' 'the command and its arguments'
is "$(echo in | "$RQCTL" lock a cat)" in 'standard input, and no -- where none is needed'
is "$(status "$RQCTL" lock a -- sh -c 'exit 3')" 3 'its exit status'
is "$(status "$RQCTL" lock a -- sh -c 'kill -KILL $$')" 137 'a signal that ended it'
is "$(status "$RQCTL" lock a -- "$T/none")" 127 'no such command'
is "$(status "$RQCTL" lock a -- "$T")" 126 'one that cannot be executed'
is "$("$RQCTL" lock a -- "$RQCTL" lock b -- echo both)" both 'two locks'
is "$(keys)" '' 'nothing is left in Redis'
like "$("$RQCTL" lock a -- redis-cli -s "$SOCK" get Lock:a)" '^[0-9a-z]{26} [^ ]+ [0-9]+ [0-9]+\.[0-9]{6}$' 'the value: token, host, pid, since'
is "$("$RQCTL" lock a -- grep ^SigIgn /proc/self/status)" "$(grep ^SigIgn /proc/self/status)" 'no signal is ignored that was not'
ttl=$("$RQCTL" lock a --ttl 7m -- redis-cli -s "$SOCK" pttl Lock:a)
ok '[ "$ttl" -le 420000 ] && [ "$ttl" -gt 300000 ]' '--ttl'

# -- one at a time -------------------------------------------------------------------

echo 0 >"$T/number"
cat >"$T/add" <<'H'
#!/bin/sh
n=$(cat "$T/number")
echo $((n + 1)) >"$T/number"
H
chmod 755 "$T/add"
# Another program, with the same key.
cat >"$T/peer" <<'H'
#!/bin/sh
r() { redis-cli -s "${RQD_SERVER#unix:}" "$@"; }
for _ in $(seq 1 10); do
	until [ "$(r setnx Lock:n peer)" = 1 ]; do sleep 0.01; done
	r expire Lock:n 60 >/dev/null
	"$T/add"
	r del Lock:n >/dev/null
done
H
chmod 755 "$T/peer"
waiting=''
for i in 1 2 3 4 5 6 7 8 9 10; do
	(for _ in $(seq 1 20); do "$RQCTL" lock n -- "$T/add" || echo "process $i" >>"$T/failed"; done) &
	waiting="$waiting $!"
done
"$T/peer" & waiting="$waiting $!"
"$T/peer" & waiting="$waiting $!"
# shellcheck disable=SC2086
wait $waiting
is "$(cat "$T/failed" 2>/dev/null)" '' 'ten processes: none failed'
is "$(cat "$T/number")" 220 '200 increments of theirs, 20 of programs with SETNX and EXPIRE'

# -- waiting --------------------------------------------------------------------------

hold
is "$(r setnx Lock:h other)" 0 'a program with SETNX sees it'
is "$("$RQCTL" lock h --wait 0 -- echo no 2>&1)
$(status "$RQCTL" lock h --wait 0 -- echo no)" "rqctl: lock h is held by $(uname -n), process $(r get Lock:h | cut -d' ' -f3), since $(date -u -d "@$(r get Lock:h | cut -d' ' -f4)" +%FT%T.%3NZ)
75" '--wait 0: at once, and says who has it'
is "$(status "$RQCTL" lock h --wait 1ms -- echo no) $(status "$RQCTL" lock free --wait 1ms -- true)" '75 0' '--wait: one try there is'
before=$(msec)
is "$(status "$RQCTL" lock h --wait 700ms -- echo no)" 75 '--wait: its status'
ok '[ $(($(msec) - before)) -ge 700 ]' '--wait: not before that'
r config resetstat >/dev/null
is "$(status "$RQCTL" lock h --wait 3s -- true)" 75 'a longer wait'
tries() { r info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p'; }
calls=$(tries)
ok '[ "$calls" -ge 6 ] && [ "$calls" -le 40 ]' "who waits tries some five to ten times a second ($calls in 3 s)"
"$RQCTL" lock h -- date +%s%N >"$T/had" &
waiter=$!
wait_for 30 '[ "$(tries)" -gt "$((calls + 1))" ]'
: >"$T/go"
is "$(ended)" 0 'the holder ends'
wait $waiter
ok '[ -s "$T/had" ]' 'the next one has it'
"$RQCTL" lock h -- sleep 1000 & holder=$!
wait_for 30 '[ "$(r exists Lock:h)" = 1 ]'
calls=$(tries)
"$RQCTL" lock h -- true & waiter=$!
wait_for 30 '[ "$(tries)" -gt "$((calls + 1))" ]'
kill -TERM $waiter
wait $waiter
is $? 143 'SIGTERM to one that waits'
kill -TERM $holder
wait $holder
is $? 143 'SIGTERM is passed on to the command'
is "$(keys)" '' 'nothing is left'

# -- a key without a time to live ---------------------------------------------------------

r set Lock:h dead >/dev/null
before=$(msec)
is "$(status "$RQCTL" lock h --ttl 2s --wait 0 -- true)" 75 'a key without ttl is a lock'
is "$(status "$RQCTL" lock h --ttl 2s -- true)" 0 'it is taken over'
ok '[ $(($(msec) - before)) -ge 1000 ]' 'but not at once'
r set Lock:h peer >/dev/null
is "$(status "$RQCTL" lock h --ttl 30s --wait 0 -- true)" 75 'one whose holder is just between SETNX and EXPIRE'
r expire Lock:h 100 >/dev/null
is "$(status "$RQCTL" lock h --wait 1500ms -- true)" 75 'is not taken from it'
r del Lock:h >/dev/null

# -- a lock that is lost --------------------------------------------------------------------

hold --ttl 3s
"$RQCTL" unlock --force -y h >/dev/null
is "$(ended)" 76 'broken: status'
like "$(cat "$T/err")" '^rqctl: lock h is lost: its key is gone; ending the command$' 'broken: why'
ok '[ -s "$T/term" ]' 'broken: the command got SIGTERM'
hold --ttl 3s
r set Lock:h 'somebody else' px 60000 >/dev/null
is "$(ended)" 76 'overwritten: status'
like "$(cat "$T/err")" 'now another program has it' 'overwritten: why'
is "$(r get Lock:h)" 'somebody else' 'overwritten: it is left alone'
r del Lock:h >/dev/null
STUBBORN=yes hold --ttl 3s
r del Lock:h >/dev/null
is "$(ended)" 76 'a command that ignores SIGTERM: status'
ok '[ -s "$T/term" ]' 'it got SIGTERM'
is "$(pgrep -f "^/bin/sh $T/hold")" '' 'and SIGKILL'
cat >"$T/family" <<'H'
#!/bin/sh
setsid sh -c 'trap "" TERM; sleep 1000' & sleep 1000 &
: >"$T/started"
wait
H
chmod 755 "$T/family"
rm -f "$T/started"
"$RQCTL" lock h --ttl 3s -- "$T/family" 2>/dev/null & family=$!
wait_for 30 '[ -e "$T/started" ]'
r del Lock:h >/dev/null
wait $family
is "$? $(our_processes)" '76 ' 'what the command had started is ended too'
is "$("$RQCTL" lock h -- redis-cli -s "$SOCK" del Lock:h 2>&1; echo $?)" '1
rqctl: lock h was lost before the command ended
76' 'lost, and seen only at the end'

# -- Redis goes away --------------------------------------------------------------------------

# The time of a lock is over at most its ttl after Redis was last seen alive.
# A busy machine may keep it waiting once.
for _ in 1 2 3; do
	hold --ttl 4s
	stopped=$(msec)
	kill -STOP "$REDIS_PID"
	status=$(ended)
	kill -CONT "$REDIS_PID"
	wait_for 30 '[ -z "$(keys)" ]'
	[ $(($(told) - stopped)) -ge 4000 ] || break
done
is "$status" 76 'Redis hangs: status'
ok '[ $(($(told) - stopped)) -lt 4000 ]' 'the command was told before the time was over'
for _ in 1 2 3; do
	hold --ttl 6s
	kill -STOP "$REDIS_PID"
	sleep 1.5
	kill -CONT "$REDIS_PID"
	sleep 1
	: >"$T/go"
	status=$(ended)
	[ "$status" != 0 ] || break
done
is "$status" 0 'Redis hangs shortly: nothing happens'
for _ in 1 2 3; do
	[ -n "$REDIS_PID" ] || redis_start
	hold --ttl 4s
	stopped=$(msec)
	redis_stop KILL
	status=$(ended)
	[ $(($(told) - stopped)) -ge 4000 ] || break
done
is "$status" 76 'Redis is gone: status'
ok '[ $(($(told) - stopped)) -lt 4000 ]' 'the command was told before the time was over'
is "$(status "$RQCTL" lock h -- true)" 69 'no Redis: status'
redis_start
hold --ttl 30s
redis_stop KILL
redis_start
is "$(ended)" 76 'Redis comes back without the lock: status'
like "$(cat "$T/err")" 'its key is gone' 'Redis comes back without the lock: why'
kill -STOP "$REDIS_PID"
is "$(status "$RQCTL" lock h --ttl 3s -- true)" 69 'a Redis that hangs from the beginning'
kill -CONT "$REDIS_PID"
wait_for 30 '[ -z "$(keys)" ]'
hold --ttl 30s
redis_stop KILL
: >"$T/go"
is "$(ended)" 0 'Redis goes away shortly before the end: the status is that of the command'
like "$(cat "$T/err")" 'expires by itself' 'and says that the lock may be left'
redis_start

# -- we are killed -------------------------------------------------------------------------------

rm -f "$T/started" "$T/term" "$T/go"
"$RQCTL" lock h --ttl 2s -- "$T/hold" 2>"$T/err" & holder=$!
wait_for 30 '[ -e "$T/started" ]' || note "$(cat "$T/err")"
kill -KILL $holder
ok "wait_for 30 '[ -s \"\$T/term\" ]'" 'rqctl is killed: the command gets SIGTERM'
is "$(status "$RQCTL" lock h -- true)" 0 'and the lock ends with its ttl'

# -- mistakes ------------------------------------------------------------------------------------

is "$(status "$RQCTL" lock h)" 64 'no command'
is "$(status "$RQCTL" lock '' true)" 64 'no name'
is "$(status "$RQCTL" lock h --ttl 10ms true)" 64 'a ttl that is too short'
is "$(status "$RQCTL" lock h --wait soon true)" 64 'no duration'
r lpush Lock:list x >/dev/null
is "$(status "$RQCTL" lock list true)" 65 'a key of another type'
r config set maxmemory 1 >/dev/null
is "$(status "$RQCTL" lock h --wait 0 true)" 75 'Redis is full'
r config set maxmemory 0 >/dev/null
r acl setuser default -pexpire -evalsha -eval >/dev/null
is "$(status "$RQCTL" lock h true)" 77 'a command that is denied'
r acl setuser default +@all >/dev/null
