#!/bin/sh
# rqctl pause, resume.  No daemon.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
RQD_SERVER=unix:$SOCK
export RQD_SERVER

is "$(ctl pause a b)" 'paused a
paused b' 'pause: several queues'
like "$(r get aPAUSED)" '^[^ ]+@[^ ]+ [0-9-]+T[0-9:.]+Z$' 'who and when'
is "$(r pttl aPAUSED)" -1 'until it is resumed'
like "$(ctl status a | tail -1)" 'paused by [^ ]+@' 'status says so'
is "$(ctl resume a)" 'resumed a' 'resume'
is "$(ctl resume a b 2>&1; echo $?)" 'rqctl: a is not paused
resumed b
1' 'resume: one was not paused'
is "$(keys)" '' 'nothing is left'

is "$(SUDO_USER=ann ctl pause a --for 5m --reason 'deploy of v2' --json)" '{"queue":"a","done":"paused"}' 'pause: JSON'
like "$(r get aPAUSED)" '^ann@.*Z deploy of v2$' 'who is behind sudo, and why'
ok '[ "$(r pttl aPAUSED)" -gt 200000 ] && [ "$(r pttl aPAUSED)" -le 300000 ]' 'for five minutes'
like "$(ctl status a | tail -1)" 'paused by ann@.* \(([34]m[0-9]+s|[45]m) left\): deploy of v2$' 'status says all of it'
like "$(ctl pause a)" '^paused a; it replaces the pause by ann@.*Z deploy of v2$' 'paused again: the last one counts'
is "$(r pttl aPAUSED)" -1 'paused again without end'
r set aPAUSED "$(printf 'by hand\033[2J')" >/dev/null
like "$(ctl status a | tail -1)" 'paused: by hand\\x1b' 'a text by hand is shown, escaped'

# -- waiting ---------------------------------------------------------------------

r zadd aBACKUP 1 ours 2 theirs >/dev/null
r hset aDELIVERY ours '0 0 t.1 1 4' >/dev/null
ctl pause a --wait --timeout 200ms >/dev/null 2>"$T/err"
is $? 75 'wait: timeout'
is "$(cat "$T/err")" 'rqctl: 1 still in flight; the pause stays' 'wait: says what is running'
is "$(r exists aPAUSED)" 1 'wait: the pause stays'
rm -f "$T/out"
"$RQCTL" pause a --wait >"$T/out" &
ok "wait_for 30 'grep -q \"^paused a\" \"\$T/out\"'" 'wait: says at once that it is paused'
is_alive $! && pass 'wait: waits' || fail 'wait: waits'
r zrem aBACKUP ours >/dev/null
wait $!
is $? 0 'wait: until ours is done, theirs may run on'
r eval 'for i = 1, 3000 do redis.call("ZADD", "aBACKUP", i, "t" .. i) end' 0 >/dev/null
r hdel aDELIVERY ours >/dev/null
r zadd aRETRY 1 x >/dev/null
r hset aDELIVERY x '0 0 - 1 1' >/dev/null
ctl pause a --wait --timeout 60s >/dev/null
is $? 0 'wait: thousands of foreign deliveries'

r zadd bBACKUP 1 ours >/dev/null
r hset bDELIVERY ours '0 0 t.1 1 4' >/dev/null
rm "$T/out"	# else the one from before is seen, and the signal comes too early
"$RQCTL" pause b --wait >"$T/out" 2>&1 &
wait_for 30 '[ -s "$T/out" ]'
kill -INT $!
wait $!
is $? 130 'wait: interrupted' || note "$(cat "$T/out")"

for args in '--for 0' '--for 5' '--timeout 1s'; do
	ctl pause a $args 2>/dev/null
	is $? 64 "pause a $args"
done
