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

# All included parts exist, and are declared once in each script; "--@" is followed by words
# that build-aux/embed-lua.awk knows.
included() {
	sed -n 's/^ *--@ include //p' "$1" | sort | uniq -d | sed "s|^|$1: included twice: |"
	sed -n 's/^ *--@ include //p' "$1" | while read -r part; do
		[ -f "$(dirname "$1")/part/$part.lua" ] || echo "$1: no part $part"
	done
	grep -n '^ *--@' "$1" | grep -vE ':--@ (include [a-z_]+|(sources|for)( list| names| groups| zset| stream)+|end)$' | sed "s|^|$1:|"
	awk '/^--@ for / { on = 1 } /^--@ end/ { on = 0 } END { exit on }' "$1" || echo "$1: no --@ end"
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
	# reply.c finds the command that an ACL has denied by its line.
	awk '!/^ *--/ {
		first = ""
		for (rest = $0; match(rest, /call\(\047[A-Z]+\047/); rest = substr(rest, RSTART + RLENGTH)) {
			name = substr(rest, RSTART, RLENGTH)
			if (first != "" && name != first)
				print FILENAME ": " FNR ": two commands in a line: " $0
			first = name
		}
	}' "$1"
}

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
done
# The tarball has every part that a script includes.
in_the_tarball() {
	find src/queue/lua -name '*.lua' | grep '/part/' | while read -r f; do
		grep -q "[	 ]$f\( \|\$\)" Makefile.am || echo "$f is not in Makefile.am"
	done
}
silent 'every part is in the tarball' in_the_tarball

# fields NAME [each]: what the script's head says that it returns, or returns of each message.
fields() {
	awk -v each="$2" '
	/^-- Returns \{/ { on = 1; sub(/^-- Returns \{/, "") }
	on { sub(/^-- */, ""); text = text $0 " "; if (/\}/) exit }
	END {
		sub(/\}.*/, "", text)
		n = match(text, /,? then for each [a-z]*: */)
		if (each != "")
			text = n ? substr(text, n + RLENGTH) : ""
		else if (n)
			text = substr(text, 1, n - 1)
		sub(/, [a-z]+, \.\.\. *$/, "", text)
		gsub(/ /, "", text)
		print text
	}' "src/queue/lua/$1.lua"
}

# "FILE SCRIPT EACH FIELDS" for each enum under the comment "Returned by SCRIPT.lua".
enums() {
	find src -name '*.c' -exec awk '
	/^\/\* Returned by .*\.lua/ {
		said = $0
		each = /for each message/ ? "each" : "-"
	}
	said != "" && /^enum/ { text = "" }
	said != "" && !/^\/\*/ {
		text = text $0
		if (/\};/) {
			sub(/^[^{]*\{/, "", text)
			sub(/,[ \t]*[A-Z]+_FIELDS.*/, "", text)
			gsub(/[ \t]/, "", text)
			gsub(/(^|,)[A-Z]+_/, ",", text)
			sub(/^,/, "", text)
			while (match(said, /[a-z_]+\.lua/)) {
				print FILENAME, substr(said, RSTART, RLENGTH - 4), each, tolower(text)
				said = substr(said, RSTART + RLENGTH)
				if (!sub(/^ and /, "", said))
					break
			}
			said = text = ""
		}
	}' {} +
}

# The script decides the places of what it returns, and the enum must name the same.
# Scripts that say "as pop" and the like have no list of their own.
returns_agree() {
	enums | while read -r file script each names; do
		[ "$each" = each ] || each=
		said=$(fields "$script" "$each")
		[ "$said" = "$names" ] || echo "$file: $script.lua returns $said, the enum says $names"
	done
}
# An enum of fields without that comment would not be compared.
unnamed() {
	find src/queue src/engine src/rqctl -name '*.c' | while read -r f; do
		[ "$(grep -cE '^[^=]*[A-Z]_FIELDS( \}|,|$)' "$f")" = \
		    "$(grep -c '^/\* Returned by .*\.lua' "$f")" ] ||
			echo "$f: an enum of fields does not say which script returns them"
	done
}
silent 'enums name what scripts return' returns_agree
silent 'such an enum names its script' unnamed
done_testing
