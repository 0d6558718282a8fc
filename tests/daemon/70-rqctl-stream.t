#!/bin/sh
# rqctl and queues of kind "stream".

# shellcheck source=tests/lib.sh disable=SC2016,SC2119
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start --appendonly yes
config_write c <<C
queue "q" { kind = "stream" consumer_group = "workers" command = {"$T/work"} backoff = 0 }
C
sctl() { ctl -c "$T/c.conf" "$@"; }
waiting() { sctl status --json q | sed -n 's/.*"waiting": \([0-9]*\).*/\1/p' | head -n 1; }
other() { r --raw xreadgroup group workers other count "$1" streams q '>' | grep -aE '^[0-9]+-[0-9]+$'; }

# -- no daemon, no stream -----------------------------------------------------------
is "$(waiting)" 0 'nothing waits'
sctl peek q >"$T/out" 2>&1
is $? 0 'peek finds nothing'

# -- push, peek, show -----------------------------------------------------------------
id=$(sctl push q hello)
like "$id" '^[0-9]+-[0-9]+$' 'push prints the id of the entry'
is "$(r --raw xrange q - + | tr '\n' ' ')" "$id message hello " 'which has the field message'
printf 'a\0b\377' | sctl push q >"$T/id"
is "$(printf 'b\nc\n' | sctl push q --lines | wc -l)" 2 'lines are entries'
printf 'a\0b\377' >"$T/want"
ok 'sctl show --raw q "$(cat "$T/id")" | cmp - "$T/want"' 'any bytes'
is "$(waiting)" 4 'four wait'
is "$(sctl peek q --raw)" hello 'peek --raw shows the first'
is "$(sctl peek q --count 2 | sed -n '2p' | tr -s ' ')" " 1 $id 5 hello" 'peek shows id and message'
is "$(sctl peek q | wc -l)" 5 'all of them'
like "$(sctl show q "$id")" '^waiting +not delivered yet' 'show: it waits'

r xgroup create q workers 0 >/dev/null
is "$(other 1)" "$id" 'another consumer reads it'
is "$(waiting)" 3 'it waits no longer'
is "$(sctl peek q --raw | head -c 1)" a 'nor is it shown by peek'
like "$(sctl show q "$id")" '^pending +for consumer other, idle for .*, delivery 1$' 'show: who has it'
r xack q workers "$id" >/dev/null
like "$(sctl show q "$id")" '^done +in the stream, acknowledged' 'show: it is done'
sctl show q 99-1 >"$T/out" 2>&1
is $? 1 'an entry that is not there'

# Where the server does not know the number the entries are counted.
r xdel q "$(r --raw xrange q - + | grep -aE '^[0-9]+-[0-9]+$' | sed -n 3p)" >/dev/null
is "$(waiting)" 2 'what was deleted does not wait'

# -- purge -----------------------------------------------------------------------------
sctl purge q --waiting -n >"$T/out"
is "$(cat "$T/out")" 'would be purged: 2 waiting of q' 'purge -n says what it would do'
is "$(waiting)" 2 'and does not'
sctl purge q --waiting -y >"$T/out"
is "$(cat "$T/out")" 'purged 2 waiting of q' 'purge passes over what waits'
is "$(waiting)" 0 'nothing waits'
is "$(r xlen q)" 3 'nothing is deleted'
is "$(other 5)" '' 'no consumer of the group is given it'
is "$(sctl purge q --waiting -y)" 'purged 0 waiting of q' 'again: nothing to do'

# -- with a daemon -----------------------------------------------------------------------
handler work <<'H'
[ -e "$T/hold" ] && sleep 0.1
cat >>"$T/got"
while [ -e "$T/hold" ]; do sleep 0.2; done
[ ! -e "$T/dead" ] || exit 65
[ ! -e "$T/fail" ] || { rm "$T/fail"; exit 1; }
H
touch "$T/hold" "$T/dead"
rqd_run c -c "$T/c.conf"
id=$(sctl push q first)
wait_for 30 '[ -s "$T/got" ]'
like "$(sctl running q)" "$id" 'running lists it'
like "$(sctl show q "$id")" "^running +tag $id, attempt 1" 'show: it runs'
rm "$T/hold"
wait_ok 30 '[ "$(sctl dead list q --json | grep -c "\"$id\"")" = 1 ]' 'dead list has it'
like "$(sctl show q "$id")" '^dead ' 'show: it is dead'
rm "$T/dead" "$T/got"
touch "$T/fail"
sctl dead retry q "$id" >/dev/null
wait_ok 30 '[ "$(cat "$T/got" 2>/dev/null)" = firstfirst ]' 'dead retry runs it, and failures are retried'
wait_ok 20 '[ "$(r zcard qRETRY)" = 0 ] && [ "$(r zcard qBACKUP)" = 0 ]' 'until it succeeds'
: >"$T/got"
sctl push q --delay 300ms later >/dev/null
is "$(r xlen q)" 4 'what is delayed is no entry'
wait_ok 30 '[ "$(cat "$T/got")" = later ]' 'and is handled when it is due'
is "$(sctl check | grep -v noeviction)" '' 'check finds nothing'
config_write other <"$T/c.conf"
sed -i 's/"workers"/"others"/' "$T/other.conf"
like "$(ctl -c "$T/other.conf" check)" 'error: q: .* reads it for the consumer group workers, not for others' 'two groups are an error'
like "$(ctl status --json)" '"kind": "stream"' 'without a file the kind is known from the daemon'
is "$(ctl status --json | sed -n 's/.*"waiting": \([0-9]*\).*/\1/p')" 0 'and the group'
