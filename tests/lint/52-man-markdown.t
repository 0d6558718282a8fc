#!/bin/sh
# doc/man has the manual pages for a browser: they are made of man/, and each document that
# names a page links to it.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

command -v mandoc >/dev/null || skip_all 'no mandoc'

fresh() {
	for page in man/*.[1-8]; do
		build-aux/man-markdown "$page" | cmp -s - "doc/$page.md" ||
		    echo "doc/$page.md is not what \"build-aux/man-markdown $page\" prints"
	done
	for md in doc/man/*.md; do
		page=${md#doc/}
		[ -e "${page%.md}" ] || echo "$md has no page"
	done
}

# Outside of code and headings.
linked() {
	for f in README.md HACKING.md NEWS.md doc/*.md; do
		awk -v f="$f" '/^ *```/ { code = !code } !code && !/^(    |#)/ { print f ":" FNR ": " $0 }' "$f"
	done | sed 's/\[[^]]*\]([^)]*)//g' | grep -E '[^a-z./-](rqd|rqd\.conf|rqctl|rqd-[a-z]+)\([1578]\)'
}

targets() {
	grep -noE '\]\([^)#]*man/[^)]*\.md' README.md HACKING.md NEWS.md doc/*.md | while IFS=: read -r f n link; do
		[ -e "$(dirname "$f")/${link#](}" ] || echo "$f:$n: ${link#](}: no such page"
	done
	grep -noE 'href="[^"#]+' doc/man/*.md | while IFS=: read -r f n link; do
		[ -e "doc/man/${link#href=\"}" ] || echo "$f:$n: ${link#href=\"}: no such page"
	done
	for md in doc/man/*.md; do
		sed -n 's/^##* //p' "$md" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9\n-' >"$D"
		grep -noE 'href="#[^"]+' "$md" | while IFS=: read -r n link; do
			grep -qxF -e "${link#href=\"#}" "$D" || echo "$md:$n: ${link#href=\"}: no such section"
		done
	done
}

D=$(mktemp /tmp/rqd-anchors.XXXXXX) || exit 99
trap 'rm -f "$D"' EXIT
silent 'doc/man is made of man/' fresh
silent 'a document that names a manual page links to it' linked
silent 'links to manual pages, and within them, lead somewhere' targets
done_testing
