#!/bin/sh
# A Redis that answers and refuses writes: status, check, /readyz, the page and a metric say so, and
# daemons whose heartbeats it refuses are not taken for dead.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v curl >/dev/null || skip_all 'no curl'
redis_start
H=$OWN/http.sock
get() { curl -s -m 20 --unix-socket "$H" "http://rqd$1"; }
rqd_start <<C
http { listen = "unix:$H" }
queue "q" { command = {"/bin/true"} }
C
log_wait 20 event=ready
instance=$(log_lines event=started | log_field instance)
beat() { r publish "rqd:control:$instance" beat >/dev/null; }
wait_ok 20 'get /readyz | grep -qx ready && get /metrics | grep -qx "rqd_redis_writable 1"' 'it takes writes'
wait_for 20 '[ "$(r zcard rqd:daemons)" = 1 ]'

# The daemons' index goes, so that rqctl sees no daemon.
printf '%s\n' multi 'del rqd:daemons' 'config set min-replicas-to-write 1' exec | r >/dev/null
WHY='Redis refuses writes: NOREPLICAS Not enough good replicas to write'
like "$(ctl check)" "^error: $WHY.*: nothing can be pushed or taken" 'check'
like "$(ctl -c "$T/rqd.conf" check)" '^error: q: no daemon is seen: Redis refuses writes$' 'check, of the queue'
unlike "$(ctl -c "$T/rqd.conf" check)" 'no daemon (serves|is running)' 'and no daemon is taken for dead'
like "$(ctl status)" "^error: $WHY" 'status'
like "$(ctl -c "$T/rqd.conf" status)" '^q .* no daemon is seen: Redis refuses writes$' 'status, of the queue'
beat
wait_ok 20 "beat; get /readyz | grep -q '^$WHY'" '/readyz'
is "$(curl -s -m 20 -o "$T/body" -w '%{http_code}' --unix-socket "$H" http://rqd/readyz)" 503 'with 503'
wait_ok 20 'get /metrics | grep -qx "rqd_redis_writable 0"' 'the metric'
like "$(get /metrics)" 'rqd_redis_up 1' 'Redis is up, nevertheless'
wait_ok 20 "get /status | grep -q '\"problems\":\[{\"level\":\"error\",\"text\":\"$WHY'" 'the page'
like "$(get /status)" '"name":"q",.*"daemons":1,.*"state":"ok"' 'which sees its own daemon'

r config set min-replicas-to-write 0 >/dev/null
unlike "$(ctl check)" 'refuses' 'check: it is over'
wait_ok 20 'beat; get /readyz | grep -qx ready && get /metrics | grep -qx "rqd_redis_writable 1"' 'and ready again'
wait_ok 20 'get /status | grep -q "\"problems\":\[\]"' 'the page has no problem'
r flushall >/dev/null
