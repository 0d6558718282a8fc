#!/bin/sh
# rqctl with a configuration that has errors: it uses the parts that are right.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
mkdir "$T/d"
RQD_CONFIG=$T/main.conf
export RQD_CONFIG
main() { # SERVER-SECTION
	printf '%s\ninclude("d/*.conf")\nqueue "first" { command = {"/bin/true"} user = "root" }\n' "$1" >"$T/main.conf"
}
main "redis { server = \"unix:$SOCK\" }"
echo 'queue "good" { command = {"/bin/true"} }' >"$T/d/good.conf"

# -- an included file with errors -----------------------------------------------------------

for broken in 'queue "bad" { comand = {"/bin/true"} }' 'queue "bad" { lease = 1s command = {"/bin/true"} }' \
    'queue "first" { command = {"/bin/true"} }' 'queue "bad" {' 'redis { server = "127.0.0.1:1" }'; do
	echo "$broken" >"$T/d/bad.conf"
	is "$("$RQCTL" push good x 2>"$T/err"; echo $?)" '-
0' "push, beside: $broken"
	like "$(head -1 "$T/err")" "^rqctl: warning: .*$T/d/bad.conf:1" 'it says what is wrong'
	is "$(tail -1 "$T/err")" 'rqctl: warning: skipped 1 file with errors' 'and what follows'
	is "$("$RQCTL" push first x 2>/dev/null; echo $?)" '-
0' 'a queue of the main file'
done
like "$("$RQCTL" pause bad 2>&1; echo $?)" 'there is no queue "bad" in .*main.conf and the files without errors; with --server ADDRESS, rqctl takes the name as the key' \
    'a queue that may stand in the file'
is "$("$RQCTL" pause bad --server "unix:$SOCK")" 'paused bad' 'and so it is'
r del badPAUSED >/dev/null
if [ "$(id -u)" -eq 0 ]; then
	echo 'queue "bad" { command = {"/bin/true"} }' >"$T/d/bad.conf"
	chown 65534 "$T/d/bad.conf"
	is "$("$RQCTL" push good x 2>"$T/err"; echo $?)" '-
0' "a file that is not root's"
	like "$(head -1 "$T/err")" 'bad.conf: does not belong to root' 'it says so'
fi
rm -f "$T/d/bad.conf"
mkfifo "$T/d/bad.conf"
is "$("$RQCTL" push good x 2>/dev/null; echo $?)" '-
0' 'a FIFO'
rm -f "$T/d/bad.conf"
echo 'queue "bad" {' >"$T/d/bad.conf"
"$RQD" -t -c "$T/main.conf" >/dev/null 2>&1
is $? 78 'rqd itself leaves nothing out'

# -- where it cannot be known which Redis is meant --------------------------------------------

main ''
echo 'redis { server = "unix:'"$SOCK"'" databse = 1 }' >"$T/d/bad.conf"
like "$("$RQCTL" push good x 2>&1; echo $?)" "d/bad.conf:1: .*; with --server ADDRESS no file is needed" 'the file names the server'
is "$("$RQCTL" push good x >/dev/null 2>&1; echo $?)" 78 'status'
is "$("$RQCTL" push good x -o "redis.server=unix:$SOCK" 2>/dev/null; echo $?)" '-
0' 'unless it is told'

# -- errors in the main file ------------------------------------------------------------------

echo 'queue "first" { comand = {"/bin/true"} }' >"$T/main.conf"
like "$("$RQCTL" push first x 2>&1; echo $?)" 'main.conf:1: .*; with --server ADDRESS no file is needed' 'it names the way out'
is "$("$RQCTL" push first x --server "unix:$SOCK"; echo $?)" '-
0' 'which works'
r flushall >/dev/null
