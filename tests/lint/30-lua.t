#!/bin/sh
# Every script says what it is given, what it returns, what it does, and what
# sending it again does; and keeps to what every supported Redis allows.  A part
# (lua/part/) says what it needs of the scripts that include it.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

head_comment() { sed -n '/^--/!q;p' "$1"; }

documented() {
	for word in KEYS ARGV Returns Effect Again; do
		head_comment "$1" | grep -q "^-- $word  *[^ ]" || echo "$1: the head comment does not say $word"
	done
}

part_documented() {
	head_comment "$1" | grep -q "^-- $(basename "$1" .lua): [a-z]" || echo "$1: the first line does not name it"
	head_comment "$1" | grep -q '^-- Needs  *[^ ]' || echo "$1: the head comment does not say Needs"
}

# All included parts exist, and are declared once in each script.
included() {
	sed -n 's/^ *--@ include //p' "$1" | sort | uniq -d | sed "s|^|$1: included twice: |"
	sed -n 's/^ *--@ include //p' "$1" | while read -r part; do
		[ -f "$(dirname "$1")/part/$part.lua" ] || echo "$1: no part $part"
	done
	sed -n '/^ *--@/{/^--@ include [a-z_]*$/!p;}' "$1" | sed "s|^|$1: |"
}

used() {
	grep -qx -e "--@ include $(basename "$1" .lua)" "$(dirname "$1")"/../*.lua || echo "$1: no script includes it"
	sed -n '/^ *--@/p' "$1" | sed "s|^|$1: parts do not include: |"
}

# A shebang makes Redis refuse the whole script at maxmemory; SCAN and friends,
# clocks and randomness from Lua are not for scripts; os and io are not there.
allowed() {
	grep -n '^#!' "$1"
	grep -nE "call\(['\"](KEYS|SCAN|FLUSH|CONFIG|EVAL)" "$1"
	grep -nE 'os\.|io\.|math\.random' "$1" | grep -v ':--'
}

# As Redis gets it: with its parts.
whole() {
	awk -v dir="$(dirname "$1")/part/" '
		/^--@ include / { while ((getline line < (dir $3 ".lua")) > 0) print line; next }
		{ print }' "$1"
}

syntax() {
	for luac in luac5.1 luac; do
		command -v $luac >/dev/null || continue
		whole "$1" | $luac -p -
		return
	done
}

command -v luac5.1 luac >/dev/null || echo '# no luac: Redis alone says what the syntax is'
found=$(files lua src)
[ -n "$found" ] || skip_all 'no scripts yet'
for f in $found; do
	silent "$f: nothing forbidden" allowed "$f"
	case $f in
	*/part/*)
		silent "$f: head comment" part_documented "$f"
		silent "$f: used" used "$f"
		continue ;;
	esac
	silent "$f: head comment" documented "$f"
	silent "$f: parts" included "$f"
	silent "$f: syntax" syntax "$f"
done
# What a script includes is in the tarball, too.
in_the_tarball() {
	find src/queue/lua -name '*.lua' | grep '/part/' | while read -r f; do
		grep -q "[	 ]$f\( \|\$\)" Makefile.am || echo "$f is not in Makefile.am"
	done
}
silent 'every part is in the tarball' in_the_tarball
done_testing
