#!/bin/sh
# The floors of the house: who may include whom, and which library is known
# where.  The order is FLOORS in Makefile.am, not a second list here.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

FLOORS=$(sed -n 's/^FLOORS = //p' Makefile.am)
SIDE=$(sed -n 's/^SIDE_BY_SIDE = //p' Makefile.am)
export FLOORS SIDE

# Prints FILE:LINE:INCLUDED for every #include, "" and <> told apart by the first letter.
includes() {
	find src \( -name '*.c' -o -name '*.h' \) -exec \
	    awk '/^[ \t]*#[ \t]*include[ \t]*["<]/ {
		s = $0; sub(/^[^"<]*/, "", s); sub(/[">][^">]*$/, "", s)
		print FILENAME ":" FNR ":" s }' {} +
}

# Own headers: by their path from src, on the same floor or a lower one.
upwards() {
	includes | awk -F: '
	BEGIN {
		n = split(ENVIRON["FLOORS"], f, " ")
		for (i = 1; i <= n; i++)
			floor[f[i]] = i
		n = split(ENVIRON["SIDE"], f, " ")
		for (i = 1; i <= n; i++) {
			split(f[i], p, ":")
			side[p[1], p[2]] = side[p[2], p[1]] = 1
		}
	}
	$3 ~ /^"/ {
		split($1, at, "/")
		own = at[2]
		inc = substr($3, 2)
		n = split(inc, to, "/")
		if (own == "rqctl" || own == "rqd.c")
			next
		if (n != 2)
			print $1 ":" $2 ": \"" inc "\": not by its path from src"
		else if (!(own in floor))
			print $1 ": " own " is not one of FLOORS"
		else if (!(to[1] in floor))
			print $1 ":" $2 ": \"" inc "\" is on no floor"
		else if (floor[to[1]] > floor[own])
			print $1 ":" $2 ": \"" inc "\" is upwards"
		else if ((own, to[1]) in side)
			print $1 ":" $2 ": \"" inc "\" is sideways"
	}'
}

# Only rqctl includes its own headers, and it needs nothing of the daemon's life.
tops() {
	includes | awk -F: '
	$3 ~ /^"rqctl\// && $1 !~ /^src\/rqctl\// { print $1 ":" $2 ": includes " $3 }
	$3 ~ /^"(engine|service)\// && $1 ~ /^src\/rqctl\// { print $1 ":" $2 ": includes " $3 }'
}

# Where the libraries may be seen.
libraries() {
	includes | awk -F: '
	function only(lib, where) {
		if ($3 ~ lib && $1 !~ where)
			print $1 ":" $2 ": " $3 "> is not for this file"
	}
	$3 ~ /^</ {
		only("^<event2?[/.]", "^src/(loop/|status/http\\.c)")
		only("^<hiredis/", "^src/redis/")
		only("^<hiredis/adapters/", "^none of ours")
		only("^<confuse\\.h", "^src/config/")
		only("^<jansson\\.h", "^src/(policy|status|service|rqctl)/")
		only("^<systemd/", "^none of ours")
	}'
}

# One way in every build: what a C library lacks, base/ has itself, for all.
conditional() {
	grep -lE '^[ \t]*#[ \t]*(if|ifdef|ifndef|elif)\>' src/base/*.[ch] src/loop/*.[ch] |
	    awk 'NR > 1 { print $0 " has conditions of the preprocessor, as " first; next } { first = $0 }'
}

# A source belongs to the library of its floor, and to one only.
sources() {
	awk '
	/^(nodist_)?librqd_[a-z]*_a_SOURCES/ { lib = $1; sub(/^(nodist_)?librqd_/, "", lib); sub(/_a_SOURCES.*/, "", lib) }
	/^[A-Z]/ { lib = "" }
	lib != "" {
		for (i = 1; i <= NF; i++)
			if ($i ~ /^src\//) {
				split($i, p, "/")
				dir = p[2] == "rqctl" ? "ctl" : p[2]
				if (dir != lib)
					print $i " is in librqd_" lib ".a"
			}
		if ($0 !~ /\\$/)
			lib = ""
	}' Makefile.am
	find src -name '*.c' | sort | while read -r f; do
		grep -q "[ 	]$f\( \|\$\)" Makefile.am || echo "$f is not in Makefile.am"
	done
}

# Each module's file name occurs once, so that it can be named without its folder.
names() {
	find src -name '*.[ch]' ! -name main.c | sed 's,.*/,,' | sort | uniq -d
}

# Each .c of a floor begins with its own header, so that the header stands alone.
own_first() {
	find src -name '*.c' | sort | while read -r f; do
		h=${f%.c}.h
		[ -f "$h" ] || continue
		first=$(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$f" | head -1)
		[ "src/$first" = "$h" ] || echo "$f includes \"$first\" before its own header"
	done
}

# The folders, or files, whose objects follow the next two rules.
STRICT="src/base src/loop src/redis src/policy src/queue src/handler src/engine src/config src/service src/rqd.c"

# One function of a file moves its object: it is named *_set_state or *_move.
movers() {
	# shellcheck disable=SC2086
	find $STRICT src/rqctl -name '*.c' | sort | while read -r f; do
		awk -v f="$f" '
		/^[a-z_0-9]+\(/ { name = $0; sub(/\(.*/, "", name) }
		/(->|[]a-z_0-9)]\.)state = / {
			if (name !~ /_(set_state|move)$/)
				print f ":" FNR ": " name "() sets a state"
			if (n++)
				print f ":" FNR ": a second line sets a state"
		}' "$f"
	done
}

# Each struct, union and enum has a name of its own.
structs() {
	find src \( -name '*.c' -o -name '*.h' \) ! -name message_id.c -exec \
	    grep -oHE '(struct|union|enum) [a-z_0-9]+ \{' {} + |
	    awk -F '[: ]' -v strict="$STRICT" '
	BEGIN { n = split(strict, s, " ") }
	{
		for (i = 1; i <= n; i++)
			if (index($1, s[i]) == 1)
				mine[$3] = 1
		if ($3 in at && at[$3] != $1)
			twice[$3] = at[$3] = at[$3] " " $1
		else
			at[$3] = $1
	}
	END {
		for (name in twice)
			if (name in mine)
				print name " is in " twice[name]
	}'
}

# A test in C that no list names never runs; nor does a script that is not one
# folder below tests/.
unlisted() {
	find tests -name '*.t' | grep -v '^tests/[a-z]*/[^/]*$'
	find tests -name 'test_*.c' -o -name 'fuzz_*.c' | sed 's/\.c$//' |
	while read -r f; do
		grep -qE "(^|[[:space:]])$f([[:space:]]|\$)" Makefile.am || echo "$f"
	done
}

# In these folders no two files call each other in a circle, in one step or more.  Elsewhere
# one object has several files (redis/conn, base/log, the loop, the spawner).  So has leased,
# whose files count as one.
circles() {
	for f in policy queue config status engine service; do
		nm -A "${BUILDDIR:-build}/librqd_$f.a" | sed 's/^[^:]*://' | awk '
		{ sub(/\.o:.*/, ".o", $1); sub(/^leased_[a-z]*/, "leased", $1) }
		$2 == "U" { needs[$1, $3]; next }
		$2 ~ /^[TDRBC]$/ { has[$3] = $1 }
		END {
			for (k in needs) {
				split(k, p, SUBSEP)
				if (p[2] in has)
					print p[1], has[p[2]]
			}
		}' | tsort 2>&1 >/dev/null | sed "s,^tsort:,src/$f:,"
	done
}

floors_exist() {
	for f in $FLOORS; do [ -d "src/$f" ] || echo "src/$f is missing"; done
}

silent 'every floor has its folder' floors_exist
silent 'no #include points upwards or sideways' upwards
silent 'only rqctl includes rqctl/; it includes neither engine/ nor service/' tops
silent 'libevent, hiredis, libconfuse, jansson on their floors only; libsystemd nowhere' libraries
silent 'one file at most of base/ and loop/ has #if or #ifdef' conditional
silent 'every source is in the library of its floor' sources
silent 'every source begins with its own header' own_first
silent 'no two files of a folder call each other in a circle' circles
silent 'no file name occurs twice' names
silent 'one function changes the state of an object' movers
silent 'no struct has the name of another' structs
silent 'Makefile.am names every test' unlisted
done_testing
