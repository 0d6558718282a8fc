#!/bin/sh
# rqctl on a terminal of 80 columns: questions, progress, colours, status -w.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
command -v tmux >/dev/null || skip_all 'no tmux'
redis_start
RQD_SERVER=unix:$SOCK TERM=xterm-256color
export RQD_SERVER TERM
unset TMUX NO_COLOR

# A server of its own for each: one that is going away must not be found.
N=0
tm() { tmux -S "$T/tmux.$N" "$@"; }
screen() { tm capture-pane -p; }

# Runs rqctl on a screen of its own; its exit status goes to $T/status.  The trap keeps the
# shell, whichever tmux takes, when Control-C ends rqctl.
terminal() { # ARGUMENT...
	[ $N -gt 0 ] && tm kill-server
	N=$((N + 1))
	rm -f "$T/status"
	tm -f /dev/null new-session -d -x 80 -y 20 \
	    "trap : INT; $RQCTL $*; echo \$? >$T/status.new; mv $T/status.new $T/status; sleep 1000"
}
# The program may have ended before tmux has read its last words.
shows() {	# REGEX DESCRIPTION
	_shown=$1
	wait_ok 30 'screen | grep -Eq -e "$_shown"' "$2" || note "$(screen)"
}
ended() { wait_for 30 '[ -s "$T/status" ]'; is "$(cat "$T/status")" "$1" "$2"; }

letters() { # NUMBER
	r flushall >/dev/null
	r eval 'for i = 1, ARGV[1] do redis.call("XADD", "qDEAD", "*", "id", i, "message", "m" .. i,
		"reason", "exit", "attempts", 1, "status", 1, "error", string.rep("long ", 50)) end' 0 "$1" >/dev/null
}

# -- questions ---------------------------------------------------------------------

letters 3
terminal dead drop q --all
ok "wait_for 30 'screen | grep -qF \"drop 3 dead letters of q? [y/N]\"'" 'asks'
tm send-keys n Enter
ended 1 'no: status'
is "$(r xlen qDEAD)" 3 'no: nothing was dropped'
terminal dead drop q --all
wait_for 30 'screen | grep -qF "[y/N]"'
tm send-keys Enter
ended 1 'Enter is no'
terminal dead drop q --all
wait_for 30 'screen | grep -qF "[y/N]"'
tm send-keys y Enter
ended 0 'yes: status'
is "$(r xlen qDEAD)" 0 'yes: they were dropped'
terminal dead drop q --all
ended 1 'nothing to ask'

# -- what is typed ---------------------------------------------------------------------

terminal push typed
ok "wait_for 30 'screen | grep -qF \"type the message; Control-D ends it\"'" 'push says what it waits for'
tm send-keys 'two words' Enter C-d
ended 0 'Control-D on a line of its own ends it'
is "$(r lpop typed)" "two words" 'with its newline'
terminal push typed
wait_for 30 'screen | grep -qF "Control-D"'
tm send-keys 'no newline' C-d
ended 0 'and once is enough behind a word'
is "$(r lpop typed)" 'no newline' 'without a newline'

# -- no more goes than was asked about ------------------------------------------------

config_write purge <<C
queue "q" { command = {"/bin/true"} }
queue "u" { kind = "unique" command = {"/bin/true"} key = "u" }
queue "s" { kind = "stream" command = {"/bin/true"} }
queue "l" { kind = "list" pop = "left" command = {"/bin/true"} }
queue "h" { shards = 2 command = {"/bin/true"} }
C
# Asks, lets producers come in between, answers yes.
between() { # EXPECTED-QUESTION COMMAND ARGUMENT...
	_q=$1 _between=$2
	shift 2
	terminal -c "$T/purge.conf" "$@"
	wait_for 30 "screen | grep -qF '$_q? [y/N]'" || note "$(screen)"
	eval "$_between"
	tm send-keys y Enter
	ended 0 "$*: status"
}
r flushall >/dev/null
r lpush q a b c >/dev/null
between 'purge 3 waiting of q' 'seq 1200 | xargs redis-cli -s "$SOCK" lpush q >/dev/null' purge q --waiting
is "$(r llen q) $(r lindex q -1)" '1200 1' 'purge --waiting: what was pushed meanwhile stays'
shows '^purged 3 waiting of q$' 'and it says how many are gone'
between 'purge 1,200 waiting of q' 'r ltrim q 0 99 >/dev/null' purge q --waiting
is "$(r llen q)" 0 'purge --waiting: what is gone already'
shows '^purged 100 waiting of q; 1,100 of those counted were taken' 'is counted apart'
r rpush l 1 2 3 >/dev/null
between 'purge 3 waiting of l' 'r rpush l 4 5 >/dev/null' purge l --waiting
is "$(r lrange l 0 -1 | tr '\n' ' ')" '4 5 ' 'purge --waiting: from the end that is popped'
r zadd qDELAYED 4000000001 d1 4000000002 d2 >/dev/null
between 'purge 2 delayed of q' 'r zadd qDELAYED 4000000003 d3 >/dev/null' purge q --delayed
is "$(r zrange qDELAYED 0 -1)" d3 'purge --delayed'
"$RQCTL" push q --delay 1h r1 >/dev/null
"$RQCTL" push q --delay 2h r2 >/dev/null
between 'purge 2 retry of q' '"$RQCTL" push q --delay 3h r3 >/dev/null' purge q --retry
is "$(r zcard qRETRY) $(r hvals qCONTEXT)" '1 r3' 'purge --retry'
# shellcheck disable=SC2046
set -- $("$RQCTL" -c "$T/purge.conf" queues --keys h)
r lpush "$1" a b c >/dev/null
r lpush "$2" d >/dev/null
between 'purge 4 waiting of h' 'r lpush "'"$1"'" e >/dev/null; r lpush "'"$2"'" f g >/dev/null' purge h --waiting
is "$(r lrange "$1" 0 -1) $(r lrange "$2" 0 -1 | tr '\n' ' ')" 'e g f ' 'purge --waiting of shards: of each as many as were counted'

# A shard that cannot be deleted.
r del "$1" "$2" >/dev/null
r lpush "$1" a b >/dev/null
r lpush "$2" c >/dev/null
terminal -c "$T/purge.conf" forget h --force
wait_for 30 "screen | grep -qF 'delete 2 keys and 3 messages of h? [y/N]'" || note "$(screen)"
r acl setuser default resetkeys '~rqd:*' "~$1*" >/dev/null
tm send-keys y Enter
ended 77 'forget: a shard cannot be deleted: status'
shows '^forgot 1 key and 2 messages of h; stopped before the end' 'it says what is gone'
shows '^rqctl: redis .*NOPERM' 'and why'
r acl setuser default allkeys >/dev/null
is "$(r exists "$1") $(r lrange "$2" 0 -1)" '0 c' 'the other shard is as it was'
r del "$2" >/dev/null
r xadd qDEAD '*' id 1 message m1 >/dev/null
r xadd qDEAD '*' id 2 message m2 >/dev/null
between 'purge 2 dead of q' "r xadd qDEAD '*' id 3 message m3 >/dev/null" purge q --dead
is "$(r --raw xrange qDEAD - + | tail -1)" m3 'purge --dead'
between 'drop 1 dead letter of q' "r xadd qDEAD '*' id 4 message m4 >/dev/null" dead drop q --all
is "$(r --raw xrange qDEAD - + | tail -1)" m4 'dead drop --all'
r del qDEAD >/dev/null
r xadd qDEAD 7-7 id gone message m >/dev/null
terminal -c "$T/purge.conf" dead drop q gone
wait_for 30 "screen | grep -qF 'drop 1 dead letter of q? [y/N]'" || note "$(screen)"
r xdel qDEAD 7-7 >/dev/null
tm send-keys y Enter
ended 1 'dead drop of what has gone while it asked: status'
shows '^rqctl: q has no dead letter gone$' 'it says so'
r del qDELAYED >/dev/null
r zadd qDELAYED 4000000001 d1 >/dev/null
between 'cancel 2 delayed messages of q' 'r zadd qDELAYED 4000000002 d2 4000000003 d3 >/dev/null' delayed cancel q --all
is "$(r zcard qDELAYED)" 1 'delayed cancel --all'
r zadd u 1 a 2 b 4000000000 c >/dev/null
between 'purge 2 waiting, 1 delayed of u' 'r zadd u 3 d 4000000001 e >/dev/null' purge u --waiting --delayed
is "$(r zrange u 0 -1 | tr '\n' ' ')" 'd e ' 'purge of kind "unique"'
for i in 1 2 3; do r xadd s "$i-1" message "$i" >/dev/null; done
r xgroup create s rqd 0 >/dev/null
between 'purge 3 waiting of s' 'r xadd s 4-1 message 4 >/dev/null' purge s --waiting
is "$(r --raw xreadgroup group rqd me count 9 streams s '>' | tail -1)" 4 'purge of kind "stream"'
shows '^purged 3 waiting of s$' 'and the number'
r xadd s 5-1 message 5 >/dev/null
between 'purge 1 waiting of s' 'r xadd s 6-1 message 6 >/dev/null; r xreadgroup group rqd me count 9 streams s ">" >/dev/null' purge s --waiting
is "$(r --raw xreadgroup group rqd me count 9 streams s '>')" '' 'the group is never moved back'
shows '^purged 0 waiting of s; 1 of those counted were taken' 'and nothing was purged'
r flushall >/dev/null

# -- progress -------------------------------------------------------------------------

letters 20000
terminal dead retry q -y --all --rate 400/s
ok "wait_for 30 'screen | grep -qE \"^retried [0-9,]+; [0-9]+% of 20,000 letters looked at, [0-9]+/s, .* left\"'" 'progress'
tm send-keys C-c
ended 130 'interrupted: status'
shows '^retried [0-9,]+ dead letters of q; stopped before the end' 'interrupted: the last words'
unlike "$(screen)" 'looked at' 'progress is wiped out'
is "$(($(r xlen qDEAD) + $(r zcard qRETRY)))" 20000 'interrupted: none is lost'

# shellcheck disable=SC2046
set -- $("$RQCTL" -c "$T/purge.conf" queues --keys h)
r flushall >/dev/null
for key in "$1" "$2"; do
	r eval 'for i = 1, 500 do redis.call("XADD", KEYS[1], "*", "id", i, "message", i) end' 1 "${key}DEAD" >/dev/null
done
terminal -c "$T/purge.conf" dead retry h -y --all --rate 100/s
ok "wait_for 30 'screen | grep -qE \"^retried [0-9]+; [0-9]+% of 1,000 letters looked at\"'" 'progress: of all shards, from the beginning'
tm send-keys C-c
ended 130 'interrupted: status'

# -- tables ---------------------------------------------------------------------------

letters 5
terminal dead list q
ended 0 'list: status'
wait_for 30 '[ "$(screen | grep -c exit)" = 5 ]'
is "$(screen | grep -c 'exit')" 5 'list: a line for each, cut at the edge'
like "$(tm capture-pane -p -e)" "$(printf '\033')" 'colours on a terminal'
NO_COLOR=1
export NO_COLOR
terminal dead list q
ended 0 'NO_COLOR: status'
wait_for 30 '[ "$(screen | grep -c exit)" = 5 ]'
unlike "$(tm capture-pane -p -e)" "$(printf '\033')" 'no colours with NO_COLOR'
unset NO_COLOR
unlike "$(ctl dead list q)" "$(printf '\033')" 'no colours in a pipe'

# -- lock: the command has the terminal ------------------------------------------------

r flushall >/dev/null
cat >"$T/count" <<'H'
trap 'echo int >>"$1/ints"' INT
echo counting
until read -r line; do :; done
echo "read $line"
H
terminal lock a -- sh "$T/count" "$T"
wait_for 30 'screen | grep -q counting'
tm send-keys C-c
ok "wait_for 30 '[ -s \"\$T/ints\" ]'" 'lock: Control-C reaches the command'
tm send-keys words Enter
ended 0 'lock: status'
shows '^read words' 'lock: it reads from the terminal'
is "$(wc -l <"$T/ints")" 1 'lock: Control-C came once'

r set Lock:a "$(printf 'pe\033[2Jer')" px 600000 >/dev/null
terminal lock a -- echo got it
ok "wait_for 30 'screen | grep -qF \"waiting for lock a, held by another program\"'" 'lock: says that it waits'
r del Lock:a >/dev/null
ended 0 'lock: and goes on'
shows '^got it' 'lock: with the command'

# -- try: a handler's control characters --------------------------------------------------

handler paint <<'H'
printf 'a\tb\033]0;title\007\033[31mred\330\234\n'
printf '\033[2Jerr\n' >&2
H
config_write try <<C
queue "paint" { command = {"$T/paint"} }
C
echo >"$T/message"
terminal -c "$T/try.conf" try paint "$T/message"
ended 0 'try: status'
shows '^a +b\\x1b\]0;title\\x07\\x1b\[31mred\\xd8\\x9c$' 'try: what a handler prints is escaped on a terminal'
shows '^\\x1b\[2Jerr$' 'try: on standard error, too'
is "$("$RQCTL" -c "$T/try.conf" try paint "$T/message" 2>/dev/null | od -An -tx1 | tr -d ' \n')" \
    "$(printf 'a\tb\033]0;title\007\033[31mred\330\234\n' | od -An -tx1 | tr -d ' \n')" 'try: elsewhere it is as it was'

# -- status -w ------------------------------------------

beat() { # INSTANCE JSON
	r set "rqd:daemon:$1" "$2" ex 3000 >/dev/null
	r zadd rqd:daemons "$(date +%s)" "$1" >/dev/null
}
beat h.9 '{"queues":{"watched":{"state":"running","concurrency":2}}}'
terminal status -w --interval 100ms
ok "wait_for 30 'screen | grep -q \"^watched .* ok\"'" 'watch: the queue is there'
r lpush watched a b c >/dev/null
ok "wait_for 30 'screen | grep -qE \"^watched +3 \"'" 'watch: it is redrawn'
beat h.8 '{"queues":{"second":{"state":"suspended","reason":"failing"}}}'
ok "wait_for 30 'screen | grep -qE \"^second .*suspended\"'" 'watch: a daemon comes'
r del rqd:daemon:h.8 >/dev/null
ok "wait_for 30 '! screen | grep -q second'" 'watch: and goes'
redis_stop
ok "wait_for 30 'screen | grep -q \"^redis unix:.*: \"'" 'watch: Redis goes away'
redis_start
beat h.9 '{"queues":{"watched":{"state":"paused","concurrency":2}}}'
ok "wait_for 30 'screen | grep -q \"^watched .* paused\"'" 'watch: Redis comes back'
tm resize-window -x 50 -y 6
ok "wait_for 30 'screen | grep -q \"^QUEUE\" && [ \$(screen | grep -c .) -le 6 ]'" 'watch: as many lines as fit'
tm send-keys C-c
ended 130 'watch: Control-C ends it'

# -- completion in bash ---------------------------------------------------------------------

printf 'queue "%s" { command = {"/bin/true"} }\n' a:one a:two other >"$T/colon.conf"
offered() {	# WORDS RESULT DESCRIPTION
	tm kill-server
	N=$((N + 1))
	tm -f /dev/null new-session -d -x 80 -y 20 "PATH=$(dirname "$RQCTL"):\$PATH exec bash --norc --noprofile -i"
	tm send-keys "PS1='$ '; . '$BUILDDIR/etc/completion/rqctl'; clear" Enter
	wait_for 30 'screen | grep -qx "\\$"'
	tm send-keys "rqctl -c $T/colon.conf $1" Tab
	wanted=$2
	ok 'wait_for 30 "screen | tr -d \"\\n\" | grep -qF \"\$wanted\""' "bash: $3"
}
if command -v bash >/dev/null; then
	offered 'peek a:t' 'peek a:two' 'a name with a colon'
	offered 'peek oth' 'peek other' 'a name without one'
	offered 'peek a:one pau' 'peek a:one pau' 'a colon in a word before the last'
	offered '--server localhost:1 pau' 'localhost:1 pause' 'a colon in an address'
fi
tm kill-server
