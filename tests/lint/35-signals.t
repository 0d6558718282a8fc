#!/bin/sh
# Signal handlers do next to nothing.  Nearly all signals come through libevent, whose
# handler writes a byte to a socket.  The few functions that the kernel calls directly
# may set a `volatile sig_atomic_t`, and nothing else: no call, no lock, no allocation.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

# FILE FUNCTION of everything that is made a handler.
handlers() {
	files c src | while read -r f; do
		{ cat "$f"; grep -oE '\{ SIG[A-Z]+, [a-z_]+ \}' "$f"; } |
		    sed -nE -e 's/.*\.sa_(handler|sigaction) = ([A-Za-z_]+)([^][A-Za-z_].*|$)/\2/p' \
		    -e 's/^\{ SIG[A-Z]+, ([a-z_]+) \}$/\1/p' \
		    -e 's/.*(^|[^a-z_])signal\([^,()]*, ([A-Za-z_]+)\).*/\2/p' |
		    grep -v '^SIG_' | sed "s|^|$f |"
	done
}

# The statements of a function, without its braces.
body() {	# FILE FUNCTION
	awk -v name="$2" '$0 ~ "^" name "\\(" { on = 1; next }
	    on && /^}/ { exit }
	    on && !/^{/ { print }' "$1"
}

unsafe() {
	handlers | while read -r f fn; do
		body "$f" "$fn" >"$D/body"
		[ -s "$D/body" ] || { echo "$f: $fn is a handler, but not in this file"; continue; }
		while read -r line; do
			case $line in
			'(void)signo;' | '') continue ;;
			esac
			var=$(echo "$line" | sed -nE 's/^([a-z_]+) = [a-z0-9]+;$/\1/p')
			if [ -z "$var" ]; then
				echo "$f: $fn: $line"
			elif ! grep -q "volatile sig_atomic_t $var\>" "$f"; then
				echo "$f: $fn: $var is not volatile sig_atomic_t"
			fi
		done <"$D/body"
	done
}

known() {
	[ "$(handlers | wc -l)" -ge 1 ] || echo "found: $(handlers)"
}

D=$(mktemp -d /tmp/rqd-signals.XXXXXX) || exit 99
trap 'rm -rf "$D"' EXIT
silent 'the handlers are found' known
silent 'a handler sets a volatile sig_atomic_t, and nothing else' unsafe
done_testing
