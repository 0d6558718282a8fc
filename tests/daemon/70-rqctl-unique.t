#!/bin/sh
# rqctl and queues of kind "unique": the messages are ids in one zset.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
MORE_KEYS=Queue:users
Q=Queue:users
handler work <<'H'
id=$(cat)
[ -e "$T/fail" ] && exit 1
[ -e "$T/die" ] && exit 65
echo "$id" >>"$T/done"
H
cat >"$T/text" <<C
queue "users" {
	kind = "unique"
	command = {"$T/work"}
	backoff = 1h  backoff_max = 1h
}
C
config_write rqd <"$T/text"
uctl() { "$RQCTL" -c "$T/rqd.conf" "$@"; }

is "$(uctl push users 7)" 7 'push prints the id'
is "$(uctl push users 7)" 7 'twice it is'
is "$(r zcard $Q)" 1 'queued once'
uctl push users 8 --delay 1h >/dev/null
later=$(r --raw zscore $Q 8)
uctl push users 8 --delay 2h >/dev/null
is "$(r --raw zscore $Q 8)" "$later" 'a push never makes it later'
uctl push users 8 --delay 30m >/dev/null
ok "awk 'BEGIN { exit !($(r --raw zscore $Q 8) < $later) }'" 'but earlier'
printf 'a\nb\nb\n' | uctl push users --lines >/dev/null
is "$(r zcard $Q)" 4 '--lines pushes each line once'
r zadd $Q inf never 99999999999999 ms >/dev/null

is "$(uctl --json peek users --count 10 | tr -d ' \n' | grep -o '"id":"[^"]*"' | cut -d '"' -f 4 | tr '\n' ' ')" \
    '7 a b 8 ms never ' 'peek lists by time'
like "$(uctl peek users)" '^ *1 +7 +now +1 +7$' 'and says when'
like "$(uctl peek users)" ' 8 +in (29|30)m' 'for later ones too'
is "$(uctl peek users --raw)" 7 'peek --raw'
like "$(uctl --json status users)" '"waiting": 3' 'status knows what is due'
like "$(uctl --json status users)" '"delayed": 3' 'and what is not'
like "$(uctl show users 8)" '^waiting +due in (29|30)m' 'show tells when an id is due'
like "$(uctl show users never)" '^waiting +never due' 'or never'
like "$(uctl delayed list users)" '^8 +in (29|30)m' 'delayed list'
unlike "$(uctl delayed list users)" '^7' 'without what is due'
like "$(uctl delayed now users 8)" '^made due 1 message' 'delayed now'
is "$(uctl delayed cancel -y users ms)" 'cancelled 1 message of users' 'delayed cancel'
is "$(r --raw zrange $Q 0 -1 | sort | tr '\n' ' ')" '7 8 a b never ' 'does that'
is "$(uctl purge -y --delayed users)" 'purged 1 delayed of users' 'purge --delayed'
is "$(uctl purge -y --waiting users)" 'purged 4 waiting of users' 'purge --waiting'
is "$(r exists $Q)" 0 'empty it'
r lpush $Q x >/dev/null
like "$(uctl check users)" "the key $Q is a list, not a zset" 'check knows the type of the key'
like "$(uctl push users 1 2>&1)" WRONGTYPE 'push says so'
r del $Q >/dev/null

: >"$T/fail"
rqd_run rqd -c "$T/rqd.conf"
uctl push users 9 >/dev/null
wait_for 30 '[ "$(r zcard ${Q}RETRY)" -eq 1 ]'
like "$(uctl show users 9)" '^retry .*attempt 2, due in' 'show, of a retry'
like "$(uctl retry list users)" '^9 ' 'retry list'
is "$(uctl bury users 9)" 'buried 1 message of users' 'bury'
like "$(uctl dead show users 9)" 'reason +buried' 'makes a letter'
rm "$T/fail"
uctl push users 9 >/dev/null
wait_ok 30 'grep -qsx 9 "$T/done"' 'the same id can be pushed beside its letter'
is "$(uctl dead retry users 9)" 'retried 1 dead letter of users' 'dead retry'
wait_ok 30 '[ "$(grep -cx 9 "$T/done")" -eq 2 ]' 'runs it again'
: >"$T/die"
printf '~odd\nid' | uctl push users - >/dev/null
wait_for 30 '[ "$(r xlen ${Q}DEAD)" -eq 1 ]'
log_wait 30 event=dead
tag=$(log_lines 'event=dead' | tail -n 1 | log_field id)
like "$tag" '^~[0-9a-f]{40}$' 'an id that cannot stand in a log has another name there'
is "$(uctl dead show --raw users "$tag")" '~odd
id' 'by which it is found'
rm "$T/die"
uctl dead retry -y --all users >/dev/null
wait_ok 30 'grep -qsx id "$T/done"' 'and retried whole'
r del ${Q}DEAD >/dev/null
wait_ok 30 'no_keys' 'nothing is left'
