#!/bin/sh
# rqd is started as root, and only root may connect to Redis' unix socket: the spawner
# connects for the main process, which is another user.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
[ "$(id -u)" -eq 0 ] || skip_all 'needs root'

redis_start
chmod 755 "$SOCK"
handler work <<'H'
cat >>"$T/ran"
H
rqd_start <<C
queue "q" { command = {"$T/work"} }
C
log_wait 10 event=ready
r lpush q one >/dev/null
wait_ok 10 '[ "$(cat "$T/ran" 2>/dev/null)" = one ]' 'a message is handled'
r client kill type normal >/dev/null
r lpush q two >/dev/null
wait_ok 20 '[ "$(cat "$T/ran")" = onetwo ]' 'and after a reconnect'
chmod 777 "$SOCK"
