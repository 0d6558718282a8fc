#!/bin/sh
# The static programs in other roots: nothing but them, busybox, Debian 11 and 13.  In each,
# rqd runs README's first queue, a dead letter and its replay; as process 1; over TLS; and
# `rqctl status` reads what it publishes.  Redis runs outside, on loopback.
#
#	tests/reach/static.sh ARCHIVE [ROOT...]		ROOT: a directory with a system

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

[ "$(id -u)" -eq 0 ] || skip_all 'needs root'
ARCHIVE=$1
shift
unshare --pid --fork --mount true 2>/dev/null || skip_all 'no name spaces here'
port=$(free_port) tls_port=$(free_port)
tls=no
case $ARCHIVE in *-notls*) ;; *) tls=yes ;; esac

mkdir "$T/unpacked" && tar -xf "$ARCHIVE" -C "$T/unpacked" --strip-components=1
BIN=$T/unpacked/bin

# -- the archive ---------------------------------------------------------------------

is "$(cd "$T/unpacked" && sha256sum -c --quiet SHA256SUMS 2>&1)" '' 'SHA256SUMS names the files as they are'
for f in bin/rqd bin/rqctl etc/rqd.conf share/man/man8/rqd.8 share/man/man1/rqctl.1 \
    share/bash-completion/completions/rqctl share/doc/rqd/examples/webhook.sh \
    share/doc/rqd/licenses/musl lib/systemd/system/rqd.service; do
	ok "[ -s '$T/unpacked/$f' ]" "the archive has $f"
done
limit=1677721
[ $tls = no ] || limit=6291456
for f in rqd rqctl; do
	like "$(readelf -h "$BIN/$f")" 'Type: *DYN' "$f is position-independent"
	unlike "$(readelf -ld "$BIN/$f")" 'INTERP|NEEDED' "$f needs neither a loader nor libraries"
	unlike "$(readelf -S "$BIN/$f")" '\.symtab' "$f is stripped"
	size=$(stat -c %s "$BIN/$f")
	ok "[ $size -le $limit ]" "$f has $size bytes, at most $limit"
	unlike "$(strings "$BIN/$f")" "$(dirname "$ARCHIVE")" "$f does not name the directory that it was built in"
done

# -- Redis ----------------------------------------------------------------------------

cat >"$T/redis.conf" <<C
port $port
bind 127.0.0.1
dir $T
save ""
C
if [ $tls = yes ]; then
	mkdir "$T/tls"
	(
		cd "$T/tls" || exit
		openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=ca
		openssl ecparam -name prime256v1 -genkey -noout -out key
		openssl req -new -key key -out csr -subj /CN=localhost
		echo 'subjectAltName=IP:127.0.0.1,DNS:localhost' >ext
		openssl x509 -req -in csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out crt
	) >/dev/null 2>&1
	cat >>"$T/redis.conf" <<C
tls-port $tls_port
tls-cert-file $T/tls/crt
tls-key-file $T/tls/key
tls-ca-cert-file $T/tls/ca.crt
tls-auth-clients no
C
fi
redis-server "$T/redis.conf" >"$T/redis.log" 2>&1 &
REDIS_PID=$!
rc() { redis-cli -p "$port" "$@"; }
wait_for 10 '[ "$(rc ping 2>/dev/null)" = PONG ]'

# -- one root --------------------------------------------------------------------------

# In a root without a shell the handler is a static program.
cat >"$T/work.c" <<'C'
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
	char text[1000];
	size_t n = fread(text, 1, sizeof(text) - 1, stdin);
	FILE *f;

	text[n] = '\0';
	if (strcmp(text, "bad") == 0 && access("/tmp/mended", F_OK) != 0) {
		fprintf(stderr, "cannot read this\n");
		return 65;
	}
	f = fopen("/tmp/got", "a");
	fprintf(f, "%s\n", text);
	return 0;
}
C
gcc -static -O1 -o "$T/work" "$T/work.c" || skip_all 'no static C library'
cat >"$T/work.sh" <<'H'
#!/bin/sh
text=$(cat)
if [ "$text" = bad ] && [ ! -e /tmp/mended ]; then
	echo 'cannot read this' >&2
	exit 65
fi
echo "$text" >>/tmp/got
H

try_root() {	# NAME ROOT SERVER
	name=$1 root=$2 log=$T/$1.log
	mkdir -p "$root/usr/local/bin" "$root/etc" "$root/tmp" "$root/dev" "$root/proc"
	rm -f "$root/tmp/got" "$root/tmp/mended"
	cp "$BIN/rqd" "$BIN/rqctl" "$root/usr/local/bin/"
	if [ -e "$root/bin/sh" ]; then cp "$T/work.sh" "$root/usr/local/bin/work"
	else cp "$T/work" "$root/usr/local/bin/work"; fi
	chmod 755 "$root/usr/local/bin/work"
	grep -qs '^root:' "$root/etc/passwd" || echo 'root:x:0:0::/:/bin/sh' >>"$root/etc/passwd"
	grep -qs '^_rqd:' "$root/etc/passwd" || echo '_rqd:x:990:990::/:/bin/false' >>"$root/etc/passwd"
	# musl knows no name but those in files and of name servers.
	grep -qs localhost "$root/etc/hosts" || echo '127.0.0.1 localhost' >>"$root/etc/hosts"
	rc flushall >/dev/null
	cat >"$root/etc/rqd.conf" <<-C
		redis { $3 }
		queue "orders" { command = {"/usr/local/bin/work"} user = "root" }
	C
	[ $tls = no ] || cp "$T/tls/ca.crt" "$root/etc/ca.crt"
	unshare --pid --fork --kill-child --mount sh -c '
		mount --bind /dev "$1/dev" && mount -t proc proc "$1/proc" &&
		    exec chroot "$1" /usr/local/bin/rqd' sh "$root" >"$log" 2>&1 &
	daemon=$!
	c() { chroot "$root" /usr/local/bin/rqctl "$@" 2>&1; }
	wait_ok 20 'grep -q event=redis_up "$log"' "$name: rqd starts as process 1, and reaches Redis"
	rc lpush orders '{"id":7}' >/dev/null
	wait_ok 20 'grep -qsxF "{\"id\":7}" "$root/tmp/got"' "$name: the first queue: the handler gets a message"
	rc lpush orders bad >/dev/null
	wait_ok 20 'c dead list orders | grep -q "status 65"' "$name: a message that the handler refuses is a dead letter"
	like "$(c dead list orders)" 'cannot read this' "$name: rqctl shows it"
	: >"$root/tmp/mended"
	c dead retry orders --all -y >/dev/null
	wait_ok 20 'grep -qsx bad "$root/tmp/got"' "$name: it is replayed"
	like "$(c status)" '^orders .* ok$' "$name: rqctl status shows the queue"
	main=$(pgrep -P "$daemon" -x rqd)
	spawner=$(pgrep -P "${main:-1}")
	note "$name: RSS of both processes: $(awk '/^Rss:/ { n += $2 } END { print n }' "/proc/$main/smaps_rollup" \
	    "/proc/$spawner/smaps_rollup") KiB, private: $(awk '/^Private/ { n += $2 } END { print n }' \
	    "/proc/$main/smaps_rollup" "/proc/$spawner/smaps_rollup") KiB"
	kill -TERM "$main"
	wait_ok 30 '! is_alive $daemon' "$name: SIGTERM ends process 1"
	wait "$daemon" 2>/dev/null
	like "$(cat "$log")" 'event=stopped' "$name: its last record is \"stopped\""
}

plain="server = \"127.0.0.1:$port\""
mkdir "$T/empty"
try_root empty "$T/empty" "$plain"
[ $tls = no ] ||
    try_root empty-tls "$T/empty" "server = \"localhost:$tls_port\" tls = true tls_ca = \"/etc/ca.crt\""
mkdir -p "$T/busybox/bin"
if cp /bin/busybox "$T/busybox/bin/" 2>/dev/null &&
    chroot "$T/busybox" /bin/busybox --install -s /bin 2>/dev/null; then
	try_root busybox "$T/busybox" "$plain"
else
	skip 'no static busybox'
fi
for root in "$@"; do
	try_root "${root##*/}" "$root" "$plain"
	[ $tls = no ] || try_root "${root##*/}-tls" "$root" \
	    "server = \"localhost:$tls_port\" tls = true tls_ca = \"/etc/ca.crt\""
done
kill "$REDIS_PID"
wait "$REDIS_PID"
REDIS_PID=''
