#!/bin/sh
# The handlers of doc/cookbook.md: each takes an order, refuses what is none, and does no
# harm when it runs again; and the lines for CI.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

DOC=$SRCDIR/doc/cookbook.md
command -v python3 >/dev/null || skip_all 'no python3'
command -v jq >/dev/null || skip_all 'no jq'
mkdir "$T/out"
AS=
[ "$(id -u)" -ne 0 ] || AS='user = "root"'

program() { python3 "$SRCDIR/tests/docs/blocks.py" --program "$1" "$DOC"; }

try() {	# MESSAGE
	printf %s "$1" | "$RQCTL" -c "$T/try.conf" try q >"$T/said" 2>&1
}

handler_in() {	# LANGUAGE COMMAND
	cat >"$T/try.conf" <<C
queue "q" { command = {$2} $AS env = {"INVOICES=$T/out", "HOME=$T", "GOCACHE=$T/go"} }
C
	rm -f "$T"/out/*
	for n in first second; do
		try '{"id":7,"to":"Bonn"}'
		is $? 0 "$1: an order, the $n time" || note "$(cat "$T/said")"
		is "$(cat "$T/out/7.txt" 2>/dev/null)" 'Invoice 7 for Bonn' "$1: its invoice"
	done
	for bad in '' '{}' '{"id":"../x","to":"Bonn"}' '{"id":-1,"to":"Bonn"}' '{"id":8}' 'no json' '[]'; do
		try "$bad"
		is $? 65 "$1: $bad is no order" || note "$(cat "$T/said")"
	done
	is "$(ls -A "$T/out")" 7.txt "$1: nothing else is left"
	rm -rf "$T/out"
	try '{"id":7,"to":"Bonn"}'
	status=$?
	ok '[ $status -ne 0 ] && [ $status -ne 65 ]' "$1: no directory is a failure that is tried again"
	mkdir "$T/out"
}

for language in sh python3 php node ruby; do
	if ! path=$(command -v "$language"); then
		skip "$language: not installed"
		continue
	fi
	program "$language" >"$T/handler"
	chmod 755 "$T/handler"
	handler_in "$language" "\"$path\", \"$T/handler\""
done
if command -v go >/dev/null; then
	program go >"$T/handler.go"
	(cd "$T" && GO111MODULE=off GOCACHE=$T/go go build -o handler-go handler.go) >"$T/said" 2>&1
	handler_in go "\"$T/handler-go\""
else
	skip 'go: not installed'
fi

# In CI: what the document does with a port, on this test's Redis.
redis_start
RQD_SERVER=unix:$SOCK
INVOICES=$T/out
export RQD_SERVER INVOICES
program sh | sed "2i INVOICES=$T/out" >"$T/write-invoice"
chmod 755 "$T/write-invoice"
PATH=$BUILDDIR:$PATH
lines=$(sed -n '/^redis-server --port 6390/,/^```/p' "$DOC" | sed -e 1,2d -e '/^```/d' -e "s|-p 6390|-s $SOCK|; s|/usr/sbin/rqd|rqd|")
like "$lines" '--until-empty' 'the lines are there'
(cd "$T" && set -e && eval "$lines") >"$T/said" 2>&1
is $? 0 'the lines for CI' || note "$(cat "$T/said")"
is "$(cat "$T/out/7.txt" 2>/dev/null)" 'Invoice 7 for Bonn' 'the invoice'
