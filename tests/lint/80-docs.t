#!/bin/sh
# Compares the programs with their documentation, in both directions.  The test asks the
# programs where it can (rqd -T, rqd -h, rqctl help).  It takes names from the sources
# only if no program lists them.  Examples must be right, too.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

RQD=$BUILDDIR/rqd RQCTL=$BUILDDIR/rqctl
[ -x "$RQD" ] && [ -x "$RQCTL" ] || skip_all 'rqd and rqctl are not built'
unset RQD_CONFIG RQD_SERVER RQD_OPTIONS
D=$(mktemp -d /tmp/rqd-docs.XXXXXX) || exit 99
trap 'rm -rf "$D"' EXIT
trap 'exit 99' HUP INT TERM

# -- helpers -------------------------------------------------------------------

# Compares two lists, one a line: A has what B lacks, and the reverse.
same() {	# FILE WHAT-IT-IS FILE WHAT-IT-IS
	sort -u "$1" >"$D/a"
	sort -u "$3" >"$D/b"
	[ -s "$D/a" ] || echo "$2: nothing found"
	comm -23 "$D/a" "$D/b" | sed "s|\$|: $2, but not $4|"
	comm -13 "$D/a" "$D/b" | sed "s|\$|: $4, but not $2|"
}

# A section of a man page, by the text behind .Sh.
section() {	# FILE NAME
	awk -v name="$2" '/^\.Sh / { in_it = substr($0, 5) == name; next } in_it' "$1"
}

# One subsection of it.
subsection() {	# FILE SECTION NAME
	section "$1" "$2" | awk -v name="$3" '/^\.Ss / { in_it = substr($0, 5) == name; next } in_it'
}

# All of C.
sources() { files c src | tr '\n' '\0' | xargs -0 cat; }

# The literal blocks of a page, each in a file $D/NAME.N, as they are printed.
blocks() {	# FILE NAME
	awk -v out="$D/$2" '
	/^\.Bd -literal/ { n++; f = out "." n; in_it = 1; next }
	/^\.Ed/ { if (in_it) close(f); in_it = 0 }
	in_it { print > f }' "$1"
	for block in "$D/$2".*; do
		[ -f "$block" ] || continue
		sed -i 's/\\e/\\/g; s/\\-/-/g; s/\\(dq/"/g; s/\\&//g' "$block"
	done
}

# -- rqd.conf(5) -----------------------------------------------------------------

CONF=man/rqd.conf.5
AS='command = {"/bin/true"}'
[ "$(id -u)" -ne 0 ] || AS="$AS user = \"root\""
# A queue of each kind and mode that has options of its own.
SAMPLE="queue \"q\" { $AS }
queue \"l\" { kind = \"list\" $AS }
queue \"c\" { kind = \"channel\" $AS }
queue \"e\" { kind = \"expired\" $AS }
queue \"p\" { mode = \"persistent\" $AS }
queue \"s\" { kind = \"stream\" $AS }"
SAMPLE="$SAMPLE schedule \"s\" { queue = \"q\" every = 1h }"
echo "$SAMPLE" >"$D/sample.conf"

# SECTION.OPTION for each option that -T prints; those outside of sections have none.
printed_options() {
	"$RQD" -T -c "$1" | awk '
	/^[ \t]*#/ { next }
	$NF == "{" { section = $1 "."; next }
	$1 == "}" { section = ""; next }
	/^[ \t]*[a-z_]+ *=/ { sub(/=.*/, ""); gsub(/[ \t]/, ""); print section $0 }'
}

documented_options() {
	awk '
	/^\.Sh [A-Z]+ OPTIONS/ { section = $2 == "GLOBAL" ? "" : tolower($2) "." }
	/^\.It Ic [a-z_]+ No =/ { print section $3 }' $CONF
}

options() {
	printed_options "$D/sample.conf" >"$D/printed"
	documented_options >"$D/documented"
	same "$D/printed" 'printed by rqd -T' "$D/documented" "described in $CONF"
}

# The defaults as the page has them, "NAME = TYPE, default 5s, RANGE".  What the sample sets
# or a host has, "default: WORDS", is left out.
documented_defaults() {
	sed -n 's/^\.It Ic \([a-z_]*\) No = .* default \([^,]*\).*/\1=\2/p' $CONF | tr -d '{}' |
	    sed 's/=empty$/=/; s/=60s$/=1m/' | grep -v -e '^every=' -e '^foreign_timeout=' | sort -u
}

defaults() {
	"$RQD" -T -c "$D/sample.conf" | sed -n 's/^[ \t]*\([a-z_]*\) = /\1=/p' | tr -d '"{}' |
	    sort -u >"$D/printed"
	documented_defaults >"$D/documented"
	[ "$(wc -l <"$D/documented")" -ge 30 ] || echo "only $(wc -l <"$D/documented") defaults were found"
	comm -13 "$D/printed" "$D/documented" | sed "s|\$| is not what rqd -T prints|"
}

# Sets every option of rqd.conf(5) that has a range to a value beyond it.  rqd -t then prints
# its own range, which must be that of the page.
ranges() {
	awk '
	/^\.Sh [A-Z]+ OPTIONS/ { section = $2 == "GLOBAL" ? "" : tolower($2) }
	/^\.It Ic [a-z_]+ No = .* default [^,]*, / {
		range = $0
		sub(/.* default [^,]*, /, "", range)
		sub(/^backoff to /, "0 to ", range)
		sub(/^powers of two to /, "1 to ", range)
		if (range !~ / to | or more/ || range ~ /^up to/)
			next
		print $3, section, range
	}' $CONF >"$D/ranges"
	[ "$(wc -l <"$D/ranges")" -ge 35 ] || echo "only $(wc -l <"$D/ranges") ranges were found"
	awk -v as="$AS" '
	function beyond(range,  word) {
		if (sub(/ or more/, "", range))
			return "0"
		sub(/.* to /, "", range)
		if (range ~ /\//)
			return "\"0/s\""
		match(range, /[0-9]+/)
		return substr(range, 1, RLENGTH) "0" substr(range, RLENGTH + 1)
	}
	{
		option = $1
		section = $0 ~ /^[a-z_]+  / ? "" : $2
		if (section == "queue" && option !~ /^shards/)
			section = "defaults"
		lines[section] = lines[section] option " = " beyond($0) "\n"
	}
	END {
		printf "%s", lines[""]
		for (s in lines)
			if (s == "queue" || s == "schedule")
				printf "%s \"q\" {\n%s}\n", s, lines[s]
			else if (s != "")
				printf "%s {\n%s}\n", s, lines[s]
	}' "$D/ranges" >"$D/beyond.conf"
	"$RQD" -t -c "$D/beyond.conf" 2>&1 | sed 's/: rate ".*" is out/: value 0 for rate is out/' |
	    sed -n 's/.*: value .* for \([a-z_]*\) is out of range \([^:]*\).*/\1 \2/p' >"$D/printed"
	sed 's/^\([a-z_]*\) [a-z]* /\1 /' "$D/ranges" | while read -r option range; do
		printed=$(sed -n "s/^$option //p" "$D/printed")
		case $printed in
		"$range" | "$range or "* | "${range% or more} to "*) ;;
		*) echo "$option: $CONF has $range, rqd -t prints ${printed:-nothing}" ;;
		esac
	done
}

# The shipped file shows every option as a comment, with its default.
shipped_options() {
	sed -n 's/^[ \t]*#[ \t]*\([a-z_]* = .*\)/\1/p' etc/rqd.conf >"$D/shipped"
	printed_options "$D/sample.conf" | sed 's/.*\.//' | sort -u | while read -r option; do
		grep -q "^$option *=" "$D/shipped" || echo "$option: not in etc/rqd.conf"
	done
	# Uncommented it says the same: all but what belongs to one queue.
	sed -e '/^#queue/,/^#}/d' -e '/^#schedule/,/^#}/d' -e '/^include/d' \
	    -e 's/^\([ \t]*\)#\([a-z_]* = .*\)/\1\2/' etc/rqd.conf >"$D/all.conf"
	echo "$SAMPLE" >>"$D/all.conf"
	"$RQD" -T -c "$D/all.conf" >"$D/all" 2>&1
	"$RQD" -T -c "$D/sample.conf" 2>&1 | diff - "$D/all"
}

# As rqctl reads it, which looks for errors but not for users and commands.
conf_errors() {	# FILE
	"$RQCTL" -c "$1" queues --names >"$D/said" 2>&1 || cat "$D/said" "$1"
}

is_conf() { grep -q '^[a-z ]*queue "' "$1" && ! grep -q '^\$ ' "$1" && ! head -1 "$1" | grep -q '^#!'; }

conf_examples() {
	n=0
	for page in man/rqd.conf.5 man/rqd-handler.7 man/rqd.8; do
		blocks "$page" "${page##*/}"
		for block in "$D/${page##*/}".*; do
			is_conf "$block" || continue
			n=$((n + 1))
			conf_errors "$block"
		done
	done
	for f in etc/examples/*.sh; do
		sed -n '/^# *	*queue "/,/^#	}/s/^#	//p' "$f" >"$D/${f##*/}"
		conf_errors "$D/${f##*/}"
		n=$((n + 1))
	done
	for f in README.md doc/*.md; do
		sed -n '/^queue "/,/^}/p; /^schedule "/,/^}/p' "$f" >"$D/${f##*/}.conf"
		[ -s "$D/${f##*/}.conf" ] || continue
		n=$((n + 1))
		# A document may show one queue twice.
		[ -n "$(awk '/^queue "/ && seen[$2]++' "$D/${f##*/}.conf")" ] || conf_errors "$D/${f##*/}.conf"
	done
	[ $n -ge 10 ] || echo "only $n examples were found"
}

# -- rqd(8), rqd-log(7), rqd-metrics(7) --------------------------------------------

command_line() {
	"$RQD" -h | awk '/^  -/ { print $1; if ($2 ~ /^-/) print $2 }' | tr -d ',' |
	    sed 's/^-//; s/^-//' >"$D/printed"
	section man/rqd.8 DESCRIPTION | sed -n 's/^\.It Fl \([^ ]*\)/\1/p' |
	    sed 's/ Ar .*//; s/ , /\n/g' | sed 's/^-//' | grep -v '^tt$' >"$D/documented"
	same "$D/printed" 'printed by rqd -h' "$D/documented" 'described in man/rqd.8'
}

# Names of events: the argument after the level, and what event_log.c chooses from.
events() {
	{
		sources | tr '\n' ' ' |
		    grep -oE '(log_event\(|queue_event\([a-z>-]+, )[A-Za-z_]+,[[:space:]]*"[a-z_]+"' | sed 's/.*"\(.*\)"/\1/'
		sources | tr '\n' ' ' |
		    grep -oE '(log_event\(|queue_event\([a-z>-]+, )[A-Za-z_]+,[^,"]*\? "[a-z_]+" : "[a-z_]+"' |
		    grep -oE '"[a-z_]+"' | tr -d '"'
		sed -n '/^static const struct settle_event/,/^event_log_settled/p' src/engine/event_log.c |
		    grep -oE '"[a-z_]+"' | tr -d '"'
		sed -n 's/.*, "\(reload_failed\)".*/\1/p' src/service/*.c
	} >"$D/printed"
	for part in 'Events of the daemon' 'Events of a queue' 'Events of a message'; do
		subsection man/rqd-log.7 EVENTS "$part" | sed -n 's/^\.It Cm //p' | sed 's/ , /\n/g'
	done >"$D/documented"
	same "$D/printed" 'logged' "$D/documented" 'described in rqd-log(7), EVENTS'
}

reasons() {
	sed -n 's/.*\[REASON_[A-Z_]*\] = "\([a-z_]\{1,\}\)".*/\1/p' src/policy/outcome.c >"$D/printed"
	subsection man/rqd-log.7 EVENTS Reasons | sed -n 's/^\.It Cm //p' >"$D/documented"
	same "$D/printed" 'a reason' "$D/documented" 'described in rqd-log(7), Reasons'
	"$RQCTL" --server "unix:$D/none" dead list q --reason x 2>&1 |
	    sed 's/.*write one of //; s/, /\n/g' >"$D/printed"
	subsection man/rqd-log.7 EVENTS Reasons | sed '/^\.El/,$d' | sed -n 's/^\.It Cm //p' >"$D/documented"
	same "$D/printed" 'taken by --reason' "$D/documented" 'described as a reason of dead letters'
}

counters() {
	sed -n 's/.*\[STAT_[A-Z_]*\] = { "\([a-z_]*\)".*/\1/p' src/base/stats.c >"$D/printed"
	section man/rqd-metrics.7 COUNTERS | sed -n 's/^\.It Li //p' >"$D/documented"
	same "$D/printed" 'a counter' "$D/documented" 'described in rqd-metrics(7), COUNTERS'
}

# Names of metric families; those of counters are made of the counters' names.
metrics() {
	{
		sed -n 's/^	{ "\([a-z_]*\)", "[a-z]*",.*/\1/p' src/status/metrics.c
		echo rqd_queue_
	} >"$D/printed"
	section man/rqd-metrics.7 METRICS | sed -n 's/^\.It Li //p' | sed 's/ Ns .*//; s/ , /\n/g' >"$D/documented"
	same "$D/printed" 'a metric' "$D/documented" 'described in rqd-metrics(7), METRICS'
}

# Every variable of ours that the sources know is in one of the pages, and the reverse.
variables() {
	sources | grep -oE '"RQD_[A-Z_]+["=]' | tr -d '"=' >"$D/printed"
	cat man/*.[1-8] | grep -oE '^\.(It )?Ev .*' | grep -oE 'RQD_[A-Z_]+' >"$D/documented"
	same "$D/printed" 'in the sources' "$D/documented" 'described as .Ev'
}

# Suffixes of keys: an array of names in keys.c, in the order of enum key.
keys() {
	sed -n '/^enum key {/,/}/p' src/queue/keys.h | grep -oE 'KEY_[A-Z]+' |
	    grep -v -e KEY_MAX -e KEY_QUEUE | sed 's/KEY_/Q/' >"$D/printed"
	subsection man/rqd.8 REDIS Keys | sed -n 's/^\.It Li //p' | sed 's/ , /\n/g' |
	    grep -E '^Q[A-Z]+$' >"$D/documented"
	same "$D/printed" 'a key' "$D/documented" 'described in rqd(8), Keys'
	grep -oE '^\| `[A-Za-z:]+`' doc/keys.md | grep -oE 'Q[A-Z]+' >"$D/documented"
	same "$D/printed" 'a key' "$D/documented" 'described in doc/keys.md'
	sed -n 's/^#define KEYS_[A-Z_]*[ \t]*"\(.*\)"/\1/p' src/queue/keys.h | while read -r prefix; do
		grep -qF "\`$prefix" doc/keys.md || echo "$prefix is not in doc/keys.md"
		grep -qF "$prefix" man/rqd.8 || echo "$prefix is not in man/rqd.8"
	done
}

# -- rqctl(1) --------------------------------------------------------------------

# All verbs, as completion offers them.
verbs_of_help() {
	"$RQCTL" help --completion words -- '' | while IFS='	' read -r verb help; do
		[ -z "$help" ] || echo "$verb"
		"$RQCTL" --server unix:/none help --completion words -- "$verb" '' 2>/dev/null |
		    sed -n "s/^\([a-z]*\)	.*/$verb \1/p"
	done
}

# The groups of "rqctl help" have every verb, as "dead list|show" or "schedules [run]".
groups_of_help() {
	verbs_of_help | grep -vx help >"$D/printed"
	"$RQCTL" help | sed -n '3,/^$/p' | cut -c 11-35 | awk '
	/\[/ { sub(/ \[.*/, ""); print; print $1 " run"; next }
	{ n = split($NF, word, "|"); for (i = 1; i <= n; i++) print (NF > 1 ? $1 " " : "") word[i] }' >"$D/documented"
	same "$D/printed" 'a verb' "$D/documented" 'in the groups of rqctl help'
}

verbs() {
	verbs_of_help >"$D/printed"
	section man/rqctl.1 DESCRIPTION | sed '/^\.Ss JSON/,$d' |
	    sed -n 's/^\.It Xo Cm //p; s/^\.It Cm //p' | sed 's/ \(Oo\|Op\|Ar\|Fl\|Xc\) .*//' |
	    grep -v '^\(bash\|zsh\)$' >"$D/documented"
	same "$D/printed" 'printed by rqctl help' "$D/documented" 'described in rqctl(1)'
}

options_of_help() {
	awk '/^ +-/ { for (i = 1; i <= 2; i++) if ($i ~ /^--/) print substr($i, 3) }'
}

verb_options() {
	{
		"$RQCTL" help | options_of_help
		verbs_of_help | while read -r verb; do
			# shellcheck disable=SC2086
			"$RQCTL" help $verb | options_of_help
		done
	} >"$D/printed"
	grep -oE '(Fl|,) -[a-z-]+' man/rqctl.1 | sed 's/^[^-]* -//' >"$D/documented"
	same "$D/printed" 'printed by rqctl help VERB' "$D/documented" 'described in rqctl(1)'
}

# -- rqd-handler(7), scripts --------------------------------------------------------

scripts() {
	n=0
	blocks man/rqd-handler.7 handler
	for block in "$D"/handler.*; do
		head -1 "$block" | grep -q '^#!/bin/sh' || continue
		n=$((n + 1))
		sh -n "$block" || cat "$block"
		if command -v shellcheck >/dev/null; then
			shellcheck -s sh -S warning -e SC2154,SC2034 "$block"
		fi
	done
	[ $n -ge 4 ] || echo "only $n scripts were found"
}

# -- options and verbs in prose ------------------------------------------------------

# `name = value` in a document is an option.

options_in_prose() {
	printed_options "$D/sample.conf" | sed 's/.*\.//' | sort -u >"$D/printed"
	echo shards >>"$D/printed"
	echo shards_drain >>"$D/printed"
	for f in README.md doc/*.md; do
		grep -oE '`[a-z_]+ = [^`]*`' "$f" | sed 's/^`//; s/ = .*//' | sort -u | while read -r name; do
			grep -qx "$name" "$D/printed" || echo "$f: $name is no option"
		done
	done
}

# Each verb of rqctl that a document names, and the options behind it.
verbs_in_prose() {
	verbs_of_help >"$D/verbs"
	cat README.md doc/*.md | grep -v '^rqctl: ' | grep -oE '(^|[` ])rqctl( --?[a-z][^ ]*)* [a-z][a-z]*[^`|"&;]*' |
	    sed 's/.*rqctl //; s/  *#.*//; s/ -- .*//' | grep -v '^[^ ]*:' | sort -u | while read -r verb rest; do
		case "$verb ${rest%% *}" in
		dead\ * | retry\ * | delayed\ * | schedules\ run) verb="$verb ${rest%% *}" ;;
		esac
		grep -qx -e "$verb" "$D/verbs" || { echo "rqctl $verb $rest"; continue; }
		# shellcheck disable=SC2086
		"$RQCTL" help $verb >"$D/help"
		for option in $(echo "$rest" | grep -oE -e '(^| )--[a-z-]+'); do
			grep -qE -e "(^|[ ,])$option( |\$)" "$D/help" || echo "rqctl $verb has no $option"
		done
	done
}

# -- files -------------------------------------------------------------------------

# Every manual is installed (make installs all documents and examples).
installed() {
	for f in man/*.[1-8]; do
		grep -q "[ 	]$f\( \|\$\)" Makefile.am || echo "$f is not in Makefile.am"
	done
}

links() {
	for f in *.md doc/*.md; do
		grep -oE '\]\([^)#:]+\)' "$f" | sed 's/](\(.*\))/\1/' | while read -r to; do
			[ -e "$(dirname "$f")/$to" ] || echo "$f: no $to"
		done
	done
	cat man/*.[1-8] | grep -oE '^\.Xr (rqd|rqctl)[a-z.-]* [1-8]' | sort -u | while read -r _ page number; do
		[ -f "man/$page.$number" ] || echo "$page($number) does not exist"
	done
}

# Each block of commands says by a comment who runs it, or why nobody does.
blocks_are_marked() {
	python3 tests/docs/blocks.py --lint README.md NEWS.md HACKING.md bench/README.md doc/*.md
}

# The error texts by which doc/troubleshooting.md is searched are those of the
# programs; Redis' own begin with a word in capitals.
error_texts() {
	{ sources; cat src/*/*.h; } | tr '\n' ' ' | sed 's/"[ \t]*"//g; s/\\"/"/g' >"$D/texts"
	grep -oE '^\*\*`.*|, \*\*`.*| and \*\*`.*' doc/troubleshooting.md | grep -oE '\*\*`[^`]+`' | tr -d '*`' |
	    sed 's/…/\n/g; s/^event=.*//' | while IFS= read -r text; do
		text=$(printf %s "$text" | sed 's/^[" ]*//; s/[" ]*$//; s/^suspended: //; s/^reason=//')
		case $text in '' | ? | is | in | at | at\ [A-Z]* | [A-Z][A-Z]* | Connection\ *) continue ;; esac
		grep -qF -e "$text" "$D/texts" || echo "doc/troubleshooting.md: no program says: $text"
	done
}

silent 'every option is described in rqd.conf(5), and exists' options
silent 'the defaults in rqd.conf(5) are right' defaults
silent 'the ranges in rqd.conf(5) are right' ranges
silent 'every option is in etc/rqd.conf, with its default' shipped_options
silent 'the examples of configurations are accepted' conf_examples
silent 'every option of rqd is described in rqd(8), and exists' command_line
silent 'every event of the log is described, and exists' events
silent 'every reason is described, and exists' reasons
silent 'every counter is described, and exists' counters
silent 'every metric is described, and exists' metrics
silent 'every variable RQD_* is described, and exists' variables
silent 'every key in Redis is described, and exists' keys
silent 'every verb of rqctl is described, and exists' verbs
silent 'every option of rqctl is described, and exists' verb_options
silent 'the help of rqctl has every verb in its groups' groups_of_help
silent 'the scripts in rqd-handler(7) are right' scripts
silent 'the options that documents name exist' options_in_prose
silent 'the verbs of rqctl that documents name exist, with their options' verbs_in_prose
silent 'the error texts of doc/troubleshooting.md exist' error_texts
if command -v python3 >/dev/null; then
	silent 'every block of the documents says who runs it' blocks_are_marked
fi
silent 'every document is installed' installed
silent 'nothing refers to what is not there' links
done_testing
