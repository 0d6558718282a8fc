#!/bin/sh
# rqctl: where it finds its configuration, mistakes, help, completion.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start

fails() { # STATUS REGEX COMMAND...
	_want=$1 _re=$2
	shift 2
	_out=$("$@" 2>&1 </dev/null)
	_status=$?
	is "$_status" "$_want" "status of $*"
	like "$_out" "^rqctl: .*$_re" "words of $*"
	is "$(printf '%s\n' "$_out" | wc -l)" 1 "one line of $*"
}

# -- configuration -----------------------------------------------------------------

config_write one <<'C'
queue "orders" { command = {"/bin/cat"} }
queue "mail" { key = "post"  command = {"/bin/cat"} }
C
config_write two <<'C'
redis { server = "unix:/nonexistent/socket" }
queue "two" { command = {"/bin/cat"} }
C
is "$("$RQCTL" -c "$T/one.conf" queues --names | tr '\n' ' ')" 'orders mail ' 'queues of -c'
is "$(RQD_CONFIG=$T/one.conf "$RQCTL" queues --names | tr '\n' ' ')" 'orders mail ' 'queues of $RQD_CONFIG'
is "$(RQD_CONFIG=$T/one.conf "$RQCTL" -c "$T/two.conf" queues --names)" two '-c comes first'
is "$("$RQCTL" -c "$T/one.conf" push mail x && r llen post)" '-
1' 'a queue has the key that its section says'
fails 69 '' "$RQCTL" -c "$T/two.conf" ping
is "$("$RQCTL" -c "$T/two.conf" --server "unix:$SOCK" push two x)" - '--server over the server of -c'
is "$(RQD_CONFIG=$T/two.conf "$RQCTL" --server "unix:$SOCK" push anything x)" - '--server alone: no file'
is "$("$RQCTL" -c "$T/two.conf" -o "redis.server=unix:$SOCK" push two x)" - '-o over the file'
fails 64 'no queue "ordrs".*did you mean orders' "$RQCTL" -c "$T/one.conf" push ordrs x
fails 64 'it has: orders, mail' "$RQCTL" -c "$T/one.conf" push zzzzzz x
fails 78 'none.conf' "$RQCTL" -c "$T/none.conf" ping
printf 'qeue "x" { }\nlease = 5\n' >"$T/bad.conf"
fails 78 'bad.conf:1.* more' "$RQCTL" -c "$T/bad.conf" ping
fails 78 '' "$RQCTL" --server 'host:port:port' ping
fails 78 '--server: .*: write sentinel://MASTER@HOST:PORT,HOST:PORT$' \
    "$RQCTL" --server sentinel://a:1 ping
like "$("$RQCTL" -c "$T/one.conf" queues)" '^mail +ack +post +1 +1m +25 +/bin/cat$' 'queues: a table'
is "$("$RQCTL" -c "$T/one.conf" status | tail -n +3 | cut -d' ' -f1 | tr '\n' ' ')" 'mail orders ' 'status: all of the file, the queue in trouble first'

fails 69 'Connection refused: is Redis running there\? Start it, or correct the address' \
    "$RQCTL" --server 127.0.0.1:1 ping
for verb in running daemons 'show q 1' 'dead list q' 'purge q --dead -y'; do
	is "$("$RQCTL" --server 127.0.0.1:1 $verb 2>&1 | grep -c refused)" 1 "$verb: says once that Redis is down"
done

# -- refusals of Redis ---------------------------------------------------------------

r acl setuser ann on '>secret' '~*' +@all >/dev/null
r config set requirepass secret >/dev/null
fails 77 'NOAUTH .*: write the password into a file, and its name into redis.password_file' \
    "$RQCTL" --server "unix:$SOCK" ping
r -a secret --no-auth-warning config set requirepass '' >/dev/null
r acl setuser default -llen >/dev/null
like "$(ctl status q | tail -1)" 'error: NOPERM' 'a command that is denied shows at the queue'
r acl setuser default +llen -lpush >/dev/null
fails 77 'NOPERM' "$RQCTL" --server "unix:$SOCK" push q x
r acl setuser default +lpush >/dev/null

# -- mistakes, help --------------------------------------------------------------------

fails 64 'rqctl help' "$RQCTL"
fails 64 'did you mean status' "$RQCTL" statsu
fails 64 'needs one of: list' "$RQCTL" dead
fails 64 'did you mean --json' "$RQCTL" status --jsn
fails 64 'no verb' "$RQCTL" help frobnicate
fails 64 '"foo" is too much: rqctl help status' "$RQCTL" help status foo
fails 64 '"foo" is too much: rqctl help dead list' "$RQCTL" help dead list foo
fails 64 'dead needs one of: list' "$RQCTL" help dead foo
is "$("$RQCTL" help dead)" "$("$RQCTL" dead --help)" 'help of a group and GROUP --help'
is "$("$RQCTL" help push)" "$("$RQCTL" push --help)" 'help VERB and VERB --help'
is "$("$RQCTL" help)" "$("$RQCTL" --help)" 'help and --help'
like "$("$RQCTL" --version)" '^rqctl [0-9]' '--version'
like "$("$RQCTL" help dead)" 'rqctl dead retry' 'help of a group'
wide=$({
	"$RQCTL" help
	"$RQCTL" help --completion words -- '' | cut -f1 | while read -r verb; do
		"$RQCTL" help "$verb"
		"$RQCTL" help --completion words -- "$verb" '' | cut -f1 | while read -r word; do
			"$RQCTL" help "$verb" "$word" 2>/dev/null
		done
	done
} | awk 'length > 80')
is "$wide" '' 'help fits into 80 columns'
ok '[ "$("$RQCTL" help | wc -l)" -le 25 ]' 'and into a terminal of 25 lines'
like "$("$RQCTL" help schedules)" '^usage: rqctl schedules ' 'help of a verb that is a group, too'
"$RQCTL" help >/dev/full 2>/dev/null
is $? 74 'output that cannot be written'
{ "$RQCTL" -c "$T/one.conf" queues --json; echo $? >"$T/status"; } | :
like "$(cat "$T/status")" '^(0|141)$' 'a pipe that nobody reads'

# -- completion ---------------------------------------------------------------------------

for shell in bash zsh; do
	"$RQCTL" help --completion $shell >"$T/completion.$shell"
	file=$BUILDDIR/etc/completion/rqctl
	[ $shell = zsh ] && file=$BUILDDIR/etc/completion/_rqctl
	ok 'cmp -s "$T/completion.$shell" "$file"' "$file is current"
done
if command -v bash >/dev/null; then
	offers() { # WORD...: what could stand for the last one
		PATH=$(dirname "$RQCTL"):$PATH bash --norc -c '. "$1"; shift
			COMP_WORDS=(rqctl "$@"); COMP_CWORD=$#; compopt() { :; }
			COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
			_rqctl; printf "%s " "${COMPREPLY[@]}"' - "$T/completion.bash" "$@"
	}
	is "$(offers pa)" 'pause ' 'bash: a verb'
	is "$(offers dead re)" 'retry ' 'bash: a word of a group'
	is "$(offers dead retry --ra)" '--rate= ' 'bash: an option of the verb'
	is "$(offers -c "$T/one.conf" push o)" 'orders ' 'bash: a queue of the file'
	# Without a file the names are what any daemon, or who poses as one, wrote to Redis.
	printf "queue '%s' { command = {\"/bin/true\"} }\n" '$(touch pwned)' 'two words' >"$T/evil.conf"
	is "$(cd "$T" && offers -c evil.conf push '')" '\$\(touch\ pwned\) two\ words ' 'bash: names are quoted'
	is "$(cd "$T" && offers -c evil.conf push two)" 'two\ words ' 'bash: one of them'
	ok '[ ! -e "$T/pwned" ]' 'bash: and not run'
fi
if command -v zsh >/dev/null; then
	ok 'zsh -n "$T/completion.zsh"' 'zsh: can be read'
fi
