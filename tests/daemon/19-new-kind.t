#!/bin/sh
# HACKING.md describes how to add a kind of queue: a file, and rows in four others.
# This test adds one to a copy of the sources, builds rqd with it, and runs it.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

cd "$SRCDIR" || exit 99
FILES='src/policy/kind.c src/policy/kind.h src/queue/queue_kinds.c src/queue/queue.h'
is "$(grep -rlE '\<KIND_(ACK|UNIQUE|STREAM|LIST|CHANNEL|PATTERN|EXPIRED)\>' src | sort | xargs)" \
    'src/policy/kind.c src/policy/kind.h src/queue/queue_kinds.c' 'no other file names a kind'

# Puts TEXT before the line of a copied file that matches; fails where none does.
before() {	# FILE REGEX TEXT
	awk -v re="$2" -v text="$3" '$0 ~ re && !done { print text; done = 1 } { print } END { exit !done }' \
	    "$T/src/$1" >"$T/new" && mv "$T/new" "$T/src/$1"
}

mkdir -p "$T/src/policy" "$T/src/queue"
for f in $FILES; do cp "$f" "$T/$f"; done
cp tests/sim/once.c "$T/src/queue/once.c"
before policy/kind.h 'KINDS,' '	KIND_ONCE,' &&
    before policy/kind.c '\[KINDS\] = NULL' '	[KIND_ONCE] = "once",' &&
    before policy/kind.c '\[KIND_ACK\] = \{' '	[KIND_ONCE] = { SOURCE_LIST, 0, NULL },' &&
    before queue/queue.h 'queue_ack;' 'extern const struct queue_ops queue_once;' &&
    before queue/queue_kinds.c '&queue_ack,' '	[KIND_ONCE] = &queue_once,'
is "$?" 0 'the rows are where they were looked for'

# Objects that are named come before those of a library that define the same.
cd "$BUILDDIR" || exit 99
built() {	# VARIABLE
	printf 'include Makefile\nshow:\n\t@echo "$(%s)"\n' "$1" | MAKEFLAGS='' make -s -o Makefile -f - show
}
build() {
	_compile=$(built COMPILE) _objects=
	for f in policy/kind queue/queue_kinds queue/once; do
		_objects="$_objects $T/$(basename $f).o"
		$_compile -iquote "$T/src" -c -o "$T/$(basename $f).o" "$T/src/$f.c" || return
	done
	# shellcheck disable=SC2046,SC2086
	$(built CCLD) $(built AM_CFLAGS) $(built CFLAGS) $(built AM_LDFLAGS) $(built LDFLAGS) \
	    -o "$T/rqd" src/rqd.o $_objects $(built rqd_LDADD) $(built LIBS)
}
build
is "$?" 0 'rqd is built with three compiled files, and all others as they are'

RQD=$T/rqd
redis_start
QUEUES=q
handler work <<'H'
cat >>"$T/ran"
H
config_write new <<C
queue "q" { kind = "once" command = {"$T/work"} }
C
rqd_run new -c "$T/new.conf" --until-empty
rqd_wait new 30
is "$STATUS" 0 'it runs'
is "$(cat "$T/ran")" hello 'and the handler gets its message'
is "$(r hget qSTATS acked)" 1 'it is counted'
config_write bad <<C
queue "q" { kind = "once" lease = 1m command = {"$T/work"} }
C
like "$("$T/rqd" -t -c "$T/bad.conf" 2>&1)" 'lease has no meaning with kind "once"' \
    'options are for kinds with their trait'
