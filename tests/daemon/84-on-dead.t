#!/bin/sh
# on_dead: each dead letter is announced in another queue, once, whatever made it; and whoever is
# killed between two steps.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v jq >/dev/null || skip_all 'no jq'
MORE_KEYS='strings Queue:ids'
redis_start --appendonly yes --appendfsync always
handler work <<'H'
case $RQD_ID in
fine) ;;
dead) echo 'no such customer' >&2; exit 65 ;;
odd) printf 'caf\303\251 \377\n' >&2; exit 65 ;;
chatty) head -c 3000 /dev/zero | tr '\0' y >&2; exit 65 ;;
accents) { printf y; yes "$(printf '\303\251')" | head -n 1500 | tr -d '\n'; echo; } >&2; exit 65 ;;
says) echo 'dead no such customer' >&3 ;;
wordy) printf 'dead y%s\n' "$(yes "$(printf '\303\251')" | head -n 1500 | tr -d '\n')" >&3 ;;
slow) sleep 600 ;;
crash) kill -9 "$(cat "$T/daemon")"; sleep 60 ;;
*) exit 1 ;;
esac
H
handler alert <<'H'
cat >>"$T/alerts"
echo >>"$T/alerts"
H
: >"$T/alerts" && chmod 666 "$T/alerts"
cat >"$T/conf" <<C
queue "q" {
	command = {"$T/work"} concurrency = 4 backoff = 100ms max_attempts = 2 max_crashes = 0 lease = 3s
	on_dead = "push:alerts" suspend_after = 0
}
queue "ids" { kind = "unique" command = {"$T/work"} max_attempts = 1 on_dead = "push:strings" on_dead_message = true suspend_after = 0 dead_max_age = 1h lease = 3s }
queue "log" { kind = "stream" command = {"$T/work"} max_attempts = 1 on_dead = "push:alerts" on_dead_message = true suspend_after = 0 dead_max_age = 1h lease = 3s }
queue "strings" { pop = "left" command = {"$T/alert"} on_dead = "push:alerts" concurrency = 0 }
queue "alerts" { command = {"$T/alert"} lease = 3s dead_max_age = 1h }
C
rqd_start <"$T/conf"
pid_of >"$T/daemon"
chmod 644 "$T/daemon"
qctl() { RQD_CONFIG=$T/rqd.conf "$RQCTL" "$@"; }
push() { r lpush q "{\"id\":\"$1\"}" >/dev/null; }
told() { wait_ok 20 "grep -q '\"id\":\"$1\"' '$T/alerts'" "$2"; }
# A member of the announcement of an id.
member() { jq -r "select(.id == \"$1\") | $2" "$T/alerts"; }

# -- what is told -------------------------------------------------------------------
push fine; push dead
told dead 'a dead letter is announced'
is "$(member dead '"\(.queue) \(.reason) \(.attempts) \(.status) \(.error | rtrimstr("\n")) \(.host)"')" \
    "q status 1 65 no such customer $(hostname)" 'which queue, why, and the end of its stderr'
is "$(r xrange qDEAD "$(member dead .letter)" "$(member dead .letter)" | sed -n 3p)" dead 'the number of the letter'
is "$(member dead .message)" null 'not the message'
push odd
told odd 'one with odd bytes'
is "$(member odd .error)" 'caf?? ?' 'which are replaced, since they are no UTF-8'
push chatty
told chatty 'one with much to say'
is "$(member chatty .error | wc -c)" 1025 'of which 1 KiB is told'
push accents
told accents 'one whose last 1 KiB begin within a character'
is "$(member accents '.error | rtrimstr("\n") | [length, .[0:2]] | join(" ")')" '511 éé' 'which is left out'
push says
told says 'one whose handler says why'
is "$(member says '"\(.reason) \(.answer)"')" 'answer no such customer' 'in its words'
push wordy
told wordy 'one with many words'
is "$(member wordy '.answer | [length, .[0:2]] | join(" ")')" '512 yé' 'of which the first 1 KiB is told, to the end of a character'
is "$(member dead .answer)" null 'without words there is no member'
push again
told again 'one of the last attempt'
is "$(member again '.reason, .attempts' | tr '\n' ,)" 'attempts,2,' 'with its attempts'
wait_ok 20 '[ "$(log_count "event=acked queue=alerts")" -eq "$(r xlen qDEAD)" ]' 'an announcement for each letter'

# -- rqctl ------------------------------------------------------------------------------
qctl pause q >/dev/null
log_wait 10 'event=paused queue=q'
push waits
qctl cancel q waits --dead >/dev/null
told waits 'cancelled before its first delivery'
like "$(member waits '.reason + " " + .error')" '^cancelled cancelled by ' 'by whom'
qctl push q --delay 1h '{"id":"later"}' >/dev/null
qctl cancel q later --dead >/dev/null
told later 'cancelled while it is delayed'
qctl push q --delay 1h '{"id":"buried"}' >/dev/null
qctl bury q buried -y >/dev/null
told buried 'buried'
is "$(member buried .reason)" buried 'with that reason'
r zadd qDELAYED 4000000000 '{"id":"delayed"}' >/dev/null
qctl cancel q delayed --dead >/dev/null
told delayed 'cancelled in QDELAYED'
qctl resume q >/dev/null
push slow
log_wait 10 'event=delivered queue=q id=slow '
qctl cancel q slow --dead >/dev/null
told slow 'cancelled while it runs'

# -- other kinds, another end ---------------------------------------------------------------
r zadd Queue:ids 0 some-id >/dev/null
log_wait 10 'event=dead queue=ids id=some-id '
r zadd Queue:ids 0 other-id >/dev/null
log_wait 10 'event=dead queue=ids id=other-id '
is "$(r lrange strings 0 -1 | jq -r '.id + " " + .message' | tr '\n' ,)" 'some-id some-id,other-id other-id,' \
    'kind unique; a list that is popped from the left; with the message'
r del strings >/dev/null
r xadd log '*' message "$(printf '\303\251')" >/dev/null
wait_ok 20 'jq -e "select(.queue == \"log\").message == \"\u00e9\"" "$T/alerts" >/dev/null' 'kind stream'

# -- dead_max_age ---------------------------------------------------------------------------
for dead in alertsDEAD Queue:idsDEAD logDEAD; do
	seq 150 | sed "s/.*/XADD old 100000-& id & message m/" | r >/dev/null
	r xadd old "$(date +%s)000-0" id new message m >/dev/null
	r del "$dead" >/dev/null
	r rename old "$dead" >/dev/null
	wait_ok 30 '[ "$(r xlen "$dead")" -eq 1 ]' "dead_max_age: only the new one stays in $dead"
	r del "$dead" >/dev/null
done

# -- the target cannot be pushed to ------------------------------------------------------
n=$(r xlen qDEAD)
qctl pause alerts >/dev/null
log_wait 10 'event=paused queue=alerts'
r set alerts x >/dev/null
push refused
ok 'log_wait 20 "cannot push to alerts: WRONGTYPE"' 'a warning, while it has another type'
wait_ok 10 '[ "$(r zcard qRETRY)" -eq 1 ]' 'the message waits'
is "$(r xlen qDEAD)" "$n" 'and there is no letter'
like "$(qctl bury q refused -y 2>&1)" 'cannot push to alerts: WRONGTYPE' 'rqctl says it, too'
r del alerts >/dev/null
qctl resume alerts >/dev/null
qctl retry now q refused >/dev/null
told refused 'later it is announced'
ok '[ "$(r xlen qDEAD)" -eq $((n + 1)) ]' 'and is a letter'

# -- a reload ------------------------------------------------------------------------------
grep -v '"log"' "$T/conf" | sed 's/on_dead = "push:alerts" suspend/on_dead = "push:strings" suspend/' | config_write rqd
rqd_signal HUP
log_wait 10 event=reloaded
push moved
wait_ok 20 'r lrange strings 0 -1 | grep -q "\"id\":\"moved\""' 'a reload: to another queue'
r del strings >/dev/null
config_write rqd <"$T/conf"
rqd_signal HUP
log_wait 10 event=reloaded 2

# -- kill -9 of the daemon, and of Redis -------------------------------------------------
# Letters and announcements are the same number, always: Redis writes both in one script.
push crash
rqd_wait rqd 20
rqd_run rqd -c "$T/rqd.conf"
told crash 'one that kills its daemon'
is "$(member crash .reason)" crashed 'when its lease has ended'
round=0
while [ $round -lt 5 ]; do
	seq 40 | sed "s/.*/LPUSH q '{\"id\":\"dead\",\"n\":\"$round-&\"}'/" | r >/dev/null
	sleep "0.$((round * 3))"
	if [ $((round % 2)) -eq 0 ]; then
		kill -9 "$(pid_of)"
		rqd_wait rqd 20
		rqd_run rqd -c "$T/rqd.conf"
	else
		redis_stop KILL
		redis_start --appendonly yes --appendfsync always
	fi
	round=$((round + 1))
done
wait_ok 60 'is_empty q' 'kill -9: all become dead letters'
letters() { r --raw xrange qDEAD - + | grep -c '"n":"'; }
is "$(letters)" 200 'each once'
wait_ok 30 'is_empty alerts' 'all are told'
# A handler that was killed may have told one twice; the letter's number tells them apart.
is "$(jq -r 'select(.queue == "q").letter' "$T/alerts" | sort -u | wc -l)" "$(($(r xlen qDEAD) - 1))" \
    'one announcement for each letter, but the one that was told elsewhere'
rqd_stop
