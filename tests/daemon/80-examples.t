#!/bin/sh
# The examples and rqd-handler(7) rely on this: in the daemon, standard input is a file
# that can be opened again and read from its beginning, by another user too.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
mkdir -m 777 "$T/out"
SOMEBODY=''
[ "$(id -u)" -eq 0 ] && SOMEBODY='user = "nobody"'

handler twice <<'H'
cat >"$T/out/first"
cat </dev/stdin >"$T/out/second"
stat -L -c %s /dev/stdin >"$T/out/size"
H
if command -v sqlite3 >/dev/null; then
	cp "$SRCDIR/etc/examples/sqlite.sh" "$T/sqlite.sh"
	chmod 755 "$T/sqlite.sh"
	sqlite3 "$T/out/orders.db" 'CREATE TABLE orders (id TEXT PRIMARY KEY, body TEXT NOT NULL);'
	chmod 666 "$T/out/orders.db"
else
	note 'no sqlite3'
	ln -s /bin/true "$T/sqlite.sh"
fi

cp "$SRCDIR/etc/examples/remind.sh" "$T/remind.sh"
chmod 755 "$T/remind.sh"
: >"$T/out/reminded"
: >"$T/out/mails"
chmod 666 "$T/out/reminded" "$T/out/mails"
handler send <<'H'
echo "$*" >>"$T/out/reminded"
H

# As exim does: it takes the mail, and delivers it in the background when its caller has exited.
handler sendmail <<'H'
cat >"$T/out/incoming"
caller=$(cut -d ' ' -f 4 "/proc/$$/stat")
setsid sh -c 'while kill -0 "$1" 2>/dev/null; do sleep 0.1; done
	cat "$2/incoming" >>"$2/mails"' sh "$caller" "$T/out" >/dev/null 2>&1 </dev/null &
H
handler fails <<'H'
echo 'no such customer' >&2
exit 65
H
cp "$SRCDIR/etc/examples/alert.sh" "$T/alert.sh"
chmod 755 "$T/alert.sh"
# The queue of the document, with this test's program, user and times.
alerts=$(sed -n '/^queue "alerts"/,/^}/p' "$SRCDIR/doc/operations.md" | sed "s|/usr/local/bin|$T|; /^    user /d
	s|batch_wait = 5m|batch_wait = 3s|; s|^}|    env = {\"SENDMAIL=$T/sendmail\"} $SOMEBODY\n}|")

rqd_start <<C
queue "fails" { command = {"$T/fails"} $SOMEBODY on_dead = "push:alerts" concurrency = 4 }
$alerts
queue "remind" {
    kind = "expired" match = "remind:*:*" notifications = "set" skew = 100ms
    command = {"$T/remind.sh"} $SOMEBODY
    env = {"SEND=$T/send", "REDISCLI_OPTIONS=-s $SOCK"}
}
queue "twice" { command = {"$T/twice"} $SOMEBODY }
queue "rows" {
    command = {"$T/sqlite.sh"} $SOMEBODY
    env = {"DATABASE=$T/out/orders.db"}
}
C

r lpush twice 'some bytes' >/dev/null
ok 'log_wait 30 "event=acked queue=twice"' 'a handler reads its standard input twice'
is "$(cat "$T/out/first")" 'some bytes' 'the first time, as it comes'
is "$(cat "$T/out/second")" 'some bytes' 'the second time, opened again'
is "$(cat "$T/out/size")" 10 'it has a size'

r lpush rows '{"id":"o-1","text":"it'\''s"}' >/dev/null
ok 'log_wait 30 "event=acked queue=rows id=o-1"' 'the example with SQLite succeeds'
if command -v sqlite3 >/dev/null; then
	is "$(sqlite3 "$T/out/orders.db" 'SELECT id, body FROM orders')" \
	    'o-1|{"id":"o-1","text":"it'\''s"}' 'and has stored the message'
	r lpush rows 'no JSON' >/dev/null
	ok 'log_wait 30 "event=dead queue=rows .*status=65"' 'what it cannot store is a dead letter'
fi

if command -v jq >/dev/null; then
	r lpush fails '{"id":"f-1"}' '{"id":"f-2"}' '{"id":"f-3"}' >/dev/null
	wait_ok 30 '[ "$(grep -c "no such customer" "$T/out/mails")" -eq 3 ]' 'the example of alerts mails dead letters, in the background'
	like "$(grep -c '^To: root$' "$T/out/mails")" '^[12]$' 'many in a mail'
	like "$(cat "$T/out/mails")" '^fails f-2, status: no such customer$' 'which queue and message, and why'
	# shellcheck disable=SC2034
	show=$(grep 'rqctl dead show' "$T/out/mails" | head -n 1)
	like "$(eval "$(echo "$show" | sed "s|rqctl|'$RQCTL' -c '$T/rqd.conf'|")")" '^error' 'and the command that shows it'
fi

log_wait 30 'event=subscribed queue=remind'
chmod 777 "$SOCK"
r hset remind:every 7 1 >/dev/null
r set remind:7:digest 1 px 50 >/dev/null
wait_ok 20 '[ "$(grep -cs "^7 digest$" "$T/out/reminded")" -ge 2 ]' 'the example of expiring keys sets its key again'
r hdel remind:every 7 >/dev/null
r set 'remind:7;8:x' 1 px 50 >/dev/null
ok 'log_wait 30 "event=dead queue=remind .*status=65"' 'a key that names nobody is a dead letter'
rqd_stop
# A run that was under way at the HDEL has set it once more; nobody will again.
wait_ok 30 '[ -z "$(r --raw keys "*remind:*" | grep -v "^remind:every$")" ]' 'without an interval the key is not set again'
r del remind:every >/dev/null
