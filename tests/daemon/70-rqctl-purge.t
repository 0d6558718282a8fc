#!/bin/sh
# rqctl purge --retry beside daemons that take retries meanwhile: it deletes what it has
# counted, or says how many of those it has not found again.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v jq >/dev/null || skip_all 'no jq'
MESSAGES=6000
HANDS=200		# the most that both daemons have in hand
redis_start
handler fails <<'H'
while read -r n _ _ _ && IFS= read -r _; do echo "$n retry 20ms"; done
H
for d in one two; do
	rqd_start $d <<-C
	log { level = "warn" }
	queue "q" {
		command = {"$T/fails"} mode = "persistent" framing = "line" pipeline = 50 concurrency = 2
		max_attempts = 1000000 suspend_after = 0
	}
	C
done

# After its first failure each message has a context, wherever it is.
all() { r hlen qCONTEXT; }
failures() { cat "$T/one.log" "$T/two.log" | grep -c event=retry; }
said() { jq ".$1" "$T/said"; }
due() {
	r del q qBACKUP qRETRY qCONTEXT qDELIVERY >/dev/null
	seq $MESSAGES | ctl push -l q >/dev/null
	wait_for 60 '[ "$(r llen q)" = 0 ] && [ "$(all)" = $MESSAGES ]'
	before=$(failures)
	wait_for 30 '[ "$(failures)" -gt $((before + MESSAGES)) ]'
}

taken=0 round=0
while [ $round -lt 3 ]; do
	due
	before=$(failures)
	ctl purge q --retry -y --json >"$T/said"
	taken=$((taken + $(failures) - before))
	gone=$(said retry) missed=$(said missed) left=$(all)
	note "of $MESSAGES purged $gone, missed $missed, left $left"
	is $((gone + left)) $MESSAGES 'what purge has not deleted is there'
	ok '[ $((gone + missed)) -ge $((MESSAGES - HANDS)) ] && [ $((gone + missed)) -le $MESSAGES ]' \
	    'it says of all that it has counted whether they are gone'
	ok '[ "$left" -le $((missed + HANDS)) ]' 'and what is left was in hand, or is what it has missed'
	round=$((round + 1))
done
ok '[ $taken -gt 0 ]' "the daemons took retries meanwhile ($taken)"
