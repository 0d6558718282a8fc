#!/bin/sh
# Heartbeats: a daemon's report about itself in Redis, how soon it comes, and how long
# it stays.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
handler slow <<'H'
: >"$T/began"
until [ -e "$T/release" ]; do sleep 0.2; done
H
rqd_start <<C
name = "web one"
max_handlers = 7
queue "q" { command = {"$T/slow"} concurrency = 3 lease = 9s }
queue "broken" { command = {"$T/missing"} }
C
log_wait 10 event=redis_up
beat() { r --raw get "rqd:daemon:$INSTANCE"; }
# Values by their paths of names.
value() { beat | python3 -c 'import json, sys
beat = json.load(sys.stdin)
def value(v, path):
	for name in path.split("/"): v = v[int(name) if isinstance(v, list) else name]
	return str(v)
print(",".join(value(beat, path) for path in sys.argv[1:]))' "$@" 2>/dev/null; }
command -v python3 >/dev/null || skip_all 'no python3'

INSTANCE=$(log_lines event=started | log_field instance)
like "$INSTANCE" '^web_one\.[0-9a-z]{10}$' 'an instance: the name, and something unique'
wait_for 10 '[ -n "$(beat)" ]'
is "$(r --raw keys 'rqd:daemon:*')" "rqd:daemon:$INSTANCE" 'one daemon, one heartbeat'
# Both may be older where this test is slow: until the next one.
ttl() { _ttl=$(r ttl "rqd:daemon:$INSTANCE"); [ "$_ttl" -gt 15 ] && [ "$_ttl" -le 30 ]; }
wait_ok 10 ttl 'with 30 seconds to live'
wait_ok 10 '[ "$(r --raw zrange rqd:daemons 0 -1)" = "$INSTANCE" ]' 'it is in the index'
age() { echo $(($(date +%s) - $(r --raw zscore rqd:daemons "$INSTANCE" | cut -d . -f 1))); }
wait_ok 10 '[ "$(age)" -le 20 ]' 'with the time'
is "$(value instance name pid max_handlers)" "$INSTANCE,web one,$PID,7" 'who it is'
like "$(value version config)" '^[0-9.]+,[0-9a-f]+$' 'version and configuration'
is "$(value config)" "$(log_lines event=started | log_field config)" 'the hash that the log has'
is "$(value queues/q/key queues/q/kind queues/q/concurrency queues/q/lease queues/q/state)" \
    'q,ack,3,9.0,running' 'a queue'

# A change of state is reported soon, the number of running handlers with the next beat.
pauses() {
	ctl pause q >/dev/null
	wait_for 8 '[ "$(value queues/q/state queues/q/blocked)" = paused,paused ]' || { ctl resume q >/dev/null; return 1; }
	ctl resume q >/dev/null
	wait_for 8 '[ "$(value queues/q/state)" = running ]'
}
ok 'thrice pauses' 'a pause, and its end'
r lpush broken x >/dev/null
wait_ok 10 '[ "$(value queues/broken/state queues/broken/reason)" = suspended,cannot_execute ]' 'a suspension'
r lpush q '{"id":"long"}' >/dev/null
wait_for 10 '[ -e "$T/began" ]'
wait_ok 15 '[ "$(value queues/q/running queues/q/in_hand/0/id queues/q/in_hand/0/attempt)" = 1,long,1 ]' 'what is in hand'
before=$(r --raw zscore rqd:daemons "$INSTANCE")
wait_ok 15 '[ "$(r --raw zscore rqd:daemons "$INSTANCE")" != "$before" ]' 'it beats on'

# The index forgets those of which nothing was heard for long; daemons are known to Redis by name.
like "$(r client list | sed -n 's/.* name=\([^ ]*\) .*/\1/p' | grep -v '^$' | sort -u | tr '\n' ' ')" "$INSTANCE" 'its connections have its name'
r zadd rqd:daemons 1 ghost.1 $(($(date +%s) + 7200)) ghost.2 >/dev/null
wait_ok 15 '[ -z "$(r zscore rqd:daemons ghost.1)" ]' 'one that has not beaten for long leaves the index'
wait_for 15 '[ -z "$(r zscore rqd:daemons ghost.2)" ]'
is "$(r zscore rqd:daemons ghost.2)" '' 'and so does one whose last beat is in the future'

# How long runs usually take: without those that rqd has ended.
is "$(value queues/q/usual)" '' 'nothing is usual yet'
ctl cancel q long >/dev/null
log_wait 30 event=cancelled
took=$(log_lines event=cancelled | log_field duration | sed 's/s$//')
touch "$T/release"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do r lpush q "$i"; done >/dev/null
wait_ok 30 '[ -n "$(value queues/q/usual)" ]' 'after twenty runs'
like "$(value queues/q/usual) of $took" "$(python3 -c 'import sys; print("of" if 0 < float(sys.argv[1]) < float(sys.argv[2]) / 2 else "too long")' "$(value queues/q/usual)" "$took")" \
    'the longest of them, without the one that was cancelled'
log_wait 10 event=acked 20
rqd_stop
is "$(r --raw keys 'rqd:*')" rqd:daemons:queues 'at its end it takes its heartbeat along; the queues that it served stay known'
r del broken brokenRETRY brokenCONTEXT brokenDELIVERY >/dev/null

# Daemons of one fleet: what must differ between them is no difference.
two_of() {	# NAME CONCURRENCY NICE
	cat <<C
name = "$1"
log { level = "$([ "$1" = one ] && echo info || echo debug)" }
http { listen = "unix:$OWN/$1.sock" }
queue "q" { command = {"$T/slow"} concurrency = $2 }
queue "r" { command = {"$T/slow"} nice = $3 }
queue "s" { command = {"$T/slow"} }
C
}
two_of one 1 0 >"$T/in"
rqd_start one <"$T/in"
two_of two 1 0 >"$T/in"
rqd_start two <"$T/in"
config_of() { log_lines "event=$1" "$2" | tail -n 1 | log_field config; }
is "$(config_of started two)" "$(config_of started one)" 'daemons that differ in name, log and listener have one configuration'
wait_for 10 '[ "$(r zcard rqd:daemons)" = 2 ]'
unlike "$(ctl daemons)" differs 'and so it is shown'
sed -i -e 's/concurrency = 1/concurrency = 4/' -e 's/nice = 0/nice = 1/' "$T/two.conf"
rqd_signal HUP two
log_wait 10 event=reloaded 1 two
ok '[ "$(config_of reloaded two)" != "$(config_of started one)" ]' 'with another concurrency they have two'
wait_ok 10 'ctl daemons | grep -q differs' 'rqctl daemons says so'
is "$(ctl daemons | grep ^note: | sort)" 'note: the configuration of q differs between daemons: at most 1 to 4 messages in flight
note: the configuration of r differs between daemons: an option that heartbeats do not have' 'of which queues, and what, where it knows it'
is "$(ctl status q r s --json | python3 -c 'import json, sys; print([q["differs"] for q in json.load(sys.stdin)["queues"]])')" \
    "['at most 1 to 4 messages in flight', 'an option that heartbeats do not have', None]" 'status --json'
is "$(ctl check | grep -c differ)" 0 'check does not complain: it may be meant'
rqd_stop two
rqd_stop one

# A persistent process that does not end: its daemon ends, and takes the heartbeat along.
handler lingers <<'H'
trap '' TERM
while read -r n rest && IFS= read -r message; do
	echo "$n ok"
done
while :; do sleep 0.1; done
H
rqd_start lingers <<C
drain_timeout = 200ms
queue "q" { command = {"$T/lingers"} mode = "persistent" framing = "line" kill_grace = 1m }
C
r lpush q x >/dev/null
log_wait 20 'event=acked queue=q ' 1 lingers
wait_for 10 '[ "$(r zcard rqd:daemons)" -eq 1 ]'
rqd_stop lingers
is "$(r --raw keys 'rqd:*')" rqd:daemons:queues 'also where a process lingers, the heartbeat goes'

# A host's name may be any bytes; JSON may not.
if [ "$(id -u)" -eq 0 ] && unshare --uts true 2>/dev/null; then
	cat >"$T/renamed" <<'S'
#!/bin/sh
printf 'h\351te' >/proc/sys/kernel/hostname && exec "$@"
S
	chmod 755 "$T/renamed"
	wrapper=$RQD_WRAPPER
	RQD_WRAPPER="unshare --uts $T/renamed $wrapper"
	rqd_start host <<C
queue "q" { command = {"$T/slow"} }
C
	RQD_WRAPPER=$wrapper
	INSTANCE=$(sed -n 's/.*event=started .*instance=\([^ ]*\).*/\1/p' "$T/host.log")
	wait_ok 15 '[ "$(value name)" = h_te ]' 'a host name that is not UTF-8: there is a heartbeat'
	rqd_stop host
fi
