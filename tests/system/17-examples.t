#!/bin/sh
# The examples that 15-privileges.t and 16-mail.t do not run, under the shipped unit.  Each
# handler runs as the user that its first comment names.  Also the rotation of a log file.

# shellcheck source=tests/system/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/system/lib.sh"

machine_boot
machine_redis
LOG=/var/log/rqd/rqd.log
acked() { _queue=$1; wait_for 20 'inside $LOG | grep -q "event=acked queue=$_queue "'; }

for u in hooks app orders ledger ship; do m useradd -m $u; done
m install -d -o ledger /var/lib/ledger
mkdir -p "$R/usr/local/bin"
for e in "$SRCDIR"/etc/examples/*.sh "$SRCDIR"/etc/examples/persistent/ledger.*; do
	cp "$e" "$R/usr/local/bin/" && chmod 755 "$R/usr/local/bin/${e##*/}"
done
script() { cat >"$R/usr/local/bin/$1" && chmod 755 "$R/usr/local/bin/$1"; }
script send-reminder <<'H'
#!/bin/sh
echo "$1 $2 $(id -un)" >>~/reminded
H

# Find the ledger examples whose language this machine has.
ledgers='sh'
if cc -O1 -o "$R/usr/local/bin/ledger.bin" "$SRCDIR/etc/examples/persistent/ledger.c" -ljansson 2>/dev/null; then
	ledgers="$ledgers bin"
fi
for l in py pl php js; do
	p=$(sed -n '1s/^#!//p' "$R/usr/local/bin/ledger.$l")
	[ -x "$p" ] || { note "no $p"; continue; }
	ledgers="$ledgers $l"
done
message() {
	case $1 in
	sh) echo 'alice 1250' ;;
	*) echo '{"id":7,"account":"alice","amount":12.5}' ;;
	esac
}
{
	cat <<C
log { target = "$LOG" }
queue "hooks" {
	command     = {"/usr/local/bin/webhook.sh"}
	user        = "hooks"
	env         = {"WEBHOOK_URL=http://127.0.0.1:8123/in"}
	concurrency = 4
	time_limit  = 1m
}
queue "remind" {
	kind          = "expired"
	match         = "remind:*:*"
	notifications = "set"
	skew          = 1s
	command       = {"/usr/local/bin/remind.sh"}
	user          = "app"
}
queue "orders" {
	command  = {"/usr/local/bin/postgres.sh"}
	user     = "orders"
	env      = {"PGHOST=/run/postgres-test", "PGDATABASE=shop"}
}
C
	for l in $ledgers; do
		framing=length
		[ "$l" = sh ] && framing=line
		cat <<C
queue "ledger-$l" {
	command     = {"/usr/local/bin/ledger.$l"}
	user        = "ledger"
	env         = {"LEDGER=/var/lib/ledger/book.$l"}
	mode        = "persistent"
	framing     = "$framing"
	pipeline    = 4
}
C
	done
} >"$R$etc/rqd.conf"
m systemctl daemon-reload
m systemctl start rqd
is $? 0 'the service starts'
wait_ok 30 'inside $LOG | grep -q event=ready' 'rqd logs to a file in /var/log/rqd'

# -- webhook.sh ------------------------------------------------------------------------
if command -v python3 >/dev/null && command -v curl >/dev/null; then
	cat >"$R/usr/local/bin/receive" <<'P'
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length'])).decode()
        open('/run/received', 'a').write(self.headers['Idempotency-Key'] + ' ' + body + '\n')
        self.send_response(413 if 'large' in body else 204)
        self.end_headers()
http.server.HTTPServer(('127.0.0.1', 8123), Handler).serve_forever()
P
	$IN python3 /usr/local/bin/receive >/dev/null 2>&1 </dev/null &
	receiver=$!
	wait_for 30 'm sh -c "curl -s http://127.0.0.1:8123/ >/dev/null"'
	mr lpush hooks '{"id":"h-1","n":1}' '{"id":"h-2","large":1}' >/dev/null
	ok 'acked hooks' 'webhook.sh succeeds'
	like "$(inside /run/received)" '^h-1 \{"id":"h-1","n":1\}$' 'webhook.sh posts the message, with its id as Idempotency-Key'
	wait_ok 30 'inside $LOG | grep -q "event=dead queue=hooks id=h-2 "' 'webhook.sh makes a message that the server refuses (413) a dead letter'
	kill "$receiver"
fi

# -- remind.sh --------------------------------------------------------------------------
mr hset remind:every 17 3600 >/dev/null
mr set remind:17:digest 1 px 300 >/dev/null
ok 'acked remind' 'remind.sh runs when a key expires'
is "$(inside /home/app/reminded)" '17 digest app' 'remind.sh calls send-reminder as its user'
like "$(mr ttl remind:17:digest)" '^3[56][0-9][0-9]$' 'remind.sh sets the key again'

# -- postgres.sh ------------------------------------------------------------------------
pg=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
if [ -x "$pg/initdb" ] && command -v jq >/dev/null; then
	m install -d -o orders /run/postgres-test
	m runuser -u orders -- "$pg/initdb" -D /run/postgres-test/data -A trust -N >"$T/initdb.out" 2>&1
	m runuser -u orders -- "$pg/pg_ctl" -D /run/postgres-test/data -w -l /run/postgres-test/log \
	    -o "-k /run/postgres-test -c listen_addresses=" start >>"$T/initdb.out" 2>&1
	is $? 0 'PostgreSQL runs' || note "$(tail -5 "$T/initdb.out")"
	sql() { m runuser -u orders -- psql -h /run/postgres-test -qtA "$@"; }
	sql -d postgres -c 'CREATE DATABASE shop'
	sql -d shop -c 'CREATE TABLE orders (id text PRIMARY KEY, body jsonb NOT NULL)'
	mr lpush orders "{\"id\":\"o-1\",\"who\":\"'; DROP TABLE orders; --\"}" >/dev/null
	ok 'acked orders' 'postgres.sh succeeds'
	is "$(sql -d shop -c "SELECT body->>'who' FROM orders WHERE id = 'o-1'")" "'; DROP TABLE orders; --" 'postgres.sh: the row is in the table'
	m runuser -u orders -- "$pg/pg_ctl" -D /run/postgres-test/data -m immediate stop >/dev/null 2>&1
else
	note 'no PostgreSQL'
	status=75
	command -v psql >/dev/null || status=127
	mr lpush orders '{"id":"o-1"}' >/dev/null
	wait_ok 20 'inside $LOG | grep -q "event=retry queue=orders .*status=$status"' \
	    "postgres.sh without a database or psql ends with $status, and the message is retried"
fi

# -- persistent ---------------------------------------------------------------------------
for l in $ledgers; do
	mr lpush "ledger-$l" "$(message "$l")" >/dev/null
	ok "acked ledger-$l" "ledger.$l acks a message"
	like "$(inside "/var/lib/ledger/book.$l")" 'alice (12\.50|1250)$' "ledger.$l writes the amount to its book"
	is "$(m stat -c %U "/var/lib/ledger/book.$l")" ledger "the book of ledger.$l belongs to the queue's user"
done

# -- logrotate ------------------------------------------------------------------------------
# Without logrotate the test does what the example tells it: a rename, a new file with its
# owner, and the signal of postrotate.
rotate=$SRCDIR/etc/examples/logrotate
signal=$(sed -n 's/^[	 ]*\(systemctl kill .*\)/\1/p' "$rotate"/* "$rotate" 2>/dev/null | head -n 1)
if command -v logrotate >/dev/null; then
	cp "$rotate" "$R/etc/logrotate.d/rqd" && m logrotate -f /etc/logrotate.d/rqd
	is $? 0 'logrotate succeeds'
else
	like "$signal" '^systemctl kill' 'postrotate of the example signals rqd'
	m mv "$LOG" "$LOG.1"
	m install -o _rqd -g adm -m 640 /dev/null "$LOG"
	m sh -c "$signal"
fi
mr lpush ledger-sh 'bob 1' >/dev/null
ok 'acked ledger-sh' 'after a rotation records go to the new file'
# Only root may write to /var/log: the spawner opens the log, also after a rotation.
m sed -i "s|target = .*|target = \"/var/log/rqd.log\" }|" "$etc/rqd.conf"
m systemctl reload rqd
LOG=/var/log/rqd.log
mr lpush ledger-sh 'carol 1' >/dev/null
ok 'acked ledger-sh' 'rqd logs to a file in /var/log itself'
m mv "$LOG" "$LOG.1"
m sh -c "$signal"
wait_for 30 '[ -n "$(inside $LOG)" ] || m test -e $LOG'
mr lpush ledger-sh 'dave 1' >/dev/null
ok 'acked ledger-sh' 'after a rotation in /var/log, records go to the new file'
is "$(m stat -c '%U %a' "$LOG")" 'root 640' 'the new file in /var/log belongs to root'
m systemctl stop rqd
is "$(prop ActiveState)" inactive 'the service stops'
