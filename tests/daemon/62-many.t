#!/bin/sh
# A thousand messages (four thousand in the long form), eight at a time: each runs once, with
# its exact bytes.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

n=1000
[ -z "$RQD_TEST_LONG" ] || n=$((4000 / SLOW))
redis_start
handler work <<'H'
cat >>"$T/ran"
H
# One write a message: cat appends it whole.
seq $n | awk '{ printf "{\"id\":%d, \"text\":\"message number  %d\"}\n", $1, $1 }' >"$T/sent"
rqd_start <<C
log { level = "info" }
queue "q" { command = {"$T/work"} concurrency = 8 }
C
# The messages end in a newline, so that what the handlers append stays apart.
awk '{ m = $0 "\n"; printf "*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n$%d\r\n%s\r\n", length(m), m }' "$T/sent" |
    r --pipe >/dev/null
start=$(msec)
wait_for 300 '[ "$(r llen q)" -eq 0 ] && [ "$(r zcard qBACKUP)" -eq 0 ]'
took=$(($(msec) - start))
note "$n messages in $took ms"
log_wait 30 event=acked $n
is "$(wc -l <"$T/ran")" $n 'as many runs as messages'
sort "$T/sent" >"$T/sent.sorted"
sort "$T/ran" >"$T/ran.sorted"
ok 'cmp -s "$T/sent.sorted" "$T/ran.sorted"' 'each ran once, with its exact bytes'
is "$(log_count event=acked)" $n 'all were acked'
is "$(log_count 'event=(retry|dead|stale|returned|requeued)')" 0 'nothing else happened'
rqd_stop
is "$(keys)" qSTATS 'no key is left but QSTATS'
is "$(r hget qSTATS acked)" $n 'which counts them'
