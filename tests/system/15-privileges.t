#!/bin/sh
# The shipped unit on a booted machine: a handler may do what its user may do in a login.
# It can write to /srv and to its home, use sudo, and send mail by a setgid program.  The
# privileges of each process are those that /proc shows.  Some examples run, too.

# shellcheck source=tests/system/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/system/lib.sh"

machine_boot
sbin=$(prefix)/sbin
bin=$(prefix)/bin
machine_redis
handled() { _queue=$1; wait_for 30 'journal | grep -q "event=acked queue=$_queue "'; }

for u in alice orders hooks app; do m useradd -m $u; done
m install -d -o alice /srv/alice
m install -d -o orders /var/lib/orders
m install -d -o www-data /srv/images /srv/thumbnails
script() { cat >"$R/usr/local/bin/$1" && chmod 755 "$R/usr/local/bin/$1"; }
mkdir -p "$R/usr/local/bin"
for e in mail remind sqlite thumbnail webhook postgres; do
	cp "$SRCDIR/etc/examples/$e.sh" "$R/usr/local/bin/"
done

# A spool to which only a setgid program can write, as that of Postfix.
m groupadd -f postdrop-test
cp /usr/bin/tee "$R/usr/local/bin/drop"
m chown root:postdrop-test /usr/local/bin/drop
m chmod 2755 /usr/local/bin/drop
m install -d -m 730 -o root -g postdrop-test /var/spool/drop-test
script sendmail-test <<'H'
#!/bin/sh
exec /usr/local/bin/drop /var/spool/drop-test/mail >/dev/null
H
echo 'orders ALL=(root) NOPASSWD: /usr/bin/id' >"$R/etc/sudoers.d/rqd-test"
chmod 440 "$R/etc/sudoers.d/rqd-test"

cat >"$R$etc/rqd.conf" <<'C'
queue "who" {
	command = {"/bin/sh", "-c", 'id -un >/srv/alice/who; touch ~/was-here; grep -E "^(Uid|Cap[IPEA]..|NoNewPrivs|Seccomp_filters):" /proc/self/status >/srv/alice/status; umask >>/srv/alice/who'}
	user = "alice"
}
queue "sudo" { command = {"/bin/sh", "-c", 'sudo -n id -u >/var/lib/orders/sudo'} user = "orders" }
queue "mail" { command = {"/usr/local/bin/mail.sh"} user = "alice" env = {"SENDMAIL=/usr/local/bin/sendmail-test"} }
queue "orders" {
	command = {"/usr/local/bin/sqlite.sh"}
	user = "orders"
	env = {"DATABASE=/var/lib/orders/orders.db"}
}
queue "thumbnails" {
	command = {"/usr/local/bin/thumbnail.sh"}
	user = "www-data"
	env = {"IMAGES=/srv/images", "THUMBNAILS=/srv/thumbnails"}
	nice = 10
	limit_as = 2G
}
queue "hooks" { command = {"/usr/local/bin/webhook.sh"} user = "hooks" env = {"WEBHOOK_URL=http://127.0.0.1:8123/"} max_attempts = 1 }
queue "secret" { command = {"/bin/sh", "-c", 'echo "$SECRET" >/srv/alice/secret'} user = "alice" env_file = "/etc/rqd-secret.env" }
queue "root" { command = {"/bin/sh", "-c", 'id -u >/srv/root'} user = "root" nice = -5 limit_nofile = 40000 }
C
echo 'SECRET=only-root-knows' >"$R/etc/rqd-secret.env"
chmod 600 "$R/etc/rqd-secret.env" "$R$etc/rqd.conf"
m "$sbin/rqd" -tt >"$T/tt.out" 2>&1
is $? 0 "root's rqd -tt accepts the file" || note "$(cat "$T/tt.out")"
m systemctl daemon-reload
m systemctl start rqd
is $? 0 'the service starts with that file'

# -- what /proc says ----------------------------------------------------------------
pid=$(prop MainPID)
status() { inside "/proc/$1/status" | sed -n "s/^$2:[ 	]*//p" | tr '\t' ' '; }
spawner=$(m pgrep -P "$pid" -x rqd-spawner)
is "$(m ps -o user= -p "$pid") $(m ps -o user= -p "$spawner")" '_rqd root' 'the main process is _rqd, the spawner root'
is "$(status "$pid" CapEff) $(status "$pid" CapPrm)" '0000000000000000 0000000000000000' 'the main process has no capability'
is "$(status "$pid" NoNewPrivs) $(status "$pid" Seccomp)" '1 2' 'the main process has no_new_privs and a seccomp filter'
ok "[ \$((0x$(status "$spawner" CapEff) & ~0x18000e4)) -eq 0 ]" 'the spawner uses only the capabilities that it needs'
is "$(prop NoNewPrivileges) $(prop ProtectSystem) $(prop PrivateTmp)" 'no no no' 'the unit does not restrict handlers'
# The memory of a process in kB; a page that two processes share counts half for each.
small() { inside "/proc/$1/smaps_rollup" | sed -n 's/^Pss: *\([0-9]*\) kB$/\1/p'; }
both=$(($(small "$pid") + $(small "$spawner")))
note "main process and spawner: $both kB"
ok '[ $both -gt 1000 ] && [ $both -le 8192 ]' 'main process and spawner need at most 8 MiB'

# -- handlers -------------------------------------------------------------------------
mr lpush who x >/dev/null
ok 'handled who' 'the message for the handler of alice is acked'
is "$(inside /srv/alice/who | tr '\n' ' ')" 'alice 0022 ' 'the handler runs as alice, and writes to /srv'
ok 'm test -e /home/alice/was-here' 'the handler writes to the home of alice'
is "$(inside /srv/alice/status | grep -c '^Cap.*0000000000000000$')" 4 'the handler has no capability'
is "$(inside /srv/alice/status | grep Seccomp_filters)" "$(grep Seccomp_filters "/proc/$LEADER/status")" \
    'the handler has only the seccomp filters of the whole machine'
if [ -x /usr/bin/sudo ]; then
	mr lpush sudo x >/dev/null
	ok 'handled sudo' 'the message for the handler that uses sudo is acked'
	is "$(inside /var/lib/orders/sudo)" 0 'sudo makes it root'
fi
mr lpush secret x >/dev/null
ok 'handled secret' 'the message of a queue whose env_file only root may read is acked'
is "$(inside /srv/alice/secret)" only-root-knows 'its handler has the variables of that env_file'
mr lpush root x >/dev/null
ok 'handled root' 'the message for a handler of root, with nice = -5 and a high limit, is acked'
is "$(inside /srv/root)" 0 'that handler is root'

# -- the examples -----------------------------------------------------------------------
if command -v jq >/dev/null; then
	mr lpush mail '{"id":"m-1","to":"a@example.org","subject":"Hello","text":"How are you?"}' >/dev/null
	ok 'handled mail' 'mail.sh succeeds with a setgid sendmail'
	like "$(inside /var/spool/drop-test/mail)" '^Subject: Hello' 'mail.sh: the mail is in the spool'
fi
if command -v jq >/dev/null && command -v sqlite3 >/dev/null; then
	m runuser -u orders -- sqlite3 /var/lib/orders/orders.db 'CREATE TABLE orders (id TEXT PRIMARY KEY, body TEXT NOT NULL)'
	mr lpush orders '{"id":"o-1","n":2}' >/dev/null
	ok 'handled orders' 'sqlite.sh succeeds'
	is "$(m sqlite3 /var/lib/orders/orders.db 'SELECT id FROM orders')" o-1 'sqlite.sh: the row is in the table'
fi
if command -v convert >/dev/null && convert -size 40x40 xc:red "$T/cat.jpg" 2>/dev/null; then
	cp "$T/cat.jpg" "$R/srv/images/cat.jpg"
	mr lpush thumbnails cat.jpg >/dev/null
	ok 'handled thumbnails' 'thumbnail.sh succeeds below /srv'
	ok 'm test -s /srv/thumbnails/cat.jpg' 'thumbnail.sh: the thumbnail is there'
fi
mr lpush hooks '{}' >/dev/null
wait_ok 30 'journal | grep -q "queue=hooks.*status=75"' 'webhook.sh ends with 75 when nobody listens at the URL'

# -- by hand ------------------------------------------------------------------------------
m rm -f /srv/alice/who /home/alice/was-here
m sh -c "umask 077; echo x | $bin/rqctl -c $etc/rqd.conf try who" >"$T/try.out" 2>&1
is $? 0 'rqctl try succeeds for root' || note "$(cat "$T/try.out")"
is "$(inside /srv/alice/who | tr '\n' ' ')" 'alice 0022 ' 'rqctl try uses the user and umask that the service would use'

# -- both processes without privileges: rqd@ ---------------------------------------------------
m sh -c "printf 'queue \"a\" { command = {\"/bin/true\"} }\n' >$etc/rqd-alice.conf"
m systemctl start rqd@alice
is $? 0 'rqd@alice starts'
# A process just forked is named rqd until it sets its own name, so this waits.
wait_ok 30 '[ "$(m pgrep -u alice -x rqd | wc -l) $(m pgrep -u alice -x rqd-spawner | wc -l)" = "1 1" ]' 'rqd@alice is two processes of alice'
m systemctl stop rqd@alice

# -- kill -9 --------------------------------------------------------------------------------
m kill -KILL "$spawner"
wait_ok 30 '[ "$(prop MainPID)" != "$pid" ] && [ "$(prop ActiveState)" = active ]' \
    'systemd starts the service again when its spawner was killed'
