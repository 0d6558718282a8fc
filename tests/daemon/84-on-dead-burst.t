#!/bin/sh
# on_dead: 3,000 messages die at once, in a batch and in the pipeline of a persistent handler.
# Each is announced once, a batch handler tells all of them in digests, nothing is lost, and the
# results come in calls of bounded size.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v jq >/dev/null || skip_all 'no jq'
MESSAGES=3000
CALL_MAX=64		# results in a call: src/queue/leased_settle.c
POP_MOST=200		# messages in a call: src/queue/leased_fetch.c
redis_start
# No message is answered before all have come.
handler batch <<'H'
cat >"$T/got"
[ "$RQD_BATCH" -eq 3000 ] || exit 1
echo '12 customers are missing' >&2
seq 3000 | sed 's/$/ dead no such customer/' >&3
H
handler fed <<'H'
all='' have=0
while read -r n _ _ _ && IFS= read -r _; do
	all="$all $n"
	[ $((have += 1)) -eq 3000 ] || continue
	printf '%s dead no such customer\n' $all
	all='' have=0
done
H
handler digest <<'H'
cat >"$T/digest.$$"
[ "$RQD_BATCH" -eq "$(wc -l <"$T/digest.$$")" ] && cat "$T/digest.$$" >>"$T/told"
H
: >"$T/told"
cat >"$T/text" <<C
log { level = "info" }
queue "batch" {
	command = {"$T/batch"} batch = $MESSAGES batch_wait = 10s on_dead = "push:alerts"
	suspend_after = 0 lease = 5m max_attempts = 1
}
queue "fed" {
	command = {"$T/fed"} mode = "persistent" framing = "line" pipeline = $MESSAGES
	on_dead = "push:alerts" on_dead_message = true suspend_after = 0 lease = 5m max_attempts = 1
}
queue "alerts" { command = {"$T/digest"} batch = 500 framing = "raw" }
C
rqd_start <"$T/text"

letters() { r xlen "${1}DEAD"; }
burst() {	# QUEUE
	wait_for 60 'is_empty alerts'
	r del "${1}DEAD" >/dev/null
	: >"$T/told"
	r config resetstat >/dev/null
	seq $MESSAGES | sed 's/.*/{"id":"m&"}/' | xargs -d '\n' redis-cli -s "$SOCK" lpush "$1" >/dev/null
	wait_for 60 "[ \"\$(letters $1)\" -ge $MESSAGES ]"
	calls=$(r info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p')
	note "$1: $calls calls of scripts"
}
ids() { jq -r "select(.queue == \"$1\").id" "$T/told"; }

for q in batch fed; do
	burst $q
	ok "[ $calls -ge $((MESSAGES / CALL_MAX + MESSAGES / POP_MOST)) ]" "$q: in calls of bounded size"
	wait_ok 60 'is_empty alerts' "$q: the announcements are handled"
	is "$(letters $q)" $MESSAGES "$q: all are dead letters, once"
	is "$(ids $q | sort | uniq -d | head -n 3)" '' "$q: none is announced twice"
	is "$(ids $q | sort -u | wc -l)" $MESSAGES "$q: each is announced"
	is "$(jq -r .letter "$T/told" | sort)" "$(r --raw xrange ${q}DEAD - + | grep -E '^[0-9]+-[0-9]+$' | sort)" \
	    "$q: with the number of its letter"
	is "$(jq -r '.reason + " " + .answer' "$T/told" | sort -u)" 'answer no such customer' "$q: and why"
	is "$(is_empty $q; echo $?) $(r exists $q)" '0 0' "$q: nothing is left"
done
is "$(jq -r '.message' "$T/told" | sort -u | wc -l)" $MESSAGES 'on_dead_message: the messages are told'
is "$(log_count 'event=(retry|returned|stale|lost) ')" 0 'nothing was tried again'
rqd_stop
