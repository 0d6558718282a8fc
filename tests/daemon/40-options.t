#!/bin/sh
# The command line: exit statuses and messages.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

handler fine <<'H'
echo "$RQD_QUEUE $RQD_ID" >>"$T/ran"
H
root=$([ "$(id -u)" -eq 0 ] && echo yes)

rqd() {	# ARGUMENT...; status in $status, output in $T/1 and $T/2
	# shellcheck disable=SC2086
	timeout $((20 * SLOW)) $RQD_WRAPPER "$RQD" "$@" >"$T/1" 2>"$T/2" </dev/null
	status=$?
}
conf() { cat >"$T/rqd.conf"; }

# -- usage -------------------------------------------------------------------------
rqd -h
is $status 0 '-h: exit 0'
like "$(cat "$T/1")" '[Uu]sage: *rqd' 'prints a summary'
rqd -V
is $status 0 '-V: exit 0'
like "$(cat "$T/1")" '^rqd [0-9]+\.[0-9]' 'prints the version'
for args in -Z --no-such '-q' '-q orders' '-q orders --' '-j 0 -q orders -- /bin/true' \
    '-o' '-o nonsense -q o -- /bin/true' 'stray' '-t stray' '-j 2' '-u nobody' \
    '-c /etc/rqd.conf -q o -- /bin/true'; do
	# shellcheck disable=SC2086
	rqd $args
	is $status 64 "rqd $args: usage, exit 64"
done

# -- what the operating system refuses ----------------------------------------------
if [ "$SLOW" -eq 1 ] && command -v prlimit >/dev/null; then
	for n in 4 5 6; do
		timeout 20 prlimit --nofile=$n "$RQD" -q orders -- /bin/true \
		    >"$T/1" 2>"$T/2" </dev/null 3>&-
		is $? 71 "$((n - 3)) descriptors: exit 71"
		like "$(cat "$T/2")" '^rqd: ' 'and a sentence'
	done
fi

# -- checking ------------------------------------------------------------------------
conf <<C
# a comment
/* and one
   of two lines */
defaults { ${AS:-nice = 0} }
queue "orders" {
	command = {"$T/fine"}	// each kind
	concurrency = 2
}
C
rqd -t -c "$T/rqd.conf"
is $status 0 '-t with a good file: exit 0'
unlike "$(cat "$T/2")" 'rqd.conf:|warning' 'and nothing to complain of'

conf <<C
# a comment
/* and one
   of two lines */
defaults { ${AS:-nice = 0} }
max_handlers = many
queue "orders" {
	command = {"$T/fine"}	// each kind
	concurrency = -1
	lease = 60 parsecs
	colour = "red"
}
queue "orders" { command = {"$T/fine"} }
queue "ordersDEAD" { command = {"$T/fine"} }
queue "relative" { command = {"bin/true"} }
queue "none" { }
C
rqd -t -c "$T/rqd.conf"
is $status 78 '-t with a bad file: exit 78'
for where in '5: .*max_handlers' '8: .*concurrency' '9: .*parsecs' '10: .*colour' '12: .*orders' \
    '13: .*ordersDEAD' '14: .*not an absolute path' '15: .*no command'; do
	like "$(cat "$T/2")" "rqd.conf:$where" "the error in line ${where%%:*}"
done
like "$(cat "$T/2")" 'rqd.conf:12: .*"orders".*rqd.conf:6\)' 'both places of a queue that is there twice'
rqd -c "$T/rqd.conf"
is $status 78 'it does not start with such a file'

printf 'queue "a" { command = {"/bin/true"} %s\n' "$AS" | conf
rqd -t -c "$T/rqd.conf"
is $status 78 'an unclosed section is an error'
printf '/* queue "a" {\n' | conf
rqd -t -c "$T/rqd.conf"
is $status 78 'so is an unclosed comment'
rqd -t -c "$T/no-such-file"
is $status 78 'a missing file: exit 78'
like "$(cat "$T/2")" 'no-such-file' 'is named'
rqd -t -c "$T"
is $status 78 'a directory: exit 78'

if [ -n "$root" ]; then
	conf <<C
queue "orders" { command = {"$T/fine"} }
C
	rqd -t -c "$T/rqd.conf"
	is $status 78 'as root every queue must say its user'
	like "$(cat "$T/2")" 'rqd.conf:1: .*user' 'it says so'
fi

conf <<C
defaults { ${AS:-nice = 0} }
queue "orders" { command = {"/no/such/command"} }
C
rqd -t -c "$T/rqd.conf"
is $status 0 '-t: a missing command is a warning'
like "$(cat "$T/2")" 'rqd.conf:2: .*/no/such/command' 'with its line'
rqd -tt -c "$T/rqd.conf"
is $status 78 '-tt: an error'

# -- printing ------------------------------------------------------------------------
mkdir "$T/rqd.d"
cat >"$T/rqd.d/b.conf" <<C
queue "second" { command = {"$T/fine", "two words", 'qu"ote\\\\'} dead_status = {3, 65} lease = 90s message_max = 2M }
C
cat >"$T/rqd.d/a.conf" <<C
queue "first" { command = {"$T/fine"} env = {"A=b c", "D="} umask = "077" }
C
conf <<C
defaults { ${AS:-nice = 0} backoff = 250ms }
include("rqd.d/*.conf")
include("none.d/*.conf")
drain_timeout = 1m
C
rqd -T -c "$T/rqd.conf"
is $status 0 '-T: exit 0'
cp "$T/1" "$T/printed.conf"
like "$(cat "$T/1")" 'queue "?first' 'it prints what was included'
rqd -T -c "$T/printed.conf"
is $status 0 'which reads back'
is "$(diff "$T/1" "$T/printed.conf")" '' 'to the same'
is "$(grep -oE '^ *queue "?(first|second)' "$T/printed.conf" | grep -oE 'first|second' | tr '\n' ' ')" \
    'first second ' 'includes are sorted'
rqd -T -o log.level=debug -o max_handlers=3 -c "$T/rqd.conf"
like "$(cat "$T/1")" 'max_handlers *= *3' '-o overrides'
like "$(cat "$T/1")" 'level *= *"?debug' 'also within a section'
rqd -t -o max_handlers=no -c "$T/rqd.conf"
is $status 78 'a bad value of -o is refused: exit 78'
like "$(cat "$T/2")" 'max_handlers' 'and named'

# -- without a file ---------------------------------------------------------------------
redis_start
QUEUES=orders
rqd_run rqd -o "redis.server=unix:$SOCK" -v -j 2 -q orders -- "$T/fine" an 'argument or two'
r lpush orders '{"id":1}' >/dev/null
ok 'log_wait 10 "event=acked queue=orders id=1 "' '-q runs a command without any file'
like "$(cat "$T/rqd.log")" 'level=debug' '-v logs more'
rqd_stop
RQD_SERVER=unix:$SOCK
export RQD_SERVER
rqd_run env -q orders -- "$T/fine"
r lpush orders '{"id":2}' >/dev/null
ok 'log_wait 10 "event=acked queue=orders id=2 " 1 env' 'the server may stand in RQD_SERVER'
rqd_stop env
is "$(RQD_SERVER=" unix:$SOCK
" "$RQCTL" ping | cut -d , -f 1)" "redis unix:$SOCK" 'white space around the address does not count'
RQD_SERVER=" unix:$SOCK
" rqd -t -q orders -- "$T/fine"
is $status 0 'nor for rqd'
for server in 'no host' localhost:99999 sentinel://m; do
	out=$(RQD_SERVER=$server "$RQCTL" ping 2>&1)
	is $? 78 "rqctl: RQD_SERVER=$server: configuration"
	like "$out" "^rqctl: RQD_SERVER: \"$server\"" \
	    "rqctl: RQD_SERVER=$server: the error names the variable"
	RQD_SERVER=$server rqd -t -q orders -- "$T/fine"
	is $status 78 "rqd: RQD_SERVER=$server: configuration"
	like "$(cat "$T/2")" "^rqd: RQD_SERVER: \"$server\"" 'and that of rqd'
done

# A server that is busy answers nothing but BUSY, even to the greeting.
r config set lua-time-limit 10 >/dev/null
redis-cli -s "$SOCK" eval 'while true do end' 0 >/dev/null 2>&1 &
OTHER_PIDS="$OTHER_PIDS $!"
wait_for 10 'r ping 2>&1 | grep -q BUSY'
"$RQCTL" ping >"$T/1" 2>&1
is "$? $(grep -c BUSY "$T/1")" '75 1' 'Redis is busy: try again later'
wait_ok 10 'r script kill >/dev/null 2>&1; [ "$(r ping 2>&1)" = PONG ]' 'it is no longer'
{
	echo config set maxclients 1
	until [ -e "$T/enough" ]; do sleep 0.1; done
	echo config set maxclients 1000
} | redis-cli -s "$SOCK" >/dev/null 2>&1 &
OTHER_PIDS="$OTHER_PIDS $!"
wait_for 10 '[ "$(r ping 2>&1)" != PONG ]'
"$RQCTL" ping >"$T/1" 2>&1
is "$? $(grep -c 'max number of clients' "$T/1")" '75 1' 'too many clients: try again later'
touch "$T/enough"
wait_for 10 '[ "$(r ping 2>&1)" = PONG ]'
unset RQD_SERVER
if [ -n "$root" ]; then
	mkdir -m 777 "$T/out"
	handler who <<'H'
id -un >"$T/out/who"
H
	rqd_run who -o "redis.server=unix:$SOCK" -u nobody -q orders -- "$T/who"
	r lpush orders '{"id":3}' >/dev/null
	log_wait 10 'event=acked queue=orders id=3 ' 1 who
	is "$(cat "$T/out/who")" nobody '-u says whose the handler is'
	rqd_stop who
fi

# -- rqctl in a handler works on the same Redis ------------------------------------------------
handler pushes <<H
exec "$RQCTL" push other "\$RQD_ID"
H
MORE_KEYS=other
rqd_run elsewhere -o "redis.server=unix:$SOCK" -o redis.database=3 -q orders -- "$T/pushes"
r -n 3 lpush orders '{"id":"db3"}' >/dev/null
ok 'log_wait 10 "event=acked queue=orders id=db3 " 1 elsewhere' 'a queue in another database'
is "$(r -n 3 lrange other 0 -1)" db3 'rqctl in its handler pushes there'
rqd_stop elsewhere
handler pings <<H
exec "$RQCTL" ping
H
cat >"$T/nowhere.conf" <<C
redis { server = "127.0.0.1:1" }
queue "orders" { command = {"$T/pings"} $AS max_attempts = 1 }
C
rqd_run over -c "$T/nowhere.conf" -o "redis.server={unix:$SOCK, 127.0.0.1:2}"
r lpush orders '{"id":"over"}' >/dev/null
ok 'log_wait 10 "event=acked queue=orders id=over " 1 over' 'also where a file is overridden'
rqd_stop over
r -n 3 flushdb >/dev/null
is "$(RQD_SERVER=127.0.0.1:1 RQD_OPTIONS="redis.timeout=1s
redis.server=127.0.0.1:2" "$RQCTL" -o redis.server="unix:$SOCK" ping | cut -d , -f 1)" "redis unix:$SOCK" \
    'the command line counts more than the environment'
is "$(RQD_CONFIG=$T/none RQD_OPTIONS=redis.no=1 "$RQCTL" --server "unix:$SOCK" ping | cut -d , -f 1)" \
    "redis unix:$SOCK" '--server puts all of it aside'

# -- zero queues, and a file that is served as it stands --------------------------------------
printf 'redis { server = "unix:%s" }\n' "$SOCK" | conf
rqd_run idle -c "$T/rqd.conf"
ok 'log_wait 15 event=idle 1 idle' 'with no queue at all it idles'
rqd_stop idle
