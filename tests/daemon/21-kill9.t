#!/bin/sh
# kill -9 of the daemon: its handlers do not outlive it, and every message is
# handled after a restart, none beside a handler of the dead daemon.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
# Two runs of a message must not overlap: the lock lives as long as the handler.
handler work <<'H'
exec 9>"$T/lock.$RQD_ID"
flock -n 9 || echo "$RQD_ID" >>"$T/overlap"
echo "$$ $RQD_ID $RQD_ATTEMPT" >>"$T/began"
if [ "$RQD_ID" = 3 ]; then (trap '' TERM; sleep 77.77 & wait; sleep 77.77) & fi
sleep 0.4
while [ "$RQD_ID" -gt 4 ] && [ -e "$T/hold" ]; do sleep 0.2; done
echo "$RQD_ID" >>"$T/done"
H
conf() {
	cat <<C
queue "q" {
	command = {"$T/work"}
	concurrency = 4
	lease = 3s
}
C
}
n=24
touch "$T/hold"
for i in $(seq $n); do r lpush q "{\"id\":$i}" >/dev/null; done
conf >"$T/start"
rqd_start <"$T/start"
wait_for 20 '[ "$(wc -l <"$T/began")" -ge 7 ] && [ "$(log_count event=acked)" -ge 3 ]'
rqd_kill9
log_lines event=acked | log_field id | sort >"$T/acked"
start=$(msec)
handlers() { for p in $(cut -d ' ' -f 1 "$T/began"); do is_alive "$p" && echo "$p"; done; }
wait_ok 15 '[ -z "$(our_processes)" ]' 'no process of the dead daemon lives on'
ended=$(($(msec) - start))
note "its handlers were gone after $ended ms"
ok '[ -z "$(handlers)" ]' 'no handler either'
in_hand=$(r zcard qBACKUP)
ok "[ $in_hand -ge 1 ] && [ $in_hand -le 4 ]" "messages were in hand ($in_hand)"
rm "$T/hold"

conf >"$T/start"
rqd_start <"$T/start"
wait_ok 30 '[ "$(sort -un "$T/done" | wc -l)" -eq $n ]' 'after a restart every message is handled'
log_wait 10 'event=acked queue=q id=' $n
ok '[ ! -e "$T/overlap" ]' 'none ran beside itself'
is "$(cut -d ' ' -f 3 "$T/began" | sort -u)" 1 'a crash is not an attempt'
cut -d ' ' -f 2 "$T/began" | sort | uniq -d | comm -12 - "$T/acked" >"$T/again"
ok '[ -s "$T/acked" ]' 'some were acked before'
is "$(cat "$T/again")" '' 'what was acked did not run again'
wait_ok 15 'no_keys' 'no key is left but QSTATS'
