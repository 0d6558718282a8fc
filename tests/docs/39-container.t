#!/bin/sh
# The image of etc/examples/container: its second stage installs what the programs link, and both
# stages have one base.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

DOCKERFILE=$SRCDIR/etc/examples/container/Dockerfile
command -v readelf >/dev/null || skip_all 'no readelf'

# libevent_core-2.1.so.7 is in the package libevent-core-2.1-7, or -7t64: libevent-core.  Each
# base has libc6, which contains libresolv.
linked() {
	for program in "$RQD" "$RQCTL"; do
		readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\.so.*/\1/p'
	done | grep -vxE 'libc|libresolv|libm|ld-linux.*|libasan|libubsan' |
	    sed 's/-[0-9.]*$//; s/^libhiredis_ssl$/libhiredis/; s/^libcrypto$/libssl/; s/_/-/g' | sort -u
}
installs() { awk '/^FROM / { n++ } n == 2' "$DOCKERFILE" | tr -s ' \t\\' '\n' | sed -n '/^lib/p'; }
installed() { installs | sed 's/t64$//; s/[-0-9.]*$//' | sort -u; }

ok '[ "$(linked | grep -c .)" -ge 5 ]' 'the programs link libraries'
for library in $(linked); do
	ok 'installed | grep -qx "$library"' "the image has $library"
done
for library in $(installed); do
	ok '{ linked; echo libssl; } | grep -qx "$library"' "it needs $library"
done
is "$(sed -n 's/^FROM \([^ ]*\).*/\1/p' "$DOCKERFILE" | uniq)" debian:13-slim 'one base, with TLS in hiredis'
for file in $(sed -n 's/^COPY \(etc[^ ]*\) .*/\1/p' "$DOCKERFILE"); do
	ok '[ -e "$SRCDIR/$file" ]' "it copies $file"
done
