#!/bin/sh
# The HTTP listener of a running daemon: health, readiness, metrics, status; its answers
# while Redis is away, and after a reload.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v curl >/dev/null || skip_all 'no curl'
H=$OWN/http.sock
get() { curl -s -m 20 --unix-socket "$H" "http://rqd$1"; }		# PATH
code() { curl -s -m 20 -o "$T/body" -w '%{http_code}' --unix-socket "$H" "http://rqd$1"; }
sample() { get /metrics | grep -v '^#' | grep -F "$1 " | sed 's/.* //'; }		# SERIES
json() { get /status | tr ',{}' '\n\n\n' | sed -n "s/^\"$1\":\"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" | head -1; }
promtool() {	# where there is one: it is large
	_p=$(which promtool "$BUILDDIR/tools/promtool" 2>/dev/null | head -n 1)
	[ -z "$_p" ] || "$_p" check metrics
}

redis_start
handler good <<'H'
cat >/dev/null
H
handler slow <<'H'
touch "$T/started"
until [ -e "$T/release" ]; do sleep 0.2; done
H
handler bad <<'H'
exit 65
H
rqd_start <<C
http { listen = "unix:$H" }
queue "q" { command = {"$T/good"} }
queue "slow" { command = {"$T/slow"} }
queue "bad" { command = {"$T/bad"} }
queue "spread" { command = {"$T/bad"} shards = 2 }
C
log_wait 10 'event=ready'
is "$(code /healthz) $(cat "$T/body")" '200 ok' '/healthz'
is "$(code /readyz) $(cat "$T/body")" '200 ready' '/readyz'
is "$(stat -c %a "$H")" 660 "the socket's mode"
like "$(log_lines event=listening)" "address=unix:$H" 'the log says where it listens'

# -- figures
r lpush q a b c >/dev/null
r lpush bad x >/dev/null
r lpush slow s1 s2 s3 >/dev/null
log_wait 10 'event=acked queue=q' 3
log_wait 10 'event=dead queue=bad'
wait_for 10 '[ -e "$T/started" ]'
# Figures of Redis are up to 1.5 s old.
wait_for 10 '[ "$(sample "rqd_queue_messages{queue=\"slow\",state=\"waiting\"}")" = 2 ] &&
    [ "$(sample "rqd_queue_messages{queue=\"bad\",state=\"dead\"}")" = 1 ]'
is "$(sample 'rqd_queue_acked_total{queue="q"}')" 3 'a counter'
is "$(sample 'rqd_queue_messages{queue="slow",state="waiting"}')" 2 'messages that wait'
is "$(sample 'rqd_queue_messages{queue="slow",state="running"}')" 1 'and one that runs'
is "$(sample 'rqd_queue_messages{queue="bad",state="dead"}')" 1 'and a dead letter'
is "$(sample 'rqd_queue_blocked{queue="slow",reason="full"}')" 1 'why nothing more is taken'
is "$(sample 'rqd_handler_duration_seconds_count{queue="q"}')" 3 'durations'
is "$(sample rqd_redis_up)" 1 'Redis is up'
is "$(get /metrics | promtool 2>&1)" '' 'promtool accepts it, where there is one'
is "$(get /metrics | grep -v '^#' | cut -d ' ' -f 1 | sort | uniq -d)" '' 'no series is there twice'
is "$(get /metrics | grep -cvE '^# (HELP|TYPE) [a-z_]+ |^[a-z_]+(\{[^{}]*\})? [-+0-9.e]+$')" 0 'every line has the form'

# -- one queue, and the history
is "$(code /queue) $(code '/queue?key=')" '400 404' '/queue wants a key'
is "$(code '/queue?key=none')" 404 'of a queue that there is'
like "$(get '/queue?key=bad')" '^\{"name":"bad",.*"hint":"Messages have failed for good.*"findings":\[\{"level":"warning","text":"1 dead letter",.*"servers":\[\{"instance":"[^"]*",.*"commands":\[.*dead list bad.*"letters":\{"total":1,"looked":1,"reasons":\{"status":1\},"newest":\{' '/queue'
like "$(get '/queue?key=q')" '"hint":null,.*"letters":null' 'without dead letters'
for i in 1 2 3 4 5 6 7 8; do ctl -c "$T/rqd.conf" push spread "{\"id\":$i}" >/dev/null; done
log_wait 10 'event=dead queue=spread' 8
wait_ok 10 'get "/queue?key=spread" | grep -q "\"letters\":{\"total\":8,\"looked\":8,\"reasons\":{\"status\":8},\"newest\":{\"died\":"' \
    'dead letters of all shards'
wait_ok 10 'get /history | grep -q "\"times\":\[[0-9]"' '/history: the first sample comes by itself'
like "$(get /history)" '^\{"step":10,"window":900,"times":\[[0-9.,]+\],"queues":\[\{"key":"bad","depth":\[[0-9,]+\],"acked_rate":\[null[^]]*\],"failed_rate":\[null[^]]*\],"latency":\[[0-9.,]+\]\},\{"key":"q",' \
    'an object for each queue'
like "$(get /status)" '"schedules":\[\],"problems":\[\]' '/status: nothing else is wrong'
like "$(get /status)" '"name":"bad",.*"mood":"warn",.*"trouble":2,"acked_rate":' 'but for the dead letter'

r config set maxmemory 1 >/dev/null
wait_ok 10 'get /status | grep -q "\"problems\":\[{\"level\":\"error\",\"text\":\"Redis is full: it uses "' 'a full Redis'
r config set maxmemory 0 >/dev/null
wait_ok 10 'get /status | grep -q "\"problems\":\[\]"' 'is over'

is "$(json state)" running '/status: the daemon'
like "$(get /status)" '"name":"slow".*"waiting":2,"running":1' 'its queues'
# shellcheck disable=SC2016
is "$(get /status | tr '{' '\n' | grep -c '^"instance":')" 2 'itself, and the fleet'
ctl status --json >"$T/s1"
like "$(tr -d ' \n' <"$T/s1")" '"name":"slow".*"waiting":2,"running":1' 'rqctl status says the same'

# -- the page
like "$(get /)" '<!doctype html>' 'the page'
for f in page.css page.js; do is "$(code /$f)" 200 "$f"; done
is "$(grep -cE '(src|href)="(https?:)?//' "$SRCDIR/src/status/page/index.html")" 0 'nothing in it is from elsewhere'
is "$(code /nothing)" 404 'what is not there'

# -- a stranger
is "$(curl -s -m 20 -o /dev/null -w '%{http_code}' -X POST --unix-socket "$H" http://rqd/healthz)" 405 'nothing can be changed'

# -- a queue gets another key while it works under the old one
cp "$T/rqd.conf" "$T/before"
sed -i 's|queue "slow" {|& key = "elsewhere"|' "$T/rqd.conf"
MORE_KEYS="elsewhere $(ctl -c "$T/before" queues --keys spread | tr '\n' ' ')"
rqd_signal HUP
log_wait 10 'event=reloaded'
running() { sample 'rqd_queue_running{queue="slow"}'; }
wait_ok 15 '[ "$(running)" = 0 ]' 'a queue whose key has changed is the new one'
is "$(get /metrics | grep -v '^#' | cut -d ' ' -f 1 | sort | uniq -d)" '' 'and is there once'
cp "$T/before" "$T/rqd.conf"
rqd_signal HUP
log_wait 10 'event=reloaded' 2

# -- Redis is away
redis_stop
log_wait 20 'event=redis_down'
is "$(code /healthz)" 200 'without Redis: the loop turns'
is "$(code /readyz)" 503 'without Redis: not ready'
like "$(cat "$T/body")" '^Redis is down: ' 'and it says why'
is "$(sample rqd_redis_up)" 0 'rqd_redis_up is 0'
is "$(sample 'rqd_queue_messages{queue="slow",state="waiting"}')" '' 'what is not known is not there'
is "$(sample 'rqd_queue_acked_total{queue="q"}')" 3 'counters are'
like "$(get /status)" '"up":false.*"fleet":null,"queues":null' '/status says so, too'
touch "$T/release"
redis_start
log_wait 20 'event=redis_up' 2
is "$(sample rqd_redis_reconnects_total)" 1 'one reconnect'

# -- reload
sed -i "s|^http.*|http { listen = \"127.0.0.1:0\" }|" "$T/rqd.conf"
rqd_signal HUP
log_wait 10 'event=listening' 2
where=$(log_lines event=listening | tail -1 | log_field address)
is "$(curl -s -m 20 "http://$where/healthz")" ok 'a reload moves the listener'
is "$(curl -s -m 20 -o /dev/null -w '%{http_code}' -H 'Host: evil.example' "http://$where/status")" 403 \
    'a name that is not ours is refused on loopback'
ok '[ ! -e "$H" ]' 'and removes the old socket'
echo 'nonsense' >>"$T/rqd.conf"
rqd_signal HUP
log_wait 10 'event=reload_failed'
reload_ok() { curl -s -m 20 "http://$where/metrics" | sed -n 's/^rqd_config_last_reload_successful //p'; }
wait_ok 15 '[ "$(reload_ok)" = 0 ]' 'a failed reload shows'
# Any daemon's page, status and check say it until one succeeds.
rqd_start two <<C
http { listen = "unix:$OWN/two.sock" }
queue "other" { command = {"$T/good"} }
C
two() { curl -s -m 20 --unix-socket "$OWN/two.sock" http://rqd/status; }
said="daemon [^ ]*: reload failed: $T/rqd.conf:[0-9]+: .*: the old configuration is in use"
wait_ok 20 'two | grep -qE "\"text\":\"$said"' "the other daemon's page shows it"
like "$(curl -s -m 20 "http://$where/status")" "\"text\":\"$said" 'and its own'
like "$(curl -s -m 20 "http://$where/status")" '"reload_failed":true,.*"reload_error":"' 'with the error'
ctl check >"$T/check.out"
like "$(cat "$T/check.out")" "^warning: $said" 'rqctl check'
like "$(ctl status)" "^warning: $said" 'rqctl status'
sed -i -e '/^nonsense/d' -e '/^http/d' "$T/rqd.conf"
rqd_signal HUP
log_wait 10 'event=reloaded' 4
wait_ok 20 'two | grep -q "\"problems\":\[\]" && ! ctl check | grep -q "reload failed"' 'a reload that succeeds ends it'
rqd_stop two
ok '! curl -s -m 20 "http://$where/healthz"' 'and one closes it'

# -- in use
sed -i "\$a http { listen = \"unix:$H\" }" "$T/rqd.conf"
rqd_signal HUP
log_wait 10 'event=listening' 3
rqd_start second <<C
name = "second"
http { listen = "unix:$H" }
queue "q2" { command = {"$T/good"} }
C
ok 'log_wait 10 "is in use" 1 second' 'an address in use is said'
r lpush q2 x >/dev/null
ok 'log_wait 10 "event=acked queue=q2" 1 second' 'and the daemon works all the same'
rqd_stop
ok 'log_wait 30 "event=listening" 1 second' 'and listens when the address is free'
is "$(code /healthz)" 200 'in the place of the first'
like "$(get /status)" '"name":"second"' 'and is asked now'

# -- killed: its socket file stays, and does not hinder the next
rqd_kill9 second
ok '[ -S "$H" ]' 'a killed daemon leaves its socket'
rqd_run second -c "$T/second.conf"
log_wait 10 'event=listening' 2 second
is "$(code /healthz)" 200 'and the next one takes it over'
