#!/bin/sh
# Wrong configurations, as rqd -t reports them: each error with its file and line, what is wrong and
# what to write instead.  Of a file with wrong syntax the first such error counts.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
cd "$T" || exit 99
unset TEST_UNSET
# With privileges every queue would need a user.
as=$([ "$(id -u)" -eq 0 ] && echo '-o privileged=false')

# Runs rqd -t with a file of this text.  Q{ begins a queue, SCHEDULE is within a schedule.
check_text() {	# TEXT
	text=$1
	while :; do
		case $text in
		*'Q{'*) text=${text%%'Q{'*}'queue "q" { command = {"/bin/true"}'${text#*'Q{'} ;;
		*SCHEDULE*) text=${text%%SCHEDULE*}'schedule "s" { queue = "q"'${text#*SCHEDULE} ;;
		*CLUSTER*) text=${text%%CLUSTER*}'redis { cluster = "a" }'${text#*CLUSTER} ;;
		*) break ;;
		esac
	done
	printf '%b' "$text" >t.conf
	# shellcheck disable=SC2086
	$RQD_WRAPPER "$RQD" -t $as -c t.conf >/dev/null 2>err </dev/null
	status=$?
}

# The beginning of each wanted error stands in the output.  lines: how many errors there are.
has() {	# WANT...
	for want; do
		lines=0 found=
		while IFS= read -r line; do
			case $line in
			'rqd: warning: '*) ;;
			"rqd: t.conf:$want"*) found=1 lines=$((lines + 1)) ;;
			*) lines=$((lines + 1)) ;;
			esac
		done <err
		[ -n "$found" ] || return 1
	done
	[ $status -eq 78 ]
}

result() {	# STATUS DESCRIPTION WANT...
	report "$1" "$2" && return
	note "exit $status, $(cat err)"
	shift 2
	note "expected: $*"
}

# Reports these errors and no others.
bad() {	# TEXT WANT...
	check_text "$1"
	description=$1
	shift
	has "$@" && [ "$lines" -eq $# ]
	result $? "$description" "$@"
}

# Wrong syntax: this error is reported, others may follow from it.
syntax() {	# TEXT WANT
	check_text "$1"
	has "$2"
	result $? "$1" "$2"
}

# -- sections, strings and comments without their end: the error names their beginning --------

syntax 'queue "a" {\n' '1: queue "a" is not closed: "}" is missing'
syntax '\n\nredis {\n' '3: redis is not closed'
syntax 'schedule "a" {\n' '1: schedule "a" is not closed'
syntax 'queue "a" {\ncommand={"/a"}\nqueue "b" { command={"/a"} }\n' \
    '1: queue "a" is not closed: "}" is missing before queue "b" in line 3'
syntax 'max_handlers = 1\n/* x\n\n' '2: this comment is not closed: "*/" is missing'
syntax 'max_handlers = 1 /* x */ /*' '1: this comment is not closed'
syntax 'queue "a" { /* x }\n' '1: this comment is not closed'
syntax 'name = "a\n\n' '1: this string is not closed: " is missing'
syntax "name = 'a" "1: this string is not closed: ' is missing"
syntax "name = 'a\\\\'" "1: this string is not closed"
syntax 'name = "a\\' '1: this string is not closed'
syntax 'queue "a" {\n user = "bob\n group = "x"\n env = {"A=b"}\n}\n' '2: this string is not closed'
syntax 'queue "a" {\n command = {"/a", '\''two\nlines'\''}\n user = "bob\n}\n' '4: this string is not closed'
syntax 'defaults { nice = 1\nenv = {"A=b"\nlease = 5s }' '2: this list is not closed: "}" is missing'
syntax 'defaults {\nenv = {"A=b"' '2: this list is not closed'
syntax '}\n' '1: unexpected "}": no section is open here'
syntax 'redis { }\n}\nmax_handlers = 0\n' '2: unexpected "}"'

# -- syntax that libconfuse would accept, or blame on another line ---------------------------

syntax 'max_handlers = *5\n' '1: stray "*": put text with such characters into quotes'
syntax '\nname = "a"\n$\n' '3: stray "$"'
syntax 'max_handlers = 5;\n' '1: '
syntax 'name = \0303\0251\n' '1: stray "'
syntax 'name = a\0001b\n' '1: stray "\x01"'
syntax 'name = "a" "b"\n' '1: unexpected '
syntax '\nname = \n' '2: the value of name is missing'
syntax '\nname = }\n' '2: the value of name is missing'
syntax 'defaults {\n lease =\n nice = 3 }\n' '3: value "nice" for lease is not a duration'
syntax 'max_handlers == 3\n' '1: the value of max_handlers is missing'
syntax '\nmax_handlers 5\n' '2: "=" is missing after max_handlers'
syntax 'drain_timeout = 20 s\n' '1: unexpected "s"'
syntax 'defaults { nice = 1 2 3 }\n' '1: unexpected "2"'
syntax '\nenv += {"A=b"}\n' '2: '
syntax 'defaults {\nenv += {"A=b"} }' '2: stray "+"'
syntax '\nredis { server = {"a"\n"b"} }' '3: '
syntax 'redis { server = {,"a"} }' '1: unexpected '
syntax 'redis { server = {{"a"}} }' '1: unexpected "{" in a list'
syntax '"x" = 3\n' '1: unexpected '
syntax '\n= 3\n' '2: '
syntax 'name = a${HOME:-x}\n' '1: unexpected "${HOME:-x}"'
syntax '\nname = ${HOME:-x}y\n' '2: '
bad 'max_handlers = {5}\n' '1: max_handlers takes one value, not a list'
syntax 'queue { command = {"/a"} }\n' '1: '
syntax 'schedule { every = 5m }\n' '1: '
syntax '\nlog "x" { }\n' '2: '
syntax 'redis {\n foo { }\n}\n' '2: foo: there are no sections inside of sections'
syntax 'redis { include("x") }\n' '1: include stands outside of all sections only'
syntax 'include "x"\n' '1: '
syntax '\ninclude()\n' '2: write include("/path/*.conf")'
syntax '\ninclude("a", "b")\n' '2: write include("/path/*.conf")'

# -- lines after comments and long strings -----------------------------------------------------

bad '# a\n# b\n# c\nbogus = 1\n' '4: unknown option "bogus"'
bad '// a\n/* b\nc */ /* d */\n\nbogus = 1\n' '5: unknown option "bogus"'
bad 'name = "a\\\n\\\nb" // x\nbogus = 1\n' '4: unknown option "bogus"'
bad 'defaults { env = { # the program\n "A=1", // two\n /* three\n */ "B",\n "RQD_X=1"\n} }' \
    '4: "B" in env: write "NAME=value"'
bad '/* a\n*/bogus = 1\n' '2: unknown option "bogus"'
bad '\r\n\r\nbogus = 1\r\n' '3: unknown option "bogus"'
bad '\0357\0273\0277\nbogus = 1' '2: unknown option "bogus"'
bad 'name = '\''a#b//c/*d'\'' bogus=1' '1: unknown option "bogus"'
bad 'name = "a"\n\nx\0000y' '3: this line has a NUL byte: save the file as plain text'
bad '\0377\0376n\0000a\0000' '1: the file is UTF-16: save it as UTF-8'

# -- escapes and variables in strings ----------------------------------------------------------

bad 'name = "\\d"\n' '1: bad escape "\d'
bad 'name = "\\0"\n' '1: bad escape "\0" in a string: write'
bad 'name = "\\1234"\n' '1: bad escape "\1" in'
bad 'name = "\\400"\n' '1: bad escape "\4" in'
bad 'name = "\\8"\n' '1: bad escape "\8" in'
bad 'name = "\\x"\n' '1: bad escape "\x" in'
bad 'name = "\\x00"\n' '1: bad escape "\x" in'
bad 'name = "\n\n\\d \\q"\n' '3: bad escape "\d' '3: bad escape "\q'
bad 'name = "\\d"\nmax_handlers = 0' '1: bad escape "\d' '2: value 0 for max_handlers'
bad 'queue "q" {\ncommand = {"/a", "\\d",\n"${TEST_UNSET}"}\nnice = 99 }' '2: bad escape "\d' \
    '3: ${TEST_UNSET} is not set' '4: value 99 for nice'
bad 'name = "${RQD_TEST_UNSET}"\n' '1: ${RQD_TEST_UNSET} would be replaced now, not when the handler runs: in a command put it into single quotes'
bad 'name = "\n${TEST_UNSET}"\n' '2: ${TEST_UNSET} is not set in the environment: set it, write ${TEST_UNSET:-default}'
bad 'name = ${TEST_UNSET}\n' '1: ${TEST_UNSET} is not set'
bad 'max_handlers = ${TEST_UNSET}\n' '1: ${TEST_UNSET} is not set'
bad 'name = "${RQD_ID:-x}"\n' '1: ${RQD_ID} would be replaced now'
bad 'name = "${TEST_UNSET"\n' '1: "${" is not closed'
bad 'name = "${A\nB}"\n' '1: "${" is not closed'
bad 'name = "${}"\n' '1: "${}" is not ${NAME} or ${NAME:-default}'
bad 'name = "${1}"\n' '1: "${1}" is not ${NAME}'
bad 'name = "${A%%b}"\n' '1: "${A%%b}" is not ${NAME}'
bad 'name = "${A-b}"\n' '1: "${A-b}" is not ${NAME}'
bad 'name = "${#A}"\n' '1: "${#A}" is not ${NAME}'

# -- unknown names -----------------------------------------------------------------------------

bad 'foo { a = 1 b { c = 2 } }\nbar = 1\n' '1: unknown section "foo"' '2: unknown option "bar"'
bad 'queues "a" { }\n' '1: unknown section "queues"; did you mean queue?'
bad 'default { }\n' '1: unknown section "default"; did you mean defaults?'
bad 'shedule "a" { }\n' '1: unknown section "shedule"; did you mean schedule?'
bad 'include = "x"\n' '1: unknown option "include"'
bad 'foo = {"a", # }\n "b"} fo = 3\n\nbar = "}"\n' '1: unknown option "foo"' '2: unknown option "fo"' '4: unknown option "bar"'
bad 'schedule "a" { every = 5m }\n' '1: schedule "a" has no queue: write queue ='
bad 'max_handler = 1\n' '1: unknown option "max_handler"; did you mean max_handlers?'
bad 'Q{ timelimit = 1s }' '1: unknown option "timelimit"; did you mean time_limit?'
bad 'Q{ \nlevel = "info" }' '2: level does not belong here: it stands in log { }'
bad 'lease = 5s\n' '1: lease does not belong here: it stands in queue'
bad 'log { server = "a" }\n' '1: server does not belong here: it stands in redis { }'
bad 'defaults { key = "a" }\n' '1: key does not belong here: it stands in queue "NAME" { } only'
bad 'Q{ \nnice = 1\n# x\nnice = 2 }' '4: nice is given twice (first at t.conf:2)'
bad 'log { level = "info" }\nlog { level = "info" }\n' '2: level is given twice (first at t.conf:1)'
bad 'max_handlers = 1\nmax_handlers = 1\nmax_handlers = 1\n' '2: max_handlers is given twice' \
    '3: max_handlers is given twice'

# -- values --------------------------------------------------------------------------------------

bad 'Q{ concurrency = 10001 }' '1: value 10001 for concurrency is out of range 0 to 10000: '
bad 'Q{ concurrency = -1 }' '1: value -1 for concurrency is out of range'
bad 'Q{ concurrency = 99999999999999999999 }' '1: value 99999999999999999999 for'
bad 'Q{ concurrency = 0x10 }' '1: value "0x10" for concurrency is not a whole number'
bad 'Q{ concurrency = two }' '1: value "two" for concurrency is not a whole number: write 0 to 10000'
bad 'Q{ concurrency = "" }' '1: value "" for concurrency is not a whole number'
bad 'Q{ concurrency = 1.5 }' '1: value "1.5" for concurrency is not'
bad 'Q{ lease = 30 }' '1: value 30 for lease has no unit: write 30s'
bad 'Q{ lease = 2s }' '1: value 2s for lease is out of range 3s to 1d'
bad 'Q{ lease = 25h }' '1: value 25h for lease is out of range'
bad 'Q{ lease = 1w }' '1: value "1w" for lease is not a duration such as 30s'
bad 'Q{ time_limit = 1us }' '1: value "1us" for time_limit is not a duration'
bad 'Q{ time_limit = 0.5ms }' '1: value 0.5ms for time_limit is out of range 1ms to 365d or 0'
bad 'Q{ dead_max_age = 59s }' '1: value 59s for dead_max_age is out of range 1m to 3650d or 0'
bad 'Q{ message_max = 513M }' '1: value 513M for message_max is out of range 1 to 512M'
bad 'Q{ memory_max = 1023K }' '1: value 1023K for memory_max is out of range 1M to 1024T or 0'
bad 'Q{ memory_max = inherit }' '1: value "inherit" for memory_max is not a size'
bad 'Q{ pids_max = -1 }' '1: value -1 for pids_max is out of range 0 to 4194304'
bad 'Q{ pids_max = 4194305 }' '1: value 4194305 for pids_max is out of range 0 to 4194304'
bad 'Q{ message_max = 0 }' '1: value 0 for message_max is out of range'
bad 'Q{ message_max = 16MB }' '1: value "16MB" for message_max is not a size such as 64K'
bad 'Q{ limit_as = 1025T }' '1: value 1025T for limit_as is out of range 1M to 1024T or "inherit"'
bad 'Q{ limit_cpu = 500ms }' '1: value 500ms for limit_cpu is not a whole number of seconds'
bad 'Q{ limit_nofile = none }' '1: value "none" for limit_nofile is not a whole number: write 16 to'
bad 'Q{ nice = 20 }' '1: value 20 for nice is out of range -20 to 19'
bad 'Q{ priority = 1001 }' '1: value 1001 for priority is out of range'
bad 'Q{ max_attempts = 0 }' '1: value 0 for max_attempts is out of range'
bad 'Q{ umask = 8 }' '1: value "8" for umask is not an octal number'
bad 'Q{ umask = 1777 }' '1: value "1777" for umask is not an octal number'
bad 'redis { database = -1 }' '1: value -1 for database is out of range'
bad 'redis { timeout = 1ms }' '1: value 1ms for timeout is out of range 100ms to 10m'
bad 'log { payloads = maybe }' '1: value "maybe" for payloads: write true or false'
bad 'Q{ kind = "ackk" }' '1: kind "ackk" is unknown: write "ack"'
bad 'Q{ mode = "x" }' '1: mode "x" is unknown: write "exec"'
bad 'Q{ output = "x" }' '1: output "x": write "log", "none", or'
bad 'log { level = "INFO" }' '1: level "INFO" is unknown: write "error" or'
bad 'log { target = "rqd.log" }' '1: target "rqd.log": write'
bad 'Q{ dead_status = {0} }' '1: value 0 for dead_status is out of range 1 to 255'
bad 'Q{ dead_status = {65,\n256} }' '2: value 256 for dead_status is out of range'
bad 'Q{ dead_status = 127 }' '1: value 127 for dead_status: 126 and 127 mean'
bad 'Q{ dead_status = {x} }' '1: value "x" for dead_status is not a whole number'
bad 'Q{ env = {"=x"} }' '1: "=x" in env: write "NAME=value"'
bad 'Q{ env = {"1A=x"} }' '1: "1A=x" in env'
bad 'Q{ env = {"RQD_ID=x"} }' '1: RQD_ID in env: names that begin with RQD_'
bad 'Q{ directory = "tmp" }' '1: "tmp" is not an absolute path'
bad 'Q{ directory = "" }' '1: an empty path'
bad 'Q{\n env_message = {"TO",\n "=to", "TO="} }' '2: "TO" in env_message: write "NAME=member"'
bad 'Q{ env_message = {"A=a",\n "1A=x"} }' '2: "1A=x" in env_message: write "NAME=member"'
bad 'Q{ env_message = {"A-B=x"} }' '1: "A-B=x" in env_message'
for name in RQD_ID RQD_NEW LD_PRELOAD LD_X PATH IFS BASH_ENV ENV SHELLOPTS BASHOPTS BASH_FUNC_x PS4 \
    PROMPT_COMMAND GCONV_PATH GLIBC_TUNABLES LOCPATH NLSPATH MALLOC_CHECK_ HOSTALIASES RES_OPTIONS GETCONF_DIR \
    LOCALDOMAIN; do
	bad "Q{ env_message = {\"ENVX=x\", \"PATHS=x\",\n\n \"$name=x\"} }" "3: $name in env_message: a message cannot set this variable"
done
# An interpreter obeys them: a warning for each, at its line.
for name in PYTHONPATH PYTHONSTARTUP PERL5OPT PERL5LIB PERLLIB RUBYOPT RUBYLIB NODE_OPTIONS NODE_PATH PHPRC \
    PHP_INI_SCAN_DIR LUA_INIT LUA_PATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH GEM_HOME \
    BUNDLE_GEMFILE GIT_SSH_COMMAND TCLLIBPATH AWKPATH ERL_FLAGS R_LIBS OPENSSL_CONF SSH_ASKPASS PAGER EDITOR HOME \
    TMPDIR SHELL; do
	printf 'queue "q" { command = {"/bin/true"}\nenv_message = {"MY_%s=x", "%sX_=x",\n"%s=x"} }\n' $name X$name $name >t.conf
	# shellcheck disable=SC2086
	$RQD_WRAPPER "$RQD" -t $as -c t.conf 2>err
	is "$? $(grep env_message err)" "0 rqd: warning: t.conf:3: env_message sets $name, by which a program may run what the producer of a message chooses: take another name" \
	    "env_message: a warning of $name"
done
bad 'Q{\n env_message = {"A=a",\n "B=a",\n "A=b"} }' '4: env_message sets A twice'
bad 'defaults {\n env_message = {"A=a", "A=b"} }\nQ{ }' '2: env_message sets A twice'
bad "Q{ env_message = {$(seq -s, 32 | sed 's/[0-9]*/"A&=a"/g'),\n\"B=b\"} }" '2: env_message has more than 32 variables'
bad 'Q{ mode = "persistent"\n env_message = {"A=a"} }' '2: env_message has no meaning with kind "ack" and mode "persistent"'
bad 'Q{ batch = 2\n env_message = {"A=a"} }' '2: env_message has no meaning with kind "ack" and mode "exec" if batch is above 1'
bad 'Q{ env_message = "A"\n }' '1: "A" in env_message'
bad 'Q{ env_file = "x" }' '1: "x" is not an absolute path'
bad 'Q{ key = "a\\nb" }' '1: "a\nb" has control characters'
bad 'Q{ key = "\\xe9" }' '1: "'
bad 'queue "q" { }\n' '1: queue "q" has no command: write command = {'
bad 'queue "q" { command = {} }\n' '1: queue "q" has no command: write command = {'
bad 'queue "q" { command = {"true"} }\n' '1: the command "true" is not an absolute path'
bad 'queue "q" {\ncommand = "/bin/echo a  b" }\n' \
    '2: command is a list of words, and no shell splits it: write {"/bin/echo", "a", "b"}'

# -- where Redis is ------------------------------------------------------------------------------

bad 'redis { server = {} }' '1: no server: write host:port'
bad 'redis { server = "redis://a" }' '1: "redis://a" is a URL'
bad 'redis { server = {"a:1",\n"b:x"} }' '2: "b:x": the port must be'
bad 'redis { sentinel = "s1" }' '1: sentinel without master: write the name'
bad 'redis {\nmaster = "m" }' '2: master has no meaning without sentinel'
bad 'redis { sentinel_username = "u" }' '1: sentinel_username has no meaning'
bad 'redis { sentinel = "unix:/s" master = "m" }' \
    '1: sentinel "unix:/s": write host:port; a Sentinel has no unix socket'
bad 'redis { sentinel = {"a",\n"b:x"} master = "m" }' '2: "b:x": the port'
bad 'redis { server = "a"\nsentinel = "s1" master = "m" }' \
    '2: server at t.conf:1 says where Redis is: remove that, or sentinel'
bad 'redis { server = "sentinel://s1" }' '1: "sentinel://s1": write sentinel://MASTER@HOST:PORT'
bad 'redis { server = "sentinel://m@s1"\nmaster = "m" }' \
    '1: server gives the Sentinels, and so does master: remove one'
bad 'redis { cluster = "unix:/s" }' '1: cluster "unix:/s": write host:port'
bad 'redis { cluster = {"a",\n"b:x"} }' '2: "b:x": the port'
bad 'redis { server = "a"\ncluster = "c1" }' \
    '2: server at t.conf:1 says where Redis is: remove that, or cluster'
bad 'redis { cluster = "c1"\nsentinel = "s1" master = "m" }' \
    '2: cluster at t.conf:1 says where Redis is: remove that, or sentinel'
bad 'redis { server = "cluster://" }' '1: "cluster://": write cluster://HOST:PORT,HOST:PORT'
bad 'redis { server = "cluster://a"\ncluster = "b" }' \
    '1: server gives the cluster, and so does cluster: remove one'
bad 'redis { cluster = "a"\nmaster = "m" }' '2: master has no meaning without sentinel'
bad 'redis { cluster = "a"\ndatabase = 1 }' '2: database 1 with cluster: a Redis Cluster has database 0 only'
bad 'CLUSTER\nqueue "o" { command = {"/bin/true"} }' '2: the key "o" of queue "o" has no hash tag'
bad 'CLUSTER\nqueue "o" { command = {"/bin/true"}\nkey = "{}o" }' \
    '3: the key "{}o" of queue "o" has no hash tag'
bad 'CLUSTER\nqueue "j" { command = {"/bin/true"} kind = "unique" }' \
    '2: the key "Queue:j" of queue "j" has no hash tag'
bad 'CLUSTER\nqueue "{e}" { command = {"/bin/true"} kind = "expired"\ndatabase = 2 }' \
    '3: database 2: a Redis Cluster has database 0 only'
bad 'CLUSTER\nqueue "o" { shards = 4 command = {"/bin/true"}\nkey = "{o}" }' \
    '3: the key "{o}" of a queue with shards has a brace'
bad 'CLUSTER\nqueue "o" { key = "{o}" command = {"/bin/true"}\npushes = {"t"} }\nqueue "t" { shards = 4 command = {"/bin/true"} }' \
    '3: pushes names "t", and queue "t" has shards'
bad 'CLUSTER\nqueue "o" { key = "{o}" command = {"/bin/true"}\npushes = {"t"} }\nqueue "t" { key = "{t}" command = {"/bin/true"} }' \
    '3: pushes names "t", whose key "{t}" is in another slot of the cluster than "{o}"'
bad 'CLUSTER\nqueue "o" { key = "{o}" command = {"/bin/true"}\ndelayed_key = "o:delayed" }' \
    '3: the delayed_key "o:delayed" is in another slot of the cluster than "{o}": give both one hash tag'
bad 'redis { tls_cert = "/a" }' '1: tls_cert and tls_key go together'

# -- pushes --------------------------------------------------------------------------------------

bad 'Q{ output = "file" }' '1: output "file": write "log", "none", or "push:QUEUE"'
bad 'Q{ output = "push:" }' '1: output "push:": write "log"'
bad 'Q{ push_max = 0 }' '1: value 0 for push_max is out of range 1 to 10000'
bad 'Q{ pushes = "r" }' '1: pushes is a list of words'
bad 'Q{ \npushes = {"r"} }' \
    '2: pushes names "r", and there is no queue of this name: add queue "r" { concurrency = 0 } if others consume it'
bad 'Q{ \npushes = {"r"} }queue r { kind = stream concurrency = 0 }' \
    '2: pushes names "r", a queue of kind "stream": handlers can push to queues of kind "ack" only'
bad 'Q{ \noutput = "push:r" }queue r { concurrency = 0 }' \
    '2: output = "push:r", and pushes does not list "r": write pushes = {"r"}'
bad 'Q{ \nmode = persistent pushes = {"r"}\noutput = "push:r" }queue r { concurrency = 0 }' \
    '3: output = "push:r" has no meaning with mode "persistent"'
bad 'Q{ \nkind = list pushes = {"r"} }queue r { concurrency = 0 }' '2: pushes has no meaning with kind "list"'
bad 'Q{ \nkind = list output = "push:r" }queue r { concurrency = 0 }' \
    '2: output = "push:r" has no meaning with kind "list", which does not keep'

# -- on_dead --------------------------------------------------------------------------------------

bad 'Q{ on_dead = "alerts" }' '1: on_dead "alerts": write "push:QUEUE" with the name of a queue, or ""'
bad 'Q{ on_dead = "push:" }' '1: on_dead "push:": write "push:QUEUE"'
bad 'Q{ kind = list on_dead = "push:r" }queue r { concurrency = 0 }' '1: on_dead has no meaning with kind "list"'
bad 'Q{\non_dead = "push:r" }' '2: on_dead names "r", and there is no queue of this name: add queue "r" { concurrency = 0 }'
bad 'Q{\non_dead = "push:r" }queue r { kind = unique concurrency = 0 }' '2: on_dead names "r", a queue of kind "unique"'
bad 'Q{\non_dead = "push:q" }' '2: on_dead of queue "q" leads back to itself: write on_dead = "" in queue "q"'
bad 'Q{\non_dead = "push:r" }\nqueue r { concurrency = 0\non_dead = "push:s" }\nqueue s { concurrency = 0\non_dead = "push:q" }' \
    '2: on_dead of queue "q" leads back to itself: write on_dead = "" in queue "r"' \
    '4: on_dead of queue "r" leads back' '6: on_dead of queue "s" leads back'
bad 'defaults {\non_dead = "push:r" }\nQ{}queue r { concurrency = 0 }' '2: on_dead of queue "r" leads back to itself'
bad 'Q{\non_dead = "push:r" }queue r { concurrency = 0 message_max = 15K }' '2: on_dead names "r", whose message_max is below 16K: write message_max = 16K there'
bad 'Q{\non_dead = "push:r" on_dead_message = true }queue r { concurrency = 0 message_max = 128K }' \
    '2: on_dead names "r", whose message_max is below 256K: write message_max = 256K there'
bad 'CLUSTER\nqueue "o" { key = "{o}" command = {"/bin/true"}\non_dead = "push:t" }\nqueue "t" { key = "{t}" concurrency = 0 }' \
    '3: on_dead names "t", whose key "{t}" is in another slot of the cluster than "{o}"'
bad 'CLUSTER\nqueue "o" { key = "{o}" command = {"/bin/true"}\non_dead = "push:t" }\nqueue "t" { shards = 2 concurrency = 0 }' \
    '3: on_dead names "t", and queue "t" has shards'

# -- queues of other systems ---------------------------------------------------------------------

bad 'Q{ id = "" }' '1: id "": write the name of a member, such as "jid": 1 to 32 letters'
bad 'Q{ id = "a b" }' '1: id "a b": write the name of a member'
bad "Q{ id = '%d' }" '1: id "%d": write the name of a member'
bad 'Q{ id = "aaaaaaaaaabbbbbbbbbbccccccccccddd" }' '1: id "aaaaaaaaaabbbbbbbbbbccccccccccddd": write'
bad 'Q{ kind = stream id = "jid" pop = left }' '1: pop has no meaning with kind "stream"' \
    '1: id has no meaning with kind "stream"'
bad 'Q{ pop = "middle" }' '1: pop'
bad 'Q{ \nkind = list delayed_key = "later" }' '2: delayed_key has no meaning with kind "list"'
bad 'defaults { delayed_key = "later" }\nQ{}' '1: delayed_key does not belong here'
bad 'Q{ \ndelayed_key = "qDEAD" }' '2: the delayed_key "qDEAD" is a key that queue "q" (t.conf:1) uses'
bad 'Q{ \ndelayed_key = "r" }queue r { concurrency = 0 }' '2: the delayed_key "r" is a key that queue "r" (t.conf:2) uses'
bad 'Q{ \ndelayed_key = "later" }\nqueue r { delayed_key = "later" concurrency = 0 }' \
    '2: the delayed_key "later" is a key that queue "r" (t.conf:3) uses' \
    '3: the delayed_key "later" is a key that queue "q" (t.conf:1) uses'
bad 'Q{ shards = 2\ndelayed_key = "later" }' '2: delayed_key cannot be used with shards'

# -- options that contradict each other ----------------------------------------------------------

bad 'Q{ backoff = 2h }' '1: backoff 2h is longer than backoff_max 1h'
bad 'Q{ \nbackoff_max = 1s }' '2: backoff 5s is longer than backoff_max 1s'
bad 'defaults {\nbackoff = 2h }\nQ{}queue "r" { command = {"/a"} }' '2: backoff 2h is longer'
bad 'defaults {\nnice = 99 }\nQ{}queue "r" { command = {"/a"} }' '2: value 99 for nice is out of range'
bad 'defaults {\nnice = 99 }\n' '2: value 99 for nice is out of range'

# -- queues against each other -------------------------------------------------------------------

bad 'Q{}\n\nQ{}\nQ{}' '3: queue "q" is defined twice (first at t.conf:1)' \
    '4: queue "q" is defined twice (first at t.conf:3)'
bad 'Q{}\nqueue "r" { command = {"/a"}\nkey = "q" }' \
    '3: queue "r" has the same key as queue "q" (t.conf:1): "q"'
bad 'Q{}\nqueue "qDEAD" { command = {"/a"} }\nqueue "x" { command = {"/a"} key = "qRATE" }' \
    '2: the key "qDEAD" of queue "qDEAD" is one that queue "q" (t.conf:1) uses' \
    '3: the key "qRATE" of queue "x" is one that queue "q" (t.conf:1) uses'
bad 'queue "qSTATS" { command = {"/a"} }\nQ{}' \
    '1: the key "qSTATS" of queue "qSTATS" is one that queue "q" (t.conf:2) uses'
bad 'Q{ kind = "stream" consumer_group = "" }' '1: a consumer group must have a name'
bad 'Q{ key = "rqd:daemons" }' '1: the key "rqd:daemons" is one that daemons use'
bad 'Q{ key = "rqd:daemons:queues" }' '1: the key "rqd:daemons:queues" is one that daemons use'
bad 'queue "" { command = {"/a"} }' '1: queue "": a name has 1 to 200 bytes'
bad 'queue "a\0351" { command = {"/a"} }' '1: queue "a'
bad 'queue "a\\tb" { command = {"/a"} }' '1: queue "a\x09b": a name has'

# -- shards --------------------------------------------------------------------------------------

bad 'Q{ \nshards = 12 }' '2: shards 12 is not a power of two'
bad 'Q{ shards = 0 }' '1: value 0 for shards is out of range 1 to 256'
bad 'Q{ shards = 512 }' '1: value 512 for shards is out of range 1 to 256'
bad 'Q{ shards = 2\nshards_drain = 3 }' '2: shards_drain 3 is not a power of two'
bad 'Q{ shards = 8\nrate = "1/s" }' '2: rate cannot be used with shards'
bad 'Q{ shards_drain = 8\nrate = "1/s"\nfleet_concurrency = 1 }' '2: rate cannot be used with shards' \
    '3: fleet_concurrency cannot be used with shards'
bad 'Q{ shards = 2\nkey = "{q}" }' '2: the key "{q}" of a queue with shards has a brace'
bad 'queue "a}" { command = {"/a"}\nshards = 2 }' '2: the key "a}" of a queue with shards has a brace'
bad 'Q{ kind = "list"\nshards = 2 }' '2: shards has no meaning with kind "list"'
bad 'Q{ shards = 2\ngroup_by = "g" }' '2: group_by cannot be used with shards'
bad 'Q{ kind = "unique"\ngroup_by = "g" }' '2: group_by has no meaning with kind "unique"'
bad 'Q{ group_by = "a\"b" }' '1: group_by "a"b": write the name of a member'
bad 'Q{ group_concurrency = 101 }' '1: value 101 for group_concurrency is out of range 1 to 100'
bad 'defaults {\nshards = 2 }\nQ{}' '2: shards'
bad 'Q{ shards = 2 }\nqueue "r" { command = {"/a"} key = "{q.0}" }' \
    '2: the key "{q.0}" of queue "r" is one that queue "q" (t.conf:1) uses'
bad 'queue "r" { command = {"/a"} key = "{q.0}DEAD" }\nQ{ shards = 2 }' \
    '1: the key "{q.0}DEAD" of queue "r" is one that queue "q" (t.conf:2)'

# -- schedules -----------------------------------------------------------------------------------

bad 'Q{}SCHEDULE  }' '1: schedule "s" does not say when: write every = 1h or cron'
bad 'Q{}SCHEDULE cron = ""\nevery = 0s }' '2: schedule "s" does not say when: write every'
bad 'Q{}SCHEDULE every = 1h\ncron = @daily }' '2: schedule "s" has both every and cron'
bad 'Q{}SCHEDULE every = 999ms }' '1: value 999ms for every is out of range 1s to 365d or 0'
bad 'Q{}SCHEDULE every = 1500ms }' '1: every is a whole number of seconds'
bad 'Q{}SCHEDULE \ncron = "0 0 30 feb *" }' '2: cron "0 0 30 feb *": no month of these'
bad 'Q{}SCHEDULE cron = "61 * * * *" }' \
    '1: cron "61 * * * *": "61" in the field for the minute: write 0 to 59'
bad 'Q{}SCHEDULE cron = @daily timezone = "../x" }' '1: "../x" is not the name of a timezone'
bad 'Q{}SCHEDULE every = 1h catch_up = 1 }' '1: value "1" for catch_up: write true or false'
bad 'Q{}SCHEDULE every = 1h lease = 5s }' '1: lease does not belong here: it stands in queue'
bad 'Q{ every = 1h }' '1: every does not belong here: it stands in schedule "NAME" { }'
bad 'Q{}SCHEDULE every = 1h }\nschedule "s" { queue = "q" every = 1h }' \
    '2: schedule "s" is defined twice (first at t.conf:1)'
bad 'schedule "s" { every = 1h\nqueue = "r" }\nQ{}' '2: there is no queue "r"'
bad 'Q{ message_max = 3 }\nschedule "s" { queue = "q" every = 1h message = "four" }' \
    '2: the message is longer than message_max of queue "q"'
bad 'Q{ kind = channel }\nschedule "s" { every = 1h queue = "q" }' \
    '2: queue "q" is of kind channel, which holds no messages'
bad 'Q{ kind = unique }\nschedule "s" { queue = "q" every = 1h message = "a\nb" }' \
    '2: the messages of queue "q" are ids'
bad 'schedule "a\nb" { queue = "q" every = 1h }Q{}' '1: schedule "a\nb": a name'

# -- options of kinds and modes ------------------------------------------------------------------

bad 'Q{ fleet_concurrency = -1 }' '1: value -1 for fleet_concurrency is out of range'
bad 'Q{ rate = "100" }' '1: rate "100": write "100/s"'
bad 'Q{ rate = "0/s" }' '1: rate "0/s" is out of range'
bad 'Q{ rate = "1/w" }' '1: rate "1/w": write'
bad 'Q{ kind = unique pop = "left" }' '1: pop has no meaning with kind "unique"'
bad 'Q{ key = {"a", "b"} }' '1: key takes one value with kind "ack"'
bad 'Q{ kind = "channel" key = {"a", "b", "a"} }' '1: key names "a" twice'
bad 'Q{ kind = "channel" key = {"a", ""} }' '1: one of several keys is empty'
bad 'Q{ kind = "pattern" dead_status = 3 }' '1: dead_status has no meaning with kind "pattern"'
bad 'Q{ match = x }' '1: match has no meaning with kind "ack"'
bad 'Q{ kind = expired skew = 50ms }' '1: value 50ms for skew is out of range 100ms to 1d'
bad 'Q{ kind = expired notifications = on }' '1: notifications "on" is unknown: write "check" or "set"'
bad 'Q{ kind = expired database = -2 }' '1: value -2 for database is out of range'
bad 'Q{ backlog = 3 }' '1: backlog has no meaning with kind "ack"'
bad 'Q{ kind = "list" pop = "top" }' '1: pop "top" is unknown: write "right" or "left"'
bad 'Q{ kind = "list"\nlease = 30s dead_max = 5 }' '2: lease has no meaning with kind "list"' \
    '2: dead_max has no meaning'
bad 'Q{ pipeline = 3 }' '1: pipeline has no meaning with kind "ack" and mode "exec"'
bad 'http { listen = "localhost:80" }' '1: "localhost:80": localhost is not an address'
bad 'http { listen = "127.0.0.1" }' '1: "127.0.0.1": write an address and a port'

# -- errors of many kinds in one file: none hides another ----------------------------------------

bad '# x\nbogus = 1\nredis { timeout = 5 }\nQ{ nice = 99 lease = 1\nfoo = 2 }\nlog { level = '\''x'\'' }\nQ{}\nfoo { }' \
    '2: unknown option "bogus"' '3: value 5 for timeout' '4: value 99 for nice' '4: value 1 for lease' \
    '5: unknown option "foo"' '6: level "x"' '7: queue "q" is defined twice (first at t.conf:4)' \
    '8: unknown section "foo"'

# -- included files ------------------------------------------------------------------------------

# Reports these errors, which name their files, and no others.
include() {	# TEXT WANT...
	check_text "$1"
	shift
	is "$status $(grep -v warning: err | cut -c 6- | cut -c 1-60)" "78 $(printf '%s\n' "$@" | cut -c 1-60)" "include: $1"
}

include 'include("nothing.conf")\n' 't.conf:1: include: there is no file nothing.conf'
mkdir d folder.d
include '\ninclude("f*er.d")' 't.conf:2: folder.d: is a directory'
mkfifo fifo.conf
include '\n\ninclude("fifo.conf")' 't.conf:3: fifo.conf: is not a regular file'
include '\ninclude("t.conf")' 't.conf:2: include: t.conf is being read already: it includes itself'
printf '\n\ninclude("../t.conf")' >d/back.conf
include 'include("d/back.conf")' 'd/back.conf:3: include: d/../t.conf is being read already: it includes itself'
rm d/back.conf
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do echo "include(\"deep$((i + 1)).conf\")" >deep$i.conf; done
include 'include("deep1.conf")' 'deep15.conf:1: include: more than 16 files deep' 2>/dev/null
printf '# x\nqueue "q" { command = {"/a"}\nnice = 99 }\nmax_handlers = 4' >d/2.conf
printf '\nredis {' >d/10.conf
printf '# x\nname = "a' >d/3.conf
include 'max_handlers = 3\ninclude("d/*.conf")\nlease = 1s\nbogus = 1\ninclude("none.d/*.conf")' \
    't.conf:3: lease does not belong here: it stands in queue "NAME" { } or defaults { }' \
    't.conf:4: unknown option "bogus"' 'd/10.conf:2: redis is not closed: "}" is missing at the end of the file' \
    'd/2.conf:3: value 99 for nice is out of range -20 to 19 or "inherit": the nice value' \
    'd/2.conf:4: max_handlers is given twice (first at t.conf:1)' \
    'd/3.conf:2: this string is not closed: " is missing'
rm d/10.conf d/3.conf
include 'max_handlers = 3\ninclude("d/*.conf")\nQ{}' \
    't.conf:3: queue "q" is defined twice (first at d/2.conf:2)' \
    'd/2.conf:3: value 99 for nice is out of range -20 to 19 or "inherit": the nice value' \
    'd/2.conf:4: max_handlers is given twice (first at t.conf:1)'
for file in missing.conf /tmp /dev/null; do
	# shellcheck disable=SC2086
	$RQD_WRAPPER "$RQD" -t $as -c $file 2>err
	is "$? $(grep -c "^rqd: $file: " err)" '78 1' "$file is no configuration"
done
