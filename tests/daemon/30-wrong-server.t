#!/bin/sh
# The first errors of a newcomer: at the wrong server each one names the option to set, in
# redis_down and in rqctl ping.

# shellcheck source=tests/lib.sh disable=SC2016,SC2154
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/fault/cluster.sh
. "$SRCDIR/tests/fault/cluster.sh"

command -v python3 >/dev/null || skip_all 'no python3'
PORT=$(free_port)
redis_start --port "$PORT" --bind 127.0.0.1
WRONG=0

# says OPTIONS TEXT DESCRIPTION: both programs say it
says() {
	WRONG=$((WRONG + 1))
	config_write "w$WRONG" <<-C
	redis { $1 timeout = 3s }
	C
	like "$("$RQCTL" -c "$T/w$WRONG.conf" ping 2>&1)" "$2" "rqctl ping: $3"
	rqd_spawn "w$WRONG" -c "$T/w$WRONG.conf"
	wait_ok 20 "log_lines event=redis_down w$WRONG | grep -q '$2'" "rqd: $3"
	rqd_stop "w$WRONG"
}
at() { echo "server = \"127.0.0.1:$1\""; }

# -- what is no Redis -----------------------------------------------------------------

# Answers each connection with the bytes and closes it; prints its port.
cat >"$T/stranger.py" <<'P'
import socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(16)
print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    try:
        c.recv(65536)
        c.sendall(bytes.fromhex(sys.argv[1]))
    except ConnectionError:         # the daemon has closed it
        pass
    c.close()
P
STRANGERS=''
stranger() { # HEX: its port is in STRANGER
	rm -f "$T/port"
	python3 "$T/stranger.py" "$1" >"$T/port" 2>>"$T/stranger.out" &
	STRANGERS="$STRANGERS $!"
	OTHER_PIDS="$OTHER_PIDS $!"
	wait_for 20 '[ -s "$T/port" ]'
	STRANGER=$(cat "$T/port")
}
stranger "$(printf 'HTTP/1.1 400 Bad Request\r\n\r\n' | od -An -tx1 | tr -d ' \n')"
says "$(at "$STRANGER")" 'an HTTP server answers there, not Redis: correct the port in redis.server' 'an HTTP port'
stranger 15030300020246		# an alert
says "$(at "$STRANGER")" 'this port speaks TLS: set redis.tls = true' 'a TLS port that sends an alert'
stranger ''
says "$(at "$STRANGER")" 'if this port speaks TLS, set redis.tls = true; if it is not Redis, correct redis.server' \
    'a port that closes'
stranger "$(printf '220 mail.example ESMTP\r\n' | od -An -tx1 | tr -d ' \n')"
says "$(at "$STRANGER")" 'what answers there is not Redis: correct the address in redis.server' 'another server'
for p in $STRANGERS; do is_alive "$p" || fail "stranger $p answers to the end"; done
is "$(cat "$T/stranger.out")" '' 'what answered there had no trouble of its own'
if grep -q '^#define HAVE_HIREDIS_SSL' "$BUILDDIR/config.h"; then
	says "$(at "$PORT") tls = true" 'this port does not speak TLS, set redis.tls = false' 'TLS to a port without it'
else
	skip 'TLS to a port without it: built without TLS'
fi

# -- another kind of Redis ------------------------------------------------------------

if command -v redis-sentinel >/dev/null; then
	SENTINEL=$(free_port)
	printf 'port %s\nbind 127.0.0.1\ndir %s\n' "$SENTINEL" "$T" >"$T/sentinel"
	redis-sentinel "$T/sentinel" >"$T/sentinel.out" 2>&1 &
	OTHER_PIDS="$OTHER_PIDS $!"
	wait_for 30 '[ "$($ASK -p "$SENTINEL" ping 2>/dev/null)" = PONG ]'
	says "$(at "$SENTINEL")" 'is a Sentinel, not a Redis server: write it into redis.sentinel, and redis.master' 'a Sentinel'
	says "sentinel = \"127.0.0.1:$PORT\" master = \"m\"" 'is a Redis server, not a Sentinel: write it into redis.server' \
	    'a server in place of a Sentinel'
else
	skip 'a Sentinel: no redis-sentinel'
fi
node_start n1
says "$(at "$PORT_n1")" 'is a node of a Redis Cluster: write redis.cluster in place of redis.server' 'a node of a cluster'
says "cluster = \"127.0.0.1:$PORT\"" 'this server is no Redis Cluster: write redis.server in place of redis.cluster' \
    'a server in place of a cluster'

# An ACL may deny INFO: then the first command with two keys tells.
wait_for 10 'n n1 cluster addslotsrange 0 16383 >/dev/null; n n1 cluster info | grep -q cluster_state:ok'
n n1 acl setuser default -info >/dev/null
n n1 lpush q x >/dev/null
config_write info <<C
redis { $(at "$PORT_n1") }
defaults { $AS }
queue "q" { command = {"/bin/true"} }
C
rqd_spawn info -c "$T/info.conf"
wait_ok 30 "log_lines 'queue=q .*CROSSSLOT' info | grep -q 'write redis.cluster in place of redis.server'" \
    'CROSSSLOT says the same'
rqd_stop info

# -- a password and a database -----------------------------------------------------------

says "server = \"unix:$SOCK\" database = 20" 'redis.database is 20: write a number below databases of redis.conf' \
    'a database that is not there'
echo secret >"$T/password"
says "server = \"unix:$SOCK\" password_file = \"$T/password\"" 'Redis has no password: remove redis.password_file' \
    'a needless password'
r config set requirepass other >/dev/null
says "server = \"unix:$SOCK\"" 'NOAUTH.*redis.password_file' 'a missing password'
says "server = \"unix:$SOCK\" password_file = \"$T/password\"" 'WRONGPASS.*redis.password_file' 'a wrong password'
REDISCLI_AUTH=other redis-cli -s "$SOCK" config set requirepass '' >/dev/null

# -- a unix socket that its owner alone may use -------------------------------------------

# In a directory of another user: there the spawner of rqd does not connect as root either.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	mkdir "$T/theirs"
	ln "$SOCK" "$T/theirs/sock"
	chown nobody "$T/theirs"
	chown nobody:daemon "$SOCK"
	chmod 700 "$SOCK"
	refused='Permission denied to the user _rqd: set unixsocketperm 770 in redis.conf, type usermod -aG daemon _rqd'
	cp "$RQCTL" "$T/rqctl"
	like "$(setpriv --reuid _rqd --clear-groups "$T/rqctl" --server "unix:$T/theirs/sock" ping 2>&1)" \
	    "$refused" 'rqctl: who was refused, and what to type'
	config_write socket <<-C
	redis { server = "unix:$T/theirs/sock" }
	C
	rqd_spawn socket -c "$T/socket.conf"
	wait_ok 20 'log_lines event=redis_down socket | grep -q "$refused"' 'rqd says it, too'
	chmod 777 "$SOCK"
	wait_ok 30 'log_lines event=redis_up socket >/dev/null' 'and connects when it may'
else
	skip 'a unix socket: not root'
fi
