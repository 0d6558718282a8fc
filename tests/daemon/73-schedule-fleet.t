#!/bin/sh
# Five daemons and one schedule: each tick once, also if a clock is wrong.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
TICKS=${TICKS:-12}
redis_start
handler note <<'H'
echo "$RQD_ID" >>"$T/notes"
H
config_write fleet <<C
redis { server = "unix:$SOCK" }
queue "q" { command = {"$T/note"}  concurrency = 4 }
schedule "second" { queue = "q"  every = 1s }
C
# The one whose clock is an hour ahead is the last; faketime(1) itself would stay
# in between.  Its library does not get along with sanitizers and valgrind.
fake=$(faketime -f +1h sh -c 'printf %s "$LD_PRELOAD"' 2>/dev/null)
if [ $SLOW -gt 1 ] || [ -z "$fake" ]; then
	note 'no daemon with a wrong clock: no faketime, or not with this build'
	fake=''
fi
for d in d1 d2 d3 d4; do rqd_run $d -c "$T/fleet.conf"; done
wrapper=$RQD_WRAPPER
[ -z "$fake" ] || RQD_WRAPPER="env LD_PRELOAD=$fake FAKETIME=+1h"
rqd_run d5 -c "$T/fleet.conf"
RQD_WRAPPER=$wrapper

scheduled() { cat "$T"/d?.log | grep -c event=scheduled; }
start=$(scheduled)
ok "wait_for $((TICKS + 30)) '[ \"\$(scheduled)\" -ge $((start + TICKS)) ]'" "$TICKS ticks"

# The remaining daemons go on; in the end only the one with the wrong clock is left.
for d in d1 d2 d3 d4; do rqd_stop $d; done
before=$(log_count event=scheduled d5)
ok "log_wait 20 event=scheduled $((before + 3)) d5" 'the last daemon goes on alone'
if [ -n "$fake" ]; then
	like "$(tail -1 "$T/d5.log")" "^ts=$(date -u -d '+1 hour' +%FT%H)|^ts=$(date -u -d '+1 hour -1 minute' +%FT%H)" 'its clock is an hour ahead'
	unlike "$(log_lines event=scheduled d5 | tail -3 | log_field late)" '^[0-9]{3,}' 'and it is not an hour late'
fi
rqd_stop d5

r --raw lrange q 0 -1 | grep -o 'second@[^"]*' >"$T/left"
sed 's/^second@//' "$T/notes" "$T/left" | while read -r t; do date -d "$t" +%s; done | sort -n >"$T/ticks"
is "$(awk 'NR > 1 && $1 != last + 1 { print "after", last, "came", $1 } { last = $1 }' "$T/ticks")" '' 'a message for each tick, none left out, none twice'
is "$(r hget qSCHEDULE second)" "$(tail -1 "$T/ticks")" 'Redis knows the last one'
note "ticks: $(wc -l <"$T/ticks"), by daemon: $(grep -c event=scheduled "$T"/d?.log | sed 's/.*://' | tr '\n' ' ')"
