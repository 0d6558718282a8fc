#!/bin/sh
# Sentinels that hang, that name the wrong server, that die, or that want a password.
# rqd and rqctl find the master within seconds all the same, and never work on a server
# that is no master.  By TLS too, where hiredis has it.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/fault/sentinel.sh
. "$SRCDIR/tests/fault/sentinel.sh"
A=$(free_port) B=$(free_port) S1=$(free_port) S2=$(free_port) S3=$(free_port) S4=$(free_port)
a() { $ASK -p "$A" "$@"; }
b() { $ASK -p "$B" "$@"; }
ups() { log_count "event=redis_up server=127.0.0.1:$1" "${2:-rqd}"; }
# A Sentinel that hangs must not cost redis.timeout, 10 s.
within() {	# MILLISECONDS SINCE WHAT
	_took=$(($(msec) - $2))
	ok "[ $_took -le $(($1 * SLOW)) ]" "$3 within $1 ms: $_took"
}
push() { $ASK -p "$1" lpush q "{\"id\":\"$2\"}" >/dev/null; }
handled() { wait_ok 30 'grep -qx "'"$1"'" "$T/ran"' "$2"; }
gone() {	# NUMBER...: these Sentinels die
	for i in "$@"; do
		eval "kill -KILL \$PID_s$i"
		eval "wait \$PID_s$i" 2>/dev/null
	done
}

server a "$A"
server b "$B" --replicaof 127.0.0.1 "$A"
wait_for 20 'b info replication | grep -q master_link_status:up'
handler work <<'H'
echo "$RQD_ID" >>"$T/ran"
H
touch "$T/ran"

# -- the first hangs, the second names a replica, the third is right -------------------
sentinel 1 "$S1" "$A" 9
sentinel 2 "$S2" "$B" 9
sentinel 3 "$S3" "$A" 9
kill -STOP "$PID_s1"
LIST="127.0.0.1:$S1,127.0.0.1:$S2,127.0.0.1:$S3"
since=$(msec)
rqd_start <<C
redis { sentinel = {"127.0.0.1:$S1", "127.0.0.1:$S2", "127.0.0.1:$S3"} master = "m" }
queue "q" { command = {"$T/work"} }
C
wait_ok 30 '[ "$(ups "$A")" -eq 1 ]' 'rqd finds the master'
within 9000 "$since" 'it does so'
push "$A" first
handled first 'rqd works'
since=$(msec)
is "$("$RQCTL" --server "sentinel://m@$LIST" push q '{"id":"second"}')" second \
    'rqctl finds the master'
within 9000 "$since" 'it does so'
handled second 'rqd works on'
since=$(msec)
"$RQCTL" --server "sentinel://m@$LIST" lock name -- true
is $? 0 'rqctl lock finds the master'
within 9000 "$since" 'it does so'
is "$("$RQCTL" --server "sentinel://other@127.0.0.1:$S3,127.0.0.1:$S3" ping 2>&1)" \
    "rqctl: redis Sentinel: 127.0.0.1:$S3 does not know a master \"other\"" \
    'rqctl names the master that they do not know, once'

# -- all die ---------------------------------------------------------------------------
gone 1 2 3
push "$A" third
handled third 'without any Sentinel work goes on'
is "$(ups "$A")" 1 'on the same connection'
said=$("$RQCTL" --server "sentinel://m@$LIST" ping 2>&1)
is $? 69 'rqctl fails'
like "$said" "Sentinel: 127.0.0.1:$S1: Connection refused; 127.0.0.1:$S2: Conn.*redis.sentinel" \
    'it says what is wrong with each'
since=$(msec)
a client kill type normal >/dev/null
wait_ok 30 '[ "$(ups "$A")" -eq 2 ]' 'rqd returns to the last master'
within 9000 "$since" 'it does so'
push "$A" fourth
handled fourth 'and works'

# -- one comes back with an old configuration --------------------------------------------
sentinel 2 "$S2" "$B" 9
wait_ok 30 'log_count "event=redis_state .*from=greeting to=down server=127.0.0.1:$B" >/dev/null &&
    grep -c "server=127.0.0.1:$B" "$T/rqd.log" >"$T/looks"' 'rqd looks at the replica that it names'
push "$A" fifth
handled fifth 'work goes on'
is "$(ups "$A") $(log_count 'Sentinel names another')" '2 0' 'on the same connection'
since=$(msec)
a client kill type normal >/dev/null
wait_ok 30 '[ "$(ups "$A")" -eq 3 ]' 'rqd returns to the last master although a Sentinel names the replica'
within 9000 "$since" 'it does so'
gone 2

# -- no Sentinel answers, and the last master is none any more -----------------------------
b replicaof no one >/dev/null
a replicaof 127.0.0.1 "$B" >/dev/null
wait_for 20 'a info replication | grep -q master_link_status:up'
a client kill type normal >/dev/null
wait_ok 30 'log_lines event=redis_down | tail -1 | grep -q "127.0.0.1:$A: is a replica"' \
    'rqd does not use a replica'
push "$B" sixth
is "$(ups "$A") $(ups "$B")" '3 0' 'it waits for a Sentinel'
sentinel 3 "$S3" "$B" 9
wait_ok 30 '[ "$(ups "$B")" -eq 1 ]' 'a Sentinel names the new master'
handled sixth 'and work goes on there'
is "$(sort "$T/ran" | uniq -d)" '' 'nothing ran twice'
rqd_stop

# -- passwords -----------------------------------------------------------------------------
sentinel 4 "$S4" "$B" 9
s4() { redis-cli -p "$S4" --no-auth-warning --user default --pass secret "$@"; }
acl=$(sed -n '/^\.It Ic sentinel_username/,/^\.It Ic sentinel_password_file/p' "$SRCDIR/man/rqd.conf.5" |
    sed -n 's/^\.Li \(.*[a-z]\)[ .]*$/\1/p' | tr '\n' ' ')
like "$acl" 'sentinel\|get-master' 'rqd.conf(5) lists the permissions'
# shellcheck disable=SC2086
$ASK -p "$S4" acl setuser guest on '>word' $acl >/dev/null
$ASK -p "$S4" acl setuser default '>secret' >/dev/null
$ASK -p "$S4" client kill type normal skipme yes >/dev/null
echo wrong >"$T/password"
rqd_start open <<C
redis { sentinel = "127.0.0.1:$S4" master = "m" }
queue "q" { command = {"$T/work"} }
C
rqd_start wrong <<C
redis { sentinel = "127.0.0.1:$S4" master = "m" sentinel_password_file = "$T/password" }
queue "q" { command = {"$T/work"} }
C
log_wait 20 'event=redis_down.*NOAUTH' 1 open
like "$(log_lines event=redis_down open)" \
    "error=\"Sentinel: 127.0.0.1:$S4: NOAUTH .*hint=\".*redis.sentinel_password_file" \
    'no password: the log names the Sentinel, what it says, and the option'
log_wait 20 'event=redis_down.*WRONGPASS' 1 wrong
like "$(log_lines event=redis_down wrong)" \
    "error=\"Sentinel: 127.0.0.1:$S4: WRONGPASS .*hint=\".*redis.sentinel_password_file" \
    'a wrong one: likewise'
said=$("$RQCTL" -c "$T/wrong.conf" ping 2>&1)
is $? 77 'rqctl fails'
like "$said" "Sentinel: 127.0.0.1:$S4: WRONGPASS .*redis.sentinel_password_file" 'and says it'
rqd_stop open
echo secret >"$T/password"
wait_ok 30 '[ "$(ups "$B" wrong)" -eq 1 ]' 'the right one is read at the next attempt'
like "$("$RQCTL" -c "$T/wrong.conf" ping)" "127.0.0.1:$B" 'by rqctl, too'
rqd_stop wrong

echo word >"$T/password"
rqd_start guest <<C
redis {
	sentinel = "127.0.0.1:$S4" master = "m"
	sentinel_username = "guest" sentinel_password_file = "$T/password"
}
queue "q" { command = {"$T/work"} }
C
wait_ok 30 '[ "$(ups "$B" guest)" -eq 1 ]' 'a user with the permissions of rqd.conf(5)'
wait_ok 30 's4 client list type pubsub | grep -q user=guest' 'subscribes, too'
unlike "$(cat "$T/guest.log")" NOPERM 'nothing is denied'
s4 acl setuser guest resetchannels >/dev/null
wait_ok 20 'log_count "event=redis_warning .*may not subscribe to .switch-master" guest >/dev/null' \
    'a user that may not subscribe: the log says so'
is "$(ups "$B" guest)" 1 'and the connection works on'
rqd_stop guest

# -- TLS -----------------------------------------------------------------------------------
if ! grep -q '^#define HAVE_HIREDIS_SSL 1' "$BUILDDIR/config.h"; then
	skip 'hiredis has no TLS'
elif ! redis-cli --help 2>&1 | grep -q -e --tls || ! command -v openssl >/dev/null; then
	skip 'no openssl, or redis-server has no TLS'
else
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=redis \
	    -addext subjectAltName=IP:127.0.0.1 -keyout "$T/tls.key" -out "$T/tls.crt" 2>"$T/openssl.out"
	C=$(free_port) CP=$(free_port) S5=$(free_port) S5P=$(free_port)
	SENTINEL_CONF="tls-port $S5
tls-cert-file $T/tls.crt
tls-key-file $T/tls.key
tls-ca-cert-file $T/tls.crt
tls-auth-clients no
tls-replication yes"
	server c "$CP" --tls-port "$C" --tls-cert-file "$T/tls.crt" --tls-key-file "$T/tls.key" \
	    --tls-ca-cert-file "$T/tls.crt" --tls-auth-clients no
	sentinel 5 "$S5P" "$C" 9
	rqd_start tls <<C
redis { sentinel = "127.0.0.1:$S5" master = "m" tls = true tls_ca = "$T/tls.crt" }
queue "q" { command = {"$T/work"} }
C
	wait_ok 30 '[ "$(ups "$C" tls)" -eq 1 ]' 'a Sentinel that speaks TLS names a server that does'
	push "$CP" seventh
	handled seventh 'and rqd works there'
	like "$("$RQCTL" -c "$T/tls.conf" ping)" "127.0.0.1:$C" 'rqctl finds it'
	rqd_stop tls
fi
