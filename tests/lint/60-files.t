#!/bin/sh
# Size and tidiness of the sources.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

all() {
	for ext in c h lua; do files $ext src tests bench; done
	for ext in sh t; do files $ext tests etc build-aux bench; done
	find man systemd etc doc -type f ! -name '*.png' 2>/dev/null
	for f in check demo build-static .ci/run Makefile.am configure.ac README.md HACKING.md NEWS.md; do
		[ -f "$f" ] && echo "$f"
	done
}

# Split, so that this file does not find itself.
marks() {
	all | tr '\n' '\0' | xargs -0 grep -nE "\<(TO""DO|FIX""ME|XX""X)\>"
}

blanks() {
	all | grep -v tap-driver | tr '\n' '\0' | xargs -0 grep -nE '[ 	]+$'
	all | tr '\n' '\0' | xargs -0 grep -lF "$(printf '\r')"
}

# Most lines end before column 80.
wide() {
	for ext in c h; do files $ext src tests bench; done | xargs awk '
	length > 30 {
		while ((tab = index($0, "\t")) > 0)
			$0 = substr($0, 1, tab - 1) substr("        ", 1, 8 - (tab - 1) % 8) substr($0, tab + 1)
		if (length > 100)
			print FILENAME ":" FNR ": " length " columns"
	}'
}

# Every C file begins with a comment that says what the file is.
opening() {
	for ext in c h; do files $ext src tests bench; done |
	    xargs awk 'FNR == 1 && !/^\/\*/ { print FILENAME " does not say what it is" }'
}

# A comment that sends the reader to a file names one that exists.
dangling() {
	grep -rnoE 'see ([a-z_]+/)*[a-z_]+\.[ch]\>' src tests --include='*.[ch]' | while IFS=: read -r at line text; do
		find src tests -path "*/${text#see }" | grep -q . || echo "$at:$line: $text: no such file"
	done
}

# unit.h has a main(), which runs every TEST().  Another main() must run them, too.
stranded() {
	grep -rlE '^main\(' tests --include='*.[ch]' |
	    xargs grep -lE '^[A-Z_]*TEST[A-Z_]*\(|UNIT_OWN_MAIN' | xargs grep -L 'unit_run(' |
	    sed 's/$/ has tests and no unit_run()/'
	grep -rnE 'cmocka_(unit_test|run_group)' tests --include='*.c'
}

# Words that the glossary of HACKING.md replaces, and names that readers do not have.
jargon() {
	grep -rnwE "in ha""nd|company|grow_up|be_young|berth|deaf|recall|of the contr""act" src
}

# A comment begins with the one that acts.  Looks at the first line of each comment.
riddles() {
	grep -rIlE '(/\*|#|--|\*) (Who|Whoever|Those|Ours) ' src tests bench build-aux | xargs -r awk '
	function first() { return FNR == 1 || before !~ /^[ \t]*(#|--) / }
	/\/\*+ (Who|Whoever|Those (that|who)|Ours) / ||
	/^ *\* (Who|Whoever|Those (that|who)|Ours) / && before ~ /^[ \t]*\/\*+$/ ||
	/^[ \t]*(#|--) (Who|Whoever|Those (that|who)|Ours) / && first() { print FILENAME ":" FNR ": " $0 }
	{ before = $0 }'
}

silent 'nothing is marked as unfinished' marks
silent 'no blanks at ends of lines' blanks
silent 'no line of C is too long' wide
silent 'every C file opens by saying what it is' opening
silent 'comments refer to files that exist' dangling
silent 'unit_run() runs every test' stranded
silent 'comments use the words of the glossary' jargon
silent 'comments begin with the one that acts' riddles
done_testing
