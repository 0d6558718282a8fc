#!/bin/sh
# Over TCP, where every local user may ask, the listener shows what messages and handlers
# wrote only if http.details is true.  On a unix socket it shows it.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v curl >/dev/null || skip_all 'no curl'
redis_start
handler bad <<'H'
echo "customer secret" >&2
exit 65
H
handler slow <<'H'
echo 'progress halfway' >&3
until [ -e "$T/release" ]; do sleep 0.2; done
H
handler hold <<'H'
cat >/dev/null
echo 'hold 10m carrier-secret' >&3
H
rqd_start <<C
http { listen = "127.0.0.1:0" }
queue "bad" { command = {"$T/bad"} }
queue "slow" { command = {"$T/slow"} }
queue "gone" { command = {"$T/missing"} }
queue "hold" { command = {"$T/hold"} }
C
log_wait 10 event=ready
# A dead letter of another program, whose reason rqd does not know.
r xadd badDEAD 1-1 message x reason id-of-reason >/dev/null
r lpush bad '{"id":"id-of-bad"}' >/dev/null
r lpush slow '{"id":"id-of-slow"}' >/dev/null
r lpush gone '{"id":"id-of-gone"}' >/dev/null
log_wait 10 'event=dead queue=bad'
log_wait 10 'event=suspended queue=gone'
r lpush hold '{"id":"id-of-hold"}' >/dev/null
wait_for 10 '[ "$(r exists holdPAUSED)" = 1 ]'

listening() {	# N: waits for the Nth listener, and sets WHERE for get
	log_wait 10 event=listening "$1"
	WHERE=$(log_lines event=listening | tail -1 | log_field address)
}
get() {
	case $WHERE in
	unix:*) curl -s -m 20 --unix-socket "${WHERE#unix:}" "http://rqd$1" ;;
	*) curl -s -m 20 "http://$WHERE$1" ;;
	esac
}
everything() { for p in /status '/queue?key=bad' '/queue?key=slow' '/queue?key=gone' '/queue?key=hold' /history /metrics; do get "$p"; done; }
# Prints which of the messages' words the answers have.
words() { everything | grep -oE 'id-of-[a-z]+|customer secret|carrier-secret|halfway|/missing: No such file' | sort -u | tr '\n' ' '; }
ALL='/missing: No such file carrier-secret customer secret halfway id-of-bad id-of-slow '

listening 1
# A survey is used again for 1.5 s, and heartbeats come every 5 s: wait until all is there.
wait_ok 20 'get "/queue?key=gone" | grep -q "suspended: cannot_execute" && get "/queue?key=bad" | grep -q "\"letters\":{\"total\":2," &&
    get /status | grep -q "\"name\":\"slow\".*\"running\":1"' 'states, figures and reasons are shown over TCP'
is "$(words)" '' 'no id, error or progress is shown over TCP'
like "$(get /status)" '"details":false,.*"progress":null' '/status says that they are hidden'
like "$(get '/queue?key=bad')" '"commands":\[.*dead list bad.*"looked":2,"reasons":\{"status":1,"other":1\},"newest":null' '/queue has the command, and the reasons that rqd knows'

sed -i "s|^http.*|http { listen = \"unix:$OWN/http.sock\" }|" "$T/rqd.conf"
rqd_signal HUP
listening 2
wait_ok 20 '[ "$(words)" = "$ALL" ]' 'a unix socket shows them'
like "$(get /status)" '"details":true' 'and /status says so'

sed -i 's|^http.*|http { listen = "127.0.0.1:0" details = true }|' "$T/rqd.conf"
rqd_signal HUP
listening 3
wait_ok 20 '[ "$(words)" = "$ALL" ]' 'TCP shows them with details = true'

sed -i 's| details = true||' "$T/rqd.conf"
rqd_signal HUP
log_wait 10 event=reloaded 3
is "$(words)" '' 'and no longer after a reload without it, not even for a moment'
touch "$T/release"
