#!/bin/sh
# What is built on Debian 12 starts wherever glibc is 2.34 or newer, as in RHEL 9: no function
# of a later version.  And the programs link nothing that the documents do not name.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

for f in rqd rqctl; do
	[ -x "$BUILDDIR/$f" ] || skip_all 'not built'
done
case $(built RQD_CFLAGS) in
*-fsanitize*) skip_all 'a sanitizer needs more' ;;
esac
case $(getconf GNU_LIBC_VERSION 2>/dev/null) in
'glibc 2.3'[0-6]) ;;
*) skip_all 'the headers of a newer C library choose newer functions' ;;
esac

newer() {
	nm -D --undefined-only "$BUILDDIR/rqd" "$BUILDDIR/rqctl" |
	    awk -F '@+GLIBC_2[.]' 'NF == 2 && int($2) > 34'
}

known() {
	[ "$(nm -D --undefined-only "$BUILDDIR/rqd" | grep -c 'GLIBC_')" -gt 50 ] ||
	    echo 'the symbols are not found'
}

libraries() {
	objdump -p "$BUILDDIR/rqd" "$BUILDDIR/rqctl" | sed -n 's/^ *NEEDED *//p' | sort -u |
	    grep -vE '^lib(c|m|resolv|pthread|event_(core|extra)-2\.1|hiredis(_ssl)?|confuse|jansson|seccomp|ssl|crypto)\.so'
}

silent 'the functions that the programs need are found' known
silent 'no function is newer than glibc 2.34' newer
silent 'the programs need no other library' libraries
done_testing
