#!/bin/sh
# Every script says what it is given, what it returns, what it does, and what
# sending it again does; and keeps to what every supported Redis allows.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

head_comment() { sed -n '/^--/!q;p' "$1"; }

documented() {
	for word in KEYS ARGV Returns Effect Again; do
		head_comment "$1" | grep -q "^-- $word  *[^ ]" || echo "$1: the head comment does not say $word"
	done
}

# A shebang makes Redis refuse the whole script at maxmemory; SCAN and friends,
# clocks and randomness from Lua are not for scripts; os and io are not there.
allowed() {
	grep -n '^#!' "$1"
	grep -nE "call\(['\"](KEYS|SCAN|FLUSH|CONFIG|EVAL)" "$1"
	grep -nE 'os\.|io\.|math\.random' "$1" | grep -v ':--'
}

syntax() {
	for luac in luac5.1 luac; do
		command -v $luac >/dev/null || continue
		$luac -p "$1"
		return
	done
}

found=$(files lua src)
[ -n "$found" ] || skip_all 'no scripts yet'
for f in $found; do
	silent "$f: head comment" documented "$f"
	silent "$f: nothing forbidden" allowed "$f"
	silent "$f: syntax" syntax "$f"
done
done_testing
