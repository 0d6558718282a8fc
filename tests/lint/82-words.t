#!/bin/sh
# The English of README.md, doc/ and man/: words that are translated, not written, words of ours
# for things that have a name, and history, which a first release has not.  And the names
# of tests in the documents exist.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

# One expression each, and what to write.  (^|[^a-z]) and ([^a-z]|$) stand around it.
WORDS='anew|again, or: restarts
for ever|forever
in hand|in flight
folders?|directory
(is )?of no use|pointless
in the end|eventually
also (when|if|while|at|where)|even if, including while
some [0-9][0-9,.]*|about N
beside|in addition to, next to
but for|except
(a line each|one a line)|one per line
by hand|manually
(is|are) away|is unreachable
(goes|go) on|continues
has (begun|ended)|starts, ended
no longer|(no history)
any more|(no history)
earlier (version|build)s?|(no history)
first version|(no history)
(is|are) now|(no history)
hand(s|ed)? over|push output messages
hand-over|output messages
(whoever may|nobody|somebody is)|name the person or the program
(a|the|each|these|those) letters?|dead letter
verdicts?|result line
(messages|times) a second|per second
(knows|learns|hears|forgets)|shows, notices, receives, loses
(says?|said) (so|that|when|which|what|how|why|more)|prints, shows, reports, names
(stands?|stood) (still|there|before|behind)|waits, is blocked, is, precedes, follows
(is|are) told|receives, is configured'

# The prose of a page, each line in its place: no blocks, code, links, comments, tables of
# the benchmark; of a man page no blocks and no macros, which hold names.
prose() {	# FILE
	case $1 in
	man/*)
		awk '/^\.Bd -literal/ { block = 1 } /^\.Ed/ { block = 0 } { print block || /^\./ ? "" : $0 }' "$1"
		return ;;
	esac
	awk '
	/^<!-- (peers|bench) -->/ { printed = 1 }
	/^<!-- end (peers|bench) -->/ { printed = 0 }
	/^ *```/ { block = !block; print ""; next }
	printed || block || /^    / || /^ *<!--/ { print ""; next }
	{ gsub(/`[^`]*`/, "CODE"); gsub(/\]\([^)]*\)/, "]"); print }' "$1"
}

pages() { printf '%s\n' README.md doc/*.md man/*.[1-8]; }

words() {
	pages | while read -r f; do
		prose "$f" >"$D/prose"
		echo "$WORDS" | while read -r line; do
			grep -niE "(^|[^a-z])(${line%|*})([^a-z]|\$)" "$D/prose" | while IFS= read -r found; do
				echo "$f:$found (write: ${line##*|})"
			done
		done
	done
}

# A line is a sentence or two; tables may be wider.
wide() {
	pages | while read -r f; do
		prose "$f" | awk -v f="$f" '!/^ *\|/ && length($0) > 420 { print f ":" NR ": " length($0) " columns" }'
	done
}

tests_exist() {
	cat doc/*.md tests/README.md | grep -oE '`(daemon|docs|fault|fuzz|handler|lint|lua|redis|system|unit)/[a-z0-9_-]+\.[ct]`' |
	    tr -d '`' | sort -u | while read -r t; do
		[ -f "tests/$t" ] || echo "there is no tests/$t"
	done
}

D=$(mktemp -d /tmp/rqd-words.XXXXXX) || exit 99
trap 'rm -rf "$D"' EXIT
trap 'exit 99' HUP INT TERM
silent 'no words that we do not use' words
silent 'no paragraph in one line' wide
silent 'the tests that documents name exist' tests_exist
done_testing
