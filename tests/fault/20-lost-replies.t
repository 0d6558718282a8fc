#!/bin/sh
# A connection that loses every tenth reply, and one attempt only.  rqd asks for the
# messages of a lost pop: they come back long before their lease is over, none becomes a
# dead letter without a run, and no acked message runs again.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
proxy_start

handler work <<'H'
echo "$RQD_ID" >>"$T/ran"
case $RQD_ID in *5) exit 1 ;; esac
H
rqd_start <<C
redis { server = "unix:$T/proxy.sock" timeout = 2s }
queue "q" {
	command = {"$T/work"}
	concurrency = 4
	lease = 120s
	max_attempts = 1
	max_crashes = 1
}
C
log_wait 30 event=redis_up
echo 'lose 10' >&3
n=200
for i in $(seq $n); do echo "lpush q '{\"id\":$i}'"; done | r >/dev/null
ok 'wait_for 60 "[ \"\$(sort -u \"$T/ran\" | wc -l)\" -eq $n ]"' 'every message runs'
ok 'wait_for 20 "[ \"\$(r exists q qBACKUP qRETRY)\" -eq 0 ]"' 'and is settled'
echo calm >&3
lost=$(log_count event=redis_down)
note "connections lost: $lost"
ok "[ $lost -ge 5 ]" 'replies were lost'

r --raw xrange qDEAD - + | grep -A1 '^id$' | grep '^[0-9]' | sort >"$T/dead"
sort -u "$T/ran" >"$T/begun"
is "$(comm -23 "$T/dead" "$T/begun" | tr '\n' ' ')" '' 'no message is dead without having run'
is "$(wc -l <"$T/dead")" "$(seq $n | grep -c '5$')" 'those that failed are dead'
is "$(r --raw xrange qDEAD - + | grep -A1 '^reason$' | grep -v '^reason$\|^--' | sort -u)" \
    attempts 'for their one attempt'
is "$(sort "$T/ran" | uniq -d | tr '\n' ' ')" '' 'and none ran twice'
exec 3>&-
