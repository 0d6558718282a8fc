#!/bin/sh
# Verdicts of handlers on descriptor 3, and the outcome of their messages.  The test
# runs the examples of rqd-handler(7), RESULT LINES, as they are printed there.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start

# The message's "sh" is run; each run leaves a line in runs.ID.
handler sh <<'H'
echo "$RQD_ATTEMPT" >>"$T/runs.$RQD_ID"
eval "$(sed 's/^{"id":"[^"]*","sh":"\(.*\)"}$/\1/')"
H
program() {	# NAME FIRST: an example of the manual, by its first line
	sed -n '/^\.Sh RESULT LINES/,/^\.Sh PROCESS/p' "$SRCDIR/man/rqd-handler.7" |
	    awk -v first="$2" '$0 == first { on = 1 } /^\.Ed/ { on = 0 } on' |
	    sed 's/\\e/\\/g; s/\\-/-/g' >"$T/$1"
	chmod 755 "$T/$1"
	ok "[ -s \"\$T/$1\" ]" "rqd-handler(7) has an example in $1"
}
program in_sh '#!/bin/sh'
program in_python '#!/usr/bin/python3'
program in_php '#!/usr/bin/php'
mkdir "$T/bin"
handler bin/curl <<'H'
cat
H
handler persistent <<'H'
while read -r n attempt length id && IFS= read -r message; do
	echo "$n progress at $id"
	case $id in
	defer) [ "$attempt" -eq 2 ] && echo "$n ok" || echo "$n defer 1h shut" ;;
	retry) echo "$n retry 2h - down" ;;
	dead) echo "$n dead no use" ;;
	esac
done
H
rqd_start <<C
defaults { $AS backoff = 1h }
queue "q" { command = {"$T/sh"} concurrency = 4 suspend_after = 0 }
queue "last" { command = {"$T/sh"} max_attempts = 1 }
queue "row" { command = {"$T/sh"} suspend_after = 3 }
queue "off" { command = {"$T/sh"} verdicts = false }
queue "list" { kind = "list" command = {"$T/sh"} }
queue "unique" { kind = "unique" key = "unique" command = {"$T/persistent"} mode = "persistent" framing = "line" }
queue "stream" { kind = "stream" command = {"$T/sh"} }
queue "says" { command = {"$T/persistent"} mode = "persistent" framing = "line" }
queue "in_sh" { command = {"$T/in_sh"} env = {"PATH=$T/bin:$PATH", "CARRIER=x"} }
queue "in_python" { command = {"$T/in_python"} }
queue "in_php" { command = {"$T/in_php"} }
C
push() { r lpush "$1" "{\"id\":\"$2\",\"sh\":\"$3\"}" >/dev/null; }	# QUEUE ID SCRIPT
gone() { log_wait 30 "queue=$1 id=$2 .*duration="; log_lines "queue=$1 id=$2 .*duration=" | tail -n 1; }
letter() {	# QUEUE ID FIELD
	r --raw xrange "$1DEAD" - + | awk -v id="$2" -v field="$3" '
	$0 == "id" { getline; here = ($0 == id); next }
	here && $0 == field { getline; print; exit }
	$0 == "reason" { getline }'	# whose value may look like a field
}
due() { printf '%s' $(($(r zscore "$1RETRY" "$2" | cut -d. -f1) - $(date +%s))); }

# -- exec ------------------------------------------------------------------------
push q retry 'echo retry 30m carrier is down >&3; exit 75'
like "$(gone q retry)" 'level=warn event=retry .*status=75 .*reason=answer delay=1800.000 answer="carrier is down"' 'retry'
ok '[ "$(due q retry)" -gt 1700 ] && [ "$(due q retry)" -le 1800 ]' 'is due then'
push q zero 'echo retry - 404 from carrier >&3'
like "$(gone q zero)" 'event=retry .*status=0 .*reason=answer .*answer="404 from carrier"' 'it counts with status 0'
ok '[ "$(due q zero)" -gt 1700 ]' 'and has the usual backoff'
push q dead 'echo dead no such customer >&3; exit 1'
like "$(gone q dead)" 'event=dead .*status=1 .*reason=answer answer="no such customer"' 'dead'
is "$(letter q dead reason) $(letter q dead answer) $(letter q dead attempts)" 'answer no such customer 1' 'its letter'
push q defer '[ $(wc -l <$T/runs.defer) -eq 3 ] || echo defer 1 shop is closed >&3'
log_wait 20 'event=acked queue=q id=defer '
is "$(log_lines 'event=deferred queue=q id=defer attempt=1 .*reason=answer delay=1.000 answer="shop is closed"' | wc -l)" 2 'defer, twice'
is "$(tr '\n' ' ' <"$T/runs.defer")" '1 1 1 ' 'no attempt is counted'
push q ok 'echo dead x >&3; echo ok >&3'
like "$(gone q ok)" 'event=acked' 'ok withdraws a verdict'
push q typo 'echo retyr 5m >&3; echo ok >&3; exit 0'
like "$(gone q typo)" 'event=retry .*status=0 .*reason=protocol .*cause="not a statement: retyr 5m"' 'a mistyped word is no success'
push q pushes 'echo push items x >&3'
like "$(gone q pushes)" 'event=retry .*reason=pushes .*cause="a message for the queue .*items.*, which .*pushes.* does not list"' 'nor is a push that is not allowed'
push q killed 'echo dead x >&3; kill -KILL $$'
like "$(gone q killed)" 'event=retry .*signal=SIGKILL .*reason=signal' 'after a signal it does not count'
push q suspends 'echo dead x >&3; exit 127'
like "$(gone q suspends)" 'event=dead .*status=127 .*reason=answer' 'with status 127 it does'
log_wait 30 'event=suspended queue=q reason=cannot_execute'
pass 'but the queue is suspended'

push last words 'echo retry 1 the carrier is still down >&3'
like "$(gone last words)" 'event=dead .*reason=attempts answer="the carrier is still down"' 'the last words of the last attempt'
is "$(letter last words reason) $(letter last words answer)" 'attempts the carrier is still down' 'are in its letter'
push last exit 'exit 1'
gone last exit >/dev/null
is "$(letter last exit answer)" '' 'without words there is no field'

# -- failures in a row -------------------------------------------------------------
push row a 'exit 1'
gone row a >/dev/null
for id in b c d e; do push row $id 'echo defer 1h >&3; exit 1'; gone row $id >/dev/null; done
push row f 'echo dead >&3; exit 1'
gone row f >/dev/null
is "$(log_count 'event=suspended queue=row')" 0 'defer and dead are no failures in a row'
push row g 'echo retry >&3'
push row h 'echo retry >&3'
ok 'log_wait 30 "event=suspended queue=row reason=failing"' 'retry is, and defer has not ended the row'

# -- other kinds ---------------------------------------------------------------------
push off x 'echo dead x >&3'
like "$(gone off x)" 'event=retry .*status=[12] .*reason=exit' 'verdicts = false: descriptor 3 is closed'
push list defer 'echo defer 1h >&3'
log_wait 30 'event=failed queue=list'
like "$(log_lines "event=failed queue=list")" 'status=0 .*reason=protocol' 'a list cannot defer'
r xadd stream 1-1 message '{"id":"x","sh":"echo defer 2h later >&3"}' >/dev/null
like "$(gone stream 1-1)" 'event=deferred .*delay=7200.000 answer=later' 'a stream can'
is "$(r xpending stream rqd | head -n 1)" 1 'the entry is pending until it is done'
ok '[ "$(due stream 1-1)" -gt 7100 ]' 'and waits'
r zadd unique 1 defer >/dev/null
like "$(gone unique defer)" 'event=deferred .*answer=shut' 'kind unique can'
ok '[ "$(due unique defer)" -gt 3500 ]' 'its id waits'
is "$(r zcard unique)" 0 'and is queued once'

# -- persistent handlers ---------------------------------------------------------------
for id in defer retry dead; do push says $id x; done
like "$(gone says defer)" 'event=deferred .*delay=3600.000 answer=shut' 'persistent: defer'
like "$(gone says retry)" 'event=retry .*delay=7200.000 answer="- down"' 'retry'
like "$(gone says dead)" 'event=dead .*answer="no use"' 'dead'

# -- progress ----------------------------------------------------------------------------
r xadd stream 2-1 message '{"id":"x","sh":"echo progress 40/100 pages >&3; exec sleep 600"}' >/dev/null
ok 'wait_for 60 "r --raw get \"\$(r --raw keys rqd:daemon:\*)\" | grep -q \"progress.:.40/100 pages\""' 'the heartbeat has the progress'

# -- rqctl --------------------------------------------------------------------------------
like "$("$RQCTL" -c "$T/rqd.conf" dead show q dead)" '^answer +no such customer$' 'rqctl dead show has the words'
like "$("$RQCTL" -c "$T/rqd.conf" dead list q --match 'such customer')" 'dead .*no such customer' 'dead list finds and shows them'
ok '"$RQCTL" -c "$T/rqd.conf" dead retry q dead -y' 'it can be tried again'
try() {	# SCRIPT: what rqctl says and its status
	printf '{"id":"t","sh":"%s"}' "$1" | "$RQCTL" -c "$T/rqd.conf" try q 2>&1
	echo "= $?"
}
like "$(try 'echo retry 5m down >&3; exit 9' | tr '\n' ' ')" 'status 9 after .*, said retry \(down\): would be retried in 5m = 9' 'rqctl try: retry'
like "$(try 'echo defer 5m >&3' | tr '\n' ' ')" ', said defer: would be deferred for 5m = 0' 'defer'
like "$(try 'echo what >&3' | tr '\n' ' ')" ', broke the protocol \(not a statement: what\): .*retried.* = 0' 'a wrong line'

# -- the manual's examples ------------------------------------------------------------------
for answer in shipped closed unknown 'late 5'; do r lpush in_sh "$answer" >/dev/null; done
ok 'log_wait 30 "event=acked queue=in_sh "' 'sh: shipped'
ok 'log_wait 30 "event=deferred queue=in_sh .*delay=600.000 answer=.the depot is closed."' 'sh: defer'
ok 'log_wait 30 "event=dead queue=in_sh .*answer=.no such customer."' 'sh: dead'
ok 'log_wait 30 "event=retry queue=in_sh .*delay=300.000 answer=.late 5."' 'sh: retry'
if [ -x /usr/bin/python3 ]; then
	r lpush in_python '{"id":"a","pages":[1,2]}' '{"id":"b","pages":[]}' '{"id":"c","pages":[1,null]}' >/dev/null
	like "$(gone in_python a)" event=acked 'Python: done'
	like "$(gone in_python b)" 'event=dead .*answer="an order of no pages"' 'Python: dead'
	like "$(gone in_python c)" 'event=retry .*delay=300.000 answer="page 2 is not there yet"' 'Python: retry'
fi
if [ -x /usr/bin/php ]; then
	r lpush in_php '{"id":"a","to":"Bonn"}' '{"id":"b"}' '{"id":"c","to":"later"}' >/dev/null
	like "$(gone in_php a)" event=acked 'PHP: done'
	like "$(gone in_php b)" 'event=dead .*answer="an order without an address"' 'PHP: dead'
	like "$(gone in_php c)" 'event=deferred .*delay=3600.000 answer="the shop is closed"' 'PHP: defer'
fi
rqd_stop
