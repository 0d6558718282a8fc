#!/bin/sh
# The installed documents: every link leads to an installed file, and to a heading that
# is there.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

make -s -C "$BUILDDIR" install-data DESTDIR="$T/root" >"$T/install.out" 2>&1
is $? 0 'make install-data' || { note "$(tail -20 "$T/install.out")"; exit 1; }
DOCS=$T/root$(cd "$BUILDDIR" && echo 'print: ; @echo $(docdir)' | make -s --no-print-directory -f Makefile -f - print)
ok '[ -e "$DOCS/README.md" ]' 'README.md is installed'

# Headings as GitHub makes anchors of them.
anchors() { sed -n 's/^##* //p' "$1" | tr '[:upper:] ' '[:lower:]-' | sed 's/[^a-z0-9_-]//g'; }

cd "$DOCS" || exit 1
grep -oHE '\]\([^)]*\)' ./*.md | sed 's/](\(.*\))$/\1/' | grep -vE ':(https?|mailto):' >"$T/links"
ok '[ "$(wc -l <"$T/links")" -gt 30 ]' 'there are links'
while IFS=: read -r from link; do
	file=${link%%#*}
	[ -n "$file" ] || file=$from
	ok '[ -e "$file" ]' "$from: $link"
	case $link in
	*'#'*) ok 'anchors "$file" | grep -qxF -e "${link#*#}"' "$from: the heading of $link" ;;
	esac
done <"$T/links"
