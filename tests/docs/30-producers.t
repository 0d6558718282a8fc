#!/bin/sh
# The producers of doc/producers.md, with the real clients: each pushes its order, and
# each notices that Redis refuses it, or is not there.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

DOC=$SRCDIR/doc/producers.md
command -v python3 >/dev/null || skip_all 'no python3'
PORT=$(free_port)
redis_start --port "$PORT" --bind 127.0.0.1
MORE_KEYS=orders
RQD_SERVER=127.0.0.1:$PORT
# Where Debian keeps modules of Node; its own node looks there by itself.
NODE_PATH=/usr/share/nodejs
PATH=$BUILDDIR:/usr/bin:$PATH
export RQD_SERVER NODE_PATH PATH

# Runs the program of a language, from the document, against the Redis at $1.
produce() {	# PORT LANGUAGE
	python3 "$SRCDIR/tests/docs/blocks.py" --program "$2" "$DOC" | sed "s/6379/$1/" >"$T/program"
	[ -s "$T/program" ] || { echo 'no such program'; return 0; }
	_run=$2
	[ "$2" != rqctl ] || _run='sh'
	RQD_SERVER=127.0.0.1:$1 timeout 30 "$_run" "$T/program" >"$T/said" 2>&1
}

producer() {	# LANGUAGE 'COMMAND that fails where its client is missing'
	if ! eval "$2" >/dev/null 2>&1; then
		skip "$1: no client for Redis"
		return
	fi
	r config set maxmemory 0 >/dev/null
	r del orders >/dev/null
	produce "$PORT" "$1"
	is $? 0 "$1: it pushes" || note "$(cat "$T/said")"
	is "$(r lpop orders | jq -c . 2>/dev/null)" '{"id":"o-7","to":"Bonn"}' "$1: this order"
	r config set maxmemory 1 >/dev/null
	produce "$PORT" "$1"
	ok "[ $? -ne 0 ]" "$1: a full Redis is noticed"
	like "$(cat "$T/said")" 'OOM|maxmemory' "$1: and named"
	r config set maxmemory 0 >/dev/null
	is "$(r llen orders)" 0 "$1: nothing was pushed"
	produce 1 "$1"
	ok "[ $? -ne 0 ] && [ $? -ne 124 ]" "$1: no Redis is noticed"
}

command -v jq >/dev/null || skip_all 'no jq'
producer rqctl true
producer sh true
producer python3 '/usr/bin/python3 -c "import redis"'
producer php 'php -r "new Redis();"'
producer node 'node -e "require(\"redis\")"'
producer ruby 'ruby -e "require \"redis\""'
