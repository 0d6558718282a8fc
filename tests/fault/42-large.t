#!/bin/sh
# A link of 1 MB/s, a timeout of 4 s, leases of 6 s: a message of 8 MiB is delivered once,
# unchanged, and a small one of another queue waits behind it.  The same holds for one
# that a client pushes over the link, and for one of a queue that keeps nothing.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
proxy_start

touch "$T/ran"
handler large <<'H'
sha256sum >>"$T/sums"
H
handler small <<'H'
echo "$RQD_ID" >>"$T/ran"
H
rqd_start <<C
redis { server = "unix:$T/proxy.sock" timeout = $((4 * SLOW))s }
queue "large" { command = {"$T/large"} concurrency = 2 lease = 6s }
queue "small" { command = {"$T/small"} lease = 6s }
queue "plain" { kind = "list" command = {"$T/large"} }
C
log_wait 30 event=redis_up
head -c 8388608 /dev/urandom >"$T/8M"
head -c 5242880 /dev/urandom >"$T/5M"
echo 'rate 1000000' >&3

r -x lpush large <"$T/8M" >/dev/null
wait_for 30 '[ "$(r zcard largeBACKUP)" -eq 1 ]'
r lpush small '{"id":1}' >/dev/null
ok 'wait_for 60 "[ -s \"\$T/sums\" ]"' 'the large one arrives'
is "$(cat "$T/sums")" "$(sha256sum <"$T/8M")" 'as it was pushed'
ok 'wait_for 30 "[ \"\$(r exists large largeBACKUP largeRETRY small smallBACKUP)\" -eq 0 ]"' 'and is done'
is "$(cat "$T/ran")" 1 'a small one of another queue comes behind it'

: >"$T/sums"
ok '"$RQCTL" -c "$T/rqd.conf" push large <"$T/8M" >"$T/pushed"' 'rqctl pushes 8 MiB over the link'
ok 'wait_for 60 "[ -s \"\$T/sums\" ]"' 'which is delivered'
is "$(cat "$T/sums")" "$(sha256sum <"$T/8M")" 'as it was'

: >"$T/sums"
r -x lpush plain <"$T/5M" >/dev/null
ok 'wait_for 60 "[ -s \"\$T/sums\" ]"' 'kind list: the reply is not late while it moves'
is "$(cat "$T/sums")" "$(sha256sum <"$T/5M")" 'nor is it cut'

is "$(log_count event=redis_down)" 0 'no connection was lost'
is "$(log_count event=requeued)" 0 'no lease has expired'
exec 3>&-
