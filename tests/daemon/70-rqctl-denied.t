#!/bin/sh
# rqctl's scripts lose nothing with every command denied in turn, with every key of the
# wrong type, and at maxmemory.  A refused action can be done afterwards, once.  No
# daemon.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
RQD_SERVER=unix:$SOCK
export RQD_SERVER

# The commands that a script calls, and whose errors it does not ignore.
commands() { grep -oE "((^|[^p])call\\(|\\{)'[A-Z]{3,}'" "$SRCDIR/src/queue/lua/$1.lua" | cut -d"'" -f2 | sort -u; }

# Every message that is somewhere, once for each place: letters, and tags of
# QRETRY that have a payload.
messages() {
	r eval 'local out = {}
		for _, e in ipairs(redis.call("XRANGE", "qDEAD", "-", "+")) do
			for i = 1, #e[2], 2 do
				if e[2][i] == "message" then out[#out + 1] = e[2][i + 1] end
			end
		end
		for _, tag in ipairs(redis.call("ZRANGE", "qRETRY", 0, -1)) do
			out[#out + 1] = redis.call("HGET", "qCONTEXT", tag) or "lost"
		end
		table.sort(out)
		return table.concat(out, " ")' 0
}

letters() {
	r flushall >/dev/null
	r xadd qDEAD 1-0 id a message one reason exit >/dev/null
	r xadd qDEAD 2-0 id b message two reason exit >/dev/null
	r xadd qDEAD 3-0 id a message three reason exit >/dev/null
}
retries() {
	letters
	ctl dead retry q --all -y >/dev/null
	r del qDEAD >/dev/null
}

# FRESH VERB... ; afterwards the messages are those of $ALL, then the verb is
# done whole, and they are those of $END.
hold() { # SCRIPT FRESH VERB...
	_script=$1 _fresh=$2
	shift 2
	ok '[ "$(commands "$_script" | wc -l)" -ge 4 ]' "$1 $2: commands are found in $_script.lua"
	for _c in $(commands "$_script"); do
		$_fresh
		r acl setuser default "-$_c" >/dev/null
		"$RQCTL" "$@" >/dev/null 2>&1
		_status=$?
		r acl setuser default +@all >/dev/null
		ok "[ $_status -ne 0 ]" "$1 $2, $_c denied: fails"
		is "$(messages)" 'one three two' "$1 $2, $_c denied: none is lost, none is double"
		"$RQCTL" "$@" >/dev/null 2>&1
		is "$(messages)" "$END" "$1 $2, $_c allowed again"
	done
	for _k in qBACKUP qCONTEXT qRETRY qDELIVERY qDEAD; do
		$_fresh
		[ "$(r exists $_k)" = 0 ] || continue
		r set $_k x >/dev/null
		"$RQCTL" "$@" >/dev/null 2>&1
		r del $_k >/dev/null
		is "$(messages)" 'one three two' "$1 $2, $_k of the wrong type: none is lost"
	done
	$_fresh
	r config set maxmemory 1 >/dev/null
	"$RQCTL" "$@" >/dev/null 2>&1
	r config set maxmemory 0 >/dev/null
	is "$(messages)" "$END" "$1 $2 at maxmemory"
}

END='one three two'
hold dead_retry letters dead retry q --all -y
is "$(r exists qDEAD; r xlen qDEAD; r zcard qRETRY)" '1
0
3' 'they were moved'
hold drop retries bury q --all -y
is "$(r xlen qDEAD) $(r exists qRETRY qCONTEXT qDELIVERY)" '3 0' 'they were buried'
