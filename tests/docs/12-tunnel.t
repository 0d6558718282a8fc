#!/bin/sh
# The tunnel of doc/redis.md: rqd reaches a Redis that speaks TLS only.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

for tool in socat openssl python3 redis-server; do
	command -v $tool >/dev/null || skip_all "no $tool"
done

PORT=$(free_port) LOCAL=$(free_port)
certificate() {	# NAME
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
	    -addext subjectAltName=DNS:localhost -keyout "$T/$1.key" -out "$T/$1.crt" 2>/dev/null
}
certificate server
certificate other

redis_start --tls-port "$PORT" --bind 127.0.0.1 --tls-cert-file "$T/server.crt" \
    --tls-key-file "$T/server.key" --tls-ca-cert-file "$T/server.crt" --tls-auth-clients no
[ "$(r ping 2>/dev/null)" = PONG ] || skip_all 'this Redis has no TLS'

# Starts the command of the unit in doc/redis.md, with this test's names in place
# of the document's.
tunnel() {	# CERTIFICATE
	command=$(python3 "$SRCDIR/tests/docs/blocks.py" --program systemd "$SRCDIR/doc/redis.md" |
	    sed -n 's/^ExecStart=//p' | sed "s|redis.example.com:6380|localhost:$PORT,pf=ip4|
		s|TCP-LISTEN:6380|TCP-LISTEN:$LOCAL|; s|/etc/ssl/certs/ca-certificates.crt|$T/$1.crt|")
	like "$command" "^/usr/bin/socat .*:$LOCAL.*:$PORT.*$1.crt" "the unit of the document, with $1.crt"
	$command >>"$T/tunnel.out" 2>&1 &
	TUNNEL=$!
	OTHER_PIDS="$OTHER_PIDS $TUNNEL"
}

tunnel other
handler ok <<'H'
cat >>"$T/got"
H
rqd_start <<C
redis { server = "127.0.0.1:$LOCAL" timeout = 2s }
queue "q" { command = {"$T/ok"} }
C
log_wait 30 'event=redis_down'
wait_ok 20 'grep -q "certificate verify failed" "$T/tunnel.out"' 'a certificate of somebody else: the tunnel refuses it'
is "$(log_count event=redis_up)" 0 'and rqd does not reach it'
kill "$TUNNEL"
wait "$TUNNEL" 2>/dev/null
tunnel server
wait_ok 20 'log_count event=redis_up >/dev/null' 'the right one: rqd is there'
RQD_SERVER=127.0.0.1:$LOCAL "$RQCTL" push q hello >/dev/null
wait_ok 30 '[ "$(cat "$T/got" 2>/dev/null)" = hello ]' 'a message'

# An idle daemon is woken through the tunnel, and finds the way again.
log_wait 30 event=acked
redis-cli -s "$SOCK" client kill type normal >/dev/null
log_wait 30 'event=redis_up' 2
r lpush q again >/dev/null
wait_ok 30 '[ "$(cat "$T/got")" = helloagain ]' 'and again after a lost connection'
