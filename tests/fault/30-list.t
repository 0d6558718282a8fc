#!/bin/sh
# Kind list, a fleet of three, connections cut and a daemon killed: messages run at most
# once, and only messages in flight are lost.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

N=${N:-1500}
CUTS=8
redis_start
handler work <<'H'
echo "$(cat)" >>"$T/ran"
H
: >"$T/ran"
ran() { wc -l <"$T/ran"; }
seq 1 "$N" | sed 's/.*/LPUSH q &/' | r --pipe >/dev/null
for d in a b c; do
	rqd_start $d <<C
log { level = "warn" }
queue "q" { kind = "list" command = {"$T/work"} concurrency = 4 }
C
done
cut=0
while [ $cut -lt $CUTS ]; do
	seen=$(ran)
	wait_for 20 '[ "$(ran)" -gt $((seen + 20)) ] || [ "$(r llen q)" -eq 0 ]'
	r client kill type normal skipme yes >/dev/null
	cut=$((cut + 1))
	[ $cut -ne 4 ] || rqd_kill9 b
done
wait_ok 120 '[ "$(r llen q)" -eq 0 ]' 'the list is worked off'
rqd_stop a
rqd_stop c
is "$(sort "$T/ran" | uniq -d | head -n 3 | tr '\n' ' ')" '' 'nothing ran twice'
note "$(ran) of $N ran; $CUTS cuts, 3 daemons with 4 places each, one kill -9"
ok "[ \$((N - \$(ran))) -le $((CUTS * 3 * 4 + 4)) ]" 'no more is lost than was in hand'
