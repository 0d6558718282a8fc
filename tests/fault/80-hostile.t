#!/bin/sh
# Hostile peers.  A proxy between rqd and Redis sends replies that rqd has not asked
# for, or that never end: rqd gives up the connection, goes on, and keeps its memory
# bounded.  Handlers have no access to the daemon.  No text of a message gets into a
# command line or a shell, or unescaped into the log.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

r() { REDISCLI_AUTH=s3cr3t-of-redis redis-cli -s "$SOCK" "$@"; }
redis_start --requirepass s3cr3t-of-redis
proxy_start
proxy() { echo "$*" >&3; }
hex() { printf -- "$1" | od -An -v -tx1 | tr -d ' \n'; }

printf 's3cr3t-of-redis\n' >"$T/password"
chmod 600 "$T/password"
handler look <<'H'
[ "$RQD_ID" = look ] || exit 0
{
	echo "-- environment"
	env
	echo "-- own"
	tr '\0' ' ' </proc/$$/cmdline
	grep -E '^(Uid|Gid|Groups|CapEff)' /proc/$$/status
	echo "-- of the daemon's"
	# Not of a daemon with the same user: what it may read there, reading would take away.
	[ "$(stat -c %u "/proc/$PPID/cmdline")" = "$(id -u)" ] ||
	    for f in environ mem maps fd/3; do cat "/proc/$PPID/$f" >/dev/null 2>&1 && echo "can read $f"; done
	tr '\0' ' ' <"/proc/$PPID/cmdline"
} >"$T/seen" 2>&1
exit 0
H
as=$AS
if [ "$(id -u)" -eq 0 ]; then
	as='user = "nobody"'
	touch "$T/seen"
	chmod 666 "$T/seen"
fi
AS=''
SECRET_OF_THE_DAEMON=s3cr3t-of-env
CREDENTIALS_DIRECTORY=$T
export SECRET_OF_THE_DAEMON CREDENTIALS_DIRECTORY
rqd_start <<C
redis { server = "unix:$T/proxy.sock" password_file = "$T/password" timeout = 30s }
defaults { $as message_max = 64K }
queue "q" { command = {"$T/look"} }
queue "fds" { command = {"/bin/ls", "-l", "/proc/self/fd"} }
queue "signals" { command = {"/bin/grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"} }
C
unset CREDENTIALS_DIRECTORY
wait_ok 30 'log_count event=redis_up >/dev/null' 'it connects, with a password'

# -- what a handler sees ----------------------------------------------------------------------
r lpush q '{"id":"look"}' >/dev/null
wait_ok 30 'log_count "event=acked queue=q id=look " >/dev/null' 'a handler looks around'
like "$(cat "$T/seen")" '^RQD_ID=look$' 'and says what it sees'
unlike "$(cat "$T/seen")" 's3cr3t' 'it sees no secret'
unlike "$(cat "$T/seen")" 'CREDENTIALS|NOTIFY_SOCKET|SECRET' 'nor where they are'
r lpush fds '{"id":"fds"}' >/dev/null
wait_ok 30 'log_count "event=acked queue=fds" >/dev/null' 'another lists its descriptors'
is "$(log_lines 'event=output queue=fds' | sed -n 's/.* \([0-9]*\) -> \([^:" ]*\).*/\1 \2/p' | sort | tr '\n' ' ')" \
    "0 /memfd 1 pipe 2 pipe 3 pipe 4 /proc/$(log_lines 'event=acked queue=fds' | log_field pid)/fd " \
    'which are its input, output, error and verdict, and the directory that it reads'
# Not of a shell: that blocks signals itself, for moments.
r lpush signals '{"id":"signals"}' >/dev/null
wait_ok 30 'log_count "event=acked queue=signals" >/dev/null' 'another looks at its signals'
is "$(log_lines 'event=output queue=signals' | grep -cE 'Sig(Ign|Blk):.*0000000000000000')" 2 \
    'none is ignored, none blocked'
if [ "$(id -u)" -eq 0 ]; then
	unlike "$(cat "$T/seen")" 'can read' "it cannot look into the daemon"
	unlike "$(sed -n '/^-- own/,/^-- of/p' "$T/seen")" '^(Uid|Gid):.*[	 ]0([	 ]|$)' 'it is not root in any way'
	like "$(cat "$T/seen")" 'CapEff:.*0000000000000000' 'and has no capability'
fi
unlike "$(tr '\0' ' ' <"/proc/$PID/cmdline")" s3cr3t 'the command line of the daemon holds no secret'
unlike "$(cat "$T/rqd.log" "$T/rqd.notify")" s3cr3t 'nor does the log'

# -- a message that would like to be a command --------------------------------------------------
printf '%s' '{"id":"$(touch '"$T/pwned"')`touch '"$T/pwned"'`;--x\u001b]0;t\u0007","a":"' >"$T/evil"
printf '\033[2J\nevent=dead level=error\r\n"}' >>"$T/evil"
r -x lpush q <"$T/evil" >/dev/null
r lpush q '{"id":"x\" event=dead reason=\"status"}' >/dev/null
wait_ok 30 '[ "$(log_count "event=acked queue=q")" -ge 3 ]' 'hostile messages are handled'
ok '[ ! -e "$T/pwned" ]' 'no shell has seen them'
is "$(LC_ALL=C grep -c '[[:cntrl:]]' "$T/rqd.log")" 0 'no control character is in the log'
is "$(log_count '^ts=[^ ]* level=[a-z]* event=dead')" 0 'no record is one that a message wrote'

# -- a server that talks too much ---------------------------------------------------------------
# If a command is in flight just then, what was said is its reply, and the true reply is one too many:
# that may have another cause, so it is said again, up to five times.
refused() {	# BYTES WHAT CAUSE
	for _try in 1 2 3 4 5; do
		ups=$(log_count event=redis_up) downs=$(log_count event=redis_down) n=$(log_count "event=redis_down.*$3")
		proxy "say $(hex "$1")"
		wait_for 30 "[ \$(log_count event=redis_down) -gt $downs ] && [ \$(log_count event=redis_up) -gt $ups ]"
		[ "$(log_count "event=redis_down.*$3")" -gt "$n" ] && break
	done
	ok "[ \$(log_count 'event=redis_down.*$3') -gt $n ]" "$2: the connection is given up"
	ok "[ \$(log_count event=redis_up) -gt $ups ]" "$2: and made anew"
}
refused '+OK\r\n' 'a reply too many' 'a reply to no command'
refused '$3\r\nabc\r\n' 'a string too many' 'a reply to no command'
refused '*2\r\n:1\r\n:2\r\n' 'an array too many' 'a reply to no command'
# The log tells of ten changes of the connection in a row: those that follow want another daemon.
another() {
	rqd_stop
	ups=$(log_count event=redis_up)
	rqd_run rqd -c "$T/rqd.conf"
	wait_ok 30 '[ "$(log_count event=redis_up)" -gt "$ups" ]' 'a daemon with a log that has room'
}
another
refused 'HTTP/1.1 400 Bad Request\r\n\r\n' 'another protocol' 'Protocol error'
refused '>2\r\n+x\r\n+y\r\n' 'a protocol of the future' '(Protocol error|a reply to no command)'
another
refused '*3\r\n$7\r\nmessage\r\n$-1\r\n$1\r\nx\r\n' 'a message to no channel' 'a reply to no command'
refused '-ERR max number of clients reached\r\n' 'an error' 'max number of clients'

another

# -- a server that loses count -------------------------------------------------------------------
# Each reply is then the answer to another command; as long as there are some, none is late.
ups=$(log_count event=redis_up)
while :; do r lpush q '{"id":"busy"}'; sleep 0.2; done >/dev/null &
busy=$!
OTHER_PIDS="$OTHER_PIDS $busy"
proxy skip
wait_ok 25 'log_count "event=redis_down.*belongs to another command" >/dev/null' \
    'a reply too few: the connection is given up'
kill "$busy"
wait_ok 30 "[ \$(log_count event=redis_up) -gt $ups ]" 'and made anew'

peak() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$PID/status"; }
before=$(peak) ups=$(log_count event=redis_up)
proxy "flood $(hex '$1000000000\r\n')"
wait_ok 60 'log_count "event=redis_down.*too large" >/dev/null' 'a reply without end is refused'
wait_ok 20 "[ \$(log_count event=redis_up) -gt $ups ]" 'and the connection made anew'
after=$(peak)
note "most memory: $before kB before, $after kB after"
[ "$SLOW" -eq 1 ] && ok "[ $((after - before)) -lt 140000 ]" 'memory is bounded'
r lpush q '{"id":"still"}' >/dev/null
wait_ok 30 'log_count "event=acked queue=q id=still " >/dev/null' 'the daemon is at work'
exec 3>&-
