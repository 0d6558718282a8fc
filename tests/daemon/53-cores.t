#!/bin/sh
# Messages in core dumps: only the main process and a message's own handler have it in
# memory.  A process of the spawner that is not yet its command leaves no core, and its
# user cannot look into it.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

[ "$(id -u)" -eq 0 ] || skip_all 'needs root'
[ "$SLOW" -eq 1 ] || skip_all 'the memory of a sanitizer has no end'
command -v setpriv >/dev/null || skip_all 'no setpriv'
command -v python3 >/dev/null || skip_all 'no python3'
EVIL=60373		# nobody else's

redis_start
mkdir -m 777 "$T/out"
# All memory that the process has, what a core would leave out, too.
cat >"$T/find.py" <<'P'
import sys
word, n = sys.argv[2].encode()[::-1], 0	# it is not in our own arguments
mem = open('/proc/%s/mem' % sys.argv[1], 'rb', 0)
for line in open('/proc/%s/maps' % sys.argv[1]):
    place, mode = line.split()[:2]
    at, end = (int(x, 16) for x in place.split('-'))
    if mode[0] != 'r' or '[v' in line:
        continue
    rest = b''
    while at < end:
        try:
            mem.seek(at)
            part = mem.read(min(end - at, 1 << 20))
        except (OSError, OverflowError, ValueError):
            break
        n += (rest + part).count(word)
        rest = part[-len(word) + 1:]
        at += len(part) or end - at
print(n)
P
found() { python3 "$T/find.py" "$1" "$(printf '%s' "$2" | rev)"; }
word() { printf 'word%s%s' "$1" "$(od -An -N 12 -t x4 /dev/urandom | tr -d ' \n')"; }

# Keeps its message, and goes on.
handler keep <<'H'
message=$(cat)
touch "$T/out/$RQD_QUEUE"
while [ ! -e "$T/out/end" ]; do sleep 0.1; done
H
handler answer <<'H'
while read -r n rest && read -r message; do
	message=''
	touch "$T/out/lines"
	echo "$n ok"
done
H
way=$(i=0; while [ $i -lt 300 ]; do printf '/tmp/..'; i=$((i + 1)); done)/
rqd_start <<C
queue "secret" { command = {"$T/keep"} user = "daemon" max_attempts = 1 }
queue "other" { command = {"$T/keep"} user = "$EVIL" group = "$EVIL" }
queue "late" { command = {"/bin/true"} user = "$EVIL" group = "$EVIL" directory = "$way" concurrency = 16 limit_core = 1G suspend_after = 0 time_limit = 30s kill_grace = 100ms max_attempts = 1 }
queue "lines" { command = {"$T/answer"} mode = "persistent" framing = "line" user = "$EVIL" group = "$EVIL" }
C
log_wait 30 event=ready
S=$(pgrep -o -P "$PID" -x rqd-spawner)

small=$(word a) large=$(word b) done=$(word c) own=$(word d)
# One message that is done already, a large and a small one in flight; and one of
# another queue.
{
	echo "lpush lines $done"
	echo "lpush secret $small"
	echo "lpush other $own"
} | r >/dev/null
{ head -c 300000 /dev/zero | tr '\0' x; printf '%s' "$large"; head -c 300000 /dev/zero | tr '\0' y; } >"$T/large"
r -x lpush secret <"$T/large" >/dev/null
wait_ok 60 '[ -e "$T/out/secret" ] && [ -e "$T/out/other" ] && [ -e "$T/out/lines" ]' 'messages are in hand'
H=$(pgrep -o -u daemon -f "$T/keep") O=$(pgrep -o -u $EVIL -f "$T/keep") P=$(pgrep -o -u $EVIL -f "$T/answer")
ok "[ $(found "$PID" "$small") -gt 0 ]" 'the main process has a message in hand'
ok "[ $(found "$H" "$small") -gt 0 ]" 'so has its handler'
ok "[ $(found "$O" "$own") -gt 0 ]" 'another handler has its own'
for w in "$small" "$large" "$done" "$own"; do
	is "$(found "$S" "$w")" 0 'the spawner has none'
done
is "$(found "$O" "$small") $(found "$O" "$large") $(found "$O" "$done")" '0 0 0' 'nor has a handler those of another queue'
is "$(found "$P" "$small") $(found "$P" "$large") $(found "$P" "$own")" '0 0 0' 'nor has a persistent one'
is "$(found "$H" "$own")" 0 'nor has the first one those of others'

# -- a process that has changed its user, but is not yet its command ------------------
cat >"$T/evil" <<H
#!/bin/sh
trap '' QUIT TERM
while [ ! -e "$T/out/stop" ]; do kill -STOP -1 2>/dev/null; done
H
chmod 755 "$T/evil"
setpriv --reuid $EVIL --regid $EVIL --clear-groups setsid sh "$T/evil" &
OTHER_PIDS="$OTHER_PIDS $!"
stopped() {
	r lpush late 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 >/dev/null
	for _c in $(pgrep -u $EVIL -x rqd-spawner); do
		# It may have executed its command since: the name counts once it has stopped.
		grep -qs '^State:.T' "/proc/$_c/status" && grep -qs 'rqd-spawner' "/proc/$_c/comm" && C=$_c && return 0
	done
	return 1
}
wait_ok 120 stopped 'such a process is stopped by its user'
touch "$T/out/stop"
if [ -n "$C" ]; then
	is "$(stat -c %u "/proc/$C/maps")" 0 'its memory is not for its user to look at'
	is "$(setpriv --reuid $EVIL --regid $EVIL --clear-groups cat "/proc/$C/mem" "/proc/$C/maps" 2>/dev/null | wc -c)" 0 'who cannot'
	ok "[ $(sed -n 's/^Max core file size *\([0-9]*\).*/\1/p' "/proc/$C/limits") -le 1 ]" 'a core of it has no byte'
	is "$(found "$C" "$small") $(found "$C" "$large") $(found "$C" "$own")" '0 0 0' 'and it has no message'
fi
touch "$T/out/end"
pkill -CONT -u $EVIL
wait_ok 20 '[ "$(log_count "event=acked queue=secret")" = 2 ]' 'the messages are handled'
rqd_stop
r del late lateRETRY lateCONTEXT lateDELIVERY lateBACKUP other otherRETRY otherCONTEXT otherDELIVERY otherBACKUP >/dev/null
