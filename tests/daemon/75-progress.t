#!/bin/sh
# The progress that handlers report: rqctl running and show, with daemons that hear
# hints, and that do not.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
handler copy <<'H'
echo "progress 10/100 pages" >&3
touch "$T/began"
until [ -e "$T/more" ]; do sleep 0.2; done
echo "progress 40/100 $(printf '\033[31m')pages" >&3
touch "$T/further"
until [ -e "$T/release" ]; do sleep 0.2; done
H
handler batch <<'H'
echo "progress 1/3 loaded" >&3
touch "$T/loaded"
until [ -e "$T/release" ]; do sleep 0.2; done
H
ctl() { RQD_SERVER=unix:$SOCK "$RQCTL" "$@"; }
rqd_start one <<C
name = "web1"
http { listen = "unix:$OWN/web1.sock" }
queue "q" { command = {"$T/copy"} }
C
log_wait 30 event=ready 1 one
INSTANCE=$(log_lines event=started one | log_field instance)
wait_for 30 '[ "$(r pubsub numsub "rqd:control:$INSTANCE" | tail -1)" = 1 ]'
r lpush q '{"id":1}' >/dev/null
wait_for 30 '[ -e "$T/began" ]'
start=$(msec)
wait_for 30 'ctl running q | grep -q 10/100'
took=$(($(msec) - start))
like "$(ctl running q)" "^q +1 +1 +[0-9.]+m?s +[0-9]+ +$INSTANCE +10/100 pages\$" 'running shows it at once'
# Prints "QUEUE ID ATTEMPT PROGRESS by DAEMON" for each message in the daemon's /status.
progress() {	# NAME
	curl -s -m 20 --unix-socket "$OWN/$1.sock" http://rqd/status | sed 's/.*"progress":\[//' | tr '{' '\n' |
	    sed -n 's/"id":"\([^"]*\)","attempt":\([0-9]*\),"queue":"\([^"]*\)","daemon":"\([^".]*\)[^"]*","progress":"\([^"]*\)","age":[0-9.]*}.*/\3 \1 \2 \5 by \4/p'
}
if command -v curl >/dev/null; then
	is "$(progress web1)" 'q 1 1 10/100 pages by web1' '/status has it'
else
	skip '/status has it: no curl'
fi
ok "[ $took -lt 8000 ]" "before the next heartbeat ($took ms)"
touch "$T/more"
wait_for 30 '[ -e "$T/further" ]'
wait_for 30 'ctl running q | grep -q 40/100'
unlike "$(ctl running q)" "$(printf '\033')" 'nothing that drives a terminal'
like "$(ctl running q --json)" '"progress": "40/100 .*pages"' '--json'
like "$(ctl show q 1)" '^running  tag 1, attempt 1, for .*, progress: 40/100 .*pages$' 'show'
is "$(ctl cancel q 1 | cut -d, -f1)" 'cancelled: 1 of q' 'cancelled'
log_wait 30 'event=cancelled queue=q' 1 one
rqd_stop one

# -- where Redis forbids the channel: as of the last heartbeat ----------------------------

rm -f "$T/began" "$T/more" "$T/further"
r acl setuser noch on nopass '~*' +@all resetchannels '&__redis__:invalidate' >/dev/null
rqd_start two <<C
name = "web2"
redis { server = "unix:$SOCK" username = "noch" }
http { listen = "unix:$OWN/web2.sock" }
queue "q" { command = {"$T/copy"} }
queue "b" { command = {"$T/batch"} batch = 3 batch_wait = 2s }
C
log_wait 30 event=ready 1 two
r lpush q '{"id":2}' >/dev/null
wait_for 30 '[ -e "$T/began" ]'
like "$(ctl running q)" '^q +2 +1 ' 'it is listed'
wait_for 60 'ctl running q | grep -q 10/100'
like "$(ctl show q 2)" 'progress: 10/100 pages' 'the next heartbeat has it'
if command -v curl >/dev/null; then
	rqd_start three <<C
name = "web3"
http { listen = "unix:$OWN/web3.sock" }
queue "other" { command = {"$T/copy"} }
C
	r lpush b '{"id":3}' '{"id":4}' '{"id":5}' >/dev/null
	wait_for 30 '[ -e "$T/loaded" ]'
	wait_ok 30 '[ "$(progress web2 | tr "\n" ",")" = "q 2 1 10/100 pages by web2,b 3 1 1/3 loaded by web2," ]' '/status: one for a batch'
	wait_ok 60 '[ "$(progress web3 | tr "\n" ",")" = "q 2 1 10/100 pages by web2,b 3 1 1/3 loaded by web2," ]' "/status: another daemon's"
	touch "$T/release"
	log_wait 30 'event=acked queue=b .*batch=3' 1 two
	wait_ok 30 '[ "$(progress web2)" = "q 2 1 10/100 pages by web2" ]' '/status: a run that is over'
else
	skip '/status of two daemons: no curl'
fi
touch "$T/more" "$T/release"
log_wait 30 'event=acked queue=q id=2' 1 two
