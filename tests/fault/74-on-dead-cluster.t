#!/bin/sh
# On a Redis Cluster: dead letters that are announced in a queue of the same slot, also while the
# slot moves; another key of delayed messages; and the permissions of both.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034,SC2154
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

# shellcheck source=tests/fault/cluster.sh
. "$SRCDIR/tests/fault/cluster.sh"

command -v jq >/dev/null || skip_all 'no jq'
cluster_start 3 0
TAG=$(tag_of n2)
handler work <<'H'
[ "$RQD_ID" != fine ] || exit 0
exit 65
H
handler alert <<'H'
cat >>"$T/alerts"
echo >>"$T/alerts"
H
: >"$T/alerts" && chmod 666 "$T/alerts"
rqd_start <<C
redis { cluster = {"127.0.0.1:$PORT_n1"} }
queue "in" {
	key = "jobs:{$TAG}" pop = "left" id = "jid" delayed_key = "{$TAG}:later" command = {"$T/work"}
	on_dead = "push:alerts" suspend_after = 0 concurrency = 8
}
queue "alerts" { key = "alerts:{$TAG}" command = {"$T/alert"} }
C
q() { "$RQCTL" -c "$T/rqd.conf" "$@"; }
told() { wait_ok 30 "grep -q '\"id\":\"$1\"' '$T/alerts'" "$2"; }

c rpush "jobs:{$TAG}" '{"jid":"dead"}' >/dev/null
told dead 'a dead letter is announced'
c zadd "{$TAG}:later" 1 '{"jid":"late"}' >/dev/null
told late 'one that was delayed'
q push in --delay 1h '{"jid":"buried"}' >/dev/null
q bury in buried -y >/dev/null
told buried 'one that was buried'
q push in --delay 1h '{"jid":"cancelled"}' >/dev/null
q cancel in cancelled --dead >/dev/null
told cancelled 'one that was cancelled'

# The slot moves while letters are made.
seq 200 | sed "s/.*/rpush jobs:{$TAG} '{\"jid\":\"n&\"}'/" >"$T/pushes"
redis-cli -c -p "$PORT_n1" <"$T/pushes" >/dev/null &
slot_move "jobs:{$TAG}" n3
wait $!
wait_ok 60 '[ "$(jq -r .id "$T/alerts" | grep -c "^n")" -ge 200 ]' 'while the slot moves to another master'
is "$(jq -r .id "$T/alerts" | sort -u | grep -c '^n')" 200 'each of them'
is "$(jq -r .letter "$T/alerts" | sort | uniq -d)" '' 'none twice'
is "$(c xlen "jobs:{$TAG}DEAD")" "$(jq -r .letter "$T/alerts" | wc -l)" 'as many as there are letters'
rqd_stop
