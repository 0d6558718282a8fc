#!/bin/sh
# The log: every record has one form, whatever handlers print and producers push.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

RECORD='^ts=[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z level=(error|warn|info|debug) event=[a-z_]+( [a-z_]+=("([^"\\]|\\.)*"|[^ "=]*))*$'
VALUES='( [a-z_]+=("([^"\\]|\\.)*"|[^ "=]*))*$'

redis_start --appendonly yes
handler loud <<'H'
echo 'plain words'
echo 'level=error event=forged queue="q" id=1'
printf 'esc \033[31m and \a bell\r\n'
printf 'bad utf8 \377\376 and NUL \000 here\n'
printf '%020000d\n' 0
echo 'to stderr' >&2
printf 'no newline at the end'
H
handler flood <<'H'
yes 'all work and no play' | head -c 3000000
H
rqd_start <<C
queue "q" { command = {"$T/loud"} }
queue "f" { command = {"$T/flood"} output_limit = 64K }
C
r lpush q '{"id":"evil \"id\" = x\u001b"}' '{"id":"evil \"id\" = x"}' >/dev/null
r lpush f '{"id":"flood"}' >/dev/null
log_wait 30 'event=acked queue=q' 2
ok 'log_wait 20 "event=acked queue=f id=flood "' 'a handler that floods is acked'
ok 'log_wait 30 "event=output_cut queue=f "' 'and its output cut'
ok '[ "$(log_lines "event=output queue=f" | wc -c)" -lt 1000000 ]' 'at output_limit'
like "$(log_lines 'event=output ')" 'plain words' 'a line of output is a record'
like "$(log_lines 'event=output .*to stderr')" 'queue=q id=.* attempt=1 pid=[0-9]+' 'with queue, id, attempt and pid'
like "$(log_lines 'event=output ')" 'no newline at the end' 'also the last one without newline'
unquoted() { sed 's/"\([^"\\]\|\\.\)*"/""/g' "$T/rqd.log"; }
is "$(unquoted | grep -acE 'forged|^level')" 0 'output cannot forge a record'
is "$(LC_ALL=C grep -acP '[\x00-\x08\x0b-\x1f\x7f-\xff]' "$T/rqd.log")" 0 'nothing unprintable gets through'
is "$(log_lines 'bad utf8' | grep -c '\\xff')" 2 'but escaped'
is "$(awk 'length > 34000' "$T/rqd.log" | wc -l)" 0 'long lines are cut'
rqd_stop
is "$(grep -avE "$RECORD" "$T/rqd.log" | head -5)" '' 'every record is well formed'
first=$(cut -d ' ' -f 3 "$T/rqd.log" | grep -a '^event=' | head -1)
is "$first" event=started 'the first event is started'
is "$(tail -n 1 "$T/rqd.log" | cut -d ' ' -f 3)" event=stopped 'the last is stopped'
is "$(unquoted | grep -avE 'event=[a-z_]+( queue=[^ ]+)?( id=[^ ]+)?( attempt=[0-9]+)?( pid=[0-9]+)?( [a-z_]+=[^ ]*)*$' | head -5)" '' \
    'queue, id, attempt, pid come first, in this order'
is "$(unquoted | grep -aE ' (queue|id|attempt|pid)=.* [a-z_]+=[^ ]* (queue|id|attempt|pid)=' | grep -avE 'event=[a-z_]+( (queue|id|attempt|pid)=[^ ]+)+( |$)' | head -5)" '' 'and nothing in between'
is "$(log_count "all work|evil.*message|id.:.*evil")" "$(log_count 'event=output .*all work')" 'no payload is logged'

# -- JSON ---------------------------------------------------------------------------
rqd_start json <<C
log { format = "json" level = "debug" }
queue "q" { command = {"$T/loud"} }
C
r lpush q '{"id":"evil \"id\" = x"}' >/dev/null
log_wait 30 '"event":"acked"' 1 json
rqd_stop json
is "$(grep -avE '^\{"ts":"[^"]*","level":"[a-z]+","event":"[a-z_]+"(,"[a-z_]+":("([^"\\]|\\["\\/bfnrtu])*"|-?[0-9.]+|true|false))*\}$' "$T/json.log" | head -5)" \
    '' 'JSON: every record is well formed'

# -- the journal -----------------------------------------------------------------------
: >"$T/journal.log"
JOURNAL_STREAM=$(stat -c %d:%i "$T/journal.log")
export JOURNAL_STREAM
rqd_start journal <<C
queue "q" { command = {"$T/loud"} }
C
r lpush q '{"id":1}' >/dev/null
log_wait 30 'event=acked' 1 journal
rqd_stop journal
unset JOURNAL_STREAM
is "$(grep -avE "^<[3-7]>(level=[a-z]+ )?event=[a-z_]+$VALUES" "$T/journal.log" | head -5)" '' \
    'on the journal: a priority, and no time'

# -- payloads --------------------------------------------------------------------------
rqd_start open <<C
log { level = "debug" payloads = true }
queue "q" { command = {"$T/loud"} output = "none" }
C
r lpush q '{"id":"evil \"id\" = x"}' >/dev/null
log_wait 30 event=acked 1 open
is "$(log_count 'level=debug event=delivered .* size=24 payload="\{.*"$' open)" 1 'payloads, where they are asked for'
rqd_stop open
is "$(grep -avE "$RECORD" "$T/open.log" | head -5)" '' 'and well formed'

# -- levels ----------------------------------------------------------------------------
rqd_start quiet <<C
log { level = "error" }
queue "q" { command = {"$T/loud"} output = "none" }
C
r lpush q '{"id":1}' >/dev/null
wait_for 30 '[ "$(r llen q)" -eq 0 ] && [ "$(r zcard qBACKUP)" -eq 0 ]'
rqd_stop quiet
is "$(cat "$T/quiet.log")" '' 'level error: silent where all is well'

# -- a file that cannot be opened --------------------------------------------------------
target() { printf '%s\nlog {\n\ttarget = "%s"\n}\n' "$2" "$1" >"$T/target"; "$RQD" -t -c "$T/target" 2>&1; }
until=': until that is corrected rqd logs to stderr'
like "$(target "$T/none/rqd.log")" "target:3: target .*/none/rqd.log: its directory .*/none: No such file or directory$until" \
    'rqd -t says that the directory of the log is missing'
like "$(target "$T/loud/rqd.log")" "target:3: target .*: its directory .*/loud: Not a directory$until" 'or is a file'
mkdir "$T/folder" && ln -s "$T/none" "$T/link"
like "$(target "$T/folder")" "target:3: target .*/folder is a directory, not a file$until" 'the log is a folder'
like "$(target "$T/link")" "target:3: target .*/link is a symbolic link, which is not followed$until" 'or a link'
unlike "$(target "$T/folder/new.log")" warning 'one that can be made is not mentioned'
mkdir -m 500 "$T/closed"
like "$(target "$T/closed/rqd.log" 'privileged = false')" \
    "target:3: target .*: its directory .*/closed: Permission denied$until" 'a folder that it may not write to'
rqd_start elsewhere <<C
log { target = "$T/none/rqd.log" }
queue "q" { command = {"$T/loud"} output = "none" }
C
ok 'log_wait 30 event=ready 1 elsewhere' 'the daemon starts without its log'
like "$(log_lines 'event=warning target=' elsewhere)" 'none/rqd.log: No such file' 'and says so on stderr'
rqd_stop elsewhere

# -- a log that cannot be written --------------------------------------------------------
# The reports while the log of the only daemon fails: stderr, rqctl and /metrics.
# $daemon is its name.
failure_is_said() {	# NAME TARGET
	ok "log_wait 30 reason=log_failed 1 $1" 'stderr says that the log cannot be written'
	like "$(cat "$T/$1.log")" "level=error event=warning reason=log_failed target=$2 error=\"No space left on device\"" \
	    'which, and why'
	is "$(log_count reason=log_failed "$1")" 1 'once'
	wait_ok 30 'r get "rqd:daemon:$daemon" | grep -q "\"log_error\":\"No space left on device\""' 'the heartbeat says it'
	ctl -c "$T/$1.conf" check >"$T/said"
	is $? 1 'rqctl check warns'
	like "$(cat "$T/said")" "warning: daemon $daemon cannot write its log: No space left on device" 'in words'
	like "$(ctl status)" "warning: daemon $daemon cannot write its log: No space left on device" 'and so does rqctl status'
}
success_is_said() {	# NAME
	wait_ok 30 '_beat=$(r get "rqd:daemon:$daemon") && [ -n "$_beat" ] && case $_beat in *log_error*) false ;; esac' \
	    'the heartbeat no longer says it'
	unlike "$(ctl -c "$T/$1.conf" check)" 'cannot write its log' 'nor does rqctl check'
	unlike "$(ctl status)" 'cannot write its log' 'nor rqctl status'
}
rqd_start device <<C
http { listen = "unix:$OWN/http.sock" }
log { target = "/dev/full" }
queue "q" { command = {"$T/loud"} output = "none" }
C
r lpush q '{"id":1}' >/dev/null
wait_ok 30 '[ "$(r llen q)" -eq 0 ] && [ "$(r zcard qBACKUP)" -eq 0 ]' 'a log that cannot be written stops no message'
daemon=$(r zrange rqd:daemons 0 -1)
failure_is_said device /dev/full
failures() { curl -s -m 20 --unix-socket "$OWN/http.sock" http://rqd/status | grep -o '"log_error":"No space left on device"' | wc -l; }
if command -v curl >/dev/null; then
	wait_ok 30 '[ "$(failures)" -eq 2 ]' '/status says it of this daemon, and in the list of daemons'
else
	skip '/status says that the log fails: no curl'
fi
sed 's|target = .*|target = "stderr" }|' "$T/device.conf" >"$T/new.conf" && mv "$T/new.conf" "$T/device.conf"
rqd_signal HUP device
log_wait 30 event=reloaded 1 device
success_is_said device
rqd_stop device

# -- a log that cannot be opened again -----------------------------------------------------
mkdir "$OWN/logs" && chown "$MAIN_USER" "$OWN/logs"
rqd_start again <<C
log { target = "$OWN/logs/rqd.log" level = "debug" }
queue "q" { command = {"$T/loud"} output = "none" }
C
wait_for 20 'grep -q event=ready "$OWN/logs/rqd.log"'
mv "$OWN/logs" "$OWN/lost"
rqd_signal USR1 again
ok 'log_wait 20 "reason=log_failed target=.*logs/rqd.log error=.*No such file" 1 again' \
    'a log that cannot be opened again: stderr says so'
wait_ok 30 'ctl check | grep -q "logs/rqd.log: No such file"' 'and rqctl check'
mkdir "$OWN/logs" && chown "$MAIN_USER" "$OWN/logs"
rqd_signal HUP again
wait_ok 20 'grep -qs event=reloaded "$OWN/logs/rqd.log"' 'a reload opens it'
wait_ok 30 '! ctl check | grep -q "logs/rqd.log"' 'and rqctl check is content'
rqd_stop again
# Without a reload it is tried again each minute: under the shim, whose clock is moved on.
if [ "$SLOW" -eq 1 ]; then
	# shellcheck source=tests/fault/lib.sh
	. "$SRCDIR/tests/fault/lib.sh"
	shim_make
	rm -rf "$OWN/logs"
	RQD_WRAPPER=$SHIM
	rqd_start minute <<C
log { target = "$OWN/logs/rqd.log" level = "debug" }
queue "q" { command = {"$T/loud"} output = "none" }
C
	RQD_WRAPPER=''
	ok 'log_wait 20 "target=.*/logs/rqd.log .*tries again every minute" 1 minute' 'a log that cannot be opened'
	mkdir "$OWN/logs" && chown "$MAIN_USER" "$OWN/logs"
	shim_mono 60
	r lpush q '{"id":"later"}' >/dev/null
	wait_ok 30 '[ -s "$OWN/logs/rqd.log" ]' 'is opened a minute later'
	r lpush q '{"id":"after"}' >/dev/null
	wait_ok 10 'grep -q "event=acked.* id=after " "$OWN/logs/rqd.log"' 'and the log goes there'
	is "$(log_count 'level=error.*target=' minute)" 1 'the failure was said once'
	rqd_stop minute
else
	skip 'a log is opened again: no preload beside a sanitizer or valgrind'
fi
rqd_start out <<C
log { target = "/dev/stdout" }
queue "q" { command = {"$T/loud"} output = "none" }
C
wait_ok 10 'grep -q event=ready "$T/out.out"' 'the target /dev/stdout is standard output'
rqd_stop out

# -- a full disk -------------------------------------------------------------------------
mkdir "$T/disk"
if [ "$(id -u)" -ne 0 ]; then
	skip 'a full disk: needs root'
	exit
elif ! mount -t tmpfs -o size=64k,mode=755 tmpfs "$T/disk" 2>/dev/null; then
	skip 'a full disk: root may not mount a tmpfs here'
	exit
fi
trap '_status=$?; umount -l "$T/disk"; (exit $_status); finish' EXIT
rqd_start disk <<C
log { target = "$T/disk/rqd.log" }
queue "q" { command = {"$T/loud"} output = "none" user = "root" }
C
wait_for 30 'grep -q event=ready "$T/disk/rqd.log"'
dd if=/dev/zero of="$T/disk/fill" bs=4k 2>/dev/null
for i in $(seq 100); do echo "{\"id\":\"$(printf '%0100d' "$i")\"}"; done | xargs -d '\n' redis-cli -s "$SOCK" lpush q >/dev/null
wait_ok 20 '[ "$(r llen q)" -eq 0 ] && [ "$(r zcard qBACKUP)" -eq 0 ]' 'a full disk stops no message'
daemon=$(r zrange rqd:daemons 0 -1)
failure_is_said disk "$T/disk/rqd.log"
rm "$T/disk/fill"
wait_ok 30 'grep -q "reason=log_dropped dropped=" "$T/disk/rqd.log"' 'with room again the log says how much it lost, also while idle'
ok 'log_wait 30 reason=log_resumed 1 disk' 'stderr says that it goes on'
success_is_said disk
rqd_stop disk
