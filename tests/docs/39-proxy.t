#!/bin/sh
# The proxy with a login of doc/security.md, with nginx: the dashboard needs the password.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

for program in nginx openssl curl python3; do
	command -v $program >/dev/null || skip_all "no $program"
done
PORT=$(free_port)
redis_start
rqd_start <<C
http { listen = "127.0.0.1:0" }
queue "q" { command = {"/bin/true"} $AS }
C
log_wait 20 event=listening
where=$(log_lines event=listening | log_field address)

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=rqd.example.org \
    -addext subjectAltName=DNS:rqd.example.org -keyout "$T/rqd.key" -out "$T/rqd.crt" 2>"$T/openssl.out"
echo "alice:$(openssl passwd -apr1 secret)" >"$T/rqd.users"
chmod 644 "$T/rqd.users"
python3 "$SRCDIR/tests/docs/blocks.py" --program nginx "$SRCDIR/doc/security.md" |
    sed "s|listen *443|listen 127.0.0.1:$PORT|; s|127.0.0.1:17379|$where|; s|/etc/ssl/private/|$T/|
	s|/etc/ssl/|$T/|; s|/etc/nginx/|$T/|" >"$T/site"
ok '[ -s "$T/site" ]' 'the document has a server'
user=''
[ "$(id -u)" -ne 0 ] || user='user nobody nogroup;'
cat >"$T/nginx" <<N
$user
pid $T/nginx.pid;
error_log $T/nginx.log;
events { }
http {
    access_log off;
    client_body_temp_path $T/body; proxy_temp_path $T/proxy; fastcgi_temp_path $T/fastcgi;
    uwsgi_temp_path $T/uwsgi; scgi_temp_path $T/scgi;
    include $T/site;
}
N
nginx -t -c "$T/nginx" >"$T/nginx.out" 2>&1
is $? 0 'nginx accepts it' || note "$(cat "$T/nginx.out")"
nginx -g 'daemon off;' -c "$T/nginx" >"$T/nginx.out" 2>&1 &
OTHER_PIDS="$OTHER_PIDS $!"
nginx=$!
get() {	# PATH [OPTION...]
	path=$1
	shift
	curl -s -m 20 --cacert "$T/rqd.crt" --resolve "rqd.example.org:$PORT:127.0.0.1" "$@" "https://rqd.example.org:$PORT$path"
}
wait_ok 20 '[ "$(get / -o /dev/null -w "%{http_code}")" = 401 ]' 'without a password: 401'
is "$(get /status -u alice:wrong -o "$T/got" -w '%{http_code}')" 401 'with another one: 401'
unlike "$(cat "$T/got")" '"queues"' 'and nothing is shown'
like "$(get / -u alice:secret)" '<!doctype html>' 'with it: the page'
for path in page.js page.css history; do
	is "$(get /$path -u alice:secret -o /dev/null -w '%{http_code}')" 200 "and /$path"
done
like "$(get /status -u alice:secret)" '"name":"q"' 'and what it shows'
kill -QUIT $nginx
wait $nginx
