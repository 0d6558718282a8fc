#!/bin/sh
# rqctl with a configuration that has errors: it names the first one, and the way without a file.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
mkdir "$T/d"
RQD_CONFIG=$T/main.conf
export RQD_CONFIG
printf '%s\ninclude("d/*.conf")\nqueue "first" { command = {"/bin/true"} user = "root" }\n' \
    "redis { server = \"unix:$SOCK\" }" >"$T/main.conf"
echo 'queue "good" { command = {"/bin/true"} }' >"$T/d/good.conf"
is "$("$RQCTL" push good x; echo $?)" '-
0' 'a queue of an included file'

way_out='; with --server ADDRESS no file is needed'
refused() {	# ERROR DESCRIPTION
	like "$("$RQCTL" push first x 2>&1; echo $?)" "^rqctl: $1.*$way_out" "$2"
	is "$("$RQCTL" push first x >/dev/null 2>&1; echo $?)" 78 'status'
}
for broken in 'queue "bad" { comand = {"/bin/true"} }' 'queue "bad" { lease = 1s command = {"/bin/true"} }' \
    'queue "bad" {' 'redis { server = "127.0.0.1:1" }'; do
	echo "$broken" >"$T/d/bad.conf"
	refused ".*$T/d/bad.conf:1: " "an included file: $broken"
done
rm -f "$T/d/bad.conf"
mkfifo "$T/d/bad.conf"
refused ".*main.conf:2: .*bad.conf: is not a regular file" 'a FIFO'
rm -f "$T/d/bad.conf"
echo 'queue "first" { comand = {"/bin/true"} }' >"$T/main.conf"
refused ".*main.conf:1: unknown option" 'the main file'
is "$("$RQCTL" push first x --server "unix:$SOCK"; echo $?)" '-
0' '--server works'
r flushall >/dev/null
