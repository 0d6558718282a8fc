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
# The one whose clock is an hour off is the last; with sanitizers there is none.
wrong=d5
if [ $SLOW -gt 1 ] || ! command -v faketime >/dev/null; then
	note 'no daemon with a wrong clock: no faketime, or not with this build'
	wrong=''
fi
for d in d1 d2 d3 d4 d5; do
	RQD_WRAPPER_SAVED=$RQD_WRAPPER
	[ "$d" = "$wrong" ] && RQD_WRAPPER='faketime -f +1h'
	rqd_run $d -c "$T/fleet.conf"
	RQD_WRAPPER=$RQD_WRAPPER_SAVED
done

scheduled() { cat "$T"/d?.log | grep -c event=scheduled; }
start=$(scheduled)
ok "wait_for $((TICKS + 30)) '[ \"\$(scheduled)\" -ge $((start + TICKS)) ]'" "$TICKS ticks"

# Those that are left go on; at the end the one with the wrong clock alone.
for d in d1 d2 d3 d4; do rqd_stop $d; done
before=$(log_count event=scheduled d5)
ok "log_wait 20 event=scheduled $((before + 3)) d5" 'the last daemon goes on alone'
if [ -n "$wrong" ]; then
	like "$(tail -1 "$T/d5.log")" "^ts=$(date -u -d '+1 hour' +%FT%H)|^ts=$(date -u -d '+1 hour -1 minute' +%FT%H)" 'its clock is an hour ahead'
	unlike "$(log_lines event=scheduled d5 | tail -3 | log_field late)" '^([1-9]|[0-9]{2,})' 'and it is in time'
fi
rqd_stop d5

sed 's/^second@//' "$T/notes" | while read -r t; do date -d "$t" +%s; done | sort -n >"$T/ticks"
is "$(awk 'NR > 1 && $1 != last + 1 { print "after", last, "came", $1 } { last = $1 }' "$T/ticks")" '' 'a message for each tick, none left out, none twice'
is "$(r llen q)" 0 'all of them were handled'
is "$(r hget qSCHEDULE second)" "$(tail -1 "$T/ticks")" 'Redis knows the last one'
note "ticks: $(wc -l <"$T/ticks"), by daemon: $(grep -c event=scheduled "$T"/d?.log | sed 's/.*://' | tr '\n' ' ')"
