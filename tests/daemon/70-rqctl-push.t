#!/bin/sh
# rqctl push: exact bytes, lines, delays, and what it prints.  No daemon.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start

# -- one message ---------------------------------------------------------------

is "$(ctl push q '{"id":7}')" 7 'prints the id'
is "$(ctl push q hello)" - 'prints - where rqd will make one'
is "$(ctl push q -- '--json')" - 'an argument that begins with dashes'
is "$(ctl push q '')" - 'an empty argument is an empty message'
is "$(r --raw lrange q 0 -1 | tr '\n' ,)" ',--json,hello,{"id":7},' 'they are there, the first one last'
r del q >/dev/null

head -c 300000 /dev/urandom >"$T/bytes"
printf 'a\0b\n\r\377' >>"$T/bytes"
is "$(ctl push q <"$T/bytes")" - 'standard input is a message'
r --raw lindex q 0 | head -c 300006 >"$T/got"
ok 'cmp -s "$T/bytes" "$T/got"' 'byte for byte'
is "$(r lpop q >/dev/null; printf x | ctl push q - && r rpop q)" "-
x" '- is standard input'
is "$(ctl push q </dev/null && r llen q)" "-
1" 'empty standard input is an empty message'
r del q >/dev/null

# -- lines -----------------------------------------------------------------------

is "$(printf 'a\n\n{"id":"x"}\nlast' | ctl push --lines q | tr '\n' ,)" '-,-,x,-,' 'lines: an id each'
is "$(r --raw lrange q 0 -1 | tr '\n' ,)" 'last,{"id":"x"},,a,' 'lines: without newline, in order'
r del q >/dev/null

seq 1 25000 | ctl push -l q >"$T/ids"
is "$(wc -l <"$T/ids") $(r llen q)" '25000 25000' 'many lines'
r --raw lrange q 0 -1 | tac >"$T/got"
seq 1 25000 | cmp -s - "$T/got" && pass 'all of them, in order' || fail 'all of them, in order'
r del q >/dev/null

# rqctl pushes each line of a slow producer at once, before the next one comes.
mkfifo "$T/fifo"
RQD_SERVER=unix:$SOCK "$RQCTL" push -l q <"$T/fifo" >/dev/null &
exec 9>"$T/fifo"
echo one >&9
ok "wait_for 30 '[ \"\$(r llen q)\" = 1 ]'" 'a line is not held back'
exec 9>&-
wait $!

head -c 3000000 /dev/zero | tr '\0' x >"$T/long"
{ cat "$T/long"; echo; echo short; } | ctl push -l q >/dev/null
is "$(r strlen nothing; r llen q)" "0
3" 'a long line'
r del q >/dev/null
is "$(ctl push -l q x 2>&1; echo $?)" 'rqctl: --lines reads standard input; it takes no MESSAGE
64' 'lines and a message'

fails() { # STATUS REGEX ARGUMENT...
	_want=$1 _re=$2
	shift 2
	_out=$(ctl "$@" 2>&1 </dev/null)
	_status=$?
	is "$_status" "$_want" "status of rqctl $*"
	like "$_out" "^rqctl: .*$_re" "words of rqctl $*"
	is "$(printf '%s\n' "$_out" | wc -l)" 1 "one line of rqctl $*"
}

# -- later -------------------------------------------------------------------------

now=$(date +%s)
is "$(ctl push q '{"id":7}' --delay 1h)" 7 'delay: prints the id'
is "$(ctl push --delay 1h q '{"id":7}')" 7 'delay: the same again'
like "$(ctl push q x --at "@$((now + 60))")" '^~[0-9a-z]+$' 'at: rqctl makes the id'
ctl push k y --at "$(date -d '2 minutes' +%H:%M)" >/dev/null
ctl push k y --at "$(date -d '-2 minutes' +%-H:%M)" >/dev/null
is "$(r zrange kRETRY 0 -1 withscores | awk -v now="$(date +%s)" 'NR % 2 == 0 { print int(($1 - now + 600) / 3600) }' | tr '\n' ' ')" \
    '0 24 ' 'at: a time of day, today or tomorrow' || note "$(r zrange kRETRY 0 -1 withscores)"
# A zone where daylight saving time ends in half an hour: the hour around now comes twice.  Its
# rule begins and ends in one year, so it cannot be written in the last 90 minutes of a year.
ends=$(($(date +%s) + 1800 + 3600))
zone="AAA0BBB-1,0/0,$(($(date -u -d "@$ends" +%j | sed 's/^0*//') - 1))/$(date -u -d "@$ends" +%H:%M:%S)"
if [ "$(date -u -d "@$ends" +%Y)" = "$(date -u +%Y)" ]; then
	TZ=$zone ctl push again z --at "$(TZ=$zone date -d '2 minutes' +%H:%M)" >/dev/null
	is "$(r zcount againRETRY "$(date +%s)" $(($(date +%s) + 180)))" 1 'at: the first of two hours with this name'
else
	skip 'at: the first of two hours with this name: not at the end of a year'
fi
fails 64 'is not a time' push q x --at 24:00
is "$(ctl push q y --at 2001-01-01T00:00:00+01:00 | cut -c 1)" '~' 'at: in the past'
is "$(r zcard qRETRY) $(r hlen qCONTEXT) $(r hlen qDELIVERY) $(r exists q)" '4 4 4 0' 'four in QRETRY, equal ones apart'
is "$(r zcount qRETRY $((now + 3590)) $((now + 3700)))" 2 'due in an hour'
is "$(r zcount qRETRY $((now + 60)) $((now + 60)))" 1 'due at that second'
is "$(r zcount qRETRY 978303600 978303600)" 1 'due long ago'
like "$(r --raw hgetall qDELIVERY | tail -1)" '^0 0 - [0-9]+\.[0-9]+ [0-9]+$' 'no attempts, no owner'

# -- mistakes ------------------------------------------------------------------------

fails 64 'is not a duration' push q x --delay 5
fails 64 'is not a time' push q x --at tomorrow
fails 64 'do not go together' push q x --at @1 --delay 1s
fails 64 'usage: rqctl push' push
fails 64 'too many' push q x y
r set str x >/dev/null
fails 65 'WRONGTYPE' push str x
r config set maxmemory 1 >/dev/null
fails 75 'OOM' push q x
fails 75 'OOM' push q x --delay 1m
r config set maxmemory 0 >/dev/null
is "$(RQD_SERVER=unix:$T/none "$RQCTL" push q x 2>&1 >/dev/null | wc -l)" 1 'no Redis: one line'
RQD_SERVER=unix:$T/none "$RQCTL" push q x 2>/dev/null
is $? 69 'no Redis: status'

# A push that cannot finish says how far it came, and the ids are what is sure.
r set str x >/dev/null
seq 1 5 | ctl push -l str >"$T/ids" 2>"$T/err"
is "$? $(wc -l <"$T/ids")" '65 0' 'lines into a wrong key'
like "$(cat "$T/err")" 'WRONGTYPE.*; 0 lines were pushed before' 'says how far it came'

# -- an id that is not UTF-8 -----------------------------------------------------------

is "$(printf '{"id":"\351"}\n{"id":"b"}\nc\n' | ctl push -l latin --json | tr -d ' \n')" \
    '[{"id_base64":"6Q=="},"b",null]' 'push --json: a list with all of them'
is "$(ctl peek latin --json | tr -d ' \n' | cut -c 1-30)" '[{"place":1,"id_base64":"6Q=="' 'peek --json'
