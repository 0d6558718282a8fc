#!/bin/sh
# --until-empty: a batch run that ends by itself.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
QUEUES=q
handler work <<'H'
echo "$RQD_ID $RQD_ATTEMPT" >>"$T/ran"
[ "$RQD_ID" != fails ]
H
batch() {
	rqd_run rqd -o "redis.server=unix:$SOCK" --until-empty -j 3 -q q -- "$T/work"
	rqd_wait '' 30
}
batch
is "$STATUS" 0 'an empty queue: exit 0 at once'
for i in $(seq 50); do echo "{\"id\":$i}"; done | xargs -d '\n' redis-cli -s "$SOCK" lpush q >/dev/null
batch
is "$STATUS" 0 'fifty messages: exit 0'
is "$(wc -l <"$T/ran")" 50 'after all of them'
is "$(keys)" qSTATS 'no key is left but QSTATS'
r lpush q '{"id":"fails"}' >/dev/null
r zadd qDELAYED 9999999999 later >/dev/null
batch
is "$STATUS" 0 'a failure: exit 0'
is "$(r zcard qRETRY)" 1 'it does not wait for retries'
is "$(r zcard qDELAYED)" 1 'nor for what is not due'
