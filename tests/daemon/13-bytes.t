#!/bin/sh
# Any bytes that a producer pushes reach the handler unchanged, once.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
handler keep <<'H'
sum=$(sha256sum)
echo "${sum%% *} $RQD_ID" >>"$T/got"
H
rqd_start <<C
queue "q" { command = {"$T/keep"} concurrency = 4 }
C

sent=0
push_file() {	# FILE
	sha256sum <"$1" | cut -d ' ' -f 1 >>"$T/sent"
	r -x lpush q <"$1" >/dev/null
	sent=$((sent + 1))
}
push() {	# TEXT, as printf takes it
	# shellcheck disable=SC2059
	printf "$1" >"$T/message"
	push_file "$T/message"
}
id_of() { grep "^$(printf '%s' "$1" | sha256sum | cut -d ' ' -f 1)" "$T/got" | cut -d ' ' -f 2-; }

push ''
push '\000'
push 'a\000b\000'
push '{"id":1}\000junk'
push '\n'
push 'no newline at the end'
push 'one at the end\n'
push '\r\n'
push '*1\r\n$4\r\nPING\r\n'
push '\377\376\200'
push 'not json'
push '{"id":'
push '[]'
push '"id"'
push 'null'
push '{}'
push '{"id":null}'
push '{"id":1.5}'
push '{"id":true}'
push '{"id":{"id":9}}'
push '{"id":""}'
push '{"id":"a b"}'
push '{"id":"ev\\u0000il"}'
push '{"id":"two\\nlines"}'
push '{"id":"--force"}'
push '{"id":"$(touch /tmp/x)`id`"}'
push '{"id":"\303\244\342\202\254"}'
push '{"id":"\377"}'
push '{"id":9007199254740993}'
push '{"id":-0}'
push '{"id":123456789012345678901234567890}'
push '{"id":1e400}'
push '{"x":[[[[[[[[]]]]]]]],"id":"deep"}'
push "{\"id\":\"$(printf '%0200d' 0)\"}"
push "{\"id\":\"$(printf '%0201d' 0)\"}"
push "{\"id\":\"$(printf '%0100000d' 0)\"}"
for i in 1 2 3; do push '{"id":"equal"}'; done
for i in 1 2 3; do push "{\"id\":\"same id\",\"n\":$i}"; done
for i in 1 2 3; do push 'equal'; done
printf '%100000s' '' | tr ' ' '[' >"$T/message"
push_file "$T/message"
printf '{"id":"padded","pad":"%070000d"}' 0 >"$T/message"
push_file "$T/message"
head -c 1048576 /dev/urandom >"$T/message"
push_file "$T/message"
head -c 65536 /dev/zero >"$T/message"
push_file "$T/message"

wait_for 30 '[ "$(wc -l <"$T/got")" -ge "$sent" ]'
sort "$T/sent" >"$T/sent.sorted"
cut -d ' ' -f 1 "$T/got" | sort >"$T/got.sorted"
is "$(diff "$T/sent.sorted" "$T/got.sorted")" '' "$sent messages: each arrived as it was pushed, once"
wait_for 10 '[ "$(log_count event=acked)" -ge "$sent" ]'
is "$(log_count event=acked)" "$sent" 'all were acked'

is "$(id_of '{"id":9007199254740993}')" 9007199254740993 'an integer keeps its digits'
is "$(id_of '{"id":"a b"}')" 'a b' 'an id may have a blank'
is "$(id_of '{"id":"--force"}')" '--force' 'or look like an option'
is "$(id_of '{"x":[[[[[[[[]]]]]]]],"id":"deep"}')" deep 'the id may stand anywhere on the first level'
is "$(id_of "{\"id\":\"$(printf '%0200d' 0)\"}")" "$(printf '%0200d' 0)" '200 bytes are an id'
for odd in '{"id":null}' '{"id":1.5}' '{"id":""}' '{"id":{"id":9}}' '[]' \
    '{"id":"two\nlines"}' '{"id":"ev\u0000il"}' "{\"id\":\"$(printf '%0201d' 0)\"}"; do
	like "$(id_of "$odd")" '^~' "made up: $(printf '%.30s' "$odd")"
done
is "$(grep -c ' equal$' "$T/got")" 3 'RQD_ID is the id, however many have it'
wait_ok 15 'no_keys' 'no key is left but QSTATS'
