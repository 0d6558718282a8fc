#!/bin/sh
# The examples of persistent handlers, each in the daemon: good messages, bad ones, and
# a ledger that cannot be written to.  The test says which interpreters are missing.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
cp "$SRCDIR"/etc/examples/persistent/ledger.* "$T"
chmod 755 "$T"/ledger.*
# Compilers of sanitized builds may want their runtime: this one is plain.
if cc -O1 -Wall -Wextra -Werror -o "$T/ledger.bin" "$T/ledger.c" -ljansson 2>"$T/cc.out"; then
	set -- bin
else
	set --
	if command -v cc >/dev/null; then fail 'the C example compiles'; note "$(cat "$T/cc.out")"; else note 'no cc'; fi
fi
has() {	# PROGRAM EXTENSION: where it is, the first line of the example is made to fit
	p=$(command -v "$1") || { note "no $1"; return 1; }
	case $2 in sh) return 0 ;; esac
	sed -i "1s|^#!.*|#!$p|" "$T/ledger.$2"
}
for pair in sh:sh python3:py perl:pl php:php node:js; do
	if has "${pair%:*}" "${pair#*:}"; then set -- "$@" "${pair#*:}"; fi
done

message() {	# LANGUAGE NUMBER
	case $1 in
	sh) echo "account$2 $2" ;;
	*) echo "{\"id\":$2,\"account\":\"account$2\",\"amount\":$2.5}" ;;
	esac
}

for l in "$@"; do
	framing=length
	[ "$l" = sh ] && framing=line
	for kind in good full; do
		ledger=$T/$l.book
		[ $kind = full ] && ledger=/dev/full
		cat <<C
queue "$l-$kind" {
	command = {"$T/ledger.$l"} mode = "persistent" framing = "$framing" pipeline = 8
	env = {"LEDGER=$ledger"} max_attempts = 1 concurrency = 2
}
C
	done
	for i in $(seq 30); do
		printf "LPUSH $l-good '%s'\n" "$(message "$l" "$i")"
	done >"$T/push"
	printf "LPUSH $l-good '%s'\n" 'nonsense' '' '{"id":99,"account":"x"}' >>"$T/push"
	printf "LPUSH $l-full '%s'\n" "$(message "$l" 7)" >>"$T/push"
	r <"$T/push" >/dev/null
done >"$T/conf"
rqd_start <"$T/conf"

for l in "$@"; do
	wait_ok 60 "[ \"\$(log_count 'event=(acked|dead) queue=$l-good ')\" -eq 33 ]" "$l: all are answered"
	is "$(sort -u "$T/$l.book" | wc -l) $(wc -l <"$T/$l.book")" '30 30' "$l: the good ones are booked, once"
	like "$(cat "$T/$l.book")" '^[^ ]+ account17 17(\.50)?$' "$l: as they should be"
	is "$(log_count "event=dead queue=$l-good .*reason=answer.*answer=")" 3 "$l: the bad ones never will be"
	wait_ok 60 "log_count 'event=dead queue=$l-full .*reason=attempts.*answer=.*([Ss]pace|I/O)' >/dev/null" "$l: a full disk is worth another try"
	is "$(log_count "event=handler_exited queue=$l-")" 0 "$l: all that with the same processes"
done
rqd_stop
is "$(log_count 'event=handler_exited .*status=0 .*reason=closed')" \
    "$(log_count 'event=handler_started')" 'each ends at the end of its input'
