#!/bin/sh
# rqctl locks, unlock.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
RQD_SERVER=unix:$SOCK
export RQD_SERVER T
fails() { # STATUS REGEX COMMAND...
	_want=$1 _re=$2
	shift 2
	_out=$("$@" 2>&1 </dev/null)
	_status=$?
	is "$_status" "$_want" "status of $*"
	like "$_out" "^rqctl: .*$_re" "words of $*"
}

# -- locks ------------------------------------------------------------------------

is "$("$RQCTL" locks 2>&1; echo $?)" "$(printf 'rqctl: no lock is held on %s\n0' "$RQD_SERVER")" 'none: no error'
is "$("$RQCTL" locks --json)" '[]' 'none, in JSON'
r set Lock:other 'a value' px 3600000 >/dev/null
r set Lock:dead x >/dev/null
r lpush Lock:list x >/dev/null
r set unrelated x >/dev/null
"$RQCTL" lock mine --ttl 1h -- "$RQCTL" locks >"$T/locks"
"$RQCTL" lock mine --ttl 1h -- "$RQCTL" locks --json >"$T/json"
is "$(sed 1d "$T/locks" | cut -d' ' -f1 | tr '\n' ' ')" 'dead mine other ' 'their names, in order'
like "$(grep ^dead "$T/locks")" '^dead +- +- +- +x$' 'one without a ttl'
like "$(grep ^mine "$T/locks")" "^mine +59m[0-9]+s +[0-9.]+m?s +[0-9]+ +$(uname -n)$" 'one of rqctl'
like "$(grep ^other "$T/locks")" '^other +(1h|59m[0-9]+s) +- +- +a value$' "another program's"
like "$(tr -d '\n ' <"$T/json")" "\"name\":\"mine\",\"key\":\"Lock:mine\",\"value\":\"[^\"]+\",\"host\":\"$(uname -n)\",\"pid\":[0-9]+,\"since\":1[0-9.]+,\"left\":3[0-9.]+" 'JSON'
like "$(tr -d '\n ' <"$T/json")" '"name":"dead","key":"Lock:dead","value":"x","host":null,"pid":null,"since":null,"left":null' 'JSON: what is not known'

# Values that only look like those of rqctl.
for v in 'abc h 1 nan' 'abc h 1 1e300' 'abc h 1 -5' 'abc h 1' 'abc h x 1' 'abc h 1 5 6' 'ABC h 1 5'; do
	r set Lock:odd "$v" px 60000 >/dev/null
	like "$("$RQCTL" locks | grep ^odd)" "^odd .* - +- +$v\$" "a value like $v"
done
r del Lock:odd >/dev/null

# Among many keys, and many of them.
r eval 'for i = 1, 20000 do redis.call("SET", "k" .. i, i) end
	for i = 1, 1200 do redis.call("SET", "Lock:l" .. i, i, "PX", 3600000) end' 0 >/dev/null
is "$("$RQCTL" locks 2>&1 | tail -1)" 'rqctl: 1,000 of 1,203 locks; --all for all' 'a thousand are shown'
is "$("$RQCTL" locks --count 5000 | sed 1d | wc -l)" 1202 'or as many as are asked for'
is "$("$RQCTL" locks --json --count 2 | grep -c '"name"')" 2 'JSON: as many as are asked for'
r set Lock:big "$(head -c 100000 /dev/zero | tr '\0' x)" px 3600000 >/dev/null
ok '[ "$("$RQCTL" locks --json --count 5000 | wc -c)" -lt 500000 ]' 'long values are cut'
r flushall >/dev/null

# A name with a NUL, as keys of Redis may have, is shown whole; so is that of kind "expired".
r eval 'local name = "a\0" .. string.rep("z", 300)
	redis.call("SET", "Lock:" .. name, "x", "PX", 60000)
	redis.call("SET", "Lock:q:" .. name, "y", "PX", 60000)' 0 >/dev/null
is "$("$RQCTL" locks --json | grep '"key"' | tr -d ' ,' | sed 's/z\{300\}/Z/')" \
    "$(printf '"key":"Lock:a\\u0000Z"\n"key":"Lock:q:a\\u0000Z"')" 'JSON: a name with a NUL'
is "$("$RQCTL" locks | sed 1d | cut -d' ' -f1 | sed 's/z\{300\}/Z/')" "$(printf 'a\\x00Z\nq:a\\x00Z')" 'and in the table'
r flushall >/dev/null

# -- unlock -------------------------------------------------------------------------

fails 1 'nobody holds lock a' "$RQCTL" unlock a
fails 1 'nobody holds lock a' "$RQCTL" unlock --force -y a
r set Lock:a peer px 60000 >/dev/null
fails 75 'held by another program: "peer"; --force breaks it' "$RQCTL" unlock a
fails 64 'add -y' "$RQCTL" unlock --force a
is "$("$RQCTL" unlock --force -n a) $(r exists Lock:a)" 'would break a 1' 'dry run'
is "$("$RQCTL" unlock --force -y a) $(r exists Lock:a)" 'broke a 0' 'another program'
"$RQCTL" lock a --ttl 3s -- sleep 1000 2>"$T/err" & holder=$!
wait_for 30 '[ "$(r exists Lock:a)" = 1 ]'
is "$("$RQCTL" unlock --force -y --json a | tr -d ' \n')" '{"name":"a","broken":1,"dry_run":false}' 'rqctl, JSON'
wait $holder
is $? 76 'its holder is told'
r lpush Lock:list x >/dev/null
fails 65 WRONGTYPE "$RQCTL" unlock list
r flushall >/dev/null
r eval "for i = 1, 105000 do redis.call('SET', 'Lock:' .. i, 'x') end" 0 >/dev/null
like "$("$RQCTL" locks --json 2>&1 >/dev/null)" '^rqctl: stopped after 10[0-9]{4} locks: there may be more$' \
    'a list that is cut says so'
