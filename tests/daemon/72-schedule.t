#!/bin/sh
# Schedules: their messages, their times, and their state in Redis.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
handler note <<'H'
cat >>"$T/notes.$RQD_QUEUE"
echo >>"$T/notes.$RQD_QUEUE"
H
rfc() { date -u -d "@$1" +%FT%TZ; }
field() { r hget "$1" "$2"; }	# KEY SCHEDULE

# A time of the day half an hour ago, so that it is surely missed and not due soon.
past=$(($(date +%s) / 60 * 60 - 1800))
daily=$(date -u -d "@$past" '+%-M %-H * * *')

# -- first sight, default message, every kind ------------------------------------------

rqd_start <<C
queue "ack" { command = {"$T/note"} }
queue "ids" { kind = "unique"  command = {"$T/note"} }
queue "flow" { kind = "stream"  command = {"$T/note"} }
queue "right" { kind = "list"  command = {"$T/note"} }
queue "gone" { kind = "expired"  notifications = "set"  command = {"$T/note"} }
queue "left" { kind = "list"  pop = "left"  command = {"$T/note"} }
schedule "tick \"1\"" { queue = "ack"  every = 1s }
schedule "own" { queue = "ack"  every = 1s  message = '{"id":"x","n":1}' }
schedule "ids" { queue = "ids"  every = 1s }
schedule "flow" { queue = "flow"  every = 1s  message = "into the stream" }
schedule "gone" { queue = "gone"  every = 1s  message = "as if it had expired" }
schedule "right" { queue = "right"  every = 1s  message = "r" }
schedule "left" { queue = "left"  every = 1s  message = "l" }
schedule "daily" { queue = "ack"  cron = "$daily"  message = "never" }
schedule "caught" { queue = "ack"  cron = "$daily"  message = "never"  catch_up = true }
C
for queue in ack ids flow gone right left; do
	ok "wait_for 20 '[ \"\$(cat \"\$T/notes.$queue\" 2>/dev/null | wc -l)\" -ge 2 ]'" "queue $queue gets messages"
done
like "$(cat "$T/notes.ack")" '^\{"id":"tick \\"1\\"@20[0-9-]+T[0-9:]+Z"\}$' 'the default message has an id of its own'
like "$(cat "$T/notes.ack")" '^\{"id":"x","n":1\}$' 'the message that was asked for'
is "$(sort -u "$T/notes.ids")" ids 'a queue of ids gets the name of the schedule'
is "$(sort -u "$T/notes.right" "$T/notes.left" | tr '\n' ' ')" 'l r ' 'lists'
is "$(field ackSCHEDULE daily) $(field ackSCHEDULE caught)" "$past $past" 'the first sight stores the last tick'
unlike "$(cat "$T/notes.ack")" never 'and does not run it'
like "$(log_lines 'event=scheduled' | head -1)" 'level=info event=scheduled queue=[a-z]+ schedule=.* tick=20[0-9-]+T[0-9:]+Z late=[0-9.]+' 'the log record'

# -- rqctl schedules ----------------------------------------------------------------------

"$RQCTL" -c "$T/rqd.conf" schedules >"$T/table"
# On a busy machine the next run may be late just then.
wait_for 30 '"$RQCTL" -c "$T/rqd.conf" schedules >"$T/table"; grep -Eq "^tick .* \+?[0-9.]+m?s +ok$" "$T/table"'
like "$(grep '^tick' "$T/table")" '^tick "1"  +ack +every 1s +20[0-9T:-]+Z +20[0-9T:-]+Z +[0-9.]+m?s +ok$' 'rqctl schedules: every'
like "$(grep '^daily' "$T/table")" "^daily +ack +$(printf %s "$daily" | sed 's/\*/./g') UTC +- +$(rfc $((past + 86400))) +23h[0-9]+m +has not run yet$" 'rqctl schedules: cron'
is "$("$RQCTL" -c "$T/rqd.conf" schedules --json daily | tr -d ' \n')" \
    "[{\"name\":\"daily\",\"queue\":\"ack\",\"key\":\"ack\",\"every\":null,\"cron\":\"$(printf %s "$daily" | tr -d ' ')\",\"timezone\":\"UTC\",\"catch_up\":false,\"last\":null,\"next\":$((past + 86400)),\"missed\":null,\"error\":null}]" 'rqctl schedules: JSON'
is "$("$RQCTL" -c "$T/rqd.conf" schedules none 2>&1; echo $?)" "rqctl: there is no schedule \"none\" in $T/rqd.conf: rqctl schedules lists them
64" 'rqctl schedules: no such one'
is "$(ctl schedules 2>&1; echo $?)" 'rqctl: there is no configuration file with schedules: use -c FILE
64' 'rqctl schedules: without a file'

# -- reload --------------------------------------------------------------------------------

config_write rqd <<C
queue "ack" { command = {"$T/note"} }
schedule "own" { queue = "ack"  every = 1s  message = "changed" }
schedule "added" { queue = "ack"  every = 1s  message = "added" }
C
rqd_signal HUP
log_wait 30 event=reloaded
ok "wait_for 30 'grep -q ^changed \"\$T/notes.ack\" && grep -q ^added \"\$T/notes.ack\"'" 'reload: changed and added'
before=$(log_count 'event=scheduled.*tick \\"1')
log_wait 30 'schedule=added' 5
is "$(log_count 'event=scheduled.*tick \\"1')" "$before" 'reload: removed'
rqd_stop

# -- a timezone that is not there: only where the daemon runs ------------------------------

config_write mars <<C
queue "ack" { command = {"$T/note"} }
schedule "s" { queue = "ack"  cron = "@daily"
	timezone = "Mars/Base" }
C
is "$("$RQD" -t -c "$T/mars.conf" 2>&1; echo $?)" "rqd: $T/mars.conf:$(sed -n '/timezone/=' "$T/mars.conf"): there is no timezone \"Mars/Base\" in /usr/share/zoneinfo
78" 'rqd -t: no such timezone'
like "$("$RQCTL" -c "$T/mars.conf" schedules | tail -1)" ' there is no timezone "Mars/Base"' 'rqctl schedules: no such timezone'

# A folder of zones of its own: a file that is no zone, one that may not be read, none.
mkdir -p "$T/zones/Mars"
echo garbage >"$T/zones/Mars/Base"
zone() { TZDIR=$1 "$RQD" -t -c "$T/mars.conf" 2>&1 | sed "s|^.*mars.conf:||"; }
line=$(sed -n '/timezone/=' "$T/mars.conf")
is "$(zone "$T/zones")" "$line: timezone \"Mars/Base\": $T/zones/Mars/Base: this is no file of a timezone" 'a zone of garbage'
like "$(TZDIR=$T/zones "$RQCTL" -c "$T/mars.conf" schedules | tail -1)" 'this is no file of a timezone' 'rqctl schedules says it, too'
: >"$T/zones/Mars/Base"
like "$(zone "$T/zones")" "^$line: .*no file of a timezone" 'an empty one'
ln -sf Base "$T/zones/Mars/Base"
is "$(zone "$T/zones")" "$line: timezone \"Mars/Base\": $T/zones/Mars/Base: Too many levels of symbolic links" 'one that cannot be read'
like "$(zone "$T/none")" "^$line: there are no timezones on this machine: install the package tzdata" 'no zones at all'

# -- missed, caught up, a time that cannot be ------------------------------------------------

r del ack ackSCHEDULE >/dev/null
rm -f "$T"/notes.*
yesterday=$((past - 86400))
r hset ackSCHEDULE daily $yesterday caught $yesterday future $(($(date +%s) + 864000)) junk what >/dev/null
config_write missed <<C
http { listen = "unix:$OWN/http" }
queue "ack" { command = {"$T/note"} }
schedule "daily" { queue = "ack"  cron = "$daily" }
schedule "caught" { queue = "ack"  cron = "$daily"  catch_up = true }
schedule "future" { queue = "ack"  every = 1h  message = "reset" }
schedule "junk" { queue = "ack"  every = 365d }
C
"$RQCTL" -c "$T/missed.conf" schedules >"$T/table"
like "$(grep '^daily' "$T/table")" "^daily .* missed $(rfc $past)$" 'rqctl schedules: missed'
like "$("$RQCTL" -c "$T/missed.conf" check)" "^warning: ack: schedule daily did not run at $(rfc $past)\$" 'rqctl check says it, too'
like "$(grep '^junk' "$T/table")" 'not seen by any daemon yet$' 'rqctl schedules: not seen yet'
now=$(($(date +%s) / 3600 * 3600))
rqd_run missed -c "$T/missed.conf"
log_wait 20 'event=acked' 1 missed
wait_for 30 '[ "$(field ackSCHEDULE junk)" != what ]'
wait_for 30 '[ "$(field ackSCHEDULE future)" -le "$(date +%s)" ]'
like "$(cat "$T/notes.ack")" "^\{\"id\":\"caught@$(rfc $past)\"\}\$" 'catch_up: the latest one that was missed'
is "$(grep -c caught "$T/notes.ack")" 1 'catch_up: once'
is "$(field ackSCHEDULE caught) $(field ackSCHEDULE daily)" "$past $yesterday" 'without catch_up it is left'
ok "log_wait 30 'level=warn event=warning queue=ack schedule=daily .*missed' 1 missed" 'and said'
ok '[ "$(field ackSCHEDULE future)" -ge $now ] && [ "$(field ackSCHEDULE future)" -le "$(date +%s)" ]' 'a tick in the future is put right'
is "$(field ackSCHEDULE junk)" "$(($(date +%s) / 31536000 * 31536000))" 'no number: as if it were new'
metric() { sed -n "s/^rqd_schedule_$1{schedule=\"$2\",queue=\"ack\"} //p" "$T/metrics"; }
if command -v curl >/dev/null; then
	curl -s -m 20 --unix-socket "$OWN/http" http://rqd/metrics >"$T/metrics"
	is "$(metric missed daily) $(metric missed caught)" '1 0' 'metrics: what was missed'
	is "$(metric last_timestamp_seconds daily) $(metric last_timestamp_seconds caught)" " $past" 'metrics: the last run'
	is "$(metric next_timestamp_seconds daily)" $((past + 86400)) 'metrics: the next one'
	is "$(metric runs_total daily) $(metric runs_total caught)" '0 1' 'metrics: how many'
	rqd_signal HUP missed
	log_wait 30 event=reloaded 1 missed
	sleep 1				# what was shown just now is shown again
	curl -s -m 20 --unix-socket "$OWN/http" http://rqd/metrics >"$T/metrics"
	is "$(metric runs_total caught)" 1 'metrics: a reload forgets none'
fi
rqd_stop missed

# -- Redis goes away; what it refuses ------------------------------------------------------------

r flushall >/dev/null
rm -f "$T"/notes.*
rqd_start away <<C
queue "ack" { command = {"$T/note"} }
queue "bad" { command = {"$T/note"} }
schedule "s" { queue = "ack"  every = 1s }
schedule "bad" { queue = "bad"  every = 1s }
C
log_wait 20 'schedule=s' 2 away
r set badSCHEDULE x >/dev/null
ok "log_wait 20 'level=error event=warning queue=bad schedule=bad error=\"WRONGTYPE.*warning=\"the schedule cannot push\"' 1 away" 'a key of the wrong type'
like "$("$RQCTL" -c "$T/away.conf" schedules bad | tail -1)" 'WRONGTYPE' 'rqctl schedules says it, too'
before=$(log_count 'schedule=bad tick' away)
r del badSCHEDULE >/dev/null
ok "log_wait 90 'schedule=bad tick' $((before + 2)) away" 'it goes on when that is put right'
is "$(log_count 'queue=bad.*cannot push' away)" 1 'said once'
kill -STOP "$REDIS_PID"
sleep 3
kill -CONT "$REDIS_PID"
before=$(log_count 'schedule=s' away)
ok "log_wait 20 'schedule=s' $((before + 4)) away" 'Redis hangs, and goes on'
log_lines 'event=scheduled.*schedule=s' away | log_field tick | while read -r tick; do date -d "$tick" +%s; done >"$T/ticks"
is "$(awk 'NR > 1 && $1 != last + 1 { print "after", last, "came", $1 } { last = $1 }' "$T/ticks")" '' 'no tick was left out or came twice'
redis_stop KILL
redis_start
before=$(log_count 'schedule=s' away)
ok "log_wait 30 'schedule=s' $((before + 2)) away" 'Redis comes back with nothing: it goes on'

# -- permissions: what cannot be noted down is not pushed ------------------------------------------

rqd_stop away
r flushall >/dev/null
r hset ackSCHEDULE s 1 >/dev/null
r acl setuser default -hset >/dev/null
config_write denied <<C
queue "ack" { command = {"$T/note"} }
schedule "s" { queue = "ack"  every = 1s }
C
rqd_run denied -c "$T/denied.conf"
ok "log_wait 20 'schedule=s error=.*the schedule cannot push' 1 denied" 'HSET is denied'
is "$(r exists ack)" 0 'nothing was pushed'
r acl setuser default +hset >/dev/null
